"""Predictions of classifiers by a readout, and suggestions of samples to label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.special import entr
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LabelsLike, Matrix, TablesLike, VectorLike
from .._common.bases import ClassifierMixin
from .._common.saved import COUNT, Saved
from .._data.arrays import DataLike
from .._data.border import check_integer
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._labels import ClassLabels, Indicators, labels_of
from .._solver.weights import WeightsLike
from .._topics import topic_shares
from ._base import FactorizationBase, require, score_labeled
from ._explanation import Explanation, explanation_of
from ._readout import READOUT_ATTRIBUTES, LogisticReadout, Readout, fit_readout
from ._training_data import TrainingLabels, represented
from ._views import Tables, View, check_tables, directions_of, filled, row_sums, view_of

_LOOKED_AT = 10_000  # samples that are considered, at least `n`
_CANDIDATES = 2000  # the most uncertain of these, and more in rounds if `n` is larger
_DIGITS = 9
_SHARPNESS = 4  # power of a similarity: only near samples count


def suggest(model: Any, X: Matrix, X_weights: WeightsLike, n: int, tables: Tables) -> Array:
    """Return at most `n` rows of checked X, the best first and rows without data last."""
    candidates, most = np.flatnonzero(row_sums(X) > 0), max(_LOOKED_AT, n)
    if len(candidates) > most and X_weights is None and not isinstance(X, CsrFile):
        rows = candidates[np.arange(most) * len(candidates) // most]  # evenly spaced
        part = {name: table[rows] for name, table in tables.items()}
        return np.asarray(rows[suggest(model, X[rows], None, n, part)])
    readout = model._fitted_readout()
    scores = readout.scores(model, X, X_weights, tables)[candidates]
    chances = readout.proba(scores, model.multilabel_)
    if model.multilabel_:
        unsure = (entr(chances) + entr(1 - chances)).mean(axis=1) / np.log(2)
    else:
        # All samples are equally unsure if there is only one class.
        unsure = 1 - np.ptp(np.partition(chances, -min(2, chances.shape[1]))[:, -2:], axis=1)
    order = np.argsort(-unsure, kind="stable")[: max(_CANDIDATES, n)]
    rounds = np.split(order, range(_CANDIDATES, len(order), _CANDIDATES))
    ranking = np.concatenate([np.sort(some) for some in rounds])
    # Points of length 1: scores along the leading directions, or roots of topic shares.
    directions = readout.directions if isinstance(readout, LogisticReadout) else None
    if directions is None or X_weights is not None or isinstance(X, CsrFile):
        shares = topic_shares(model._represent(X, X_weights), model.components_)
        points = np.sqrt(shares[candidates[ranking]])
    else:
        points = view_of(filled(X[candidates[ranking]]), directions).scores
    best = candidates[:0]
    for begin in range(0, len(ranking), _CANDIDATES):  # similarities of all would be n x n
        some = slice(begin, begin + _CANDIDATES)
        picks = _covering(points[some], unsure[ranking[some]], n - len(best))
        best = np.append(best, candidates[ranking[some][picks]])
    empty = np.delete(np.arange(X.shape[0]), candidates)
    return np.concatenate([best, empty[: n - len(best)]])


@one_blas_thread()
def _covering(points: Array, unsure: Array, n: int) -> list[int]:
    """Choose at most `n` points by a lazy greedy cover; the first of equal points."""
    # Rounded, since copies of a point may differ in the last digits.
    similar = points @ points.T
    np.round(np.maximum(similar, 0, out=similar), _DIGITS, out=similar)
    similar **= _SHARPNESS
    unsure = np.round(unsure, _DIGITS)
    cover, gains, picks = np.zeros(len(points)), similar @ unsure, []
    for _ in range(min(n, len(points))):
        fresh = -1
        while (best := int(gains.argmax())) != fresh:
            gains[best] = np.maximum(similar[best] - cover, 0) @ unsure
            fresh = best
        picks.append(best)
        gains[best] = -np.inf
        cover = np.maximum(cover, similar[best])
    return picks


Method = TypeVar("Method", bound=Callable[..., Any])
_MANY_LABELS = 50  # labeled samples per class above which features predict better than topics


def _has_readout(model: Any) -> bool:
    if not getattr(model, "predicts", True):
        name = type(model).__name__
        raise AttributeError(f"This {name} does not predict; set predicts=True and fit it again.")
    return True


# Hides a method, also from `hasattr`, if the model has no readout.
with_readout: Callable[[Method], Method] = available_if(_has_readout)


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutPredictions(ClassifierMixin, FactorizationBase):
    """Base of factorizations that are guided by labels and predict labels."""

    unlabeled: Any = "auto"
    _saved: ClassVar = READOUT_ATTRIBUTES
    _multi_label: ClassVar = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_label = self._multi_label
        return tags

    def _labels_of_fit(self, X: Matrix, y: LabelsLike, read: Any = labels_of) -> Any:
        """Return labels of the samples of a fit; raise ValueError if there are none."""
        require(self, X, y)
        labels = read(y, self.unlabeled)
        labels.check_fit()
        return labels

    def _keep_predictions(
        self, X: Matrix, X_weights: WeightsLike, labels: TrainingLabels, classes: Array
    ) -> None:
        """Fit the readout to checked data, and set its attributes."""
        self.multilabel_, self.classes_, self.class_prior_ = labels.several, classes, labels.prior()
        if getattr(self, "predicts", True):
            S = self._represent_rows(X, X_weights, labels.rows)
            shares = topic_shares(S, self.components_)
            self.class_shares_ = labels.truth.class_shares(shares)
            self._fit_readout(X, X_weights, S, shares, labels)

    def _represent_rows(self, X: Any, X_weights: WeightsLike, rows: Array) -> Array:
        return represented(self._represent, X, X_weights, rows)

    def _fit_readout(
        self, X: Matrix, X_weights: WeightsLike, S: Array, shares: Array, labels: TrainingLabels
    ) -> None:
        """Fit the readout; S and the shares are those of the labeled samples."""
        truth, weight, view = labels.truth, labels.sample_weight, View()
        directions = directions_of(X, 0, self.n_threads, weight) if X_weights is None else None
        if directions is not None:
            view = view_of(filled(X[labels.rows], S, self.components_), directions)
        view = replace(view, shares=shares)
        enough = truth.weight.sum() >= _MANY_LABELS * labels.shape[1]
        member = fit_readout(view, truth, row_scale=4.0 if enough else 1.0)
        self.readout_ = LogisticReadout.of(member, shares.shape[1], view)

    def _check_loaded(self) -> None:
        """Raise ValueError also if a loaded model has only a part of its readout."""
        super()._check_loaded()
        needed = {"classes_", "class_prior_", "multilabel_"}
        missing = needed - vars(self).keys()
        if missing and (hasattr(self, "readout_") or missing != needed):
            raise ValueError(f"{sorted(missing)} is missing")
        side = getattr(getattr(self, "readout_", None), "side", None)
        columns = 0 if side is None else side.shape[1]
        if sum(getattr(self, "side_", {}).values()) != columns:
            raise ValueError("side_ and the readout have different numbers of columns")

    def _fitted_readout(self) -> Any:
        if not hasattr(self, "readout_"):
            name = type(self).__name__
            raise AttributeError(f"This {name} has no readout: fit it with labels to predict them.")
        return self.readout_

    def _limits(self) -> Array | None:
        """Return the thresholds of the probabilities of several labels, (k,), or None."""
        return self.readout_.thresholds if self.multilabel_ else None

    def _ready(self, X: DataLike, side: TablesLike) -> tuple[Readout, Any, Tables]:
        X = self._checked(X)
        columns, names = (getattr(self, name, {}) for name in ("side_", "side_names_"))
        tables = check_tables(side, X.shape[0], columns, names)
        return self._fitted_readout(), X, tables

    def _read(self, X: DataLike, X_weights: WeightsLike, side: TablesLike) -> tuple[Readout, Array]:
        readout, X, tables = self._ready(X, side)
        return readout, readout.scores(self, X, X_weights, tables)

    @with_readout
    def decision_function(
        self, X: DataLike, *, X_weights: WeightsLike = None, side: TablesLike = None
    ) -> Array:
        """Return the scores of the classes.

        Returns
        -------
        ndarray, shape (n, k) or (n,)
            Logits or, for the readouts "refit" and "joint", scores S B.  For two classes, second
            minus first (of scores divided by their sum); for multiple labels, minus the threshold.
        """
        readout, scores = self._read(X, X_weights, side)
        return readout.decide(scores, self._limits())

    @with_readout
    def predict_proba(
        self, X: DataLike, *, X_weights: WeightsLike = None, side: TablesLike = None
    ) -> Array:
        """Return the probability of each class or label.

        Returns
        -------
        ndarray, shape (n, k)
            Inside (0, 1).  For the readouts "refit" and "joint", scores S B divided by their sum
            over the classes, or `class_prior_` if all are zero; with multiple labels, clipped.
        """
        readout, scores = self._read(X, X_weights, side)
        return readout.proba(scores, self.multilabel_)

    @with_readout
    def predict_log_proba(
        self, X: DataLike, *, X_weights: WeightsLike = None, side: TablesLike = None
    ) -> Array:
        """Return the logarithms of :meth:`predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X, X_weights=X_weights, side=side)))

    @with_readout
    def predict(
        self, X: DataLike, *, X_weights: WeightsLike = None, side: TablesLike = None
    ) -> Array:
        """Predict classes, or an indicator matrix of labels.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            The most probable class; with multiple labels, 1 (int64) if above the threshold.
        """
        readout, scores = self._read(X, X_weights, side)
        if self.multilabel_:
            return np.asarray(readout.decide(scores, self._limits()) > 0, dtype=np.int64)
        return np.asarray(self.classes_[readout.proba(scores, False).argmax(axis=1)])

    @with_readout
    def explain(
        self, X: DataLike, *, X_weights: WeightsLike = None, side: TablesLike = None
    ) -> Explanation:
        """Return the contributions of topics, features, neighbors and tables to the scores.

        ``explain(X).top(i)`` prints those to the score of the predicted class of sample i.
        """
        readout, X, tables = self._ready(X, side)
        return explanation_of(self, readout, X, X_weights, tables)

    @with_readout
    def suggest(
        self, X: DataLike, n: int = 10, *, X_weights: WeightsLike = None, side: TablesLike = None
    ) -> Array:
        """Choose samples to label next: different samples that represent many uncertain ones.

        Notes
        -----
        The gain of a sample is the sum of the uncertainties of all samples times their similarity
        to it (the fourth power of the cosine in leading directions or, without these, of roots of
        topic shares), less the gains of samples chosen before.  The uncertainty is 1 minus the
        difference of the two largest probabilities, or the mean entropy of the labels.  At most
        10,000 samples (or `n`) are considered.  Above 2000, the 2000 most uncertain come first.

        Examples
        --------
        >>> import numpy as np
        >>> import ssnmf_fast as sf
        >>> X = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 4], [0, 1, 3], [2, 1, 2],
        ...               [5, 1, 0]])
        >>> y = np.array(["sport", "sport", "politics", "politics", None, None])
        >>> model = sf.FewLabelsClassifier(random_state=0).fit(X, y)
        >>> print(model.suggest(X[4:], 1) + 4)
        [4]
        """
        _, X, tables = self._ready(X, side)
        return suggest(self, X, X_weights, check_integer(n, "n", 1), tables)

    @with_readout
    def score(  # type: ignore[override]
        self,
        X: DataLike,
        y: LabelsLike,
        sample_weight: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        side: TablesLike = None,
    ) -> float:
        """Return the accuracy; with multiple labels, all labels of a sample must be right."""
        predicted = self.predict(X, X_weights=X_weights, side=side)
        return score_labeled(predicted, *self._known_targets(y), sample_weight, accuracy_score)

    def _known_targets(self, y: LabelsLike) -> tuple[Array, Array]:
        """Return the labels of the labeled samples, and which samples those are."""
        if self.multilabel_:
            indicators = Indicators(y, n_labels=len(self.classes_))
            return indicators.values, indicators.complete
        labels = ClassLabels(y, self.unlabeled, known_classes=self.classes_)
        return labels.values, labels.labeled


@dataclass(eq=False, repr=False, kw_only=True)
class NamedTopics(ReadoutPredictions):
    """Base of models whose first topics have names, which are also classes of the samples."""

    _saved: ClassVar = {"topic_names_": Saved("t"), "n_labeled_": COUNT}

    def get_feature_names_out(self, input_features: VectorLike = None) -> Array:
        """Return the names of the topics; free topics are "free0", "free1", ..."""
        check_is_fitted(self)
        return np.array(self._topic_names(), dtype=object)
