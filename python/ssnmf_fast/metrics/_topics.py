"""Leading terms of topics: of a dictionary, or as given; and scores of topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, MatrixLike
from .._common.text import nfc, short
from .._data.border import check_integer, check_real
from ._sparsity import column_sums, read_matrix, row_blocks, row_shares


@dataclass(frozen=True, eq=False)
class TopicScore:
    """Result of :func:`topic_coherence`, :func:`topic_diversity` and :func:`topic_exclusivity`.

    Attributes
    ----------
    score : float
        Score of all topics together.
    per_topic : ndarray of float64, shape (r,)
        Score of every topic.
    """

    score: float
    per_topic: Array


def leading_terms(A: npt.ArrayLike, n_terms: int, least: int) -> list[list[int]]:
    """Return the columns of the largest weights of rows, in falling order, at least `least`."""
    count = check_integer(n_terms, "n_terms", least)
    topics = []
    for _, block in row_blocks(A):
        order = np.argsort(-block, axis=1, kind="stable")[:, :count]
        topics += [best[row[best] > 0].tolist() for row, best in zip(block, order, strict=True)]
    wanted = {1: "one", 2: "two"}[least]
    for topic, chosen in enumerate(topics):
        if len(chosen) < least:
            raise ValueError(
                f"components[{topic}] has {len(chosen)} terms of a weight above 0; expected "
                f"{wanted} or more. Leave the topic out."
            )
    return topics


def read_components(components: MatrixLike) -> Any:
    return read_matrix(components, "components", "topics", "terms")


def check_columns(terms: object, n_features: int) -> list[list[int]]:
    topics = []
    for number, topic in enumerate(_listed(terms, "integers")):
        name = f"every entry of terms[{number}] (a column of X)"
        topics.append([check_integer(term, name, 0, n_features - 1) for term in topic])
        _check_different(topics[-1], number)
    return topics


def check_words(terms: object) -> list[list[str]]:
    topics = _listed(terms, "words")
    for number, topic in enumerate(topics):
        for term in topic:
            if not isinstance(term, str):
                raise TypeError(
                    f"every entry of terms[{number}] must be a word, as texts are given; got "
                    f"{short(term)} ({type(term).__name__})."
                )
        _check_different(topic, number)
    return topics


def _listed(terms: Any, entries: str) -> list[list[Any]]:
    if sp.issparse(terms) or isinstance(terms, str):
        raise TypeError(
            f"terms must be a sequence of sequences of {entries}; got {type(terms).__name__}. "
            "Give a dictionary as `components`."
        )
    try:
        given = list(terms)
        if any(isinstance(topic, str) for topic in given):  # a word is a sequence of letters
            raise TypeError("a word")
        topics = [list(topic) for topic in given]
    except TypeError as error:
        raise TypeError(
            f"terms must be a sequence of sequences of {entries}, one for each topic; for a single "
            "topic give [terms]."
        ) from error
    if not topics:
        raise ValueError("terms holds no topic; expected at least one.")
    return topics


def _check_different(topic: list[Any], number: int) -> None:
    if len(topic) < 2 or len(set(map(nfc, topic))) < len(topic):
        raise ValueError(
            f"terms[{number}] is {short(topic)}; expected two or more different terms for each "
            "topic."
        )


def topic_diversity(components: MatrixLike, *, n_terms: int = 25) -> TopicScore:
    """Return the share of different terms among the top terms of all topics.

    This is the topic diversity of [1]_: 1 if no term is among the top terms of two topics.

    Parameters
    ----------
    components : array_like or sparse, shape (r, m)
        Dictionary, at least 0; the terms of largest weight are used.
    n_terms : int
        Number of terms taken from each row, at least 1.  Terms of weight 0 are not taken.

    Returns
    -------
    TopicScore
        `score`, above 0 to 1; and `per_topic`: the mean over the terms of a topic of 1 divided by
        the number of topics that have the term.  `score` is the mean of these over the topics,
        where all have as many terms.

    Raises
    ------
    TypeError
        If values are not numbers.
    ValueError
        If entries are negative or missing, or a topic has no weight above 0.

    References
    ----------
    .. [1] A. B. Dieng, F. J. R. Ruiz and D. M. Blei, "Topic modeling in embedding spaces", TACL 8,
       2020.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> A = [[5.0, 4.0, 0.0], [0.0, 1.0, 2.0]]
    >>> result = sf.metrics.topic_diversity(A, n_terms=2)
    >>> result.score, result.per_topic.tolist()
    (0.75, [0.75, 0.75])
    """
    A = read_components(components)
    topics = leading_terms(A, n_terms, 1)
    counts = np.bincount(np.concatenate(topics))
    per_topic = np.array([np.mean(1 / counts[topic]) for topic in topics])
    return TopicScore(float(np.count_nonzero(counts) / counts.sum()), per_topic)


def topic_exclusivity(
    components: MatrixLike, *, n_terms: int = 10, weight: float = 0.7
) -> TopicScore:
    r"""Return how much the top terms of a topic are its own: FREX.

    Rows of `components` are divided by their sums.  With :math:`E` the share of a topic in the
    column of a term, :math:`F` its weight, and ranks over the terms of the topic divided by their
    number, a term has :math:`(w / \mathrm{rank}(E) + (1 - w) / \mathrm{rank}(F))^{-1}` ([1]_,
    [2]_).  A topic has the mean over its top terms.

    Parameters
    ----------
    components : array_like or sparse, shape (r, m)
        Dictionary, at least 0, of two or more topics.
    n_terms : int
        Number of terms taken from each row, at least 1.  Terms of weight 0 are not taken.
    weight : float, 0 to 1
        Weight w of exclusivity, beside that of frequency.

    Returns
    -------
    TopicScore
        `score`, the mean over the topics, and `per_topic`; above 0 to 1.

    Raises
    ------
    TypeError
        If values are not numbers.
    ValueError
        If entries are negative or missing, there is one topic only, a topic has no weight above 0,
        or the weight is out of range.

    Notes
    -----
    ``exclusivity`` of the R package stm returns the sum over the top terms: `n_terms` times this
    mean.  Where a sparse dictionary has many terms that belong to one topic alone, they share a
    rank, and no score reaches 1.

    References
    ----------
    .. [1] J. M. Bischof and E. M. Airoldi, "Summarizing topical content with word frequency and
       exclusivity", ICML 2012.
    .. [2] M. E. Roberts, B. M. Stewart and D. Tingley, "stm: an R package for structural topic
       models", Journal of Statistical Software 91, 2019.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> A = [[5.0, 4.0, 1.0], [1.0, 4.0, 5.0]]
    >>> sf.metrics.topic_exclusivity(A, n_terms=2).per_topic.round(4).tolist()
    [0.8333, 0.8333]
    """
    share = check_real(weight, "weight")
    if share > 1:
        raise ValueError(f"weight must be at most 1; got {weight!r}.")
    A = read_components(components)
    if A.shape[0] < 2:
        raise ValueError("components has one topic; exclusivity compares two or more.")
    topics = leading_terms(A, n_terms, 1)
    weights = row_shares(A)
    totals = column_sums(weights)
    totals[totals == 0] = 1.0
    per_topic = np.empty(len(topics))
    for numbers, block in row_blocks(weights):
        exclusive, frequent = _ranks(block / totals), _ranks(block)
        frex = 1 / (share / exclusive + (1 - share) / frequent)
        for number, row in zip(numbers.tolist(), frex, strict=True):
            per_topic[number] = row[topics[number]].mean()
    return TopicScore(float(per_topic.mean()), per_topic)


def _ranks(values: Array) -> Array:
    """Return the ranks within each row, from above 0 to 1; equal values have their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=1) / values.shape[1])
