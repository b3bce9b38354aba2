"""Blocks of rows on workers: the terms of their data, and their rows of S, which stay there.

Rows of S are changed in place, so they are no results of tasks.  Each worker keeps those of its
blocks.  When Dask moves a block, as it does when a worker is retired, the rows move with it.

Steps of a fit are numbered.  A task that runs again, since its result was lost with another worker,
finds the rows as it left them, and only computes its statistics again.  Rows that were lost are
recovered: given the other factors, each model has one solution for them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from .._backend.dispatch import aligned_zeros, kernels, padded, padded_zeros
from .._common.arrays import Array, Solver, bits_of, mask_of
from .._data.border import check_factor, check_support
from .._models.variational_problem import Posterior
from .._solver import starts, terms
from .._solver.build import build_term
from .._solver.known import Known
from .._solver.losses import FROBENIUS
from .._solver.penalties import Penalties, value_of
from .._solver.problem import Momentum, Problem, Workspaces, problem_kind
from .._solver.relations import Relation, Statistics, unreached, value
from .._solver.terms import Loss
from ._data import BlockInput, SinglePickle, as_matrix, with_title

UPDATES_OF_LOST_ROWS = 100

Factors: TypeAlias = Mapping[str, Array]


def aligned_copy(F: Array) -> Array:
    """Return a factor that came over the network as the kernels hold it."""
    result = aligned_zeros(F.shape, F.dtype)
    result[...] = np.asarray(F)
    return result


@dataclass
class BlockStatistics:
    """Sufficient statistics of a block of rows for the other factors; they add up.

    `sums` are numbers or arrays by name; `largest` are the largest entries of the components.
    """

    sums: dict[str, Any]
    factors: dict[str, Statistics] = field(default_factory=dict)
    largest: Array = field(default_factory=lambda: np.zeros(0))

    def __add__(self, other: BlockStatistics) -> BlockStatistics:
        """Return those of both; neither is changed, since a task may run twice."""
        both = self.copied()
        both.add(other)
        return both

    def copied(self, copy: Callable[[Array], Array] = np.copy) -> BlockStatistics:
        """Return statistics that others can be added to."""
        factors = {name: each.copied(copy) for name, each in self.factors.items()}
        return BlockStatistics(self.sums, factors, self.largest)

    def add(self, other: BlockStatistics) -> None:
        for name, each in self.factors.items():
            each.add(other.factors[name])
        self.sums = {name: number + other.sums[name] for name, number in self.sums.items()}
        self.largest = np.maximum(self.largest, other.largest)


@dataclass
class Rows:
    """Rows of S of a block, on its worker; `number` is that of the last step.

    With momentum, `before` is S of an iteration ago; None stands for S itself.  With a posterior, S
    is its geometric expectation and `before` the arithmetic one.  `sums` are those of the last
    update.
    """

    S: Array
    before: Array | None = None
    posterior: Posterior | None = None
    number: int = 0
    sums: dict[str, Any] = field(default_factory=dict)
    workspaces: Workspaces = field(default_factory=dict)
    # Where S moves next: the step, whether it stays positive, and the rows there.
    ahead: tuple[float, bool, Array] | None = None
    spare: list[Array] = field(default_factory=list)  # as large as S, for what comes next
    # A task that was given up may still run, and rows move between tasks only.
    lock: Any = field(default_factory=Lock, repr=False)

    def earlier(self) -> Array:
        """Return the rows of an iteration ago, which are kept from now on."""
        if self.before is None:
            self.before = aligned_copy(self.S)
        return self.before

    def extrapolate(self, step: float, positive: bool) -> None:
        """Move the rows further in the direction of their last move; `before` is what they were.

        Three arrays take turns, since what the rows were may have to be restored.
        """
        moved, before = self.ahead_by(step, positive), self.earlier()
        self.S, self.before, self.ahead = moved, self.S, None
        self.spare.append(before)

    def ahead_by(self, step: float, positive: bool, threads: int = 1) -> Array:
        """Return where the rows would move; they stay, and `before` too."""
        if self.ahead is None or self.ahead[:2] != (step, positive):
            before = self.earlier()
            self.forget_ahead()
            now = self.spare.pop() if self.spare else aligned_zeros(before.shape, before.dtype)
            np.copyto(now, before)
            moved = self.S
            kernels.extrapolate(moved, now, step, positive, threads)
            self.S, self.ahead = now, (step, positive, moved)
        return self.ahead[2]

    def forget_ahead(self) -> None:
        """Forget where the rows would move, before they change otherwise."""
        if self.ahead is not None:
            self.spare.append(self.ahead[2])
            self.ahead = None

    def restore(self) -> None:
        """Take the rows of an iteration ago."""
        self.forget_ahead()
        np.copyto(self.S, self.earlier())

    def scale(self, scales: Array) -> None:
        """Multiply components by numbers; what they were before no longer counts."""
        self.forget_ahead()
        self.S[:, : len(scales)] *= scales.astype(self.S.dtype)
        self.before = None

    def shift(self, exponents: Array) -> None:
        """Multiply components by powers of two."""
        self.forget_ahead()
        np.ldexp(self.S, exponents, out=self.S)
        if self.before is not None:
            np.ldexp(self.before, exponents, out=self.before)

    def __getstate__(self) -> dict[str, Any]:
        here = ("workspaces", "ahead", "spare", "lock")
        return {name: v for name, v in vars(self).items() if name not in here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, workspaces={}, ahead=None, spare=[], lock=Lock())
        self.S = aligned_copy(self.S)
        self.before = None if self.before is None else aligned_copy(self.before)
        if self.posterior is not None:
            self.posterior.F, self.posterior.E = self.S, self.earlier()


ROWS: dict[tuple[str, int], Rows] = {}  # of this worker, by fit and number of the block


def forget(fit: str) -> None:
    """Drop what this worker keeps for a fit."""
    for key in [key for key in ROWS if key[0] == fit]:
        ROWS.pop(key, None)


@dataclass
class Block(SinglePickle):
    """Rows of the data as a fit sees them.

    When Dask moves a block, the rows of S that are kept for it move with it.
    """

    key: tuple[str, int]  # the name of the fit, and the number of the block
    first: int  # of its rows, counted in all data
    relations: list[Relation]
    support: Array | None  # where S moves, padded, as bits
    places: int  # where S may be positive, by the support of the user
    rank: int
    dtype: np.dtype[Any]
    start: Array | None  # rows of the user
    fixed: Array | None = None  # the last components of S
    penalties: Mapping[str, Penalties] = field(default_factory=dict)  # of S, and names of others
    elsewhere: tuple[bool, ...] = ()  # see `Problem`

    @property
    def n_rows(self) -> int:
        return self.relations[0].term.shape[0]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        rows, reduced = ROWS.get(self.key), super().__reduce__()
        if rows is None:
            return reduced
        with rows.lock:
            return _restore_with_rows, (*reduced, pickle.dumps(rows, protocol=5))

    def problem(self, rows: Rows, others: Factors) -> Problem:
        """Return the problem of the rows, given the other factors."""
        support = {} if self.support is None else {"S": self.support}
        arguments = self.relations, support, rows.workspaces, False, self.penalties, self.elsewhere
        return problem_kind(self.relations)({"S": rows.S, **others}, *arguments)

    def restrict(self, S: Array) -> None:
        """Set to 0 what is not in the support, and set the fixed components."""
        if self.support is not None:
            S *= mask_of(self.support, S.shape[1])
        if self.fixed is not None:
            S[:, self.rank - self.fixed.shape[1] : self.rank] = self.fixed


def _restore_with_rows(
    restore: Callable[..., Block], arguments: tuple[Any, ...], contents: bytes
) -> Block:
    block, rows = restore(*arguments), pickle.loads(contents)
    if block.key not in ROWS or ROWS[block.key].number < rows.number:
        ROWS[block.key] = rows
    return block


@dataclass(frozen=True)
class Plan:
    """How blocks are built: the same for all of them."""

    rank: int
    losses: tuple[Loss, Loss]
    weight: float
    lengths: tuple[tuple[int, ...], tuple[int, ...]]
    threads: int
    of_roots: bool = False
    penalties: Mapping[str, Penalties] = field(default_factory=dict)  # here of S alone
    elsewhere: tuple[bool, ...] = ()  # of labels of features, see `Problem`


def build(data: BlockInput, key: tuple[str, int], first: int, plan: Plan) -> Block:
    """Return the block of a fit; `first` is its first row, counted in all data."""
    X, dtype, rank = data.X, data.X.dtype, plan.rank
    shape = X.shape[0], rank
    if plan.of_roots:
        X = starts.roots(X)
    loss = FROBENIUS if plan.of_roots else plan.losses[0]
    term = build_term(X, data.X_weights, loss, "X", plan.threads)
    relations = [Relation(("S", "A"), replace(term, row_lengths=plan.lengths[0]))]
    if data.y is not None and not plan.of_roots:
        labels = build_term(data.y, data.y_weights, plan.losses[1], "y", plan.threads)
        labels = replace(labels, row_lengths=plan.lengths[1])
        relations.append(Relation(("S", "B"), labels, plan.weight))
    support = S = fixed = None
    if data.support is not None:
        support = check_support(as_matrix(data.support), "S_support", shape, dtype)
    places = shape[0] * rank if support is None else int(support.sum())
    if data.S is not None:
        S = check_factor(data.S, "init[0] (S)", shape, dtype, "samples x components")
        if not S.all():  # zeros of the start of a user stay
            support = S > 0 if support is None else support & (S > 0)
    if data.covariates is not None:
        known = Known.of(X.shape, rank, dtype, covariates=as_matrix(data.covariates))
        _, fixed = known.fixed["S"]
        support = np.ones(shape, bool) if support is None else support
        support[:, rank - fixed.shape[1] :] = False
        fixed = np.sqrt(fixed) if plan.of_roots else fixed
    stored = None if support is None else bits_of(padded(support, dtype) > 0)
    further = plan.penalties, plan.elsewhere
    return Block(key, first, relations, stored, places, rank, dtype, S, fixed, *further)


def reweigh(block: Block, weight: float) -> Block:
    """Return a block with another weight of the supervision."""
    X, Y = block.relations
    return replace(block, relations=[X, replace(Y, coefficient=weight)])


def with_gaps(block: Block, gaps: tuple[float, ...]) -> Block:
    """Return a block as a part of data with missing entries, where there are some elsewhere."""
    relations = [
        replace(relation, term=terms.with_gaps(relation.term, block.dtype)) if some else relation
        for relation, some in zip(block.relations, gaps, strict=False)
    ]
    return replace(block, relations=relations)


class Draw(NamedTuple):
    """Rows drawn from a generator in this state: uniform from 0 to `scale`."""

    state: Mapping[str, Any]
    scale: float


def begin(block: Block, start: Draw | Array | None) -> BlockStatistics:
    """Set rows to their start; return sums of columns, and what they were without the support."""
    S = padded_zeros(block.n_rows, block.rank, block.dtype)
    if block.start is not None:
        S[:, : block.rank] = block.start
    elif isinstance(start, Draw):
        bits = np.random.PCG64()
        bits.state = start.state  # type: ignore[assignment]
        drawn = np.random.Generator(bits).random((block.n_rows, block.rank))
        S[:, : block.rank] = start.scale * drawn
    else:
        S[:, : block.rank] = start
    sums = {"unbound": S.sum(axis=0, dtype=np.float64)[: block.rank]}
    block.restrict(S)
    sums["columns"] = S.sum(axis=0, dtype=np.float64)[: block.rank]
    ROWS[block.key] = Rows(S)
    return BlockStatistics(sums)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a task does with the rows of a block, for a model: a subclass.

    Steps that move rows are numbered, and `names` are those of the other factors that are sent.
    Rows that are recovered have had the `changes` before an update.  `recover(block, others)`
    returns rows that were lost as they may have been; `run(block, rows, others)` moves rows that
    have not moved in this step, and returns the statistics.
    """

    number: int
    names: tuple[str, ...]
    moves: bool = False
    changes: tuple[Callable[[Rows], None], ...] = ()

    recover: ClassVar[Callable[..., Rows]]
    run: ClassVar[Callable[..., BlockStatistics]]


