"""Blocks of rows on workers: the terms of their data, and their rows of S.

Rows of S change in place, so they are not results of tasks: each block keeps its own.  If Dask
moves a block, for example when a worker is retired, the rows move with it; if Dask releases it, for
example when the caller has died, the rows are freed.

Steps of a fit are numbered.  A task that is repeated because its result was lost finds the rows as
it left them, and only recomputes its statistics.  Lost rows are recovered: given the other factors,
each model has one solution for them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from .._backend.dispatch import aligned_zeros, kernels, padded, padded_zeros
from .._common.arrays import Array, bits_of, mask_of
from .._data.border import check_factor
from .._models.variational import Posterior
from .._solver import starts
from .._solver.build import build_term
from .._solver.known import Known
from .._solver.losses import FROBENIUS
from .._solver.majorizer import Majorizer
from .._solver.penalties import Penalties, value_of
from .._solver.plan import Plan, Update
from .._solver.problem import Momentum, Problem, Workspaces, observed_rows, problem_kind
from .._solver.relations import Relation, unreached, value
from .._solver.term_forms import with_gaps
from .._solver.terms import Loss
from ._data import BlockInput, as_matrix, with_title

UPDATES_OF_LOST_ROWS = 100

Factors: TypeAlias = Mapping[str, Array]


def aligned_copy(F: Array) -> Array:
    """Return a factor from the network in the storage of the kernels."""
    result = aligned_zeros(F.shape, F.dtype)
    result[...] = np.asarray(F)
    return result


@dataclass
class BlockStatistics:
    """Sufficient statistics of a block of rows for the other factors, which can be added."""

    sums: dict[str, Any]  # numbers or arrays
    factors: dict[str, Majorizer] = field(default_factory=dict)
    largest: Array = field(default_factory=lambda: np.zeros(0))  # entries of the components

    def plus(
        self, *others: BlockStatistics, copy: Callable[[Array], Array] = np.copy
    ) -> BlockStatistics:
        """Return the sum in new arrays; the parts stay unchanged, because a task may run twice."""
        factors = {name: each.copied(copy) for name, each in self.factors.items()}
        sums, largest = self.sums, self.largest
        for other in others:
            for name, each in factors.items():
                each.add(other.factors[name])
            sums = {name: number + other.sums[name] for name, number in sums.items()}
            largest = np.maximum(largest, other.largest)
        return BlockStatistics(sums, factors, largest)


@dataclass
class Rows:
    """Rows of S of a block, on its worker.

    With momentum, `before` is S of the previous iteration (None: S).  With a posterior, S is its
    geometric expectation and `before` the arithmetic one.
    """

    S: Array
    before: Array | None = None
    posterior: Posterior | None = None
    number: int = 0  # of the last step
    sums: dict[str, Any] = field(default_factory=dict)  # of the last update
    workspaces: Workspaces = field(default_factory=dict)
    # The next extrapolation: the step and whether S stays positive; the rows after it are `moved`.
    ahead: tuple[float, bool] | None = None
    moved: Array | None = None
    # A cancelled task may still run; rows may only be pickled between tasks.
    lock: Any = field(default_factory=Lock, repr=False)

    def earlier(self) -> Array:
        """Return the rows of the previous iteration, which are kept from now on."""
        if self.before is None:
            self.before = aligned_copy(self.S)
        return self.before

    def extrapolate(self, step: float, positive: bool) -> None:
        """Extrapolate the last move of the rows; three arrays take turns."""
        moved, before = self.ahead_by(step, positive), self.earlier()
        self.S, self.before, self.moved, self.ahead = moved, self.S, before, None

    def ahead_by(self, step: float, positive: bool, threads: int = 1) -> Array:
        """Return the extrapolated rows without moving."""
        if self.moved is None or self.ahead != (step, positive):
            now = aligned_zeros(self.S.shape, self.S.dtype) if self.moved is None else self.moved
            np.copyto(now, self.earlier())
            kernels.extrapolate(self.S, now, step, positive, threads)
            self.S, self.moved, self.ahead = now, self.S, (step, positive)
        return self.moved

    def restore(self) -> None:
        """Restore the rows of the previous iteration."""
        self.ahead = None
        np.copyto(self.S, self.earlier())

    def scale(self, scales: Array) -> None:
        """Multiply components by numbers; forget earlier rows."""
        self.ahead = None
        self.S[:, : len(scales)] *= scales.astype(self.S.dtype)
        self.before = None

    def shift(self, exponents: Array) -> None:
        self.ahead = None
        np.ldexp(self.S, exponents, out=self.S)
        if self.before is not None:
            np.ldexp(self.before, exponents, out=self.before)

    def __getstate__(self) -> dict[str, Any]:
        here = ("workspaces", "ahead", "moved", "lock")
        return {name: v for name, v in vars(self).items() if name not in here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, workspaces={}, ahead=None, moved=None, lock=Lock())
        self.S = aligned_copy(self.S)
        self.before = None if self.before is None else aligned_copy(self.before)
        if self.posterior is not None:
            self.posterior.F, self.posterior.E = self.S, self.earlier()


# Of this worker, by fit and number of the block: copies of a block have the same rows.
ROWS: WeakValueDictionary[tuple[str, int], Rows] = WeakValueDictionary()


@dataclass
class Block:
    """A block of rows of the data for a fit; its rows of S move with it."""

    key: tuple[str, int]  # name of the fit and number of the block
    first: int  # number of its first row in all data
    relations: list[Relation]
    support: Array | None  # where S moves, padded, as bits
    places: int  # number of places where S may be positive by the given support
    rank: int
    dtype: np.dtype[Any]
    start: Array | None  # given rows
    fixed: Array | None = None  # the last components of S
    penalties: Mapping[str, Penalties] = field(default_factory=dict)  # of S, and names of others
    clears: bool = True  # whether rows without an entry are 0: not in the fit of a start
    rows: Rows | None = None

    @property
    def n_rows(self) -> int:
        return self.relations[0].term.shape[0]

    def __getstate__(self) -> bytes:  # see `BlockInput`
        rows = self.latest()
        with nullcontext() if rows is None else rows.lock:
            return pickle.dumps(vars(self), protocol=5)

    def __setstate__(self, contents: bytes) -> None:
        vars(self).update(pickle.loads(contents))
        self.latest()

    def latest(self) -> Rows | None:
        """Return the rows, or those of a copy of this block that are newer."""
        here = ROWS.get(self.key)
        if here is not None and (self.rows is None or self.rows.number <= here.number):
            self.rows = here
        elif self.rows is not None:
            ROWS[self.key] = self.rows
        return self.rows

    def keep(self, rows: Rows) -> None:
        self.rows = ROWS[self.key] = rows

    def problem(self, rows: Rows, others: Factors) -> Problem:
        support = {} if self.support is None else {"S": self.support}
        arguments = self.relations, support, rows.workspaces, self.penalties
        return problem_kind(self.relations)({"S": rows.S, **others}, *arguments)

    def restrict(self, S: Array) -> None:
        """Set entries outside of the support to 0, and set the fixed components."""
        if self.support is not None:
            S *= mask_of(self.support, S.shape[1])
        if self.fixed is not None:
            S[:, self.rank - self.fixed.shape[1] : self.rank] = self.fixed

    def cleared(self, S: Array) -> Rows:
        """Return rows with 0 where no entry is observed."""
        rows, widths = Rows(S), {r.names[1]: r.term.shape[1] for r in self.relations}
        if self.clears:
            none = {name: np.zeros((m, S.shape[1]), S.dtype) for name, m in widths.items()}
            self.problem(rows, none).clear_unobserved()
        return rows


@dataclass(frozen=True)
class BlockPlan:
    """How to build blocks; the same for all blocks."""

    rank: int
    losses: tuple[Loss, Loss]
    weight: float
    lengths: tuple[tuple[int, ...], tuple[int, ...]]
    threads: int
    of_roots: bool = False
    penalties: Mapping[str, Penalties] = field(default_factory=dict)  # only those of S count


def build(data: BlockInput, key: tuple[str, int], first: int, plan: BlockPlan) -> Block:
    """Return a block for a fit; `first` is the number of its first row in all data."""
    X, dtype, rank = data.X, data.X.dtype, plan.rank
    X, shape = starts.roots(X) if plan.of_roots else X, (X.shape[0], rank)
    loss = FROBENIUS if plan.of_roots else plan.losses[0]
    term = build_term(X, data.X_weights, loss, "X", plan.threads)
    relations = [Relation(("S", "A"), replace(term, row_lengths=plan.lengths[0]))]
    if data.y is not None and not plan.of_roots:
        labels = build_term(data.y, data.y_weights, plan.losses[1], "y", plan.threads)
        labels = replace(labels, row_lengths=plan.lengths[1])
        relations.append(Relation(("S", "B"), labels, plan.weight))
    given = {"S_support": as_matrix(data.support), "covariates": as_matrix(data.covariates)}
    known = Known.of(X.shape, rank, dtype, **given)
    known = known.roots() if plan.of_roots else known
    support, S = known.moves({"S": padded_zeros(*shape, dtype)}).get("S"), None
    places = int(known.support["S"].sum()) if known.support else shape[0] * rank
    _, fixed = known.fixed.get("S", (None, None))
    if data.S is not None:
        S = check_factor(data.S, "init[0] (S)", shape, dtype, "samples x components")
        if not S.all():  # zeros of a given start stay
            positive = bits_of(padded(S, dtype) > 0)
            support = positive if support is None else support & positive
    further = plan.penalties, not plan.of_roots
    return Block(key, first, relations, support, places, rank, dtype, S, fixed, *further)


def adapt(block: Block, gaps: Sequence[float], weight: float) -> Block:
    """Return a block with this weight of supervision, and terms for gaps in other blocks."""
    relations = [
        replace(r, coefficient=c, term=with_gaps(r.term, block.dtype) if some else r.term)
        for r, some, c in zip(block.relations, gaps, (1.0, weight), strict=False)
    ]
    return replace(block, relations=relations, rows=block.latest())


Draw: TypeAlias = tuple[Mapping[str, Any], float]  # the state of a generator, and a scale


def begin(block: Block, start: Draw | Array | None) -> BlockStatistics:
    """Set rows to their start; return sums of columns, with and without the support."""
    rows: Any = start if block.start is None else block.start
    if isinstance(rows, tuple):
        bits = np.random.PCG64()
        bits.state, scale = rows
        rows = scale * np.random.Generator(bits).random((block.n_rows, block.rank))
    S = padded(rows, block.dtype)
    sums = {"unbound": S.sum(axis=0, dtype=np.float64)[: block.rank]}
    block.restrict(S)
    sums["columns"] = S.sum(axis=0, dtype=np.float64)[: block.rank]
    block.keep(block.cleared(S))
    return BlockStatistics(sums)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A task for the rows of a block; each kind of model has a subclass.

    Steps that move rows are numbered; `names` are the names of the other factors that are sent.
    `recover(block, others)` returns lost rows, after the `changes` that precede an update;
    `run(block, rows, others)` moves rows unless this step has done so, and returns the statistics.
    A step with `reads` returns an array.
    """

    number: int
    names: tuple[str, ...]
    moves: bool = False
    changes: tuple[Callable[[Rows], None], ...] = ()
    reads: Callable[[Block, Rows], Array] | None = None

    recover: ClassVar[Callable[..., Rows]]
    run: ClassVar[Callable[..., BlockStatistics]]


