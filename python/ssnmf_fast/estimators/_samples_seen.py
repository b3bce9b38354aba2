"""What a classifier sees of its samples: in memory, complete, with a graph of neighbors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._data.csr_file import CsrFile, row_counts
from .._solver.weights import as_weights
from ._class_topics import LabeledSamples
from ._context import context_of, directions_of, filled
from ._neighbors import EXACT, Graph, why_missing

_MOST_COMPLETED = 1 << 26  # entries of a matrix in which missing ones are filled in
_BYTES_PER_ENTRY = 64  # of samples on disk, in memory: the entry, a unit row, and copies


def with_context(samples: LabeledSamples) -> LabeledSamples:
    """Return the same with what classifiers see beside topics, as far as there is such."""
    threads, X = samples.options["n_threads"], _completed(samples)
    directions = directions_of(X, None, samples.seed, threads, samples.sample_weight)
    if directions is None:
        return samples
    context, graph = context_of(X, directions), None
    if context and not samples.labels.several and not why_missing(len(context.scores)):
        graph = Graph.of(context.scores, threads)
    return replace(samples, context=context, graph=graph)


def _completed(samples: LabeledSamples) -> Any:
    """Return X, in memory, with a low rank in place of what is missing; None if too large."""
    X, X_weights, absent = samples.X, samples.X_weights, None
    if isinstance(X, CsrFile):
        return None
    if X_weights is not None:
        find = as_weights(X_weights, "X_weights").absent(X.shape)
        if math.prod(X.shape) > _MOST_COMPLETED and not sp.issparse(find(slice(0, 1))):
            return None
        absent = find(slice(None))
    elif sp.issparse(X) or not np.isnan(X).any():
        return X
    k = samples.labels.members.shape[1]
    fit = samples.for_trials().factorize(n_components=k, random_state=samples.seed)
    return filled(X, fit.S, fit.A, absent)


def in_memory(samples: LabeledSamples) -> LabeledSamples:
    """Return samples with a weight; of those on disk a part in memory: labeled ones, and others."""
    X, known, weight = samples.X, samples.labels.known, samples.sample_weight
    if weight is not None and not weight.all():
        return replace(samples.part(weight > 0), whole=(samples, weight > 0))
    if not isinstance(X, CsrFile) or isinstance(samples.init, (tuple, list)):
        return samples
    rng = np.random.default_rng(samples.seed)
    groups = (np.flatnonzero(known), np.flatnonzero(~known))
    order = np.concatenate([rng.permutation(group) for group in groups])[:EXACT]
    most = max(1, X.memory // _BYTES_PER_ENTRY)
    rows = np.zeros(len(known), dtype=bool)
    rows[order[np.cumsum(row_counts(X)[order]) <= most]] = True
    if not samples.labels.part(rows).counts.all():  # memory for a few samples
        return samples
    return replace(samples.part(rows), whole=(samples, rows))
