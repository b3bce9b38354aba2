"""Estimators :class:`SSNMFClassifier` and :class:`SSNMFRegressor`: labels as a second matrix."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.metrics import r2_score

from .._common.arrays import Array, LabelsLike, LossName, Matrix, Solver, VectorLike
from .._common.bases import RegressorMixin
from .._common.saved import COUNT, Saved
from .._common.text import short
from .._common.warn import warn_user
from .._data.arrays import DataLike
from .._data.border import check_integer, check_option, check_real, require_finite, require_memory
from .._labels import ClassLabels, Indicators, RealTargets, is_indicator
from .._models.represent import represent
from .._solver.starts import INITS
from .._solver.weights import WeightsLike
from . import _training_data as training
from ._base import Self, product, require, score_labeled
from ._class_topics import SUPPORTS, LabeledSamples, inputs_of_labels
from ._docstrings import complete_docstring
from ._nmf import SampleBatchLearner
from ._predicting import ReadoutPredictions
from ._readout import ComponentReadout, Readout


class SupervisedBase(SampleBatchLearner):
    """Base of factorizations X ~ S A, Y ~ S B that predict the targets Y."""

    _of_partial_fit: ClassVar = """
    Returns
    -------
    self
        The attributes are set as by :meth:`NMF.partial_fit`; predictions are by "joint".

    Warns
    -----
    UserWarning
        If an earlier :meth:`fit` had another readout than "joint", which is discarded.
    """
    _saved: ClassVar = {
        "label_components_": Saved("rk", part="B"),
        "refitted_label_components_": Saved("rk", optional=True),
    }

    def fit(
        self: Self,
        X: DataLike,
        y: LabelsLike = None,
        *,
        X_weights: WeightsLike = None,
        sample_weight: VectorLike = None,
        label_weight: VectorLike = None,
    ) -> Self:
        """Learn components and predictions from samples and the labels of some of them."""
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, **weights)
        return self

    def _batch(self, X: DataLike, y: LabelsLike) -> Any:
        """Return checked samples; warn if they end the readout of a fit."""
        if hasattr(self, "readout_") or hasattr(self, "refitted_label_components_"):
            warn_user(
                "The readout of the fit cannot be updated by batches: from now on the model "
                "predicts by 'joint'. Set readout='joint' before fit to avoid the change.",
                UserWarning,
            )
        X = self._checked(X, reset=not hasattr(self, "components_"))
        require(self, X, y)
        return X

    def _refit_components(self, S: Array, truth: training.Truth) -> None:
        """Set the B that minimizes sum L .* d(Y, S B), where S of labeled samples is given."""
        weights = truth.entry_weights * truth.weight[:, None]
        Y, S = truth.members.T, np.ascontiguousarray(S.T)
        Y = np.ascontiguousarray(Y, dtype=S.dtype)
        W = None if (weights == 1).all() else np.broadcast_to(weights.T, Y.shape).copy()
        B = represent(Y, S, loss=self.supervision_loss, X_weights=W)
        self.refitted_label_components_ = np.ascontiguousarray(B.T)

    def _components_in_use(self) -> Array:
        """Return the B of the readout "refit" or "joint"."""
        return getattr(self, "refitted_label_components_", self.label_components_)


@complete_docstring
@dataclass(eq=False, repr=False)
class SSNMFClassifier(ReadoutPredictions, SupervisedBase):
    r"""Semi-supervised NMF for classification, X ~ S A and Y ~ S B: the model of the papers.

    Minimizes :math:`\sum W \odot d(X, S A) + \lambda \sum L \odot d(Y, S B)`, where Y indicates the
    labels, and rows of L are 0 for unlabeled samples [1]_.  With an infinite weight, labeled
    samples may use only the components of their classes [2]_.

    Parameters
    ----------
    loss, supervision_loss : {"kullback-leibler", "frobenius"}
        Losses of X and of Y (unused with an infinite weight): the I-divergence, or squared error.
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of Y, at least 0; infinity restricts components to classes.
        "balanced" is the ratio of the two initial losses.
    init : str or tuple of arrays
        As in :class:`NMF`, or "labels": class means for A.  A tuple may also hold B (r, k).  With
        an infinite weight, the start is "labels" or the A of a tuple.
    threshold : float
        Multiple labels are predicted if their probability (or score S B) exceeds this.
    readout : {"logistic", "refit", "joint"}
        "logistic": logistic regression on topics (computed without labels), leading singular
        directions and features.  "refit": scores S B with B refitted to such topics.  "joint":
        scores S B of the factorization, as in the papers and in :meth:`partial_fit`.

    See Also
    --------
    FewLabelsClassifier : Better predictions, without settings to choose.
    TopicSupervisedNMF : Topics named by labels.
    SSNMFRegressor : Real targets.

    Notes
    -----
    `y` in :meth:`fit` holds class labels, or indicators of multiple labels, in the forms that
    :class:`FewLabelsClassifier` describes.  Metrics of scikit-learn take -1 as a class; see
    :func:`ssnmf_fast.metrics.labeled_scorer`.

    For samples on disk or with weights of entries, the logistic readout uses only topics.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020, Algorithms 1-3.
    .. [2] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017,
       eq. 2.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2],
    ...               [4, 1, 0, 0]])
    >>> y = ["sport", "sport", "politics", "politics", None]
    >>> model = sf.SSNMFClassifier(n_components=2, random_state=0).fit(X, y)
    >>> print(model.predict([[1, 0, 0, 0], [0, 0, 0, 1]]))
    ['sport' 'politics']
    """

    n_components: int = 10
    _: KW_ONLY
    loss: LossName = "kullback-leibler"
    supervision_loss: LossName = "kullback-leibler"
    supervision_weight: float | Literal["balanced"] = "balanced"
    solver: Solver = "auto"
    init: Any = "random"
    threshold: float = 0.5
    readout: Literal["logistic", "refit", "joint"] = "logistic"
    forget_factor: float = 0.8
    _multi_label: ClassVar = True
    _saved: ClassVar = {
        "n_labeled_": COUNT,
        "supervision_weight_": Saved(optional=True, kind=float),
        "_weight_of_labeled": Saved(optional=True, kind=float),
    }

    def _learn(self, X: Matrix, y: LabelsLike, X_weights: WeightsLike = None, **given: Any) -> None:
        targets = self._labels_of_fit(X, y)
        samples = self._samples(X, X_weights, targets, **given)
        labels, k = samples.labels, len(targets.classes)
        labels.require_two_classes()
        rank, weight = check_integer(self.n_components, "n_components", 1), self.supervision_weight
        check_option(self.readout, "readout", ("logistic", "refit", "joint"))
        check_real(self.threshold, "threshold", allow_negative=True)
        if not isinstance(self.init, (tuple, list)):
            check_option(self.init, "init", ("labels", *INITS))
        elif len(self.init) not in (2, 3):
            raise ValueError(f"init holds {len(self.init)} arrays; expected S, A and perhaps B.")
        if isinstance(weight, str):
            check_option(weight, "supervision_weight", ("balanced",))
        elif weight != SUPPORTS:
            check_real(weight, "supervision_weight")
        elif rank < k:
            raise ValueError(
                f"n_components={rank} is too small for supervision_weight=inf, which gives each of "
                f"the {k} classes a component. Set n_components to {k} or more, or give a finite "
                "supervision_weight."
            )
        require_memory(rank, X.shape, X.dtype)
        fit = samples.fit_topics(rank, weight)
        learned = {"supervision_weight_": fit.supervision_weight, "n_labeled_": len(labels.rows)}
        self._keep(fit, labels.inputs(), **learned)
        self._keep_predictions(X, X_weights, labels, targets.classes)

    def _samples(
        self, X: Any, X_weights: Any, targets: ClassLabels | Indicators, **weights: Any
    ) -> LabeledSamples:
        labels = training.labels_for_training(targets, **weights)
        return LabeledSamples.of(self, X, labels, X_weights=X_weights, init=self.init)

    def _fit_readout(self, X: Matrix, X_weights: WeightsLike, *seen: Any) -> None:
        if self.readout == "logistic":
            super()._fit_readout(X, X_weights, *seen)
        elif self.readout == "refit":
            S, _, labels = seen
            self._refit_components(S, labels.truth)

    _fit_inputs = inputs_of_labels

    def _fitted_readout(self) -> Readout:
        return getattr(self, "readout_", None) or ComponentReadout(self._components_in_use())

    def _limits(self) -> Array | None:
        return np.full(len(self.classes_), self.threshold) if self.multilabel_ else None

    def partial_fit(
        self: Self,
        X: DataLike,
        y: LabelsLike,
        classes: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        sample_weight: VectorLike = None,
        label_weight: VectorLike = None,
    ) -> Self:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        classes : array_like, optional
            All classes of all batches; required in the first call, except for indicator matrices.
        """
        X = self._batch(X, y)
        weights: Any = {"sample_weight": sample_weight, "label_weight": label_weight}
        several, names = self._all_classes(y, classes)
        targets = Indicators(y, len(names)) if several else ClassLabels(y, self.unlabeled, names)
        targets.classes = names
        # The start of batches cannot depend on labels.
        start = {"init": "random"} if isinstance(self.init, str) and self.init == "labels" else {}
        inputs = training.inputs_of_targets(X, targets, X_weights, **weights)
        self._learn_batch(X, sample_weight=sample_weight, **inputs, **start)
        self.multilabel_, self.classes_ = several, names
        count, k = getattr(self, "n_labeled_", 0), len(names)
        before = getattr(self, "_weight_of_labeled", count)
        prior = self.class_prior_ if count else np.full(k, 1 / k)
        if training.label_weights(targets.labeled, **weights).any():
            labels = training.labels_for_training(targets, **weights)
            weight = float(labels.truth.weight.sum())
            prior = (before * prior + weight * labels.prior()) / (before + weight)
            count, before = count + len(labels.rows), before + weight
        self.class_prior_, self.n_labeled_, self._weight_of_labeled = prior, count, before
        return self

    def _all_classes(self, y: Any, classes: VectorLike) -> tuple[bool, Array]:
        """Return whether samples have several labels, and all classes."""
        learned = getattr(self, "classes_", None)
        if classes is not None:
            classes = np.unique(ClassLabels(classes, None, learned, "classes").values)
        if learned is not None:
            if classes is not None and not np.array_equal(classes, learned):
                first = f"those of the first call, {short(learned.tolist())}"
                raise ValueError(f"classes={short(classes)} differ from {first}; leave them out.")
            return self.multilabel_, learned
        if is_indicator(y):
            return True, np.arange(np.shape(y)[1])
        if classes is None:
            raise ValueError("All classes must be passed on the first call to partial_fit.")
        if len(classes) < 2:
            raise ValueError(f"classes holds {classes.tolist()}; expected two classes or more.")
        return False, classes


