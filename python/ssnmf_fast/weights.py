"""Weights of the entries of a data matrix, without an n x m array unless it is needed.

A weight multiplies the loss of its entry: the models minimize ``sum w_ij d(x_ij, z_ij)``.
Pass one of these, a dense array, or None (all ones) as `X_weights` or `y_weights`.
"""

from __future__ import annotations

import numpy.typing as npt

from ._common.arrays import Matrix, MatrixLike
from ._data.arrays import as_array
from ._data.border import check_real, labels_of
from ._solver.weights import Base, Missing, Observed, Outer

__all__ = ["Base", "Missing", "Observed", "Outer", "base", "missing", "observed", "outer"]


def base(w0: float, extra: MatrixLike) -> Base:
    """Weights ``w0 + extra[i, j]``: chosen items count more (Hu, Koren and Volinsky 2008).

    Parameters
    ----------
    w0 : float
        Weight of every entry, above 0.
    extra : scipy.sparse matrix or array, or array_like, shape (n, m)
        Nonnegative weights to add; zeros take no memory.

    Raises
    ------
    TypeError, ValueError
        If `w0` is not a number above 0.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import ssnmf_fast as sf
    >>> clicks = sp.csr_array([[1, 0, 1], [1, 1, 0], [0, 0, 1]])
    >>> weights = sf.weights.base(0.1, clicks)  # 1.1 for a click, 0.1 for none
    >>> fit = sf.factorize(clicks, n_components=1, X_weights=weights)
    """
    if check_real(w0, "w0") == 0:
        raise ValueError("w0 must be above 0; got 0. Without it, give weights.observed(extra).")
    return Base(extra, float(w0))


def observed(pattern: MatrixLike) -> Observed:
    """Weights of observed entries; all others are missing.

    Parameters
    ----------
    pattern : scipy.sparse matrix or array, or array_like of bool, shape (n, m)
        The stored entries of a sparse matrix are observed, and their nonnegative values are the
        weights.  Observed entries that are not stored in the data are zeros.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import ssnmf_fast as sf
    >>> ratings = sp.csr_array([[5, 0, 3], [4, 2, 0], [0, 1, 4]])  # 0: not rated
    >>> fit = sf.factorize(ratings, n_components=1,
    ...                    X_weights=sf.weights.observed(ratings != 0))
    """
    return Observed(pattern)


def missing(pattern: MatrixLike) -> Missing:
    """Weight 1 for all entries except those of a pattern, which are missing.

    Parameters
    ----------
    pattern : scipy.sparse matrix or array, or array_like of bool, shape (n, m)
        The nonzero entries are missing.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.outer([1, 2, 3], [1, 2, 3, 4])
    >>> X[1, 2] = 100  # a wrong value; the true one is 6
    >>> fit = sf.factorize(X, n_components=1,
    ...                    X_weights=sf.weights.missing(X == 100))
    >>> round((fit.S @ fit.A)[1, 2])
    6
    """
    return Missing(pattern)


def outer(rows: Matrix = None, columns: npt.ArrayLike | None = None) -> Outer:
    """Weights ``rows[i] * columns[j]``.

    Parameters
    ----------
    rows : array_like, shape (n,), optional
        Nonnegative weights of the samples; None stands for ones.
    columns : array_like, shape (m,), optional
        Nonnegative weights of the features; None stands for ones.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((4, 5))
    >>> # the first sample counts ten times
    >>> weights = sf.weights.outer(rows=[10, 1, 1, 1])
    >>> fit = sf.factorize(X, n_components=2, X_weights=weights)
    """
    sides = {"rows": rows, "columns": columns}
    read = {name: None if side is None else as_array(side, name) for name, side in sides.items()}
    return Outer(**read, labels=tuple(labels_of(side)[0] for side in sides.values()))
