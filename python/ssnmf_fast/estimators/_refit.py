"""B fitted to representations that do not know the labels."""

from __future__ import annotations

import numpy as np

from .._common.arrays import Array
from .._models.represent import represent


def refitted(S: Array, Y: Array, entry_weights: Array | None, loss: str) -> Array:
    """Return B (r, k) that minimises sum L .* d(Y, S B) with S fixed: a convex problem.

    Parameters
    ----------
    S : ndarray, shape (n, r)
        Representations of labelled samples, computed without their labels.
    Y : ndarray, shape (n, k)
        Their targets.
    entry_weights : ndarray, shape (n, k), optional
        L, at least 0.
    loss : {"frobenius", "kullback-leibler"}
    """
    weights = None if entry_weights is None or (entry_weights == 1).all() else entry_weights.T
    B = represent(
        np.ascontiguousarray(Y.T, dtype=S.dtype),
        np.ascontiguousarray(S.T),
        loss=loss,
        X_weights=None if weights is None else np.ascontiguousarray(weights),
    )
    return np.ascontiguousarray(B.T)
