"""Terms: what a data matrix with a loss and weights contributes to the update of a factor.

A term of the objective is ``sum V .* d(Z, F G^T)``.  It pulls F up by P and down by N (see the
user guide); P and N of a factor, summed over its terms by kind of loss, are all an update needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from . import weights as public_weights
from ._csr import entry_rows, keys, sample, with_values
from ._csr_file import CsrFile
from ._dispatch import kernels
from ._entries import DenseEntries, Entries, SparseEntries, Target
from ._streamed import StreamedEntries
from ._validation import check_matrix, check_shape, check_vector, pattern_csr
from ._weight_forms import Complement, Listed, Separable, WeightForm

Array = npt.NDArray[Any]
Loss = Literal["frobenius", "kullback-leibler"]
LOSSES = ("frobenius", "kullback-leibler")

_SQUARED_AT_ONCE = 1 << 16
_FEW_MISSING = 0.5


@dataclass(frozen=True)
class Term:
    """One data matrix Z (p x q) with its loss and weights; `entries` holds V .* Z."""

    loss: Loss
    entries: Entries
    form: WeightForm
    shape: tuple[int, int]
    constant: float
    residual: Residual | None = None

    def transposed(self, n_threads: int) -> Term:
        """Return the term with the two factors exchanged.  Its value is taken on this side only."""
        return replace(
            self,
            entries=self.entries.transposed(n_threads),
            form=self.form.transposed(n_threads),
            shape=self.shape[::-1],
            residual=None,
        )

    def pull_up(self, F: Array, G: Array, to: Target) -> None:
        """Give P: (V .* Z) G, or (V .* Z ./ (F G^T)) G."""
        if self.loss == "frobenius":
            self.entries.product(G, to)
        else:
            self.entries.ratio(F, G, to)

    def pull_down(self, F: Array, G: Array, to: Target) -> None:
        """Give N: (V .* (F G^T)) G, or V G."""
        if self.loss == "frobenius":
            self.form.frobenius(F, G, to)
        else:
            self.form.kl(G, to)

    def fitted_squares(self, F: Array, G: Array, work: Array, n_threads: int) -> float:
        """Return sum V .* (F G^T)^2, by way of N where there are no Gram matrices for it."""
        if isinstance(self.form, Separable):
            return self.form.quadratic_value(F, G, n_threads)
        self.pull_down(F, G, Target(work, 1.0, n_threads))
        return float(kernels.inner(F, work, n_threads))

    def value(self, F: Array, G: Array, n_threads: int) -> float:
        """Return sum V .* d(Z, F G^T).

        Frobenius: the squared residuals where they can be listed, else
        |Z|^2 - 2 <P, F> + <N, F>.  Kullback-Leibler: sum V (z log z/(FG) - z) + <N, F>.
        """
        if self.residual is not None:
            return self.residual.value(F, G, n_threads)
        work = np.empty_like(F)
        if self.loss == "kullback-leibler":
            self.pull_down(F, G, Target(work, 1.0, n_threads))
            below = float(kernels.inner(F, work, n_threads))
            value = self.constant + self.entries.kl_loss(F, G, n_threads) + below
            return max(value, 0.0)  # what is below is the rounding of large sums
        below = self.fitted_squares(F, G, work, n_threads)
        self.pull_up(F, G, Target(work, 1.0, n_threads))
        above = float(kernels.inner(F, work, n_threads))
        return max(self.constant - 2 * above + below, 0.0)

    def unreached(self, F: Array, G: Array, n_threads: int) -> float:
        """Return what entries that no component can reach have of the value: a constant.

        Only the Kullback-Leibler loss has some: about 700 times such an entry, since the model
        counts as the least number then.  Its updates keep zeros.
        """
        common = (F > 0).all(axis=0) & (G > 0).all(axis=0)
        if self.loss == "frobenius" or common.any():
            return 0.0
        return self.entries.kl_unreached(F, G, n_threads)


@dataclass(frozen=True)
class Residual:
    """Squared residuals summed entry by entry: exact also where the fit is nearly perfect."""

    data: Any
    weights: Array | None = None

    def value(self, F: Array, G: Array, n_threads: int) -> float:
        if sp.issparse(self.data):
            csr = (self.data.indptr, self.data.indices, self.data.data)
            return float(kernels.sparse_frobenius_loss(*csr, self.weights, F, G, n_threads))
        return float(kernels.dense_frobenius_loss(self.data, F, G, n_threads))


def weight_total(term: Term) -> float:
    """Return the sum of all weights of a term."""
    form = term.form
    if isinstance(form, Separable):
        rows = term.shape[0] if form.rows is None else form.rows.sum(dtype=np.float64)
        columns = term.shape[1] if form.columns is None else form.columns.sum(dtype=np.float64)
        return float(rows * columns)
    if isinstance(form, Complement):
        return float(np.prod(term.shape, dtype=float) - form.missing.matrix.nnz)
    assert isinstance(form, Listed)
    return form.entries.total()


# ------------------------------------------------------------------------------- building


def build_term(Z: Any, weights: Any, loss: Loss, name: str) -> Term:
    """Check the weights of a clean data matrix (of :func:`check_matrix`) and build its term.

    `name` is "X" or "Y"; the weights are called X_weights or Y_weights in errors.
    """
    title = f"{name}_weights"
    if isinstance(Z, CsrFile):
        return _on_disk(Z, weights, loss, title)
    has_nan = not sp.issparse(Z) and bool(np.isnan(Z).any())
    if weights is None:
        return _unweighted(Z, loss, has_nan)
    if isinstance(weights, public_weights.Outer):
        return _separable(Z, weights, loss, title, has_nan)
    if isinstance(weights, public_weights.Observed):
        return _observed(Z, checked_pattern(weights.pattern, Z, title), loss, title)
    if isinstance(weights, public_weights.Missing):
        return _missing(Z, checked_pattern(weights.pattern, Z, title), loss)
    if sp.issparse(weights):
        raise TypeError(
            f"{title} is a sparse matrix, which can be read in two ways: give "
            "weights.observed(pattern) if all other entries weigh 0, weights.missing(pattern) if "
            "its entries are the missing ones."
        )
    dense = check_matrix(weights, title, dtype=Z.dtype, allow_nan=False)
    check_shape(dense, Z.shape, title, f"the shape of {name}")
    return _dense_weights(Z, dense, loss, has_nan, title)


def _on_disk(Z: CsrFile, weights: Any, loss: Loss, title: str) -> Term:
    if weights is not None:
        raise ValueError(
            f"{title} are given with a matrix on disk, which takes none; load it into memory, or "
            "save the weighted problem in parts."
        )
    constant = Z.squares if loss == "frobenius" else 0.0
    return Term(loss, StreamedEntries(Z), Separable(), Z.shape, constant)


def checked_pattern(pattern: Any, Z: Any, title: str) -> sp.csr_array:
    checked = check_matrix(pattern_csr(pattern, title), title, dtype=Z.dtype, allow_nan=False)
    check_shape(checked, Z.shape, title, "the shape of the data")
    return checked


def _squares(values: Array) -> float:
    """Sum of the squares of all entries but NaN, a part at a time."""
    add = np.sum if values.ndim == 1 else np.nansum  # entries of a sparse matrix are never NaN
    total = 0.0
    step = max(1, _SQUARED_AT_ONCE // max(1, int(np.prod(values.shape[1:]))))
    for begin in range(0, len(values), step):
        part = values[begin : begin + step]
        total += float(add(np.square(part, dtype=np.float64)))
    return total


def _plain(Z: Any, loss: Loss, form: WeightForm) -> Term:
    """A term whose weights are 0 or 1, with Z zero (sparse) or NaN (dense) where they are 0."""
    constant = _squares(Z.data if sp.issparse(Z) else Z) if loss == "frobenius" else 0.0
    if sp.issparse(Z):
        return Term(loss, SparseEntries(Z), form, Z.shape, constant)
    residual = Residual(Z) if loss == "frobenius" else None
    return Term(loss, DenseEntries(Z), form, Z.shape, constant, residual)


def _unweighted(Z: Any, loss: Loss, has_nan: bool) -> Term:
    return _plain(Z, loss, _without_nan(Z) if has_nan else Separable())


def _without_nan(Z: Array) -> WeightForm:
    """Weights of 0 where a dense matrix has NaN, 1 elsewhere.

    To list the missing ones costs a pass over them alone, but 24 bytes for each.
    """
    missing = np.isnan(Z)
    if np.count_nonzero(missing) > _FEW_MISSING * missing.size:
        return Listed(DenseEntries(Z, mask=True))
    return Complement(SparseEntries(sp.csr_array(missing.astype(Z.dtype))))


def _weighted(Z: Any, product: Any, weights: Array, loss: Loss, form: WeightForm) -> Term:
    """A term with general weights.  Z, its weighted copy and the weights are aligned."""
    z: Array = Z.data if sp.issparse(Z) else Z
    wz: Array = product.data if sp.issparse(product) else product
    w = weights
    if loss == "frobenius":
        constant = float(np.sum(w.astype(np.float64) * np.square(z, dtype=np.float64)))
    else:
        # sum w (z log z/y - z) = sum (wz log wz/y - wz) - sum wz log w
        positive = wz > 0
        constant = -float(np.sum(wz[positive] * np.log(w[positive].astype(np.float64))))
    entries = SparseEntries(product) if sp.issparse(product) else DenseEntries(product)
    return Term(loss, entries, form, Z.shape, constant)


def checked_sides(weights: Any, Z: Any, title: str) -> tuple[Array | None, Array | None]:
    """Return the two vectors of separable weights of Z, checked; None stands for ones."""
    a, b = (
        None if vector is None else check_vector(vector, f"{title}.{side}", length, Z.dtype)
        for vector, side, length in (
            (weights.rows, "rows", Z.shape[0]),
            (weights.columns, "columns", Z.shape[1]),
        )
    )
    return a, b


def _separable(Z: Any, weights: Any, loss: Loss, title: str, has_nan: bool) -> Term:
    a, b = checked_sides(weights, Z, title)
    if a is None and b is None:
        return _unweighted(Z, loss, has_nan)
    rows = np.ones(Z.shape[0], dtype=Z.dtype) if a is None else a
    columns = np.ones(Z.shape[1], dtype=Z.dtype) if b is None else b
    if sp.issparse(Z):
        w = np.repeat(rows, np.diff(Z.indptr)) * columns[Z.indices]
        return _weighted(Z, with_values(Z, w * Z.data), w, loss, Separable(a, b))
    w = rows[:, None] * columns
    if has_nan:
        return _dense_weights(Z, w, loss, has_nan, title)
    return _weighted(Z, w * Z, w, loss, Separable(a, b))


def _dense_weights(Z: Any, w: Array, loss: Loss, has_nan: bool, title: str) -> Term:
    if sp.issparse(Z):
        rows = entry_rows(Z.indptr)
        stored = w[rows, Z.indices]
        return _weighted(Z, with_values(Z, stored * Z.data), stored, loss, Listed(DenseEntries(w)))
    if has_nan:
        absent = np.isnan(Z)
        Z, w = np.where(absent, 0, Z), np.where(absent, 0, w)
    return _weighted(Z, w * Z, w, loss, Listed(DenseEntries(w)))


def _observed(Z: Any, pattern: sp.csr_array, loss: Loss, title: str) -> Term:
    """Only the entries of the pattern: the data there, explicit zeros included."""
    on_pattern = sample(Z, pattern)
    if np.isnan(on_pattern.data).any():
        k = int(np.flatnonzero(np.isnan(on_pattern.data))[0])
        row = int(np.searchsorted(pattern.indptr, k, side="right")) - 1
        raise ValueError(
            f"{title} says that entry [{row}, {pattern.indices[k]}] is observed, but it is NaN in "
            f"{title[0]}. Take it out of the pattern, or give the entry a value."
        )
    weighted = with_values(on_pattern, pattern.data * on_pattern.data)
    term = _weighted(on_pattern, weighted, pattern.data, loss, Listed(SparseEntries(pattern)))
    if loss == "frobenius":
        term = replace(term, residual=Residual(on_pattern, pattern.data))
    return term


def _missing(Z: Any, pattern: sp.csr_array, loss: Loss) -> Term:
    """All entries but those of the pattern, which are dropped from Z once."""
    pattern = pattern.copy()
    pattern.data = (pattern.data != 0).astype(Z.dtype)
    pattern.eliminate_zeros()
    rows = entry_rows(pattern.indptr)
    if not sp.issparse(Z):
        Z = Z.copy()
        Z[rows, pattern.indices] = np.nan
        return _unweighted(Z, loss, True)
    stored = keys(Z)
    keep = ~np.isin(stored, keys(pattern), assume_unique=True)
    kept = sp.csr_array(
        (Z.data[keep], (stored[keep] // Z.shape[1], Z.indices[keep])), shape=Z.shape
    )
    return _plain(kept, loss, Complement(SparseEntries(pattern)))
