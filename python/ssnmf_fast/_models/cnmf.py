"""Samples that share one row of the representation become one sample, their weighted mean.

The sum of ``w_i d(x_i, z)`` over the samples of a group is ``w d(x, z)`` plus a constant, with w
the sum of the weights and x the weighted mean, for both losses: the model of Liu and Wu is a
smaller weighted factorization, with the same updates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._solver.beta_divergences import loss_named
from .._solver.weights import as_weights


@dataclass(frozen=True)
class Collapsed:
    """Data with one row for each group, their weights, and the constant left out of the loss."""

    X: Any
    X_weights: Any
    constant: float


def collapse(X: Any, groups: Array, n_groups: int, X_weights: Any, loss: Any) -> Collapsed:
    """Collapse the rows of `X` (of :func:`check_matrix`) by groups; 0 ... n_groups - 1 all occur.

    Raises ValueError for ``weights.missing``, whose sums over groups are not sparse.
    """
    n = X.shape[0]
    G = sp.csr_array((np.ones(n, dtype=X.dtype), (groups, np.arange(n))), shape=(n_groups, n))
    weights = as_weights(X_weights, "X_weights")
    return Collapsed(*weights.grouped(X, G, loss_named(loss, "loss"), "X_weights"))