def run_step(block: Block, step: Step, *factors: Array) -> Any:
    """Run a step with the rows of a block, which are recovered if they were lost."""
    others = dict(zip(step.names, map(aligned_copy, factors), strict=True))
    rows, before = block.latest(), step.number - step.moves
    if rows is None or rows.number < before:  # lost, or a step ran elsewhere after a move
        rows = step.recover(block, others)
        rows.number = before
        block.keep(rows)
        step = replace(step, changes=())
    with rows.lock:
        return step.run(block, rows, others) if step.reads is None else step.reads(block, rows)


def run_task(block: Block, task: Callable[..., Any], *arguments: object) -> Any:
    """Run a task of a fit with a block; errors name the block."""
    title = f"block {block.key[1]} (rows {block.first} to {block.first + block.n_rows - 1})"
    return with_title(title, task, block, *arguments)


@dataclass(frozen=True, kw_only=True)
class RowStep(Step):
    """Changes of the rows, an update by the plan, and the statistics and sums to return."""

    plan: Plan
    updates: bool = False
    others: Mapping[str, Update] = field(default_factory=dict)  # those whose majorizers are asked
    ahead: tuple[float, bool] | None = None  # step of the momentum, and whether rows stay positive
    asks: tuple[Callable[[Sequence[Relation], Factors], Any], ...] = ()  # values to add

    def recover(self, block: Block, others: Factors) -> Rows:
        """Solve for the rows: their problem is convex."""
        size = np.sqrt(block.relations[0].term.mean() / block.rank)
        S = padded(np.full((block.n_rows, block.rank), size), next(iter(others.values())).dtype)
        block.restrict(S)
        rows = block.cleared(S)
        problem, last = block.problem(rows, others), None
        plan = self.plan
        if plan.by_factor["S"] == "fill-in":  # which takes more updates than curvatures of rows
            plan = replace(plan, by_factor={**plan.by_factor, "S": "descent"})
        for _ in range(UPDATES_OF_LOST_ROWS):
            last = problem.update_rows(plan, last=last)
        return rows

    def run(self, block: Block, rows: Rows, others: Factors) -> BlockStatistics:
        moves = rows.number < self.number
        if moves:
            for change in self.changes:
                change(rows)
        problem, last = block.problem(rows, others), None
        where = self.ahead and Momentum(rows.earlier(), *self.ahead)
        if moves:
            if self.updates:
                rows.ahead = None
                last = problem.update_rows(self.plan, where)
                rows.sums = {}
                if self.plan.by_factor["S"] == "fill-in":
                    rows.sums = {"value": value(block.relations, problem.factors)}
                elif all(relation.term.loss.quadratic for relation in block.relations):
                    sides = np.array(problem.squares())
                    rows.sums = {"product": problem.product(last), "sides": sides}
            rows.number = self.number
        # Only after an update: recovered rows have no sums.
        sums = dict(rows.sums) if self.updates else {}
        sums |= {asked.__name__: asked(block.relations, problem.factors) for asked in self.asks}
        sums["penalties"] = value_of(block.penalties, problem.factors)
        largest, factors = rows.S.max(axis=0, initial=0.0), dict[str, Majorizer]()
        if self.others:
            if self.ahead:  # the next step may use these rows
                problem.factors["S"] = rows.ahead_by(*self.ahead, problem.threads)
            factors = problem.row_majorizers(self.others, last=last)
        return BlockStatistics(sums, factors, largest)


