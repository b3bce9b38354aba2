"""Learning from batches: what `partial_fit` of several estimators shares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import Saved
from .._common.warn import warn_user
from .._labels import Targets
from .._models.online import Online, learn_batch
from .._models.represent import represent
from ._base import FactorizationBase
from ._training_labels import TrainingLabels, combined_weights


class BatchLearner(FactorizationBase):
    """A factorisation that may learn from one batch of samples after the other."""

    forget_factor: float

    def _learn_batch(
        self,
        X: Any,
        targets: Targets | None,
        X_weights: Any,
        y_weights: Any,
        past_weight: float | None,
        **replaced: Any,
    ) -> None:
        """Learn from a checked batch, and set the attributes; some parameters may be replaced."""
        Y, Y_weights = None, None
        if targets is not None:
            Y = targets.matrix(X.dtype)
            Y_weights = combined_weights(y_weights, targets.labelled, Y.shape)
        first = not hasattr(self, "_online")
        online = getattr(self, "_online", None)
        if first and hasattr(self, "components_"):
            online = Online.resumed(self.components_, getattr(self, "label_components_", None))
        online = learn_batch(
            online,
            X,
            Y,
            X_weights=X_weights,
            Y_weights=Y_weights,
            forget_factor=self._forget_factor(past_weight),
            **self._arguments(self._model_parameters) | replaced,
        )
        self._online = online
        self.components_ = online.array("A")
        if Y is not None:
            self.label_components_ = online.array("B")
        self.n_iter_ = online.n_steps
        earlier = [] if first else self.objective_
        # A new list: copies of the model share the old one.
        self.objective_ = [*earlier, (online.n_steps, online.mean_loss)]
        for name in ("representation_", "refitted_label_components_"):
            self.__dict__.pop(name, None)

    def _batch(self, X: Any) -> Any:
        """Return a batch, checked; the first one sets the number of features."""
        return self._checked(X, reset=not hasattr(self, "components_"))

    def _forget_factor(self, past_weight: float | None) -> float:
        if past_weight is None:
            return self.forget_factor
        warn_user(
            "The parameter past_weight of partial_fit is now forget_factor of the estimator; "
            "past_weight will be removed in the next version.",
            FutureWarning,
        )
        return past_weight


class SupervisedBase(BatchLearner):
    """A factorisation X ~ S A, Y ~ S B, of which B predicts the targets Y."""

    _saved: ClassVar = {**BatchLearner._saved, "label_components_": Saved("rk")}
    _model_parameters = (*BatchLearner._model_parameters, "supervision", "supervision_weight")

    def _refit_components(self, S: Array, labels: TrainingLabels) -> None:
        """Set the B that minimises sum L .* d(Y, S B): a convex problem.

        S represents all samples without their labels; Y and L are the labels that are known, and
        their weights.
        """
        rows = labels.known
        weights = labels.entry_weights[rows]
        B = represent(
            np.ascontiguousarray(labels.members[rows].T, dtype=S.dtype),
            np.ascontiguousarray(S[rows].T),
            loss=self.supervision,
            X_weights=None if (weights == 1).all() else np.ascontiguousarray(weights.T),
        )
        self.refitted_label_components_ = np.ascontiguousarray(B.T)

    def _scores(self, X: Any) -> Array:
        """Return S B, (n, k), with the B that the readout uses."""
        check_is_fitted(self)
        S = self._represent(self._checked(X, reset=False), None)
        B = getattr(self, "refitted_label_components_", self.label_components_)
        return np.asarray(S @ B.astype(S.dtype, copy=False))
