"""Base classes of the estimators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from itertools import count, islice
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from .._common.arrays import Array, LossName, Seed, VectorLike
from .._common.bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from .._common.foreign import refuse_foreign
from .._common.saved import COUNT, Saved, arrays_of
from .._common.warn import warn_user
from .._data import border
from .._data.arrays import DataLike, check_dtype, refuse_on_disk
from .._data.csr_file import CsrFile
from .._data.threads import resolve_jobs, resolve_threads
from .._models.factorize import Factorization, factorize
from .._models.receipts import WEIGHTS, Check, Inputs, Result, factorization_check
from .._models.represent import explained_deviance, represent
from .._ranks import RankChoice, choose_by_words
from .._solver.known import PlainPenalties, penalties_named, plain_penalties
from .._solver.result import RECEIPT, fingerprints
from .._solver.weights import WeightsLike
from .._topics import Topics, arrays_for_pyldavis, make_topics, names_of, topic_shares
from ._docstrings import complete_methods

DTYPES = (np.float64, np.float32)  # data of other dtypes are converted to the first
_LEARNING = ("fit", "fit_transform", "partial_fit")
_SIZED = ("init", "A_support", "fixed_components")  # parameters that may have a row per component
_INPUTS = ("A_support", "fixed_components", "penalties")  # inputs of factorize that are parameters

Self = TypeVar("Self", bound="FactorizationBase")


class Estimator(TransformerMixin, BaseEstimator):
    """Base of all estimators: a fit forgets earlier fits; if it fails, they are restored."""

    _allow_nan: ClassVar = True
    _tags: ClassVar[dict[str, str]] = {}  # scikit-learn's tags to set, {group: flag}
    _saved: ClassVar[dict[str, Saved]]  # what `ssnmf_fast.save` keeps; inherited entries are added

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # After scikit-learn's own wrappers, which may fail after the method itself.
        super().__init_subclass__(**kwargs)
        for name in _LEARNING:
            method: Any = getattr(cls, name, None)
            if method is not None and (name == "fit_transform" or not hasattr(method, "_plain")):
                setattr(cls, name, _all_or_nothing(getattr(method, "_plain", method), cls))
        for name, method in [*vars(cls).items()]:
            function = getattr(method, "fn", method)  # of scikit-learn's available_if
            public = isinstance(function, FunctionType) and not name.startswith("_")
            if public and {"X_weights", "given"} & signature(function).parameters.keys():
                owner, key = (cls, name) if function is method else (method, "fn")
                setattr(owner, key, _by_name(function))
        tables = [vars(base).get("_saved", {}) for base in reversed(cls.__mro__)]
        cls._saved = {name: saved for table in tables for name, saved in table.items()}
        complete_methods(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        for group, flag in self._tags.items():
            setattr(getattr(tags, group), flag, True)
        return tags

    def _check_loaded(self) -> None:
        """Raise ValueError if loaded attributes do not fit together."""

    def _arguments(self, function: Callable[..., Any] = factorize) -> dict[str, Any]:
        names = signature(function).parameters
        arguments = {name: p for name, p in self.get_params(deep=False).items() if name in names}
        return border.by_name(None, (None, getattr(self, "feature_names_in_", None)), **arguments)


def _by_name(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def matched(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        return method(self, *args, **border.by_name(X, **kwargs))

    return matched


def _require_finite(model: Any) -> None:
    # Not within the `try` below, which an interrupt of a loop escapes in Python 3.13.
    numbers = [name for name, saved in model._saved.items() if saved.of_numbers]
    border.require_finite({name: arrays_of(vars(model).get(name)) for name in numbers})


@cache
def _taken(cls: Any, method: Callable[..., Any]) -> Signature:
    """Return the arguments of a method; those that it passes on are those of `fit`."""
    own, kind = signature(method), getattr(cls, "_kind", None)  # that of a class on a cluster
    *others, last = own.parameters.values()
    passes_on = last.kind is Parameter.VAR_KEYWORD
    if passes_on and method.__name__ == "fit_transform":
        return _taken(cls, cls.fit._plain)
    if not passes_on or kind is None:
        return own
    of_kind = signature(kind.fit).parameters.values()
    more = [p.replace(kind=last.KEYWORD_ONLY) for p in of_kind if p.name not in own.parameters]
    return own.replace(parameters=[*others, *more])


def _all_or_nothing(method: Callable[..., Any], cls: Any) -> Callable[..., Any]:
    """Return a method that restores the attributes if it fails; a fit begins without any."""
    begins_anew = method.__name__ != "partial_fit"

    @wraps(method)
    def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        taken: Signature = _taken(type(self), method)  # type: ignore[arg-type]
        try:
            taken.bind(self, *args, **kwargs)
        except TypeError as error:
            name = f"{type(self).__name__}.{method.__name__}"
            foreign = kwargs.keys() - taken.parameters.keys()
            refuse_foreign(name, foreign, weights="X_weights" in taken.parameters)
            raise TypeError(f"{name}() {error}.") from None
        before, forgotten = dict(vars(self)), self._saved if begins_anew else {}
        first = {name: one for name, one in before.items() if name not in forgotten}
        try:
            self.__dict__ = first
            result = method(self, *args, **kwargs)
            _require_finite(self)
            return result
        except BaseException:
            self.__dict__ = before  # in one step, so that a second Ctrl-C cannot interrupt it
            raise

    changed: Any = learn
    changed._plain = method
    fit = signature(getattr(cls, "fit", method))
    if method.__name__ == "fit_transform" and "X" in fit.parameters:
        changed.__signature__ = fit.replace(return_annotation=Array)
    return learn


@dataclass(eq=False, repr=False, kw_only=True)
class IterativeEstimator(ClassNamePrefixFeaturesOutMixin, Estimator):
    """Base of estimators that fit nonnegative factors iteratively."""

    max_iter: int = 200
    tol: float = 1e-4
    random_state: Seed = None
    n_threads: int | None = None
    callback: Callable[[Any], Any] | None = None
    verbose: int = 0
    dtype: npt.DTypeLike | None = None

    _verifiable: ClassVar[bool] = True
    _saved: ClassVar = {
        "objective_": Saved(kind=list[tuple[int, float]], part="objective"),
        "n_iter_": Saved("", part="n_iter"),
        "receipt_": RECEIPT,
    }
    _of_fit: ClassVar = """
    Warns
    -----
    ConvergenceWarning
        If `max_iter` is reached before the stopping rule is met, unless tol = 0.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = True
        return tags

    def _tol(self) -> float:
        return self.tol

    def _keep(self, result: Any, inputs: Inputs | None = None, **attributes: Any) -> None:
        """Set the attributes of a fit, add inputs to its receipt, and warn unless converged."""
        if receipt := getattr(result, "receipt", None):
            prints = receipt.inputs | fingerprints(inputs or {})
            result = replace(result, receipt=replace(receipt, inputs=prints).sealed())
        if getattr(self, "penalties", None) is not None:
            attributes["sample_penalties_"] = plain_penalties(self.penalties)
        parts = {name: getattr(result, one.part, None) for name, one in self._saved.items()}
        learned = {name: part for name, part in parts.items() if part is not None}
        vars(self).update(learned, **attributes)
        self._warn_unless_converged(result)

    def _result(self, kind: type[Result]) -> Result:
        """Return the result of the last fit; it shares the arrays of the attributes."""
        receipt = getattr(self, "receipt_", None)
        if receipt is None:
            raise AttributeError(f"{type(self).__name__} has a factorization_ only after fit.")
        own = [(name, one.part) for name, one in self._saved.items() if one.part]
        parts: dict[str, Any] = {part: getattr(self, name, None) for name, part in own}
        if "B" in parts and "B" not in receipt.parts:  # computed after the fit
            parts["B"] = None
        weights = {name: receipt.settings.get(name) for name in WEIGHTS if hasattr(kind, name)}
        return kind(**parts, **weights, converged=receipt.converged)

    def _warn_unless_converged(self, result: Any) -> None:
        if not result.converged and self._tol() > 0 and 0 < self.max_iter <= result.n_iter:
            warn_user(
                f"The stopping rule was not met within max_iter={self.max_iter} iterations. "
                "Increase max_iter or tol; tol=0 runs max_iter iterations without this warning.",
                ConvergenceWarning,
            )


