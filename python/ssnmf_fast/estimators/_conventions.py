"""Conventions of all estimators: parameters, fits that fail, and fits that do not converge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length

from .._common.arrays import Array
from .._common.saved import Saved, arrays_of
from .._common.warn import warn_user
from .._data.border import require_finite
from .._data.checks import check_vector

_LEARNING = ("fit", "fit_transform", "partial_fit")


class AllOrNothing:
    """Base of estimators that stay as they were when learning is refused, fails or is interrupted.

    This holds for every subclass, also for methods that it inherits or adds.  Before a method
    learns, the attributes are noted; on any exception they are put back.  This is enough, as
    attributes are only ever replaced: what they hold is never changed in place.  A generator that
    the user gave as `random_state` does move on.  Attributes with NaN or infinity are refused.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # First the others: scikit-learn wraps methods too, and may fail after the method itself.
        super().__init_subclass__(**kwargs)
        for name in _LEARNING:
            method = getattr(cls, name, None)
            if method is not None and not hasattr(method, "_all_or_nothing"):
                setattr(cls, name, _restoring(method))


def _table(model: Any) -> Iterable[tuple[str, Saved]]:
    """Return the attributes that are saved, if there are any, and what is known of them."""
    return getattr(model, "_saved", {}).items()


def _restoring(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            result = method(self, *args, **kwargs)
            kept = {
                name: arrays_of(vars(self).get(name))
                for name, one in _table(self)
                if one.of_numbers
            }
            require_finite(kept)
            return result
        except BaseException:
            self.__dict__ = before  # in one step, which no second Ctrl-C can cut in two
            raise

    learn._all_or_nothing = True  # type: ignore[attr-defined]
    return learn


def set_parameters(estimator: Any, given: Mapping[str, Any]) -> None:
    """Set the arguments of ``__init__``; `given` is its ``locals()``."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)


def warn_unless_converged(estimator: Any, result: Any) -> None:
    """Warn if a fit has met `max_iter` before its stopping rule."""
    if not result.converged and estimator.tol > 0 and 0 < estimator.max_iter <= result.n_iter:
        warn_user(
            f"The stopping rule was not met within max_iter={estimator.max_iter} iterations. "
            "Increase max_iter or tol; tol=0 always runs max_iter iterations, without this "
            "warning.",
            ConvergenceWarning,
        )


def require(estimator: Any, X: Any, y: Any) -> None:
    """Raise ValueError unless there is a `y` with one row for each sample of X."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Use NMF to fit without targets."
        )
    check_consistent_length(X, y)


def score_labeled(
    predicted: Any, truth: Array, labeled: Array, sample_weight: Any, metric: Any
) -> float:
    """Compare the predictions for the labeled samples with the truth."""
    if not labeled.any():
        raise ValueError("y has no labeled sample to score; give at least one.")
    predicted = np.asarray(predicted)
    if len(predicted) != len(labeled):
        raise ValueError(f"X has {len(predicted)} samples and y has {len(labeled)}.")
    if sample_weight is not None:
        checked = check_vector(sample_weight, "sample_weight", len(labeled), np.float64)
        sample_weight = checked[labeled]
    return float(metric(truth, predicted[labeled], sample_weight=sample_weight))
