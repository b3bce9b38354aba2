"""A block of rows on a worker: its data as terms, and its rows of S, which stay there."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded, padded_zeros
from .._common.arrays import Array, bits_of, mask_of
from .._data.border import CleanMatrix, check_data, check_factor, check_matrix, check_support
from .._data.csr_file import CsrFile
from .._solver import starts, terms
from .._solver.build import build_term, sparse_labels
from .._solver.known import Known
from .._solver.losses import FROBENIUS
from .._solver.penalties import Penalties, value_of
from .._solver.problem import Ahead, Problem, problem_of
from .._solver.relations import Relation, Solver, Statistics, unreached, value
from .._solver.terms import Loss
from ._rows import BlockStatistics, OnePickle, Order, Rows, kept

UPDATES_OF_LOST_ROWS = 100


@dataclass
class Block(OnePickle):
    """Rows of the data as a fit sees them.

    Where Dask moves a block, the rows of S that are kept for it go with it.
    """

    key: tuple[str, int]  # the name of the fit, and the number of the block
    first: int  # of its rows, counted in all data
    relations: list[Relation]
    support: Array | None  # of S, padded, as bits: where it moves
    places: int  # where S may be positive, by its support as it was given
    rank: int
    dtype: Any
    start: Array | None  # rows that were given
    fixed: Array | None = None  # the last components of S, which are given
    # Those of S; other factors that have some are here by their names.
    penalties: Mapping[str, Penalties] = field(default_factory=dict)
    elsewhere: tuple[bool, ...] = ()  # see `Rules`

    @property
    def n_rows(self) -> int:
        return self.relations[0].term.shape[0]

    @property
    def title(self) -> str:
        return f"block {self.key[1]} (rows {self.first} to {self.first + self.n_rows - 1})"

    def __reduce__(self) -> Any:
        rows, reduced = kept.get(self.key), super().__reduce__()
        if rows is None:
            return reduced
        with rows.lock:
            return _restore_with_rows, (*reduced, pickle.dumps(rows, protocol=5))

    def problem(self, rows: Rows, others: Mapping[str, Array]) -> Problem:
        """Return the problem of the rows, which the other factors come to."""
        support = {} if self.support is None else {"S": self.support}
        factors = {"S": rows.S, **others}
        given = self.relations, support, rows.workspaces, False, self.penalties, self.elsewhere
        return problem_of(factors, *given)

    def as_known(self, S: Array) -> None:
        """Set to 0 what is not in the support, and the components that are given."""
        if self.support is not None:
            S *= mask_of(self.support, S.shape[1])
        if self.fixed is not None:
            S[:, self.rank - self.fixed.shape[1] : self.rank] = self.fixed


def _restore_with_rows(restore: Callable[..., Block], given: Any, contents: bytes) -> Block:
    block, rows = restore(*given), pickle.loads(contents)
    if block.key not in kept or kept[block.key].number < rows.number:
        kept[block.key] = rows
    return block


class Draw(NamedTuple):
    """Rows drawn from a generator in this state: uniform from 0 to `scale`."""

    state: Any
    scale: float


def begin(block: Block, start: Draw | Array | None) -> BlockStatistics:
    """Set rows to their start; return sums of columns, and what they were without the support."""
    S = padded_zeros(block.n_rows, block.rank, block.dtype)
    if block.start is not None:
        S[:, : block.rank] = block.start
    elif isinstance(start, Draw):
        bits = np.random.PCG64()
        bits.state = start.state
        drawn = np.random.Generator(bits).random((block.n_rows, block.rank))
        S[:, : block.rank] = start.scale * drawn
    else:
        S[:, : block.rank] = start
    sums = {"unbound": S.sum(axis=0, dtype=np.float64)[: block.rank]}
    block.as_known(S)
    sums["columns"] = S.sum(axis=0, dtype=np.float64)[: block.rank]
    kept[block.key] = Rows(S)
    return BlockStatistics(sums)


@dataclass(frozen=True, kw_only=True)
class RowOrder(Order):
    """Changes of the rows, an update by a rule, and the statistics and sums to return then.

    `others` tells of other factors whether their curvature is asked for, `asks` are functions whose
    values of the blocks add up.
    """

    rule: Solver | None = None
    others: Mapping[str, bool] = field(default_factory=dict)
    ahead: tuple[float, bool] | None = None
    asks: tuple[Callable[[Sequence[Relation], Mapping[str, Array]], Any], ...] = ()

    def find_again(self, block: Block, others: Mapping[str, Array]) -> Rows:
        """Solve for the rows: their problem is convex."""
        size = np.sqrt(block.relations[0].term.mean() / block.rank)
        S = padded(np.full((block.n_rows, block.rank), size), next(iter(others.values())).dtype)
        block.as_known(S)
        rows = Rows(S)
        problem = block.problem(rows, others)
        for _ in range(UPDATES_OF_LOST_ROWS):
            problem.update_rows(self.rule or "auto")
        return rows

    def obey(self, block: Block, rows: Rows, others: Mapping[str, Array]) -> BlockStatistics:
        moves = rows.number < self.number
        if moves:
            for change in self.changes:
                change(rows)
        problem = block.problem(rows, others)
        given = self.ahead and (rows.earlier(), *self.ahead)
        if moves:
            if self.rule is not None:
                rows.forget_ahead()
                problem.update_rows(self.rule, given and Ahead(*given))
                rows.sums = _objective_sums(problem)
            rows.number = self.number
        # Those of the update alone: rows that were found again have none, whatever others have.
        sums = dict(rows.sums) if self.rule is not None else {}
        sums |= {what.__name__: what(block.relations, problem.factors) for what in self.asks}
        sums["penalties"] = value_of(block.penalties, problem.factors)
        largest = rows.S.max(axis=0, initial=0.0)
        ahead = given and _RowsAhead(*given, rows)
        found = problem.row_statistics(self.others, ahead) if self.others else {}
        factors = {name: _without_rows(each) for name, each in found.items()}
        return BlockStatistics(sums, factors, largest)


@dataclass(frozen=True)
class _RowsAhead(Ahead):
    """Where all rows of a block move, which the next order may let them do."""

    rows: Rows

    def of(self, F: Array, threads: int) -> Array:
        return self.rows.ahead_by(self.step, self.positive, threads)


def losses(relations: Sequence[Relation], factors: Mapping[str, Array]) -> Array:
    """Return the value of each relation, but for what no component can reach."""
    return np.array([value([each], factors) - unreached([each], factors) for each in relations])


def squares(relations: Sequence[Relation], factors: Mapping[str, Array]) -> float:
    """Return the sum of the squares of S."""
    return float(np.square(factors["S"], dtype=np.float64).sum())


def _objective_sums(problem: Problem) -> dict[str, Any]:
    """Return what the objective of quadratic losses follows from."""
    if not all(relation.term.loss.quadratic for relation in problem.relations):
        return {}
    below, constant = problem.squares()
    return {"product": problem.product(), "below": below, "constant": constant}


def _without_rows(statistics: Statistics) -> Statistics:
    """Return statistics without what only these rows need."""
    parts = [part._replace(G=part.G[:0]) for part in statistics.parts]
    return Statistics(statistics.sums, parts)


def copy_of_rows(block: Block, rows: Rows) -> Array:
    """Return the rows of S, or their expectations, (rows, r)."""
    S = rows.S if rows.posterior is None else rows.posterior.E
    return np.array(S[:, : block.rank])


def squares_of_rows(block: Block, rows: Rows, floor: float) -> Array:
    """Return the squares of the rows of S, but no less than a number where S may be positive."""
    S: Array = np.maximum(rows.S[:, : block.rank].astype(np.float64) ** 2, floor)
    return S if block.support is None else S * mask_of(block.support, block.rank)


@dataclass(frozen=True)
class BlockInput(OnePickle):
    """What a user gave for a block of rows."""

    X: Any
    Y: Any = None
    X_weights: Any = None
    Y_weights: Any = None
    support: Any = None
    S: Any = None
    covariates: Any = None


@dataclass(frozen=True)
class BlockInfo:
    """What the caller needs to know of a block, or of all."""

    n_columns: int
    n_labels: int | None
    dtype: Any
    on_disk: bool
    nonzeros: tuple[int, int]  # of X and Y
    n_fixed: int  # columns of S that are given


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
    elsewhere: tuple[bool, ...] = ()  # of labels of features, see `Rules`


def check(
    X: Any,
    Y: Any,
    X_weights: Any,
    Y_weights: Any,
    support: Any,
    S: Any,
    covariates: Any,
    threads: int,
    dtype: Any = None,
) -> BlockInput:
    """Return what was given for a block, checked and converted."""
    if isinstance(X, BlockInput):
        X = CleanMatrix(X.X)
    elif not isinstance(X, CsrFile):
        X = as_matrix(X)
    X = check_data(X, threads, dtype)
    if Y is not None:
        Y = check_matrix(as_matrix(Y), "Y", dtype=X.dtype, ordinary=True)
        if Y.shape[0] != X.shape[0]:
            raise ValueError(
                f"Y must have the rows of X; got {Y.shape[0]} rows, and X has {X.shape[0]}."
            )
        Y = sparse_labels(Y)
    weights = weights_of(X_weights), weights_of(Y_weights)
    return BlockInput(X, Y, *weights, support, S, covariates)


def weights_of(given: Any) -> Any:
    """Return the weights of a block from all but what has its rows, and from that."""
    if given is None:
        return None
    weights, part = given
    return weights if part is None else weights.with_part(as_matrix(part))


def as_matrix(Z: Any) -> Any:
    """Return a chunk of pydata/sparse as a SciPy matrix; arrays from the network are copied."""
    if hasattr(Z, "to_scipy_sparse"):
        return sp.csr_array(Z.to_scipy_sparse())
    if isinstance(Z, np.ndarray) and not Z.flags.aligned:
        return Z.copy()
    return Z


def info(given: BlockInput) -> BlockInfo:
    """Return what the caller needs to know."""
    X, Y = given.X, given.Y
    on_disk = isinstance(X, CsrFile)
    n_labels = None if Y is None else Y.shape[1]
    counts = X.nnz if on_disk else _nonzeros(X), 0 if Y is None else _nonzeros(Y)
    n_fixed = 0 if given.covariates is None else np.shape(as_matrix(given.covariates))[-1]
    return BlockInfo(X.shape[1], n_labels, X.dtype, on_disk, counts, n_fixed)


def _nonzeros(Z: Any) -> int:
    return int(np.count_nonzero(Z.data if sp.issparse(Z) else Z))


def build(given: BlockInput, key: tuple[str, int], first: int, plan: Plan) -> Block:
    """Return the block of a fit; `first` is its first row, counted in all data."""
    X, dtype = given.X, given.X.dtype
    n = X.shape[0]
    if plan.of_roots:
        X = starts.roots(X)
    loss = FROBENIUS if plan.of_roots else plan.losses[0]
    data = build_term(X, given.X_weights, loss, "X", plan.threads)
    relations = [Relation(("S", "A"), replace(data, row_lengths=plan.lengths[0]))]
    if given.Y is not None and not plan.of_roots:
        labels = build_term(given.Y, given.Y_weights, plan.losses[1], "Y", plan.threads)
        labels = replace(labels, row_lengths=plan.lengths[1])
        relations.append(Relation(("S", "B"), labels, plan.weight))
    support, S = given.support, given.S
    if support is not None:
        support = check_support(as_matrix(support), "S_support", (n, plan.rank), dtype)
    places = n * plan.rank if support is None else int(support.sum())
    if S is not None:
        S = check_factor(S, "init[0] (S)", (n, plan.rank), dtype, "samples x components")
        if not S.all():  # zeros of a given start stay
            support = S > 0 if support is None else support & (S > 0)
    fixed = None
    if given.covariates is not None:
        known = Known.of(X.shape, plan.rank, dtype, covariates=as_matrix(given.covariates))
        _, fixed = known.fixed["S"]
        support = np.ones((n, plan.rank), bool) if support is None else support
        support[:, plan.rank - fixed.shape[1] :] = False
        fixed = np.sqrt(fixed) if plan.of_roots else fixed
    stored = None if support is None else bits_of(padded(support, dtype) > 0)
    further = plan.penalties, plan.elsewhere
    return Block(key, first, relations, stored, places, plan.rank, dtype, S, fixed, *further)


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
    """Return the relations without a row of data."""
    return [replace(r, term=r.term.part(slice(0, 0))) for r in block.relations]


def rows_of(given: BlockInput, rows: Array) -> Array:
    """Return some rows of X as a dense array, with 0 for NaN."""
    found = starts.rows_of(given.X, rows)
    return np.asarray(found.toarray() if sp.issparse(found) else found)
