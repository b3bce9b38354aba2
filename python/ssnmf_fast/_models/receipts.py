"""What a fit leaves to be checked: what it was given, and what a check repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._data.csr_file import check_data
from .._data.fingerprint import data_fingerprint
from .._data.tensors import SparseTensor, check_tensor
from .._solver.loop import Optimality
from .._solver.losses import loss_named
from .._solver.problem import Problem
from .._solver.result import Factorization, Receipt, TensorFactorization, fingerprints, parts_of
from .._solver.units import Units, exponent_of, scaled
from .represent import problem_at, terms_of_tensor

FACTORS = ("S", "A", "B", "C")
_WEIGHTS = ("supervision_weight", "feature_weight")
_LOSSES = ("loss", "supervision_loss")
_OF_DATA = ("Y", "X_weights", "Y_weights", "feature_labels", "penalties")
_KNOWN = ("S_support", "A_support", "S_fixed", "A_fixed")
_SHAKEN = 4  # units in the last place
_LOST = 1e-15  # of the largest pull

INPUTS = (*_OF_DATA, *_KNOWN)


@dataclass(frozen=True)
class Recomputed:
    """What a receipt claims of a result, computed from its factors and the data.

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
class Claim:
    """A result with its receipt, fingerprints of data and inputs, and how to recompute it."""

    receipt: Receipt
    parts: dict[str, str]
    attributes: Mapping[str, Any]  # attributes of the result that the receipt has, too
    data: str
    inputs: dict[str, str]
    recompute: Callable[[], Recomputed]


def factors_of(result: Factorization) -> dict[str, Array | None]:
    """Return the factors of a result by name."""
    return {name: getattr(result, name) for name in FACTORS}


def claim_of(
    result: Factorization,
    X: Any,
    inputs: Mapping[str, Any],
    threads: int,
    constant: float = 0.0,
) -> Claim:
    """Return the claim of a factorization that has a receipt; `inputs` are those of the fit.

    A constant may have been added to the objective of :func:`factorize`.
    """
    receipt = result.receipt
    assert receipt is not None
    clean = check_data(X, threads, result.A.dtype)
    names = ("objective", "n_iter", "converged", *_WEIGHTS)
    own = {name: getattr(result, name) for name in names} | {"dtype": str(result.A.dtype)}
    return Claim(
        receipt=receipt,
        parts=parts_of(factors_of(result), result.objective, threads),
        attributes=own,
        data=fingerprint_in_range(clean, threads),
        inputs=fingerprints(inputs),
        recompute=lambda: _at_factors(result, clean, inputs, threads, constant),
    )


def _at_factors(
    result: Factorization, X: Any, inputs: Mapping[str, Any], threads: int, constant: float
) -> Recomputed:
    receipt = result.receipt
    assert receipt is not None
    settings = receipt.settings
    given = {name: settings[name] for name in _LOSSES}
    given |= {name: settings[name] or 0.0 for name in _WEIGHTS}
    given |= {name: inputs.get(name) for name in INPUTS}
    at = problem_at(CleanMatrix(X), factors_of(result), threads=threads, **given)
    seen = Optimality(at.problem, at.moves, zeros_stay(receipt))
    found = recomputed(at.problem, at.units, seen)
    return replace(found, objective=found.objective + constant)


def recomputed(problem: Problem, units: Units, seen: Optimality) -> Recomputed:
    """Return the objective and the residuals of a problem, in the units of the user."""
    measured, objective = seen.measured(), units.value(problem.objective())
    pull = max(each.pull for each in measured.values())  # of all losses that a factor meets
    residuals = {name: each.residual for name, each in measured.items()}
    lost = frozenset(name for name, each in measured.items() if each.pull <= _LOST * pull)
    _shake(problem)
    moved = max(abs(r - residuals[name]) for name, r in seen.residuals().items())
    shaken = abs(units.value(problem.objective()) - objective), moved
    return Recomputed(objective, residuals, units.value(pull), shaken, lost)


def _shake(problem: Problem) -> None:
    """Round all factors in another way: in exact arithmetic their residuals would stay.

    Their components get another scale, unless penalties see it, and their entries move by a few
    units in the last place.
    """
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


def fingerprint_in_range(X: Any, threads: int) -> str:
    """Return the fingerprint of clean data as a fit takes it, which brings it into the range."""
    exponent = exponent_of(X, "X")
    return data_fingerprint(scaled(scaled(X, -exponent), exponent), threads)


def receipt_of(
    run: Any,
    factors: Mapping[str, Array | None],
    threads: int,
    *,
    data: str,
    inputs: dict[str, str],
    settings: Mapping[str, Any],
    dtype: Any,
    residuals: dict[str, float],
) -> Receipt:
    """Return the receipt of what a run, or a result, says of itself.

    `data` is the fingerprint of X, in the units of the user, and `inputs` those of all else.
    """
    return Receipt(
        data=data,
        inputs=inputs,
        settings={name: plain(one) for name, one in settings.items()},
        parts=parts_of(factors, run.objective, threads),
        dtype=str(dtype),
        objective=run.objective[-1][1],
        n_iter=run.n_iter,
        converged=run.converged,
        residuals=residuals,
    ).sealed()


def plain(one: Any) -> Any:
    """Return a setting as text or a number; of other things, such as a start, that it was given."""
    if one is None or isinstance(one, (str, bool)):
        return one
    if isinstance(one, Integral):
        return int(one)
    return float(one) if isinstance(one, Real) else "given"


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
