"""What the weights of a data matrix become: a form for N.

Data Z (p x q) is approximated by F G^T.  Each form has a transpose, so that one class serves the
factor of the rows and that of the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._csr import entry_rows
from ._dispatch import kernels
from ._entries import DenseEntries, Entries, SparseEntries, Target

Array = npt.NDArray[Any]

_CANCELS = 1e-2  # a difference below this share of the minuend is not trusted
_PRESENT_ENTRIES = 1 << 22  # weights written out at once, where they are summed one by one


@dataclass(frozen=True)
class Quadratic:
    """What row i of F costs under the Frobenius loss: f K_i f^T - 2 p_i f^T.

    K_i = rows_i * gram + sum_j v_ij g_j g_j^T over the entries, which may be negative; None drops a
    part, and ``rows=None`` stands for ones.
    """

    gram: Array | None = None
    rows: Array | None = None
    entries: Entries | None = None


class WeightForm(Protocol):
    """Weights V of the entries: gives N for both losses."""

    def transposed(self, n_threads: int) -> WeightForm: ...
    def quadratic(self, G: Array, n_threads: int) -> Quadratic: ...
    def frobenius(self, F: Array, G: Array, to: Target) -> None:
        """(V .* (F G^T)) G."""

    def kl(self, G: Array, to: Target) -> None:
        """V G."""


@dataclass(frozen=True)
class Separable:
    """V = rows columns^T; None stands for ones, so that ``Separable()`` is no weights at all."""

    rows: Array | None = None
    columns: Array | None = None

    def transposed(self, n_threads: int) -> Separable:
        del n_threads
        return Separable(self.columns, self.rows)

    def gram(self, G: Array, n_threads: int) -> Array:
        K = np.empty((G.shape[1], G.shape[1]), dtype=G.dtype)
        kernels.gram(G, self.columns, K, n_threads)
        return K

    def quadratic(self, G: Array, n_threads: int) -> Quadratic:
        return Quadratic(self.gram(G, n_threads), self.rows)

    def sums(self, G: Array, n_threads: int) -> Array:
        vector = np.empty(G.shape[1], dtype=G.dtype)
        kernels.column_sums(G, self.columns, vector, n_threads)
        return vector

    def quadratic_value(self, F: Array, G: Array, n_threads: int) -> float:
        """sum V .* (F G^T)^2 = <F^T diag(rows) F, G^T diag(columns) G>."""
        pair = self.gram(G, n_threads), self.transposed(n_threads).gram(F, n_threads)
        return float(kernels.inner(*pair, 1))

    def frobenius(self, F: Array, G: Array, to: Target) -> None:
        kernels.multiply(F, self.gram(G, to.n_threads), self.rows, *to.arguments)

    def kl(self, G: Array, to: Target) -> None:
        kernels.add_row(self.sums(G, to.n_threads), self.rows, *to.arguments)


def is_unweighted(form: WeightForm) -> bool:
    """Whether all weights are 1."""
    return isinstance(form, Separable) and form.rows is None and form.columns is None


@dataclass(frozen=True)
class Listed:
    """V given entry by entry: an observed pattern, a dense array, or the NaN mask of the data."""

    entries: Entries

    def transposed(self, n_threads: int) -> Listed:
        return Listed(self.entries.transposed(n_threads))

    def quadratic(self, G: Array, n_threads: int) -> Quadratic:
        del G, n_threads
        return Quadratic(entries=self.entries)

    def frobenius(self, F: Array, G: Array, to: Target) -> None:
        self.entries.sampled(F, G, to)

    def kl(self, G: Array, to: Target) -> None:
        self.entries.product(G, to)


@dataclass(frozen=True)
class Complement:
    """V = 1 - M with a sparse 0/1 pattern M of missing entries."""

    missing: SparseEntries

    def transposed(self, n_threads: int) -> Complement:
        return Complement(self.missing.transposed(n_threads))

    def quadratic(self, G: Array, n_threads: int) -> Quadratic:
        gram = Separable().gram(G, n_threads)
        squares = np.square(G)
        whole = squares.sum(axis=0)
        there = np.empty((self.missing.matrix.shape[0], G.shape[1]), dtype=G.dtype)
        self.missing.product(squares, Target(there, -1.0, n_threads))
        there += whole
        doubtful = np.flatnonzero((there < _CANCELS * whole).any(axis=1))
        if len(doubtful) == 0:
            return Quadratic(gram, None, self._negative)
        # Rows whose difference would cancel list what is present instead.
        scale = np.ones(len(there), dtype=G.dtype)
        scale[doubtful] = 0
        sure = np.flatnonzero(scale)
        present = [sp.csr_array(self._present(rows).array) for rows in self._portions(doubtful)]
        entries = sp.vstack([self._negative.matrix[sure], *present], format="csr")
        place = np.argsort(np.concatenate([sure, doubtful]))
        return Quadratic(gram, scale, SparseEntries(sp.csr_array(entries[place])))

    @cached_property
    def _negative(self) -> SparseEntries:
        missing = self.missing.matrix
        return SparseEntries(
            sp.csr_array((-missing.data, missing.indices, missing.indptr), missing.shape)
        )

    def frobenius(self, F: Array, G: Array, to: Target) -> None:
        self._subtract(
            to,
            lambda part: Separable().frobenius(F, G, part),
            lambda part: self.missing.sampled(F, G, part),
            lambda present, rows, part: present.sampled(F[rows], G, part),
        )

    def kl(self, G: Array, to: Target) -> None:
        self._subtract(
            to,
            lambda part: Separable().kl(G, part),
            lambda part: self.missing.product(G, part),
            lambda present, rows, part: present.product(G, part),
        )

    def _subtract(
        self,
        to: Target,
        whole: Callable[[Target], None],
        part: Callable[[Target], None],
        direct: Callable[[DenseEntries, Array, Target], None],
    ) -> None:
        """Give whole - part, and sum the present entries one by one where that would cancel.

        A component may have next to all of its weight where a row is missing.  The difference would
        be rounding noise there, and a step divided by it would leave all bounds.
        """
        rest = np.empty_like(to.out)
        whole(Target(rest, 1.0, to.n_threads))
        least = _CANCELS * rest
        part(Target(rest, -1.0, to.n_threads, accumulate=True))
        empty = np.diff(self.missing.matrix.indptr) == self.missing.matrix.shape[1]
        rest[empty] = 0
        for rows in self._portions(np.flatnonzero((rest < least).any(axis=1) & ~empty)):
            block = np.empty((len(rows), rest.shape[1]), dtype=rest.dtype)
            direct(self._present(rows), rows, Target(block, 1.0, to.n_threads))
            rest[rows] = block
        rest *= rest.dtype.type(to.scale)
        if to.accumulate:
            to.out[...] += rest
        else:
            to.out[...] = rest

    def _portions(self, rows: Array) -> list[Array]:
        """Cut a list of rows so that their weights, written out, fit in memory."""
        at_once = max(1, _PRESENT_ENTRIES // self.missing.matrix.shape[1])
        return [rows[begin : begin + at_once] for begin in range(0, len(rows), at_once)]

    def _present(self, rows: Array) -> DenseEntries:
        """The weights of some rows, one by one."""
        missing = self.missing.matrix[rows]
        present = np.ones(missing.shape, dtype=missing.dtype)
        present[entry_rows(missing.indptr), missing.indices] = 0
        return DenseEntries(present)
