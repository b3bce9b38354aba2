"""A fit on a cluster: its blocks, its start, its problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from distributed import Client

from .._common.arrays import Array
from .._solver.losses import Loss
from . import _block, _build
from ._block import Start
from ._build import Facts, Plan, Totals
from ._cluster import Blocks
from ._problem import ClusterProblem
from ._sources import Source, cut, cut_weights, source
from ._waiting import result_of


@dataclass(frozen=True)
class Data:
    """Checked data on the workers, by blocks that have rows."""

    client: Client
    futures: list[Any]
    facts: list[Facts]
    rows: list[int]  # of all blocks, those without rows too
    positions: list[int]  # of the blocks that have rows

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows), self.facts[0].n_columns

    @property
    def n_labels(self) -> int | None:
        return self.facts[0].n_labels

    @property
    def dtype(self) -> Any:
        return np.dtype(self.facts[0].dtype)

    @property
    def on_disk(self) -> bool:
        return any(each.on_disk for each in self.facts)

    @property
    def firsts(self) -> list[int]:
        """First rows of the blocks that have rows."""
        before = np.concatenate([[0], np.cumsum(self.rows)])
        return [int(before[position]) for position in self.positions]

    def lengths(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the mean numbers of nonzeros to a row and a column, of X and of Y."""
        n, m = self.shape
        of_X, of_Y = (sum(each.nonzeros[i] for each in self.facts) for i in range(2))
        k = self.n_labels
        return (of_X // n, of_X // m), () if k is None else (of_Y // n, of_Y // k)


def load(
    client: Client,
    X: Any,
    Y: Any,
    X_weights: Any,
    Y_weights: Any,
    support: Any,
    S: Any,
    threads: int,
    memory: int,
) -> Data:
    """Let the workers load, check and convert the data."""
    if Y is None and Y_weights is not None:
        raise ValueError("Y_weights are given without Y; give Y, or leave them out.")
    blocks = source(client, X, memory)
    rows = blocks.rows
    if not sum(rows):
        raise ValueError("X has no rows; expected at least one sample.")
    parts = [
        cut(Y, "Y", rows),
        cut_weights(X_weights, "X_weights", rows),
        cut_weights(Y_weights, "Y_weights", rows),
        cut(support, "S_support", rows),
        cut(S, "init[0] (S)", rows),
    ]
    return _checked(client, blocks, parts, threads)


def _checked(client: Client, blocks: Source, parts: list[list[Any]], threads: int) -> Data:
    positions = [position for position, n in enumerate(blocks.rows) if n]
    flat = _computed(client, [[part[i] for i in positions] for part in parts])
    futures, firsts = [], blocks.bounds
    for number, position in enumerate(positions):
        begin, end = firsts[position], firsts[position + 1] - 1
        title = f"block {position} (rows {begin} to {end})"
        mine = (part[number] for part in flat)
        futures.append(
            client.submit(
                _block.titled,
                title,
                _build.checked,
                blocks.futures[position],
                *mine,
                threads,
                pure=False,
            )
        )
    facts = result_of(client, [client.submit(_build.facts, each, pure=False) for each in futures])
    _check_equal(facts, positions)
    return Data(client, futures, facts, blocks.rows, positions)


def _computed(client: Client, parts: list[list[Any]]) -> list[list[Any]]:
    """Start what is lazy among the parts of blocks, also within the tuples of weights."""
    from dask.delayed import Delayed

    def walk(part: Any) -> Any:
        if isinstance(part, Delayed):
            return client.compute(part)
        if isinstance(part, tuple):
            return tuple(walk(each) for each in part)
        return part

    return [[walk(part) for part in each] for each in parts]


def _check_equal(facts: Sequence[Facts], positions: Sequence[int]) -> None:
    """Raise ValueError unless all blocks agree in what must be the same."""
    names = {"n_columns": "columns", "n_labels": "columns of Y", "dtype": "the dtype"}
    for name, words in names.items():
        first = getattr(facts[0], name)
        for position, each in zip(positions, facts, strict=True):
            if getattr(each, name) != first:
                raise ValueError(
                    f"block {position} of X has {words} {_shown(getattr(each, name))} and block "
                    f"{positions[0]} has {_shown(first)}; expected the same in all blocks."
                )
    if facts[0].n_columns == 0 or facts[0].n_labels == 0:
        raise ValueError("X, and Y where it is given, must have at least one column.")
    for position, each in zip(positions, facts, strict=True):
        if not each.ordinary:
            raise ValueError(
                f"block {position} has a largest entry that is far from 1, beyond what blocks can "
                "be fitted with; multiply X, or Y, by a constant that brings it nearer to 1."
            )


def _shown(value: Any) -> Any:
    return np.dtype(value).name if isinstance(value, str) else value


class ClusterFit:
    """The blocks of one fit on their workers, and what is known of all of them."""

    def __init__(self, data: Data, plan: Plan, threads: int) -> None:
        self.data, self.plan, self._threads = data, plan, threads
        submit, firsts = data.client.submit, data.firsts
        made = [
            submit(_build.built, given, plan, position, first, threads, pure=False)
            for given, position, first in zip(data.futures, data.positions, firsts, strict=True)
        ]
        self.blocks = Blocks(data.client, made)
        self.blocks.settle()
        totals = [submit(_build.totals, block, pure=False) for block in self.blocks.futures]
        found: list[Totals] = result_of(data.client, totals)
        self.totals = reduce(Totals.plus, found)
        gaps = self.totals.gaps, self.totals.label_gaps
        if any(0 < count < len(found) for count in gaps):
            self.blocks.replace(_build.with_gaps, gaps)
        meta = submit(_build.without_rows, self.blocks.futures[0], pure=False)
        self.relations, self.has_data = result_of(data.client, meta)

    def mean(self) -> float:
        """Return the weighted mean of X; 1 where any number will do."""
        return _mean(self.totals.data, self.totals.weight)

    def mean_of_labels(self) -> float:
        return _mean(self.totals.labels, self.totals.label_weight)

    def begin(self, starts: Sequence[Start | Any]) -> tuple[Array, Array]:
        """Set the rows of S; return the means of their columns, and those without the support."""
        said = self.blocks.said(_block.begin, starts)
        columns, unbound = (
            said.sums[name][: self.plan.rank] / self.data.shape[0]
            for name in ("columns", "unbound")
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
        self.blocks.replace(_build.weighed, weight)


def _mean(total: float, weight: float) -> float:
    mean = total / weight if weight > 0 else 0.0
    return mean if mean > 0 else 1.0


def plan_of(
    data: Data, rank: int, losses: tuple[Loss, Loss], weight: float, **further: Any
) -> Plan:
    """Return how the blocks of a fit are built."""
    return Plan(rank, losses, weight, data.lengths(), **further)


@contextmanager
def fitting(data: Data, plan: Plan, threads: int) -> Iterator[ClusterFit]:
    """Give a fit, of which the workers keep nothing in the end."""
    fit = ClusterFit(data, plan, threads)
    try:
        yield fit
    finally:
        fit.blocks.forget()
