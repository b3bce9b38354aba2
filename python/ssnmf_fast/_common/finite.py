"""The check at the end of every fit, representation and prediction: no NaN and no infinity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

HINT = (
    "Bring the data, their weights, supervision_weight and a given init nearer to 1, by constant "
    "factors, or use float64 data."
)


def require_finite(results: Mapping[str, Any], hint: str = HINT) -> None:
    """Raise ValueError for the first of some results that holds NaN or infinity.

    A result is a number, an array, or a list or mapping of them; what is not in memory is left out.
    """
    for name, value in results.items():
        if isinstance(value, Mapping):
            require_finite({f"{name}[{key!r}]": one for key, one in value.items()}, hint)
        elif isinstance(value, list):
            require_finite({f"{name}[{k}]": one for k, one in enumerate(value)}, hint)
        elif not _finite(value):
            kind = f"{value.dtype}" if hasattr(value, "dtype") else "float64"
            raise ValueError(
                f"{name} would hold NaN or infinity: numbers are outside of the range of {kind}. "
                f"{hint}"
            )


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    entries = value.data if sp.issparse(value) else value
    if not isinstance(entries, np.ndarray) or entries.dtype.kind != "f" or not entries.size:
        return True
    return bool(np.isfinite(entries.min()) and np.isfinite(entries.max()))  # no array of bools