@complete_docstring
@dataclass(eq=False, repr=False)
class SSNMFRegressor(RegressorMixin, SupervisedBase):
    r"""Semi-supervised NMF for regression, X ~ S A and Y ~ S B.

    Minimizes :math:`\sum W \odot d(X, S A) + \lambda \sum L \odot d(Y, S B)`, where rows of L are 0
    for unlabeled samples [1]_, and Y holds the targets minus the smallest target of each column.

    Parameters
    ----------
    loss, supervision_loss : {"frobenius", "kullback-leibler"}
        Losses of X and of the targets: squared error, or the I-divergence (for counts).
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of Y, at least 0, or the ratio of the two initial losses.
    init : {"random", "auto", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start, as in :class:`NMF`; a tuple may also hold B (r, k), for Y.
    readout : {"refit", "joint"}
        Predictions are S B: "refit" fits B to labeled samples represented without their targets;
        "joint" takes the B of the factorization, as :meth:`partial_fit` does.

    Attributes
    ----------
    n_targets_ : int
        Number of targets k; 0 if `y` had one dimension.
    offset_ : ndarray, shape (k,)
        Smallest targets of the fit or of all batches (or 0), which bound predictions from below.

    See Also
    --------
    SSNMFClassifier : Classes or multiple labels.

    Notes
    -----
    `y` in :meth:`fit` holds targets of any sign, shape (n,) or (n, k); NaN means unlabeled.
    Predictions minus the smallest target are proportional to the sample; a column of ones in X
    allows the model to learn an intercept.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020, Algorithms 1-3.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((30, 4))
    >>> y = X @ [1.0, 2.0, 0.0, 3.0]
    >>> y[20:] = np.nan  # unlabeled
    >>> model = sf.SSNMFRegressor(n_components=4, tol=1e-6, max_iter=2000,
    ...                           random_state=0)
    >>> model.fit(X, y).predict(X[:2]).shape
    (2,)
    """

    n_components: int = 10
    _: KW_ONLY
    loss: LossName = "frobenius"
    supervision_loss: LossName = "frobenius"
    supervision_weight: float | Literal["balanced"] = 1.0
    solver: Solver = "auto"
    init: Any = "random"
    readout: Literal["refit", "joint"] = "refit"
    forget_factor: float = 0.8
    A_support: Any = None
    fixed_components: Any = None
    penalties: Any = None
    n_starts: int = 1
    _tags: ClassVar = {"target_tags": "multi_output"}
    _saved: ClassVar = {
        "n_targets_": COUNT,
        "offset_": Saved("k", "finite", optional=True),
        "_offset": Saved("k", "real", optional=True),  # NaN for targets that no batch has shown
    }

    def _inputs(
        self, X: Matrix, y: LabelsLike, X_weights: WeightsLike, weights: Any, offset: Any = np.nan
    ) -> tuple[RealTargets, dict[str, Any]]:
        """Return the targets, shifted to be nonnegative, and the inputs of the factorization."""
        require(self, X, y)
        targets = RealTargets(y)
        targets.check_fit()
        targets.measure(training.label_weights(targets.labeled, **weights), offset)
        return targets, training.inputs_of_targets(X, targets, X_weights, **weights)

    def _fit_inputs(self, X: Any, y: Any, *, X_weights: Any = None, **weights: Any) -> Any:
        return self._inputs(X, y, X_weights, weights, self.offset_)[1]

    def _learn(self, X: Matrix, y: LabelsLike, X_weights: WeightsLike = None, **given: Any) -> None:
        readout = check_option(self.readout, "readout", ("refit", "joint"))
        targets, inputs = self._inputs(X, y, X_weights, given)
        labels = training.labels_for_training(targets, **given)
        result = self._factorize(X, **inputs, **self._arguments())
        self._keep(result, n_targets_=targets.n_targets, offset_=np.nan_to_num(targets.offset))
        if readout != "joint":
            S = training.represented(self._represent, X, X_weights, labels.rows)
            self._refit_components(S, labels.truth)

    def partial_fit(
        self: Self,
        X: DataLike,
        y: LabelsLike,
        *,
        X_weights: WeightsLike = None,
        sample_weight: VectorLike = None,
        label_weight: VectorLike = None,
    ) -> Self:
        """Learn from one batch of samples, in addition to earlier batches."""
        X = self._batch(X, y)
        weights: Any = {"sample_weight": sample_weight, "label_weight": label_weight}
        targets = RealTargets(y, n_targets=getattr(self, "n_targets_", None))
        before = getattr(self, "_offset", getattr(self, "offset_", np.nan))
        counted = targets.measure(training.label_weights(targets.labeled, **weights), before)
        lift = np.nan_to_num(before - targets.offset)
        inputs = training.inputs_of_targets(X, targets, X_weights, **weights)
        self._learn_batch(X, sample_weight=sample_weight, lift=lift, counted=counted, **inputs)
        self.n_targets_ = targets.n_targets
        self._offset, self.offset_ = targets.offset, np.nan_to_num(targets.offset)
        return self

    def score(  # type: ignore[override]
        self,
        X: DataLike,
        y: LabelsLike,
        sample_weight: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
    ) -> float:
        """Return R squared of the predictions."""
        X = self._checked(X)
        targets = RealTargets(y, n_targets=self.n_targets_)
        predicted, truth = self._predicted(X, X_weights), (targets.values, targets.complete)
        with np.errstate(over="ignore", invalid="ignore"):
            score = score_labeled(predicted, *truth, sample_weight, r2_score)
        require_finite({"The score": score}, "Bring y nearer to 1, by a constant factor.")
        return score

    def predict(self, X: DataLike, *, X_weights: WeightsLike = None) -> Array:
        """Predict the targets, S B.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            Shaped like the `y` of the fit, of the dtype of X.
        """
        X = self._checked(X)
        return self._predicted(X, X_weights).astype(X.dtype)

    def _predicted(self, X: Matrix, X_weights: WeightsLike) -> Array:
        """Predict in float64, since the offset may be large."""
        S = self._represent(X, X_weights)
        above = product(S, self._components_in_use(), "the predictions")
        scores = above.astype(np.float64) + getattr(self, "offset_", 0.0)
        return np.asarray(scores if self.n_targets_ else scores[:, 0])
