"""Data of which entries are hidden, and how well fits to the rest predict them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._data.threads import Stop
from ._errors import Seen, Unseen
from ._fits import EstimatorFits, PlainFits
from ._hidden import Hidden, hide_entries
from ._hidden_labels import HiddenLabels, hide_labels
from ._search import Outcome


@dataclass(frozen=True)
class EntrySplit:
    """Hidden entries anywhere in X and, of labeled samples, hidden labels."""

    X: Any
    hidden: Hidden
    fits: PlainFits | EstimatorFits
    labels: HiddenLabels | None = None

    @cached_property
    def _unseen(self) -> Unseen:
        hidden = self.hidden
        seen = Seen.of(hidden.X_weights.seen(hidden.X))
        return Unseen(hidden.values, hidden.weights, seen)

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        y = None if self.labels is None else self.labels.y
        seen = self.hidden.X, self.hidden.X_weights, y
        fit = self.fits.fit(*seen, rank, seed, threads, stop)
        measures = self._unseen.measures(fit.S, fit.A, self.fits.loss, threads)
        if self.labels is not None:
            measures["label_score"] = self.labels.score(fit.model, self.X)
        return Outcome(fit.objective, measures)


def entry_splits(
    X: Any,
    X_weights: Any,
    y: Any,
    fits: PlainFits | EstimatorFits,
    share: float,
    zeros: bool,
    rng: np.random.Generator,
) -> Iterator[EntrySplit]:
    """Give one split after the other, without an end."""
    while True:
        hidden = hide_entries(X, X_weights, share, zeros, rng)
        labels = None
        if y is not None and isinstance(fits, EstimatorFits):
            labels = hide_labels(y, fits.estimator, X.shape[0], share, rng)
        yield EntrySplit(X, hidden, fits, labels)
