"""Clustering score of the SSNMF paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.border import check_option
from ._matrices import column_sums, read_matrix, read_memberships, row_blocks, row_shares


@dataclass(frozen=True, eq=False)
class ClusteringScore:
    """Result of :func:`clustering_score`.

    Attributes
    ----------
    score : float
        Mean over the topics, from 0 to 1.
    per_topic : ndarray of float64, shape (r,)
        Score of every topic.
    classes : ndarray, shape (r,)
        The true class that each topic matches best: a label, or a column of memberships.  Of
        equally good classes it is the first, also if the score is 0.
    """

    score: float
    per_topic: Array
    classes: Array


def clustering_score(
    S: Any,
    truth: Any,
    *,
    assignment: Literal["hard", "soft"] = "hard",
    unlabeled: Any = "auto",
) -> ClusteringScore:
    r"""Score how much of a true class each topic holds.

    The score P of [1]_, its section on clustering analysis: topic l, with shares :math:`\hat S_l`
    of the samples, scores :math:`\max_i \|\hat S_l \odot M_i\|_1 / \|M_i\|_1` over the true classes
    i with members :math:`M_i`.

    Parameters
    ----------
    S : array_like or sparse, shape (n, r)
        Representation, at least 0.
    truth : array_like, shape (n,), or array_like or sparse, shape (n, k)
        True class of every sample (text or integers), or memberships M, at least 0, with one
        column for each of two or more classes.
    assignment : {"hard", "soft"}
        "hard": a sample belongs only to its largest topic, the first of equal ones.  "soft": it
        belongs to all topics by its shares, the row of S divided by its sum.  A sample whose row is
        zero belongs to no topic, and still counts as a member of its class.
    unlabeled : "auto", None or a label
        What marks an unlabeled sample in a vector of labels, besides None and NaN, which always
        do.  "auto" takes -1, unless the labels are exactly -1 and 1: then both are classes, with a
        warning.  Give -1 to have -1 always mean unlabeled, None for no marker.  Unlabeled samples
        are left out.

    Returns
    -------
    ClusteringScore
        `score`, and for every topic `per_topic` and `classes`.

    Raises
    ------
    TypeError
        If values are not numbers, or labels are of mixed kinds.
    ValueError
        If shapes do not match, entries are negative or missing, no sample is labeled, or the
        assignment is unknown.

    Notes
    -----
    One class may be the best for several topics.  A class without members scores 0.  With hard
    assignment, a single topic that contains every sample scores 1 and the others 0; the mean is
    highest if each topic holds one class.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> S = [[3.0, 1.0], [2.0, 0.0], [0.0, 1.0], [3.0, 1.0]]
    >>> result = sf.metrics.clustering_score(S, ["car", "car", "sea", "sea"])
    >>> result.per_topic.tolist(), result.classes.tolist(), result.score
    ([1.0, 0.5], ['car', 'sea'], 0.75)
    >>> sf.metrics.clustering_score(S, ["car", "car", "sea", "sea"], assignment="soft").score
    0.75
    """
    check_option(assignment, "assignment", ("hard", "soft"))
    representation = read_matrix(S, "S", "samples", "topics")
    members = read_memberships(truth, representation.shape[0], unlabeled)
    known = members.of(representation)
    shares = _largest_only(known) if assignment == "hard" else row_shares(known)
    overlap = members.matrix.T @ shares
    overlap = overlap.toarray() if sp.issparse(overlap) else overlap
    sizes = column_sums(members.matrix)[:, None]
    scores = np.divide(overlap, sizes, out=np.zeros_like(overlap), where=sizes > 0)
    per_topic = np.minimum(scores.max(axis=0), 1.0)
    return ClusteringScore(
        float(per_topic.mean()), per_topic, members.classes[scores.argmax(axis=0)]
    )


def _largest_only(S: Any) -> sp.csr_array:
    """Return a 1 at the largest entry of every row that is not zero."""
    rows, topics = [], []
    for numbers, block in row_blocks(S):
        used = block.any(axis=1)
        rows.append(numbers[used])
        topics.append(block.argmax(axis=1)[used])
    places = (np.concatenate(rows), np.concatenate(topics))
    return sp.csr_array((np.ones(len(places[0])), places), shape=S.shape)
