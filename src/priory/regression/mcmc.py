"""Draws from the posterior of a logistic regression: the No-U-Turn sampler and variational inference, by BlackJAX.

Both work where the Laplace approximation is a unit ball (``w = peak + z·root``, z near N(0, 1)): the sampler needs no
long warm-up there, and factors that are independent in z are not independent in w.

This module needs the extra ``mcmc``; nothing else of Priory does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from priory.core.registration import register_record
from priory.core.typing import Array
from priory.errors import MissingDependencyError
from priory.regression.logistic_posterior import LaplaceApproximation, TrainingExamples

N_WARM_UP_STEPS = 500  # steps in which the sampler finds its step size
N_PROGRESS_BLOCKS = 20  # in which the draws are made, a sign of life after each
N_ADAM_STEPS, N_ELBO_SAMPLES, ADAM_LEARNING_RATE = (
    1500,
    32,
    0.02,
)  # of variational inference: Adam's steps, points in each, and its first rate

SamplingProgress = Callable[[int, int, int], None]


@register_record("Diagnostics", finite=False)
class Diagnostics(NamedTuple):
    """Whether the chains agree: R-hat near 1 (below 1.01), enough independent draws, no divergence."""

    rhat: float
    ess: float
    divergences: int


class PosteriorDraws(NamedTuple):
    """Draws of the weights (draws, contrasts, terms), and what is to be thought of them."""

    weights: Array
    diagnostics: Diagnostics | None


def _import_backend() -> Any:
    try:
        import blackjax
        import jax
        import optax
        from arviz_stats.base import array_stats
    except ImportError as error:
        message = f"{error.name} is not installed; this method needs the extra: pip install 'priory[mcmc]'."
        raise MissingDependencyError(message, name=error.name) from None
    return jax, blackjax, optax, array_stats


def _make_log_density(
    jax: Any, examples: TrainingExamples, precision: Array, laplace: LaplaceApproximation
) -> Callable[[Any], Any]:
    """Log posterior of z, up to a constant."""
    u, d, weight, spread, peak, root, prior = (
        jax.numpy.asarray(np.asarray(x, dtype=float))
        for x in (
            examples.u,
            examples.d,
            examples.weight,
            examples.class_contrasts,
            laplace.mean,
            laplace.root,
            precision,
        )
    )

    def log_density(z: Any) -> Any:
        w = peak + (z @ root).reshape(peak.shape)
        log_p = jax.nn.log_softmax(u @ w.T @ spread.T, axis=1)
        return weight @ (d * log_p).sum(axis=1) - 0.5 * (prior * w**2).sum()

    return log_density


def sample_nuts(
    examples: TrainingExamples,
    precision: Array,
    laplace: LaplaceApproximation,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    progress: SamplingProgress | None = None,
) -> PosteriorDraws:
    """``draws`` draws of each of ``chains`` chains by the No-U-Turn sampler."""
    jax, blackjax, _, array_stats = _import_backend()
    with jax.enable_x64(True):
        log_density = _make_log_density(jax, examples, precision, laplace)
        warm, start, *keys = jax.random.split(jax.random.key(seed), 2 + N_PROGRESS_BLOCKS)
        size = laplace.mean.size
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (_, tuned), _ = adaptation.run(warm, jax.numpy.zeros(size), num_steps=N_WARM_UP_STEPS)
        sampler = blackjax.nuts(log_density, **tuned)
        length = -(-draws // N_PROGRESS_BLOCKS)

        def chain(key: Any, state: Any) -> Any:
            def one(state: Any, key: Any) -> Any:
                state, info = sampler.step(key, state)
                return state, (state.position, info.is_divergent)

            return jax.lax.scan(one, state, jax.random.split(key, length))

        block = jax.jit(jax.vmap(chain))
        states = jax.vmap(sampler.init)(jax.random.normal(start, (chains, size)))
        states, _ = block(jax.random.split(warm, chains), states)  # away from the starting points
        positions, divergent = [], 0
        for i, key in enumerate(keys):
            states, (z, bad) = block(jax.random.split(key, chains), states)
            positions.append(np.asarray(z))
            divergent += int(bad.sum())
            if progress is not None:
                progress(chains * length * (i + 1), chains * length * N_PROGRESS_BLOCKS, divergent)
    z = np.concatenate(positions, axis=1)
    columns = np.moveaxis(z, -1, 0)
    diagnostics = Diagnostics(
        float(np.max(array_stats.rhat(columns))), float(np.min(array_stats.ess(columns))), divergent
    )
    return PosteriorDraws(_to_weights(z.reshape(-1, size), laplace), diagnostics)


def sample_variational(
    examples: TrainingExamples,
    precision: Array,
    laplace: LaplaceApproximation,
    draws: int = 1000,
    seed: int = 0,
    progress: SamplingProgress | None = None,
) -> PosteriorDraws:
    """``draws`` draws of the closest Gaussian (in the Kullback-Leibler sense) with independent factors in z."""
    jax, blackjax, optax, _ = _import_backend()
    with jax.enable_x64(True):
        log_density = _make_log_density(jax, examples, precision, laplace)
        optimiser = optax.adam(optax.cosine_decay_schedule(ADAM_LEARNING_RATE, N_ADAM_STEPS))
        inference = blackjax.meanfield_vi(log_density, optimiser, num_samples=N_ELBO_SAMPLES)
        state = inference.init(jax.numpy.zeros(laplace.mean.size))
        last, *keys = jax.random.split(jax.random.key(seed), 1 + N_PROGRESS_BLOCKS)

        @jax.jit  # type: ignore[untyped-decorator]  # JAX has no types
        def block(key: Any, state: Any) -> Any:
            return jax.lax.scan(
                lambda s, k: inference.step(k, s), state, jax.random.split(key, N_ADAM_STEPS // N_PROGRESS_BLOCKS)
            )

        for i, key in enumerate(keys):
            state, _ = block(key, state)
            if progress is not None:
                progress((i + 1) * (N_ADAM_STEPS // N_PROGRESS_BLOCKS), N_ADAM_STEPS, 0)
        z = np.asarray(inference.sample(last, state, draws))
    return PosteriorDraws(_to_weights(z, laplace), None)


def _to_weights(z: Array, laplace: LaplaceApproximation) -> Array:
    return np.asarray(laplace.mean + (z @ laplace.root).reshape(len(z), *laplace.mean.shape))


def make_stderr_progress(name: str) -> SamplingProgress:
    """A line that counts the draws while they are made."""

    def show(done: int, total: int, divergent: int) -> None:
        trouble = f", {divergent} divergent" if divergent else ""
        end = "\n" if done >= total else ""
        print(f"\r{name}: {done:,} of {total:,}{trouble}", end=end, file=sys.stderr, flush=True)

    return show
