"""Weights of the entries of a data matrix, without an n x m array where none is needed.

A weight multiplies the loss of its entry: the models minimise ``sum w_ij d(x_ij, z_ij)``.
Pass one of these, a dense array, or None (all ones) as `X_weights` or `Y_weights`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Missing", "Observed", "Outer", "missing", "observed", "outer"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Observed:
    """Weights that are zero outside of a sparse pattern; see :func:`observed`."""

    pattern: Any


@dataclass(frozen=True, eq=False)
class Missing:
    """Weights that are one outside of a sparse pattern, zero on it; see :func:`missing`."""

    pattern: Any


@dataclass(frozen=True, eq=False)
class Outer:
    """Separable weights; see :func:`outer`."""

    rows: Array | None
    columns: Array | None


def observed(pattern: Any) -> Observed:
    """Only the entries of a pattern count.

    Parameters
    ----------
    pattern : scipy.sparse matrix or array, or array_like of bool, shape (n, m)
        The stored entries of a sparse matrix are the observed ones; their values (nonnegative) are
        the weights.  Entries of the data that the pattern holds and the data does not are
        observed zeros.  A boolean array is also taken.

    Returns
    -------
    Observed

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import ssnmf_fast as sf
    >>> ratings = sp.random_array((6, 5), density=0.5, format="csr", rng=0)
    >>> fit = sf.factorize(ratings, n_components=2, X_weights=sf.weights.observed(ratings != 0))
    """
    return Observed(pattern)


def missing(pattern: Any) -> Missing:
    """All entries count once, except those of a pattern, which count nothing.

    Parameters
    ----------
    pattern : scipy.sparse matrix or array, or array_like of bool, shape (n, m)
        The nonzero entries are the missing ones.

    Returns
    -------
    Missing
    """
    return Missing(pattern)


def outer(rows: Any = None, columns: Any = None) -> Outer:
    """Weights ``rows[i] * columns[j]``.

    Parameters
    ----------
    rows : array_like, shape (n,), optional
        Nonnegative weights of the samples; None stands for ones.
    columns : array_like, shape (m,), optional
        Nonnegative weights of the features; None stands for ones.

    Returns
    -------
    Outer
    """
    return Outer(
        None if rows is None else np.asarray(rows),
        None if columns is None else np.asarray(columns),
    )
