"""Nonnegative real targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import as_array, read_csr
from ._classes import no_labels


class RealTargets:
    """Nonnegative real targets; `complete` marks rows without NaN and `known` holds them."""

    def __init__(self, y: Any, n_targets: int | None = None) -> None:
        values = target_numbers(read_csr(y, "y").toarray() if sp.issparse(y) else y, "y")
        if values.ndim not in (1, 2) or values.size == 0:
            raise ValueError(f"y has shape {values.shape}; expected (samples,) or (samples, k).")
        self.n_targets = 0 if values.ndim == 1 else values.shape[1]
        if n_targets is not None and max(n_targets, 1) != max(self.n_targets, 1):
            raise ValueError(f"y has shape {values.shape}; expected {max(n_targets, 1)} targets.")
        if np.isinf(values).any():
            raise ValueError("y contains infinity; give finite targets, or NaN for unlabeled.")
        self._values = values.reshape(len(values), -1)
        absent = np.isnan(self._values)
        self.labeled: Array = np.asarray(~absent.all(axis=1))
        self.complete: Array = np.asarray(~absent.any(axis=1))
        self.known = values[self.complete]

    def check_fit(self) -> None:
        """Raise ValueError unless some target is given."""
        if not self.labeled.any():
            raise no_labels()

    def check_sign(self) -> None:
        """Raise ValueError if a target is negative."""
        lowest = np.fmin.reduce(self._values, axis=None)
        if lowest < 0:
            row, column = np.argwhere(self._values == lowest)[0]
            raise ValueError(
                f"Negative values in y: the lowest is y[{row}, {column}] = {lowest:g}. The model "
                "needs targets >= 0; subtract the minimum, and add it to the predictions."
            )

    def matrix(self, dtype: Any) -> Array:
        """Return Y, with zeros in unlabeled rows and NaN where single entries are missing."""
        return np.where(self.labeled[:, None], self._values, 0).astype(dtype)


def target_numbers(y: Any, name: str) -> Array:
    """Return numbers as float64, NaN where a masked array is masked."""
    if np.ma.is_masked(y):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    array = as_array(y, name)
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers; got dtype {array.dtype}.") from error
    return array.astype(np.float64)
