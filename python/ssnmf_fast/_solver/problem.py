"""Factors, their relations, and updates of one factor at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from .._backend.dispatch import aligned_zeros, kernels, padded
from .._common.arrays import Array, Factors, Solver, bits_of, mask_of
from .._data.entries import Target
from .descent import Part, added, descend, multiply
from .penalties import NONE, VANISHING, Bound, Penalties, value_of
from .relations import Images, Relation, Statistics, TermView, unreached, value
from .terms import Loss

Views: TypeAlias = Sequence[TermView] | None
Workspaces = dict[Loss, tuple[Array, Array]]

_CANCELS = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
_MOST_FACE_STEPS = 16  # of conjugate gradients, before the last sweep
_SHARE_OF_STEPS = 1 / 3  # of the arithmetic of a product with the data
UNOBSERVED = (
    "{} has no observed entry: all are missing, or have weight 0. Check the data and their weights."
)
_SWEEPS = 2  # of coordinate descent for every product with the data
_DRIFT = 20  # binary orders of magnitude between the two sides of a component
_RELAXATION = 0.9  # of multiplicative steps: more does not help, and 1 might not converge


@dataclass(frozen=True)
class Momentum:
    """The next extrapolation of rows; with `positive`, falling rows stay above zero."""

    before: Array
    step: float
    positive: bool


class Problem:
    """Factors by name, stored by rows and padded, and the relations between them.

    The first factor, `rows`, is that of the rows.  Entries outside of the `support` of a factor (as
    bits) stay.  If there are other rows elsewhere, the problem is not `whole`: the curvature of
    another factor is one Gram matrix, or unknown.  `elsewhere` has flags for further relations
    without these rows: whether their curvature is one Gram matrix.
    """

    bounds_of_rows: list[Bound] | None = None  # of a block, if penalties are for all rows

    def __init__(
        self,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        support: Factors | None = None,
        workspaces: Workspaces | None = None,
        whole: bool = True,
        penalties: Mapping[str, Penalties] | None = None,
        elsewhere: Sequence[bool] = (),
    ) -> None:
        self.factors, self.relations = factors, relations
        self.support, self.penalties = support or {}, penalties or {}
        self.rows, *self.others = factors
        self._views: dict[str, list[TermView]] = {}
        self._n_relations = len(relations) + len(elsewhere)
        # Curvatures of single rows are only used for one data matrix: they are slow.
        lists = whole and self._n_relations == 1
        squares = all(r.term.loss.quadratic and r.map is None for r in relations)
        grams = (r.term.gram or (lists and r.term.form.lists_few) for r in relations)
        self._all_quadratic = squares and all(elsewhere) and all(grams)
        here = sum(r.coefficient > 0 for r in relations)
        # Whether "auto" adds momentum: only without labels, where minima are equally good.
        self.extrapolates = self._all_quadratic and here + len(elsewhere) == 1
        self._held: dict[str, bool] = {}
        self.threads = relations[0].term.threads
        self._images = Images(factors)
        # The objective follows from P of the rows if all terms contain the rows.
        self._keeps_P = squares and all(r.names[0] == self.rows for r in relations)
        # All factors share one (P, N) per loss, because new memory costs more than some updates.
        self._workspaces: Workspaces = {} if workspaces is None else workspaces
        self._kept: Array | float | None  # P of the last update, or <P, F>
        self._value: float | None  # the objective, if the last update computed it
        self._ready_P = False  # whether the workspace has the current P of the rows
        self.forget()

    def views(self, name: str) -> list[TermView]:
        """Return the terms that contain a factor, viewed from it."""
        if name not in self._views:
            meet = [r for r in self.relations if name in r.names]
            views = [r.view(name) for r in sorted(meet, key=lambda r: r.names[0] != name)]
            # A common coefficient does not change updates; without it, B is fitted for lambda = 0.
            if len(views) == 1 and name not in self.penalties:
                views = [views[0]._replace(coefficient=1.0)]
            self._views[name] = views
        return self._views[name]

    def descends(self, name: str, rule: Solver) -> bool:
        """Whether a factor is updated by coordinate descent, not by a multiplicative step."""
        if rule == "auto":
            return self._all_quadratic
        if rule != "hals":
            return False
        views = self.views(name)
        quadratic = all(v.term.loss.quadratic and v.term.form.curved for v in views)
        return (quadratic and not any(v.mapped for v in views)) or self._by_entries(name)

    def _by_entries(self, name: str) -> bool:
        """Whether coordinate descent may use the loss itself, entry by entry."""
        view = self.views(name)[0]
        if self._n_relations > 1 or not view.term.loss.descends:
            return False
        entries, listed = view.term.entries, self.penalties.get(name, NONE).listed
        sparse = entries.sparse and not entries.by_factors and not view.mapped
        return sparse and all(penalty.linear for penalty in listed)

    def refines(self) -> bool:
        """Whether "auto" changes to coordinate descent when multiplicative steps get slow."""
        return all(self._by_entries(name) for name in self.factors)

    def objective(self) -> float:
        """Return the weighted sum of the values of the terms, and of the penalties."""
        return self._value_of_terms() + self._value_of_penalties()

    def _value_of_penalties(self) -> float:
        return value_of(self.penalties, self.factors)

    def _value_of_terms(self) -> float:
        if self._value is not None:
            return self._value
        if self._kept is not None:
            total, constant = self._objective_from_P()
            # If a small difference of large sums lost digits, sum over entries, if possible.
            if not self._cancels(total, constant) or not any(r.term.data for r in self.relations):
                return total
        return value(self.relations, self.factors, self._images)

    def _objective_from_P(self) -> tuple[float, float]:
        """Return |Z|^2 - 2 <P, F> + <N, F> and |Z|^2, summed over the terms."""
        below, constant = self.squares()
        # `views` leaves out the coefficient of a single relation.
        alone = len(self.relations) == 1 and self.rows not in self.penalties
        scale = self.relations[0].coefficient if alone else 1.0
        return scale * max(constant - 2 * self.product() + below, 0.0), scale * constant

    def _cancels(self, total: float, constant: float) -> bool:
        return total <= _CANCELS[self.factors[self.rows].dtype] * constant

    def squares(self) -> tuple[float, float]:
        """Return the weighted squares of the model and of the data, summed over the terms."""
        F = self.factors[self.rows]
        constant = below = 0.0
        for view in self.views(self.rows):
            size = view.coefficient * view.term.loss.slope / 2
            below += size * view.term.form.squares(F, view.G(self._images))
            constant += view.coefficient * view.term.constant
        return below, constant

    def product(self) -> float:
        """Return <P, F> of the last update of the rows; 0 if P is not kept."""
        if isinstance(self._kept, np.ndarray):
            self._kept = float(kernels.inner(self.factors[self.rows], self._kept, self.threads))
        return self._kept or 0.0

    def unreached(self) -> float:
        """Return the part of the objective that no update can change."""
        return unreached(self.relations, self.factors)

    def statistics(self, name: str, curvature: bool, views: Views = None) -> Statistics:
        """Return the statistics of all or some views for a factor; valid until the next call."""
        if curvature and self._by_entries(name):
            return Statistics({}, [])
        ready, self._ready_P = self._ready_P and name == self.rows, False
        views = self.views(name) if views is None else views
        F = self.factors[name]
        # Fixed entries need no P, unless the objective uses it.
        asked = None if self._holds(name) else self.support.get(name)
        sums: dict[Loss, tuple[Array, Array]] = {}
        parts: list[Part] = []
        for view in views:
            loss = view.term.loss
            further = loss in sums
            if not further:
                if loss not in self._workspaces or len(self._workspaces[loss][0]) < len(F):
                    longest = max(self.factors.values(), key=len)
                    P, N = (aligned_zeros(longest.shape, longest.dtype) for _ in range(2))
                    self._workspaces[loss] = P, N
                same = [v for v in views if v.term.loss == loss]
                plain = all(v.map is None and v.term.form.equal_rows for v in same)
                P, N = self._workspaces[loss]
                sums[loss] = P[: len(F)], N[: 1 if plain and loss.model_free else len(F)]
            P, N = sums[loss]
            G = view.G(self._images)
            up = Target(P, view.coefficient, further)
            if view.map is not None:
                down = Target(N, view.coefficient, further)
                view.map.pair(view.term, self._images.of(name, view.map), G, up, down)
                continue
            if not ready:
                entries = view.term.entries.asked(asked)
                if hasattr(loss, "powers"):
                    entries.power(loss.powers[0], F, G, up)
                else:
                    loss.P(entries, F, G, up)
            if curvature:
                size = view.coefficient * loss.slope / 2
                parts.append(Part(view.term.form.quadratic(G), size, G))
            else:
                loss.N(view.term.form, F, G, Target(N, view.coefficient, further))
        return Statistics(sums, parts)

    def pulls(self, name: str) -> tuple[Array, Array, float]:
        """Return the pull of all losses and penalties at a factor, up and down, and its unit."""
        F, sums = self.factors[name], self.statistics(name, False).sums
        bounds = self.penalties.get(name, NONE).bounds(F)
        if len(sums) == 1 and not bounds:
            ((loss, (P, N)),) = sums.items()
            return P, N, loss.slope
        P, N = np.zeros_like(F), np.zeros_like(F)
        for loss, pair in sums.items():
            added((P, N), pair, loss.slope)
        for bound in bounds:
            bound.pull(F, P, N)
        return P, N, 1.0

    def update_rows(self, rule: Solver, momentum: Momentum | None = None) -> None:
        """Update the factor of the rows; `momentum` is for problems that add up statistics."""
        self.apply(self.rows, self.statistics(self.rows, self.descends(self.rows, rule)), rule)

    def apply(self, name: str, statistics: Statistics, rule: Solver) -> None:
        """Update a factor by its statistics, which are overwritten."""
        F, support = self.factors[name], self.support.get(name)
        bounds = self._bounds(name)
        self._kept = statistics.P if self._keeps_P and name == self.rows else None
        self._ready_P = self._kept is not None and len(statistics.sums) == 1
        self._value = None
        if not statistics.sums:
            (view,) = self.views(name)
            value = view.term.loss.descend(
                *(view.term, F, view.G(self._images), support, _SWEEPS, name == self.rows),
                linear=sum(bound.linear for bound in bounds) / view.coefficient,
            )
            self._value = None if value is None else self.relations[0].coefficient * value
        elif statistics.parts:
            steps = 0  # of conjugate gradients: a share of the cost of a product with the data
            if self.extrapolates:
                lengths = (v.term.row_lengths[0] for v in self.views(name) if v.term.row_lengths)
                rank = -(-F.shape[1] // 8) * 8  # with the padding of the compiled kernels
                steps = min(int(_SHARE_OF_STEPS * sum(lengths) / rank), _MOST_FACE_STEPS)
            P, parts = statistics.P, statistics.parts
            descend(F, P, parts, support, _SWEEPS, steps, self.threads, bounds)
        else:
            before = F.copy() if self._holds(name) else None
            relaxation = _RELAXATION if rule == "auto" else 0.0
            multiply(F, statistics.sums, rule, relaxation, self.threads, bounds)
            if before is not None:
                np.copyto(F, before, where=~mask_of(self.support[name], F.shape[1]))
        self._images.forget(name)

    def _bounds(self, name: str) -> list[Bound]:
        if self.bounds_of_rows is not None:
            return self.bounds_of_rows if name == self.rows else []
        return self.penalties.get(name, NONE).bounds(self.factors[name])

    def row_statistics(
        self, others: Mapping[str, bool], momentum: Momentum | None = None
    ) -> dict[str, Statistics]:
        """Return the statistics of these rows for other factors, with or without curvature."""
        self.product()  # before its P is overwritten
        if momentum is not None:
            before = momentum.before.copy()
            self.factors[self.rows] = self.factors[self.rows].copy()
            self.extrapolate(self.rows, before, momentum.step, momentum.positive)
        return {name: self.statistics(name, each).copied() for name, each in others.items()}

    def extrapolate(self, name: str, before: Array, step: float, positive: bool) -> None:
        """Extrapolate the last step of a factor; `before` becomes the factor before this."""
        kernels.extrapolate(self.factors[name], before, step, positive, self.threads)

    def restore(self, factors: Factors) -> None:
        for name, factor in factors.items():
            np.copyto(self.factors[name], factor)
        self.forget()

    def twin(self, last: bool = False) -> Problem:
        """Return a problem with separate statistics; after the `last` update, share the memory."""
        workspaces = self._workspaces if last else None
        given = self.factors, self.relations, self.support, workspaces
        found = Problem(*given, penalties=self.penalties)
        found._ready_P = last and self._ready_P
        return found

    def forget(self) -> None:
        """Forget results for factors that have changed since."""
        self._kept = self._value = None
        self._ready_P = False
        self._images.forget()

    def clear_unobserved(self, title: Callable[[str], str] | None = None) -> None:
        """Set rows without an observed entry to 0, where they may move: nothing determines them.

        With `title`, of the data with a last factor, data without any such entry are refused.
        """
        if all(r.coefficient > 0 and r.term.form.plain for r in self.relations):
            return
        seen = {name: np.zeros(len(F), dtype=bool) for name, F in self.factors.items()}
        for relation in self.relations:
            for name in relation.names:
                here = observed_rows(relation.view(name), self.factors, len(seen[name]))
                if title is not None and len(here) and not here.any():
                    raise ValueError(UNOBSERVED.format(title(relation.names[-1])))
                if relation.coefficient > 0 or len(self.views(name)) == 1:
                    seen[name] |= here
        for name, rows in seen.items():
            self.clear(name, rows)

    def clear(self, name: str, seen: Array) -> None:
        """Set rows of a factor to 0, except those seen, unless a penalty determines them."""
        kinds = {type(penalty) for penalty in self.penalties.get(name, NONE).listed}
        if not seen.all() and kinds <= VANISHING:
            F, moves = self.factors[name], self.support.get(name)
            free = True if moves is None else mask_of(moves, F.shape[1])
            np.copyto(F, 0, where=~seen[:, None] & free)
            self.forget()

    def balance(self, earlier: Factors | None = None) -> None:
        """Balance the scales of components by powers of two, unless they are penalized."""
        if any(self.penalties.values()):
            return
        exponents = drifts(self.relations, self._largest_of)
        for still in self._still():
            exponents = {name: np.where(still, 0, each) for name, each in exponents.items()}
        if any(each.any() for each in exponents.values()):
            self.forget()
            self._shift(exponents, earlier or {})

    def _holds(self, name: str) -> bool:
        """Whether a factor has fixed positive entries, which multiplication would change."""
        if name not in self._held:
            T = self.support.get(name)
            self._held[name] = T is not None and bool((bits_of(self.factors[name] > 0) & ~T).any())
        return self._held[name]

    def _still(self) -> list[Array]:
        """Return which components have given entries."""
        held = [name for name in self.support if self._holds(name)]
        pairs = [(self.factors[name] > 0, self.support[name]) for name in held]
        return [np.any(F & ~mask_of(T, F.shape[1]), axis=0) for F, T in pairs]

    def _largest_of(self, name: str) -> Array:
        """Return the largest entries of the components in a factor."""
        return np.asarray(self.factors[name].max(axis=0, initial=0.0))

    def _shift(self, exponents: Factors, earlier: Factors) -> None:
        """Multiply factors, and their earlier values, by powers of two, in place."""
        for factors in (self.factors, earlier):
            for name, factor in factors.items():
                np.ldexp(factor, exponents[name], out=factor)


def observed_rows(view: TermView, factors: Factors, n_rows: int) -> Array:
    """Return which rows of a factor meet an entry with weight."""
    if view.term.form.plain or view.map is not None:
        return np.ones(n_rows, dtype=bool)
    ones = {k: padded(np.ones((len(factors[k]), 1)), factors[k].dtype) for k in view.far}
    return view.term.form.observed(n_rows, view.G(Images(ones)))


def drifts(relations: Sequence[Relation], largest_of: Callable[[str], Array]) -> dict[str, Array]:
    """Return powers of two that balance the factors of components with very different scales."""
    first, *rest = (r.names for r in relations)
    if any(len(pair) > 2 or pair[0] not in first for pair in rest):
        return {}
    largest = {name: largest_of(name) for name in (*first, *(far for _, far in rest))}
    sides = np.array([largest[name] for name in first])
    if len(first) == 2:  # labels of the rows are on the side of the columns
        sides[1] = np.max([sides[1], *(largest[k] for near, k in rest if near == first[0])], axis=0)
    logs = np.log2(np.where(sides > 0, sides, 1.0))
    shifts = np.rint(logs.mean(axis=0) - logs).astype(np.int64)
    shifts[-1] = -shifts[:-1].sum(axis=0)
    shifts *= (sides > 0).all(axis=0) & (np.ptp(logs, axis=0) > _DRIFT)
    if not shifts.any():
        return {}
    exponents = dict(zip(first, shifts, strict=True))
    exponents |= {far: -exponents[near] for near, far in rest}
    most = np.max([*largest.values()], axis=0)
    with np.errstate(over="ignore"):
        grown = [np.ldexp(largest[name], each) > most for name, each in exponents.items()]
    return {name: np.where(np.any(grown, axis=0), 0, each) for name, each in exponents.items()}


class BlockProblem(Problem):
    """A problem in blocks of rows, which add up the statistics of the other factors.

    Here the data are on disk.  An update of the rows returns the statistics for the next updates.
    """

    _ready: dict[str, Statistics]  # of the current factors

    def forget(self) -> None:
        super().forget()
        self._ready = {}

    def statistics(self, name: str, curvature: bool, views: Views = None) -> Statistics:
        if name not in self._ready:
            return super().statistics(name, curvature, views)
        found = self._ready.pop(name)
        others = [view for view in self.views(name) if self.rows not in view.far]
        if others:
            found.join(super().statistics(name, curvature, others))
        return found

    def update_rows(self, rule: Solver, momentum: Momentum | None = None) -> None:
        if rule == "hals" and not self.descends(self.rows, rule):
            rule = "mm"  # as for the other factor, even if a block could use descent
        ready: dict[str, Statistics] = {}
        self._ready = ready
        far, bounds, product = self.relations[0].names[1], self._bounds(self.rows), 0.0
        first, *others = (r for r in self.relations if self.rows in r.names)
        elsewhere = [r.term.gram for r in self.relations if self.rows not in r.names]
        for rows, entries in first.term.entries.blocks():
            relations = [replace(first, term=first.term.part(rows, entries))]
            relations += [replace(r, term=r.term.part(rows)) for r in others]
            factors = {**self.factors, self.rows: self.factors[self.rows][rows]}
            support = {k: T[rows] if k == self.rows else T for k, T in self.support.items()}
            given = factors, relations, support, self._workspaces, True, self.penalties
            block = Problem(*given, elsewhere)
            block.bounds_of_rows = [bound.part(rows) for bound in bounds]
            where = momentum and replace(momentum, before=momentum.before[rows])
            block.update_rows(rule)
            found = block.row_statistics({far: self.descends(far, rule)}, where)
            product += block.product()
            if far in ready:
                ready[far].add(found[far])
            else:
                ready |= found
        self._images.forget(self.rows)
        self._kept = product if self._keeps_P else None


def problem_kind(relations: Sequence[Relation]) -> type[Problem]:
    """Return the class of a problem of these relations: in blocks if their data are on disk."""
    return BlockProblem if relations[0].term.entries.streamed else Problem
