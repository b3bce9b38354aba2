"""Scores of topics by their leading terms: coherence, diversity and exclusivity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array, MatrixLike
from .._common.text import nfc, short
from .._data.border import by_name, check_integer, check_option, check_real, check_shape
from .._topics import names_of
from ._sparsity import complete_docstring, read_matrix, row_blocks, shares_along, sums_along

_ENTRIES_AT_ONCE = 1 << 20
_TINY = 1e-12  # added to probabilities in logarithms, from the paper of C_V


@dataclass(frozen=True, eq=False)
class TopicScore:
    """Result of :func:`topic_coherence`, :func:`topic_diversity` and :func:`topic_exclusivity`.

    Attributes
    ----------
    score : float
        Score of all topics.
    per_topic : ndarray of float64, shape (r,)
        Score of each topic.
    """

    score: float
    per_topic: Array


def leading_terms(A: npt.ArrayLike, n_terms: int, least: int) -> list[list[int]]:
    """Return the columns of the largest weights of each row, in falling order."""
    count = check_integer(n_terms, "n_terms", least)
    topics = []
    for _, block in row_blocks(A):
        order = np.argsort(-block, axis=1, kind="stable")[:, :count]
        topics += [best[row[best] > 0].tolist() for row, best in zip(block, order, strict=True)]
    for topic, chosen in enumerate(topics):
        if len(chosen) < least:
            expected = f"expected {least} or more. Leave the topic out"
            terms = f"{len(chosen)} terms with a weight above 0"
            raise ValueError(f"components[{topic}] has {terms}; {expected}.")
    return topics


def _read_terms(terms: Any, n_features: int | None) -> list[list[Any]]:
    """Return the terms of topics: words or, with a number of features, columns of X."""
    entries = "words" if n_features is None else "integers"
    try:
        sequences = [""] if sp.issparse(terms) else list(terms)
        if any(isinstance(topic, str) for topic in sequences):  # a word is a sequence of letters
            raise TypeError("text for a topic")
        topics = [list(topic) for topic in sequences]
    except TypeError as error:
        raise TypeError(
            f"terms must be a sequence of sequences of {entries}, one for each topic; got "
            f"{type(terms).__name__}. For one topic give [terms], for a dictionary components."
        ) from error
    if not topics:
        raise ValueError("terms holds no topic; expected at least one.")
    for number, topic in enumerate(topics):
        name = f"every entry of terms[{number}]"
        for place, term in enumerate(topic):
            if n_features is not None:
                topic[place] = check_integer(term, f"{name} (a column of X)", 0, n_features - 1)
            elif not isinstance(term, str):
                got = f"{short(term)} ({type(term).__name__})"
                raise TypeError(f"{name} must be a word, because texts are given; got {got}.")
        if len(topic) < 2 or len(set(map(nfc, topic))) < len(topic):
            expected = "expected two or more different terms for each topic"
            raise ValueError(f"terms[{number}] is {short(topic)}; {expected}.")
    return topics


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

    D is the number of documents with a term, or with both terms of a pair; N is the number of all
    documents.

    - "npmi", normalized pointwise mutual information [1]_ [2]_: the mean over the pairs of
      :math:`\log \frac{N D(v, w)}{D(v) D(w)} / \log \frac{N}{D(v, w)}`; -1 for a pair that never
      occurs together, 1 for a pair that occurs together in every document.
    - "umass" [3]_: the sum of :math:`\log \frac{D(v, w) + 1}{D(w)}` over the pairs, where w is
      above v in the topic.
    - "c_v" [4]_: the mean over the terms of the cosine between the vector of a term (its NPMI with
      every term of the topic) and the sum of these vectors.  Terms that never occur together still
      count as similar if they occur with the same other terms.

    Documents are the rows of `X`, or all windows of `window` successive tokens in `texts`.

    Parameters
    ----------
    X : array_like or sparse, shape (n, m), optional
        Documents and terms, nonnegative; a term occurs in a document if its entry is above 0.  Use
        the fitted data or, for an unbiased score, other documents with the same vocabulary.
    components : array_like or sparse, shape (r, m), optional
        Nonnegative dictionary; the terms of largest weight are used.
    texts : iterable of sequences of str, optional
        Tokens of each document, such as ``map(vectorizer.build_analyzer(), documents)``, in place
        of `X`.  They are read once, a part at a time.
    feature_names : array_like of str, shape (m,), optional
        Words of the columns of `components`; needed with `texts`.
    window : int, optional
        Number of tokens in a window, at least 1.  A shorter text is one window; with None, every
        text is.
    terms : sequence of sequences of int or str, optional
        Two or more different terms for each topic, those of largest weight first, in place of
        `components`: columns of `X`, or words of `texts`.
    n_terms : int
        Number of terms taken from each row of `components`, at least 2; their weights must be
        above 0.
    measure : {"npmi", "umass", "c_v"}
        The measure.

    Returns
    -------
    TopicScore
        `score`, the mean, and `per_topic`.  Higher is more coherent; NPMI and C_V are in -1 to 1.

    Raises
    ------
    TypeError
        For values, terms or tokens of a wrong kind, or if neither or both of `components` and
        `terms`, or of `X` and `texts`, are given.
    ValueError
        For shapes that do not match, negative or missing entries, terms out of range, too few
        different terms or, for "umass", a term (not the last of its topic) that never occurs.

    Notes
    -----
    UMass is a sum, as in its paper.  Some programs return the mean over the M (M - 1) / 2 pairs of
    M terms.

    The paper of C_V counts windows of 110 tokens.  A matrix has no word order, so its documents are
    counted as a whole, and C_V agrees with the paper only if no document has more than 110 tokens.
    NPMI is often counted in windows of 10.  For terms that never occur together, the vectors of C_V
    have the small value of the paper, not -1; a term that never occurs scores 0.

    gensim's "c_v" drops a word as soon as one of its occurrences leaves the window, even if another
    is still inside: its values are lower if texts are longer than a window.

    References
    ----------
    .. [1] G. Bouma, "Normalized (pointwise) mutual information in collocation extraction", 2009.
    .. [2] J. H. Lau, D. Newman and T. Baldwin, "Machine reading tea leaves: automatically
       evaluating topic coherence and topic model quality", EACL 2014.
    .. [3] D. Mimno et al., "Optimizing semantic coherence in topic models", EMNLP 2011.
    .. [4] M. Roeder et al., "Exploring the space of topic coherence measures", WSDM 2015.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> X = [[1, 2, 0], [3, 1, 0], [0, 0, 1], [0, 1, 1]]
    >>> A = [[5.0, 4.0, 0.0], [0.0, 1.0, 2.0]]
    >>> sf.metrics.topic_coherence(X, A).per_topic.round(4).tolist()
    [0.415, -0.2925]
    >>> umass = sf.metrics.topic_coherence(X, terms=[[0, 1]], measure="umass")
    >>> umass.per_topic.round(4).tolist()
    [0.4055]
    >>> tokens = [["moon", "in", "orbit"], ["orbit", "of", "a", "moon"],
    ...           ["ball", "in", "goal"]]
    >>> topics = [["moon", "orbit"], ["moon", "ball"]]
    >>> result = sf.metrics.topic_coherence(texts=tokens, terms=topics,
    ...                                     measure="c_v")
    >>> result.per_topic.round(4).tolist()
    [1.0, 0.028]
    """
    score = _MEASURES[check_option(measure, "measure", tuple(_MEASURES))]
    if (components is None) == (terms is None):
        raise TypeError("expected one of components (the dictionary) and terms (of the topics).")
    if (X is None) == (texts is None):
        raise TypeError("expected one of X (a matrix of documents) and texts (their tokens).")
    if (feature_names is None) == (texts is not None and components is not None):
        when = "must be given with texts and components, and only then"
        raise TypeError(f"feature_names (the words of the columns of components) {when}.")
    components = by_name(X, A=components)["A"]
    A = None if components is None else read_matrix(components, "components")
    documents = None if X is None else read_matrix(X, "X")
    if A is None:
        topics = _read_terms(terms, None if documents is None else documents.shape[1])
    elif documents is not None:
        shape = A.shape[0], documents.shape[1]
        check_shape(A, shape, "components", "one column for each column of X")
        topics = leading_terms(A, n_terms, 2)
    else:
        names = names_of(feature_names, A.shape[1])
        topics = [[names[column] for column in topic] for topic in leading_terms(A, n_terms, 2)]
    vocabulary = list(dict.fromkeys(chain.from_iterable(topics)))
    place_of = {term: place for place, term in enumerate(vocabulary)}
    places = [[place_of[term] for term in topic] for topic in topics]
    if documents is None:
        width = None if window is None else check_integer(window, "window", 1)
        blocks: Iterable[Any] = _windows(texts, vocabulary, width)
    else:
        matrix = sp.csc_array(documents[:, vocabulary])
        occurs = (matrix.data > 0).astype(np.float64), matrix.indices, matrix.indptr
        blocks = [sp.csc_array(occurs, shape=matrix.shape)]
    # Numbers of documents with both terms of each pair; on the diagonals, with a term.
    n_documents, together = 0, [np.zeros((len(topic), len(topic))) for topic in topics]
    for block in blocks:
        n_documents += block.shape[0]
        for pairs, topic in zip(together, places, strict=True):
            columns = block[:, topic]
            pairs += (columns.T @ columns).toarray()
    if not n_documents:
        raise ValueError("texts holds no document; expected at least one.")
    scores = [score(together[k], n_documents, k, topic) for k, topic in enumerate(topics)]
    return TopicScore(float(np.mean(scores)), np.array(scores))


