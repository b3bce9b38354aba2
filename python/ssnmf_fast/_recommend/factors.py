"""Factors of users and items, and scores of items by their neighbors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.arrays import kernel_parts, transpose, with_values
from .._data.threads import one_blas_thread

_STEPS = 3  # of conjugate gradients, from the previous rows
_SWEEPS = 10  # of coordinate descent, for nonnegative factors
_EXACT = 60  # steps or sweeps for exact rows
_MOST_BASE = 0.5  # the largest weight of an unseen pair; a seen one has 1 more
_NEIGHBORS_RIDGE = 1.0  # relative to the mean square of the columns of items


class Setting(NamedTuple):
    """Settings of a fit."""

    n_components: int
    unseen_weight: float
    ridge: float
    nonnegative: bool = False

    def base(self, Z: sp.csr_array) -> float:
        """Return the weight of all pairs; seen pairs have 1 more."""
        return float(min(self.unseen_weight * Z.nnz / (Z.shape[0] * Z.shape[1]), _MOST_BASE))

    def start(self, n: int, dtype: npt.DTypeLike) -> Array:
        return padded(np.full((n, self.n_components), 0.1 * self.nonnegative, dtype), dtype)


def _solve_rows(
    Z: sp.csr_array, G: Array, setting: Setting, base: float, F: Array, steps: int, threads: int
) -> None:
    """Move rows of F towards the minimizers of the weighted squares, given G.

    `steps` counts steps of conjugate gradients, or sweeps of coordinate descent.
    """
    dtype, counts = F.dtype, np.diff(Z.indptr)
    own = (setting.ridge * (counts + base * Z.shape[1])).astype(dtype)
    gram = np.empty((G.shape[1], G.shape[1]), dtype=dtype)
    kernels.gram(G, None, gram, threads)
    gram *= dtype.type(base)
    indptr, indices, data = kernel_parts(Z)
    targets = dtype.type(1 + base) * data
    if not setting.nonnegative:
        kernels.conjugate_rows(indptr, indices, targets, G, gram, own, steps, F, threads)
        return
    P = np.asarray(with_values(Z, targets) @ G)
    grams = np.stack([gram, np.eye(len(gram), dtype=dtype)])
    scales = np.stack([np.ones_like(own), own])
    ones = indptr, indices, np.ones_like(data)
    kernels.coordinate_descent(grams, scales, *ones, G, P, F, None, steps, 0, threads)


def factorize_pairs(
    Z: sp.csr_array, setting: Setting, passes: int, rng: np.random.Generator, threads: int
) -> tuple[Array, Array]:
    """Return factors (n, r) and (m, r) by alternating ridge regressions (Hu et al. 2008)."""
    (n, m), r, base = Z.shape, setting.n_components, setting.base(Z)
    drawn = rng.standard_normal((m, r), dtype=np.float32) / np.float32(3 * np.sqrt(r))
    drawn = np.abs(drawn) if setting.nonnegative else drawn
    F, G = setting.start(n, np.float32), padded(drawn, np.float32)
    turned = transpose(Z, threads)
    steps = _SWEEPS if setting.nonnegative else _STEPS
    for _ in range(passes):
        _solve_rows(Z, G, setting, base, F, steps, threads)
        _solve_rows(turned, F, setting, base, G, steps, threads)
    _solve_rows(Z, G, setting, base, F, steps, threads)
    return _of_liked(F[:, :r], Z), _of_liked(G[:, :r], turned)


def _of_liked(F: Array, Z: sp.csr_array) -> Array:
    """Set rows without a positive target to 0, up to which they may differ by rounding."""
    F[Z.sum(axis=1) <= 0] = 0
    return F


def fold_in(Z: sp.csr_array, G: Array, setting: Setting, base: float, threads: int) -> Array:
    """Return the factor of new users; rows without a positive target are 0."""
    F, G = setting.start(Z.shape[0], G.dtype), padded(G, G.dtype)
    _solve_rows(Z, G, setting, base, F, _EXACT, threads)
    return np.ascontiguousarray(_of_liked(F[:, : setting.n_components], Z))


@one_blas_thread()
def item_weights(Z: sp.csr_array) -> Array:
    """Return item-item weights with a zero diagonal (EASE, Steck 2019), (m, m)."""
    K = np.asarray((Z.T @ Z).toarray(), dtype=np.float32, order="F")
    K[np.diag_indices_from(K)] += np.float32(max(_NEIGHBORS_RIDGE * K.trace() / len(K), 1.0))
    factor, failed = scipy.linalg.lapack.spotrf(K, lower=1, overwrite_a=1)
    P, failed = scipy.linalg.lapack.spotri(factor, lower=1, overwrite_c=1) if not failed else (K, 1)
    if failed:
        raise ValueError("Weights of neighbors cannot be computed; fit with neighbors=False.")
    P = np.tril(P) + np.tril(P, -1).T
    P /= -np.diag(P)
    np.fill_diagonal(P, 0)
    return np.ascontiguousarray(P)
