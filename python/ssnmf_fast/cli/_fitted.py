"""A fitted model beside what it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ._labels import SampleLabels

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fitted:
    """A fitted model and what it was fitted to.

    `labels` holds the hidden ones too; `guided` says whether the fit saw the others.
    """

    model: Any
    X: Any
    labels: SampleLabels | None
    held_out: npt.NDArray[np.bool_]
    terms: list[str] | None
    seconds: float
    settings: list[tuple[str, str]]
    is_text: bool = False
    guided: bool = True

    @property
    def training(self) -> npt.NDArray[np.bool_]:
        """Which samples have a label that is not hidden."""
        if self.labels is None:
            return np.zeros(len(self.held_out), dtype=bool)
        return self.labels.known & ~self.held_out

    @cached_property
    def transformed(self) -> Array:
        """All samples as new ones: what `transform` makes of them, without their labels."""
        return np.asarray(self.model.transform(self.X))

    @cached_property
    def amounts(self) -> Array:
        """The same in comparable units: how much of a sample each topic explains."""
        return amounts(self.model, self.transformed)

    @cached_property
    def scores(self) -> Array:
        """The scores that a classifier gives all samples, (n, k)."""
        return np.asarray(self.model.predict_proba(self.X))


def amounts(model: Any, S: Array) -> Array:
    """Return how much of each sample every topic explains: S times the sums of the topics.

    A factorisation leaves the scales of its topics open: a weight in S may be large only because
    its topic is small.
    """
    return np.asarray(S * model.components_.sum(axis=1))