def losses(relations: Sequence[Relation], factors: Factors) -> Array:
    """Return the value of each relation without unreached entries."""
    return np.array([value([each], factors) - unreached([each], factors) for each in relations])


def squares(relations: Sequence[Relation], factors: Factors) -> float:
    """Return the sum of the squares of S."""
    return float(np.square(factors["S"], dtype=np.float64).sum())


def copy_rows(block: Block, rows: Rows) -> Array:
    """Return the rows of S, or their expectations, (rows, r)."""
    S = rows.S if rows.posterior is None else rows.posterior.E
    return np.array(S[:, : block.rank])


def square_rows(block: Block, rows: Rows, floor: float) -> Array:
    """Return the squares of the rows of S, at least `floor` where S may be positive."""
    S: Array = np.maximum(rows.S[:, : block.rank].astype(np.float64) ** 2, floor)
    return S if block.support is None else S * mask_of(block.support, block.rank)


def totals(block: Block) -> BlockStatistics:
    """Return sums of entries, weights and support, and counts of blocks with a property."""
    data = any(r.term.data for r in block.relations)
    sums: dict[str, Any] = {"support": float(block.places), "data": float(data)}
    S = np.empty((block.n_rows, 0), dtype=block.dtype)
    for name, relation in zip("XY", block.relations, strict=False):
        term = relation.term
        sums[name] = term.entries.total()
        sums[f"{name} weights"] = term.form.total(term.shape)
        sums[f"{name} gaps"] = float(not term.form.separable)  # missing entries
        sums[f"{name} fills"] = float(term.form.separable or term.fills)
        columns = observed_rows(relation.view(relation.names[1]), {"S": S}, term.shape[1])
        sums[f"{name} columns"] = columns.astype(np.float64)  # with an entry
    return BlockStatistics(sums)
