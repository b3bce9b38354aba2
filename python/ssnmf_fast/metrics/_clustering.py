"""Topics compared with true classes of samples, and scorers for partly labeled samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array, MatrixLike
from .._data.border import check_option, check_real
from .._labels import labels_of
from ._sparsity import complete_docstring, read_truth, row_blocks, shares_along, sums_along

Normalization = Literal["rows", "columns", "none"]
Scorer = Callable[..., float]
_AXES = {"rows": 1, "columns": 0, "none": None}  # along which weights are divided by their sums


@dataclass(frozen=True, eq=False)
class TopicMatching:
    """Result of :func:`match_topics`: min(r, k) pairs of a topic and a true class.

    Attributes
    ----------
    topics : ndarray of int, shape (p,)
        Columns of S, ascending.
    classes : ndarray, shape (p,)
        Their true classes: labels, or columns of the true matrix.
    similarities : ndarray of float64, shape (p,)
        Weighted Jaccard similarity of each pair, 0 to 1.
    score : float
        Mean of the similarities.
    n_resolved : int
        Number of pairs with a similarity above the threshold.
    """

    topics: Array
    classes: Array
    similarities: Array
    score: float
    n_resolved: int


@complete_docstring
def jaccard_similarity(
    S: MatrixLike,
    truth: MatrixLike,
    *,
    normalize: Normalization = "rows",
    unlabeled: object = "auto",
) -> Array:
    r"""Return the weighted Jaccard similarity of each topic and each true class.

    It is :math:`\sum_i \min(u_i, v_i)`, divided by :math:`\sum_i \max(u_i, v_i)`, for the columns u
    of S and v of the truth ([1]_, equation 14).

    Returns
    -------
    ndarray of float64, shape (r, k)
        Similarities, 0 to 1; the classes are sorted.  Two columns of zeros have similarity 0.

    Notes
    -----
    The paper does not state how S is scaled.  By default, each sample has a distribution over
    topics, so that long and short samples have the same weight.  The scale of the topics of a
    factorization is arbitrary: ``S * A.sum(axis=1)`` is the amount of data that a topic explains.

    References
    ----------
    .. [1] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> S = [[0.0, 2.0], [0.0, 1.0], [3.0, 1.0]]
    >>> sf.metrics.jaccard_similarity(S, ["sea", "sea", "car"])
    array([[0.75      , 0.        ],
           [0.08333333, 0.88888889]])
    """
    return _similarities(S, truth, normalize, unlabeled)[0]


@complete_docstring
def match_topics(
    S: MatrixLike,
    truth: MatrixLike,
    *,
    normalize: Normalization = "rows",
    threshold: float = 0.1,
    unlabeled: object = "auto",
) -> TopicMatching:
    """Pair topics and true classes one to one, for the largest sum of Jaccard similarities.

    This is the evaluation of [1]_, section 4.1, by the Kuhn-Munkres algorithm.

    Parameters
    ----------
    threshold : float, 0 to 1
        Similarity above which a topic is resolved.

    Returns
    -------
    TopicMatching

    Notes
    -----
    With r topics and k classes there are min(r, k) pairs.  The score is the mean over these: do not
    compare scores of models with different numbers of topics.

    References
    ----------
    .. [1] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

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
    limit = check_real(threshold, "threshold", maximum=1)
    similarity, classes = _similarities(S, truth, normalize, unlabeled)
    topics, matched = linear_sum_assignment(similarity, maximize=True)
    reached = similarity[topics, matched]
    return TopicMatching(
        topics, classes[matched], reached, float(reached.mean()), int((reached > limit).sum())
    )


def _similarities(
    S: MatrixLike, truth: MatrixLike, normalize: Normalization, unlabeled: object
) -> tuple[Array, Array]:
    axis = _AXES[check_option(normalize, "normalize", tuple(_AXES))]
    samples, members, classes = read_truth(S, truth, unlabeled)
    topics, true = (Z if axis is None else shares_along(Z, axis) for Z in (samples, members))
    # Sums of min(u, v) need only the samples where v is not zero.
    shared, by_class = np.zeros((topics.shape[1], true.shape[1])), true.tocsc()
    for number, (begin, end) in enumerate(pairwise(by_class.indptr)):
        weights = by_class.data[begin:end, None]
        for rows, block in row_blocks(topics, by_class.indices[begin:end]):
            shared[:, number] += np.minimum(block, weights[: len(rows)]).sum(axis=0)
            weights = weights[len(rows) :]
    # max(u, v) = u + v - min(u, v); rounding must not lift a similarity above 1.
    either = sums_along(topics, 0)[:, None] + sums_along(true, 0)[None, :] - shared
    either = np.maximum(either, shared)
    similarity = np.divide(shared, either, out=np.zeros_like(shared), where=either > 0)
    return similarity, classes


