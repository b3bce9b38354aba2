"""Receipts of decompositions of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.tensor_checks import check_tensor
from .._data.tensors import SparseTensor
from .._solver.beta_divergences import loss_named
from .._solver.optimality import Optimality
from .._solver.problem import Problem
from .._solver.receipt import fingerprints, parts_of
from .._solver.result import TensorFactorization
from .receipts import Claim, Recomputed, fingerprint_in_range, recomputed, zeros_stay
from .tensor_terms import terms_of_tensor

TENSOR_INPUTS = ("X_weights", "labels", "penalties")


def parts_of_tensor(result: TensorFactorization) -> dict[str, Array | None]:
    """Return the arrays of a decomposition by name."""
    found = {f"factors[{k}]": F for k, F in enumerate(result.factors)}
    found |= {f"label_components[{k}]": B for k, B in result.label_components.items()}
    return {"weights": result.weights[None], **found}


def claim_of_tensor(
    result: TensorFactorization, X: Any, inputs: Mapping[str, Any], threads: int
) -> Claim:
    """Return the claim of a decomposition that has a receipt; `inputs` are those of the fit."""
    receipt = result.receipt
    assert receipt is not None
    if "penalties" in receipt.inputs:
        raise TypeError(
            "a decomposition with penalties cannot be verified: they depend on the sizes of the "
            "columns in each factor, and a result has columns of size 1."
        )
    names = ("objective", "n_iter", "converged")
    return Claim(
        receipt=receipt,
        parts=parts_of(parts_of_tensor(result), result.objective, threads),
        attributes={name: getattr(result, name) for name in names}
        | {"dtype": str(result.weights.dtype)},
        data=fingerprint_in_range(check_tensor(X, "X", result.weights.dtype), threads),
        inputs=fingerprints(inputs),
        recompute=lambda: _recomputed(result, X, inputs, threads),
    )


def _recomputed(
    result: TensorFactorization, X: Any, inputs: Mapping[str, Any], threads: int
) -> Recomputed:
    receipt = result.receipt
    assert receipt is not None
    settings = receipt.settings
    of_X, of_Y = (loss_named(settings[name], name) for name in ("loss", "supervision_loss"))
    given = inputs.get("X_weights"), inputs.get("labels")
    X = check_tensor(X, "X", result.weights.dtype)
    parts = (X.at.places, X.values, X.shape) if isinstance(X, SparseTensor) else X
    terms = terms_of_tensor(parts, *given, (of_X, of_Y), settings["supervision_weight"], threads)
    units, names, dtype = terms.units, terms.relations[0].names, terms.X.dtype
    if [len(F) for F in result.factors] != [*terms.X.shape]:
        lengths = tuple(len(F) for F in result.factors)
        raise ValueError(f"X has shape {terms.X.shape}, and the factors have {lengths} rows.")
    weights = np.ldexp(result.weights, -units.x)
    first, *others = result.factors
    by_mode = zip(names, [first * weights, *others], strict=True)
    factors = {name: padded(F, dtype) for name, F in by_mode}
    for k in terms.labels:
        B = result.label_components[k].T
        factors[f"B{k}"] = padded(_divided(B, weights) if k == 0 else B, dtype)
    problem = Problem(factors, terms.relations)
    return recomputed(problem, units, Optimality(problem, stay=zeros_stay(receipt)))


def _divided(B: Array, weights: Array) -> Array:
    """Return columns over weights, and 0 where these are."""
    return np.divide(B, weights, out=np.zeros_like(B), where=weights > 0)
