"""An estimator by sub-classing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import ssnmf_fast as sf


@dataclass(eq=False, repr=False, kw_only=True)
class CarefulClassifier(sf.FewLabelsClassifier):
    """A FewLabelsClassifier that leaves doubtful samples to people.

    Estimators of ssnmf_fast are dataclasses, whose fields are their parameters: a decorated
    sub-class has the fields below as parameters too.

    Parameters
    ----------
    min_probability : float, default 0.6
        Samples whose most probable class is less probable than this are doubtful.
    doubtful : str, default "?"
        What is predicted for them.
    """

    min_probability: float = 0.6
    doubtful: str = "?"

    def predict(self, X: Any, *, X_weights: Any = None, side: Any = None) -> npt.NDArray[Any]:
        """Predict classes, or `doubtful`."""
        probability = self.predict_proba(X, X_weights=X_weights, side=side)
        best = np.asarray(self.classes_, dtype=object)[probability.argmax(axis=1)]
        return np.where(probability.max(axis=1) < self.min_probability, self.doubtful, best)
