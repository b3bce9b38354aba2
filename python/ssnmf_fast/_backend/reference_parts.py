"""Parts of :mod:`ssnmf_fast._backend.reference`: powers, variational Bayes, matrix completion.

In variational Bayes, every entry of a factor has a gamma posterior with shape alpha and a rate b
for its component and group of rows.  E = alpha / b is its expectation; the expectation of its
logarithm is Lg = psi(alpha) - log(b), stored as F = exp(Lg).  The arguments are

prior_shape
    Shape a0 of the prior.
rates, groups
    Posterior rates, float64, groups x R, positive in the first `rank` columns; the group of every
    row, int32, or None for one group.
rank
    Number of columns without padding; padding of F and E becomes 0.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy.special import gammaln, psi

from .._common.arrays import Array

Some: TypeAlias = Array | None  # None means ones, or nothing


def tiny(dtype: Any) -> float:
    """Return the floor of divisors and of positive factor entries: 1e-292 or 1e-31."""
    info = np.finfo(dtype)
    return float(info.tiny / info.eps)


def power(z: Array, exponent: float) -> Array:
    """z^exponent, and 0 where z is 0: such an entry does not pull at positive factor entries.

    The result is at most the largest number of the dtype divided by 2^20, so that sums are finite.
    """
    largest = float(np.finfo(z.dtype).max) / 2**20
    logs = exponent * np.log(np.maximum(z.astype(np.float64), tiny(z.dtype)))
    powers = np.exp(np.minimum(logs, np.log(largest)))
    return np.where(z > tiny(z.dtype), powers, 0.0).astype(z.dtype)


def beta_terms(x: Array, z: Array, w: Some, beta: float | tuple[float, float], rest: bool) -> float:
    """Sum of w d(x, z), or of w (d(x, z) - z^beta / beta) with `rest`, in float64.

    With L = log(x / z) the divergence is z^beta (expm1(beta L) / beta - expm1(L)) / (beta - 1), and
    (z^beta + x z^(beta - 1) (expm1((beta - 1) L) / (beta - 1) - 1)) / beta: the first has no
    cancellation near beta = 0, the second has none near 1.  For beta < 1, the loss of x > 0 is
    infinite at z = 0.  `beta` can be a pair of beta and a bound: data up to it count as 0, and a
    smaller z as the bound, except in z^beta / beta.
    """
    beta, least = beta if isinstance(beta, tuple) else (beta, 0.0)
    floor = tiny(z.dtype)
    x, given = x.astype(np.float64), z.astype(np.float64)
    z, counts = np.maximum(given, max(floor, least)), x > least
    of_z: Any = 0.0
    if not rest and beta > 0:
        of_z = np.where(given > floor, np.maximum(given, floor) ** beta, 0.0) / beta
    with np.errstate(over="ignore"):
        logs = np.log(np.minimum(np.where(counts, x, z) / z, np.finfo(np.float64).max))
        if beta <= 0.5:
            first = logs if beta == 0 else np.expm1(beta * logs) / beta
            loss = z**beta * (first - np.expm1(logs)) / (beta - 1) - (z**beta / beta if beta else 0)
        else:
            second = np.expm1((beta - 1) * logs) / (beta - 1) if beta != 1 else logs
            loss = x * z ** (beta - 1) * (second - 1) / beta
    if beta < 1 and not least:
        loss[given == 0] = np.inf
    loss = np.where(counts, loss, 0.0) + of_z
    return float(np.sum(loss if w is None else np.multiply(w, loss, where=w > 0, out=0 * x)))


def _by_row(values: Array, groups: Some, n_rows: int) -> Array:
    """Return the row of its group for every row."""
    return values[np.zeros(n_rows, dtype=np.int32) if groups is None else groups]


def gamma_update(
    F: Array,
    P: Array,
    prior_shape: float,
    rates: Array,
    groups: Some,
    E: Array,
    rank: int,
    logs: bool,
    n_threads: int,
) -> float:
    """alpha = prior_shape + F .* P; E <- alpha / rate; F <- exp(psi(alpha)) / rate, in place.

    F stays at or above :func:`tiny`.  Returns the sum of all Lg if `logs` is true, or 0.
    """
    rate = _by_row(rates[:, :rank], groups, len(F))
    shape = prior_shape + F[:, :rank].astype(float) * P[:, :rank].astype(float)
    digamma = psi(shape)
    E[...] = F[...] = 0
    E[:, :rank] = shape / rate
    F[:, :rank] = np.maximum(np.exp(digamma) / rate, tiny(F.dtype))
    return float(np.sum(digamma - np.log(rate))) if logs else 0.0


def gamma_bound(
    E: Array, prior_shape: float, rates: Array, groups: Some, rank: int, n_threads: int
) -> float:
    """Sum of (prior_shape - alpha) Lg - alpha log(rate) + alpha + log Gamma(alpha), alpha = E rate.

    This is the part of the entries in the variational bound, without terms of the prior's rate.
    """
    rate = _by_row(rates[:, :rank], groups, len(E))
    shape = E[:, :rank].astype(float) * rate
    logs = psi(shape) - np.log(rate)
    terms = (prior_shape - shape) * logs - shape * np.log(rate) + shape + gammaln(shape)
    return float(np.sum(terms))


def group_sums(E: Array, groups: Some, out: Array, n_threads: int) -> None:
    """Sum the rows of every group into `out` (float64, groups x R)."""
    out[...] = 0
    np.add.at(out, np.zeros(len(E), dtype=np.int32) if groups is None else groups, E.astype(float))


def _rows(indptr: Array) -> Array:
    """Row number of every stored entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def shrunk(z: Array, step: float, eps: float, q: float, proximal: bool, floor: float) -> Array:
    """Shrink entries: z (1 - c w) or z / (1 + c w), with w = (z^2 + eps)^(q/2 - 1).

    Entries are at least `floor`.  Kassab 2021, Algorithm 2.
    """
    weight = step * (z * z + z.dtype.type(eps)) ** (q / 2 - 1) if step else np.zeros_like(z)
    moved = z / (1 + weight) if proximal else z * (1 - weight)
    return np.asarray(np.maximum(moved, floor).astype(z.dtype))


