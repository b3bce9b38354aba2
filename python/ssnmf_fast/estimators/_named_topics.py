"""Topics with names, of which free ones follow the named ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import COUNT, Saved
from .._topics import Topics
from ._predicting import ReadoutPredictions


@dataclass(eq=False, repr=False, kw_only=True)
class NamedTopics(ReadoutPredictions):
    """A dictionary whose first topics have names, which are also classes of the samples."""

    readout: str | None = "logistic"

    _saved: ClassVar = {
        "topic_names_": Saved("t"),
        "n_labeled_": COUNT,
    }

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the topics; those of free ones are "free0", "free1", ...

        Returns
        -------
        ndarray of str, shape (r,)
        """
        check_is_fitted(self)
        return np.array(self._names(), dtype=object)

    def topics(self, feature_names: Any = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest weights of every topic, and the names of topics."""
        return super().topics(feature_names, n_terms).named(self._names())

    def _names(self) -> list[str]:
        named = [str(name) for name in self.topic_names_.tolist()]
        return named + [f"free{k}" for k in range(len(self.components_) - len(named))]
