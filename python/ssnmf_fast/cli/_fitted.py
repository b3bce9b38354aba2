"""Data, and a fitted model beside them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.times import Times
from .._topics import amounts, topic_shares
from ._labels import Mask, SampleLabels
from ._text import Vectorizer

Ids = tuple[str, Sequence[Any]]  # name of the column, and the id of every sample


@dataclass(frozen=True, kw_only=True)
class Data:
    """Samples and what is known of them; rows of X that are images have an `image_shape`."""

    X: Any
    labels: SampleLabels | None = None
    terms: list[str] | None = None
    vectorizer: Vectorizer | None = None
    texts: list[str] | None = None  # of which the vectorizer made X
    ids: Ids | None = None
    times: Times | None = None
    image_shape: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Fitted(Data):
    """A fitted model beside data: those of the fit, or new ones.

    `labels` holds the hidden ones too; `guided` tells whether the fit saw the others.
    """

    model: Any
    held_out: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    guided: bool = True
    seconds: float = 0.0
    settings: Sequence[tuple[str, str]] = ()

    @property
    def dated(self) -> bool:
        """Whether the topics have a prevalence over time."""
        return hasattr(self.model, "prevalence_")

    @property
    def predicts(self) -> bool:
        """Whether the model predicts labels."""
        return hasattr(self.model, "predict_proba")

    @property
    def residual(self) -> float | None:
        """How far the fit ended from the optimality conditions; None for models without them."""
        receipt = getattr(self.model, "receipt_", None)
        return None if receipt is None else float(receipt.residual)

    @property
    def training(self) -> Mask:
        """Which samples have a label that is not hidden."""
        if self.labels is None:
            return np.zeros(len(self.held_out), dtype=bool)
        return self.labels.known & ~self.held_out

    @cached_property
    def representation(self) -> Array:
        """The weights of the topics in all samples, represented without their labels."""
        if not self.guided:  # what a fit without labels found needs no second look
            return np.asarray(self.model.representation_)
        model = self.model
        if "features" in getattr(model, "get_params", dict)():
            model = copy.copy(model).set_params(features="representation")
        return np.asarray(model.transform(self.X))

    @cached_property
    def amounts(self) -> Array:
        """The same in comparable units: how much of a sample each topic explains."""
        return amounts(self.representation, self.model.components_)

    @cached_property
    def shares(self) -> Array:
        """The same as shares of each sample; rows sum to 1 or are 0."""
        return topic_shares(self.representation, self.model.components_)

    @cached_property
    def chances(self) -> Array:
        """The probabilities that a model gives the classes of all samples, (n, k)."""
        return np.asarray(self.model.predict_proba(self.X))

    @cached_property
    def predicted(self) -> Array:
        """The predicted classes of all samples, (n,), or with several labels 0 and 1, (n, k)."""
        if getattr(self.model, "multilabel_", False):
            return np.asarray(self.model.predict(self.X))
        return np.asarray(self.model.classes_[self.chances.argmax(axis=1)]).astype(str)
