"""Factors of users and items, and scores of items by their neighbors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from .._backend.dispatch import kernels, padded
from .._common.arrays import Array
from .._data.arrays import kernel_parts
from .._data.threads import one_blas_thread

_STEPS = 3  # of conjugate gradients from the rows before, which are near
_EXACT = 60  # and where the rows are to be exact
_MOST_BASE = 0.5  # the largest weight of a pair that was not seen; one that was has 1 more
_NEIGHBORS_RIDGE = 1.0  # over the mean square of the column of an item
_SHARE = 8  # components are at most this part of the users and of the items


class Setting(NamedTuple):
    """What a model is fitted with."""

    n_components: int
    unseen_weight: float
    ridge: float

    def base(self, Z: sp.csr_array) -> float:
        """Return the weight of all pairs; those that were seen have 1 more."""
        return min(self.unseen_weight * Z.nnz / (Z.shape[0] * Z.shape[1]), _MOST_BASE)


def most_components(shape: tuple[int, int]) -> int:
    return max(1, min(shape) // _SHARE)


def solve_rows(
    Z: sp.csr_array, G: Array, base: float, ridge: float, F: Array, steps: int, threads: int
) -> None:
    """Set rows of F near the minimizers of the weighted squares, for a factor G of the columns."""
    counts = np.diff(Z.indptr)
    own = (ridge * (counts + base * Z.shape[1])).astype(F.dtype)
    gram = np.empty((G.shape[1], G.shape[1]), dtype=G.dtype)
    kernels.gram(G, None, gram, threads)
    indptr, indices, data = kernel_parts(Z)
    targets = (1 + F.dtype.type(base)) * data
    scaled = np.ascontiguousarray(F.dtype.type(base) * gram)
    kernels.conjugate_rows(indptr, indices, targets, G, scaled, own, steps, F, threads)


def factorize_pairs(
    Z: sp.csr_array, setting: Setting, passes: int, rng: np.random.Generator, threads: int
) -> tuple[Array, Array]:
    """Return factors (n, r) and (m, r) by alternating ridge regressions (Hu et al. 2008)."""
    (n, m), r, base = Z.shape, setting.n_components, setting.base(Z)
    drawn = rng.standard_normal((m, r), dtype=np.float32) / np.float32(np.sqrt(r) * 3)
    F, G = padded(np.zeros((n, r), np.float32), np.float32), padded(drawn, np.float32)
    turned = Z.T.tocsr()
    turned.sort_indices()
    for _ in range(passes):
        solve_rows(Z, G, base, setting.ridge, F, _STEPS, threads)
        solve_rows(turned, F, base, setting.ridge, G, _STEPS, threads)
    solve_rows(Z, G, base, setting.ridge, F, _STEPS, threads)
    return F[:, :r], G[:, :r]


def fold_in(Z: sp.csr_array, G: Array, base: float, ridge: float, threads: int) -> Array:
    """Return the factor of new users; rows without pairs are 0."""
    F = padded(np.zeros((Z.shape[0], G.shape[1]), G.dtype), G.dtype)
    solve_rows(Z, padded(G, G.dtype), base, ridge, F, _EXACT, threads)
    return np.ascontiguousarray(F[:, : G.shape[1]])


@one_blas_thread()
def item_weights(Z: sp.csr_array) -> Array:
    """Return the weights of items for items, with a zero diagonal (EASE, Steck 2019), (m, m)."""
    K = np.asarray((Z.T @ Z).toarray(), dtype=np.float32, order="F")
    K[np.diag_indices_from(K)] += np.float32(max(_NEIGHBORS_RIDGE * K.trace() / len(K), 1.0))
    factor, failed = scipy.linalg.lapack.spotrf(K, lower=1, overwrite_a=1)
    P, failed = scipy.linalg.lapack.spotri(factor, lower=1, overwrite_c=1) if not failed else (K, 1)
    if failed:
        raise ValueError("The pairs give no neighbors of items; fit with neighbors=False.")
    P = np.tril(P) + np.tril(P, -1).T
    P /= -np.diag(P)
    np.fill_diagonal(P, 0)
    return np.ascontiguousarray(P)
