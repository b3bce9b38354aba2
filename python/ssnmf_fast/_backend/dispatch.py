"""Choice of the kernels: one compiled module per instruction-set level, picked once at import.

``SSNMF_FAST_ISA`` forces a level: base, v3 (AVX2 and FMA), v4 (AVX-512), or reference (NumPy).
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

_ORDER = ("base", "v3", "v4")


def available_levels() -> list[str]:
    """Return the levels that this build has and this processor can run, slowest first."""
    from .. import _cpu

    usable = _cpu.levels()
    built = _cpu.built_levels()
    return [level for level in _ORDER if level in usable and level in built]


def missing_level() -> str | None:
    """Return the best level of this processor if this build lacks it, else None."""
    from .. import _cpu

    best = [level for level in _ORDER if level in _cpu.levels()][-1]
    return None if best in _cpu.built_levels() else best


def _load(level: str) -> Any:
    package = "ssnmf_fast"
    module = "_backend.reference" if level == "reference" else f"_kernels_{level}"
    return importlib.import_module(f"{package}.{module}")


def _choose() -> str:
    forced = os.environ.get("SSNMF_FAST_ISA", "").strip().lower()
    if forced == "reference":
        return forced
    available = available_levels()
    if not forced:
        return available[-1]
    if forced not in available:
        reason = (
            "this processor or build lacks it" if forced in _ORDER else "there is no such level"
        )
        raise ValueError(
            f"SSNMF_FAST_ISA={forced!r} cannot be used: {reason}. "
            f"Available here: {', '.join([*available, 'reference'])}; unset it to use the fastest."
        )
    return forced


level: str = _choose()
if TYPE_CHECKING:
    # Every module has the signatures of the reference.
    from . import reference as _reference

    kernels = _reference
else:
    kernels = _load(level)
