"""Function :func:`represent`: new samples over a fixed dictionary, a convex problem."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._arrays import padded, padded_zeros
from ._dispatch import kernels
from ._terms import LOSSES, Loss, Term, build_term
from ._threads import resolve_threads
from ._validation import check_factor, check_matrix, check_option, check_real
from ._weight_forms import Complement, DenseEntries, Listed, Separable, SparseEntries, Target

Array = npt.NDArray[Any]
Csr = tuple[Any, Any, Any]

_ROWS_PER_CALL = (
    4096  # Ctrl-C is answered between two calls; dense rows are listed a call at a time
)
_MAX_SWEEPS = 1000
_FINEST_TOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def represent(
    X: Any,
    A: Any,
    *,
    loss: str = "frobenius",
    X_weights: Any = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
) -> Array:
    """Represent samples over a given dictionary: argmin over S >= 0 of sum W .* d(X, S A).

    The problem is convex; every row is solved until it meets the Karush-Kuhn-Tucker conditions to
    `tol` (section 2.3 of the SSNMF paper, step 2).

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m)
        Samples by features, nonnegative; NaN in a dense X means missing.
    A : array_like, shape (r, m)
        Nonnegative dictionary.
    loss : {"frobenius", "kullback-leibler"}
        Loss of the reconstruction.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of every entry.
    tol : float
        Largest residual of the optimality conditions, relative to the pull of the data.  Tolerances
        finer than the dtype resolves are raised to 1e-12 (float64) or 1e-5 (float32).
    n_threads : int, optional
        Number of threads; it does not change the result.

    Returns
    -------
    S : ndarray, shape (n, r)
        Of the dtype of X.

    Warns
    -----
    RuntimeWarning
        If rows are left unsolved after 1000 sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> A = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> sf.represent([[2.0, 3.0, 5.0]], A).round(6)
    array([[2., 3.]])
    """
    check_option(loss, "loss", LOSSES)
    tol = check_real(tol, "tol")
    threads = resolve_threads(n_threads)
    X = check_matrix(X, "X")
    A = check_matrix(A, "A", dtype=X.dtype, allow_nan=False)
    A = check_factor(A, "A", (A.shape[0], X.shape[1]), X.dtype, "components x features of X")
    rank = A.shape[0]
    if rank < 1:
        raise ValueError("A has no rows; needed is at least one component.")
    term = build_term(X, X_weights, cast(Loss, loss), "X")
    G = padded(A.T, X.dtype)
    F = padded_zeros(X.shape[0], rank, X.dtype)
    tol = max(tol, _FINEST_TOL[X.dtype])
    solve = _solve_frobenius if loss == "frobenius" else _solve_kl
    unsolved = solve(term, F, G, tol, threads)
    if unsolved:
        warnings.warn(
            f"{unsolved} of {len(F)} samples do not meet the optimality conditions to "
            f"{tol:g}; their representation is approximate.",
            RuntimeWarning,
            stacklevel=2,
        )
    return np.ascontiguousarray(F[:, :rank])


def _solve_frobenius(term: Term, F: Array, G: Array, tol: float, threads: int) -> int:
    P = np.empty_like(F)
    term.pull_up(F, G, Target(P, 1.0, threads))
    form = term.form
    K: Array | None = None
    sign = 1.0
    if isinstance(form, Separable):
        # The weight of a row scales its whole problem; rows of weight 0 have P = 0 and stay 0.
        K = form.gram(G, threads)
        if form.rows is not None:
            np.divide(P, form.rows[:, None], out=P, where=form.rows[:, None] > 0)
    elif isinstance(form, Complement):
        K = Separable().gram(G, threads)
        sign = -1.0
    unsolved = 0
    for begin in range(0, len(F), _ROWS_PER_CALL):
        rows = slice(begin, min(begin + _ROWS_PER_CALL, len(F)))
        csr = _weight_rows(form, rows)
        unsolved += kernels.nnls(K, *csr, G, sign, P[rows], F[rows], tol, _MAX_SWEEPS, threads)
    return unsolved


def _weight_rows(form: Any, rows: slice) -> tuple[Any, Any, Any]:
    """Weights of some rows in CSR form, or Nones where the Gram matrix says it all."""
    if isinstance(form, Complement):
        return _sparse_rows(form.missing, rows)
    if isinstance(form, Listed):
        return _listed_rows(form.entries, rows)
    return None, None, None


def _listed_rows(entries: Any, rows: slice) -> Csr:
    if isinstance(entries, SparseEntries):
        return _sparse_rows(entries, rows)
    assert isinstance(entries, DenseEntries)
    block = entries.array[rows]
    if entries.mask:
        block = (~np.isnan(block)).astype(block.dtype)
    csr = sp.csr_array(np.nan_to_num(block, nan=0.0))
    return csr.indptr, csr.indices, csr.data


def _sparse_rows(entries: SparseEntries, rows: slice) -> Csr:
    csr = entries.matrix
    first, last = csr.indptr[rows.start], csr.indptr[rows.stop]
    indptr = csr.indptr[rows.start : rows.stop + 1] - first
    return indptr, csr.indices[first:last], csr.data[first:last]


def _solve_kl(term: Term, F: Array, G: Array, tol: float, threads: int) -> int:
    N = np.empty_like(F)
    term.pull_down(F, G, Target(N, 1.0, threads))
    unsolved = 0
    for begin in range(0, len(F), _ROWS_PER_CALL):
        rows = slice(begin, min(begin + _ROWS_PER_CALL, len(F)))
        unsolved += kernels.kl_rows(
            *_listed_rows(term.entries, rows), G, N[rows], F[rows], tol, _MAX_SWEEPS, threads
        )
    return unsolved
