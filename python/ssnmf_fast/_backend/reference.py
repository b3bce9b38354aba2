"""The kernels in plain NumPy: the specification of the compiled modules.

This module has the same functions (but two), with the same signatures, as ``_kernels_base``,
``_kernels_v3`` and ``_kernels_v4``, and ``SSNMF_FAST_ISA=reference`` runs the whole library on it.
It follows the formulas of the papers, is written for reading, and is slow.

Notation.  Every data term approximates a matrix Z (p x q) by ``F @ G.T``, with both factors stored
by rows: F is p x R and G is q x R.  For the data of a fit, Z = X, F = S and G = A.T; for the update
of the dictionary, Z = X.T, F = A.T and G = S.  R is the rank, padded with columns of zeros by the
compiled modules (:func:`padded_rank`), which do not change products.

Common arguments
----------------
indptr, indices, values
    Z in CSR form; ``values=None`` stands for ones.
F, G, out
    C-contiguous arrays with R columns, of one dtype (float32 or float64).
allowed, asked, moves
    Some of the entries of a factor, as bits (`_common.arrays.bits_of`), or None for all.
exponent
    Exponent of the model; or a pair of the exponent and a lower bound of the model.
scale, accumulate
    ``out = scale * result``, or ``out += scale * result`` when `accumulate` is true.
n_threads
    Number of threads.  It never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.optimize

from .._common.arrays import Array, mask_of
from .mixed_bits import fingerprint_of
from .reference_parts import *  # noqa: F403 -- its kernels belong to this module
from .reference_parts import Some, _rows, beta_terms, power, tiny

# Not here: whole iterations.  Their specification is the loop in `_solver/loop.py`.
dense_iterations: Callable[..., Any]
sparse_iterations: Callable[..., Any]

Rule = Literal["mu", "mm"]
Exponent = float | tuple[float, float]

LEVEL = "reference"


def padded_rank(rank: int, itemsize: int) -> int:
    """Return the number of columns in which the kernels store factors of this rank."""
    del itemsize
    return rank


def build_info() -> dict[str, Any]:
    """Describe how this module was built."""
    parts = {"compiler": "none (NumPy)", "flags": "", "eigen": "none", "threads": "none"}
    return {"level": LEVEL, **parts}


def _store(out: Array, result: Array, scale: float, accumulate: bool) -> None:
    if accumulate:
        out += out.dtype.type(scale) * result
    else:
        out[...] = out.dtype.type(scale) * result


def _values(values: Some, indices: Array, dtype: Any) -> Array:
    return np.ones(len(indices), dtype=dtype) if values is None else values


def _sampled_product(indptr: Array, indices: Array, F: Array, G: Array) -> Array:
    """z_ij = f_i . g_j at every stored entry."""
    return np.asarray(np.einsum("er,er->e", F[_rows(indptr)], G[indices]))


def _given(F: Some) -> Array:
    if F is None:
        raise ValueError("F must be given unless the exponent is 0")
    return F


def _matmul(a: Array, b: Array) -> Array:
    """a @ b, without the warnings of BLAS kernels for lanes beyond the end of an array."""
    with np.errstate(all="ignore"):
        return np.asarray(a @ b)


def _safe_ratio(x: Array, z: Array) -> Array:
    """x / z, and 0 where z_ij = f_i . g_j vanishes: such an entry pulls at no positive f_ik."""
    return np.divide(x, z, out=np.zeros_like(z), where=z > tiny(z.dtype))


def _kl_terms(x: Array, z: Array) -> float:
    """Sum of x log(x/z) - x, with 0 log 0 = 0, in float64."""
    positive = x > 0
    x = x[positive].astype(np.float64)
    z = np.maximum(z[positive].astype(np.float64), tiny(z.dtype))
    with np.errstate(over="ignore"):
        ratio = np.minimum(x / z, np.finfo(np.float64).max)
    return float(np.sum(x * np.log(ratio) - x))


def _unreached(x: Array, z: Array) -> float:
    x = x[z <= tiny(z.dtype)]
    return _kl_terms(x, np.zeros_like(x))


def _coefficients(x: Array, exponent: Exponent, model: Callable[[], Array]) -> Array:
    """x z^exponent; the model z is computed unless the exponent is 0."""
    if isinstance(exponent, tuple):
        exponent, least = exponent
        return _coefficients(x, exponent, lambda: np.maximum(model(), x.dtype.type(least)))
    if exponent == 0:
        return x
    if exponent == -1:
        return _safe_ratio(x, model())
    return x * (model() if exponent == 1 else power(model(), exponent))


def sparse_pass(
    exponent: Exponent,
    indptr: Array,
    indices: Array,
    values: Some,
    F: Some,
    G: Array,
    out: Array,
    scale: float,
    accumulate: bool,
    n_threads: int,
    asked: Some = None,
) -> None:
    """(Z .* (F G^T)^exponent) G over the stored entries.

    0 gives Z G and needs no F; -1 is the fused Kullback-Leibler pass.  Entries of the result
    outside of `asked` may be zeros, but not here.
    """
    del asked
    v = _values(values, indices, G.dtype)
    c = _coefficients(v, exponent, lambda: _sampled_product(indptr, indices, _given(F), G))
    result = np.zeros((len(indptr) - 1, G.shape[1]), dtype=G.dtype)
    np.add.at(result, _rows(indptr), c[:, None] * G[indices])
    _store(out, result, scale, accumulate)


def sparse_kl_loss(
    indptr: Array, indices: Array, values: Some, F: Array, G: Array, n_threads: int
) -> float:
    """Sum over the stored entries of x log(x/z) - x, where z = F G^T."""
    return _kl_terms(_values(values, indices, G.dtype), _sampled_product(indptr, indices, F, G))


def sparse_kl_unreached(
    indptr: Array, indices: Array, values: Some, F: Array, G: Array, n_threads: int
) -> float:
    """The part of :func:`sparse_kl_loss` from entries with z = 0, which updates do not change."""
    return _unreached(_values(values, indices, G.dtype), _sampled_product(indptr, indices, F, G))


def sparse_frobenius_loss(
    indptr: Array, indices: Array, values: Some, weights: Some, F: Array, G: Array, n_threads: int
) -> float:
    """Sum over the stored entries of w (x - z)^2, where z = F G^T."""
    residual = _values(values, indices, G.dtype) - _sampled_product(indptr, indices, F, G)
    w = _values(weights, indices, G.dtype)
    return float(np.sum(w.astype(np.float64) * residual.astype(np.float64) ** 2))


def sparse_beta_loss(
    indptr: Array,
    indices: Array,
    values: Some,
    beta: Exponent,
    rest: bool,
    F: Array,
    G: Array,
    n_threads: int,
    weights: Some = None,
) -> float:
    """Sum over the stored entries of w d(x, z), or of w (d(x, z) - z^beta / beta) with `rest`."""
    x = _values(values, indices, G.dtype)
    return beta_terms(x, _sampled_product(indptr, indices, F, G), weights, beta, rest)


def panel_pass(
    exponent: Exponent,
    indptr: Array,
    indices: Array,
    values: Some,
    F: Some,
    G: Array,
    bounds: Array,
    out: Array,
    scale: float,
    accumulate: bool,
    n_threads: int,
    asked: Some = None,
) -> None:
    """Run :func:`sparse_pass` over a matrix cut into panels of its columns.

    Row ``k * len(out) + j`` has the entries of row j in panel k.  `bounds` cuts the rows into
    ranges for threads; it does not change results.
    """
    del asked
    panels, rows = (len(indptr) - 1) // len(out), len(out)
    parts = np.zeros((panels * rows, G.shape[1]), dtype=G.dtype)
    F = None if F is None else np.tile(F, (panels, 1))
    sparse_pass(exponent, indptr, indices, values, F, G, parts, 1.0, False, n_threads)
    _store(out, parts.reshape(panels, rows, -1).sum(axis=0), scale, accumulate)


def _rows_of_entries(indices: Array, factors: list[Array]) -> tuple[Array, Array]:
    """Return for each entry of an unfolded tensor its number and its row of G."""
    G = np.prod([F[i] for F, i in zip(factors, indices, strict=True)], axis=0)
    return np.arange(indices.shape[1]), G


def tensor_pass(
    exponent: Exponent,
    indptr: Array,
    indices: Array,
    values: Some,
    F: Some,
    factors: list[Array],
    out: Array,
    scale: float,
    accumulate: bool,
    n_threads: int,
) -> None:
    """Run :func:`sparse_pass` over a tensor unfolded by one mode; the exponent is 0, 1 or -1.

    Row i has the entries with index i in this mode.  ``indices[k]`` are the indices of entries in
    the k-th other mode, and g_j of an entry is the elementwise product of the rows of the other
    factors at its indices.
    """
    entries, G = _rows_of_entries(indices, factors)
    sparse_pass(exponent, indptr, entries, values, F, G, out, scale, accumulate, n_threads)


def _of_unfolded(loss: Callable[..., float]) -> Callable[..., float]:
    """Return a loss over a sparse matrix as a loss over an unfolded tensor.

    Only indices and the other factors are different: see :func:`tensor_pass`.
    """

    def of_tensor(indptr: Array, indices: Array, *arguments: Any) -> float:
        *before, factors, n_threads = arguments
        entries, G = _rows_of_entries(indices, factors)
        return loss(indptr, entries, *before, G, n_threads)

    return of_tensor


tensor_kl_loss = _of_unfolded(sparse_kl_loss)
tensor_kl_unreached = _of_unfolded(sparse_kl_unreached)
tensor_frobenius_loss = _of_unfolded(sparse_frobenius_loss)


def scatter_pass(
    exponent: Exponent,
    indptr: Array,
    indices: Array,
    values: Some,
    F: Some,
    G: Array,
    bounds: Array,
    out: Array,
    scale: float,
    n_threads: int,
) -> None:
    """Add scale * (Z .* (G F^T)^exponent)^T G over the stored entries to `out`.

    This is the pass for the column factor, by sorted rows of Z: F and out are q x R, G is p x R.
    `bounds` cuts the columns 0 to q into a range per thread; it does not change results.
    """
    v = _values(values, indices, G.dtype)
    c = _coefficients(v, exponent, lambda: _sampled_product(indptr, indices, G, _given(F)))
    np.add.at(out, indices, out.dtype.type(scale) * c[:, None] * G[_rows(indptr)])


# Z may have any strides.  NaN entries of Z are missing.  With mask=True, entries of Z count as 1,
# and NaN as 0.


def _entries(Z: Array, mask: bool, dtype: Any) -> Array:
    present = ~np.isnan(Z)
    return present.astype(dtype) if mask else np.where(present, Z, 0).astype(dtype)


def dense_pass(
    exponent: Exponent,
    Z: Array,
    mask: bool,
    F: Some,
    G: Array,
    out: Array,
    scale: float,
    accumulate: bool,
    n_threads: int,
) -> None:
    """(Z .* (F G^T)^exponent) G."""
    v = _entries(Z, mask, G.dtype)
    c = _coefficients(v, exponent, lambda: _matmul(_given(F), G.T))
    _store(out, _matmul(c, G), scale, accumulate)


def dense_residual_pass(
    Z: Array, F: Array, G: Array, out: Array, scale: float, accumulate: bool, n_threads: int
) -> None:
    """(Z - F G^T) G over the entries of Z that are not NaN."""
    residual = np.nan_to_num(Z - _matmul(F, G.T), nan=0.0)
    _store(out, _matmul(residual, G), scale, accumulate)


def dense_beta_loss(Z: Array, beta: Any, rest: bool, F: Array, G: Array, n_threads: int) -> float:
    """Sum over the entries of d(x, z), or of d(x, z) - z^beta / beta with `rest`."""
    there = ~np.isnan(Z)
    return beta_terms(Z[there], _matmul(F, G.T)[there], None, beta, rest)


def dense_kl_loss(Z: Array, F: Array, G: Array, n_threads: int) -> float:
    """Sum over the entries of x log(x/z) - x, where z = F G^T."""
    return _kl_terms(_entries(Z, False, G.dtype).ravel(), _matmul(F, G.T).ravel())


def dense_kl_unreached(Z: Array, F: Array, G: Array, n_threads: int) -> float:
    """The part of :func:`dense_kl_loss` from entries with z = 0."""
    return _unreached(_entries(Z, False, G.dtype).ravel(), _matmul(F, G.T).ravel())


def dense_frobenius_loss(Z: Array, F: Array, G: Array, n_threads: int) -> float:
    """Sum over the entries of (x - z)^2, where z = F G^T."""
    residual = np.where(np.isnan(Z), 0, Z - _matmul(F, G.T))
    return float(np.sum(residual.astype(np.float64) ** 2))


def gram(G: Array, weights: Some, out: Array, n_threads: int) -> None:
    """G^T diag(weights) G into `out` (R x R)."""
    out[...] = _matmul(G.T, G if weights is None else weights[:, None] * G)


def cross(F: Array, G: Array, out: Array, n_threads: int) -> None:
    """F^T G into `out` (R x C)."""
    out[...] = _matmul(F.T, G)


def column_sums(G: Array, weights: Some, out: Array, n_threads: int) -> None:
    """G^T weights into `out` (R)."""
    out[...] = G.sum(axis=0, dtype=float) if weights is None else _matmul(G.T, weights)


def multiply(
    F: Array, K: Array, row_scale: Some, out: Array, scale: float, accumulate: bool, n_threads: int
) -> None:
    """diag(row_scale) F K, with K of shape R x C."""
    product = _matmul(F, K)
    _store(out, product if row_scale is None else row_scale[:, None] * product, scale, accumulate)


def add_row(
    vector: Array, row_scale: Some, out: Array, scale: float, accumulate: bool, n_threads: int
) -> None:
    """row_scale vector^T: every row of the result is a multiple of `vector` (R)."""
    a = np.ones(len(out), dtype=out.dtype) if row_scale is None else row_scale
    _store(out, np.outer(a, vector), scale, accumulate)


def inner(F: Array, P: Array, n_threads: int) -> float:
    """Sum of F .* P, in float64."""
    return float(np.sum(F.astype(np.float64) * P.astype(np.float64)))


def imbalance(F: Array, P: Array, N: Array, moves: Some, n_threads: int) -> tuple[float, float]:
    """Return sum |N - P| .* w, and the larger of the sums of F .* P and of F .* N.

    w is F, but at least the mean of the column of F where N < P.  N may be one row for all; entries
    outside of `moves` do not count.
    """
    gap = N.astype(np.float64) - P
    weight = np.where(gap < 0, np.maximum(F, F.mean(axis=0, dtype=np.float64)), F)
    counts = 1 if moves is None else mask_of(moves, F.shape[1])
    pulls = [float(np.sum(F * counts * each, dtype=np.float64)) for each in (P, N)]
    return float(np.sum(np.abs(gap) * weight * counts)), max(pulls)


def update(
    F: Array, P2: Some, N2: Some, P1: Some, N1: Some, rule: Rule, relaxation: float, n_threads: int
) -> None:
    """Multiply F by t, in place.

    (P2, N2) are the sums over the Frobenius terms and (P1, N1) over the Kullback-Leibler terms; a
    pair may be None, and N may be one row for all.  ``"mu"``: t = (2 P2 + P1) / (2 N2 + N1), the
    rule of the papers.  ``"mm"``: t is the positive root of 2 N2 t^2 + (N1 - 2 P2) t - P1 = 0, the
    minimizer of the separable majorizer; with one kind of loss both are the same.

    With a `relaxation` w in [0, 1], t is replaced by t + w (t - 1) min(t, 1): towards 2 t - 1 above
    1 and t^2 below 1, which does not increase the majorizer.

    Entries without a downward pull have no upward pull (see :func:`_safe_ratio`) and stay.  Entries
    that are 0 stay 0; positive entries with a positive t never fall below :func:`tiny`.
    """
    dtype = F.dtype
    zeros = np.zeros(F.shape)
    p2, n2 = (zeros, zeros) if P2 is None or N2 is None else (P2.astype(float), N2.astype(float))
    p1, n1 = (zeros, zeros) if P1 is None or N1 is None else (P1.astype(float), N1.astype(float))
    n2, n1 = (np.maximum(np.broadcast_to(n, F.shape), 0) for n in (n2, n1))
    up, down = 2 * p2 + p1, 2 * n2 + n1
    mixed = P2 is not None and P1 is not None
    floor = tiny(dtype)
    moves = down > floor
    if rule == "mm" and mixed:
        b = 2 * p2 - n1
        square = b * b + 8 * n2 * p1
        apart = np.hypot(b, np.sqrt(8) * np.sqrt(n2) * np.sqrt(p1))  # if squares lose digits
        q = np.where(square > 1e-280, np.sqrt(square), apart)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = np.where(b > 0, (b + q) / (4 * n2), 2 * p1 / (q - b))
        t[moves & (b <= 0) & (q - b <= 0)] = 0
        # Without a quadratic term the root is P1 / (N1 - 2 P2); N2 = 0 implies P2 = 0.
        linear = moves & (n2 <= floor)
        t[linear] = (up / np.where(moves, down, 1))[linear]
    else:
        t = up / np.where(moves, down, 1)
    t = np.where(moves, t, 1)
    t = t + relaxation * (t - 1) * np.minimum(t, 1)
    new = F.astype(float) * t
    F[...] = np.where((new < floor) & (F > 0) & (t > 0), floor, new)


def extrapolate(F: Array, before: Array, step: float, positive: bool, n_threads: int) -> None:
    """F <- max(0, F + step (F - before)) and before <- the old F, in place.

    `positive`: entries that fall become F / (1 + step (before - F) / F) instead.
    """
    here = F.copy()
    fall = F.dtype.type(step) * (before - here)
    F[...] = np.maximum(0, here - fall)
    if positive:
        np.divide(here, here + fall, out=F, where=fall > 0)
        np.multiply(here, F, out=F, where=fall > 0)
    before[...] = here


def inspect_csr(indptr: Array, indices: Array, n_columns: int, n_threads: int) -> int:
    """Return 0 for sorted rows, 1 for unsorted ones, 2 if a row repeats a column, 3 if unsound."""
    steps = np.diff(indptr)
    if indptr[0] != 0 or np.any(steps < 0) or indptr[-1] > len(indices):
        return 3
    columns = indices[: indptr[-1]].astype(np.int64)
    if np.any(columns < 0) or np.any(columns >= n_columns):
        return 3
    keys = np.repeat(np.arange(len(steps), dtype=np.int64), steps) * n_columns + columns
    if np.all(np.diff(keys) > 0):
        return 0
    return 1 if len(np.unique(keys)) == len(keys) else 2


def sparse_fingerprint(
    indptr: Array, indices: Array, values: Some, first_row: int, n_threads: int
) -> tuple[int, int]:
    """Two sums modulo 2^64 of mixed bits of the entries that are not zero, by place and value.

    Rows count from `first_row`: the sums add up over parts of a matrix.  NaN is one value, and
    numbers below the normal range of the dtype count as zero.
    """
    n_entries = int(indptr[-1])
    given = np.ones(n_entries) if values is None else values
    return fingerprint_of(first_row + _rows(indptr), indices[:n_entries], given)


def dense_fingerprint(Z: Array, first_row: int, n_threads: int) -> tuple[int, int]:
    """Return the same sums for a dense matrix."""
    rows, columns = np.indices(Z.shape)
    return fingerprint_of(first_row + rows.ravel(), columns.ravel(), Z.ravel())


def dense_moments(Z: Array, n_threads: int) -> tuple[float, float, int, int, float, float]:
    """Return the least and largest entry, how many are NaN and how many not 0, sum and squares."""
    known = Z[~np.isnan(Z)].astype(np.float64)
    least, largest = known.min(initial=np.inf), known.max(initial=-np.inf)
    counts = Z.size - known.size, int(np.count_nonzero(Z))
    with np.errstate(over="ignore", invalid="ignore"):  # data may be too large, or infinite
        return float(least), float(largest), *counts, float(known.sum()), float(known @ known)


def transpose(
    indptr: Array,
    indices: Array,
    values: Array,
    out_indptr: Array,
    out_indices: Array,
    out_values: Array,
    n_threads: int,
) -> None:
    """Write the transpose of a sound matrix, with sorted rows: one panel."""
    out = out_indptr, out_indices, out_values
    transpose_panels(indptr, indices, values, max(1, len(indptr) - 1), *out, n_threads)


def transpose_panels(
    indptr: Array,
    indices: Array,
    values: Array,
    panel_rows: int,
    out_indptr: Array,
    out_indices: Array,
    out_values: Array,
    n_threads: int,
) -> None:
    """Write the transpose of a sound matrix, cut into panels of `panel_rows` rows."""
    rows = _rows(indptr)
    panels = -(-(len(indptr) - 1) // panel_rows)
    n_columns = (len(out_indptr) - 1) // max(panels, 1)
    line = rows // panel_rows * n_columns + indices
    order = np.argsort(line, kind="stable")
    out_indptr[0] = 0
    np.cumsum(np.bincount(line, minlength=len(out_indptr) - 1), out=out_indptr[1:])
    out_indices[...] = rows[order]
    out_values[...] = values[order]


def _add_gram(K: Array, indptr: Some, indices: Some, weights: Some, G: Array, i: int) -> Array:
    """Add sum_j w_ij g_j g_j^T to K, float64, if there are entries.

    Returns the diagonal below which the difference from the former K is a rounding error.
    """
    if indptr is None or indices is None:
        return np.zeros(len(K))
    least = 4 * float(np.finfo(G.dtype).eps) * np.maximum(np.diag(K), 0)
    entries = slice(indptr[i], indptr[i + 1])
    g = G[indices[entries]].astype(float)
    w = _values(weights, indices, float)[entries].astype(float)
    K += _matmul(g.T, w[:, None] * g)
    return np.asarray(least)


def nnls(
    K: Some,
    row_scale: Some,
    indptr: Some,
    indices: Some,
    weights: Some,
    G: Array,
    P: Array,
    F: Array,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> int:
    """For every row i: F_i = argmin_{s >= 0} s K_i s^T - 2 P_i s^T, from the start F_i.

    K_i = row_scale_i * K + sum_j w_ij g_j g_j^T, with signed w in CSR form; K or the CSR part may
    be None, and ``row_scale=None`` means ones.
    In units in which K_i has a diagonal between 1 and 4, a row is solved when its gradient
    g = K_i s - P_i has |g_k| <= tol * max(P_i) where s_k > 0, and g_k >= -tol * max(P_i) where
    s_k = 0.  Entries without curvature (up to rounding errors of a difference) become 0.  Returns
    the number of unsolved rows.
    """
    unsolved = 0
    for i in range(len(F)):
        Ki = np.zeros((G.shape[1], G.shape[1]))
        if K is not None:
            Ki += (1.0 if row_scale is None else row_scale[i]) * K.astype(float)
        least = _add_gram(Ki, indptr, indices, weights, G, i)
        F[i], solved = _nnls_row(Ki, P[i].astype(float), least, tol)
        unsolved += not solved
    return unsolved


def _nnls_row(K: Array, p: Array, least: Array, tol: float) -> tuple[Array, bool]:
    """SciPy's active-set method on a square root of K: min |K^(1/2) s - K^(-1/2) p|."""
    usable: Array = np.diag(K) > least
    unit = np.zeros(len(p))
    unit[usable] = np.ldexp(1.0, -((np.frexp(np.diag(K)[usable])[1] - 1) >> 1))
    K = unit[:, None] * K * unit
    p = unit * p
    largest = p.max(initial=0.0)
    if largest <= 0:
        return np.zeros_like(p), True
    d, V = np.linalg.eigh((K + K.T) / 2)
    kept = d > 1e-15 * d.max()
    root = np.sqrt(d[kept])
    s, _ = scipy.optimize.nnls(root[:, None] * V[:, kept].T, (V[:, kept].T @ p) / root)
    gradient = K @ s - p
    residual = np.where(s > 0, np.abs(gradient), -gradient)
    return unit * s, bool(residual[usable].max(initial=0.0) <= tol * largest)


