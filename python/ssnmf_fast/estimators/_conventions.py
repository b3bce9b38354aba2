"""Conventions of all estimators: parameters, and fits that fail or do not converge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length

from .._common.arrays import Array, Seed
from .._common.bases import BaseEstimator, TransformerMixin
from .._common.foreign import refuse_foreign
from .._common.saved import Saved, arrays_of
from .._common.warn import warn_user
from .._data.arrays import DataLike
from .._data.border import check_vector, require_finite
from .._models.factorize import Factorization, TensorFactorization, factorize
from .._models.online import Stream
from .._models.receipts import Check
from .._models.variational import VariationalFit
from .._solver.result import Receipt
from ._docstrings import complete_methods

Result: TypeAlias = Factorization | TensorFactorization | VariationalFit
DTYPES = (np.float64, np.float32)  # of data; all others become the first
_LEARNING = ("fit", "fit_transform", "partial_fit")


class Estimator(TransformerMixin, BaseEstimator):
    """Base of all estimators, whose attributes are put back if learning fails."""

    _allow_nan: ClassVar = True
    _saved: ClassVar[dict[str, Saved]]  # attributes that `ssnmf_fast.save` keeps, besides inherited
    receipt_: Receipt
    _verifiable: ClassVar[bool] = False
    _check_of: Callable[..., Check]  # for X and y, arguments of fit and a number of threads

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        refuse_foreign(cls.__name__, kwargs)
        return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # First the others: scikit-learn wraps methods too, and may fail after the method itself.
        super().__init_subclass__(**kwargs)
        for name in _LEARNING:
            method = getattr(cls, name, None)
            if method is not None and not hasattr(method, "_all_or_nothing"):
                setattr(cls, name, _all_or_nothing(method))
        tables = [vars(base).get("_saved", {}) for base in reversed(cls.__mro__)]
        cls._saved = {name: saved for table in tables for name, saved in table.items()}
        complete_methods(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _arguments(self, function: Callable[..., Any] = factorize) -> dict[str, Any]:
        names = signature(function).parameters
        return {name: p for name, p in self.get_params(deep=False).items() if name in names}


def _all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_foreign(method.__qualname__, kwargs)
        before = dict(vars(self))
        try:
            result = method(self, *args, **kwargs)
            numbers = [name for name, saved in self._saved.items() if saved.of_numbers]
            require_finite({name: arrays_of(vars(self).get(name)) for name in numbers})
            return result
        except BaseException:
            self.__dict__ = before  # in one step, which no second Ctrl-C can cut in two
            raise

    learn._all_or_nothing = True  # type: ignore[attr-defined]
    return learn


@dataclass(eq=False, repr=False, kw_only=True)
class IterativeEstimator(Estimator):
    """Base of estimators with nonnegative factors, which are fitted by iterations."""

    max_iter: int = 200
    tol: float = 1e-4
    random_state: Seed = None
    n_threads: int | None = None
    callback: Callable[[Any], Any] | None = None
    verbose: int = 0
    dtype: npt.DTypeLike | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = True
        return tags

    def _warn_unless_converged(self, result: Result) -> None:
        if (
            not result.converged
            and self._arguments()["tol"] > 0
            and 0 < self.max_iter <= result.n_iter
        ):
            warn_user(
                f"The stopping rule was not met within max_iter={self.max_iter} iterations. "
                "Increase max_iter or tol; tol=0 always runs max_iter iterations, without this "
                "warning.",
                ConvergenceWarning,
            )


def require(estimator: Estimator, X: DataLike, y: npt.ArrayLike | None) -> None:
    """Raise ValueError unless there is a `y` with one row for each sample of X."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Use NMF to fit without targets."
        )
    check_consistent_length(X, y)


def score_labeled(
    predicted: Any, truth: Array, labeled: Array, sample_weight: npt.ArrayLike | None, metric: Any
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


def keep_stream(model: Any, stream: Stream) -> None:
    """Set the attributes that count the calls of `partial_fit`."""
    first = not hasattr(model, "stream_statistics_")
    model.n_iter_ = 1 if first else model.n_iter_ + 1
    earlier = [] if first else model.objective_
    model.objective_ = [*earlier, (model.n_iter_, stream.mean_loss)]
    model.stream_statistics_ = stream.arrays()
