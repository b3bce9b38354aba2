"""What a fit leaves to be checked: what it was given, and what a check repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .._backend.dispatch import padded
from .._common.arrays import Array, Matrix
from .._data.border import check_data
from .._data.fingerprint import data_fingerprint
from .._data.tensors import check_tensor
from .._solver.build import tensor_relations
from .._solver.loop import Optimality
from .._solver.losses import loss_named
from .._solver.problem import Problem
from .._solver.result import Factorization, Receipt, TensorFactorization, fingerprints, parts_of
from .represent import problem_at

WEIGHTS = ("supervision_weight", "feature_weight")
_LOSSES = ("loss", "supervision_loss")
_OF_DATA = ("y", "X_weights", "y_weights", "feature_labels", "penalties")
_KNOWN = ("S_support", "A_support", "covariates", "fixed_components")
_SHAKEN = 4  # units in the last place
_LOST = 1e-15  # of the largest pull

INPUTS = (*_OF_DATA, *_KNOWN)


@dataclass(frozen=True)
class Recomputed:
    """The values of a receipt, computed from the factors of a result and the data.

    `scale` is what the data pull at the factors, in the units of the objective, to which rounding
    is relative; `shaken` is how far the objective and the residuals move where all factors are
    rounded in another way.  A factor is `lost` where it is so small that next to nothing pulls.
    """

    objective: float
    residuals: dict[str, float]
    scale: float
    shaken: tuple[float, float]
    lost: frozenset[str]


@dataclass(frozen=True)
class Check:
    """A result with its receipt, fingerprints of data and inputs, and how to recompute it."""

    receipt: Receipt
    parts: dict[str, str]
    attributes: Mapping[str, Any]  # attributes of the result that the receipt has, too
    data: str
    inputs: dict[str, str]
    recompute: Callable[[], Recomputed]


def parts_of_result(result: Factorization | TensorFactorization) -> dict[str, Array | None]:
    """Return the arrays of a result by name."""
    if isinstance(result, Factorization):
        return {name: getattr(result, name) for name in "SABC"}
    found = {f"factors[{k}]": F for k, F in enumerate(result.factors)}
    found |= {f"label_components[{k}]": B for k, B in result.label_components.items()}
    return {"weights": result.weights[None], **found}


def factorization_check(
    result: Factorization, X: Matrix, inputs: Mapping[str, Any], threads: int, constant: float = 0.0
) -> Check:
    """Return the check of a factorization that has a receipt; `inputs` are those of the fit.

    A constant may have been added to the objective of :func:`factorize`.
    """
    receipt = result.receipt
    assert receipt is not None
    clean = check_data(X, threads, result.A.dtype)
    names = ("objective", "n_iter", "converged", *WEIGHTS)
    own = {name: getattr(result, name) for name in names} | {"dtype": str(result.A.dtype)}
    return Check(
        receipt=receipt,
        parts=parts_of(parts_of_result(result), result.objective, threads),
        attributes=own,
        data=data_fingerprint(clean, threads),
        inputs=fingerprints(inputs),
        recompute=lambda: _at_factors(result, clean, inputs, threads, constant),
    )


def _at_factors(
    result: Factorization, X: Matrix, inputs: Mapping[str, Any], threads: int, constant: float
) -> Recomputed:
    receipt = result.receipt
    assert receipt is not None
    settings = receipt.settings
    given = {name: settings[name] for name in _LOSSES}
    given |= {name: settings[name] or 0.0 for name in WEIGHTS}
    given |= {name: inputs.get(name) for name in INPUTS}
    problem, moves = problem_at(X, parts_of_result(result), threads=threads, **given)
    found = recomputed(problem, Optimality(problem, moves, zeros_stay(receipt)))
    return replace(found, objective=found.objective + constant)


def recomputed(problem: Problem, seen: Optimality) -> Recomputed:
    """Return the objective and the residuals of a problem."""
    measured, objective = seen.measured(), problem.objective()
    most = max(pull for _, pull in measured.values())  # of all losses that a factor meets
    residuals = {name: residual for name, (residual, _) in measured.items()}
    lost = frozenset(name for name, (_, pull) in measured.items() if pull <= _LOST * most)
    _shake(problem)
    moved = max(abs(r - residuals[name]) for name, r in seen.residuals().items())
    shaken = abs(problem.objective() - objective), moved
    return Recomputed(objective, residuals, most, shaken, lost)


def _shake(problem: Problem) -> None:
    """Round all factors differently, in place: in exact arithmetic their residuals would stay."""
    rng = np.random.default_rng(0)
    (first, second, *_), *rest = (relation.names for relation in problem.relations)
    powers = {} if any(problem.penalties.values()) else {first: 1, second: -1}
    for near, far in rest:
        powers[far] = -powers.get(near, 0)
    scales = 1 + rng.random(problem.factors[first].shape[1])
    for name, F in problem.factors.items():
        moved = 1 + _SHAKEN * np.finfo(F.dtype).eps * rng.choice([-1, 1], F.shape)
        F *= (moved * scales ** powers.get(name, 0)).astype(F.dtype)
    problem.forget()


def zeros_stay(receipt: Receipt) -> list[str]:
    """Return the factors whose zeros are those of a given start."""
    return [name for name in receipt.settings["zeros_stay"].split(",") if name]


def receipt_of(
    run: Any,
    factors: Mapping[str, Array | None],
    threads: int,
    *,
    data: str,
    inputs: dict[str, str],
    settings: Mapping[str, Any],
    dtype: npt.DTypeLike,
) -> Receipt:
    """Return the receipt of a run that gave these factors; `data` is the fingerprint of X."""
    return Receipt(
        data=data,
        inputs=inputs,
        settings={name: plain(one) for name, one in settings.items()},
        parts=parts_of(factors, run.objective, threads),
        dtype=str(dtype),
        objective=run.objective[-1][1],
        n_iter=run.n_iter,
        converged=run.converged,
        residuals=run.residuals,
    ).sealed()


def plain(one: object) -> Any:
    """Return a setting as text or a number; of other things, such as a start, that it was given."""
    if one is None or isinstance(one, (str, bool)):
        return one
    if isinstance(one, Integral):
        return int(one)
    return float(one) if isinstance(one, Real) else "given"


TENSOR_INPUTS = ("X_weights", "y", "penalties")


def tensor_check(
    result: TensorFactorization, X: Matrix, inputs: Mapping[str, Any], threads: int
) -> Check:
    """Return the check of a decomposition that has a receipt; `inputs` are those of the fit."""
    receipt = result.receipt
    assert receipt is not None
    if "penalties" in receipt.inputs:
        raise TypeError(
            "a decomposition with penalties cannot be verified: they depend on the sizes of the "
            "columns in each factor, and a result has columns of size 1."
        )
    clean = check_tensor(X, "X", result.weights.dtype)
    names = ("objective", "n_iter", "converged")
    return Check(
        receipt=receipt,
        parts=parts_of(parts_of_result(result), result.objective, threads),
        attributes={name: getattr(result, name) for name in names}
        | {"dtype": str(result.weights.dtype)},
        data=data_fingerprint(clean, threads),
        inputs=fingerprints(inputs),
        recompute=lambda: _at_tensor_factors(result, clean, inputs, threads),
    )


def _at_tensor_factors(
    result: TensorFactorization, X: Matrix, inputs: Mapping[str, Any], threads: int
) -> Recomputed:
    receipt = result.receipt
    assert receipt is not None
    settings = receipt.settings
    of_X, of_Y = (loss_named(settings[name], name) for name in ("loss", "supervision_loss"))
    given = inputs.get("X_weights"), inputs.get("y")
    weight = settings["supervision_weight"]
    related, labeled = tensor_relations(X, *given, (of_X, of_Y), weight, threads)
    lengths = tuple(len(F) for F in result.factors)
    if lengths != tuple(X.shape):
        raise ValueError(f"X has shape {X.shape}, and the factors have {lengths} rows.")
    sizes, labels = _sizes(result), result.label_components
    by_mode = zip(related[0].names, result.factors, sizes, strict=True)
    factors = {name: padded(F * size, X.dtype) for name, F, size in by_mode}
    factors |= {f"B{k}": padded(labels[k].T / sizes[k], X.dtype) for k in labeled}
    problem = Problem(factors, related)
    return recomputed(problem, Optimality(problem, stay=zeros_stay(receipt)))


def _sizes(result: TensorFactorization) -> Array:
    """Return sizes of the columns of the factors: the weight, where labels are smallest."""
    weights, labels = result.weights, result.label_components
    none = np.zeros(len(weights))
    of_labels = [labels[k].max(axis=1) if k in labels else none for k in range(len(result.factors))]
    takes = np.argmin(of_labels, axis=0) == np.arange(len(of_labels))[:, None]
    least = np.finfo(weights.dtype).tiny  # in place of 0, by which labels cannot be divided
    return np.where(takes, np.maximum(weights, least), 1)
