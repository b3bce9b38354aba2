"""How many random examples the large tests draw: the share ``SSNMF_FAST_EXAMPLES`` of them all.

A quarter by default; `.ci/run` draws all.  With all, every estimator takes all checks of
scikit-learn, too.
"""

from __future__ import annotations

import os

from helpers.levels import IS_REFERENCE

__all__ = ["ALL", "examples"]

_LEAST = 10
_SHARE = float(os.environ.get("SSNMF_FAST_EXAMPLES", "0.25"))
if not 0 < _SHARE < float("inf"):
    raise ValueError(f"SSNMF_FAST_EXAMPLES must be finite and above 0; got {_SHARE}")
ALL = _SHARE >= 1


def examples(number: int, in_numpy: int | None = None) -> int:
    """Return the share of so many examples, or of so many where NumPy stands in for kernels."""
    full = in_numpy if in_numpy is not None and IS_REFERENCE else number
    return max(min(full, _LEAST), round(_SHARE * full))
