"""A fit on a cluster: its blocks, its problem, whose rows are there, and starts block by block."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from .._common.arrays import Array, Solver
from .._data.border import check_random_state
from .._data.threads import resolve_threads
from .._solver import starts
from .._solver.build import even_weight, pad_factors
from .._solver.known import Known
from .._solver.loop import Current
from .._solver.penalties import Penalties
from .._solver.problem import Ahead, Problem
from .._solver.relations import Relation, Side, Statistics, unreached, value
from . import _block
from . import _block as _build
from ._block import Draw, Plan, RowOrder
from ._cluster import Blocks
from ._data import Data
from ._rows import BlockStatistics, Rows
from ._waiting import result_of


class ClusterProblem(Problem):
    """A problem whose rows of S, and of the data, are on the workers.

    Here S and its relations have no row.  Changes of S wait for the next task; an update of the
    rows returns at once what the next updates of the other factors need.
    """

    _ready: dict[str, Statistics]
    _sums: dict[str, Any]  # of the last update
    _of_rows = 0.0  # penalties of S

    def __init__(
        self,
        fit: ClusterFit,
        factors: dict[str, Array],
        support: Mapping[str, Array],
        local: Sequence[Relation] = (),
        penalties: Mapping[str, Penalties] | None = None,
    ) -> None:
        self._fit, self._has_data = fit, fit.totals["data"] > 0
        self._changes: list[Callable[[Rows], None]] = []
        self._largest: Array | None = None
        self._local = local
        related = [*fit.relations, *local]
        super().__init__(factors, related, support, whole=False, penalties=penalties)
        self.threads = resolve_threads()  # all of them: the workers wait for what is done here

    def forget(self) -> None:
        super().forget()
        self._ready = {}

    def scale_rows(self, scales: Array) -> None:
        """Multiply the components of S, but for those that are given, with the next task."""
        free = scales[: len(scales) - self._fit.data.n_fixed]
        if (free != 1).any():
            self._changes.append(partial(Rows.scale, scales=free))

    def _next_order(self, **what: Any) -> RowOrder:
        changes, self._changes = tuple(self._changes), []
        moves = bool(changes or what.get("rule"))
        self._fit.number += moves
        number, names = self._fit.number, tuple(self._elsewhere)
        return RowOrder(number=number, names=names, moves=moves, changes=changes, **what)

    def order(self, **what: Any) -> BlockStatistics:
        """Let all blocks do what is due, and something more."""
        found = self._fit.obey(self._next_order(**what), self.factors)
        self._largest = found.largest
        self._of_rows = float(found.sums.get("penalties", 0.0))
        return found

    def read(self, what: Callable[..., Array]) -> list[Any]:
        """Return futures of what a function makes of the rows of each block."""
        if self._changes:
            self.order()
        return self._fit.read(self._next_order(), what, self.factors)

    def statistics(
        self, name: str, curvature: bool, sides: Sequence[Side] | None = None
    ) -> Statistics:
        here = [side for side in self.sides(name) if self.rows not in side.far]
        if name not in self._elsewhere:
            return super().statistics(name, curvature, here)
        if name not in self._ready:
            self._keep(self.order(others={name: curvature}))
        found = self._ready.pop(name)
        if here:
            found.join(super().statistics(name, curvature, here))
        return found

    @property
    def _elsewhere(self) -> list[str]:
        """Names of the other factors that meet the rows."""
        return [name for r in self._fit.relations for name in r.names[1:]]

    def _keep(self, found: BlockStatistics) -> None:
        self._ready = dict(found.factors)

    def descends(self, name: str, rule: Solver) -> bool:
        """Whether by coordinate descent: where rows add to one Gram matrix."""
        return super().descends(name, rule) and all(s.term.gram for s in self.sides(name))

    def refines(self) -> bool:
        return False

    def update_rows(self, rule: Solver, ahead: Ahead | None = None) -> None:
        if rule == "hals" and not self.descends(self.rows, rule):
            rule = "mm"
        others = {name: self.descends(name, rule) for name in self._elsewhere}
        where = None if ahead is None else (ahead.step, ahead.positive)
        found = self.order(rule=rule, others=others, ahead=where)
        self._keep(found)
        self._sums = found.sums
        self._kept = found.sums.get("product")

    def _value_of_terms(self) -> float:
        here = value(self._local, self.factors)
        if self._kept is not None:
            total, constant = self._objective_from_P()
            if not (self._has_data and self._cancels(total, constant)):
                return total + here
        return float(self.order(asks=(value,)).sums["value"]) + here

    def _value_of_penalties(self) -> float:
        """Return that of the last order for S, which has no row here, and of the others."""
        return self._of_rows + super()._value_of_penalties()

    def _still(self) -> list[Array]:
        first = self._fit.plan.rank - self._fit.data.n_fixed
        given = np.arange(self.factors[self.rows].shape[1])
        return [*super()._still(), (first <= given) & (given < self._fit.plan.rank)]

    def squares(self) -> tuple[float, float]:
        return self._sums["below"], self._sums["constant"]

    def unreached(self) -> float:
        return float(self.order(asks=(unreached,)).sums["unreached"])

    def extrapolate(self, name: str, before: Array, step: float, positive: bool) -> None:
        super().extrapolate(name, before, step, positive)
        if name == self.rows:
            self._changes.append(partial(Rows.extrapolate, step=step, positive=positive))

    def restore(self, factors: Mapping[str, Array]) -> None:
        super().restore(factors)
        if self.rows in factors:
            self._changes.append(Rows.restore)

    def _largest_of(self, name: str) -> Array:
        if name != self.rows:
            return super()._largest_of(name)
        return self.order().largest if self._largest is None else self._largest

    def _shift(self, exponents: Mapping[str, Array], earlier: Mapping[str, Array]) -> None:
        super()._shift(exponents, earlier)
        self._changes.append(partial(Rows.shift, exponents=exponents[self.rows]))
        self._largest = None


class ClusterFit(Blocks):
    """The blocks of one fit, and what is known of all of them."""

    def __init__(self, data: Data, plan: Plan) -> None:
        self.data, self.plan = data, plan
        name = f"ssnmf-fast-{uuid.uuid4().hex[:12]}"
        titles = zip([(name, i) for i in data.positions], data.bounds[:-1], strict=True)
        made = data.start(_build.build, plan, parts=titles)
        super().__init__(data.client, made, name)
        found: list[BlockStatistics] = result_of(data.client, self.anywhere(_build.totals))
        self.totals = reduce(operator.add, found).sums
        gaps = tuple(self.totals.get(f"{name} gaps", 0.0) for name in "XY")
        if any(0 < count < len(found) for count in gaps):
            self.replace(_build.with_gaps, gaps)
        first = self.anywhere(_build.relations_without_rows)[0]
        self.relations: list[Relation] = result_of(data.client, first)

    def mean(self, name: str = "X") -> float:
        """Return the weighted mean of X or Y; 1 where any number will do."""
        weights = self.totals[f"{name} weights"]
        return float(self.totals[name] / weights if weights > 0 else 0.0) or 1.0

    def begin(self, each: Sequence[Draw | Any] | None = None) -> tuple[Array, Array]:
        """Set S to starts of its blocks, or to what was given.

        Return the means of its columns, and those without the support.
        """
        sums = self.collect(_block.begin, each or [None] * len(self.futures)).sums
        columns, unbound = sums["columns"], sums["unbound"]
        return columns / self.data.shape[0], unbound / self.data.shape[0]

    def balance(self, losses: Array) -> float:
        """Weigh the supervision so that both losses are equal, on the workers and here."""
        weight = even_weight(losses[0], losses[1])
        self.relations = [self.relations[0], replace(self.relations[1], coefficient=weight)]
        self.replace(_build.reweigh, weight)
        return weight


def without_S(current: Current) -> Current:
    """Return a view of the other factors alone: S stays with the workers."""
    return lambda: {**current(), "S": None}


def pcg64_of(random_state: Any) -> np.random.Generator:
    """Return a generator that blocks can move on in: the one of a user, if it can."""
    rng = check_random_state(random_state)
    if isinstance(rng.bit_generator, np.random.PCG64):
        return rng
    return np.random.Generator(np.random.PCG64(int(rng.integers(2**63))))


Start = tuple[Array, Array, Array]  # A, the means of S, what its components are to be multiplied by


def begin(fit: ClusterFit, init: Any, rng: np.random.Generator, known: Known) -> Start:
    """Start S as it is started in memory; return the rest, with what is known of A."""
    if init == "nndsvda":
        raise ValueError(
            "init='nndsvda' is not available for data on a cluster; use 'random' or "
            "'random-acol', or give a start."
        )
    name = starts.choose_start(init, fit.plan.losses[0], fit.data.on_disk)
    found = None
    if name == "least-squares" and fit.totals["X"] > 0:
        found = _least_squares(fit, rng, known)
    if name == "random-acol":
        A = _mean_rows(fit.data, fit.plan.rank, rng) + 0.01 * fit.mean()
        means, unbound = fit.begin(_draws(fit, rng, 1.0))
        scale = starts.ratio(fit.mean(), float(unbound @ A.mean(axis=1))) * _within(fit)
        found = _as_known(fit, A, means, scale, known)
    return _uniform(fit, rng, known) if found is None else found


def _uniform(fit: ClusterFit, rng: np.random.Generator, known: Known) -> Start:
    rank, m = fit.plan.rank, fit.data.shape[1]
    scale = 2 * np.sqrt(fit.mean() / rank)
    means, _ = fit.begin(_draws(fit, rng, scale * _within(fit)))
    return _as_known(fit, scale * rng.random((rank, m)), means, 1.0, known)


def _as_known(fit: ClusterFit, A: Array, means: Array, scale: float, known: Known) -> Start:
    """Return a drawn start with what is known of A, for an S that is to be multiplied by scale."""
    F, scales = known.restore("A", known.within("A", A.T)), _of_free(fit, scale)
    levels = known.levels({"S": means * scales, "A": F.mean(axis=0)}, fit.mean())
    scales *= levels["S"]
    return (F * levels["A"]).T, means * scales, scales


def _of_free(fit: ClusterFit, scale: float) -> Array:
    """Return a number for each component of S, 1 for those that are given."""
    free = fit.plan.rank - fit.data.n_fixed
    return np.where(np.arange(fit.plan.rank) < free, scale, 1.0)


def _within(fit: ClusterFit) -> float:
    """Return what keeps the mean of S where some of it is 0 by its support."""
    return float(fit.data.shape[0] * fit.plan.rank / max(1.0, fit.totals["support"]))


def _draws(fit: ClusterFit, rng: np.random.Generator, scale: float) -> list[Draw]:
    """Return the draws of all blocks, and move the generator on beyond them."""
    bits, draws = rng.bit_generator, []
    assert isinstance(bits, np.random.PCG64)
    for n_rows in np.diff(fit.data.bounds).tolist():
        draws.append(Draw(bits.state, float(scale)))
        bits.advance(n_rows * fit.plan.rank)
    return draws


def _mean_rows(data: Data, rank: int, rng: np.random.Generator) -> Array:
    """Return means of a few random rows of X, (r, m)."""
    chosen = rng.integers(data.shape[0], size=(rank, starts.ROWS_PER_MEAN))
    numbers, places = np.unique(chosen, return_inverse=True)
    found = np.vstack(result_of(data.client, data.start(_build.rows_of, parts=data.parts(numbers))))
    means: Array = found[places.reshape(chosen.shape)].mean(axis=1)
    return means


def start_B(fit: ClusterFit, means: Array, rng: np.random.Generator) -> Array:
    """Return uniform entries, scaled so that the mean of S B is the mean of Y."""
    B = rng.random((fit.plan.rank, fit.data.n_labels or 0))
    return B * starts.ratio(fit.mean("Y"), float(means @ B.mean(axis=1)))


def _least_squares(fit: ClusterFit, rng: np.random.Generator, known: Known) -> Start | None:
    """Set out from the squares of factors fitted to the square roots of X, where none vanishes."""
    plan = replace(fit.plan, of_roots=True, lengths=((), ()), penalties={}, elsewhere=())
    rank = plan.rank
    with ClusterFit(fit.data, plan) as roots:
        A, _, scales = _uniform(roots, rng, known.roots())
        factors = pad_factors(np.zeros((0, rank), fit.data.dtype), A, None)
        problem = ClusterProblem(roots, factors, known.moves(factors))
        problem.scale_rows(scales)
        starts.fit_roots(problem)
        F = problem.factors["A"][:, :rank].astype(np.float64) ** 2
        mean = problem.order(asks=(_block.squares,)).sums["squares"] / (fit.data.shape[0] * rank)
        if not (mean > 0 and F.mean() > 0):
            return None
        floor = starts.FILLER * mean
        means, _ = fit.begin(problem.read(partial(_block.squares_of_rows, floor=floor)))
    A = known.restore("A", np.maximum(F, starts.FILLER * F.mean())).T
    scales = _of_free(fit, starts.ratio(fit.mean(), float(means @ A.mean(axis=1))))
    return A, means * scales, scales
