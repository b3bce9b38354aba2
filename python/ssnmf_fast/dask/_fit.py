"""A fit on a cluster: its blocks and its problem, and starts that are drawn block by block."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.checks import check_option
from .._solver.loop import steps_of
from .._solver.losses import Loss
from .._solver.starts import FILLER, INITS, LEAST_SQUARES_STEPS, ROWS_PER_MEAN, ratio
from . import _block, _build
from ._block import Draw
from ._build import Plan
from ._cluster import Blocks
from ._data import Data
from ._problem import ClusterProblem
from ._rows import BlockStatistics
from ._waiting import result_of


class ClusterFit:
    """The blocks of one fit on their workers, and what is known of all of them."""

    def __init__(self, data: Data, plan: Plan, threads: int) -> None:
        self.data, self.plan, self._threads = data, plan, threads
        submit, firsts = data.client.submit, data.bounds[:-1]
        made = [
            submit(_build.build, given, plan, position, first, threads, pure=False)
            for given, position, first in zip(data.futures, data.positions, firsts, strict=True)
        ]
        self.blocks = Blocks(data.client, made)
        self.blocks.locate()
        totals = [submit(_build.totals, block, pure=False) for block in self.blocks.futures]
        found: list[BlockStatistics] = result_of(data.client, totals)
        self.totals = reduce(operator.add, found).sums
        gaps = tuple(self.totals.get(f"{name} gaps", 0.0) for name in "XY")
        if any(0 < count < len(found) for count in gaps):
            self.blocks.replace(_build.with_gaps, gaps)
        meta = submit(_build.without_rows, self.blocks.futures[0], pure=False)
        self.relations, self.has_data = result_of(data.client, meta)

    def mean(self, name: str = "X") -> float:
        """Return the weighted mean of X or Y; 1 where any number will do."""
        weights = self.totals[f"{name} weights"]
        mean = self.totals[name] / weights if weights > 0 else 0.0
        return float(mean if mean > 0 else 1.0)

    def begin(self, starts: Sequence[Draw | Any]) -> tuple[Array, Array]:
        """Set the rows of S; return the means of their columns, and those without the support."""
        sums = self.blocks.collect(_block.begin, starts).sums
        columns, unbound = (
            sums[name][: self.plan.rank] / self.data.shape[0] for name in ("columns", "unbound")
        )
        return columns, unbound

    def problem(self, factors: dict[str, Array], support: dict[str, Array]) -> ClusterProblem:
        options: dict[str, Any] = {}
        if self.plan.most_face_steps is not None:
            options["most_face_steps"] = self.plan.most_face_steps
        arguments = factors, self.relations, support, self.has_data
        return ClusterProblem(self.blocks, *arguments, **options)

    def weigh(self, weight: float) -> None:
        """Give the supervision another weight, on the workers and here."""
        self.relations = [
            self.relations[0],
            *(replace(each, coefficient=weight) for each in self.relations[1:]),
        ]
        self.blocks.replace(_build.reweigh, weight)


@contextmanager
def open_fit(data: Data, plan: Plan, threads: int) -> Iterator[ClusterFit]:
    """Give a fit, of which the workers keep nothing in the end."""
    fit = ClusterFit(data, plan, threads)
    try:
        yield fit
    finally:
        fit.blocks.forget()


def to_pcg64(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator that blocks can move on in: this one, if it can."""
    if isinstance(rng.bit_generator, np.random.PCG64):
        return rng
    return np.random.Generator(np.random.PCG64(int(rng.integers(2**63))))


def choose_start(init: Any, loss: Loss, on_disk: bool) -> str:
    """Return the name of the start that is meant, and can be had."""
    check_option(init, "init", INITS)
    if init == "auto":
        return "random" if on_disk else loss.start
    if init == "nndsvda" or (init == "least-squares" and on_disk):
        raise ValueError(
            f"init={init!r} is not available for data on a cluster"
            f"{' that stay on disk' if on_disk else ''}; use 'random' or 'random-acol', or give a "
            "start."
        )
    return str(init)


