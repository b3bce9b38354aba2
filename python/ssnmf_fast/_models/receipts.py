"""Receipts of fits, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array, Matrix
from .._data.border import by_name, check_data, check_factor, check_matrix, check_real
from .._data.fingerprint import data_fingerprint
from .._data.tensors import check_tensor
from .._solver import build
from .._solver.known import Known, check_penalties
from .._solver.loop import Optimality, Run
from .._solver.losses import name_of
from .._solver.problem import Problem
from .._solver.result import Factorization, Receipt, TensorFactorization, fingerprints, parts_of

WEIGHTS = ("supervision_weight", "feature_weight")
_LOSSES = ("loss", "supervision_loss")
KNOWN = ("S_support", "A_support", "covariates", "fixed_components")
INPUTS = ("y", "X_weights", "y_weights", *KNOWN, "feature_labels", "penalties")
TENSOR_INPUTS = ("X_weights", "y", "penalties")
_SHAKEN = 4  # units in the last place
_LOST = 1e-15  # of the largest pull

Inputs: TypeAlias = Mapping[str, Any]
Result = TypeVar("Result", Factorization, TensorFactorization)


@dataclass(frozen=True)
class Recomputed:
    """The values of a receipt, computed from the factors of a result and the data.

    `scale` is the pull of the data at the factors; `shaken` is the change of objective and
    residuals if all factors are rounded differently.  The pull at `lost` factors is negligible.
    """

    objective: float
    residuals: dict[str, float]
    scale: float
    shaken: tuple[float, float]
    lost: frozenset[str]


@dataclass(frozen=True)
class Check:
    """The receipt of a result, fingerprints of data and inputs, and a function to recompute it."""

    receipt: Receipt
    parts: dict[str, str]
    data: str
    inputs: dict[str, str]
    recompute: Callable[[], Recomputed]


def parts_of_result(result: Factorization | TensorFactorization) -> dict[str, Array | None]:
    """Return the arrays of a result by name."""
    if isinstance(result, Factorization):
        return {name: getattr(result, name) for name in "SABC"}
    parts = {f"factors[{k}]": F for k, F in enumerate(result.factors)}
    parts |= {f"label_components[{k}]": B for k, B in result.label_components.items()}
    return {"weights": result.weights[None], **parts}


def problem_at(X: Matrix, given: Mapping[str, Any], threads: int, **inputs: Any) -> Problem:
    """Return the problem of clean data at given factors; `inputs` are those of `factorize`."""
    weight, of_features = (check_real(inputs[name], name) for name in WEIGHTS)
    losses = inputs["loss"], inputs["supervision_loss"]
    weights = inputs["X_weights"], inputs["y_weights"]
    data, labels = build.terms(X, inputs["y"], *losses, *weights, threads)
    features = build.features_term(inputs["feature_labels"], X, losses[1], threads)
    rank, (n, m) = len(check_matrix(given["A"], "A", allow_nan=False, limited=False)), X.shape
    sides = {"S": (n, rank, "samples x components"), "A": (rank, m, "components x features")}
    if labels is not None:
        sides["B"] = rank, labels.shape[1], "components x labels"
    if features is not None:
        sides["C"] = rank, features.shape[1], "components x labels of features"
    checked: dict[str, Any] = {
        name: check_factor(given[name], name, (rows, columns), X.dtype, of, limited=False)
        for name, (rows, columns, of) in sides.items()
    }
    factors = build.pad_factors(**checked, threads=threads)
    related = build.relations(data, labels, weight, factors, features, of_features)
    lengths = {name: len(F) for name, F in factors.items()}
    penalized = check_penalties(inputs["penalties"], lengths, X.shape, rank)
    return Problem(factors, related, penalties=penalized)


def _check(
    result: Factorization | TensorFactorization,
    X: Any,
    inputs: Inputs,
    threads: int,
    recompute: Callable[[], Recomputed],
) -> Check:
    assert result.receipt is not None
    parts = parts_of(parts_of_result(result), result.objective, threads)
    seen = data_fingerprint(X, threads), fingerprints(inputs)
    return Check(result.receipt, parts, *seen, recompute)


def factorization_check(
    result: Factorization, X: Matrix, inputs: Inputs, threads: int, constant: float = 0.0
) -> Check:
    """Return the check of a factorization; `constant` has been added to its objective."""
    receipt, clean = result.receipt, check_data(X, threads, result.A.dtype)
    inputs = by_name(X, **inputs)

    def recompute() -> Recomputed:
        assert receipt is not None
        arguments = {name: receipt.settings[name] for name in _LOSSES}
        arguments |= {name: receipt.settings[name] or 0.0 for name in WEIGHTS}
        arguments |= {name: inputs.get(name) for name in INPUTS}
        known = {name: arguments.pop(name) for name in KNOWN}
        problem = problem_at(clean, parts_of_result(result), threads, **arguments)
        moves = Known.of(clean.shape, len(result.A), clean.dtype, **known).moves(problem.factors)
        numbers = recomputed(problem, Optimality(problem, moves, zeros_stay(receipt)))
        return replace(numbers, objective=numbers.objective + constant)

    return _check(result, clean, inputs, threads, recompute)


def recomputed(problem: Problem, seen: Optimality) -> Recomputed:
    """Return the objective and the residuals of a problem."""
    measured, objective = seen.measured(), problem.objective()
    most = max(pull for _, pull in measured.values())  # of all losses that a factor meets
    residuals = {name: residual for name, (residual, _) in measured.items()}
    lost = frozenset(name for name, (_, pull) in measured.items() if pull <= _LOST * most)
    # Change the rounding of all factors; in exact arithmetic, residuals would stay the same.
    rng = np.random.default_rng(0)
    (first, second, *_), *rest = (relation.names for relation in problem.relations)
    powers = {} if any(problem.penalties.values()) else {first: 1, second: -1}
    for near, far in rest:
        powers[far] = -powers.get(near, 0)
    scales = 1 + rng.random(problem.factors[first].shape[1])
    for name, F in problem.factors.items():
        change = 1 + _SHAKEN * np.finfo(F.dtype).eps * rng.choice([-1, 1], F.shape)
        F *= (change * scales ** powers.get(name, 0)).astype(F.dtype)
    problem.forget()
    apart = max(abs(r - residuals[name]) for name, r in seen.residuals().items())
    shaken = abs(problem.objective() - objective), apart
    return Recomputed(objective, residuals, most, shaken, lost)


def zeros_stay(receipt: Receipt) -> list[str]:
    """Return the names of factors with the zeros of a given start."""
    return [name for name in receipt.settings["zeros_stay"].split(",") if name]


def with_receipt(
    result: Result, run: Run, threads: int, data: str, inputs: dict[str, str], settings: Inputs
) -> Result:
    """Return the result of a run with its receipt; `data` is the fingerprint of X."""
    parts = parts_of_result(result)
    weights = {name: getattr(result, name) for name in WEIGHTS if hasattr(result, name)}
    receipt = Receipt(
        data=data,
        inputs=inputs,
        settings={name: plain(value) for name, value in {**settings, **weights}.items()},
        parts=parts_of(parts, run.objective, threads),
        dtype=str(next(F.dtype for F in parts.values() if F is not None)),
        objective=run.objective[-1][1],
        n_iter=run.n_iter,
        converged=run.converged,
        residuals=run.residuals,
    ).sealed()
    return replace(result, receipt=receipt)


def plain(one: object) -> Any:
    """Return a setting as text or a number; "given" for others, such as arrays of a start."""
    one = name_of(one)
    if one is None or isinstance(one, (str, bool)) or type(one) in (int, float):
        return one
    if isinstance(one, Integral):
        return int(one)
    return float(one) if isinstance(one, Real) else "given"


def tensor_check(result: TensorFactorization, X: Matrix, inputs: Inputs, threads: int) -> Check:
    """Return the check of a decomposition with a receipt; `inputs` are those of the fit."""
    receipt, clean = result.receipt, check_tensor(X, "X", result.weights.dtype)
    assert receipt is not None
    if "penalties" in receipt.inputs:
        raise TypeError(
            "a decomposition with penalties cannot be verified: they depend on the sizes of the "
            "columns of each factor, but a result has columns of size 1."
        )

    def recompute() -> Recomputed:
        losses = [receipt.settings[name] for name in _LOSSES]
        arguments = inputs.get("X_weights"), inputs.get("y")
        weight = receipt.settings["supervision_weight"]
        related, labeled = build.tensor_relations(clean, *arguments, losses, weight, threads)
        lengths = tuple(len(F) for F in result.factors)
        if lengths != tuple(clean.shape):
            raise ValueError(f"X has shape {clean.shape}, but the factors have {lengths} rows.")
        # The factor with the smallest labels takes the weight as the size of its columns.
        weights, labels = result.weights, result.label_components
        none = np.zeros(len(weights))
        largest = [labels[k].max(axis=1) if k in labels else none for k in range(len(lengths))]
        takes = np.argmin(largest, axis=0) == np.arange(len(lengths))[:, None]
        least = np.finfo(weights.dtype).tiny  # instead of 0, because labels are divided by it
        sizes = np.where(takes, np.maximum(weights, least), 1)
        by_mode = zip(related[0].names, result.factors, sizes, strict=True)
        factors = {name: padded(F * size, clean.dtype) for name, F, size in by_mode}
        factors |= {f"B{k}": padded(labels[k].T / sizes[k], clean.dtype) for k in labeled}
        problem = Problem(factors, related)
        return recomputed(problem, Optimality(problem, stay=zeros_stay(receipt)))

    return _check(result, clean, inputs, threads, recompute)