@dataclass(frozen=True, eq=False)
class ClusteringScore:
    """Result of :func:`clustering_score`.

    Attributes
    ----------
    score : float
        Mean over the topics, from 0 to 1.
    per_topic : ndarray of float64, shape (r,)
        Score of each topic.
    classes : ndarray, shape (r,)
        True class that each topic matches best (the first of equal ones): a label, or a column of
        memberships.
    """

    score: float
    per_topic: Array
    classes: Array


@complete_docstring
def clustering_score(
    S: MatrixLike,
    truth: MatrixLike,
    *,
    assignment: Literal["hard", "soft"] = "hard",
    unlabeled: object = "auto",
) -> ClusteringScore:
    r"""Score how much of a true class each topic holds.

    The score P of [1]_ (clustering analysis): topic l, with shares :math:`\hat S_l` of the samples,
    scores :math:`\max_i \|\hat S_l \odot M_i\|_1 / \|M_i\|_1` over the true classes i with members
    :math:`M_i`.

    Parameters
    ----------
    assignment : {"hard", "soft"}
        "hard": a sample belongs to its largest topic, the first of equal ones.  "soft": it belongs
        to all topics by its shares, the row of S divided by its sum.  A sample with a row of zeros
        belongs to no topic, but counts as a member of its class.

    Returns
    -------
    ClusteringScore

    Notes
    -----
    A class may be the best for several topics.  With hard assignment, a topic that contains every
    sample scores 1 and the others 0; the mean is highest if each topic holds one class.

    References
    ----------
    .. [1] Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks", 2020.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> S = [[3.0, 1.0], [2.0, 0.0], [0.0, 1.0], [3.0, 1.0]]
    >>> result = sf.metrics.clustering_score(S, ["car", "car", "sea", "sea"])
    >>> result.per_topic.tolist(), result.classes.tolist(), result.score
    ([1.0, 0.5], ['car', 'sea'], 0.75)
    >>> sf.metrics.clustering_score(S, ["car", "car", "sea", "sea"],
    ...                             assignment="soft").score
    0.75
    """
    check_option(assignment, "assignment", ("hard", "soft"))
    samples, members, classes = read_truth(S, truth, unlabeled)
    if assignment == "soft":
        shares = shares_along(samples, 1)
    else:  # a 1 at the largest entry of every row that is not zero
        topics = np.concatenate([block.argmax(axis=1) for _, block in row_blocks(samples)])
        used = np.flatnonzero(sums_along(samples, 1))
        shares = sp.csr_array((np.ones(len(used)), (used, topics[used])), shape=samples.shape)
    overlap = members.T @ shares
    overlap = overlap.toarray() if sp.issparse(overlap) else overlap
    sizes = sums_along(members, 0)[:, None]
    scores = np.divide(overlap, sizes, out=np.zeros_like(overlap), where=sizes > 0)
    per_topic = np.minimum(scores.max(axis=0), 1.0)
    return ClusteringScore(float(per_topic.mean()), per_topic, classes[scores.argmax(axis=0)])


def labeled_scorer(scoring: str | Scorer = "accuracy", *, unlabeled: object = "auto") -> Scorer:
    """Return a scorer that leaves out unlabeled samples, for tools of scikit-learn.

    Scorers of scikit-learn treat the marker -1 in `y` as a class and count predictions for these
    samples as errors.  The `score` method of the estimators leaves them out.

    Parameters
    ----------
    scoring : str or callable
        A scorer, as in :func:`sklearn.metrics.get_scorer`: "f1_macro", "neg_log_loss", or a result
        of :func:`sklearn.metrics.make_scorer`.
    unlabeled : "auto", None or a label
        Marker of unlabeled samples, as in :class:`ssnmf_fast.SSNMFClassifier`.  Rows of an
        indicator matrix that are not fully labeled (NaN or -1) are left out.

    Returns
    -------
    callable
        With the signature ``scorer(estimator, X, y)``, for `scoring` in
        :func:`sklearn.model_selection.cross_val_score` or
        :class:`sklearn.model_selection.GridSearchCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> # three of four samples are unlabeled
    >>> y = np.where(np.arange(len(y)) % 4 < 3, -1, y)
    >>> model = sf.SSNMFClassifier(random_state=0)
    >>> scores = cross_val_score(model, X, y, cv=2,
    ...                          scoring=sf.metrics.labeled_scorer("f1_macro"))
    >>> bool(scores.min() > 0.9)
    True
    """
    from sklearn.metrics import get_scorer

    return partial(_score_labeled, scorer=get_scorer(scoring), unlabeled=unlabeled)


def _score_labeled(
    estimator: object, X: MatrixLike, y: npt.ArrayLike, *, scorer: Scorer, unlabeled: object
) -> float:
    from sklearn.utils import _safe_indexing

    labels = labels_of(y, unlabeled, getattr(estimator, "classes_", None))
    if not labels.complete.any():
        raise ValueError("y has no labeled sample to score; give at least one.")
    return float(
        scorer(estimator, _safe_indexing(X, np.flatnonzero(labels.complete)), labels.values)
    )
