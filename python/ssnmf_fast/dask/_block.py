"""A block of rows on a worker: its data as terms, and its rows of S, which stay there.

Tasks of a fit are numbered.  A task that runs again, since its result was lost with another worker,
finds the rows as it left them and only says once more what they say.  Where the rows themselves
were lost, they are the solution of a convex problem given the other factors, and are solved for.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._backend.dispatch import kernels, padded, padded_zeros
from .._common.arrays import Array
from .._solver.blocks import problem_of
from .._solver.problem import Ahead, Problem, Solver
from .._solver.relations import Relation, Statistics, unreached, value
from ._rows import Keeper, Rows, keep, kept, own

UPDATES_OF_LOST_ROWS = 100
_KINDS = (ValueError, TypeError, MemoryError, FileNotFoundError)  # of errors, which stay


class Change(NamedTuple):
    """What happens to the rows before their update.

    "extrapolate" by a step, "restore" what they were, "shift" them by powers of two, or "scale"
    them by the step.
    """

    kind: str
    step: float = 0.0
    positive: bool = False
    exponents: Any = None


class Start(NamedTuple):
    """Rows drawn from a generator that is moved on to this block: uniform from 0 to `scale`."""

    state: Any
    offset: int
    scale: float


@dataclass(frozen=True)
class Order:
    """What a task does: changes, an update by a rule, and what is to be said then."""

    fit: str
    number: int
    names: tuple[str, ...]  # of the factors that come with it
    changes: tuple[Change, ...] = ()
    rule: Solver | None = None
    others: Mapping[str, bool] = field(default_factory=dict)
    ahead: tuple[float, bool] | None = None
    asks: tuple[str, ...] = ()  # for "value", "unreached" or "sums"


@dataclass
class Said:
    """What rows say of the factors; that of more rows is the sum.

    `sums` are numbers by name, or arrays; `largest` are the largest entries of the components.
    """

    statistics: dict[str, Statistics]
    sums: dict[str, Any]
    largest: Array

    @property
    def n_bytes(self) -> int:
        """Size of the statistics and sums."""
        pairs = [pair for each in self.statistics.values() for pair in each.sums.values()]
        groups = [*pairs, self.sums.values()]
        return sum(np.asarray(part).nbytes for group in groups for part in group)

    def plus(self, other: Said) -> Said:
        """Return what both say; neither is changed, since a task may run twice."""
        statistics = {name: each.copied() for name, each in self.statistics.items()}
        for name, each in statistics.items():
            each.add(other.statistics[name])
        sums = {name: number + other.sums[name] for name, number in self.sums.items()}
        return Said(statistics, sums, np.maximum(self.largest, other.largest))


def plus(first: Said, second: Said) -> Said:
    """Return what two blocks say together."""
    return first.plus(second)


class Whole:
    """Something whose arrays are sent in one piece, between workers.

    Arrays that are sent by themselves are cut out of a message, where they may be misaligned.
    """

    def __reduce__(self) -> Any:
        return _restored, (type(self), pickle.dumps(vars(self), protocol=5))


def _restored(kind: type, contents: bytes) -> Any:
    result: Any = object.__new__(kind)
    vars(result).update(pickle.loads(contents))
    return result


@dataclass
class Block(Whole):
    """Rows of the data as a fit sees them."""

    number: int
    first: int  # of its rows, counted in all data
    relations: list[Relation]
    support: Array | None  # of S, padded
    rank: int
    dtype: Any
    start: Array | None = None  # rows that were given
    most_face_steps: int | None = None

    @property
    def n_rows(self) -> int:
        return self.relations[0].term.shape[0]

    @property
    def keeps_P(self) -> bool:
        return all(r.term.loss.quadratic for r in self.relations)

    @property
    def title(self) -> str:
        return f"block {self.number} (rows {self.first} to {self.first + self.n_rows - 1})"


def titled(title: str, task: Any, *arguments: Any) -> Any:
    """Run a task; an error names the block."""
    try:
        return task(*arguments)
    except Exception as error:
        kind = type(error) if type(error) in _KINDS else RuntimeError
        raise kind(f"{title}: {error}") from error


def keeper(block: Block, fit: str) -> Keeper:
    """Return the keeper of the rows of a block."""
    return Keeper(fit, block.number)


def guarded(block: Block, keeper: Keeper, task: Any, *arguments: Any) -> Any:
    """Run a task of a fit with a block; an error names the block."""
    return titled(block.title, task, block, keeper.fit, *arguments)


def begin(block: Block, fit: str, start: Start | Array | None) -> Said:
    """Set the rows of a block to their start, drawn or given.

    Return the sums of their columns, and what they were without the support.
    """
    S = padded_zeros(block.n_rows, block.rank, block.dtype)
    if block.start is not None:
        S[:, : block.rank] = block.start
    elif isinstance(start, Start):
        rng = np.random.Generator(moved_on(start.state, start.offset))
        S[:, : block.rank] = start.scale * rng.random((block.n_rows, block.rank))
    else:
        S[:, : block.rank] = start
    unbound = S.sum(axis=0, dtype=np.float64)
    if block.support is not None:
        S *= block.support
    keep(fit, block.number, Rows(S, S.copy()))
    sums = {"columns": S.sum(axis=0, dtype=np.float64), "unbound": unbound}
    return Said({}, sums, S.max(axis=0, initial=0.0))


def moved_on(state: Any, draws: int) -> np.random.PCG64:
    """Return the bits of a generator after a number of draws."""
    bits = np.random.PCG64()
    bits.state = state
    return bits.advance(draws)


def work(block: Block, fit: str, order: Order, *factors: Array) -> Said:
    """Do what an order says with the rows of a block."""
    others = dict(zip(order.names, (own(F) for F in factors), strict=True))
    changes = bool(order.changes) or order.rule is not None
    rows = kept(fit, block.number)
    if rows is None or rows.number < order.number - changes:  # lost, or moved before an order
        rows = _found_again(block, others, order.rule or "auto")
        rows.number = order.number - changes
        keep(fit, block.number, rows)
        order = replace(order, changes=())
    with rows.lock:
        return _worked(block, rows, order, others)


def _worked(block: Block, rows: Rows, order: Order, others: Mapping[str, Array]) -> Said:
    problem = _problem(block, rows, others)
    ahead = None if order.ahead is None else Ahead(rows.before, *order.ahead)
    if rows.number < order.number:
        for change in order.changes:
            _apply(change, rows)
        if order.rule is not None:
            problem.update_rows(order.rule, ahead)
            rows.sums = _objective_sums(problem, block)
        rows.number = order.number
    # Those of the update alone: rows that were found again have none, whatever others have.
    sums = dict(rows.sums) if order.rule is not None else {}
    if "value" in order.asks:
        sums["value"] = value(block.relations, problem.factors)
    if "unreached" in order.asks:
        sums["unreached"] = unreached(block.relations, problem.factors)
    for position, relation in enumerate(block.relations):
        if "losses" in order.asks:
            each = value([relation], problem.factors) - unreached([relation], problem.factors)
            sums[f"loss {position}"] = each
    largest = rows.S.max(axis=0, initial=0.0)
    statistics = problem.says(order.others, ahead) if order.others else {}
    return Said({name: _sent(each) for name, each in statistics.items()}, sums, largest)


def _objective_sums(problem: Problem, block: Block) -> dict[str, Any]:
    if not block.keeps_P:
        return {}
    below, constant = problem.squares()
    return {"product": problem.product(), "below": below, "constant": constant}


def _problem(block: Block, rows: Rows, others: Mapping[str, Array]) -> Problem:
    support = {} if block.support is None else {"S": block.support}
    options: dict[str, Any] = {}
    if block.most_face_steps is not None:
        options["most_face_steps"] = block.most_face_steps
    factors = {"S": rows.S, **others}
    options |= {"workspaces": rows.workspaces, "whole": False}
    return problem_of(factors, block.relations, support, **options)


def _apply(change: Change, rows: Rows) -> None:
    if change.kind == "extrapolate":
        kernels.extrapolate(rows.S, rows.before, change.step, change.positive, 1)
    elif change.kind == "restore":
        np.copyto(rows.S, rows.before)
    elif change.kind == "scale":
        rows.S *= rows.S.dtype.type(change.step)
        np.copyto(rows.before, rows.S)
    else:
        for F in (rows.S, rows.before):
            np.ldexp(F, change.exponents, out=F)


def _sent(statistics: Statistics) -> Statistics:
    """Return statistics without what only these rows need."""
    parts = [part._replace(G=part.G[:0]) for part in statistics.parts]
    return Statistics(statistics.sums, parts)


def _found_again(block: Block, others: Mapping[str, Array], rule: Solver) -> Rows:
    """Solve for rows that were lost with a worker: their problem is convex."""
    size = np.sqrt(block.relations[0].term.mean() / block.rank)
    S = padded(np.full((block.n_rows, block.rank), size), next(iter(others.values())).dtype)
    if block.support is not None:
        S *= block.support
    rows = Rows(S, S)
    problem = _problem(block, rows, others)
    for _ in range(UPDATES_OF_LOST_ROWS):
        problem.update_rows(rule)
    rows.before = S.copy()
    return rows


def taken(block: Block, fit: str, names: tuple[str, ...], *factors: Array) -> Array:
    """Return the rows of S, (rows, r)."""
    return np.array(_whatever(block, fit, names, factors).S[:, : block.rank])


def _whatever(block: Block, fit: str, names: tuple[str, ...], factors: tuple[Array, ...]) -> Rows:
    """Return the rows that are kept, or found again."""
    rows: Rows | None = kept(fit, block.number)
    if rows is None:
        rows = _found_again(block, dict(zip(names, map(own, factors), strict=True)), "auto")
        keep(fit, block.number, rows)
    return rows


def sum_of_squares(block: Block, fit: str, names: tuple[str, ...], *factors: Array) -> Said:
    """Return the sum of the squares of the rows of S."""
    S = _whatever(block, fit, names, factors).S
    return Said({}, {"squares": float(np.square(S, dtype=np.float64).sum())}, S[:0].sum(axis=0))


def squares(block: Block, fit: str, names: tuple[str, ...], floor: float, *factors: Array) -> Array:
    """Return the squares of the rows of S, but no less than a number where S may be positive."""
    rows = _whatever(block, fit, names, factors).S[:, : block.rank]
    S: Array = np.maximum(rows.astype(np.float64) ** 2, floor)
    return S if block.support is None else S * block.support[:, : block.rank]
