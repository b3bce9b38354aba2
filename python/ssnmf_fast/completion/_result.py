"""Results of completions."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import listed, nfc, short
from .._common.warn import UNINFORMED, is_quiet, warn_user
from .._data.arrays import as_array, entry_rows

Ids = tuple[Array | None, Array | None]  # of rows and columns


@dataclass(frozen=True)
class CompletionState:
    """State of a completion, for callbacks.

    Attributes
    ----------
    iteration : int
        Number of outer iterations (weight updates) so far.
    change : float
        Relative change of the iterate in the last iteration.
    residual : float
        Relative error of the low-rank part at the observed entries.
    gamma : float
        The regularizer, relative to the squared spectral norm of the observed entries.
    n_components : int
        Current rank.
    left, right : ndarray or None
        Read-only factors of the low-rank part, (n, r) and (r, m), without offset and biases; None
        in the history of a completion.
    """

    iteration: int
    change: float
    residual: float
    gamma: float
    n_components: int
    left: Array | None = field(default=None, repr=False, compare=False)
    right: Array | None = field(default=None, repr=False, compare=False)

    @property
    def objective(self) -> float:
        """The change, for progress bars."""
        return self.change


@dataclass(frozen=True, eq=False)
class Completion:
    """Result of :func:`complete`: the matrix ``offset + left @ right``.

    Attributes
    ----------
    left : ndarray, shape (n, r)
        Left factor; with biases it has two more columns, the row biases and ones.
    right : ndarray, shape (r, m)
        Right factor with orthonormal rows; with biases two more, ones and the column biases.
    offset : float
        Added constant: `fill_value`, or with biases the mean of the data.
    singular_values : ndarray
        Singular values of the low-rank part, largest first, in the units of the data.
    n_components : int
        Rank of the low-rank part.
    scale : float
        Spectral norm of the observed entries without offset and biases.
    gamma : float
        The last regularizer, relative to scale^2.
    history : list of CompletionState
        The state at every check.
    n_iter : int
        Number of outer iterations.
    converged : bool
        Whether the stopping rule was met.
    lower, upper : float
        Bounds of completed entries from `clip` and `nonnegative`; -inf and inf for none.  To change
        them, use ``dataclasses.replace(completion, lower=1.0, upper=5.0)``.
    row_ids, column_ids : ndarray of str or int, shapes (n,) and (m,), or None
        Unique ids of rows and columns, which :meth:`predict` takes instead of positions.  They come
        from a DataFrame, or from ``ssnmf-fast complete``; set others by
        ``dataclasses.replace(completion, row_ids=users)``.  Text is in Unicode form NFC.
    observed : scipy.sparse.csr_array or None
        The observed entries; None in a model of ``ssnmf-fast complete``.
    iterate : ndarray, shape (n, m), or None
        The iterate X of :class:`StructuredIRLS <completion.StructuredIRLS>`; for other methods, it
        is ``to_dense(keep_observed=True)``.
    """

    left: Array
    right: Array
    offset: float
    singular_values: Array
    n_components: int
    scale: float
    gamma: float
    history: list[CompletionState] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    lower: float = -np.inf
    upper: float = np.inf
    row_ids: Array | None = field(default=None, repr=False)
    column_ids: Array | None = field(default=None, repr=False)
    observed: sp.csr_array | None = field(default=None, repr=False)
    iterate: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, size in zip(("row_ids", "column_ids"), self.shape, strict=True):
            if getattr(self, name) is None:
                continue
            ids = _as_ids(getattr(self, name), name)
            if ids.shape != (size,):
                raise ValueError(f"{name} has shape {ids.shape}; expected ({size},).")
            values, counts = np.unique(ids, return_counts=True)
            if len(values) < size:
                twice = short(values[counts > 1][0].item())
                raise ValueError(f"{name} holds {twice} more than once; ids must be unique.")
            object.__setattr__(self, name, ids)

    def __repr__(self) -> str:
        n, m = self.shape
        entries = "" if self.observed is None else f", {self.observed.nnz} entries observed"
        return (
            f"Completion({n} x {m}{entries}, n_components={self.n_components}, "
            f"n_iter={self.n_iter}, converged={self.converged})"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the completed matrix."""
        return self.left.shape[0], self.right.shape[1]

    def predict(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Array:
        """Return the predicted values at the given places.

        Parameters
        ----------
        rows, columns : array_like of int or str, same shape
            Ids, if the completion has ids of rows (of columns); otherwise positions from 0.

        Returns
        -------
        ndarray
            Values of the low-rank model, also at observed entries.

        Warns
        -----
        UserWarning
            For unknown ids.  Their prediction is the overall mean plus the bias of the other side
            or, in a model without biases, the mean over all rows (columns).

        Raises
        ------
        IndexError
            If a position is outside of the matrix, or negative.
        TypeError
            If positions are not integers, or the ids of the completion have another type.
        """
        left, right = self._vectors(rows, 0), self._vectors(columns, 1)
        shapes = left.shape[:-1], right.shape[:-1]
        if shapes[0] != shapes[1] and 1 not in map(math.prod, shapes):
            raise ValueError(f"rows and columns must have the same shape; got {shapes}.")
        values = np.einsum("...k,...k->...", left, right) + self.left.dtype.type(self.offset)
        return np.asarray(np.clip(values, self.lower, self.upper), dtype=self.left.dtype)

    @property
    def has_biases(self) -> bool:
        """Whether the factors have two more columns for the biases."""
        return bool(self.left.shape[1] > self.n_components)

    def _vectors(self, keys: npt.ArrayLike, side: int) -> Array:
        if isinstance(keys, str):
            return np.asarray(self._vectors([keys], side)[0])
        factor, name, ids = (
            (self.left, "rows", self.row_ids),
            (self.right.T, "columns", self.column_ids),
        )[side]
        places = as_array(keys, name, allow_objects=ids is not None)
        if ids is not None and places.size:
            queries = _as_ids(keys, name)
            if (queries.dtype.kind == "U") != (ids.dtype.kind == "U"):
                kind = "text" if ids.dtype.kind == "U" else "integers"
                hint = f"got dtype {places.dtype}. Only completions without ids take positions."
                raise TypeError(f"{name} must be ids of the completion, which are {kind}; {hint}")
            order = np.argsort(ids)
            near = np.searchsorted(ids, queries, sorter=order)
            places = order[np.minimum(near, len(ids) - 1)]
            places = np.where(ids[places] == queries, places, -1)
        elif places.size:
            if places.dtype.kind not in "iu":
                raise TypeError(f"{name} must be integers; got dtype {places.dtype}.")
            last = len(factor) - 1
            for wrong in places[(places < 0) | (places > last)][:1]:
                raise IndexError(f"{name} must be from 0 to {last}; got {wrong}.")
        vectors: Array = factor[places.astype(np.intp)]
        unknown = places < 0
        if unknown.any():
            if not is_quiet(UNINFORMED):
                first = short(np.asarray(keys)[unknown][:1].tolist()[0])
                warn_user(
                    f"{unknown.sum()} of {unknown.size} {name} are not in the model (the first is "
                    f"{first}); they are predicted by means.",
                    UserWarning,
                )
            if self.has_biases:
                vectors[unknown] = 0
                vectors[unknown, -1 - side] = 1  # times the bias of the other side
            else:
                vectors[unknown] = factor.mean(axis=0)
        return vectors

    def to_dense(self, *, keep_observed: bool = False) -> Array:
        """Return all predicted values, n x m.

        Parameters
        ----------
        keep_observed : bool
            Whether observed entries keep their exact values instead of those of the model.

        Returns
        -------
        ndarray, shape (n, m)
        """
        dense: Array = self.left @ self.right
        dense += dense.dtype.type(self.offset)
        np.clip(dense, self.lower, self.upper, out=dense)
        if keep_observed:
            if self.observed is None:
                raise ValueError("This completion has no observed entries.")
            rows = entry_rows(self.observed.indptr)
            dense[rows, self.observed.indices] = self.observed.data
        return dense


def _as_ids(values: npt.ArrayLike, name: str) -> Array:
    """Return ids as an array of integers, or of text in Unicode form NFC."""
    ids = as_array(values, name, allow_objects=True)
    if ids.dtype.kind in "OUT":
        objects = np.asarray(values, dtype=object) if isinstance(values, (list, tuple)) else ids
        items = [nfc(item) for item in objects.ravel().tolist()]
        alike = len({isinstance(item, str) for item in items}) < 2
        ids = np.array(items, dtype=None if alike else object).reshape(ids.shape)
    if ids.dtype.kind in "iu" and ids.max(initial=0) <= np.iinfo(np.int64).max:
        ids = ids.astype(np.int64)  # uint64 with int64 would be rounded
    if ids.dtype.kind not in "iU":
        raise TypeError(
            f"{name} must be ids, all text or all integers; got dtype {ids.dtype}. Convert them."
        )
    return ids


def read_frame(M: Any, columns: tuple[str, str, str] | None) -> tuple[Any, Ids]:
    """Return M, or the triplets in columns of a DataFrame, and ids of rows and columns."""
    pandas: Any = sys.modules.get("pandas")
    is_frame = pandas is not None and isinstance(M, pandas.DataFrame)
    if columns is None:
        return M, (_labels(M.index), _labels(M.columns)) if is_frame else (None, None)
    if not is_frame:
        raise TypeError(f"columns are for a pandas DataFrame M; got {type(M).__name__}.")
    if not isinstance(columns, (tuple, list)) or not len(columns) == len({*columns}) == 3:
        raise ValueError(f"columns must be three different names; got {short(columns)}.")
    names, positions, ids = [*M.columns], list[Array](), list[Array]()
    for name in columns:
        if names.count(name) != 1:
            raise ValueError(
                f"columns: M must have one column {short(name)}; it has {listed(names)}."
            )
        absent, what = M[name].isna().to_numpy(), f"column {short(name)} of M"
        if absent.any():
            where = f"{absent.sum()} of {len(absent)} rows, first in row {absent.argmax()}"
            raise ValueError(f"{what} has no value in {where}; drop these rows (M.dropna()).")
        if len(positions) < 2:
            codes, uniques = pandas.factorize(M[name])
            different, places = np.unique(_as_ids(uniques, what), return_inverse=True)
            ids.append(different)
            positions.append(places[codes])
    return (*positions, as_array(M[columns[2]], what)), (ids[0], ids[1])


def _labels(labels: Any) -> Array | None:
    """Return labels of a DataFrame if they are unique ids other than 0, 1, 2, ..."""
    if type(labels).__name__ == "RangeIndex" and labels.stop == len(labels):
        return None
    with suppress(TypeError, ValueError):  # not ids, or several levels
        ids = _as_ids(labels, "labels")
        return ids if len(np.unique(ids)) == len(ids) else None
    return None
