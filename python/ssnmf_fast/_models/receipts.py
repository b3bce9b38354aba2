"""Receipts of fits; see :mod:`ssnmf_fast._solver.receipt`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from .._data.fingerprint import data_fingerprint
from .._solver.receipt import Receipt, Settings, fingerprints, parts_of
from .._solver.result import Factorization

FACTORS = ("S", "A", "B", "C")
_WEIGHTS = ("supervision_weight", "feature_weight")


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
    receipt = Receipt(
        data=data_fingerprint(X, threads),
        inputs=fingerprints(inputs),
        settings=plain_settings({**settings, **weights}),
        parts=parts_of({name: getattr(result, name) for name in FACTORS}, result.objective),
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
