"""Labels of samples, read as the estimators read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Labels:
    """Which samples have which label.

    Attributes
    ----------
    names : list of str, length k
    indicators : scipy.sparse.csr_array, shape (n, k)
        1 where a sample has a label, 0 elsewhere; a row of zeros for an unlabelled sample.
    """

    names: list[str]
    indicators: sp.csr_array

    def sums(self, S: Array) -> tuple[Array, list[str]]:
        """Return the sums of S over the samples of every label, (r, k), and the labels' names."""
        return np.asarray((self.indicators.T @ S).T), self.names


def read_labels(y: Any, unlabelled: Any) -> Labels:
    """Return the labels of samples.

    Raises
    ------
    ValueError
        If no sample has a label, or `y` cannot be read.
    """
    # scikit-learn is imported when labels are read, not with the package.
    from ..estimators._targets import labels_of

    targets = labels_of(y, unlabelled)
    if not targets.labelled.any():
        raise ValueError("y has no labelled sample; give labels of some samples.")
    matrix = targets.matrix(np.float64)
    indicators = sp.csr_array(matrix if sp.issparse(matrix) else np.nan_to_num(matrix))
    return Labels([str(label) for label in targets.classes.tolist()], indicators)
