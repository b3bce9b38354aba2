"""Learning from batches, with statistics of earlier batches."""

from __future__ import annotations

from typing import Any, ClassVar

from .._common.saved import STREAM, Saved
from .._labels import Targets
from .._models.online import Learner, Online, learn_batch
from .._solver.weights import WeightsLike
from ._base import Estimator, FactorizationBase
from ._training_data import as_outer, checked_weight, label_weights, with_sample_weight

_OF_FITS = (  # and not of batches
    *("representation_", "receipt_"),
    *("refitted_label_components_", "readout_", "class_shares_"),
)


class BatchLearner(Estimator):
    """Base of estimators that learn from batches, with statistics of earlier batches."""

    _saved: ClassVar[dict[str, Saved]] = {"stream_statistics_": STREAM}

    def _resumed(self) -> Learner:
        """Return the state after a fit, or after earlier batches."""
        raise NotImplementedError

    def _keep_learned(self, learner: Learner) -> None:
        """Set the attributes that count the calls of `partial_fit`, and drop those of a fit."""
        for name in _OF_FITS:
            self.__dict__.pop(name, None)
        earlier = vars(self)["objective_"] if hasattr(self, "stream_statistics_") else []
        self.n_iter_ = vars(self)["n_iter_"] + 1 if earlier else 1
        self.objective_ = [*earlier, (self.n_iter_, learner.mean_loss)]
        self.stream_statistics_ = learner.arrays()

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if hasattr(self, "stream_statistics_"):
            self._resumed()


def refuse_to_continue(name: str, parts: str) -> None:
    raise ValueError(
        f"partial_fit cannot continue a fit with {name}, which {parts} do not take. Fit all data "
        "together, or start with a new estimator."
    )


class SampleBatchLearner(BatchLearner, FactorizationBase):
    """Base of factorizations that can learn from batches of samples."""

    _saved: ClassVar = {
        "stream_settings_": Saved(optional=True, kind=dict[str, str | float | None]),
    }

    def _resumed(self) -> Online:
        for name, attribute in (("covariates", "n_fixed_"), ("penalties", "sample_penalties_")):
            if getattr(self, attribute, None):
                refuse_to_continue(name, "batches")
        settings = getattr(self, "stream_settings_", {"loss": self.loss_})
        A, B = self.components_, getattr(self, "label_components_", None)
        return Online.resume(A, B, settings, getattr(self, "stream_statistics_", {}))

    def _learn_batch(
        self, X: Any, X_weights: WeightsLike, targets: Targets | None, weights: Any, **replaced: Any
    ) -> None:
        """Learn from a checked batch and set the attributes; `replaced` overrides parameters."""
        sample_weight = checked_weight(weights.get("sample_weight"), X.shape[0])
        if targets is not None:
            replaced["y_weights"] = as_outer(label_weights(targets.labeled, **weights))
        online = learn_batch(
            self._resumed() if hasattr(self, "components_") else None,
            X,
            None if targets is None else targets.matrix(X.dtype),
            X_weights=with_sample_weight(X, X_weights, sample_weight),
            sample_weight=sample_weight,
            **self._arguments(learn_batch) | {"y_weights": None} | replaced,
        )
        self.components_ = online.components("A")
        if targets is not None:
            self.label_components_ = online.components("B")
        self._keep_learned(online)
        self.stream_settings_ = online.settings