def run_step(block: Block, step: Step, *factors: Array) -> BlockStatistics:
    """Run a step with the rows of a block, and return their statistics."""
    rows, step, others = _find_rows(block, step, factors)
    with rows.lock:
        return step.run(block, rows, others)


def read_rows(
    block: Block, step: Step, read: Callable[[Block, Rows], Array], *factors: Array
) -> Array:
    """Return what a function reads from the rows of a block as they are."""
    return read(block, _find_rows(block, step, factors)[0])


def _find_rows(
    block: Block, step: Step, factors: tuple[Array, ...]
) -> tuple[Rows, Step, dict[str, Array]]:
    """Return the rows, what is left of the step for them, and the other factors by name."""
    others = dict(zip(step.names, map(aligned_copy, factors), strict=True))
    rows, before = ROWS.get(block.key), step.number - step.moves
    if rows is None or rows.number < before:  # lost, or moved before a step that ran elsewhere
        rows = step.recover(block, others)
        rows.number = before
        ROWS[block.key] = rows
        step = replace(step, changes=())
    return rows, step, others


def run_task(block: Block, task: Callable[..., Any], *arguments: object) -> Any:
    """Run a task of a fit with a block; an error names the block."""
    title = f"block {block.key[1]} (rows {block.first} to {block.first + block.n_rows - 1})"
    return with_title(title, task, block, *arguments)


