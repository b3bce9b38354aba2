"""How predictions are explained: as sums over topics, features and neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import require_finite
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._topics import names_of, topic_shares
from ._base import product
from ._context import N_DIRECTIONS, Context
from ._explanation import Contributions, Explanation
from ._readout import ComponentReadout, LogisticReadout, Readout, is_empty, prior_logits
from ._side import Tables
from ._side_members import products_of_tables


@one_blas_thread()
def explanation_of(
    model: Any, readout: Readout, X: Any, X_weights: Any, tables: Tables
) -> Explanation:
    """Explain the predictions of a readout for checked samples and their tables."""
    if isinstance(readout, ComponentReadout):
        parts = _of_components(model, readout, X, X_weights)
    else:
        parts = _of_logits(model, readout, X, X_weights, tables)
    sums = parts["_topics"].totals() + parts["_features"].totals()
    totals = parts["intercepts"] + parts["neighbors"] + sums + sum(parts["tables"].values())
    require_finite({"the decision function": totals})
    limits = model._limits(readout)
    best = totals if limits is None else readout.decide(totals, limits)
    A, active = model.components_, getattr(model, "active_components_", None)
    return Explanation(
        classes=model.classes_,
        predicted=model.classes_[best.argmax(axis=1)],
        totals=totals,
        feature_names=names_of(getattr(model, "feature_names_in_", None), A.shape[1]),
        # The terms of a component that explains nothing would be arbitrary.
        _dictionary=A if active is None else np.where(active[:, None], A, 0),
        _topic_names=list(getattr(model, "topic_names_", ())),
        **parts,
    )


def _of_logits(
    model: Any, readout: LogisticReadout, X: Any, X_weights: Any, tables: Tables
) -> dict[str, Any]:
    """Return the parts of calibrated logits."""
    S, A = model._represent(X, X_weights), model.components_
    shares = topic_shares(S, A)
    empty = is_empty(X, shares)
    (n, r), k = shares.shape, len(readout.intercepts)
    slopes, linear = readout.slopes[:, None], readout.linear(r)
    votes, blocks, scales = np.zeros((n, k)), [], np.zeros(n)
    for rows, context in readout.contexts(X, X_weights, S, A):
        if not context:
            continue
        blocks.append(sp.csr_array(context.rows) if _is_sparse(X) else context.rows)
        scales[rows] = _inverse_lengths(context)
        if readout.votes is not None:
            votes[rows] = readout.votes.logits(context.scores, model.n_threads)
    votes[empty] = 0
    intercepts = np.tile(readout.intercepts * readout.slopes + readout.offsets, (n, 1))
    intercepts[empty] = prior_logits(model)

    def relative(scores: Array, axis: int = 0) -> Array:
        return _relative(scores, axis, model.multilabel_)

    of_tables = {}
    if readout.side is not None:
        products = products_of_tables(tables, readout.side)
        of_tables = {name: relative(readout.slopes * each, 1) for name, each in products.items()}
    assert linear.topics is not None
    topics = np.where(empty[:, None], 0, np.sqrt(shares))
    features = _nothing(X, k)
    if linear.rows is not None and linear.scores is not None:
        along = (slopes * linear.scores) @ readout.directions
        seen = _without(_stacked(blocks), empty)
        features = Contributions(seen, relative(slopes * linear.rows), relative(along), scales)
    return {
        "intercepts": relative(intercepts, 1),
        "tables": of_tables,
        "neighbors": relative(readout.votes_weight * votes * readout.slopes, 1),
        "_topics": _plain(topics, relative(slopes * linear.topics)),
        "_features": features,
    }


def _of_components(model: Any, readout: ComponentReadout, X: Any, X_weights: Any) -> dict[str, Any]:
    """Return the parts of scores S B; with one label per sample, of their shares."""
    S, several = model._represent(X, X_weights), model.multilabel_
    scores = product(S, readout.components, "the predictions").astype(np.float64)
    S, B = S.astype(np.float64), readout.components.astype(np.float64)
    n, k = scores.shape
    intercepts = np.zeros((n, k))
    if not several:
        empty = np.logical_not(scores.any(axis=1))
        intercepts[empty] = model.class_prior_
        largest = np.where(empty, 1, scores.max(axis=1))[:, None]  # so that sums are finite
        sums = np.where(empty, 1, (scores / largest).sum(axis=1))[:, None]
        S = np.where(empty[:, None], 0, S / largest / sums)
    return {
        "intercepts": _relative(intercepts, 1, several),
        "neighbors": np.zeros((n, k)),
        "tables": {},
        "_topics": _plain(S, _relative(B.T, 0, several)),
        "_features": _nothing(X, k),
    }


def _relative(scores: Array, axis: int, several: bool) -> Array:
    """Return scores minus their means over the classes, of which a sample has one."""
    return np.asarray(scores if several else scores - scores.mean(axis=axis, keepdims=True))


def _inverse_lengths(context: Context) -> Array:
    """Return what the coordinates in the first directions are multiplied by to have length 1."""
    assert context.coordinates is not None
    lengths = np.linalg.norm(context.coordinates[:, :N_DIRECTIONS], axis=1)
    return np.asarray(np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0))


def _is_sparse(X: Any) -> bool:
    return sp.issparse(X) or isinstance(X, CsrFile)


def _stacked(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    return sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.vstack(blocks)


def _without(rows: Any, empty: Array) -> Any:
    """Return rows with zeros for those of empty samples."""
    if not empty.any():
        return rows
    kept = rows * ~empty[:, None]
    return sp.csr_array(kept) if sp.issparse(rows) else kept


def _plain(columns: Array, coefficients: Array) -> Contributions:
    """Return columns times coefficients."""
    return Contributions(columns, coefficients, np.zeros_like(coefficients), np.zeros(len(columns)))


def _nothing(X: Any, k: int) -> Contributions:
    """Return the contributions of features to a model that sees topics only."""
    n, m = X.shape
    zeros = np.broadcast_to(0.0, (k, m))
    return Contributions(sp.csr_array((n, m)), zeros, zeros, np.zeros(n))
