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

from priory.core.typing import Array
from priory.errors import Missing
from priory.regression.logistic_posterior import Examples, Laplace

WARM_UP = 500  # steps in which the sampler finds its step size
BLOCKS = 20  # in which the draws are made, a sign of life after each
STEPS, POINTS, RATE = 1500, 32, 0.02  # of variational inference: Adam's steps, points in each, and its first rate

Progress = Callable[[int, int, int], None]


class Diagnostics(NamedTuple):
    """Whether the chains agree: R-hat near 1 (below 1.01), enough independent draws, no divergence."""

    rhat: float
    ess: float
    divergences: int


class Draws(NamedTuple):
    """Draws of the weights (draws, contrasts, terms), and what is to be thought of them."""

    weights: Array
    diagnostics: Diagnostics | None


def _backend() -> Any:
    try:
        import blackjax
        import jax
        import optax
        from arviz_stats.base import array_stats
    except ImportError as error:
        message = f"{error.name} is not installed; this method needs the extra: pip install 'priory[mcmc]'."
        raise Missing(message, name=error.name) from None
    return jax, blackjax, optax, array_stats


def _log_density(jax: Any, examples: Examples, precision: Array, around: Laplace) -> Callable[[Any], Any]:
    """Log posterior of z, up to a constant."""
    u, d, weight, spread, peak, root, prior = (
        jax.numpy.asarray(np.asarray(x, dtype=float))
        for x in (examples.u, examples.d, examples.weight, examples.spread, around.mean, around.root, precision)
    )

    def log_density(z: Any) -> Any:
        w = peak + (z @ root).reshape(peak.shape)
        log_p = jax.nn.log_softmax(u @ w.T @ spread.T, axis=1)
        return weight @ (d * log_p).sum(axis=1) - 0.5 * (prior * w**2).sum()

    return log_density


def nuts(
    examples: Examples,
    precision: Array,
    around: Laplace,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> Draws:
    """``draws`` draws of each of ``chains`` chains by the No-U-Turn sampler."""
    jax, blackjax, _, array_stats = _backend()
    with jax.enable_x64(True):
        log_density = _log_density(jax, examples, precision, around)
        warm, start, *keys = jax.random.split(jax.random.key(seed), 2 + BLOCKS)
        size = around.mean.size
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (_, tuned), _ = adaptation.run(warm, jax.numpy.zeros(size), num_steps=WARM_UP)
        sampler = blackjax.nuts(log_density, **tuned)
        length = -(-draws // BLOCKS)

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
                progress(chains * length * (i + 1), chains * length * BLOCKS, divergent)
    z = np.concatenate(positions, axis=1)
    columns = np.moveaxis(z, -1, 0)
    diagnostics = Diagnostics(
        float(np.max(array_stats.rhat(columns))), float(np.min(array_stats.ess(columns))), divergent
    )
    return Draws(_weights(z.reshape(-1, size), around), diagnostics)


def variational(
    examples: Examples,
    precision: Array,
    around: Laplace,
    draws: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Draws:
    """``draws`` draws of the closest Gaussian (in the Kullback-Leibler sense) with independent factors in z."""
    jax, blackjax, optax, _ = _backend()
    with jax.enable_x64(True):
        log_density = _log_density(jax, examples, precision, around)
        optimiser = optax.adam(optax.cosine_decay_schedule(RATE, STEPS))
        inference = blackjax.meanfield_vi(log_density, optimiser, num_samples=POINTS)
        state = inference.init(jax.numpy.zeros(around.mean.size))
        last, *keys = jax.random.split(jax.random.key(seed), 1 + BLOCKS)

        @jax.jit  # type: ignore[untyped-decorator]  # JAX has no types
        def block(key: Any, state: Any) -> Any:
            return jax.lax.scan(lambda s, k: inference.step(k, s), state, jax.random.split(key, STEPS // BLOCKS))

        for i, key in enumerate(keys):
            state, _ = block(key, state)
            if progress is not None:
                progress((i + 1) * (STEPS // BLOCKS), STEPS, 0)
        z = np.asarray(inference.sample(last, state, draws))
    return Draws(_weights(z, around), None)


def _weights(z: Array, around: Laplace) -> Array:
    return np.asarray(around.mean + (z @ around.root).reshape(len(z), *around.mean.shape))


def on_stderr(name: str) -> Progress:
    """A line that counts the draws while they are made."""

    def show(done: int, total: int, divergent: int) -> None:
        trouble = f", {divergent} divergent" if divergent else ""
        end = "\n" if done >= total else ""
        print(f"\r{name}: {done:,} of {total:,}{trouble}", end=end, file=sys.stderr, flush=True)

    return show
