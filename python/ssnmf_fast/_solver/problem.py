"""Factors, their relations, and updates of one factor at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from .._backend.dispatch import aligned_zeros, kernels, padded
from .._common.arrays import Array, Factors, Solver, bits_of, mask_of
from .._data.entries import Target
from .majorizer import Bound, Kind, Majorizer
from .penalties import NONE, VANISHING, Penalties, value_of
from .plan import CURVED, DEFAULT_TOL, Plan, Update, is_compiled, plan
from .relations import Images, Relation, TermView, unreached, value
from .terms import kind_of

Views: TypeAlias = Sequence[TermView] | None
Workspaces: TypeAlias = dict[Kind, tuple[Array, Array]]

_CANCELS = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
UNOBSERVED = (
    "{} has no observed entry: all are missing, or have weight 0. Check the data and their weights."
)
_SWEEPS = 2  # of coordinate descent for every product with the data
_DRIFT = 20  # binary orders of magnitude between the two sides of a component


@dataclass(frozen=True)
class Momentum:
    """The next extrapolation of rows; with `positive`, falling rows stay above zero."""

    before: Array
    step: float
    positive: bool


@dataclass(frozen=True)
class LastRows:
    """What an update of the rows leaves for the objective and for the next updates.

    It is void when a factor changes in another way than by these updates and by extrapolation.
    """

    P: Array | None = None  # of the rows, until the next majorizer overwrites it
    is_stored: bool = False  # whether the workspace of its kind holds P
    product: float | None = None  # <P, F>, instead of P
    squares: tuple[float, float] | None = None  # see `Problem.squares`
    gram: Array | None = None  # of the other factor, if there is one term
    value: float | None = None  # of the terms
    ready: Mapping[str, Majorizer] = field(default_factory=dict)  # of other factors


class Problem:
    """Factors by name, stored by rows and padded, and the relations between them.

    The first factor, `rows`, is that of the rows.  Entries outside of the `support` of a factor (as
    bits) stay.
    """

    def __init__(
        self,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        support: Factors | None = None,
        workspaces: Workspaces | None = None,
        penalties: Mapping[str, Penalties] | None = None,
    ) -> None:
        self.factors, self.relations = factors, relations
        self.support, self.penalties = support or {}, penalties or {}
        self.rows, *self.others = factors
        self._views: dict[str, list[TermView]] = {}
        self._held: dict[str, bool] = {}
        self._unseen: dict[str, Array] = {}  # entries that are 0, see `clear`
        self.threads = relations[0].term.threads
        self._images = Images(factors)
        # The objective follows from P of the rows if all terms contain the rows.
        self._keeps_P = all(
            r.term.loss.quadratic and r.map is None and r.names[0] == self.rows for r in relations
        )
        # All factors share one (P, N) by kind, because new memory costs more than some updates.
        self._workspaces: Workspaces = {} if workspaces is None else workspaces

    def plan(self, rule: Solver, tol: float = DEFAULT_TOL) -> Plan:
        """Return what updates the factors by a rule."""
        rank = self.factors[self.rows].shape[1]
        found = plan(self.relations, self.penalties, rule, tol, rank=rank)
        free = hasattr(kernels, "dense_iterations") and not (self.support or self._unseen)
        free &= tuple(self.factors) == self.relations[0].names
        return replace(found, compiled=free and is_compiled(found, self.relations, self.penalties))

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

    def objective(self, last: LastRows | None = None) -> float:
        """Return the weighted sum of the values of the terms, and of the penalties."""
        return self._value_of_terms(last) + self._value_of_penalties()

    def parts(self, objective: float) -> dict[str, float]:
        """Return the part of each relation, by its last factor, and that of the penalties.

        The first relation has what the others leave: its data would cost another pass.
        """
        found = {r.names[-1]: value([r], self.factors, self._images) for r in self.relations[1:]}
        if any(self.penalties.values()):
            found["penalties"] = self._value_of_penalties()
        first = max(objective - sum(found.values()), 0.0)
        return {self.relations[0].names[-1]: first, **found}

    def _value_of_penalties(self) -> float:
        return value_of(self.penalties, self.factors)

    def _value_of_terms(self, last: LastRows | None) -> float:
        if last is not None and last.value is not None:
            return last.value
        if last is not None and (last.P is not None or last.product is not None):
            total, constant = self._objective_from_P(last)
            # If a small difference of large sums lost digits, sum over entries, if possible.
            if not self._cancels(total, constant) or not any(r.term.data for r in self.relations):
                return total
        return value(self.relations, self.factors, self._images)

    def _objective_from_P(self, last: LastRows) -> tuple[float, float]:
        """Return |Z|^2 - 2 <P, F> + <N, F> and |Z|^2, summed over the terms."""
        below, constant = last.squares or self.squares(last.gram)
        # `views` leaves out the coefficient of a single relation.
        alone = len(self.relations) == 1 and self.rows not in self.penalties
        scale = self.relations[0].coefficient if alone else 1.0
        return scale * max(constant - 2 * self.product(last) + below, 0.0), scale * constant

    def _cancels(self, total: float, constant: float) -> bool:
        return total <= _CANCELS[self.factors[self.rows].dtype] * constant

    def squares(self, gram: Array | None = None) -> tuple[float, float]:
        """Return the weighted squares of the model and of the data, summed over the terms.

        A Gram matrix of the other factor saves its computation.
        """
        F = self.factors[self.rows]
        constant = below = 0.0
        for view in self.views(self.rows):
            size = view.coefficient * view.term.loss.slope / 2
            below += size * view.term.form.squares(
                F, view.G(self._images), gram if size == 1 else None
            )
            constant += view.coefficient * view.term.constant
        return below, constant

    def product(self, last: LastRows) -> float:
        """Return <P, F> of the last update of the rows; 0 if P is not kept."""
        if last.P is None:
            return last.product or 0.0
        return float(kernels.inner(self.factors[self.rows], last.P, self.threads))

    def unreached(self) -> float:
        """Return the part of the objective that no update can change."""
        return unreached(self.relations, self.factors)

    def majorizer(
        self, name: str, update: Update, last: LastRows | None = None, views: Views = None
    ) -> Majorizer:
        """Return the majorizer of all or some terms in a factor; valid until the next call."""
        found, F, curved = Majorizer(), self.factors[name], update in CURVED
        if last is not None and views is None and name in last.ready:
            return last.ready[name]
        if update == "entries":
            return found
        views = self.views(name) if views is None else views
        # Fixed entries need no P, unless the objective uses it.
        asked = None if self._holds(name) else self.support.get(name)
        for view in views:
            loss, G, kind = view.term.loss, view.G(self._images), kind_of(view.term.loss)
            further = kind in found.pairs
            P, N = self._workspace(kind, len(F), views)
            found.pairs[kind] = P, None if curved else N
            up, down = (Target(each, view.coefficient, further) for each in (P, N))
            if view.map is not None:
                view.map.pair(view.term, self._images.of(name, view.map), G, up, down)
                continue
            form, scale = view.term.form, view.coefficient * loss.slope / 2
            if update == "fill-in" and form.cover is not None:
                found.add_curvature(view.term.fill(F, G, up), scale, G)
                continue
            if last is None or not last.is_stored or name != self.rows:
                entries = view.term.entries.asked(asked)
                if hasattr(loss, "powers"):
                    entries.power(loss.powers[0], F, G, up)
                else:
                    loss.P(entries, F, G, up)
            if curved:
                found.add_curvature(form.quadratic(G), scale, G)
            else:
                loss.N(form, F, G, down)
        return found

    def _workspace(self, kind: Kind, n_rows: int, views: Sequence[TermView]) -> tuple[Array, Array]:
        """Return memory for P and N of the terms of a kind; N is one row if all are equal."""
        if kind not in self._workspaces or len(self._workspaces[kind][0]) < n_rows:
            longest = max(self.factors.values(), key=len)
            P, N = (aligned_zeros(longest.shape, longest.dtype) for _ in range(2))
            self._workspaces[kind] = P, N
        P, N = self._workspaces[kind]
        one_row = all(v.one_row for v in views if kind_of(v.term.loss) == kind)
        return P[:n_rows], N[: 1 if one_row else n_rows]

    def pulls(self, name: str, last: LastRows | None = None) -> tuple[Array, Array, float]:
        """Return the pull of all losses and penalties at a factor, up and down, and its unit."""
        F = self.factors[name]
        last = last and replace(last, ready={})  # which may have no N
        return self.majorizer(name, "multiply", last).pulls(F, self._bounds(name))

    def _bounds(self, name: str) -> list[Bound]:
        return self.penalties[name].bounds(self.factors[name]) if name in self.penalties else []

    def begin(self, plan: Plan) -> LastRows | None:
        """Return the majorizer of the first update, whose P gives the objective without a pass."""
        name, *further = self.others
        update, here = plan.by_factor[name], len(self.factors[self.rows]) > 0  # not on a cluster
        plain = here and self._keeps_P and update not in ("entries", "fill-in")
        if not plain or further or len(self.relations) > 1 or self.penalties:
            return None
        found = self.majorizer(name, update).copied()
        product = float(kernels.inner(self.factors[name], found.P, self.threads))
        return LastRows(product=product, ready={name: found})

    def update_rows(
        self, plan: Plan, momentum: Momentum | None = None, last: LastRows | None = None
    ) -> LastRows:
        """Update the factor of the rows; `momentum` is for problems that add up majorizers.

        After a `last` update of the rows alone, its P is not computed again.
        """
        majorizer = self.majorizer(self.rows, plan.by_factor[self.rows], last)
        return self.apply(self.rows, majorizer, plan)

    def apply(
        self, name: str, majorizer: Majorizer, plan: Plan, bounds: Sequence[Bound] | None = None
    ) -> LastRows:
        """Update a factor by its majorizer, which is overwritten, and by bounds of penalties."""
        F, support = self.factors[name], self.support.get(name)
        bounds = self._bounds(name) if bounds is None else bounds
        update, is_rows, value = plan.by_factor[name], name == self.rows, None
        is_true = self._keeps_P and update != "fill-in"  # P of the data alone
        P = majorizer.P if is_rows and is_true and majorizer.pairs else None
        is_stored = P is not None and len(majorizer.pairs) == 1
        gram = majorizer.gram if P is not None and len(self.relations) == 1 else None
        if bounds:
            majorizer = majorizer.penalized(F, bounds)
        if update == "entries":
            (view,) = self.views(name)
            given = view.term, F, view.G(self._images), support, _SWEEPS, is_rows
            value = view.term.loss.descend(*given, linear=majorizer.linear / view.coefficient)
            value = None if value is None else self.relations[0].coefficient * value
        elif update in CURVED:
            majorizer.descend(F, support, _SWEEPS, plan.face_steps.get(name, 0), self.threads)
            if name in self._unseen:  # what is filled in is rounded
                np.copyto(F, 0, where=self._unseen[name])
        else:
            before = F.copy() if self._holds(name) else None
            majorizer.multiply(F, plan.rule, plan.relaxation, self.threads)
            if before is not None:
                np.copyto(F, before, where=~mask_of(self.support[name], F.shape[1]))
        self._images.forget(name)
        return LastRows(P, is_stored, value=value, gram=gram)

    def iterations(
        self, plan: Plan, count: int, before: Factors | None = None, momentum: Any = None
    ) -> tuple[LastRows, Any]:
        """Run a compiled plan in one call; return what the last iteration leaves."""
        (view,), S = self.views(self.rows), self.factors[self.rows]
        term, (update, *_) = view.term, plan.by_factor.values()
        kind = "ratios" if update == "multiply" and not term.loss.quadratic else update
        steps = [plan.face_steps.get(name, 0) for name in self.factors]
        P, _ = self._workspace(kind_of(term.loss), len(S), [view])
        memory = [*self.factors.values(), *self._workspaces[kind_of(term.loss)]]
        memory += [] if before is None else [before[name] for name in self.factors]
        how = kind, plan.relaxation, _SWEEPS, *steps
        objective = term.constant, _CANCELS[S.dtype]
        given = memory, momentum, how, objective, count
        momentum = term.entries.iterations(term.view(1).entries, *given)
        stored = self._keeps_P and update != "fill-in"
        return LastRows(P if stored else None, stored), momentum

    def row_majorizers(
        self,
        others: Mapping[str, Update],
        momentum: Momentum | None = None,
        last: LastRows | None = None,
    ) -> dict[str, Majorizer]:
        """Return the majorizers of other factors by these rows, which `momentum` moves before."""
        if momentum is not None:
            before = momentum.before.copy()
            self.factors[self.rows] = self.factors[self.rows].copy()
            self.extrapolate(self.rows, before, momentum.step, momentum.positive)
        return {name: self.majorizer(name, each, last).copied() for name, each in others.items()}

    def extrapolate(self, name: str, before: Array, step: float, positive: bool) -> None:
        """Extrapolate the last step of a factor; `before` becomes the factor before this."""
        kernels.extrapolate(self.factors[name], before, step, positive, self.threads)

    def restore(self, factors: Factors) -> None:
        for name, factor in factors.items():
            np.copyto(self.factors[name], factor)
        self.forget()

    def twin(self, last: LastRows | None = None) -> Problem:
        """Return a problem with its own memory, or that of this one after the `last` update."""
        workspaces = None if last is None else self._workspaces
        found = Problem(self.factors, self.relations, self.support, workspaces, self.penalties)
        found._views = self._views
        return found

    def forget(self) -> None:
        """Forget the images of factors that have changed."""
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
            self._unseen[name] = ~seen[:, None] & free
            np.copyto(F, 0, where=self._unseen[name])
            self.forget()

    def balance(self, earlier: Factors | None = None) -> bool:
        """Balance the scales of components, unless they are penalized; return whether they move.

        Factors, and their `earlier` values, are multiplied by powers of two.
        """
        if any(self.penalties.values()):
            return False
        exponents = drifts(self.relations, self._largest_of)
        for still in self._still():
            exponents = {name: np.where(still, 0, each) for name, each in exponents.items()}
        moves = any(each.any() for each in exponents.values())
        if moves:
            self.forget()
            self._shift(exponents, earlier or {})
        return moves

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
    if rest and len(first) == 2:  # labels of the rows are on the side of the columns
        sides[1] = np.max([sides[1], *(largest[k] for near, k in rest if near == first[0])], axis=0)
    if (sides.max(axis=0) <= 2.0 ** (_DRIFT - 1) * sides.min(axis=0)).all():
        return {}
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
    """A problem in blocks of rows, which add up the majorizers of the other factors.

    Here the data are on disk.  An update of the rows returns majorizers for the next updates.
    """

    def majorizer(
        self, name: str, update: Update, last: LastRows | None = None, views: Views = None
    ) -> Majorizer:
        if last is None or name not in last.ready:
            return super().majorizer(name, update, last, views)
        found = last.ready[name]
        if others := [view for view in self.views(name) if self.rows not in view.far]:
            found.add(super().majorizer(name, update, last, others), same_terms=False)
        return found

    def update_rows(
        self, plan: Plan, momentum: Momentum | None = None, last: LastRows | None = None
    ) -> LastRows:
        ready: dict[str, Majorizer] = {}
        far, bounds, product = self.relations[0].names[1], self._bounds(self.rows), 0.0
        first, *others = (r for r in self.relations if self.rows in r.names)
        for rows, entries in first.term.entries.blocks():
            relations = [replace(first, term=first.term.part(rows, entries))]
            relations += [replace(r, term=r.term.part(rows)) for r in others]
            factors = {**self.factors, self.rows: self.factors[self.rows][rows]}
            support = {k: T[rows] if k == self.rows else T for k, T in self.support.items()}
            block = Problem(factors, relations, support, self._workspaces, self.penalties)
            of_rows = block.majorizer(self.rows, plan.by_factor[self.rows])
            now = block.apply(self.rows, of_rows, plan, [bound.part(rows) for bound in bounds])
            product += block.product(now)
            where = momentum and replace(momentum, before=momentum.before[rows])
            found = block.row_majorizers({far: plan.by_factor[far]}, where)
            if far in ready:
                ready[far].add(found[far])
            else:
                ready |= found
        self._images.forget(self.rows)
        return LastRows(product=product if self._keeps_P else None, ready=ready)


def problem_kind(relations: Sequence[Relation]) -> type[Problem]:
    """Return the class of a problem of these relations: in blocks if their data are on disk."""
    return BlockProblem if relations[0].term.entries.streamed else Problem
