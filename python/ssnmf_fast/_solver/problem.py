"""Factors, the relations between them, and the updates of one factor at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .._backend.dispatch import aligned_zeros, kernels
from .._common.arrays import Array
from .._data.entries import Target
from .descent import Part, descend
from .linear_map import MappedFactors
from .losses import Loss, multiply
from .relations import Relation, Side, Statistics, unreached, value

Solver = Literal["auto", "mm", "mu", "hals"]
SOLVERS = ("auto", "mm", "mu", "hals")
Workspaces = dict[Loss, tuple[Array, Array]]

_CANCELS = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
_DRIFT = 20  # binary orders of magnitude between the two sides of a component
_SWEEPS = 2  # of coordinate descent for every product with the data
_MOST_FACE_STEPS = 16  # of conjugate gradients, before the last sweep
_SHARE_OF_STEPS = 1 / 3  # of the arithmetic of a product with the data
_RELAXATION = 0.9  # of multiplicative steps: more gains nothing, 1 would no longer have to converge


@dataclass(frozen=True)
class Ahead:
    """Where rows move in the next iteration: by a step in the direction in which they have moved.

    `before` is what they were; with `positive`, rows that fall do not set out from zeros.
    """

    before: Array
    step: float
    positive: bool

    def part(self, rows: slice) -> Ahead:
        return replace(self, before=self.before[rows])

    def of(self, F: Array, threads: int) -> Array:
        """Return where rows that have just been updated will be."""
        moved = F.copy()
        kernels.extrapolate(moved, self.before.copy(), self.step, self.positive, threads)
        return np.asarray(moved)


class Problem:
    """Factors by name, stored by rows and padded, and the relations between them.

    The first factor is that of the rows, the `hub`; the problem may be one of a few rows only.
    Where other rows are elsewhere, it is not `whole`: the curvature of another factor is then known
    as one Gram matrix only.
    """

    def __init__(
        self,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        support: Mapping[str, Array] | None = None,
        workspaces: Workspaces | None = None,
        most_face_steps: int = _MOST_FACE_STEPS,
        whole: bool = True,
    ) -> None:
        self.factors = factors
        self.relations = relations
        self.support = support or {}
        self.threads = relations[0].term.threads
        self._most_face_steps = most_face_steps
        self.hub, *self.others = factors
        self._sides: dict[str, list[Side]] = {}
        self._mapped = MappedFactors(factors)
        # Where "auto" is coordinate descent; with weights of every row only for one data matrix.
        self._all_quadratic = all(
            r.map is None
            and (r.term.gram or (whole and len(relations) == 1 and r.term.form.lists_few))
            and r.term.loss.quadratic
            for r in relations
        )
        # The objective follows from P of the hub if all terms meet it by products.
        self._keeps_P = all(
            r.names[0] == self.hub and r.term.loss.quadratic and r.map is None for r in relations
        )
        # One (P, N) for each loss serves every factor: fresh memory in every update would cost more
        # than some of the updates.
        self._workspaces: Workspaces = {} if workspaces is None else workspaces
        self._kept: Array | float | None  # P of the last update, or <P, F>
        self._value: float | None  # the objective, where the last update told it
        self.forget()

    def sides(self, name: str) -> list[Side]:
        """Return the terms that meet a factor, as that factor sees them."""
        if name not in self._sides:
            meet = [r for r in self.relations if name in r.names]
            sides = [r.side(name) for r in sorted(meet, key=lambda r: r.names[0] != name)]
            # A coefficient common to all terms changes no update; without it, lambda = 0 fits B.
            self._sides[name] = [sides[0]._replace(coefficient=1.0)] if len(sides) == 1 else sides
        return self._sides[name]

    def objective(self) -> float:
        """Return the weighted sum of the values of the terms."""
        if self._value is not None:
            return self._value
        if self._kept is not None:
            total, constant = self._objective_from_P()
            # A small difference of large sums has few digits: then entry by entry, where possible.
            if not self._cancels(total, constant) or not any(r.term.data for r in self.relations):
                return total
        return value(self.relations, self.factors, self._mapped)

    def _objective_from_P(self) -> tuple[float, float]:
        """Return |Z|^2 - 2 <P, F> + <N, F> and |Z|^2, summed over the terms."""
        below, constant = self.squares()
        return max(constant - 2 * self.product() + below, 0.0), constant

    def _cancels(self, total: float, constant: float) -> bool:
        return total <= _CANCELS[self.factors[self.hub].dtype] * constant

    def squares(self) -> tuple[float, float]:
        """Return the weighted squares of the model and of the data, summed over the terms."""
        F = self.factors[self.hub]
        constant = below = 0.0
        for side in self.sides(self.hub):
            below += side.coefficient * side.term.form.squares(F, side.G(self._mapped))
            constant += side.coefficient * side.term.constant
        return below, constant

    def product(self) -> float:
        """Return <P, F> of the last update, that of the hub; 0 where P is not kept."""
        if isinstance(self._kept, np.ndarray):
            self._kept = float(kernels.inner(self.factors[self.hub], self._kept, self.threads))
        return self._kept or 0.0

    def unreached(self) -> float:
        """Return what of the objective no update can change; see :func:`unreached`."""
        return unreached(self.relations, self.factors)

    def extrapolates(self) -> bool:
        """Whether "auto" adds momentum: to plain Frobenius factorization.

        With labels it would lower the objective faster too, but in minima that predict worse.
        """
        return self._all_quadratic and sum(r.coefficient > 0 for r in self.relations) == 1

    def descends(self, name: str, rule: Solver) -> bool:
        """Whether a factor is updated by coordinate descent."""
        if rule == "auto":
            return self._all_quadratic
        if rule != "hals":
            return False
        return all(side.quadratic for side in self.sides(name)) or self._by_entries(name)

    def _by_entries(self, name: str) -> bool:
        return len(self.relations) == 1 and self.sides(name)[0].by_entries

    def refines(self) -> bool:
        """Whether "auto" goes on by coordinate descent where multiplicative steps get slow."""
        return all(self._by_entries(name) for name in self.factors)

    def _face_steps(self, name: str) -> int:
        """Return how many conjugate gradient steps go with the sweeps over a factor.

        A row takes R multiplications for an entry, and R^2 for such a step.  Where products take
        far more, steps that bring the rows to their minimum save many of them.  Entries that are
        zero do not count: data take the same steps however they are stored.  With labels factors
        nearer to their minimum in turn might predict worse, as with momentum.
        """
        if not self.extrapolates():
            return 0
        length = sum(side.term.row_lengths[0] for side in self.sides(name) if side.term.row_lengths)
        rank = -(-self.factors[name].shape[1] // 8) * 8  # as the compiled kernels pad it
        return min(int(_SHARE_OF_STEPS * length / rank), self._most_face_steps)

    def _workspace(self, loss: Loss, n_rows: int) -> tuple[Array, Array]:
        if loss not in self._workspaces or len(self._workspaces[loss][0]) < n_rows:
            longest = max(self.factors.values(), key=len)
            P, N = (aligned_zeros(longest.shape, longest.dtype) for _ in range(2))
            self._workspaces[loss] = P, N
        P, N = self._workspaces[loss]
        return P[:n_rows], N[:n_rows]

    def statistics(self, name: str, curvature: bool) -> Statistics:
        """Return the statistics of the data for a factor; valid until the next call.

        (P, N) summed by loss, N as one row if all rows are the same; or, of quadratic terms, P and
        the parts of the curvature.
        """
        if curvature and self._by_entries(name):
            return Statistics({}, [])
        F = self.factors[name]
        sums: dict[Loss, tuple[Array, Array]] = {}
        parts: list[Part] = []
        for side in self.sides(name):
            loss = side.term.loss
            further = loss in sums
            if not further:
                P, N = self._workspace(loss, len(F))
                equal = all(other.equal_N for other in self.sides(name) if other.term.loss == loss)
                sums[loss] = P, N[:1] if equal else N
            P, N = sums[loss]
            G = side.G(self._mapped)
            up = Target(P, side.coefficient, further)
            if side.here is not None:
                down = Target(N, side.coefficient, further)
                side.here.pair(side.term, self._mapped.of((name,), side.here), G, up, down)
                continue
            loss.P(side.term.entries, F, G, up)
            if curvature:
                parts.append(Part(side.term.form.quadratic(G), side.coefficient, G))
            else:
                loss.N(side.term.form, F, G, Target(N, side.coefficient, further))
        return Statistics(sums, parts)

    def update_rows(self, rule: Solver, ahead: Ahead | None = None) -> None:
        """Update the factor of the rows by the rule, on which other factors depend `ahead`.

        "hals" is coordinate descent where all terms of the factor are Frobenius terms, or where a
        Kullback-Leibler term of sparse data in memory is the only one, else "mm".
        "auto" is "hals" where all terms of all factors are, else over-relaxed "mm": with mixed
        losses coordinate descent on a part of the factors ends in poorer minima, and with weights
        of most entries of a row their products cost more than faster convergence gives.
        """
        del ahead  # only those who add up statistics in advance need it
        self.apply(self.hub, self.statistics(self.hub, self.descends(self.hub, rule)), rule)

    def apply(self, name: str, statistics: Statistics, rule: Solver) -> None:
        """Update a factor by the statistics of the data for it, which are overwritten."""
        F = self.factors[name]
        self._kept = statistics.P if self._keeps_P and name == self.hub else None
        self._value = None
        if not statistics.sums:
            (side,) = self.sides(name)
            G, support = side.G(self._mapped), self.support.get(name)
            value = side.term.loss.descend(side.term, F, G, support, _SWEEPS, name == self.hub)
            self._value = None if value is None else self.relations[0].coefficient * value
        elif statistics.parts:
            P, parts = statistics.P, statistics.parts
            support, steps = self.support.get(name), self._face_steps(name)
            descend(F, P, parts, support, _SWEEPS, steps, self.threads)
        else:
            relaxation = _RELAXATION if rule == "auto" else 0.0
            multiply(F, statistics.sums, rule, relaxation, self.threads)
        self._mapped.changed(name)

    def step(
        self, rule: Solver, others: Mapping[str, bool], ahead: Ahead | None = None
    ) -> dict[str, Statistics]:
        """Update the factor of these rows, and return their statistics for other factors then.

        This is the step of every fit over blocks of rows, in its two halves.
        """
        self.update_rows(rule, ahead)
        return self.row_statistics(others, ahead)

    def row_statistics(
        self, others: Mapping[str, bool], ahead: Ahead | None = None
    ) -> dict[str, Statistics]:
        """Return the statistics of these rows for other factors: with `ahead`, where they move to.

        `others` tells of each factor whether its curvature is asked for.
        """
        self.product()  # before its P is overwritten
        if ahead is not None:
            self.factors[self.hub] = ahead.of(self.factors[self.hub], self.threads)
        return {name: self.statistics(name, each).copied() for name, each in others.items()}

    def extrapolate(self, name: str, before: Array, step: float, positive: bool) -> None:
        """Move a factor further in the direction in which it moved; `before` is then what it was.

        With `positive`, entries that fall stay above zero.
        """
        kernels.extrapolate(self.factors[name], before, step, positive, self.threads)

    def restore(self, factors: Mapping[str, Array]) -> None:
        """Put factors back to what they were."""
        for name, factor in factors.items():
            np.copyto(self.factors[name], factor)
        self.forget()

    def forget(self) -> None:
        """Forget what was computed of factors that have changed since."""
        self._kept = self._value = None
        self._mapped.changed()

    def balance(self, earlier: Mapping[str, Array] | None = None) -> None:
        """Bring components that drifted apart in scale together, by powers of two: no rounding.

        What the factors were `earlier` is scaled with them.
        """
        if len(self.relations[0].names) > 2:
            drifts = self._drifts()
            if any(drift.any() for drift in drifts.values()):
                self.forget()
                self._shift(drifts, earlier or {})
            return
        if any(r.names[0] != self.hub or len(r.names) > 2 for r in self.relations):
            return
        here = self._largest_of_rows()
        others = [self.factors[name].max(axis=0, initial=0.0) for name in self.others]
        there = np.max(others, axis=0)
        drifted = (here > 0) & (there > 0)
        exponents = np.zeros(len(here), dtype=np.int64)
        ratio = np.log2(there[drifted]) - np.log2(here[drifted])
        exponents[drifted] = np.where(np.abs(ratio) > _DRIFT, np.rint(ratio / 2), 0)
        if exponents.any():
            self.forget()
            shifts = {name: exponents if name == self.hub else -exponents for name in self.factors}
            self._shift(shifts, earlier or {})

    def _largest_of_rows(self) -> Array:
        """Return the largest entries of the components in the factor of the rows."""
        largest: Array = self.factors[self.hub].max(axis=0, initial=0.0)
        return largest

    def _shift(self, exponents: Mapping[str, Array], earlier: Mapping[str, Array]) -> None:
        """Multiply factors, and what they were earlier, by powers of two, in place."""
        for factors in (self.factors, earlier):
            for name, factor in factors.items():
                np.ldexp(factor, exponents[name], out=factor)

    def _drifts(self) -> dict[str, Array]:
        """Return the powers of two that bring the factors of a tensor to sizes that agree.

        Those of a component add up to 0.  The far side of a factor's own relation has its opposite.
        """
        first, *rest = self.relations
        largest = np.array([self.factors[name].max(axis=0, initial=0.0) for name in first.names])
        logs = np.log2(np.where(largest > 0, largest, 1.0))
        shifts = np.rint(logs.mean(axis=0) - logs).astype(np.int64)
        shifts[-1] = -shifts[:-1].sum(axis=0)
        shifts *= (largest > 0).all(axis=0) & (np.ptp(logs, axis=0) > _DRIFT)
        exponents = dict(zip(first.names, shifts, strict=True))
        for relation in rest:
            exponents[relation.names[1]] = -exponents[relation.names[0]]
        return exponents
