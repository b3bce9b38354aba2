"""What a callback sees of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._common.arrays import Array


@dataclass(frozen=True)
class FitState:
    """What a callback sees; the factors are attributes, too.

    Attributes
    ----------
    iteration : int
        Number of updates of every factor so far.
    objective : float
        The value that is being minimized.
    factors : mapping of str to ndarray or None
        Read-only views of the factors: of a factorization S, A and B, of shapes (n, r), (r, m) and
        (r, k).
    """

    iteration: int
    objective: float
    factors: Mapping[str, Array | None] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return a factor."""
        factors = self.__dict__.get("factors", {})
        if name in factors:
            return factors[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
