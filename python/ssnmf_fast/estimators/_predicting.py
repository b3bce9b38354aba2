"""Predictions by a readout, for every classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._data.border import check_integer, check_option
from .._labels import ClassLabels, Indicators
from .._topics import topic_shares
from ._base import FactorizationBase, score_labeled
from ._committee import with_tables
from ._explanation import Explanation, explanation_of
from ._members import fit_readout
from ._readout import READOUT_ATTRIBUTES, LogisticReadout, Readout
from ._sklearn import ClassifierMixin
from ._suggesting import suggest
from ._training_data import TrainingLabels, labels_for_training
from ._views import Context, Tables, context_of, directions_of, filled, tables_to_predict

Method = TypeVar("Method", bound=Callable[..., Any])
_MANY_LABELS = 50  # labeled samples per class above which features predict better than topics


def _has_readout(model: Any) -> bool:
    if getattr(model, "readout", "") is None:
        raise AttributeError(
            f"{type(model).__name__} with readout=None does not predict. Set "
            f"readout={type(model).readout!r}, the default, and fit it again."
        )
    return True


# Makes a method available, also to `hasattr`, unless the model has no readout.
with_readout: Callable[[Method], Method] = available_if(_has_readout)


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutPredictions(ClassifierMixin, FactorizationBase):
    """A dictionary that labels guide, with predictions for samples without labels."""

    unlabeled: Any = "auto"

    _saved: ClassVar = READOUT_ATTRIBUTES

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _check_readout(self) -> None:
        if (readout := getattr(self, "readout", None)) is not None:
            check_option(readout, "readout", ("logistic",))

    def _keep_predictions(
        self,
        X: Any,
        X_weights: Any,
        targets: ClassLabels | Indicators,
        names: Any = None,
        labels: TrainingLabels | None = None,
    ) -> None:
        """Fit the readout to checked data, and set what belongs to it; `labels` have weights."""
        self._drop_readout()
        self.multilabel_ = isinstance(targets, Indicators)
        self.classes_ = targets.classes if names is None else names
        self.class_prior_ = targets.prior() if labels is None else labels.prior()
        if getattr(self, "readout", None) is None:
            return
        labels = labels_for_training(targets) if labels is None else labels
        S = self._represent(X, X_weights)
        shares = topic_shares(S, self.components_)[labels.known]
        self.class_shares_ = labels.class_shares(shares)
        self._fit_readout(X, X_weights, S, shares, labels)

    def _fit_readout(
        self, X: Any, X_weights: Any, S: Array, shares: Array, labels: TrainingLabels
    ) -> None:
        rows = labels.known
        enough = labels.weight[rows].sum() >= _MANY_LABELS * labels.members.shape[1]
        context, weight = Context(), labels.sample_weight
        directions = directions_of(X, X_weights, 0, self.n_threads, weight)
        if directions is not None:
            context = context_of(filled(X, S, self.components_)[rows], directions)
        member = fit_readout(context, shares, labels, row_scale=4.0 if enough else 1.0)
        self.readout_ = LogisticReadout.of(member, shares.shape[1], context)

    def _drop_readout(self) -> None:
        for name in ("readout_", "class_shares_", "side_"):
            self.__dict__.pop(name, None)

    def _check_loaded(self) -> None:
        """Raise ValueError for a model of a file with some of what predicts, but not all of it."""
        needed = {"classes_", "class_prior_", "multilabel_"}
        missing = needed - vars(self).keys()
        if missing and (hasattr(self, "readout_") or missing != needed):
            raise ValueError(f"{sorted(missing)} is missing")
        side = getattr(getattr(self, "readout_", None), "side", None)
        columns = 0 if side is None else side.shape[1]
        if sum(getattr(self, "side_", {}).values()) != columns:
            raise ValueError("side_ and the readout have different numbers of columns")

    def _fitted_readout(self) -> Readout:
        if not hasattr(self, "readout_"):
            raise AttributeError(
                f"This {type(self).__name__} has no readout: it was fitted without labels. Fit "
                "it with labels to predict them."
            )
        readout: Readout = self.readout_
        return readout

    def _limits(self, readout: Readout) -> Array | None:
        """Return the probability above which each of several labels is predicted, (k,)."""
        return readout.thresholds if self.multilabel_ else None

    def _tables(self, side: Any, n_samples: int) -> Tables:
        return tables_to_predict(side, n_samples, getattr(self, "side_", {}))

    def _read(self, X: Any, X_weights: Any, side: Any) -> tuple[Readout, Array]:
        """Return the readout, and its scores of samples."""
        check_is_fitted(self)
        readout = self._fitted_readout()
        scores = readout.scores(self, self._checked(X, reset=False), X_weights)
        tables = self._tables(side, len(scores))
        return readout, with_tables(scores, readout, tables)

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        shares = getattr(self, "class_shares_", None)
        return (None, None) if shares is None else (self.classes_, shares)

    @with_readout
    def decision_function(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Return how strongly the samples belong to the classes.

        Returns
        -------
        ndarray, shape (n, k) or (n,)
            Logits or, for the readouts "refit" and "joint", scores S B.  With two classes, the
            second minus the first (of scores divided by their sum).  With multiple labels, how far
            they lie above the threshold: positive values are predicted.
        """
        readout, scores = self._read(X, X_weights, side)
        return readout.decide(scores, self._limits(readout))

    @with_readout
    def predict_proba(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Return the probability of every class, or of every label by itself.

        Returns
        -------
        ndarray, shape (n, k)
            Above 0 and below 1.  Those of :class:`FewLabelsClassifier` are calibrated by
            validation, if there was one.  Those of the readouts "refit" and "joint" are scores S B
            divided by their sum over the classes, `class_prior_` where all are zero; with multiple
            labels, the scores clipped to the inside of (0, 1).
        """
        readout, scores = self._read(X, X_weights, side)
        return readout.proba(scores, self.multilabel_)

    @with_readout
    def predict_log_proba(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Return the logarithms of :meth:`predict_proba`.

        Returns
        -------
        ndarray, shape (n, k)
        """
        return np.asarray(np.log(self.predict_proba(X, X_weights=X_weights, side=side)))

    @with_readout
    def predict(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Predict classes, or an indicator matrix of labels.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            The most probable class; with multiple labels, 1 (int64) where the probability (or
            score) is above the threshold.
        """
        readout, scores = self._read(X, X_weights, side)
        if self.multilabel_:
            above = readout.decide(scores, self._limits(readout)) > 0
            return np.asarray(above, dtype=np.int64)
        chances = readout.proba(scores, False)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    @with_readout
    def explain(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Explanation:
        """Return what topics, features, neighbors and tables add to the scores, exactly.

        Returns
        -------
        Explanation
            Its ``top(i)`` prints what speaks for the predicted class in sample i.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        tables = self._tables(side, X.shape[0])
        return explanation_of(self, self._fitted_readout(), X, X_weights, tables)

    @with_readout
    def suggest(self, X: Any, n: int = 10, *, X_weights: Any = None, side: Any = None) -> Array:
        """Choose samples that are worth labeling next.

        They stand for many samples that the model is unsure of, and not for the same ones.  Label
        them, fit again to all labels, and repeat.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Samples without labels.
        n : int
            How many to choose, at least 1.

        Returns
        -------
        ndarray of int, shape (min(n, rows of X),)
            Rows of X, the best first; of equal ones the first.  Samples without data come last.

        Notes
        -----
        A sample gains the uncertainty of every other times their similarity (the cosine in the
        leading directions or, where only topics are seen, that of the roots of topic shares, to the
        fourth power), less what the samples before it have gained.  Uncertainty is 1 less the
        difference of the two largest probabilities; with several labels the mean entropy of each.
        Of more than 10,000 samples, as many evenly spaced ones are looked at.

        Raises
        ------
        ValueError, TypeError
            For bad data or a bad number.

        Examples
        --------
        >>> import numpy as np
        >>> import ssnmf_fast as sf
        >>> X = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 4], [0, 1, 3], [2, 1, 2], [5, 1, 0]])
        >>> y = np.array(["sport", "sport", "politics", "politics", None, None])
        >>> model = sf.FewLabelsClassifier(random_state=0).fit(X, y)
        >>> print(model.suggest(X[4:], 1) + 4)
        [4]
        """
        check_is_fitted(self)
        count, X = check_integer(n, "n", 1), self._checked(X, reset=False)
        return suggest(self, X, X_weights, count, self._tables(side, X.shape[0]))

    @with_readout
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_weights: Any = None,
        side: Any = None,
    ) -> float:
        """Return the accuracy; with multiple labels, the share of samples without a wrong label."""
        predicted = self.predict(X, X_weights=X_weights, side=side)
        return score_labeled(predicted, *self._known_targets(y), sample_weight, accuracy_score)

    def _known_targets(self, y: Any) -> tuple[Array, Array]:
        """Return the labels of the labeled samples, and which samples those are."""
        if self.multilabel_:
            indicators = Indicators(y, n_labels=len(self.classes_))
            return indicators.known, indicators.complete
        labels = ClassLabels(y, self.unlabeled, known_classes=self.classes_)
        return labels.known, labels.labeled