def begin(
    fit: ClusterFit, name: str, rng: np.random.Generator, threads: int
) -> tuple[Array, Array, float]:
    """Set S on the workers to a start.

    Return A, the means of the columns of S, and a number by which S is still to be multiplied.
    """
    if name == "least-squares" and fit.totals["X"] > 0:
        return _least_squares(fit, rng, threads)
    if name == "random-acol":
        A = _mean_rows(fit.data, fit.plan.rank, rng) + 0.01 * fit.mean()
        columns, unbound = fit.begin(_draws(fit, rng, 1.0))
        scale = ratio(fit.mean(), float(unbound @ A.mean(axis=1))) * _within(fit)
        return A, columns * scale, scale
    return *_uniform(fit, rng), 1.0


def _uniform(fit: ClusterFit, rng: np.random.Generator) -> tuple[Array, Array]:
    rank, m = fit.plan.rank, fit.data.shape[1]
    scale = 2 * np.sqrt(fit.mean() / rank)
    means, _ = fit.begin(_draws(fit, rng, scale * _within(fit)))
    return scale * rng.random((rank, m)), means


def _within(fit: ClusterFit) -> float:
    """Return what keeps the mean of S where some of it is 0 by its support."""
    return float(fit.data.shape[0] * fit.plan.rank / max(1.0, fit.totals["support"]))


def _draws(fit: ClusterFit, rng: np.random.Generator, scale: float) -> list[Draw]:
    """Return the draws of all blocks, and move the generator on beyond them."""
    bits = rng.bit_generator
    assert isinstance(bits, np.random.PCG64)
    rank, state = fit.plan.rank, bits.state
    bits.advance(fit.data.shape[0] * rank)
    return [Draw(state, first * rank, float(scale)) for first in fit.data.bounds[:-1]]


def _mean_rows(data: Data, rank: int, rng: np.random.Generator) -> Array:
    """Return means of a few random rows of X, (r, m)."""
    chosen = rng.integers(data.shape[0], size=(rank, ROWS_PER_MEAN))
    numbers, places = np.unique(chosen, return_inverse=True)
    futures = [
        data.client.submit(_build.rows_of, given, rows, pure=False)
        for given, (_, rows) in zip(data.futures, data.parts(numbers), strict=True)
        if len(rows)
    ]
    found = np.vstack(result_of(data.client, futures))
    means: Array = found[places.reshape(chosen.shape)].mean(axis=1)
    return means


def start_B(fit: ClusterFit, means: Array, rng: np.random.Generator) -> Array:
    """Return uniform entries, scaled so that the mean of S B is the mean of Y."""
    B = rng.random((fit.plan.rank, fit.data.n_labels or 0))
    return B * ratio(fit.mean("Y"), float(means @ B.mean(axis=1)))


def _least_squares(
    fit: ClusterFit, rng: np.random.Generator, threads: int
) -> tuple[Array, Array, float]:
    """Set out from the squares of factors fitted to the square roots of X."""
    plan = replace(fit.plan, of_roots=True, most_face_steps=0)
    rank = plan.rank
    with open_fit(fit.data, plan, threads) as roots:
        A, _ = _uniform(roots, rng)
        problem = roots.problem(store(A, None, fit.data.dtype), {})
        steps = steps_of(problem, "auto")
        for iteration in range(LEAST_SQUARES_STEPS):
            steps.iterate(iteration + 1)
        steps.objective()  # brings the scales of components together
        A = problem.factors["A"][:, :rank].astype(np.float64).T ** 2
        mean = problem.order(asks=("squares",)).sums["squares"] / (fit.data.shape[0] * rank)
        filler = FILLER if mean > 0 and A.mean() > 0 else 0.0
        A = np.maximum(A, filler * A.mean())
        means, _ = fit.begin(problem.read(_block.squares_of_rows, filler * mean))
    scale = ratio(fit.mean(), float(means @ A.mean(axis=1)))
    return A, means * scale, scale


def store(A: Array, B: Array | None, dtype: Any) -> dict[str, Array]:
    """Return the factors as the problem here holds them: without a row of S."""
    factors = {"S": padded(np.zeros((0, len(A))), dtype), "A": padded(A.T, dtype)}
    if B is not None:
        factors["B"] = padded(B.T, dtype)
    return factors