def _windows(texts: object, words: Sequence[str], window: int | None) -> Iterator[sp.csc_array]:
    """Yield matrices (windows x words), 1 if a window has a word; their size is bounded."""
    number_of = {nfc(word): number for number, word in enumerate(words)}
    pairs: list[tuple[Array, Array]] = []
    n_windows = n_entries = 0
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        got = type(texts).__name__
        raise TypeError(f"texts must be an iterable of sequences of tokens; got {got}.")
    for place, text in enumerate(texts):
        if isinstance(text, str):
            how = "Give map(vectorizer.build_analyzer(), texts)"
            raise TypeError(f"texts[{place}] is a str; expected a sequence of tokens. {how}.")
        try:
            numbers = np.array([number_of.get(nfc(token), -1) for token in text], dtype=np.int64)
        except TypeError as error:
            expected = "must be a sequence of tokens"
            raise TypeError(f"texts[{place}] {expected}; got {text!r:.80}.") from error
        width = len(numbers) if window is None else window
        last_window = max(len(numbers) - width, 0)
        at = np.flatnonzero(numbers >= 0)
        first = np.maximum(at - width + 1, 0)  # of the windows that hold the token
        counts = np.minimum(at, last_window) - first + 1
        skipped = np.cumsum(counts) - counts
        rows = np.arange(counts.sum()) + np.repeat(first - skipped, counts)
        pairs.append((rows + n_windows, np.repeat(numbers[at], counts)))
        n_windows += last_window + 1
        n_entries += len(rows)
        if n_entries > _ENTRIES_AT_ONCE:
            yield _together(pairs, n_windows, len(words))
            pairs, n_windows, n_entries = [], 0, 0
    if n_windows:
        yield _together(pairs, n_windows, len(words))