def kl_rows(
    indptr: Array,
    indices: Array,
    values: Some,
    G: Array,
    N: Array,
    F: Array,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> int:
    """For every row i: F_i = argmin_{s >= 0} N_i . s - sum_j x_ij log(s . g_j), from the start F_i.

    N has one row for each row of F, or one row for all.  A row is solved when, with
    P_k = sum_j x_ij g_jk / (s . g_j), no |min(s_k N_k / sum_j x_ij, 1 - P_k / N_k)| is above `tol`.
    Returns the number of unsolved rows.
    """
    unsolved = 0
    for i in range(len(F)):
        entries = slice(indptr[i], indptr[i + 1])
        x = _values(values, indices, G.dtype)[entries].astype(float)
        g = G[indices[entries]].astype(float)
        n = N[i if len(N) > 1 else 0].astype(float)
        F[i], solved = _kl_row(x[x > 0], g[x > 0], n, F[i].astype(float), tol, max_sweeps)
        unsolved += not solved
    return unsolved


def _kl_row(
    x: Array, g: Array, n: Array, s: Array, tol: float, max_sweeps: int
) -> tuple[Array, bool]:
    """Primal-dual interior-point method on one row, in the shares u_k = s_k n_k / sum(x).

    With h = g / n and p = x / sum(x): min sum(u) - p . log(h u) over u >= 0.  Its conditions are
    w = 1 - h^T (p / (h u)) >= 0, u >= 0, u w = 0; every step is a Newton step on them with
    u w = mu instead, and mu falls towards 0.
    """
    usable = (n > 0) & (g.sum(axis=0) > 0)
    reachable = g[:, usable].sum(axis=1) > 0  # entries that the dictionary can explain
    x, g = x[reachable], g[reachable]
    usable &= g.sum(axis=0) > 0
    if len(x) == 0:
        return np.zeros_like(s), True
    h = g[:, usable] / n[usable]
    p = x / x.sum()
    u = np.full(h.shape[1], 1 / h.shape[1])
    w = np.ones_like(u)
    solved = False
    for _ in range(max_sweeps):
        z = h @ u
        slope = 1 - h.T @ (p / z)
        rounded = np.where(u < slope, 0.0, u)  # the solution's zeros, as zeros
        z_rounded = h @ rounded
        if z_rounded.min() > 0:
            slope_rounded = 1 - h.T @ (p / z_rounded)
            if np.abs(np.minimum(rounded, slope_rounded)).max() <= tol:
                solved, u = True, rounded
                break
        mu = 0.1 * (u @ w) / len(u)
        hessian = (h.T * (p / z**2)) @ h + np.diag(w / u)
        du = np.linalg.solve(hessian, mu / u - slope)
        dw = mu / u - w - w / u * du
        # Neither u nor w may reach zero: take at most 0.99 of the way.
        fall = max(np.max(-du / u), np.max(-dw / w))
        step = min(1.0, 0.99 / fall) if fall > 0 else 1.0
        u = u + step * du
        w = w + step * dw
    s = np.zeros_like(s)
    s[usable] = u * x.sum() / n[usable]
    return s, solved


def kl_descent(
    indptr: Array,
    indices: Array,
    values: Some,
    G: Array,
    N: Array,
    F: Array,
    allowed: Some,
    sweeps: int,
    with_loss: bool,
    n_threads: int,
) -> float:
    """For k = 1..R, `sweeps` times, step F_ik in place without raising the divergence of any row.

    With u_j = g_jk / (F_i . g_j), p = sum_j x_ij u_j, c = sum_j x_ij u_j^2 and n = N_ik the step is
    (p - n) / c * (p / n) upwards, and -(n - p) / (c + U (n - p)) with U = max_j u_j downwards, but
    at most 3/4 of 1 / U, and not below zero.
    N has one row for each row of F, or one row for all.  Entries with N = 0 stay, and entries
    outside of `allowed`.  Zeros stay in every second sweep; zeros with p <= n at the beginning of a
    pair of sweeps stay in both.  Returns the sum over the stored entries of x log(x/z) - x
    afterwards if `with_loss`, or 0.
    """
    for i in range(len(F)):
        entries = slice(indptr[i], indptr[i + 1])
        x = _values(values, indices, G.dtype)[entries].astype(float)
        g = G[indices[entries]].astype(float)[x > 0]
        x = x[x > 0]
        n = N[i if len(N) > 1 else 0].astype(float)
        moves = n > tiny(F.dtype)
        if allowed is not None:
            moves &= mask_of(allowed[i : i + 1], F.shape[1])[0]
        f = F[i].astype(float)
        for sweep in range(sweeps):
            if sweep % 2 == 0:
                chosen = moves & ((f > 0) | (_safe_ratio(x, g @ f) @ g > n))
            for k in np.flatnonzero(chosen if sweep % 2 == 0 else chosen & (f > 0)):
                u = _safe_ratio(g[:, k], g @ f)
                p, c, largest = x @ u, x @ u**2, u.max(initial=0.0)
                if p > n[k]:
                    f[k] += (p - n[k]) / c * (p / n[k])
                else:
                    gap = n[k] - p
                    fall = min(gap / (c + largest * gap), 0.75 / largest) if largest > 0 else np.inf
                    f[k] = max(0.0, f[k] - fall)
        F[i] = f
    if not with_loss:
        return 0.0
    return sparse_kl_loss(indptr, indices, values, F, G, n_threads)


def coordinate_descent(
    grams: Array,
    scales: Some,
    indptr: Some,
    indices: Some,
    weights: Some,
    G: Array,
    P: Array,
    F: Array,
    allowed: Some,
    sweeps: int,
    face_steps: int,
    n_threads: int,
    measured: bool = False,
) -> float:
    """For k = 1..R, `sweeps` times: F_ik <- max(0, F_ik - (K_i F_i - P_i)_k / K_i,kk), in place.

    Before the last sweep, there are `face_steps` conjugate gradient steps on the positive entries
    of each row; then rows must not have weights.

    K_i = sum_t scales[t, i] * grams[t] + sum_j w_ij g_j g_j^T, with signed w in CSR form (or None);
    ``scales=None`` means ones.  Entries outside of `allowed` stay, and entries without curvature
    (see :func:`nnls`), except that those with a negative P in rows with weights become 0.  Returns
    the sum of |projected gradient| over the first sweep, just before the steps, if `measured`, for
    rows without weights.
    """
    violation = 0.0
    for i in range(len(F)):
        K = np.zeros((G.shape[1], G.shape[1]))
        for t, gram_t in enumerate(grams):
            K += (1.0 if scales is None else scales[t, i]) * gram_t.astype(float)
        least = np.maximum(tiny(F.dtype), _add_gram(K, indptr, indices, weights, G, i))
        free = np.ones(len(K), bool)
        if allowed is not None:
            free = mask_of(allowed[i : i + 1], F.shape[1])[0]
        moves = free & (np.diag(K) > least)
        f = F[i].astype(float)
        if indptr is not None:
            f[free & ~moves & (P[i] < 0)] = 0
        for sweep in range(sweeps):
            if face_steps and sweep == sweeps - 1:
                f = _minimize_on_face(K, P[i].astype(float), f, moves, face_steps, F.dtype)
            for k in range(len(K)):
                gradient = float(K[k] @ f - P[i, k])
                if measured and sweep == 0 and indptr is None:
                    violation += abs(gradient if f[k] > 0 else min(gradient, 0.0))
                if moves[k]:
                    f[k] = max(0.0, f[k] - gradient / K[k, k])
        F[i] = f
    return violation


def _minimize_on_face(K: Array, p: Array, f: Array, moves: Array, steps: int, dtype: Any) -> Array:
    """Lower f K f^T - 2 p f^T in the movable positive entries of f by conjugate gradients.

    They are preconditioned by the diagonal.  A step ends where an entry becomes 0; then the method
    restarts without this entry.
    """
    diagonal = np.diag(K)
    gradient = K @ f - p
    inverse = np.zeros_like(f)
    np.divide(1.0, diagonal, out=inverse, where=(f > 0) & moves)
    direction = -gradient * inverse
    before = float(gradient**2 @ inverse)
    for _ in range(steps):
        product = K @ direction
        slope, bend = float(direction @ gradient), float(direction @ product)
        rounding = 64 * np.finfo(dtype).eps * float(direction**2 @ diagonal)
        if not (slope < 0 and bend > rounding):
            break
        minimizer = -slope / bend
        falling = np.flatnonzero(direction < 0)
        borders = -f[falling] / direction[falling]
        length = min(minimizer, borders.min(initial=np.inf))
        f = np.maximum(f + length * direction, 0)
        gradient += length * product
        if length < minimizer:
            ended = falling[borders <= length]
            f[ended] = inverse[ended] = 0
        now = float(gradient**2 @ inverse)
        turn = now / before if length == minimizer and before > 0 else 0.0
        direction = turn * direction - gradient * inverse
        before = now
    return f
