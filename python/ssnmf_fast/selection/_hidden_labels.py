"""Labels that are hidden from fits, to be predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor

from .._common.arrays import Array
from .._data.arrays import as_array
from .._labels import ClassLabels, RealTargets, label_vector, labels_of


@dataclass(frozen=True)
class HiddenLabels:
    """What fits see of the labels, and the samples whose labels are hidden, with these."""

    y: Any
    rows: Array
    truth: Any

    def score(self, model: Any, X: Any) -> float:
        """Return the score of a fitted model: an accuracy, or R^2 of a regressor."""
        return float(model.score(X[self.rows], self.truth))


def hide_labels(
    y: Any, estimator: Any, n: int, share: float, rng: np.random.Generator
) -> HiddenLabels:
    """Hide a random share of the labels; each class keeps a sample with a label."""
    if is_regressor(estimator):
        targets: Any = RealTargets(y)
    else:
        targets = labels_of(y, getattr(estimator, "unlabeled", None))
    labeled = targets.labeled
    if len(labeled) != n:
        raise ValueError(f"y has {len(labeled)} samples and X has {n}; expected one row for each.")
    order = rng.permutation(np.flatnonzero(labeled))
    wanted = max(1, round(share * len(order)))
    if isinstance(targets, ClassLabels):
        codes = np.full(n, -1)
        codes[labeled] = targets.codes
        order = order[_may_be_hidden(codes[order])]
    rows = np.sort(order[:wanted])
    if not len(rows) or len(rows) == np.count_nonzero(labeled):
        raise ValueError(
            f"y has {np.count_nonzero(labeled)} labels, too few to hide some of them; label more "
            "samples, or leave y out."
        )
    if isinstance(targets, ClassLabels):
        given = label_vector(y, "y", column=True)
        seen = np.array(given, dtype=object)
        seen[rows] = None
        return HiddenLabels(seen, rows, given[rows])
    given = y.toarray() if sp.issparse(y) else as_array(y, "y")
    seen = given.astype(np.float64)
    seen[rows] = np.nan
    return HiddenLabels(seen, rows, given[rows])


def _may_be_hidden(codes: Array) -> Array:
    """Return for labels in an order whether one of their class comes later: the last one stays."""
    last = {code: place for place, code in enumerate(codes.tolist())}
    stays = np.fromiter(last.values(), dtype=np.intp)
    allowed = np.ones(len(codes), dtype=bool)
    allowed[stays] = False
    return allowed
