"""Function :func:`verify`: a result compared with its receipt and its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from inspect import signature
from math import nan
from typing import Any

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._common.text import short
from .._data.tensors import TensorLike
from .._data.threads import resolve_threads
from .._models import receipts
from .._solver.result import Factorization, Receipt, TensorFactorization

Compared = tuple[str, str, str]  # a name, and values as recorded and as computed

# Tolerances: relative to the larger value, relative to the pull of the data, and for residuals.
# Levels of the kernels differ by less than a tenth of this for float32, and a hundredth for float64
# (see docs/guide/trust.md).
_ALLOWED = {"float64": (1e-10, 1e-13, 1e-10), "float32": (1e-5, 1e-6, 2e-6)}
_SHAKES = 16  # of the effect of rounding on the values, which is small for some draws of it


def _differences(check: receipts.Check) -> list[str]:
    """Compare fingerprints of data, other inputs and the parts of a result with a receipt."""
    receipt = check.receipt
    computed = {"X": check.data, **check.parts, **check.inputs}
    recorded = {"X": receipt.data, **receipt.parts, **receipt.inputs}
    differences = []
    for name in dict.fromkeys([*computed, *recorded]):
        if name in receipt.inputs and name not in computed:
            differences.append(f"The fit was given {name}; give them here, too.")
        elif name in check.inputs and name not in recorded:
            differences.append(f"The fit was not given {name}.")
        elif computed.get(name) != recorded.get(name):
            wrong = "are not those" if name in check.inputs else "is not the one"
            differences.append(f"{name} {wrong} of the fit.")
    if receipt.seal != receipt.expected_seal():
        differences.append("The receipt has been changed: it does not match its seal.")
    return differences


def _compare_values(receipt: Receipt, now: receipts.Recomputed) -> tuple[list[str], list[Compared]]:
    """Return the differences of objective and residuals, and a table of these values."""
    of_value, of_scale, of_residual = _ALLOWED.get(receipt.dtype, _ALLOWED["float64"])
    old, new = receipt.objective, now.objective
    differences, table = [], [("objective", f"{old:.10g}", f"{new:.10g}")]
    allowed = of_value * max(abs(old), abs(new)) + of_scale * now.scale + _SHAKES * now.shaken[0]
    if not abs(old - new) <= allowed:  # also for NaN
        differences.append(f"The objective is {new:.10g}, not {old:.10g}.")
    most = max([1.0, *receipt.residuals.values()])
    for name in sorted({*receipt.residuals, *now.residuals}):
        old, new = receipt.residuals.get(name, nan), now.residuals.get(name, nan)
        table.append((f"residual of {name}", f"{old:.6g}", f"{new:.6g}"))
        allowed = of_residual * most + _SHAKES * now.shaken[1]
        if name not in now.lost and not abs(old - new) <= allowed:
            differences.append(f"The residual of {name} is {new:.6g}, not {old:.6g}.")
    return differences, table


@dataclass(frozen=True)
class Verification:
    """Result of :func:`verify`; its truth value is `ok`.

    Attributes
    ----------
    ok : bool
        Whether the result agrees with its receipt.
    differences : list of str
        The differences, a sentence each.
    table : list of (str, str, str)
        Names of the compared values, the values as recorded, and as computed now.
    """

    differences: list[str]
    table: list[Compared]

    @property
    def ok(self) -> bool:
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        lines = ["The result agrees with its receipt."]
        if not self.ok:
            lines = ["The result does not agree with its receipt and these data:"]
            lines += [f"  - {sentence}" for sentence in self.differences]
        if self.table:
            rows = [("", "recorded", "computed"), *self.table]
            names, values = (max(len(row[k]) for row in rows) for k in (0, 1))
            lines += [f"  {name:<{names}}  {old:<{values}}  {new}" for name, old, new in rows]
        return "\n".join(lines)


def verify(
    result: Factorization | TensorFactorization | BaseEstimator,
    X: TensorLike,
    y: npt.ArrayLike | Mapping[int, npt.ArrayLike] | None = None,
    *,
    n_threads: int | None = None,
    **inputs: object,
) -> Verification:
    """Check a result against its receipt and its data.

    Fingerprints of the data, the other inputs and the factors are compared with the receipt.  The
    objective and the residuals of the optimality conditions are recomputed, in about the time of an
    iteration.

    Parameters
    ----------
    result : Factorization, TensorFactorization or fitted estimator
        Result of a fit or of :func:`load`.  For an estimator, `factorization_` is verified.
    X, y
        The data of the fit, and its labels or targets, if any.
    n_threads : int, optional
        Number of threads; it does not change the outcome.
    **inputs
        Other arguments of the fit by name: weights, supports, fixed components, penalties, labels
        of features.  Parameters of a loaded estimator are needed if they are neither text nor
        numbers, because files do not keep them.

    Returns
    -------
    Verification
        True if the result agrees with its receipt; print it to see the differences.

    Raises
    ------
    TypeError
        For a result that cannot be verified, or arguments that its fit does not have.
    ValueError
        For bad data.

    Notes
    -----
    A receipt is not a signature: the library could be used to write a receipt for a changed result,
    but only if its factors are an optimum for these data.  See the user guide for the tolerances.

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
    threads = resolve_threads(n_threads)
    if isinstance(result, BaseEstimator):
        check = _check_of_estimator(result, X, y, inputs, threads)
    elif isinstance(result, (Factorization, TensorFactorization)):
        matrix = isinstance(result, Factorization)
        names = receipts.INPUTS if matrix else receipts.TENSOR_INPUTS
        _refuse_unknown(inputs, names, "the fit", ", ".join(names))
        of: Any = receipts.factorization_check if matrix else receipts.tensor_check
        check = None if result.receipt is None else of(result, X, {"y": y, **inputs}, threads)
    else:
        expected = "expected a Factorization, a TensorFactorization or a fitted estimator"
        raise TypeError(f"verify is not available for {type(result).__name__}; {expected}.")
    if check is None:
        return Verification([f"This {type(result).__name__} has no receipt of its fit."], [])
    differences, table = _differences(check), [("X", check.receipt.data, check.data)]
    try:
        now = check.recompute()
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        differences.append(f"The objective cannot be computed from these inputs: {error}")
        return Verification(differences, table)
    values, rows = _compare_values(check.receipt, now)
    return Verification(differences + values, table + rows)


def _check_of_estimator(
    model: BaseEstimator, X: TensorLike, y: object, inputs: dict[str, Any], threads: int
) -> receipts.Check | None:
    """Return the check of the factorization of an estimator; None without a receipt."""
    name = type(model).__name__
    if not getattr(model, "_verifiable", False):
        raise TypeError(f"verify is not available for {name}: it keeps no receipt of its fit.")
    check_is_fitted(model)
    arguments = signature(model.fit).parameters.keys() - {"X", "y"}
    parameters = model.get_params(deep=False).keys()
    valid = f"{', '.join(sorted(arguments))}, and the parameters of the estimator"
    _refuse_unknown(inputs, arguments | parameters, f"{name}.fit", valid)
    if not hasattr(model, "receipt_"):
        return None
    model = copy(model)  # parameters that files do not keep are given again
    for key in inputs.keys() & parameters:
        setattr(model, key, inputs[key])
    of_fit = {key: value for key, value in inputs.items() if key in arguments}
    check: receipts.Check = model._check_of(X, y, of_fit, threads)
    return check


def _refuse_unknown(inputs: Iterable[str], names: Iterable[str], of: str, valid: str) -> None:
    for name in sorted({*inputs} - {*names}):
        raise TypeError(f"{of} has no argument {short(name)}; valid arguments are {valid}.")
