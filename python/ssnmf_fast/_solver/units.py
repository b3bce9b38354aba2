"""Powers of two, which round nothing: units of very large or small data, scales of components.

Squares of entries and the floors of the kernels have their place in the range of a floating-point
type.  Data outside of the middle of the range are divided by a power of two, and the factors are
multiplied by it in the end: X times 2^k has the model of X, times 2^k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_factor
from .._data.csr_file import CsrFile
from .losses import Loss
from .relations import Relation
from .terms import values_of, with_values

# Beyond this order of magnitude, squares of entries leave the range.
_SQUARED = {np.dtype(np.float32): 45, np.dtype(np.float64): 450}
# Binary orders of magnitude of the largest entry for which nothing needs to be done.
_ORDINARY = 30
_DRIFT = 20  # binary orders of magnitude between the two sides of a component
_MIDDLE = {np.dtype(np.float32): _ORDINARY, np.dtype(np.float64): 50}


def exponent_of(Z: Any, name: str, model: int | None = None) -> int:
    """Return k, even, for clean data to be divided by 2^k; 0 for data of ordinary size.

    A model of the data, of a given binary order of magnitude, is in the range then, too.
    """
    if isinstance(Z, CsrFile):
        largest = float(np.sqrt(Z.squares / max(Z.nnz, 1)))
    else:
        largest = float(np.fmax.reduce(values_of(Z), axis=None, initial=0.0))
    exponent = order_of(largest)
    if model is not None and model > exponent + _DRIFT:  # else as for the fit of the model
        exponent = model
    if abs(exponent) <= _MIDDLE[Z.dtype]:
        return 0
    if isinstance(Z, CsrFile):
        raise ValueError(
            f"{name} is on disk and has entries of about {largest:.3g}; multiply it by a constant "
            "that brings them nearer to 1, and save it again."
        )
    return exponent + exponent % 2


def order_of(largest: Any) -> int:
    """Return the binary order of magnitude of a number."""
    return int(np.frexp(largest)[1])


def scaled(Z: Any, exponent: int) -> Any:
    """Return data times 2^exponent."""
    return with_values(Z, np.ldexp(values_of(Z), exponent)) if exponent else Z


def _times(number: float, exponent: float) -> float:
    """Return number * 2^exponent; 0 or infinity beyond the range."""
    with np.errstate(over="ignore", under="ignore"):
        whole = int(np.floor(exponent))
        return float(np.ldexp(number * 2.0 ** (exponent - whole), whole))


def _of_loss(name: str, exponent: int, loss: Loss) -> float:
    """Return the binary exponent of the loss of data divided by 2^exponent."""
    if exponent == 0:
        return 0.0
    if loss.degree is None:
        raise ValueError(
            f"{name} has a largest entry of about 2**{exponent}, and the loss {loss.name!r} has no "
            "degree by which its values could be scaled; multiply the data by a constant that "
            "brings them nearer to 1, or set the attribute `degree` of the loss if it has one."
        )
    return loss.degree * exponent


@dataclass(frozen=True)
class Units:
    """Powers of two between what a user has and what is fitted: X = 2^x X', S = 2^s S' ..."""

    x: int = 0
    y: int = 0
    s: int = 0  # those of A and B follow
    of_x: float = 0  # of the loss of X
    of_y: float = 0
    whole: float = 0  # of the objective

    @property
    def trivial(self) -> bool:
        return self.x == 0 and self.y == 0

    def require_trivial(self, what: str, it: str = "it") -> None:
        """Raise ValueError for data of a size for which there can be no such thing."""
        for name, exponent in (("X", self.x), ("Y", self.y)):
            if exponent:
                raise ValueError(
                    f"{name} has a largest entry of about 2**{exponent}, and {what} need one of "
                    f"ordinary size; multiply {it} by one constant that brings it nearer to 1."
                )

    @property
    def factors(self) -> dict[str, int]:
        """Exponents of the factors."""
        return {"S": self.s, "A": self.x - self.s, "B": self.y - self.s}

    @classmethod
    def of(cls, x: int, y: int, losses: tuple[Loss, Loss], labels: bool = False) -> Units:
        """Return the units of a fit: S and A share the scale of X; with labels, A has all of it."""
        of_x, of_y = _of_loss("X", x, losses[0]), _of_loss("Y", y, losses[1])
        return cls(x, y, 0 if labels else x // 2, of_x, of_y, of_x)

    def weighing(self, weight: float | None) -> Units:
        """Return the units for a weight of the supervision: the larger coefficient is about 1."""
        exponent = order_of(weight or 0.0) - 1
        if not weight or (self.trivial and exponent <= _ORDINARY):
            return self
        return replace(self, whole=max(self.of_x, self.of_y + exponent))

    def taking(self, given: Any, dtype: Any) -> tuple[Units, Any]:
        """Return the units for a start, and the start in these units.

        A given S has entries of about 1 then, so that no Gram matrix leaves the range.
        """
        if not isinstance(given, (tuple, list)) or not 2 <= len(given) <= 3:
            return self, given
        names = [f"init[{i}] ({name})" for i, name in zip(range(len(given)), "SAB", strict=False)]
        factors = [
            check_factor(F, name, np.shape(F), dtype, "", limited=False)
            for name, F in zip(names, given, strict=True)
        ]
        exponent = order_of(np.max(factors[0], initial=0.0))
        if self.trivial and abs(exponent) <= _SQUARED[factors[0].dtype]:
            return self, given
        units = replace(self, s=exponent)
        return units, tuple(
            np.ldexp(F, -units.factors[name]) for name, F in zip("SAB", factors, strict=False)
        )

    def coefficients(self, weight: float) -> tuple[float, float]:
        """Return the coefficients of the losses of X' and Y' for a weight of the supervision."""
        return _times(1.0, self.of_x - self.whole), _times(weight, self.of_y - self.whole)

    def weight(self, coefficient: float) -> float:
        """Return the weight of the supervision for a coefficient of Y' where that of X' is 1."""
        return _times(coefficient, self.of_x - self.of_y)

    def value(self, objective: float) -> float:
        """Return the objective that a user knows."""
        return _times(objective, self.whole)

    def factor(self, name: str, F: Array) -> Array:
        """Return a factor that a user knows; with infinity where it is out of the range."""
        exponent = self.factors.get(name, 0)
        if exponent == 0:
            return F
        with np.errstate(over="ignore"):
            return np.ldexp(F, exponent)


ORDINARY = Units()


def drifts(relations: Sequence[Relation], largest_of: Callable[[str], Array]) -> dict[str, Array]:
    """Return the powers of two that bring the sides of components that drifted apart together.

    Those of a component of a tensor add up to 0, and the far side of a factor's own relation has
    its opposite.  A component that dies out of the data stays if labels, which it may still have,
    would make a factor grow beyond all.  None for relations that do not share the factor of their
    rows.
    """
    first, *rest = (r.names for r in relations)
    if any(len(pair) > 2 or pair[0] not in first for pair in rest):
        return {}
    largest = {name: largest_of(name) for name in (*first, *(far for _, far in rest))}
    if len(first) > 2:
        sides = np.array([largest[name] for name in first])
        logs = np.log2(np.where(sides > 0, sides, 1.0))
        shifts = np.rint(logs.mean(axis=0) - logs).astype(np.int64)
        shifts[-1] = -shifts[:-1].sum(axis=0)
        shifts *= (sides > 0).all(axis=0) & (np.ptp(logs, axis=0) > _DRIFT)
        exponents = dict(zip(first, shifts, strict=True))
        exponents |= {far: -exponents[near] for near, far in rest}
    else:
        others = [first[1], *(far for near, far in rest if near == first[0])]
        here, there = largest[first[0]], np.max([largest[name] for name in others], axis=0)
        drifted = (here > 0) & (there > 0)
        ratio = np.log2(there[drifted]) - np.log2(here[drifted])
        shift = np.zeros(len(here), dtype=np.int64)
        shift[drifted] = np.where(np.abs(ratio) > _DRIFT, np.rint(ratio / 2), 0)
        across = dict.fromkeys((far for near, far in rest if near == first[1]), shift)
        exponents = {first[0]: shift} | dict.fromkeys(others, -shift) | across
    most = np.max([*largest.values()], axis=0)
    with np.errstate(over="ignore"):
        grown = [np.ldexp(largest[name], each) > most for name, each in exponents.items()]
    return {name: np.where(np.any(grown, axis=0), 0, each) for name, each in exponents.items()}
