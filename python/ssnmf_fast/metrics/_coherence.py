"""Coherence of topics: which terms occur in the same documents, or windows of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, MatrixLike
from .._common.text import nfc, short
from .._data.border import check_integer, check_option, check_shape
from .._topics import names_of
from ._sparsity import read_matrix
from ._topics import TopicScore, check_columns, check_words, leading_terms, read_components

_ENTRIES_AT_ONCE = 1 << 20


def of_windows(
    texts: Iterable[Any], words: Sequence[str], window: int | None
) -> Iterator[sp.csc_array]:
    """Yield, a bounded number of windows at a time, 1 where a window holds a word.

    A window begins at every token that has enough others behind it; a text that is not longer than
    a window, or any text for None, is one window.
    """
    number_of = {nfc(word): number for number, word in enumerate(words)}
    parts: list[tuple[Array, Array]] = []
    n_windows = n_entries = 0
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TypeError(
            f"texts must be an iterable of sequences of tokens; got {type(texts).__name__}."
        )
    for place, text in enumerate(texts):
        numbers = _numbers(text, place, number_of)
        width = len(numbers) if window is None else window
        last_window = max(len(numbers) - width, 0)
        at = np.flatnonzero(numbers >= 0)
        first = np.maximum(at - width + 1, 0)  # of the windows that hold the token
        counts = np.minimum(at, last_window) - first + 1
        skipped = np.cumsum(counts) - counts
        rows = np.arange(counts.sum()) + np.repeat(first - skipped, counts)
        parts.append((rows + n_windows, np.repeat(numbers[at], counts)))
        n_windows += last_window + 1
        n_entries += len(rows)
        if n_entries > _ENTRIES_AT_ONCE:
            yield _together(parts, n_windows, len(words))
            parts, n_windows, n_entries = [], 0, 0
    if n_windows:
        yield _together(parts, n_windows, len(words))


def _numbers(text: Iterable[str], place: int, number_of: dict[str, int]) -> Array:
    """Return the number of every token, -1 for those that are not needed."""
    if isinstance(text, str):
        raise TypeError(
            f"texts[{place}] is a str; expected a sequence of tokens. Give "
            "map(vectorizer.build_analyzer(), texts)."
        )
    try:
        return np.array([number_of.get(nfc(token), -1) for token in text], dtype=np.int64)
    except TypeError as error:
        raise TypeError(
            f"texts[{place}] must be a sequence of tokens; got {text!r:.80}."
        ) from error


def _together(parts: list[tuple[Array, Array]], n_windows: int, n_words: int) -> sp.csc_array:
    places = tuple(np.concatenate(side) for side in zip(*parts, strict=True))
    shape = (n_windows, n_words)
    occurs = sp.coo_array((np.ones(len(places[0])), places), shape=shape).tocsc()
    occurs.data[:] = 1  # a word that a window holds several times counts once
    return occurs


_TINY = 1e-12  # of the paper of C_V, beside probabilities in logarithms


def topic_coherence(
    X: MatrixLike | None = None,
    components: MatrixLike | None = None,
    *,
    texts: Iterable[Iterable[str]] | None = None,
    feature_names: npt.ArrayLike | None = None,
    window: int | None = 110,
    terms: Sequence[Sequence[int | str]] | None = None,
    n_terms: int = 10,
    measure: Literal["npmi", "umass", "c_v"] = "npmi",
) -> TopicScore:
    r"""Score topics by how often their top terms occur in the same documents.

    With D the number of documents that hold a term, or both of a pair, and N that of all:

    - "npmi", normalized pointwise mutual information [1]_ [2]_: the mean over the pairs of
      :math:`\log \frac{N D(v, w)}{D(v) D(w)} / \log \frac{N}{D(v, w)}`; -1 for a pair that never
      occurs together, 1 for one that occurs together in every document.
    - "umass" [3]_: the sum over the pairs, w above v in the topic's order, of
      :math:`\log \frac{D(v, w) + 1}{D(w)}`.
    - "c_v" [4]_: the mean over the terms of the cosine between the vector of a term, its NPMI with
      every term of the topic, and the sum of these vectors.  Terms that never meet each other still
      count as alike if they meet the same other terms.

    Documents are the rows of `X`, or all windows of `window` successive tokens in `texts`.

    Parameters
    ----------
    X : array_like or sparse, shape (n, m), optional
        Documents and terms, at least 0; a term occurs in a document if its entry is above 0.  Use
        the fitted data or, for an unbiased score, other documents with the same vocabulary.
    components : array_like or sparse, shape (r, m), optional
        Dictionary, at least 0; the terms of largest weight are used.
    texts : iterable of sequences of str, optional
        The tokens of every document, such as ``map(vectorizer.build_analyzer(), documents)``; give
        either these or `X`.  They are read once, a part at a time.
    feature_names : array_like of str, shape (m,), optional
        The words of the columns of `components`, which `texts` need.
    window : int, optional
        Number of tokens of a window, at least 1; a shorter text is one window.  None takes every
        text as a whole, as rows of `X` are.
    terms : sequence of sequences of int or str, optional
        The terms of every topic in decreasing order of weight: columns of `X`, or words of `texts`.
        Give either these or `components`.  Each topic has two or more different terms.
    n_terms : int
        Number of terms taken from each row of `components`, at least 2.  Terms of weight 0 are not
        taken.
    measure : {"npmi", "umass", "c_v"}
        What to measure.

    Returns
    -------
    TopicScore
        `score`, the mean, and `per_topic`.  NPMI and C_V lie in -1 to 1; higher is more coherent in
        all measures.

    Raises
    ------
    TypeError
        If values are not numbers, terms or tokens are of the wrong kind, or neither or both of
        `components` and `terms`, or of `X` and `texts`, are given.
    ValueError
        If shapes do not match, entries are negative or missing, terms are out of range or repeated,
        a topic has fewer than two terms, the measure is unknown, or, for "umass", a term other than
        the last of its topic occurs in no document.

    Notes
    -----
    UMass is a sum, as in its paper, so its size grows with the number of terms; some programs
    return the mean, which is the sum divided by M (M - 1) / 2 for M terms.

    The paper of C_V counts windows of 110 tokens.  A matrix has no order of words: its documents
    count as whole ones, so that terms meet more often, and C_V is that of the paper only if no
    document has more than 110 tokens.  NPMI is often counted in windows of 10.  Between terms that
    never meet, the vectors of C_V have the small value of the paper, not -1, and a term that never
    occurs has none: it scores 0.

    gensim's "c_v" forgets a word as soon as one of its occurrences leaves the window, even if
    another is still inside.  Its values are lower where texts are longer than a window; for shorter
    ones they are the same.

    References
    ----------
    .. [1] G. Bouma, "Normalized (pointwise) mutual information in collocation extraction", 2009.
    .. [2] J. H. Lau, D. Newman and T. Baldwin, "Machine reading tea leaves: automatically
       evaluating topic coherence and topic model quality", EACL 2014.
    .. [3] D. Mimno, H. Wallach, E. Talley, M. Leenders and A. McCallum, "Optimizing semantic
       coherence in topic models", EMNLP 2011.
    .. [4] M. Roeder, A. Both and A. Hinneburg, "Exploring the space of topic coherence measures",
       WSDM 2015.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> X = [[1, 2, 0], [3, 1, 0], [0, 0, 1], [0, 1, 1]]
    >>> A = [[5.0, 4.0, 0.0], [0.0, 1.0, 2.0]]
    >>> sf.metrics.topic_coherence(X, A).per_topic.round(4).tolist()
    [0.415, -0.2925]
    >>> sf.metrics.topic_coherence(X, terms=[[0, 1]], measure="umass").per_topic.round(4).tolist()
    [0.4055]
    >>> tokens = [["moon", "in", "orbit"], ["orbit", "of", "a", "moon"], ["ball", "in", "goal"]]
    >>> topics = [["moon", "orbit"], ["moon", "ball"]]
    >>> result = sf.metrics.topic_coherence(texts=tokens, terms=topics, measure="c_v")
    >>> result.per_topic.round(4).tolist()
    [1.0, 0.028]
    """
    score = _MEASURES[check_option(measure, "measure", tuple(_MEASURES))]
    if (components is None) == (terms is None):
        raise TypeError(
            "expected one of components and terms: the dictionary, or the topics' terms."
        )
    if (X is None) == (texts is None):
        raise TypeError("expected one of X and texts: a matrix of documents, or their tokens.")
    if (feature_names is None) == (texts is not None and components is not None):
        raise TypeError(
            "feature_names, the words of the columns of components, are for texts and components: "
            "these need them, and nothing else takes them."
        )
    A = None if components is None else read_components(components)
    topics: list[Any]
    parts: Iterable[Any]
    if texts is None:
        documents = read_matrix(X, "X", "documents", "terms")
        if A is None:
            topics = check_columns(terms, documents.shape[1])
        else:
            shape = A.shape[0], documents.shape[1]
            check_shape(A, shape, "components", "one column for each column of X")
            topics = leading_terms(A, n_terms, 2)
        needed, places = _placed(topics)
        chosen = sp.csc_array(documents[:, needed])
        occurs = (chosen.data > 0).astype(np.float64), chosen.indices, chosen.indptr
        parts = [sp.csc_array(occurs, shape=chosen.shape)]
    else:
        width = None if window is None else check_integer(window, "window", 1)
        if A is None:
            topics = check_words(terms)
        else:
            names = names_of(feature_names, A.shape[1])
            topics = [[names[column] for column in topic] for topic in leading_terms(A, n_terms, 2)]
        needed, places = _placed(topics)
        parts = of_windows(texts, needed, width)
    n_documents, together = _count(parts, places)
    scores = [
        score(pairs, n_documents, *one)
        for pairs, one in zip(together, enumerate(topics), strict=True)
    ]
    per_topic = np.array(scores)
    return TopicScore(float(per_topic.mean()), per_topic)


def _placed(topics: list[Any]) -> tuple[list[Any], list[list[int]]]:
    """Return all terms that topics have, and the places of each topic's terms among them."""
    needed = list(dict.fromkeys(term for topic in topics for term in topic))
    place_of = {term: place for place, term in enumerate(needed)}
    return needed, [[place_of[term] for term in topic] for topic in topics]


