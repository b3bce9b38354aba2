"""Learning from batches of samples, or from slices of a tensor, with statistics of earlier ones."""

from __future__ import annotations

from typing import Any, ClassVar

from .._common.saved import STREAM, Saved
from .._labels import Targets
from .._models.online import Online, Stream, learn_batch
from .._solver.weights import WeightsLike
from ._base import FactorizationBase
from ._training_data import as_outer, checked_weight, label_weights, with_sample_weight


def keep_stream(model: Any, stream: Online | Stream) -> None:
    """Set the attributes that count the calls of `partial_fit`, and drop those of a fit alone."""
    for name in ("representation_", "refitted_label_components_", "receipt_"):
        model.__dict__.pop(name, None)
    earlier = model.objective_ if hasattr(model, "stream_statistics_") else []
    model.n_iter_ = model.n_iter_ + 1 if earlier else 1
    model.objective_ = [*earlier, (model.n_iter_, stream.mean_loss)]
    model.stream_statistics_ = stream.arrays()


def refuse_to_continue(name: str, parts: str) -> None:
    raise ValueError(
        f"partial_fit cannot continue a fit with {name}, which {parts} do not take. Fit all data "
        "together, or start with a new estimator."
    )


class BatchLearner(FactorizationBase):
    """Base of factorizations that can learn from batches of samples."""

    _saved: ClassVar = {
        "stream_statistics_": STREAM,
        "stream_settings_": Saved(optional=True, kind=dict[str, str | float | None]),
    }

    def _resumed(self) -> Online:
        """Return the state after a fit, or after earlier batches."""
        for name, attribute in (("covariates", "n_fixed_"), ("penalties", "sample_penalties_")):
            if getattr(self, attribute, None):
                refuse_to_continue(name, "batches")
        loss = self.receipt_.settings["loss"] if hasattr(self, "receipt_") else "given"
        settings = getattr(self, "stream_settings_", {} if loss == "given" else {"loss": loss})
        sums = getattr(self, "stream_statistics_", {})
        B = getattr(self, "label_components_", None)
        return Online.resume(self.components_, B, settings, sums)

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
        self.components_ = online.array("A")
        if targets is not None:
            self.label_components_ = online.array("B")
        keep_stream(self, online)
        self.stream_settings_ = online.settings
