"""Relations between data and factors, and their statistics for one factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array
from .._data.entries import SparseEntries
from .descent import Part
from .linear_map import LinearMap, MappedFactors
from .losses import Loss
from .terms import Term


@dataclass(frozen=True)
class Relation:
    """``coefficient * term``: data approximated by the product of the factors of these names.

    With two names, Z ~ F G^T.  With more, the far side is the products of the rows of all others,
    and ``term.view(k)`` are the data unfolded by the rows of factor k.  With a map, the first
    factor F stands for its image.
    """

    names: tuple[str, ...]
    term: Term
    coefficient: float = 1.0
    map: LinearMap | None = None
    _views: dict[int, Term] = field(default_factory=dict, init=False, repr=False, compare=False)

    def view(self, position: int) -> Term:
        """Return the term as the factor at a position sees it: made once, it may be a copy."""
        if position not in self._views:
            self._views[position] = self.term.view(position)
        return self._views[position]

    def pair(self, factors: MappedFactors) -> tuple[Array, Any]:
        """Return F and G of the first view."""
        return factors.of(self.names[:1], self.map), self.side(self.names[0]).G(factors)

    def side(self, name: str) -> Side:
        """Return the relation as one of its factors sees it."""
        position = self.names.index(name)
        far = self.names[:position] + self.names[position + 1 :]
        maps = (self.map, None) if position == 0 else (None, self.map)
        return Side(self.view(position), far, self.coefficient, *maps)


class Side(NamedTuple):
    """A relation as one of its factors sees it, with the maps of this factor and of the others."""

    term: Term
    far: tuple[str, ...]
    coefficient: float
    here: LinearMap | None = None
    there: LinearMap | None = None

    @property
    def quadratic(self) -> bool:
        """Whether coordinate descent may use it."""
        return self._unmapped and self.term.loss.quadratic and self.term.form.curved

    @property
    def by_entries(self) -> bool:
        """Whether coordinate descent may use its loss itself, entry by entry."""
        sparse = isinstance(self.term.entries, SparseEntries)
        return sparse and self.term.loss.descends and self._unmapped

    @property
    def _unmapped(self) -> bool:
        return self.here is None and self.there is None

    @property
    def equal_N(self) -> bool:
        """Whether all rows of N are the same."""
        return self.here is None and self.term.loss.model_free and self.term.form.equal_rows

    def G(self, factors: MappedFactors) -> Any:
        """Return the factor on the far side, or the factors whose rows are multiplied."""
        if self.term.entries.by_factors:
            return factors.apart(self.far)
        return factors.of(self.far, self.there)


def value(
    relations: Sequence[Relation],
    factors: Mapping[str, Array],
    mapped: MappedFactors | None = None,
) -> float:
    """Return the weighted sum of the values of the terms."""
    mapped = mapped or MappedFactors(factors)
    return sum(r.coefficient * r.term.value(*r.pair(mapped)) for r in relations if r.coefficient)


def unreached(relations: Sequence[Relation], factors: Mapping[str, Array]) -> float:
    """Return what of the value belongs to entries that no component can reach."""
    mapped = MappedFactors(factors)
    return sum(
        r.coefficient * r.term.unreached(*r.pair(mapped)) for r in relations if r.coefficient
    )


@dataclass
class Statistics:
    """Sufficient statistics of rows of the data for a factor: they add up.

    (P, N) by loss, or P and the parts of the curvature.

    N is one row where all of its rows are the same.  Nothing for coordinate descent entry by
    entry, which reads the data itself.
    """

    sums: dict[Loss, tuple[Array, Array]]
    parts: list[Part]

    @property
    def P(self) -> Array:
        """P of quadratic terms."""
        return next(iter(self.sums.values()))[0]

    def copied(self, copy: Callable[[Array], Array] = np.copy) -> Statistics:
        """Return what the problem does not overwrite."""
        sums = {loss: (copy(P), copy(N)) for loss, (P, N) in self.sums.items()}
        return Statistics(sums, [part.copied(copy) for part in self.parts])

    def add(self, others: Statistics) -> None:
        """Add those of other rows; the curvature must be one Gram matrix."""
        for loss, (P, N) in self.sums.items():
            P += others.sums[loss][0]
            N += others.sums[loss][1]
        for part, other in zip(self.parts, others.parts, strict=True):
            mine, its = part.quadratic.gram, other.quadratic.gram
            if mine is not None and its is not None:
                mine += its
