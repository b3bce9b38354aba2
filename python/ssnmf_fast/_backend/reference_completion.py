"""The kernels of matrix completion in plain NumPy, with the arguments of the compiled ones."""

from __future__ import annotations

import numpy as np

from .._common.arrays import Array


def _rows(indptr: Array) -> Array:
    """Row number of every stored entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def shrunk(z: Array, step: float, eps: float, q: float, proximal: bool, floor: float) -> Array:
    """Draw entries towards zero: z (1 - c w) or z / (1 + c w), with w = (z^2 + eps)^(q/2 - 1).

    Entries below `floor` become it (-inf for none).  Kassab 2021, Algorithm 2.
    """
    weight = step * (z * z + z.dtype.type(eps)) ** (q / 2 - 1) if step else np.zeros_like(z)
    moved = z / (1 + weight) if proximal else z * (1 - weight)
    result: Array = np.maximum(moved, floor).astype(z.dtype)
    return result


def residual_step(
    indptr: Array,
    indices: Array,
    values: Array | None,
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
    values: Array | None,
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
    solution: Array = np.linalg.solve(H, b)
    return solution


def ridge_rows(
    indptr: Array,
    indices: Array,
    values: Array | None,
    G: Array,
    ridge: Array,
    F: Array,
    n_threads: int,
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


def structured_rows(
    indptr: Array,
    indices: Array,
    values: Array | None,
    G: Array,
    ridge: Array,
    alpha: float,
    eps: float,
    q: float,
    X: Array,
    F: Array,
    n_threads: int,
) -> None:
    """The same with weights w = 1 / (1 + alpha (x_ij^2 + eps)^(q/2 - 1)) of missing entries.

    Every missing entry adds (1 - w_ij) g_j g_j^T to the matrix of its row, and becomes
    x_ij = w_ij f_i . g_j; the observed ones of X stay.  Kassab 2021, Algorithm 1.
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
    """Replace the first columns of A (n x C, n >= columns) by an orthonormal basis; R follows."""
    A[:, :columns], R[...] = np.linalg.qr(A[:, :columns])
