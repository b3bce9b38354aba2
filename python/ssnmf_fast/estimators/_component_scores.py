"""Predictions S B by the components' readings of the classes, and which readout is in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from ._predicting import ReadoutPredictions
from ._refit import refitted
from ._training_labels import TrainingLabels

_LEAST_SHARE = 1e-9  # of a class in a probability


class ComponentScores(ReadoutPredictions):
    """Predictions of a classifier by its logistic readout, or else by scores S B."""

    label_components_: Array
    threshold: float | str
    readout: str
    supervision: str

    def _refit_components(self, S: Array, labels: TrainingLabels) -> None:
        """Set B as refitted to label-blind representations."""
        rows = labels.known
        B = refitted(S[rows], labels.members[rows], labels.entry_weights[rows], self.supervision)
        self.refitted_label_components_ = B

    def _drop_predictions(self) -> None:
        """Remove what an earlier fit predicted with."""
        self._drop_readout()
        self.__dict__.pop("refitted_label_components_", None)

    @property
    def _by_regression(self) -> bool:
        check_is_fitted(self)
        return hasattr(self, "readout_coef_")

    def _component_scores(self, X: Any) -> Array:
        """Return S B, (n, k), with the class frequencies in rows of zeros."""
        scores = self._scores(X)  # type: ignore[attr-defined]
        if not self.multilabel_:
            scores[~scores.any(axis=1)] = self.class_prior_
        return np.asarray(scores)

    def _limits(self) -> Array:
        if not isinstance(self.threshold, str):
            return np.full(len(self.classes_), float(self.threshold))
        if self.threshold != "auto":
            raise ValueError(f"threshold must be 'auto' or a number; got {self.threshold!r}.")
        return self.thresholds_ if self._by_regression else np.full(len(self.classes_), 0.5)

    def decision_function(self, X: Any) -> Array:
        """Return how strongly the samples belong to the classes.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.

        Returns
        -------
        ndarray, shape (n, k) or (n,)
            Logits or, for the readouts "refit" and "joint", scores S B.  With two classes, the
            second less the first (of shares of the scores).  With multiple labels, how far they lie
            above the threshold: positive values are predicted.
        """
        if self._by_regression:
            return super().decision_function(X)
        scores = self._component_scores(X)
        if self.multilabel_:
            return np.asarray(scores - self._limits().astype(scores.dtype))
        if scores.shape[1] > 2:
            return scores
        shares = _shares(scores)
        return np.asarray(shares[:, 1] - shares[:, 0])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class, or of every label by itself.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.

        Returns
        -------
        ndarray, shape (n, k)
            Above 0 and below 1.  Those of the logistic readout are calibrated by validation, where
            there was one.  For the readouts "refit" and "joint": scores S B divided by their sum
            over the classes, `class_prior_` where all are zero; with multiple labels the scores
            clipped to the inside of (0, 1); not calibrated.
        """
        if self._by_regression:
            return super().predict_proba(X)
        scores = self._component_scores(X)
        if self.multilabel_:
            margin = np.finfo(scores.dtype).eps
            return np.clip(scores, margin, 1 - margin)
        shares = _shares(scores)
        least = scores.dtype.type(_LEAST_SHARE)
        return np.asarray((shares + least) / (1 + least * shares.shape[1]))

    def predict(self, X: Any) -> Array:
        """Predict classes, or an indicator matrix of labels.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            The most probable class; with multiple labels, 1 (int64) where :meth:`decision_function`
            is positive.
        """
        check_is_fitted(self)
        if self.multilabel_:
            return np.asarray(self.decision_function(X) > 0, dtype=np.int64)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _shares(scores: Array) -> Array:
    """Divide the rows by their sums; scaled first, so that tiny scores cannot vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))
