"""Starts on a cluster: those of :func:`ssnmf_fast.factorize`, drawn block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.checks import check_option
from .._solver.loop import steps_of
from .._solver.losses import Loss
from .._solver.starts import FILLER, INITS, LEAST_SQUARES_STEPS, ROWS_PER_MEAN, ratio
from . import _block, _build
from ._block import Change, Start
from ._fit import ClusterFit, Data, fitting
from ._problem import ClusterProblem
from ._waiting import result_of

_FACTORS = 2  # of the mean of S A


def seeded(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator that blocks can move on in: this one, if it can."""
    if isinstance(rng.bit_generator, np.random.PCG64):
        return rng
    return np.random.Generator(np.random.PCG64(int(rng.integers(2**63))))


def chosen(init: Any, loss: Loss, on_disk: bool) -> str:
    """Return the name of the start that is meant, and can be had."""
    check_option(init, "init", INITS)
    if init == "auto":
        return "random" if on_disk else loss.start
    if init == "nndsvda" or (init == "least-squares" and on_disk):
        raise ValueError(
            f"init={init!r} is not to be had for data on a cluster"
            f"{' that stay on disk' if on_disk else ''}; use 'random' or 'random-acol', or give a "
            "start."
        )
    return str(init)


@dataclass(frozen=True)
class Begun:
    """The start of a fit: A, and S on the workers, which is to be multiplied by a number.

    `columns` are the means of the columns of S, before.
    """

    A: Array
    columns: Array
    scale: float = 1.0

    @property
    def means(self) -> Array:
        return self.columns * self.scale


def begin(fit: ClusterFit, name: str, rng: np.random.Generator, threads: int) -> Begun:
    """Set S on the workers to a start, and return the others."""
    if name == "least-squares" and fit.totals.data > 0:
        return _least_squares(fit, rng, threads)
    if name == "random-acol":
        A = _mean_rows(fit.data, fit.plan.rank, rng) + 0.01 * fit.mean()
        means, unbound = fit.begin(_draws(fit, rng, 1.0))
        scale = ratio(fit.mean(), float(unbound @ A.mean(axis=1)))
        return Begun(A, means, scale * _within(fit))
    return Begun(*_uniform(fit, rng))


def _uniform(fit: ClusterFit, rng: np.random.Generator) -> tuple[Array, Array]:
    rank, m = fit.plan.rank, fit.data.shape[1]
    scale = _FACTORS * np.sqrt(fit.mean() / rank)
    means, _ = fit.begin(_draws(fit, rng, scale * _within(fit)))
    return scale * rng.random((rank, m)), means


def _within(fit: ClusterFit) -> float:
    """Return what keeps the mean of S where some of it is 0 by its support."""
    return fit.data.shape[0] * fit.plan.rank / max(1.0, fit.totals.support)


def _draws(fit: ClusterFit, rng: np.random.Generator, scale: float) -> list[Start]:
    """Return the draws of all blocks, and move the generator on beyond them."""
    bits = rng.bit_generator
    assert isinstance(bits, np.random.PCG64)
    rank, state = fit.plan.rank, bits.state
    bits.advance(fit.data.shape[0] * rank)
    return [Start(state, first * rank, float(scale)) for first in fit.data.firsts]


def _mean_rows(data: Data, rank: int, rng: np.random.Generator) -> Array:
    """Return means of a few random rows of X, (r, m)."""
    wanted = rng.integers(data.shape[0], size=(rank, ROWS_PER_MEAN))
    owners = np.searchsorted(data.firsts, wanted.ravel(), side="right") - 1
    found = np.empty((wanted.size, data.shape[1]))
    asked = {int(block): np.flatnonzero(owners == block) for block in np.unique(owners)}
    futures = [
        data.client.submit(
            _build.rows_of,
            data.futures[block],
            wanted.ravel()[places] - data.firsts[block],
            pure=False,
        )
        for block, places in asked.items()
    ]
    for places, rows in zip(asked.values(), result_of(data.client, futures), strict=True):
        found[places] = rows
    means: Array = found.reshape(*wanted.shape, -1).mean(axis=1)
    return means


def start_B(fit: ClusterFit, means: Array, rng: np.random.Generator) -> Array:
    """Return uniform entries, scaled so that the mean of S B is the mean of Y."""
    B = rng.random((fit.plan.rank, fit.data.n_labels or 0))
    return B * ratio(fit.mean_of_labels(), float(means @ B.mean(axis=1)))


def _least_squares(fit: ClusterFit, rng: np.random.Generator, threads: int) -> Begun:
    """Set out from the squares of factors fitted to the square roots of X."""
    plan = replace(fit.plan, of_roots=True, most_face_steps=0)
    rank, dtype = plan.rank, fit.data.dtype
    with fitting(fit.data, plan, threads) as roots:
        A, _ = _uniform(roots, rng)
        problem = roots.problem(_stored(A, rank, dtype), {})
        steps = steps_of(problem, "auto")
        for iteration in range(LEAST_SQUARES_STEPS):
            steps.iterate(iteration + 1)
        steps.objective()  # brings the scales of components together
        problem.flush()
        A = problem.factors["A"][:, :rank].astype(np.float64).T ** 2
        blocks, names, F_of_A = roots.blocks, ("A",), problem.factors["A"].copy()
        squares = blocks.said(_block.sum_of_squares, [names] * len(blocks), F_of_A)
        mean = squares.sums["squares"] / (fit.data.shape[0] * rank)
        filler = FILLER if mean > 0 and A.mean() > 0 else 0.0
        A = np.maximum(A, filler * A.mean())
        starts = blocks.rows(_block.squares, names, filler * mean, factors=[F_of_A])
        means, _ = fit.begin(starts)
    return Begun(A, means, ratio(fit.mean(), float(means @ A.mean(axis=1))))


def _stored(A: Array, rank: int, dtype: Any) -> dict[str, Array]:
    return {"S": padded(np.zeros((0, rank)), dtype), "A": padded(A.T, dtype)}


def stored(A: Array, B: Array | None, dtype: Any) -> dict[str, Array]:
    """Return the factors as the problem here holds them: without a row of S."""
    factors = _stored(A, len(A), dtype)
    if B is not None:
        factors["B"] = padded(B.T, dtype)
    return factors


def scale_rows(problem: ClusterProblem, scale: float) -> None:
    """Multiply the rows of S, with the next task."""
    if scale != 1:
        problem.change(Change("scale", scale))