def require(estimator: Estimator, X: DataLike, y: npt.ArrayLike | None) -> None:
    """Raise ValueError unless `y` has one row per sample of X."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Use NMF to fit without targets."
        )
    check_consistent_length(X, y)


def score_labeled(
    predicted: Any, truth: Array, labeled: Array, sample_weight: npt.ArrayLike | None, metric: Any
) -> float:
    if not labeled.any():
        raise ValueError("y has no labeled sample to score; give at least one.")
    predicted = np.asarray(predicted)
    if len(predicted) != len(labeled):
        raise ValueError(f"X has {len(predicted)} samples and y has {len(labeled)}.")
    if sample_weight is not None:
        weights = border.check_vector(sample_weight, "sample_weight", len(labeled), np.float64)
        sample_weight = weights[labeled]
    return float(metric(truth, predicted[labeled], sample_weight=sample_weight))


def product(S: Array, factor: Array, name: str) -> Array:
    """Return S @ factor in the dtype of S; raise ValueError if it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(S @ factor.astype(S.dtype, copy=False))
        if values.dtype != factor.dtype and not np.isfinite(values).all():
            values = np.asarray(S.astype(factor.dtype) @ factor).astype(S.dtype)
    border.require_finite({name: values})
    return values


class FactorizationBase(IterativeEstimator):
    """Base of estimators that learn components from X and represent samples by them.

    `_learn` takes checked X, y and the other arguments of `fit`, and sets the attributes;
    `_fit_inputs` returns the corresponding inputs of :func:`factorize`.
    """

    _saved: ClassVar[dict[str, Saved]] = {
        "components_": Saved("rm", part="A"),
        "representation_": Saved("nr", optional=True, part="S"),
        "n_features_in_": COUNT,
        "feature_names_in_": Saved("m", optional=True),
        "sample_penalties_": Saved(optional=True, kind=PlainPenalties),
        "n_fixed_": Saved("", optional=True),
        "rank_choice_": Saved(optional=True, kind=RankChoice),
    }

    _takes_files: ClassVar[bool] = True  # whether X may be on disk
    _check: ClassVar[Callable[..., Check]] = staticmethod(factorization_check)

    @property
    def factorization_(self) -> Factorization:
        """Result of the last fit with its receipt; it shares the arrays of the attributes."""
        return self._result(Factorization)

    @property
    def loss_(self) -> LossName | float:
        """Loss of the fit."""
        check_is_fitted(self, "components_")
        own: LossName | float = getattr(self, "loss", "kullback-leibler")
        receipt = getattr(self, "receipt_", None)
        settings = receipt.settings if receipt else getattr(self, "stream_settings_", vars(self))
        known: LossName | float = settings.get("loss_", settings.get("loss", own))
        return own if str(known) == "given" else known

    @loss_.setter
    def loss_(self, loss: LossName | float) -> None:
        vars(self)["loss_"] = loss

    def _check_of(self, X: Any, y: Any, given: Inputs, threads: int) -> Check:
        X, parameters = self._checked(X), self._arguments()
        inputs = {name: parameters[name] for name in _INPUTS if name in parameters}
        inputs |= self._fit_inputs(X, y, **given)
        check = self._check(self.factorization_, border.CleanMatrix(X), inputs, threads)
        # The support is not reproduced: entries that start at zero stay zero.
        support = {k: v for k, v in check.receipt.inputs.items() if k == "S_support"}
        return replace(check, inputs=support | check.inputs)

    @property
    def n_components_(self) -> int:
        """Number of components of the fit, given or chosen."""
        check_is_fitted(self, "components_")
        return int(self.components_.shape[0])

    _n_features_out = n_components_

    def _choose_rank(self, X: Any) -> int:
        """Return the number of components for checked data; "auto" sets `rank_choice_`."""
        rank = self.n_components
        if not (isinstance(rank, str) and rank == "auto"):
            return border.check_integer(rank, "n_components", 1)
        for name in _SIZED:
            if not isinstance(getattr(self, name, None), (str, type(None))):
                raise ValueError(f"{name} has a row per component; n_components cannot be 'auto'.")
        rng = border.check_random_state(self.random_state)
        jobs = resolve_jobs(None, self.n_threads, 2)
        self.rank_choice_ = choose_by_words(X, rng, n_jobs=jobs, verbose=self.verbose)
        if self.rank_choice_.high == 1:
            warn_user(f"{str(self.rank_choice_).capitalize()}. One is fitted.", UserWarning)
        return self.rank_choice_.rank

    def _checked(self, X: DataLike, *, reset: bool = False) -> Any:
        """Return X checked by scikit-learn and this package; `reset` is for a new fit."""
        if not reset:
            check_is_fitted(self)
        if not self._takes_files:
            refuse_on_disk(X, type(self).__name__)
        if isinstance(X, CsrFile):
            X = border.check_data(X, 1, self.dtype)
            return validate_data(self, X, reset=reset, skip_check_array=True)
        sparse, allow_nan = sp.issparse(X), self._allow_nan
        if sparse:  # inspected before anything else reads its arrays
            self._refuse_nan(getattr(X, "data", None))
            X = border.check_data(X, resolve_threads(self.n_threads), self.dtype)
        else:
            X = border.readable(X, "X", allow_nan, allow_sparse=True)
        rules = {"accept_sparse": "csr", "ensure_all_finite": "allow-nan"}
        with np.errstate(over="ignore"):  # infinity is refused
            X = validate_data(self, X, reset=reset, dtype=check_dtype(self.dtype, DTYPES), **rules)
        self._refuse_nan(X)
        return X if sparse else border.check_data(X, 1)

    def _refuse_nan(self, values: Any) -> None:
        numbers = isinstance(values, np.ndarray) and values.dtype.kind == "f"
        if not self._allow_nan and numbers and np.isnan(values).any():
            raise ValueError(
                f"X contains NaN, but {type(self).__name__} does not support missing entries. Fill "
                "them, for example with LowRankImputer, or use NMF or SSNMFClassifier, which "
                "ignore NaN in dense data and take weights.missing for sparse data."
            )

    def _refuse_weights(self, X_weights: WeightsLike) -> None:
        if X_weights is not None:
            raise TypeError(f"{type(self).__name__} takes no X_weights; NMF does, for example.")

    def fit(
        self: Self, X: DataLike, y: VectorLike = None, *, X_weights: WeightsLike = None
    ) -> Self:
        """Learn components from samples."""
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights)
        return self

    def fit_transform(self, X: DataLike, y: VectorLike = None, **given: Any) -> Array:
        """Fit, then transform the same samples: equivalent to ``fit(X, y).transform(X)``.

        Labels affect `representation_`, the factor of the fit itself, but not this result.
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, **given)
        known = {k: v for k, v in given.items() if k == "covariates" and v is not None}
        return self._features(X, given.get("X_weights"), **known)

    def _factorize(self, X: Any, y: Any = None, **arguments: Any) -> Factorization:
        """Factorize checked data; estimators on a cluster do it there."""
        return factorize(border.CleanMatrix(X), y, **arguments)

    def _represent(self, X: Any, X_weights: WeightsLike, **known: Any) -> Array:
        known |= {"loss": self.loss_, "X_weights": X_weights, "n_threads": self.n_threads}
        penalties = penalties_named(getattr(self, "sample_penalties_", None) or {})
        return represent(border.CleanMatrix(X), self.components_, penalties=penalties, **known)

    def _features(self, X: Any, X_weights: WeightsLike, **known: Any) -> Array:
        return self._represent(X, X_weights, **known)

    def transform(self, X: DataLike, *, X_weights: WeightsLike = None) -> Array:
        """Represent samples by the learned components.

        Returns
        -------
        S : ndarray, shape (n, r)
            Nonnegative coefficients, of the dtype of X (float32 or float64).
        """
        return self._features(self._checked(X), X_weights)

    def topic_proportions(self, X: DataLike, *, X_weights: WeightsLike = None) -> Array:
        """Return the share of each component in each sample.

        Returns
        -------
        ndarray, shape (n, r)
            S times the row sums of `components_`, divided by the total of each sample, as float64;
            zeros where no component explains anything.
        """
        return topic_shares(self._represent(self._checked(X), X_weights), self.components_)

    def score(self, X: DataLike, y: VectorLike = None, *, X_weights: WeightsLike = None) -> float:
        """Return the share of the deviance of X that the model explains.

        Returns
        -------
        float
            ``1 - loss(X, M) / loss(X, mean of X)`` with ``M = transform(X) @ components_``: R^2 for
            squared errors, D^2 for other losses.  At most 1, larger is better; 0 for a constant X.
            Minus infinity for a loss below 1 if M is 0 where X is positive.
        """
        return self._explained(self._checked(X), X_weights)

    def _explained(self, X: Any, X_weights: WeightsLike, **known: Any) -> float:
        S, A = self._represent(X, X_weights, **known), self.components_
        settings: Any = {"loss": self.loss_, "n_threads": self.n_threads}
        return explained_deviance(X, [S, A.T], X_weights=X_weights, **settings)

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Map a representation back to data, ``S @ components_``.

        Parameters
        ----------
        X : array_like, shape (n, r)
            Representation, as returned by :meth:`transform`.

        Returns
        -------
        ndarray, shape (n, m)
        """
        return product(self._checked_features(X), self.components_, "the data")

    def _checked_features(self, X: npt.ArrayLike) -> Array:
        check_is_fitted(self)
        names, own = self.get_feature_names_out(), border.labels_of(X)[1]
        if own is not None and {*own} == {*names}:  # people may give other names to topics
            X = border.in_order(X, (None, names), "X", "the representation")
        S: Array = check_array(border.readable(X, "X"), dtype=check_dtype(self.dtype, DTYPES))
        if S.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has shape {S.shape}; expected one column for each of the "
                f"{self._n_features_out} components, as returned by transform."
            )
        return S

    def topics(self, feature_names: VectorLike = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest weights in each component.

        Inactive components of a Bayesian model (see `active_components_`) have no terms.
        """
        check_is_fitted(self)
        names = names_of(feature_names, self.components_.shape[1], self)
        active = getattr(self, "active_components_", None)
        topics = make_topics(self.components_, names, n_terms, *self._class_shares(), active)
        return topics.named(self._topic_names()) if hasattr(self, "topic_names_") else topics

    def _topic_names(self) -> list[str]:
        """Return the names of the topics; free topics are "free0", ..., but no name is repeated."""
        names = [str(name) for name in self.topic_names_.tolist()]
        free = (name for k in count() if (name := f"free{k}") not in names)
        return [*names, *islice(free, self.n_components_ - len(names))]

    def to_pyldavis(self, X: DataLike, feature_names: VectorLike = None) -> dict[str, Any]:
        """Return the arguments of ``pyLDAvis.prepare``.

        ``pyLDAvis.prepare(**model.to_pyldavis(X), sort_topics=False, start_index=0)`` numbers
        topics as :meth:`topics` does.

        Returns
        -------
        dict
            `topic_term_dists` (r, m) and `doc_topic_dists` (d, r), whose rows sum to 1;
            `doc_lengths` (d,) and `term_frequency` (m,), the sums of X; `vocab`, m names.

        Raises
        ------
        ValueError
            If no topic explains any document, or names do not match.

        Notes
        -----
        The d documents are those that have words and are explained by a topic.  Shares of 0 become
        1e-12, since pyLDAvis takes logarithms; a topic without terms has a uniform distribution.
        """
        X, A = self._checked(X), self.components_
        names = names_of(feature_names, X.shape[1], self)
        return arrays_for_pyldavis(X, topic_shares(self._represent(X, None), A), A, names)

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        """Return the classes and the weights of components in them, or None for both."""
        shares = getattr(self, "class_shares_", getattr(self, "label_components_", None))
        has_classes = shares is not None and hasattr(self, "classes_")
        return (self.classes_, shares) if has_classes else (None, None)
