"""Coherence of topics: how often their top terms occur in the same documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.checks import check_integer, check_option, check_shape
from ._matrices import read_matrix, row_blocks


@dataclass(frozen=True, eq=False)
class TopicCoherence:
    """Result of :func:`topic_coherence`.

    Attributes
    ----------
    score : float
        Mean over the topics.
    per_topic : ndarray of float64, shape (r,)
        Coherence of every topic.
    """

    score: float
    per_topic: Array


def topic_coherence(
    X: Any,
    components: Any = None,
    *,
    terms: Any = None,
    n_terms: int = 10,
    measure: Literal["npmi", "umass"] = "npmi",
) -> TopicCoherence:
    r"""Score topics by how often their top terms occur in the same documents.

    With D the number of documents that hold a term, or both of a pair, and N that of all:

    - "npmi", normalized pointwise mutual information [1]_ [2]_: the mean over the pairs of
      :math:`\log \frac{N D(v, w)}{D(v) D(w)} / \log \frac{N}{D(v, w)}`; -1 for a pair that never
      occurs together, 1 for one that occurs together in every document.
    - "umass" [3]_: the sum over the pairs, w above v in the topic's order, of
      :math:`\log \frac{D(v, w) + 1}{D(w)}`.

    Parameters
    ----------
    X : array_like or sparse, shape (n, m)
        Documents and terms, at least 0; a term occurs in a document if its entry is above 0.  Use
        the fitted data or, for an unbiased score, other documents with the same vocabulary.
    components : array_like or sparse, shape (r, m), optional
        Dictionary, at least 0; the terms of largest weight are used.
    terms : sequence of sequences of int, optional
        The terms of every topic as columns of X, in decreasing order of weight; give either these
        or `components`.  Each topic has two or more different terms.
    n_terms : int
        Number of terms taken from each row of `components`, at least 2.  Terms of weight 0 are not
        taken.
    measure : {"npmi", "umass"}
        What to measure.

    Returns
    -------
    TopicCoherence
        `score`, the mean, and `per_topic`.  NPMI lies in -1 to 1; higher is more coherent in both
        measures.

    Raises
    ------
    TypeError
        If values are not numbers, terms are not integers, or neither or both of `components` and
        `terms` are given.
    ValueError
        If shapes do not match, entries are negative or missing, terms are out of range or repeated,
        a topic has fewer than two terms, the measure is unknown, or, for "umass", a term other than
        the last of its topic occurs in no document.

    Notes
    -----
    UMass is a sum, as in its paper, so its size grows with the number of terms; some programs
    return the mean, which is the sum divided by M (M - 1) / 2 for M terms.

    References
    ----------
    .. [1] G. Bouma, "Normalized (pointwise) mutual information in collocation extraction", 2009.
    .. [2] J. H. Lau, D. Newman and T. Baldwin, "Machine reading tea leaves: automatically
       evaluating topic coherence and topic model quality", EACL 2014.
    .. [3] D. Mimno, H. Wallach, E. Talley, M. Leenders and A. McCallum, "Optimizing semantic
       coherence in topic models", EMNLP 2011.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> X = [[1, 2, 0], [3, 1, 0], [0, 0, 1], [0, 1, 1]]
    >>> A = [[5.0, 4.0, 0.0], [0.0, 1.0, 2.0]]
    >>> sf.metrics.topic_coherence(X, A).per_topic.round(4).tolist()
    [0.415, -0.2925]
    >>> sf.metrics.topic_coherence(X, terms=[[0, 1]], measure="umass").per_topic.round(4).tolist()
    [0.4055]
    """
    score = _MEASURES[check_option(measure, "measure", tuple(_MEASURES))]
    if (components is None) == (terms is None):
        raise TypeError(
            "expected one of components and terms: the dictionary, or the topics' terms."
        )
    documents = read_matrix(X, "X", "documents", "terms")
    if components is None:
        topics = _check_terms(terms, documents.shape[1])
    else:
        topics = _top_terms(components, n_terms, documents.shape[1])
    needed = np.unique(np.concatenate(topics))
    occurs = _occurrences(documents, needed)
    per_topic = np.empty(len(topics))
    for topic, chosen in enumerate(topics):
        columns = occurs[:, np.searchsorted(needed, chosen)]
        together = (columns.T @ columns).toarray()
        per_topic[topic] = score(together, documents.shape[0], topic, chosen)
    return TopicCoherence(float(per_topic.mean()), per_topic)


def _top_terms(components: Any, n_terms: int, n_features: int) -> list[Array]:
    """Terms of the largest weights, in falling order, of every row."""
    count = check_integer(n_terms, "n_terms", 2)
    A = read_matrix(components, "components", "topics", "terms")
    check_shape(A, (A.shape[0], n_features), "components", "one column for each column of X")
    topics = []
    for _, block in row_blocks(A):
        order = np.argsort(-block, axis=1, kind="stable")[:, :count]
        # A copy of each row's slice lets go of the whole order.
        topics += [best[row[best] > 0].copy() for row, best in zip(block, order, strict=True)]
    for topic, chosen in enumerate(topics):
        if len(chosen) < 2:
            raise ValueError(
                f"components[{topic}] has {len(chosen)} terms of a weight above 0; expected two "
                "or more. Leave the topic out."
            )
    return topics


def _check_terms(terms: Any, n_features: int) -> list[Array]:
    """Lists of terms become arrays, or a clear error."""
    if sp.issparse(terms) or isinstance(terms, str):
        raise TypeError(
            f"terms must be a sequence of sequences of integers; got {type(terms).__name__}. Give "
            "a dictionary as `components`."
        )
    try:
        topics = [list(topic) for topic in terms]
    except TypeError as error:
        raise TypeError(
            "terms must be a sequence of sequences of integers, one for each topic; for a single "
            "topic give [terms]."
        ) from error
    if not topics:
        raise ValueError("terms holds no topic; expected at least one.")
    return [_check_topic(topic, number, n_features) for number, topic in enumerate(topics)]


def _check_topic(topic: list[Any], number: int, n_features: int) -> Array:
    for term in topic:
        check_integer(term, f"every entry of terms[{number}] (a column of X)", 0, n_features - 1)
    if len(topic) < 2 or len(set(topic)) < len(topic):
        raise ValueError(
            f"terms[{number}] is {topic}; expected two or more different terms for each topic."
        )
    return np.array(topic, dtype=np.int64)


def _occurrences(X: Any, needed: Array) -> Any:
    """Return 1 where a document holds a needed term, csc."""
    chosen = sp.csc_array(X[:, needed])
    occurs = sp.csc_array(
        ((chosen.data > 0).astype(np.float64), chosen.indices, chosen.indptr), shape=chosen.shape
    )
    occurs.eliminate_zeros()
    return occurs


def _npmi(together: Array, n_documents: int, topic: int, chosen: Array) -> float:
    first, second = np.triu_indices(len(together), 1)
    single, pairs = np.diag(together), together[first, second]
    values = np.full(len(pairs), -1.0)
    values[pairs == n_documents] = 1.0
    between = (pairs > 0) & (pairs < n_documents)
    joint = pairs[between]
    expected = single[first[between]] * single[second[between]]
    values[between] = np.log(n_documents * joint / expected) / np.log(n_documents / joint)
    return float(np.clip(values, -1.0, 1.0).mean())


def _umass(together: Array, n_documents: int, topic: int, chosen: Array) -> float:
    single = np.diag(together)
    absent = np.flatnonzero(single[:-1] == 0)
    if len(absent):
        raise ValueError(
            f"term {chosen[absent[0]]} of topic {topic} occurs in no document of X, where UMass is "
            'not defined. Leave the term out, give other documents, or use measure="npmi".'
        )
    below, above = np.tril_indices(len(together), -1)
    return float(np.log((together[below, above] + 1) / single[above]).sum())


_MEASURES: dict[str, Callable[[Array, int, int, Array], float]] = {"npmi": _npmi, "umass": _umass}
