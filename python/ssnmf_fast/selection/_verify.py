"""Function :func:`verify`: does a result come from these data, and is it where it says it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._common.text import short
from .._data.threads import resolve_threads
from .._models.receipts import INPUTS, TENSOR_INPUTS, Claim, claim_of, claim_of_tensor
from .._solver.result import Factorization, TensorFactorization
from ._differences import Compared, compare


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
    result: Any, X: Any, Y: Any = None, *, n_threads: int | None = None, **given: Any
) -> Verification:
    """Check a result against its receipt and the data: are they the same, is it where it says.

    Fingerprints of the data, of what else the fit was given and of the factors are compared with
    those of the receipt; the objective and the residuals of the optimality conditions are computed
    anew, in about the time of an iteration.

    Parameters
    ----------
    result : Factorization, TensorFactorization or fitted estimator
        As a fit returned it, or :func:`load`.
    X, Y
        The data and, where the fit had them, labels or targets.
    n_threads : int, optional
        Number of threads; it does not change the outcome.
    **given
        What else the fit was given, by the names of its arguments: weights, supports, fixed
        components, penalties, labels of features.  Parameters of an estimator need not be given
        again, unless they were lost in a file: those that are no text or numbers.

    Returns
    -------
    Verification
        True if nothing differs; print it to see what does.

    Raises
    ------
    TypeError
        For a result that cannot be checked, or arguments that its fit does not have.
    ValueError
        For bad data.

    Notes
    -----
    A receipt is no signature: whoever changes a result and knows this library can write another
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
    claim = _claim(result, X, Y, given, resolve_threads(n_threads))
    if claim is None:
        return Verification([f"This {type(result).__name__} has no receipt of its fit."], [])
    return Verification(*compare(claim))


def _claim(result: Any, X: Any, Y: Any, given: dict[str, Any], threads: int) -> Claim | None:
    """Return what the receipt of a result claims of these data; None without a receipt."""
    if hasattr(result, "_claim"):  # an estimator
        claim: Claim | None = result._claim(X, Y, given, threads)
        return claim
    tensor = isinstance(result, TensorFactorization)
    if not tensor and not isinstance(result, Factorization):
        raise TypeError(
            f"a {type(result).__name__} cannot be verified; expected a Factorization, a "
            "TensorFactorization or a fitted estimator."
        )
    known = TENSOR_INPUTS if tensor else INPUTS
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TypeError(f"the fit has no argument {short(unknown[0])}; it has {', '.join(known)}.")
    if result.receipt is None:
        return None
    if tensor:
        return claim_of_tensor(result, X, given if Y is None else {"labels": Y, **given}, threads)
    return claim_of(result, X, {"Y": Y, **given}, threads)
