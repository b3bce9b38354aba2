"""CP models of tensors in the forms in which callers have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_factor, check_vector
from .._data.tensors import depth
from .._solver.starts import given_factors


def check_cp_model(model: Any, name: str) -> tuple[Array, list[Array]]:
    """Return the weights of the components, or ones, and a factor for each mode; float64."""
    if hasattr(model, "factors_") and hasattr(model, "weights_"):  # a fitted estimator
        model = model.weights_, list(model.factors_)
    parts = given_factors(model)
    if parts is None or len(parts[1]) == 0:
        raise TypeError(
            f"{name} is a {type(model).__name__}; expected a TensorFactorization, a pair of "
            "weights and factors, or a sequence with a factor for each mode."
        )
    given_weights, given = parts
    rank = np.shape(given[0])[1] if depth(given[0]) == 2 else 0
    if rank == 0:
        raise ValueError(f"{name}[0] must be a matrix with a column for each component.")
    weights = np.ones(rank)
    if given_weights is not None:
        title = f"weights of {name}"
        weights = check_vector(given_weights, title, rank, np.float64, limited=False)
    factors = []
    for mode, factor in enumerate(given):
        rows = len(factor) if depth(factor) == 2 else 0
        of = (rows, rank), np.float64, "length of the mode x components"
        factors.append(check_factor(factor, f"{name}[{mode}]", *of, limited=False))
    return weights, factors
