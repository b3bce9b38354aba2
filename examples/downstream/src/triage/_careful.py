"""A subclass of an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import ssnmf_fast as sf


@dataclass(eq=False, repr=False, kw_only=True)
class CarefulClassifier(sf.FewLabelsClassifier):
    """A FewLabelsClassifier that marks uncertain samples for manual review.

    Estimators of ssnmf_fast are dataclasses, and their fields are their
    parameters. The fields of this subclass are additional parameters.

    Parameters
    ----------
    min_probability : float, default 0.6
        Samples are doubtful if the probability of their best class is smaller.
    doubtful : str, default "?"
        Prediction for doubtful samples.
    """

    min_probability: float = 0.6
    doubtful: str = "?"

    def predict(
        self, X: Any, *, X_weights: Any = None, side: Any = None
    ) -> npt.NDArray[Any]:
        """Predict classes, or `doubtful`."""
        probability = self.predict_proba(X, X_weights=X_weights, side=side)
        best = np.asarray(self.classes_, dtype=object)[
            probability.argmax(axis=1)
        ]
        return np.where(
            probability.max(axis=1) < self.min_probability, self.doubtful, best
        )