def residual_step(
    indptr: Array,
    indices: Array,
    values: Some,
    F: Array,
    G: Array,
    residuals: Array,
    out: Array,
    n_threads: int,
) -> None:
    """F + (Z - F G^T) G over the stored entries, and the residuals z_ij - f_i . g_j."""
    mapped_residuals(
        indptr, indices, values, F, G, 1.0, 0.0, 1.0, 1.0, True, -np.inf, residuals, n_threads
    )
    result = F.copy()
    np.add.at(result, _rows(indptr), residuals[:, None] * G[indices])
    out[...] = result


def mapped_residuals(
    indptr: Array,
    indices: Array,
    values: Some,
    F: Array,
    G: Array,
    scale: float,
    step: float,
    eps: float,
    q: float,
    proximal: bool,
    floor: float,
    out: Array,
    n_threads: int,
) -> None:
    """z_ij - phi(scale f_i . g_j) at the stored entries, with phi of :func:`shrunk`."""
    model = G.dtype.type(scale) * np.einsum("er,er->e", F[_rows(indptr)], G[indices])
    out[...] = (1 if values is None else values) - shrunk(model, step, eps, q, proximal, floor)


def mapped_product(
    F: Array,
    G: Array,
    H: Array,
    step: float,
    eps: float,
    q: float,
    proximal: bool,
    floor: float,
    out: Array,
    n_threads: int,
) -> None:
    """Add phi(F G^T) H to `out`, with phi of :func:`shrunk`."""
    with np.errstate(all="ignore"):  # flags of BLAS kernels for lanes beyond the end of an array
        out += shrunk(F @ G.T, step, eps, q, proximal, floor) @ H


