"""Learning from batches: what `partial_fit` of several estimators shares."""

from __future__ import annotations

from typing import Any

from .._common.warn import warn_user
from .._labels import Targets
from .._models.online import Online, learn_batch
from ._base import FactorizationBase
from ._target_weights import combined_weights


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
        self.__dict__.pop("representation_", None)

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