def _together(pairs: list[tuple[Array, Array]], n_windows: int, n_words: int) -> sp.csc_array:
    rows, words = (np.concatenate(side) for side in zip(*pairs, strict=True))
    occurs = sp.csc_array((np.ones(len(rows)), (rows, words)), shape=(n_windows, n_words))
    occurs.data[:] = 1  # a word counts once in a window
    return occurs


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
        term = f"term {short(chosen[absent[0]])} of topic {topic}"
        how = 'Leave the term out, give other documents, or use measure="npmi"'
        raise ValueError(f"{term} occurs in no document: UMass is not defined. {how}.")
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


_MEASURES = {"npmi": _npmi, "umass": _umass, "c_v": _c_v}


@complete_docstring
def topic_diversity(components: MatrixLike, *, n_terms: int = 25) -> TopicScore:
    """Return the share of different terms among the top terms of all topics.

    This is the topic diversity of [1]_: 1 if no term is a top term of two topics.

    Returns
    -------
    TopicScore
        `score`, up to 1, and `per_topic`: for each term of a topic, 1 divided by the number of
        topics that have the term, averaged over the terms.  `score` is the mean of `per_topic` if
        all topics have the same number of terms.

    References
    ----------
    .. [1] A. B. Dieng, F. J. R. Ruiz, D. M. Blei, "Topic modeling in embedding spaces", 2020.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> A = [[5.0, 4.0, 0.0], [0.0, 1.0, 2.0]]
    >>> result = sf.metrics.topic_diversity(A, n_terms=2)
    >>> result.score, result.per_topic.tolist()
    (0.75, [0.75, 0.75])
    """
    A = read_matrix(components, "components")
    topics = leading_terms(A, n_terms, 1)
    counts = np.bincount(np.concatenate(topics))
    per_topic = np.array([np.mean(1 / counts[topic]) for topic in topics])
    return TopicScore(float(np.count_nonzero(counts) / counts.sum()), per_topic)


