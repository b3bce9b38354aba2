"""Factors, the relations between them, and the updates of one factor at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ._arrays import aligned_zeros
from ._descent import Part, descend
from ._dispatch import kernels
from ._entries import Target
from ._image import LinearMap, MappedFactors
from ._losses import Loss, Sums, multiply
from ._terms import Term

Array = npt.NDArray[Any]
Solver = Literal["auto", "mm", "mu", "hals"]
SOLVERS = ("auto", "mm", "mu", "hals")

_CANCELS = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
_DRIFT = 20  # binary orders of magnitude between the two sides of a component
_SWEEPS = 2  # of coordinate descent for every product with the data
_RELAXATION = 0.9  # of multiplicative steps: more gains nothing, 1 would no longer have to converge


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

    def sides(self, factors: MappedFactors) -> tuple[Array, Array]:
        """Return F and G of the first view."""
        return factors.of(self.names[:1], self.map), factors.of(self.names[1:])


class Side(NamedTuple):
    """A relation as one of its factors sees it, with the maps of this factor and of the others."""

    term: Term
    far: tuple[str, ...]
    coefficient: float
    here: LinearMap | None = None
    there: LinearMap | None = None

    @property
    def quadratic(self) -> bool:
        """Whether coordinate descent can go without its own view of the map."""
        return self.term.loss.quadratic and self.here is None and self.there is None


def value(relations: Sequence[Relation], factors: Mapping[str, Array]) -> float:
    """Return the weighted sum of the values of the terms."""
    return _value(relations, MappedFactors(factors))


def _value(relations: Sequence[Relation], mapped: MappedFactors) -> float:
    return sum(r.coefficient * r.term.value(*r.sides(mapped)) for r in relations if r.coefficient)


def unreached(relations: Sequence[Relation], factors: Mapping[str, Array]) -> float:
    """Return what of the value belongs to entries that no component can reach."""
    mapped = MappedFactors(factors)
    return sum(
        r.coefficient * r.term.unreached(*r.sides(mapped)) for r in relations if r.coefficient
    )


class Problem:
    """Factors by name, stored by rows and padded, and the relations between them."""

    def __init__(
        self,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        support: Mapping[str, Array] | None = None,
    ) -> None:
        self.factors = factors
        self.relations = relations
        self.support = support or {}
        self.threads = relations[0].term.threads
        self.sides = {name: self._sides_of(name) for name in factors}
        self._all_quadratic = all(r.term.gram and r.map is None for r in relations)
        self._mapped = MappedFactors(factors)
        self._keeps_P = {name: self._gives_objective(name) for name in factors}
        self._pulled: str | None = None  # the factor whose P is in the workspace
        # One (P, N) for each loss serves every factor: fresh memory in every update would cost more
        # than some of the updates.
        longest = max(factors.values(), key=len)
        self._workspaces: dict[Loss, tuple[Array, Array]] = {
            loss: (
                aligned_zeros(longest.shape, longest.dtype),
                aligned_zeros(longest.shape, longest.dtype),
            )
            for loss in {relation.term.loss for relation in relations}
        }

    def _sides_of(self, name: str) -> list[Side]:
        """Terms that meet a factor, as that factor sees them."""
        sides = []
        for r in sorted(self.relations, key=lambda r: r.names[0] != name):
            if name in r.names:
                position = r.names.index(name)
                far = r.names[:position] + r.names[position + 1 :]
                maps = (r.map, None) if position == 0 else (None, r.map)
                sides.append(Side(r.term.view(position), far, r.coefficient, *maps))
        # A coefficient common to all terms changes no update; without it, lambda = 0 still fits B.
        return [sides[0]._replace(coefficient=1.0)] if len(sides) == 1 else sides

    def objective(self) -> float:
        """Return the weighted sum of the values of the terms."""
        if self._pulled is not None:
            total, constant = self._objective_from_P(self._pulled)
            # A small difference of large sums has few digits: then entry by entry, where possible.
            if total > _CANCELS[self.factors[self._pulled].dtype] * constant or not any(
                r.term.data for r in self.relations
            ):
                return total
        return _value(self.relations, self._mapped)

    def _objective_from_P(self, name: str) -> tuple[float, float]:
        """Return |Z|^2 - 2 <P, F> + <N, F> and |Z|^2, summed over the terms.

        P of the last update still holds.
        """
        F = self.factors[name]
        constant = below = above = 0.0
        for side in self.sides[name]:
            below += side.coefficient * side.term.form.squares(F, self._mapped.of(side.far))
            constant += side.coefficient * side.term.constant
        for P, _ in self._workspaces.values():
            above += kernels.inner(F, P[: len(F)], self.threads)
        return max(constant - 2 * above + below, 0.0), constant

    def unreached(self) -> float:
        """Return what of the objective no update can change; see :func:`unreached`."""
        return unreached(self.relations, self.factors)

    def extrapolates(self) -> bool:
        """Whether "auto" adds momentum: to plain Frobenius factorisation.

        With labels it would lower the objective faster too, but in minima that predict worse.
        """
        return self._all_quadratic and sum(r.coefficient > 0 for r in self.relations) == 1

    def _gives_objective(self, name: str) -> bool:
        """Whether the objective follows from P of this factor: all terms meet it, by products."""
        return all(
            r.names[0] == name and r.term.loss.quadratic and r.map is None for r in self.relations
        )

    def pairs(self, name: str) -> Sums:
        """Return (P, N) of a factor, summed by loss; valid until the next call."""
        F = self.factors[name]
        sums: dict[Loss, tuple[Array, Array]] = {}
        for side in self.sides[name]:
            loss = side.term.loss
            further = loss in sums
            if not further:
                P, N = self._workspaces[loss]
                sums[loss] = P[: len(F)], N[: len(F)]
            up, down = (Target(out, side.coefficient, further) for out in sums[loss])
            G = self._mapped.of(side.far, side.there)
            if side.here is None:
                side.term.P(F, G, up)
                side.term.N(F, G, down)
            else:
                side.here.pair(side.term, self._mapped.of((name,), side.here), G, up, down)
        return sums

    def quadratic(self, name: str) -> tuple[Array, list[Part]]:
        """Return P of a factor whose terms are all quadratic, and the parts of its K_i.

        P is valid until the next call, as that of :meth:`pairs` is.
        """
        F = self.factors[name]
        (P, _), *_ = self._workspaces.values()
        P = P[: len(F)]
        parts: list[Part] = []
        for side in self.sides[name]:
            G = self._mapped.of(side.far)
            side.term.P(F, G, Target(P, side.coefficient, accumulate=bool(parts)))
            parts.append(Part(side.term.form.quadratic(G), side.coefficient, G))
        return P, parts

    def update(self, name: str, rule: Solver) -> None:
        """Update a factor by the rule.

        "hals" is coordinate descent where all terms of the factor are Frobenius terms, else "mm".
        "auto" is "hals" where all terms of all factors are, else over-relaxed "mm": with mixed
        losses coordinate descent on a part of the factors ends in poorer minima, and where rows
        have weights of their own their Gram matrices cost more than faster convergence gives.
        """
        self._pulled = name if self._keeps_P[name] else None
        F = self.factors[name]
        if self._descends(name, rule):
            P, parts = self.quadratic(name)
            descend(F, P, parts, self.support.get(name), _SWEEPS, self.threads)
        else:
            relaxation = _RELAXATION if rule == "auto" else 0.0
            multiply(F, self.pairs(name), rule, relaxation, self.threads)
        self._mapped.changed(name)

    def _descends(self, name: str, rule: Solver) -> bool:
        """Whether a factor is updated by coordinate descent."""
        if rule == "auto":
            return self._all_quadratic
        return rule == "hals" and all(side.quadratic for side in self.sides[name])

    def restore(self, factors: Mapping[str, Array]) -> None:
        """Put factors back to what they were."""
        for name, factor in factors.items():
            np.copyto(self.factors[name], factor)
        self._pulled = None
        self._mapped.changed()

    def balance(self, earlier: Mapping[str, Array] | None = None) -> None:
        """Bring components that drifted apart in scale together, by powers of two: no rounding.

        What the factors were `earlier` is scaled with them.
        """
        hubs = {relation.names[0] for relation in self.relations}
        if len(hubs) > 1 or any(len(relation.names) > 2 for relation in self.relations):
            return
        hub = hubs.pop()
        others = [factor for name, factor in self.factors.items() if name != hub]
        here = self.factors[hub].max(axis=0, initial=0.0)
        there = np.max([factor.max(axis=0, initial=0.0) for factor in others], axis=0)
        drifted = (here > 0) & (there > 0)
        exponents = np.zeros(len(here), dtype=np.int64)
        ratio = np.log2(there[drifted]) - np.log2(here[drifted])
        exponents[drifted] = np.where(np.abs(ratio) > _DRIFT, np.rint(ratio / 2), 0)
        if exponents.any():
            self._pulled = None
            self._mapped.changed()
            for factors in (self.factors, earlier or {}):
                for name, factor in factors.items():
                    np.ldexp(factor, exponents if name == hub else -exponents, out=factor)
