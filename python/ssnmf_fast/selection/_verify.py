"""What differs between a receipt and what is computed of a result and its data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._backend.dispatch import LEVELS
from .._common.text import short
from .._data.tensors import TensorLike
from .._data.threads import resolve_threads
from .._models.receipts import (
    INPUTS,
    TENSOR_INPUTS,
    Check,
    Recomputed,
    factorization_check,
    tensor_check,
)
from .._solver.result import Factorization, History, Receipt, TensorFactorization

Compared = tuple[str, str, str]  # a name, and values as recorded and as computed

# How far values may be apart: shares of the larger one and of what the data pull at the factors,
# and residuals, which are shares themselves.  Levels of the kernels round differently: by less than
# a tenth of this for float32, and a hundredth for float64 (see docs/guide/trust.md).
_OF_VALUE = {"float64": 1e-10, "float32": 1e-5}
_OF_SCALE = {"float64": 1e-13, "float32": 1e-6}
_OF_RESIDUAL = {"float64": 1e-12, "float32": 2e-6}
_SHAKES = 4  # of values whose factors are shaken
_ROUNDING = 1e-6  # of the stopping rule, whose values are in other units

_VERSION = re.compile(r"\d+(\.\d+)+[a-z0-9.+-]*")


def compare(check: Check) -> tuple[list[str], list[Compared]]:
    """Return what differs, a sentence each, and what was compared."""
    receipt, table = check.receipt, [("X", check.receipt.data, check.data)]
    found = [*_of_receipt(receipt), *_of_parts(receipt, check.parts), *_of_history(check)]
    if check.data != receipt.data:
        found.insert(0, "X is not the one of the fit.")
    found += _of_inputs(check)
    try:
        now = check.recompute()
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        found.append(f"The objective cannot be computed of these: {error}")
        return found, table
    values, rows = _of_values(receipt, now)
    return found + values, table + rows


def _of_receipt(receipt: Receipt) -> list[str]:
    found = []
    if receipt.seal != receipt.expected_seal():
        found.append("The receipt has been changed: its seal is that of another one.")
    if not _VERSION.fullmatch(receipt.version):
        found.append(f"The receipt has {receipt.version!r:.50} for a version of the library.")
    if receipt.level not in LEVELS:
        found.append(f"The receipt has {receipt.level!r:.50} for a level of the kernels.")
    if receipt.dtype not in _OF_VALUE:
        found.append(f"The receipt has {receipt.dtype!r:.50} for a dtype.")
    return found


def _of_parts(receipt: Receipt, parts: Mapping[str, str]) -> list[str]:
    names = {"objective": "The history of the objective"}
    changed = [name for name, one in parts.items() if receipt.parts.get(name) != one]
    missing = sorted(set(receipt.parts) - set(parts))
    found = [f"{names.get(name, name)} is not the one of the fit." for name in changed]
    return found + [f"{names.get(name, name)} is missing." for name in missing]


def _of_history(check: Check) -> list[str]:
    """Return what is wrong about the way that the fit says it went."""
    receipt, own = check.receipt, check.attributes
    found = []
    recorded = {**vars(receipt), **receipt.settings}
    for name, one in own.items():
        if name != "objective" and one != recorded.get(name):
            found.append(f"{name} is {short(one)}, and was {short(recorded.get(name))} in the fit.")
    history = own["objective"]
    last = tuple(history[-1]) if history else None
    if last != (receipt.n_iter, receipt.objective):
        found.append("The last value of the objective is not that of the receipt.")
    max_iter = receipt.settings.get("max_iter")
    if not isinstance(max_iter, int) or receipt.n_iter > max_iter:
        found.append(f"There were {receipt.n_iter} iterations, and max_iter is {max_iter}.")
    if receipt.converged and not _met(history, receipt.settings.get("tol")):
        found.append("The objective still fell by more than tol: the fit had not converged.")
    return found


def _met(history: History, tol: object) -> bool:
    """Whether the stopping rule may have been met at the end of a history."""
    if len(history) < 2 or not isinstance(tol, (int, float)) or not tol > 0:
        return False
    (_, first), (before, high), (iteration, low) = history[0], history[-2], history[-1]
    return bool(high - low <= (1 + _ROUNDING) * tol * (iteration - before) * abs(first))


def _of_inputs(check: Check) -> list[str]:
    recorded, found = check.receipt.inputs, []
    for name in sorted({*recorded, *check.inputs}):
        if name not in check.inputs:
            found.append(f"The fit was given {name}, which are not given here.")
        elif name not in recorded:
            found.append(f"The fit was given no {name}.")
        elif recorded[name] != check.inputs[name]:
            found.append(f"{name} are not those of the fit.")
    return found


def _of_values(receipt: Receipt, now: Recomputed) -> tuple[list[str], list[Compared]]:
    found, dtype = [], receipt.dtype if receipt.dtype in _OF_VALUE else "float64"
    table = [("objective", _shown(receipt.objective), _shown(now.objective))]
    allowed = _OF_VALUE[dtype] * max(abs(receipt.objective), abs(now.objective))
    allowed += _OF_SCALE[dtype] * now.scale + _SHAKES * now.shaken[0]
    if not _near(receipt.objective, now.objective, allowed):
        found.append(f"The objective is {_shown(now.objective)}, not {_shown(receipt.objective)}.")
    for name in sorted({*receipt.residuals, *now.residuals}):
        recorded = receipt.residuals.get(name, math.nan)
        computed = now.residuals.get(name, math.nan)
        table.append((f"residual of {name}", f"{recorded:.6g}", f"{computed:.6g}"))
        allowed = _OF_RESIDUAL[dtype] * max(1.0, recorded) + _SHAKES * now.shaken[1]
        if name not in now.lost and not _near(recorded, computed, allowed):
            found.append(f"The residual of {name} is {computed:.6g}, not {recorded:.6g}.")
    return found, table


def _near(a: float, b: float, allowed: float) -> bool:
    return abs(a - b) <= allowed  # false for NaN


def _shown(value: float) -> str:
    return f"{value:.10g}"


@dataclass(frozen=True)
class Verification:
    """Whether a result is what its receipt says; it is true if so.

    Attributes
    ----------
    ok : bool
        Whether nothing differs.
    differences : list of str
        What differs, a sentence each.
    table : list of (str, str, str)
        Names of what was compared, and values as recorded and as computed now.
    """

    differences: list[str]
    table: list[Compared]

    @property
    def ok(self) -> bool:
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        lines = ["The result is what its receipt says."]
        if not self.ok:
            lines = ["The result is not what its receipt says of it and of these data:"]
            lines += [f"  - {sentence}" for sentence in self.differences]
        rows = [("", "recorded", "computed"), *self.table]
        names, values = (max(len(row[k]) for row in rows) for k in (0, 1))
        lines += [f"  {name:<{names}}  {old:<{values}}  {new}" for name, old, new in rows]
        return "\n".join(lines if self.table else lines[: -len(rows)])


def verify(
    result: Factorization | TensorFactorization | BaseEstimator,
    X: TensorLike,
    y: npt.ArrayLike | Mapping[int, npt.ArrayLike] | None = None,
    *,
    n_threads: int | None = None,
    **inputs: object,
) -> Verification:
    """Check a result against its receipt and its data.

    The fingerprints of the data, of the other inputs of the fit and of the factors are compared
    with those of the receipt.  The objective and the residuals of the optimality conditions are
    recomputed, in about the time of an iteration.

    Parameters
    ----------
    result : Factorization, TensorFactorization or fitted estimator
        As a fit returned it, or :func:`load`.  Of an estimator the `factorization_` is verified.
    X, y
        The data and the labels or targets of the fit, if it had some.
    n_threads : int, optional
        Number of threads; it does not change the outcome.
    **inputs
        The other arguments of the fit by name: weights, supports, fixed components, penalties,
        labels of features.  Parameters of an estimator are only needed if its file does not keep
        them: those that are neither text nor numbers.

    Returns
    -------
    Verification
        True if nothing differs; print it to see the differences.

    Raises
    ------
    TypeError
        For a result that cannot be verified, or arguments that its fit does not have.
    ValueError
        For bad data.

    Notes
    -----
    A receipt is not a signature: those who know this library can change a result and write a
    receipt for it, but not for factors that are no optimum of these data.  See the user guide for
    the tolerances.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> fit = sf.factorize(X, n_components=3, random_state=0)
    >>> bool(sf.verify(fit, X))
    True
    >>> X[0, 0] += 1
    >>> sf.verify(fit, X).differences[0]
    'X is not the one of the fit.'
    """
    check = _receipt_check(result, X, y, inputs, resolve_threads(n_threads))
    if check is None:
        return Verification([f"This {type(result).__name__} has no receipt of its fit."], [])
    return Verification(*compare(check))


def _receipt_check(
    result: Factorization | TensorFactorization | BaseEstimator,
    X: TensorLike,
    y: npt.ArrayLike | Mapping[int, npt.ArrayLike] | None,
    inputs: dict[str, Any],
    threads: int,
) -> Check | None:
    """Return the check of a result; None without a receipt."""
    if isinstance(result, BaseEstimator):
        return _check_of_estimator(result, X, y, inputs, threads)
    if not isinstance(result, (Factorization, TensorFactorization)):
        raise TypeError(
            f"verify is not available for {type(result).__name__}; expected a Factorization, a "
            "TensorFactorization or a fitted estimator."
        )
    known = INPUTS if isinstance(result, Factorization) else TENSOR_INPUTS
    unknown = sorted(set(inputs) - set(known))
    if unknown:
        raise TypeError(
            f"the fit has no argument {short(unknown[0])}; valid arguments are {', '.join(known)}."
        )
    if result.receipt is None:
        return None
    if isinstance(result, Factorization):
        return factorization_check(result, X, {"y": y, **inputs}, threads)
    return tensor_check(result, X, inputs if y is None else {"y": y, **inputs}, threads)


def _check_of_estimator(
    model: BaseEstimator, X: TensorLike, y: object, inputs: dict[str, Any], threads: int
) -> Check | None:
    """Return the check of the factorization of an estimator; None without a receipt."""
    name = type(model).__name__
    if not getattr(model, "_verifiable", False):
        raise TypeError(f"verify is not available for {name}: it keeps no receipt of its fit.")
    check_is_fitted(model)
    arguments = signature(model.fit).parameters.keys() - {"X", "y"}
    parameters = model.get_params(deep=False).keys()
    unknown = sorted(inputs.keys() - arguments - parameters)
    if unknown:
        raise TypeError(
            f"{name}.fit has no argument {unknown[0]!r}; valid arguments are "
            f"{', '.join(sorted(arguments))}, and the parameters of the estimator."
        )
    if not hasattr(model, "receipt_"):
        return None
    model = copy(model)  # parameters that files do not keep are given again
    for key in inputs.keys() & parameters:
        setattr(model, key, inputs[key])
    of_fit = {key: value for key, value in inputs.items() if key in arguments}
    check: Check = model._check_of(X, y, of_fit, threads)
    return check
