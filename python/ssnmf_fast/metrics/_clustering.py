"""Topics matched with true topics by weighted Jaccard similarity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array, MatrixLike
from .._data.border import check_option, check_real
from ._sparsity import (
    column_shares,
    column_sums,
    read_matrix,
    read_memberships,
    row_blocks,
    row_shares,
)

Normalization = Literal["rows", "columns", "none"]

_NORMALIZATIONS: dict[str, Callable[[Any], Any]] = {
    "rows": row_shares,
    "columns": column_shares,
    "none": lambda Z: Z,
}


@dataclass(frozen=True, eq=False)
class TopicMatching:
    """Result of :func:`match_topics`: pairs of a topic and a true class, min(r, k) of them.

    Attributes
    ----------
    topics : ndarray of int, shape (p,)
        Columns of S, ascending.
    classes : ndarray, shape (p,)
        Their true classes: labels, or columns of the true matrix.
    similarities : ndarray of float64, shape (p,)
        Weighted Jaccard similarity of every pair, 0 to 1.
    score : float
        Mean of the similarities.
    n_resolved : int
        Number of pairs whose similarity lies above the threshold.
    """

    topics: Array
    classes: Array
    similarities: Array
    score: float
    n_resolved: int


def jaccard_similarity(
    S: MatrixLike,
    truth: MatrixLike,
    *,
    normalize: Normalization = "rows",
    unlabeled: object = "auto",
) -> Array:
    r"""Return the weighted Jaccard similarity of every topic and every true class.

    :math:`J(u, v) = \sum_i \min(u_i, v_i) / \sum_i \max(u_i, v_i)` of the columns u of S and v of
    the truth ([1]_, equation 14).

    Parameters
    ----------
    S : array_like or sparse, shape (n, r)
        Representation, at least 0.
    truth : array_like, shape (n,), or array_like or sparse, shape (n, k)
        True class of every sample (text or integers), or the true matrix of samples and topics, at
        least 0, with one column for each of two or more topics.
    normalize : {"rows", "columns", "none"}
        Scale of both matrices before they are compared.  "rows": every sample's weights sum to 1.
        "columns": every topic's weights sum to 1.  "none": as given.  Rows and columns of
        zeros stay.
    unlabeled : "auto", None or a label
        As in :func:`clustering_score`.  A row of zeros in a true matrix is not a missing label: it
        means that the sample has none of the topics, and it is included.

    Returns
    -------
    ndarray of float64, shape (r, k)
        Similarities, 0 to 1; the classes are sorted.  Two columns of zeros have similarity 0.

    Raises
    ------
    TypeError, ValueError
        As :func:`clustering_score`, and for an unknown `normalize`.

    Notes
    -----
    The paper compares S with labels of 0 and 1 and does not state how S is scaled.  By default both
    are normalized to a distribution of topics for each sample, as in a topic model, so long and
    short samples have the same weight.  The scale of a factorization's topics is arbitrary; to make
    a topic's weight the amount of data it explains, pass ``S * A.sum(axis=1)``.

    The cost is one minimum for each nonzero entry of the truth and each topic, in blocks of rows.

    References
    ----------
    .. [1] K. MacMillan and J. D. Wilson, "Topic supervised non-negative matrix factorization",
       2017.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> S = [[0.0, 2.0], [0.0, 1.0], [3.0, 1.0]]
    >>> sf.metrics.jaccard_similarity(S, ["sea", "sea", "car"])
    array([[0.75      , 0.        ],
           [0.08333333, 0.88888889]])
    """
    return _similarities(S, truth, normalize, unlabeled)[0]


def match_topics(
    S: MatrixLike,
    truth: MatrixLike,
    *,
    normalize: Normalization = "rows",
    threshold: float = 0.1,
    unlabeled: object = "auto",
) -> TopicMatching:
    """Pair topics and true classes one to one, for the largest sum of Jaccard similarities.

    The evaluation of [1]_, section 4.1: weighted Jaccard similarities (equation 14), matched by the
    Kuhn-Munkres algorithm.  A topic above the threshold is resolved.

    Parameters
    ----------
    S, truth, normalize, unlabeled
        As in :func:`jaccard_similarity`.
    threshold : float, 0 to 1
        Similarity above which a topic is resolved.

    Returns
    -------
    TopicMatching
        The pairs, `similarities`, their mean `score`, and `n_resolved`.

    Raises
    ------
    TypeError, ValueError
        As :func:`jaccard_similarity`, and for a threshold outside of 0 to 1.

    Notes
    -----
    With r topics and k classes there are min(r, k) pairs; the score is the mean over these, so
    that scores of models with different numbers of topics are not comparable unless r = k.

    References
    ----------
    .. [1] K. MacMillan and J. D. Wilson, "Topic supervised non-negative matrix factorization",
       2017.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> S = [[0.0, 2.0], [0.0, 1.0], [3.0, 1.0]]
    >>> matching = sf.metrics.match_topics(S, ["sea", "sea", "car"])
    >>> matching.topics.tolist(), matching.classes.tolist()
    ([0, 1], ['car', 'sea'])
    >>> round(matching.score, 4), matching.n_resolved
    (0.8194, 2)
    """
    limit = check_real(threshold, "threshold")
    if limit > 1:
        raise ValueError(f"threshold must be at most 1, the largest similarity; got {threshold!r}.")
    similarity, classes = _similarities(S, truth, normalize, unlabeled)
    topics, matched = linear_sum_assignment(similarity, maximize=True)
    reached = similarity[topics, matched]
    return TopicMatching(
        topics, classes[matched], reached, float(reached.mean()), int((reached > limit).sum())
    )


def _similarities(
    S: MatrixLike, truth: MatrixLike, normalize: Normalization, unlabeled: object
) -> tuple[Array, Array]:
    scale = _NORMALIZATIONS[check_option(normalize, "normalize", tuple(_NORMALIZATIONS))]
    representation = read_matrix(S, "S", "samples", "topics")
    members = read_memberships(truth, representation.shape[0], unlabeled)
    found, true = scale(members.of(representation)), scale(members.matrix)
    # Sums of min(u, v): only samples where v is not zero have a part.
    shared, by_class = np.zeros((found.shape[1], true.shape[1])), true.tocsc()
    for number, (begin, end) in enumerate(pairwise(by_class.indptr)):
        weights = by_class.data[begin:end, None]
        for rows, block in row_blocks(found, by_class.indices[begin:end]):
            shared[:, number] += np.minimum(block, weights[: len(rows)]).sum(axis=0)
            weights = weights[len(rows) :]
    # max(u, v) = u + v - min(u, v); rounding must not lift a similarity above 1.
    either = column_sums(found)[:, None] + column_sums(true)[None, :] - shared
    either = np.maximum(either, shared)
    similarity = np.divide(shared, either, out=np.zeros_like(shared), where=either > 0)
    return similarity, members.classes


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
    S: MatrixLike,
    truth: MatrixLike,
    *,
    assignment: Literal["hard", "soft"] = "hard",
    unlabeled: object = "auto",
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
    if assignment == "soft":
        shares = row_shares(known)
    else:  # a 1 at the largest entry of every row that is not zero
        rows, topics = [], []
        for numbers, block in row_blocks(known):
            used = block.any(axis=1)
            rows.append(numbers[used])
            topics.append(block.argmax(axis=1)[used])
        places = np.concatenate(rows), np.concatenate(topics)
        shares = sp.csr_array((np.ones(len(places[0])), places), shape=known.shape)
    overlap = members.matrix.T @ shares
    overlap = overlap.toarray() if sp.issparse(overlap) else overlap
    sizes = column_sums(members.matrix)[:, None]
    scores = np.divide(overlap, sizes, out=np.zeros_like(overlap), where=sizes > 0)
    per_topic = np.minimum(scores.max(axis=0), 1.0)
    return ClusteringScore(
        float(per_topic.mean()), per_topic, members.classes[scores.argmax(axis=0)]
    )
