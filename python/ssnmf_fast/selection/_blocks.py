"""Data of which a block is held out: bi-cross-validation (Owen and Perry 2009)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.threads import Stop
from .._models.represent import represent
from .._solver.build import as_weights
from .._solver.weights import Weights
from ._held_out import PlainFits, Seen, Unseen, draw_entries
from ._search import Outcome

_TOL = 1e-4  # of the representations: far below the errors of predictions


@dataclass(frozen=True)
class BlockSplit:
    """A held-out block: a fit to what has none of its rows and columns meets both of them.

    Bi-cross-validation: A. B. Owen, P. O. Perry, 2009, section 5.
    """

    kept: tuple[Any, Any]  # data and weights of rows and columns outside of the block
    right: tuple[Any, Any]  # of the columns of the block, transposed, and the rows outside
    below: tuple[Any, Any]  # of the rows of the block, and the columns outside
    unseen: Unseen
    fits: PlainFits

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        fit = self.fits.fit(*self.kept, None, rank, seed, threads, stop)
        sides = (self.below, fit.A), (self.right, np.ascontiguousarray(fit.S.T))
        S, F = (
            represent(
                CleanMatrix(X),
                factor,
                loss=self.fits.loss,
                X_weights=weights,
                tol=_TOL,
                n_threads=threads,
            )
            for (X, weights), factor in sides
        )
        measures = self.unseen.measures(S, np.ascontiguousarray(F.T), self.fits.loss, threads)
        return Outcome(fit.objective, measures)


def block_splits(
    X: Any, X_weights: Any, fits: PlainFits, share: float, zeros: bool, rng: np.random.Generator
) -> Iterator[BlockSplit]:
    """Give blocks of about this share of the entries, without an end.

    Rows and columns are cut into groups at random, and every group is held out once before they are
    cut anew.
    """
    weights = as_weights(X_weights, "X_weights")
    groups = max(2, round(1 / np.sqrt(share)))
    if min(X.shape) < groups:
        raise ValueError(
            f"X has shape {X.shape}, too few rows or columns for blocks of {share:g} of its "
            f"entries; expected {groups} of each, or a larger held_out."
        )
    whole, turned = (X, weights), (sp.csr_array(X.T) if sp.issparse(X) else X.T, weights.turned())
    while True:
        cuts = [np.array_split(rng.permutation(n), groups) for n in X.shape]
        for sides in zip(*cuts, strict=True):
            pairs = zip(X.shape, sides, strict=True)
            rows, columns = (np.isin(np.arange(n), some) for n, some in pairs)
            right, below = _part(*turned, columns, ~rows), _part(*whole, rows, ~columns)
            entries = draw_entries(*_part(*whole, rows, columns), 1.0, zeros, rng)
            seen = Seen.of(*(of_part.seen(part) for part, of_part in (below, right)))
            unseen = Unseen(*entries, seen)
            yield BlockSplit(_part(*whole, ~rows, ~columns), right, below, unseen, fits)


def _part(X: Any, weights: Weights, rows: Array, columns: Array) -> tuple[Any, Weights]:
    """Return some rows and columns of clean data, and of its weights."""
    return X[rows][:, columns], weights.cut(rows, columns)
