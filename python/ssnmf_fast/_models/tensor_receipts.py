"""Receipts of decompositions of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.tensors import SparseTensor, check_tensor
from .._solver.loop import Optimality
from .._solver.losses import loss_named
from .._solver.problem import Problem
from .._solver.result import TensorFactorization, fingerprints, parts_of
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
    sizes, labels = _sizes(result, -units.x), result.label_components
    by_mode = zip(names, result.factors, sizes, strict=True)
    factors = {name: padded(F * size, dtype) for name, F, size in by_mode}
    factors |= {f"B{k}": padded(labels[k].T / sizes[k], dtype) for k in terms.labels}
    problem = Problem(factors, terms.relations)
    return recomputed(problem, units, Optimality(problem, stay=zeros_stay(receipt)))


def _sizes(result: TensorFactorization, exponent: int) -> Array:
    """Return a size for the columns of each factor: their product is the weight times 2^exponent.

    The mode takes it whose labels have least of the component.  That is one with a column of zeros
    where the weight is 0, so that the other modes keep what their labels have of it.
    """
    weights, labels = result.weights, result.label_components
    none = np.zeros(len(weights))
    of_labels = [labels[k].max(axis=1) if k in labels else none for k in range(len(result.factors))]
    takes = np.argmin(of_labels, axis=0) == np.arange(len(of_labels))[:, None]
    least = np.finfo(weights.dtype).tiny  # in place of 0, by which labels cannot be divided
    return np.where(takes, np.maximum(np.ldexp(weights, exponent), least), 1)
