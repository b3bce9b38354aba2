"""Factors, the relations between them, and the updates of one factor at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ._arrays import aligned_zeros
from ._descent import Part, descend
from ._dispatch import kernels
from ._entries import Target
from ._image import Image, Seen
from ._terms import Term
from ._weight_forms import Separable

if TYPE_CHECKING:
    from ._reference import Rule

Array = npt.NDArray[Any]
Solver = Literal["auto", "mm", "mu", "hals"]

_CANCELS = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
_DRIFT = 20  # binary orders of magnitude between the two sides of a component
_SWEEPS = 2  # of coordinate descent for every product with the data
_RELAXATION = 0.9  # of multiplicative steps: more gains nothing, 1 would no longer have to converge


@dataclass(frozen=True)
class Relation:
    """``coefficient * term``: the data of `term` is approximated by rows @ columns.T.

    With an image, by (image rows) @ columns.T.
    """

    rows: str
    columns: str
    term: Term
    coefficient: float = 1.0
    image: Image | None = None


class Side(NamedTuple):
    """A relation as one of its factors sees it, with the images that this and the other have."""

    term: Term
    other: str
    coefficient: float
    here: Image | None = None
    there: Image | None = None


def value(relations: Sequence[Relation], factors: dict[str, Array], n_threads: int) -> float:
    """Return the weighted sum of the values of the terms."""
    return _value(relations, Seen(factors, n_threads), n_threads)


def _value(relations: Sequence[Relation], seen: Seen, n_threads: int) -> float:
    return sum(
        r.coefficient * r.term.value(seen.of(r.rows, r.image), seen.of(r.columns, None), n_threads)
        for r in relations
        if r.coefficient
    )


def unreached(relations: Sequence[Relation], factors: dict[str, Array], n_threads: int) -> float:
    """Return what of the value belongs to entries that no component can reach."""
    seen = Seen(factors, n_threads)
    return sum(
        r.coefficient
        * r.term.unreached(seen.of(r.rows, r.image), seen.of(r.columns, None), n_threads)
        for r in relations
        if r.coefficient
    )


class Problem:
    """Factors by name, stored by rows and padded, and the relations between them."""

    def __init__(
        self,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        n_threads: int,
        allowed: dict[str, Array] | None = None,
    ) -> None:
        self.factors = factors
        self.relations = relations
        self.n_threads = n_threads
        self.allowed = allowed or {}
        self._imaged = {r.rows for r in relations if r.image is not None}
        self.sides = {name: self._sides_of(name) for name in factors}
        self._all_quadratic = all(
            r.term.loss == "frobenius" and isinstance(r.term.form, Separable) and r.image is None
            for r in relations
        )
        self._seen = Seen(factors, n_threads)
        self._pulled: str | None = None  # the factor whose P is in the workspace
        # One (P, N) for each kind of loss serves every factor: fresh memory in every update would
        # cost more than some of the updates.
        longest = max(factors.values(), key=len)
        self._workspaces = {
            loss: (
                aligned_zeros(longest.shape, longest.dtype),
                aligned_zeros(longest.shape, longest.dtype),
            )
            for loss in {relation.term.loss for relation in relations}
        }

    def _sides_of(self, name: str) -> list[Side]:
        """Terms that meet a factor, as that factor sees them."""
        sides = [
            Side(r.term, r.columns, r.coefficient, here=r.image)
            for r in self.relations
            if r.rows == name
        ] + [
            Side(r.term.transposed(self.n_threads), r.rows, r.coefficient, there=r.image)
            for r in self.relations
            if r.columns == name
        ]
        # A coefficient common to all terms changes no update; without it, lambda = 0 still fits B.
        return [sides[0]._replace(coefficient=1.0)] if len(sides) == 1 else sides

    def objective(self) -> float:
        """Return the weighted sum of the values of the terms."""
        if self._pulled is not None:
            total, constant = self._objective_from_pulls(self._pulled)
            # A small difference of large sums has few digits: then entry by entry, where possible.
            if total > _CANCELS[self.factors[self._pulled].dtype] * constant or not any(
                r.term.residual for r in self.relations
            ):
                return total
        return _value(self.relations, self._seen, self.n_threads)

    def _objective_from_pulls(self, name: str) -> tuple[float, float]:
        """Return |Z|^2 - 2 <P, F> + <N, F> and |Z|^2, summed over the terms.

        P of the last update still holds.
        """
        F = self.factors[name]
        P, N = (work[: len(F)] for work in self._workspaces["frobenius"])
        constant = below = 0.0
        for side in self.sides[name]:
            G = self.factors[side.other]
            below += side.coefficient * side.term.fitted_squares(F, G, N, self.n_threads)
            constant += side.coefficient * side.term.constant
        above = kernels.inner(F, P, self.n_threads)
        return max(constant - 2 * above + below, 0.0), constant

    def unreached(self) -> float:
        """Return what of the objective no update can change; see :func:`unreached`."""
        return unreached(self.relations, self.factors, self.n_threads)

    def extrapolates(self) -> bool:
        """Whether "auto" adds momentum: to plain Frobenius factorisation.

        With labels it would lower the objective faster too, but in minima that predict worse.
        """
        return self._all_quadratic and sum(r.coefficient > 0 for r in self.relations) == 1

    def _keeps_pulls(self, name: str) -> bool:
        """Whether the objective follows from P of this factor: all terms meet it, by products."""
        return all(
            r.rows == name and r.term.loss == "frobenius" and r.image is None
            for r in self.relations
        )

    def pulls(self, name: str) -> dict[str, tuple[Array, Array]]:
        """Return (P, N) of a factor, summed by kind of loss; valid until the next call."""
        F = self.factors[name]
        sums: dict[str, tuple[Array, Array]] = {}
        for side in self.sides[name]:
            further = side.term.loss in sums
            if not further:
                P, N = self._workspaces[side.term.loss]
                sums[side.term.loss] = P[: len(F)], N[: len(F)]
            up, down = (
                Target(out, side.coefficient, self.n_threads, further)
                for out in sums[side.term.loss]
            )
            G = self._seen.of(side.other, side.there)
            if side.here is None:
                side.term.pull_up(F, G, up)
                side.term.pull_down(F, G, down)
            else:
                side.here.pull(side.term, self._seen.of(name, side.here), G, up, down)
        return sums

    def update(self, name: str, rule: Solver) -> None:
        """Update a factor by the rule.

        "hals" is coordinate descent where all terms of the factor are Frobenius terms, else "mm".
        "auto" is "hals" where all terms of all factors are, else over-relaxed "mm": with mixed
        losses coordinate descent on a part of the factors ends in poorer minima, and where rows
        have weights of their own their Gram matrices cost more than faster convergence gives.
        """
        self._pulled = name if self._keeps_pulls(name) else None
        if self._descends(name, rule):
            self._descend(name)
        else:
            self._multiply(name, rule)
        if name in self._imaged:
            self._seen.changed()

    def _multiply(self, name: str, rule: Solver) -> None:
        sums = self.pulls(name)
        P2, N2 = sums.get("frobenius", (None, None))
        P1, N1 = sums.get("kullback-leibler", (None, None))
        step: Rule = "mu" if rule == "mu" else "mm"
        relaxation = _RELAXATION if rule == "auto" else 0.0
        kernels.update(self.factors[name], P2, N2, P1, N1, step, relaxation, self.n_threads)

    def _descends(self, name: str, rule: Solver) -> bool:
        """Whether a factor is updated by coordinate descent."""
        if rule == "auto":
            return self._all_quadratic
        return rule == "hals" and all(
            side.term.loss == "frobenius" and side.here is None and side.there is None
            for side in self.sides[name]
        )

    def restore(self, factors: dict[str, Array]) -> None:
        """Put factors back to what they were."""
        for name, factor in factors.items():
            np.copyto(self.factors[name], factor)
        self._pulled = None
        self._seen.changed()

    def balance(self, earlier: dict[str, Array] | None = None) -> None:
        """Bring components that drifted apart in scale together, by powers of two: no rounding.

        What the factors were `earlier` is scaled with them.
        """
        hubs = {relation.rows for relation in self.relations}
        if len(hubs) > 1:
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
            self._seen.changed()
            for factors in (self.factors, earlier or {}):
                for name, factor in factors.items():
                    np.ldexp(factor, exponents if name == hub else -exponents, out=factor)

    def quadratic(self, name: str) -> tuple[Array, list[Part]]:
        """Return P of a factor whose terms are all Frobenius terms, and the parts of its K_i.

        P is valid until the next call, as that of :meth:`pulls` is.
        """
        F = self.factors[name]
        P = self._workspaces["frobenius"][0][: len(F)]
        parts: list[Part] = []
        for side in self.sides[name]:
            G = self.factors[side.other]
            to = Target(P, side.coefficient, self.n_threads, accumulate=bool(parts))
            side.term.pull_up(F, G, to)
            parts.append(Part(side.term.form.quadratic(G, self.n_threads), side.coefficient, G))
        return P, parts

    def _descend(self, name: str) -> None:
        P, parts = self.quadratic(name)
        allowed = self.allowed.get(name)
        descend(self.factors[name], P, parts, allowed, _SWEEPS, self.n_threads)
