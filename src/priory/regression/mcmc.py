"""Draws from the posterior of a logistic regression with BlackJAX: the No-U-Turn sampler and variational inference.

Both work in coordinates z in which the Laplace approximation is a standard normal distribution (``w = peak + z·root``).
There the sampler needs only a short warm-up, and a mean-field distribution of z still allows correlated weights.

This is the only module that needs the optional dependencies ``priory[mcmc]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy import ndarray as Array

from priory.core.statistics import register_record
from priory.errors import import_extra
from priory.regression.logistic_posterior import LaplaceApproximation, TrainingExamples

if TYPE_CHECKING:
    from blackjax.base import SamplingAlgorithm
    from blackjax.mcmc.hmc import HMCState
    from blackjax.vi.meanfield_vi import MFVIState
    from jax import Array as JaxArray

N_WARM_UP_STEPS = 500  # steps of adaptation of step size and mass matrix
N_PROGRESS_BLOCKS = 20  # the draws are made in this many blocks, with a progress report after each
N_ADAM_STEPS = 1500  # of variational inference
N_ELBO_SAMPLES = 32  # Monte Carlo samples per gradient
ADAM_LEARNING_RATE = 0.02  # at the first step; it decays along a cosine

SamplingProgress = Callable[[int, int, int], None]  # called with draws done, draws in all, and divergences
LogDensity: TypeAlias = "Callable[[JaxArray], JaxArray]"


@register_record("Diagnostics", finite=False)
class Diagnostics(NamedTuple):
    """Convergence diagnostics: R-hat (should be below 1.01), effective sample size, and number of divergences."""

    rhat: float
    ess: float
    divergences: int


class PosteriorDraws(NamedTuple):
    """Draws of the weights (draws, contrasts, terms), and the diagnostics of the sampler, if it has any."""

    weights: Array
    diagnostics: Diagnostics | None


def _import_packages(*names: str) -> list[Any]:
    return [
        import_extra(name, f"{name} is not installed; this method needs the extra", "'priory[mcmc]'") for name in names
    ]


def _make_log_density(
    jax: ModuleType, examples: TrainingExamples, precision: Array, laplace: LaplaceApproximation
) -> LogDensity:
    """Return the log posterior of z, up to a constant."""
    arrays = (examples.u, examples.d, examples.weight, examples.class_contrasts, laplace.mean, laplace.root, precision)
    u, d, weight, contrasts, peak, root, prior = (jax.numpy.asarray(np.asarray(x, dtype=float)) for x in arrays)

    def log_density(z: JaxArray) -> JaxArray:
        w = peak + (z @ root).reshape(peak.shape)  # (contrasts, terms)
        log_p = jax.nn.log_softmax(u @ w.T @ contrasts.T, axis=1)  # (rows, classes)
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
    """Draw from the posterior with the No-U-Turn sampler: ``draws`` draws in each of ``chains`` chains."""
    blackjax, jax, stats = _import_packages("blackjax", "jax", "arviz_stats.base")
    size = laplace.mean.size
    with jax.enable_x64(True):
        log_density = _make_log_density(jax, examples, precision, laplace)
        warm_key, start_key, *keys = jax.random.split(jax.random.key(seed), 2 + N_PROGRESS_BLOCKS)
        # a step size and a mass matrix that fit the density
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (_, parameters), _ = adaptation.run(warm_key, jax.numpy.zeros(size), num_steps=N_WARM_UP_STEPS)
        sampler = blackjax.nuts(log_density, **parameters)
        # draws per chain and block, rounded up
        length = -(-draws // N_PROGRESS_BLOCKS)
        run_block = _make_block_runner(jax, sampler, length)
        states = jax.vmap(sampler.init)(jax.random.normal(start_key, (chains, size)))
        states, _ = run_block(jax.random.split(warm_key, chains), states)  # discarded as burn-in
        positions, divergences = [], 0
        for i, key in enumerate(keys):
            states, (z, divergent) = run_block(jax.random.split(key, chains), states)
            positions.append(np.asarray(z))  # (chains, length, size)
            divergences += int(divergent.sum())
            if progress is not None:
                progress(chains * length * (i + 1), chains * length * N_PROGRESS_BLOCKS, divergences)
    z = np.concatenate(positions, axis=1)  # (chains, draws, size)
    coordinates, measure = np.moveaxis(z, -1, 0), stats.array_stats  # (size, chains, draws)
    worst = Diagnostics(float(np.max(measure.rhat(coordinates))), float(np.min(measure.ess(coordinates))), divergences)
    return PosteriorDraws(_to_weights(z.reshape(-1, size), laplace), worst)


def _make_block_runner(
    jax: ModuleType, sampler: SamplingAlgorithm, length: int
) -> Callable[[JaxArray, HMCState], tuple[HMCState, tuple[JaxArray, JaxArray]]]:
    """Return a compiled function that advances every chain by ``length`` draws."""

    def step(state: HMCState, key: JaxArray) -> tuple[HMCState, tuple[JaxArray, JaxArray]]:
        state, info = sampler.step(key, state)
        return state, (state.position, info.is_divergent)

    def run_chain(key: JaxArray, state: HMCState) -> tuple[HMCState, tuple[JaxArray, JaxArray]]:
        return jax.lax.scan(step, state, jax.random.split(key, length))

    return jax.jit(jax.vmap(run_chain))


def sample_variational(
    examples: TrainingExamples,
    precision: Array,
    laplace: LaplaceApproximation,
    draws: int = 1000,
    seed: int = 0,
    progress: SamplingProgress | None = None,
) -> PosteriorDraws:
    """Draw from the Gaussian with independent z that is closest to the posterior in Kullback-Leibler divergence."""
    blackjax, jax, optax = _import_packages("blackjax", "jax", "optax")
    steps_per_block = N_ADAM_STEPS // N_PROGRESS_BLOCKS
    with jax.enable_x64(True):
        log_density = _make_log_density(jax, examples, precision, laplace)
        optimiser = optax.adam(optax.cosine_decay_schedule(ADAM_LEARNING_RATE, N_ADAM_STEPS))
        inference = blackjax.meanfield_vi(log_density, optimiser, num_samples=N_ELBO_SAMPLES)
        state = inference.init(jax.numpy.zeros(laplace.mean.size))
        last_key, *keys = jax.random.split(jax.random.key(seed), 1 + N_PROGRESS_BLOCKS)

        def run_block(key: JaxArray, state: MFVIState) -> tuple[MFVIState, object]:
            return jax.lax.scan(lambda s, k: inference.step(k, s), state, jax.random.split(key, steps_per_block))

        compiled_block = jax.jit(run_block)
        for i, key in enumerate(keys):
            state, _ = compiled_block(key, state)
            if progress is not None:
                progress((i + 1) * steps_per_block, N_ADAM_STEPS, 0)
        z = np.asarray(inference.sample(last_key, state, draws))  # (draws, size)
    return PosteriorDraws(_to_weights(z, laplace), None)


def _to_weights(z: Array, laplace: LaplaceApproximation) -> Array:
    """Return the weights (draws, contrasts, terms) of draws (draws, contrasts * terms) of z."""
    return np.asarray(laplace.mean + (z @ laplace.root).reshape(len(z), *laplace.mean.shape))


def make_stderr_progress(name: str) -> SamplingProgress:
    """Return a callback that shows on standard error how many draws have been made."""

    def show(done: int, total: int, divergences: int) -> None:
        warning = f", {divergences} divergent" if divergences else ""
        end = "\n" if done >= total else ""
        print(f"\r{name}: {done:,} of {total:,}{warning}", end=end, file=sys.stderr, flush=True)

    return show
