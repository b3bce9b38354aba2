"""The posteriors of the rows of S of a block, which stay on its worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import check_matrix
from .._models.variational import counts_of
from .._models.variational_priors import Posterior
from .._models.variational_problem import Counts
from ._block import UPDATES_OF_LOST_ROWS, Block, Said, titled
from ._build import Given
from ._rows import Kept, Rows, keep, kept, own


@dataclass
class CountBlock(Block):
    """Rows of counts, with the group of each row."""

    groups: Array | None = None
    n_groups: int = 1
    threads: int = 1


@dataclass(frozen=True)
class PosteriorOrder:
    """What a task does with the posterior of its rows, and what it says of it.

    The rates are those of the update; without one, of the last, with which lost rows are found
    again.  `scale` is what the rows of the start are to be multiplied by.
    """

    number: int
    prior_shape: float
    rates: Array
    scale: float
    updates: bool = False
    logs: bool = False
    P: bool = False
    bound: bool = False
    constant: bool = False


@dataclass
class PosteriorRows(Kept):
    """The posterior of the rows of a block, and their counts, which the block has too."""

    posterior: Posterior
    counts: Counts | None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"counts": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.posterior.F, self.posterior.E = own(self.posterior.F), own(self.posterior.E)


def counted(given: Given, scale: float, title: str) -> Given:
    """Return what was given for a block, as counts."""
    X = titled(title, _checked, given.X, scale)
    return replace(given, X=X)


def _checked(X: Any, scale: float) -> Any:
    if not sp.issparse(X) and np.isnan(X.max()):
        raise ValueError(
            "X contains NaN, and BayesianNMF takes no missing entries. Fill them, or leave out "
            "their rows."
        )
    return counts_of(check_matrix(X, "X", allow_nan=False), scale)


def grouped(block: Block, groups: Array | None, n_groups: int, threads: int) -> CountBlock:
    """Return a block that knows the groups of its rows."""
    if groups is not None:  # what came over the network may be misaligned
        groups = np.array(groups, dtype=np.int32)
    return CountBlock(**vars(block), groups=groups, n_groups=n_groups, threads=threads)


def work(block: CountBlock, fit: str, order: PosteriorOrder, F_of_A: Array) -> Said:
    """Do what an order says with the posterior of the rows of a block."""
    A = own(F_of_A)
    rows = _rows(block, fit, order, A)
    with rows.lock:
        return _worked(rows, order, A)


def _worked(rows: PosteriorRows, order: PosteriorOrder, A: Array) -> Said:
    S, counts = rows.posterior, rows.counts
    assert counts is not None
    if order.updates and rows.number < order.number:
        _update(S, counts, order, A)
        rows.number = order.number
    sums: dict[str, Any] = {"S": S.sums.copy(), "logs": S.log_sum}
    if order.P:
        sums["P"] = counts.P("A", A, S.F).copy()
    if order.bound:
        sums["loss"] = counts.loss(S.F, A)
        sums["bound"] = S.bound(order.prior_shape)
    if order.constant:
        sums["constant"] = counts.constant()
    return Said({}, sums, np.zeros(0))


def _update(S: Posterior, counts: Counts, order: PosteriorOrder, A: Array) -> None:
    S.update(counts.P("S", S.F, A), order.prior_shape, order.rates, order.logs)


def _rows(block: CountBlock, fit: str, order: PosteriorOrder, A: Array) -> PosteriorRows:
    """Return the rows as they are, from their start, or found again after they were lost.

    Given A, their part of the bound has one maximum.
    """
    found = kept(fit, block.number)
    if found is not None and found.number < order.number - order.updates:
        found = None  # moved to this worker before an order that they obeyed elsewhere
    if isinstance(found, PosteriorRows):
        found.counts = found.counts or Counts(block.relations[0].term)
        return found
    counts = Counts(block.relations[0].term)
    if isinstance(found, Rows):
        S = own(found.S)  # a copy: the start stays what it was for a task that runs again
        S *= S.dtype.type(order.scale)
        rows = PosteriorRows(_posterior(block, S), counts)
        rows.posterior.add_up()
    else:
        S = padded(np.ones((block.n_rows, block.rank)), block.dtype)
        rows = PosteriorRows(_posterior(block, S), counts, number=order.number - order.updates)
        for _ in range(UPDATES_OF_LOST_ROWS):
            _update(rows.posterior, counts, order, A)
    keep(fit, block.number, rows)
    return rows


def _posterior(block: CountBlock, S: Array) -> Posterior:
    return Posterior(S, block.rank, block.threads, block.n_groups, block.groups)


def expectations(block: CountBlock, fit: str, order: PosteriorOrder, F_of_A: Array) -> Array:
    """Return the expectations of the rows of S, (rows, r)."""
    posterior = _rows(block, fit, order, own(F_of_A)).posterior
    return np.ascontiguousarray(posterior.E[:, : block.rank])
