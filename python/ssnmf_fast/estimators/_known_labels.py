"""Labels of samples in the form in which classifiers are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Labels:
    """Labels of n samples.

    `members` (n, k) holds 1 for the classes of a sample and 0 elsewhere, `entry_weights` (n, k) how
    much each of these entries counts, 0 where it is unknown; `known` (n,) marks the samples of
    which any counts.
    """

    members: Array
    entry_weights: Array
    several: bool

    @property
    def known(self) -> Array:
        return np.asarray(self.entry_weights.any(axis=1))

    @property
    def codes(self) -> Array:
        """Class of every sample, (n,); 0 where there is none."""
        return np.asarray(self.members.argmax(axis=1))

    @property
    def counts(self) -> Array:
        """Number of known samples of each class, (k,)."""
        return np.asarray((self.members[self.known] > 0).sum(axis=0))

    def prior(self) -> Array:
        """Return the share of each class among the samples of which it is known, (k,)."""
        seen = (self.entry_weights > 0).sum(axis=0)
        return np.asarray((self.members > 0).sum(axis=0) / np.maximum(seen, 1))

    def only(self, rows: Array) -> Labels:
        """Return the labels of some samples, all others being unknown."""
        return replace(self, entry_weights=self.entry_weights * rows[:, None])

    def targets(self, rows: Array) -> Array:
        """Return what the readout is fitted to, for some rows: codes, or indicators."""
        return self.members[rows] if self.several else self.codes[rows]

    def readout_weights(self, rows: Array) -> Array:
        """Return weights for the readout, (rows,) or with several labels (rows, k)."""
        chosen = self.entry_weights[rows]
        if self.several:
            return chosen
        own = chosen[np.arange(len(chosen)), self.codes[rows]]
        return np.asarray(own / own.mean() if own.any() else own)
