"""From what a user gives to the blocks of a fit, on the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array, bits_of
from .._data.border import CleanMatrix, check_factor, check_matrix, check_support
from .._data.csr_file import CsrFile, check_data
from .._solver import starts, terms
from .._solver.build import sparse_labels
from .._solver.known import Known
from .._solver.losses import FROBENIUS, Loss
from .._solver.penalties import Penalties
from .._solver.relations import Relation
from .._solver.units import exponent_of
from .._solver.weights import build_term
from ._block import Block
from ._rows import BlockStatistics, OnePickle


@dataclass(frozen=True)
class BlockInput(OnePickle):
    """What a user gave for a block of rows."""

    X: Any
    Y: Any = None
    X_weights: Any = None
    Y_weights: Any = None
    support: Any = None
    S: Any = None
    S_fixed: Any = None


@dataclass(frozen=True)
class BlockInfo:
    """What the caller needs to know of a block, or of all."""

    n_columns: int
    n_labels: int | None
    dtype: Any
    on_disk: bool
    nonzeros: tuple[int, int]  # of X and Y
    ordinary: bool  # whether the entries are of ordinary size
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
    S_fixed: Any,
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
        Y = check_matrix(as_matrix(Y), "Y", dtype=X.dtype)
        if Y.shape[0] != X.shape[0]:
            raise ValueError(
                f"Y must have the rows of X; got {Y.shape[0]} rows, and X has {X.shape[0]}."
            )
        Y = sparse_labels(Y)
    weights = weights_of(X_weights), weights_of(Y_weights)
    return BlockInput(X, Y, *weights, support, S, S_fixed)


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
    ordinary = exponent_of(X, "X") == 0 and (Y is None or exponent_of(Y, "Y") == 0)
    n_labels = None if Y is None else Y.shape[1]
    counts = X.nnz if on_disk else _nonzeros(X), 0 if Y is None else _nonzeros(Y)
    n_fixed = 0 if given.S_fixed is None else np.shape(as_matrix(given.S_fixed))[-1]
    return BlockInfo(X.shape[1], n_labels, X.dtype, on_disk, counts, ordinary, n_fixed)


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
    if given.S_fixed is not None:
        known = Known.of(X.shape, plan.rank, dtype, S_fixed=as_matrix(given.S_fixed))
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
