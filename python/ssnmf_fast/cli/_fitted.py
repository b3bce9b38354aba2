"""A fitted model beside what it was fitted to."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._topics import amounts, topic_shares
from ._sample_labels import SampleLabels


@dataclass(frozen=True)
class Fitted:
    """A fitted model and what it was fitted to.

    `labels` holds the hidden ones too; `guided` tells whether the fit saw the others.  `texts` are
    those that X was made of; rows of X that are images have an `image_shape`, height and width.
    """

    model: Any
    X: Any
    labels: SampleLabels | None
    held_out: npt.NDArray[np.bool_]
    terms: list[str] | None
    seconds: float
    settings: list[tuple[str, str]]
    texts: list[str] | None = None
    image_shape: tuple[int, int] | None = None
    is_text: bool = False
    guided: bool = True
    ids: tuple[str, Sequence[Any]] | None = None  # name of the column and id of every sample

    @property
    def dated(self) -> bool:
        """Whether the topics have a prevalence over time."""
        return hasattr(self.model, "prevalence_")

    @property
    def training(self) -> npt.NDArray[np.bool_]:
        """Which samples have a label that is not hidden."""
        if self.labels is None:
            return np.zeros(len(self.held_out), dtype=bool)
        return self.labels.known & ~self.held_out

    @cached_property
    def transformed(self) -> Array:
        """All samples as new ones: what `transform` makes of them, without their labels."""
        return np.asarray(weights_model(self.model).transform(self.X))

    @cached_property
    def amounts(self) -> Array:
        """The same in comparable units: how much of a sample each topic explains."""
        return amounts(self._representation, self.model.components_)

    @cached_property
    def shares(self) -> Array:
        """The same as shares of each sample; rows sum to 1 or are 0."""
        return topic_shares(self._representation, self.model.components_)

    @property
    def _representation(self) -> Array:
        # What a fit without labels found needs no second look.
        return self.transformed if self.guided else np.asarray(self.model.representation_)

    @cached_property
    def chances(self) -> Array:
        """The probabilities that a model gives the classes of all samples, (n, k)."""
        return np.asarray(self.model.predict_proba(self.X))

    @cached_property
    def predicted(self) -> Array:
        """The predicted classes of all samples, (n,), or with several labels 0 and 1, (n, k)."""
        return predicted_labels(self.model, self.X, self.chances)


def weights_model(model: Any) -> Any:
    """Return a model whose `transform` gives the weights of the topics."""
    if "features" not in getattr(model, "get_params", dict)():
        return model
    return copy.copy(model).set_params(features="representation")


def predicted_labels(model: Any, X: Any, chances: Array) -> Array:
    """Return what a model predicts for X, whose probabilities are given."""
    if getattr(model, "multilabel_", False):
        return np.asarray(model.predict(X))
    return np.asarray(model.classes_[chances.argmax(axis=1)]).astype(str)
