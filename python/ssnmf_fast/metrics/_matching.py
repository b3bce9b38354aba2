"""Topics matched with true topics by weighted Jaccard similarity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array
from .._data.border import check_option, check_real
from ._matrices import (
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
    S: Any, truth: Any, *, normalize: Normalization = "rows", unlabeled: Any = "auto"
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
    S: Any,
    truth: Any,
    *,
    normalize: Normalization = "rows",
    threshold: float = 0.1,
    unlabeled: Any = "auto",
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


def _similarities(S: Any, truth: Any, normalize: Any, unlabeled: Any) -> tuple[Array, Array]:
    scale = _NORMALIZATIONS[check_option(normalize, "normalize", tuple(_NORMALIZATIONS))]
    representation = read_matrix(S, "S", "samples", "topics")
    members = read_memberships(truth, representation.shape[0], unlabeled)
    found, true = scale(members.of(representation)), scale(members.matrix)
    shared = _shared(found, true.tocsc())
    # max(u, v) = u + v - min(u, v); rounding must not lift a similarity above 1.
    either = column_sums(found)[:, None] + column_sums(true)[None, :] - shared
    either = np.maximum(either, shared)
    similarity = np.divide(shared, either, out=np.zeros_like(shared), where=either > 0)
    return similarity, members.classes


def _shared(found: Any, true: Any) -> Array:
    """Sums of min(u, v), (r, k): only samples where v is not zero have a part."""
    shared = np.zeros((found.shape[1], true.shape[1]))
    for topic, (begin, end) in enumerate(zip(true.indptr[:-1], true.indptr[1:], strict=True)):
        weights = true.data[begin:end, None]
        done = 0
        for rows, block in row_blocks(found, true.indices[begin:end]):
            part = weights[done : done + len(rows)]
            shared[:, topic] += np.minimum(block, part).sum(axis=0)
            done += len(rows)
    return shared