def _ridge_row(G: Array, weights: Array, targets: Array, ridge: Array) -> Array:
    """(diag(ridge) + sum w g g^T)^-1 sum w t g; 0 where every target is 0."""
    columns = G[:, : len(ridge)].astype(float)
    b: Array = columns.T @ (weights * targets)
    if not b.any():
        return b
    H = np.diag(ridge) + columns.T @ (weights[:, None] * columns)
    return np.asarray(np.linalg.solve(H, b))


def ridge_rows(
    indptr: Array, indices: Array, values: Some, G: Array, ridge: Array, F: Array, n_threads: int
) -> None:
    """f_i = (diag(ridge) + sum_j g_j g_j^T)^-1 sum_j z_ij g_j, sums over the stored entries.

    The exact minimizer of a row in Kassab 2021, (2.6), for orthonormal columns of G.  `ridge`
    (float64) has a value for every column in use; the other columns of F become 0.
    """
    z = np.ones(len(indices)) if values is None else values.astype(float)
    F[:, len(ridge) :] = 0
    for i in range(len(F)):
        entries = slice(indptr[i], indptr[i + 1])
        g = G[indices[entries]]
        F[i, : len(ridge)] = _ridge_row(g, np.ones(len(g)), z[entries], ridge)


def conjugate_rows(
    indptr: Array,
    indices: Array,
    values: Some,
    G: Array,
    gram: Array,
    ridges: Array,
    steps: int,
    F: Array,
    n_threads: int,
) -> None:
    """Conjugate gradients towards (gram + ridge_i I + sum_j g_j g_j^T) f_i = sum_j z_ij g_j."""
    z = np.ones(len(indices), G.dtype) if values is None else values
    for i, f in enumerate(F):
        entries = slice(indptr[i], indptr[i + 1])
        g = G[indices[entries]]
        K = gram + ridges[i] * np.eye(len(gram), dtype=G.dtype) + g.T @ g
        residual = g.T @ z[entries] - K @ f
        direction = residual.copy()
        for _ in range(steps):
            before, image = residual @ residual, K @ direction
            curvature = direction @ image
            if before <= np.finfo(G.dtype).tiny or curvature <= 0:
                break
            f += before / curvature * direction
            residual -= before / curvature * image
            direction = residual + residual @ residual / before * direction


def structured_rows(
    indptr: Array,
    indices: Array,
    values: Some,
    G: Array,
    ridge: Array,
    alpha: float,
    eps: float,
    q: float,
    X: Array,
    F: Array,
    n_threads: int,
) -> None:
    """:func:`ridge_rows` with weights w = 1 / (1 + alpha (x_ij^2 + eps)^(q/2 - 1)) of missing x_ij.

    Every missing entry adds (1 - w_ij) g_j g_j^T to the matrix of its row, and becomes
    x_ij = w_ij f_i . g_j; observed entries of X stay.  Kassab 2021, Algorithm 1.
    """
    z = np.ones(len(indices)) if values is None else values.astype(float)
    F[:, len(ridge) :] = 0
    for i in range(len(F)):
        entries = slice(indptr[i], indptr[i + 1])
        raised = alpha * (X[i].astype(float) ** 2 + eps) ** (q / 2 - 1)
        pull = raised / (1 + raised)
        weights, targets = pull.copy(), np.zeros(len(G))
        weights[indices[entries]] = 1
        targets[indices[entries]] = z[entries]
        F[i, : len(ridge)] = f = _ridge_row(G, weights, targets, ridge)
        missing = np.ones(len(G), dtype=bool)
        missing[indices[entries]] = False
        X[i, missing] = ((1 - pull) * (G[:, : len(ridge)] @ f))[missing]


def tall_qr(A: Array, columns: int, R: Array, n_threads: int) -> None:
    """Replace the first columns of A (n x C, n >= columns) by an orthonormal basis; write R."""
    A[:, :columns], R[...] = np.linalg.qr(A[:, :columns])
