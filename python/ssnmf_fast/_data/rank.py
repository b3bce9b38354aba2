"""Ranks that are too large: for the memory of the machine, or for the data to have use of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._common.warn import warn_user

_FEW = 10  # components, the default of the estimators
_NEVER_TOO_MUCH = 1 << 28  # bytes; the machine is not asked about less


def available_memory() -> int | None:
    """Return how many bytes this process may still use, or None where that is not known."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = dict(line.split(":", 1) for line in lines)["MemAvailable"]
        found.append(int(kilobytes.split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        with suppress(AttributeError, OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # a group without a limit has "max"
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        found.append(most - int((group / "memory.current").read_text()))
    return min(found) if found else None


def require_memory(rank: int, shape: Sequence[int], dtype: Any) -> None:
    """Raise ValueError if factors of a rank exceed the memory that is available.

    A fit holds at least the factors, with as many rows as the lengths of X sum to, the numerators
    of their updates, and an r x r matrix.
    """
    needed = dtype.itemsize * rank * (2 * sum(shape) + rank)
    available = available_memory() if needed > _NEVER_TOO_MUCH else None
    if available is not None and needed > available:
        raise ValueError(
            f"n_components={rank} needs at least {needed / 2**30:.1f} GiB of memory for X of shape "
            f"{tuple(shape)}, and {available / 2**30:.1f} GiB are available. Give fewer components."
        )


def warn_of_rank(rank: int, most: int, of: str) -> None:
    """Warn if a model without supervision has more components than describe any data exactly.

    Few components cost nothing: the default number is never warned of.
    """
    if rank > max(most, _FEW):
        warn_user(
            f"n_components={rank} is more than {of} = {most} of X: so many components reproduce X "
            "exactly, and more add nothing. Give fewer components.",
            UserWarning,
        )
