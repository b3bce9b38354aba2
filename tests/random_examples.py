"""How many random examples the large tests draw: ``SSNMF_FAST_EXAMPLES`` is the share of them."""

from __future__ import annotations

import os

from levels import IS_REFERENCE

__all__ = ["examples"]

_LEAST = 10
_SHARE = float(os.environ.get("SSNMF_FAST_EXAMPLES", "1"))
if not 0 < _SHARE <= 1:
    raise ValueError(f"SSNMF_FAST_EXAMPLES must be above 0 and at most 1; got {_SHARE}")


def examples(number: int, in_numpy: int | None = None) -> int:
    """Return the share of so many examples, or of so many where NumPy stands in for kernels."""
    full = in_numpy if in_numpy is not None and IS_REFERENCE else number
    return min(full, max(_LEAST, round(_SHARE * full)))
