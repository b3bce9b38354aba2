"""Receipts of fits; see :mod:`ssnmf_fast._solver.receipt`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

from .._data.csr_file import check_data
from .._data.fingerprint import data_fingerprint
from .._solver.optimality import Measured, Optimality
from .._solver.receipt import Receipt, Settings, fingerprints, parts_of
from .._solver.result import Factorization
from .._solver.units import exponent_of, scaled
from .at_factors import problem_at

FACTORS = ("S", "A", "B", "C")
_WEIGHTS = ("supervision_weight", "feature_weight")
_LOSSES = ("loss", "supervision_loss")
_OF_DATA = ("Y", "X_weights", "Y_weights", "feature_labels", "penalties")
_KNOWN = ("S_support", "A_support", "S_fixed", "A_fixed")
INPUTS = (*_OF_DATA, *_KNOWN)


@dataclass(frozen=True)
class Recomputed:
    """What a receipt claims of a result, computed from its factors and the data.

    `scale` is what the data pull at the factors, in the units of the objective, to which rounding
    is relative.
    """

    objective: float
    measured: dict[str, Measured]
    scale: float


@dataclass(frozen=True)
class Claim:
    """A result with its receipt, the data from which it is said to be, and how to compute it anew.

    Inputs that are `untold` cannot be compared.
    """

    receipt: Receipt
    parts: dict[str, str]
    attributes: Mapping[str, Any]  # what the result itself says of its fit
    data: str
    inputs: dict[str, str]
    recompute: Callable[[], Recomputed]
    settings: Mapping[str, Any] = field(default_factory=dict)
    untold: tuple[str, ...] = ()


def claim_of(
    result: Factorization, X: Any, inputs: Mapping[str, Any], threads: int, **more: Any
) -> Claim:
    """Return the claim of a factorization that has a receipt; `inputs` are those of the fit."""
    assert result.receipt is not None
    factors = {name: getattr(result, name) for name in FACTORS}
    clean = check_data(X, threads)
    names = ("objective", "n_iter", "converged", *_WEIGHTS)
    return Claim(
        receipt=result.receipt,
        parts=parts_of(factors, result.objective, threads),
        attributes={name: getattr(result, name) for name in names} | {"dtype": str(result.A.dtype)},
        data=fingerprint_in_range(clean, threads),
        inputs=fingerprints(inputs),
        recompute=lambda: _recomputed(factors, result.receipt, X, inputs, threads),
        **more,
    )


def _recomputed(
    factors: Mapping[str, Any], receipt: Any, X: Any, inputs: Mapping[str, Any], threads: int
) -> Recomputed:
    settings = receipt.settings
    weights = {name: settings[name] or 0.0 for name in _WEIGHTS}
    given = {name: settings[name] for name in _LOSSES} | weights
    at = problem_at(X, factors, threads=threads, **dict.fromkeys(INPUTS) | dict(inputs), **given)
    stay = [name for name in settings["zeros_stay"].split(",") if name]
    measured = Optimality(at.problem, at.moves, stay).measured()
    return Recomputed(at.objective(), measured, at.units.value(measured["S"].pull))


def fingerprint_in_range(X: Any, threads: int) -> str:
    """Return the fingerprint of clean data as a fit takes it, which brings it into the range."""
    exponent = exponent_of(X, "X")
    return data_fingerprint(scaled(scaled(X, -exponent), exponent), threads)


def with_receipt(
    result: Factorization,
    X: Any,
    residuals: dict[str, float],
    settings: Mapping[str, Any],
    inputs: Mapping[str, Any],
    threads: int,
) -> Factorization:
    """Return a result with its receipt; X is clean, in the units of the user."""
    weights = {name: getattr(result, name) for name in _WEIGHTS}
    factors = {name: getattr(result, name) for name in FACTORS}
    receipt = Receipt(
        data=data_fingerprint(X, threads),
        inputs=fingerprints(inputs),
        settings=plain_settings({**settings, **weights}),
        parts=parts_of(factors, result.objective, threads),
        dtype=str(result.A.dtype),
        objective=result.objective[-1][1],
        n_iter=result.n_iter,
        converged=result.converged,
        residuals=residuals,
    )
    return replace(result, receipt=receipt.sealed())


def plain_settings(given: Mapping[str, Any]) -> Settings:
    """Return settings as text and numbers; of other things, such as a start, that it was given."""
    return {name: _plain(one) for name, one in given.items()}


def _plain(one: Any) -> Any:
    if one is None or isinstance(one, (str, bool)):
        return one
    if isinstance(one, Integral):
        return int(one)
    return float(one) if isinstance(one, Real) else "given"