@complete_docstring
def topic_exclusivity(
    components: MatrixLike, *, n_terms: int = 10, weight: float = 0.7
) -> TopicScore:
    r"""Return how exclusive the top terms of each topic are (FREX).

    Rows of `components` are divided by their sums.  :math:`F` is the weight of a term in the topic,
    :math:`E` its share in the column of the term; both are ranked over the terms of the topic, and
    the ranks divided by the number of terms.  The score of a term is
    :math:`(w / \mathrm{rank}(E) + (1 - w) / \mathrm{rank}(F))^{-1}` ([1]_, [2]_), the score of a
    topic the mean over its top terms.

    Parameters
    ----------
    components : array_like or sparse, shape (r, m)
        Nonnegative dictionary of two or more topics.
    weight : float, 0 to 1
        Weight w of exclusivity; that of frequency is 1 - w.

    Returns
    -------
    TopicScore
        `score`, the mean over the topics, and `per_topic`; up to 1.

    Notes
    -----
    ``exclusivity`` of the R package stm returns the sum over the top terms, `n_terms` times this
    mean.  Terms of a sparse dictionary that belong to a single topic share a rank: if there are
    many, no score reaches 1.

    References
    ----------
    .. [1] J. M. Bischof, E. M. Airoldi, "Summarizing topical content with word frequency and
       exclusivity", 2012.
    .. [2] M. E. Roberts et al., "stm: an R package for structural topic models", 2019.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> A = [[5.0, 4.0, 1.0], [1.0, 4.0, 5.0]]
    >>> sf.metrics.topic_exclusivity(A, n_terms=2).per_topic.round(4).tolist()
    [0.8333, 0.8333]
    """
    from scipy.stats import rankdata

    share = check_real(weight, "weight", maximum=1)
    A = read_matrix(components, "components")
    if A.shape[0] < 2:
        raise ValueError("components has one topic; exclusivity compares two or more.")
    topics = leading_terms(A, n_terms, 1)
    weights = shares_along(A, 1)
    totals = sums_along(weights, 0)
    totals[totals == 0] = 1.0
    per_topic = np.empty(len(topics))
    for numbers, block in row_blocks(weights):
        exclusive, frequent = (  # ranks up to 1; equal values have their mean rank
            rankdata(values, axis=1) / block.shape[1] for values in (block / totals, block)
        )
        frex = 1 / (share / exclusive + (1 - share) / frequent)
        for number, row in zip(numbers.tolist(), frex, strict=True):
            per_topic[number] = row[topics[number]].mean()
    return TopicScore(float(per_topic.mean()), per_topic)