@dataclass(frozen=True, kw_only=True)
class RowStep(Step):
    """Changes of the rows, an update by a rule, and the statistics and sums to return then.

    `others` holds for other factors whether their curvature is needed, `asks` are functions whose
    values of the blocks add up.
    """

    rule: Solver | None = None
    others: Mapping[str, bool] = field(default_factory=dict)
    ahead: tuple[float, bool] | None = None
    asks: tuple[Callable[[Sequence[Relation], Factors], Any], ...] = ()

    def recover(self, block: Block, others: Factors) -> Rows:
        """Solve for the rows: their problem is convex."""
        size = np.sqrt(block.relations[0].term.mean() / block.rank)
        S = padded(np.full((block.n_rows, block.rank), size), next(iter(others.values())).dtype)
        block.restrict(S)
        rows = Rows(S)
        problem = block.problem(rows, others)
        for _ in range(UPDATES_OF_LOST_ROWS):
            problem.update_rows(self.rule or "auto")
        return rows

    def run(self, block: Block, rows: Rows, others: Factors) -> BlockStatistics:
        moves = rows.number < self.number
        if moves:
            for change in self.changes:
                change(rows)
        problem = block.problem(rows, others)
        where = self.ahead and (rows.earlier(), *self.ahead)
        if moves:
            if self.rule is not None:
                rows.forget_ahead()
                problem.update_rows(self.rule, where and Momentum(*where))
                rows.sums = {}
                if all(relation.term.loss.quadratic for relation in block.relations):
                    below, constant = problem.squares()
                    rows.sums = {"product": problem.product(), "below": below, "constant": constant}
            rows.number = self.number
        # Those of the update alone: rows that were recovered have none, whatever others have.
        sums = dict(rows.sums) if self.rule is not None else {}
        sums |= {asked.__name__: asked(block.relations, problem.factors) for asked in self.asks}
        sums["penalties"] = value_of(block.penalties, problem.factors)
        largest = rows.S.max(axis=0, initial=0.0)
        ahead = where and _MomentumOfRows(*where, rows)
        statistics = problem.row_statistics(self.others, ahead) if self.others else {}
        factors = {  # without what only these rows need
            name: Statistics(each.sums, [part._replace(G=part.G[:0]) for part in each.parts])
            for name, each in statistics.items()
        }
        return BlockStatistics(sums, factors, largest)