def _count(parts: Iterable[Any], places: list[list[int]]) -> tuple[int, list[Array]]:
    """Return the number of documents, and of those that hold both terms of every pair of a topic.

    The diagonals are the numbers of documents that hold a term.
    """
    n_documents, together = 0, [np.zeros((len(topic), len(topic))) for topic in places]
    for occurs in parts:
        n_documents += occurs.shape[0]
        for pairs, topic in zip(together, places, strict=True):
            columns = occurs[:, topic]
            pairs += (columns.T @ columns).toarray()
    if not n_documents:
        raise ValueError("texts holds no document; expected at least one.")
    return n_documents, together


def _npmi(together: Array, n_documents: int, topic: int, chosen: list[Any]) -> float:
    first, second = np.triu_indices(len(together), 1)
    single, pairs = np.diag(together), together[first, second]
    values = np.full(len(pairs), -1.0)
    values[pairs == n_documents] = 1.0
    between = (pairs > 0) & (pairs < n_documents)
    joint = pairs[between]
    expected = single[first[between]] * single[second[between]]
    values[between] = np.log(n_documents * joint / expected) / np.log(n_documents / joint)
    return float(np.clip(values, -1.0, 1.0).mean())


def _umass(together: Array, n_documents: int, topic: int, chosen: list[Any]) -> float:
    single = np.diag(together)
    absent = np.flatnonzero(single[:-1] == 0)
    if len(absent):
        raise ValueError(
            f"term {short(chosen[absent[0]])} of topic {topic} occurs in no document, where UMass "
            'is not defined. Leave the term out, give other documents, or use measure="npmi".'
        )
    below, above = np.tril_indices(len(together), -1)
    return float(np.log((together[below, above] + 1) / single[above]).sum())


def _c_v(together: Array, n_documents: int, topic: int, chosen: list[Any]) -> float:
    single = np.diag(together)
    expected = np.outer(single, single) / n_documents**2
    joint = together / n_documents
    values = np.zeros_like(joint)  # of terms that do not occur
    values[together == n_documents] = 1.0
    between = (expected > 0) & (together < n_documents)
    joint = joint[between] + _TINY
    values[between] = np.log(joint / expected[between]) / -np.log(joint)
    whole = values.sum(axis=0)
    lengths = np.linalg.norm(values, axis=1) * np.linalg.norm(whole)
    cosines = np.divide(values @ whole, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return float(np.clip(cosines, -1.0, 1.0).mean())


_MEASURES: dict[str, Callable[[Array, int, int, list[Any]], float]] = {
    "npmi": _npmi,
    "umass": _umass,
    "c_v": _c_v,
}
