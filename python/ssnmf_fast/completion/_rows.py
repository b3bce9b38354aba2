"""New rows over the components of a completion."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels, padded, padded_zeros
from .._common.arrays import Array
from .._data.threads import resolve_threads
from ._biases import BIAS_RIDGE
from ._options import exponent_of
from ._result import Completion
from ._schedule import ridge

_LEAST_RIDGE = 1e-10  # rows with fewer entries than components take the shortest solution


def rows_ridge(completion: Completion, p: float | None, method: str) -> Array:
    """Penalties of the components in the least squares of a row (thesis (2.6))."""
    singular, gamma = completion.singular_values / completion.scale, max(completion.gamma, 1e-30)
    penalties = ridge(singular, gamma, exponent_of(p, method))
    return np.asarray(np.maximum(penalties, _LEAST_RIDGE))


def fitted_rows(
    entries: sp.csr_array, components: Array, penalties: Array, biases: bool, n_threads: Any
) -> Array:
    """The model of rows of which some entries are known, dense."""
    threads = resolve_threads(n_threads)
    G = components.T
    if biases:
        G = np.column_stack([G, np.ones(len(G), dtype=G.dtype)])
        penalties = np.append(penalties, BIAS_RIDGE)
    stored = padded(G, G.dtype)
    F = padded_zeros(entries.shape[0], G.shape[1], G.dtype)
    kernels.ridge_rows(
        entries.indptr,
        entries.indices,
        entries.data.astype(G.dtype, copy=False),
        stored,
        np.ascontiguousarray(penalties, dtype=np.float64),
        F,
        threads,
    )
    return np.asarray(F @ stored.T)
