"""Predictions S B by the components' readings of the classes, and which readout is in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from ._predicting import ReadoutPredictions

_LEAST_SHARE = 1e-9  # of a class in a probability


class ComponentScores(ReadoutPredictions):
    """Predictions of a classifier by its logistic readout, or else by scores S B."""

    label_components_: Array
    threshold: float | str
    readout: str

    @property
    def _by_regression(self) -> bool:
        check_is_fitted(self)
        return hasattr(self, "readout_coef_")

    def _component_scores(self, X: Any, X_weights: Any) -> Array:
        """Return S B, (n, k), with the class frequencies in rows of zeros."""
        scores = self._scores(X, X_weights)
        if not self.multilabel_:
            scores[~scores.any(axis=1)] = self.class_prior_
        return np.asarray(scores)

    def _limits(self) -> Array:
        if not isinstance(self.threshold, str):
            return np.full(len(self.classes_), float(self.threshold))
        if self.threshold != "auto":
            raise ValueError(f"threshold must be 'auto' or a number; got {self.threshold!r}.")
        return self.thresholds_ if self._by_regression else np.full(len(self.classes_), 0.5)

    def _decisions(self, X: Any, X_weights: Any) -> Array:
        if self._by_regression:
            return super()._decisions(X, X_weights)
        scores = self._component_scores(X, X_weights)
        if self.multilabel_:
            return np.asarray(scores - self._limits().astype(scores.dtype))
        if scores.shape[1] > 2:
            return scores
        shares = _shares(scores)
        return np.asarray(shares[:, 1] - shares[:, 0])

    def _chances(self, X: Any, X_weights: Any) -> Array:
        if self._by_regression:
            return super()._chances(X, X_weights)
        scores = self._component_scores(X, X_weights)
        if self.multilabel_:
            margin = np.finfo(scores.dtype).eps
            return np.clip(scores, margin, 1 - margin)
        shares = _shares(scores)
        least = scores.dtype.type(_LEAST_SHARE)
        return np.asarray((shares + least) / (1 + least * shares.shape[1]))

    def _predicted(self, X: Any, X_weights: Any) -> Array:
        check_is_fitted(self)
        if self.multilabel_:
            return np.asarray(self._decisions(X, X_weights) > 0, dtype=np.int64)
        return np.asarray(self.classes_[self._chances(X, X_weights).argmax(axis=1)])


def _shares(scores: Array) -> Array:
    """Divide the rows by their sums; scaled first, so that tiny scores cannot vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))