@dataclass(frozen=True)
class _MomentumOfRows(Momentum):
    """Where all rows of a block move, which the next step may take."""

    rows: Rows

    def of(self, F: Array, threads: int) -> Array:
        return self.rows.ahead_by(self.step, self.positive, threads)


def losses(relations: Sequence[Relation], factors: Factors) -> Array:
    """Return the value of each relation, without what no component can reach."""
    return np.array([value([each], factors) - unreached([each], factors) for each in relations])


def squares(relations: Sequence[Relation], factors: Factors) -> float:
    """Return the sum of the squares of S."""
    return float(np.square(factors["S"], dtype=np.float64).sum())


def copy_rows(block: Block, rows: Rows) -> Array:
    """Return the rows of S, or their expectations, (rows, r)."""
    S = rows.S if rows.posterior is None else rows.posterior.E
    return np.array(S[:, : block.rank])


def square_rows(block: Block, rows: Rows, floor: float) -> Array:
    """Return the squares of the rows of S, at least a number where S may be positive."""
    S: Array = np.maximum(rows.S[:, : block.rank].astype(np.float64) ** 2, floor)
    return S if block.support is None else S * mask_of(block.support, block.rank)


def totals(block: Block) -> BlockStatistics:
    """Return sums over the entries of X and Y, over their weights, and over the support of S.

    "gaps" count blocks with missing entries, "data" those whose loss has sums entry by entry.
    """
    sums = {
        "support": float(block.places),
        "data": float(any(r.term.data for r in block.relations)),
    }
    for name, relation in zip("XY", block.relations, strict=False):
        term = relation.term
        sums[name] = term.entries.total()
        sums[f"{name} weights"] = term.form.total(term.shape)
        sums[f"{name} gaps"] = float(not term.form.separable)
    return BlockStatistics(sums)


def relations_without_rows(block: Block) -> list[Relation]:
    return [replace(r, term=r.term.part(slice(0, 0))) for r in block.relations]
