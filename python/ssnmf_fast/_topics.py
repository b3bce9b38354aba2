"""Topics as tables of the terms with the largest weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
import scipy.sparse as sp

from ._common.arrays import Array, Matrix
from ._common.optional import data_frame
from ._data.border import check_integer
from ._data.csr_file import CsrFile

# Least share of a class that stands out: the second, or twice chance, but at least the first.
_STANDS_OUT = (0.2, 0.6)
_COLUMNS = ["topic", "name", "rank", "term", "weight"]
_TERMS_IN_A_NAME = 3
_NEGLIGIBLE = 1e-6  # relative to the largest weight of a topic


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes
    ----------
    topic : int
        Number of the component.
    terms : tuple of str
        Features with the largest weights, in decreasing order; empty if it explains nothing.
    weights : tuple of float
        Their weights in the dictionary.
    shares : tuple of (label, float)
        Share of each class in the topic, with sum 1; empty for a model without classes.
    name : str
        Name of the topic; empty for a model without names of topics.
    size : float or None
        Share of the data that the topic explains; None if unknown.
    """

    topic: int
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    shares: tuple[tuple[Any, float], ...] = ()
    name: str = ""
    size: float | None = None

    @property
    def leading(self) -> tuple[tuple[Any, float], ...]:
        """At most two main classes of the topic, and their shares.

        Shares are at least 0.6 or, with four or more classes, twice chance and at least 0.2.
        """
        low, high = _STANDS_OUT
        least = min(high, max(low, 2 / max(len(self.shares), 1)))
        largest = sorted(self.shares, key=lambda pair: -pair[1])[:2]
        return tuple(pair for pair in largest if pair[1] >= least)

    def __str__(self) -> str:
        head = f"topic {self.topic} ({self.name})" if self.name else f"topic {self.topic}"
        if not self.terms:
            return f"{head}: not used"
        words = ", ".join(f"{t} {w:.3g}" for t, w in zip(self.terms, self.weights, strict=True))
        largest = sorted(self.shares, key=lambda pair: -pair[1])[:3]
        shares = ", ".join(f"{label} {share:.0%}" for label, share in largest if share > 0)
        return f"{head} [{shares}]: {words}" if shares else f"{head}: {words}"


def real_terms(topic: Topic) -> list[tuple[str, float]]:
    """Return terms and weights of a topic, without negligible ones."""
    least = _NEGLIGIBLE * max(topic.weights, default=0.0)
    pairs = zip(topic.terms, topic.weights, strict=True)
    return [(term, weight) for term, weight in pairs if weight > least]


def numbered_names(topics: Iterable[Topic]) -> list[str]:
    """Return a distinct name for each topic: its number and its terms."""
    terms = [(topic.topic, ", ".join(term for term, _ in real_terms(topic))) for topic in topics]
    return [f"{number}: {listed or '(no terms)'}" for number, listed in terms]


class Topics(tuple[Topic, ...]):
    """Topics of a model, in the order of its components.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2]])
    >>> terms = ["ball", "goal", "moon", "orbit"]
    >>> topics = sf.NMF(2, random_state=0).fit(X).topics(terms)
    >>> topics.names
    ['ball_goal', 'orbit_moon']
    >>> topics.named(["sport", "space"]).names
    ['sport', 'space']
    """

    @overload
    def __getitem__(self, index: SupportsIndex) -> Topic: ...
    @overload
    def __getitem__(self, index: slice) -> Topics: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Topic | Topics:
        items = super().__getitem__(index)
        return items if isinstance(items, Topic) else Topics(items)

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    @property
    def names(self) -> list[str]:
        """Names of the topics: from the model, from :meth:`named`, or their first three terms.

        A topic without terms is "topic3"; the number of the topic is added to repeated names.
        """
        names: list[str] = []
        for topic in self:
            terms = "_".join(term for term, _ in real_terms(topic)[:_TERMS_IN_A_NAME])
            name = topic.name or terms or f"topic{topic.topic}"
            while name in names:
                name = f"{name}_{topic.topic}"
            names.append(name)
        return names

    def named(self, names: Sequence[str]) -> Topics:
        """Return the topics with these names."""
        return Topics([replace(t, name=name) for t, name in zip(self, names, strict=True)])

    def with_shares(self, classes: Sequence[Any], class_components: Array) -> Topics:
        """Return the topics with shares of classes: the rows of (r, k) divided by their sums."""
        rows = zip(self, divide_by_sums(class_components).tolist(), strict=True)
        return Topics([replace(t, shares=tuple(zip(classes, row, strict=True))) for t, row in rows])

    def with_sizes(self, weights: Array) -> Topics:
        """Return the topics with sizes: the weights, (r,), divided by their sum."""
        sizes = zip(self, divide_by_sums(weights, axis=0).tolist(), strict=True)
        return Topics([replace(topic, size=size) for topic, size in sizes])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per term: topic, name, rank, term and weight; ranks begin at 1."""
        return [
            {"topic": t.topic, "name": name, "rank": rank, "term": term, "weight": weight}
            for t, name in zip(self, self.names, strict=True)
            for rank, (term, weight) in enumerate(zip(t.terms, t.weights, strict=True), start=1)
        ]

    def to_frame(self) -> Any:
        """Return :meth:`to_rows` as a pandas DataFrame (needs pandas).

        Its ``pivot(index="rank", columns="name", values="term")`` has a column for each topic.
        """
        return data_frame(self.to_rows(), ", or use to_rows", columns=_COLUMNS)

    def shares_to_frame(self) -> Any:
        """Return the shares of the classes as a DataFrame, topics by classes (needs pandas)."""
        shares, numbers = [dict(t.shares) for t in self], [t.topic for t in self]
        return data_frame(shares, ", or use to_rows", index=numbers)


Row = TypeVar("Row")


class Records(list[Row]):
    """A list of tuples or dictionaries, and the names of their columns if it may be empty."""

    def __init__(self, rows: Iterable[Row] = (), columns: Sequence[str] | None = None) -> None:
        super().__init__(rows)
        self._columns = columns

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per tuple (needs pandas)."""
        return data_frame(self, columns=self._columns)


def make_topics(
    components: Array,
    feature_names: object = None,
    n_terms: int = 10,
    classes: Array | None = None,
    class_components: Array | None = None,
    active: Array | None = None,
) -> Topics:
    """Return the topics of a dictionary, (r, m), with `n_terms` terms each.

    `class_components` (r, k) are the weights of the `classes` (k,) in the components.  Components
    that are not `active` (r,) explain nothing, and get no terms.
    """
    count = min(check_integer(n_terms, "n_terms", 1), components.shape[1])
    names, described = names_of(feature_names, components.shape[1]), []
    order = np.argsort(-components, axis=1, kind="stable")[:, :count]
    for topic, (row, best) in enumerate(zip(components, order, strict=True)):
        used = best if active is None or active[topic] else best[:0]
        terms = tuple(names[i] for i in used)
        described.append(Topic(topic, terms, tuple(float(row[i]) for i in used)))
    topics = Topics(described)
    if classes is None or class_components is None:
        return topics
    return topics.with_shares(classes.tolist(), class_components)


def amounts(S: Array, A: Array) -> Array:
    """Return how much each topic explains of each sample, (n, r): S times the row sums of A."""
    return np.asarray(np.asarray(S, dtype=np.float64) * A.sum(axis=1, dtype=np.float64))


def topic_shares(S: Array, A: Array) -> Array:
    return divide_by_sums(amounts(S, A))


def class_means(shares: Array, indicators: Matrix, weight: Array | None = None) -> Array:
    """Return the mean of the :func:`topic_shares` (n, r) over the samples of each class, (r, k).

    `indicators` (n, k) are 1 where a sample has a class; a sample with several is split evenly
    between them.  A class without samples has zeros.  `weight` (n,) are weights of the samples.
    """
    members = sp.csr_array(indicators, dtype=np.float64, copy=True)
    members.eliminate_zeros()
    sizes = members.sum(axis=1) if weight is None else members.sum(axis=1) / weight
    members.data /= np.repeat(sizes, np.diff(members.indptr))
    sums = np.asarray((members.T @ shares).T)
    counts = members.sum(axis=0)
    return np.asarray(np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0))


def names_of(feature_names: Any, n_features: int, model: Any = None) -> list[str]:
    """Return one name for each feature: as given, of the fit of a model, or "x0", "x1", ..."""
    seen = getattr(model, "feature_names_in_", None)
    choices = feature_names, getattr(model, "feature_names", None), seen
    if (feature_names := next((names for names in choices if names is not None), None)) is None:
        return [f"x{i}" for i in range(n_features)]
    if isinstance(feature_names, Mapping):  # such as `vocabulary_`, in no order of the columns
        got = f"got {type(feature_names).__name__}. Give vectorizer.get_feature_names_out()"
        raise TypeError(f"feature_names must be a sequence of names; {got}.")
    names = [str(name) for name in feature_names]
    if len(names) != n_features:
        expected = f"expected one for each of the {n_features} features"
        raise ValueError(f"feature_names holds {len(names)} names; {expected}.")
    if seen is not None and names != list(seen) and sorted(names) == sorted(seen):
        how = "leave it out, or give the names in the order of the columns"
        raise ValueError(f"feature_names has the names of the fit in another order; {how}.")
    return names


def divide_by_sums(values: Array, axis: int = 1) -> Array:
    """Divide numbers >= 0 by their sums along an axis; zeros stay zeros."""
    values = np.asarray(values, dtype=np.float64)
    largest = values.max(axis=axis, keepdims=True, initial=0.0)
    # By the largest first: sums can neither overflow nor lose digits.
    values = values / np.where(largest > 0, largest, 1)
    totals = values.sum(axis=axis, keepdims=True)
    return np.asarray(values / np.where(totals > 0, totals, 1))


def arrays_for_pyldavis(
    X: Matrix | CsrFile, shares: Array, A: Array, vocabulary: list[str]
) -> dict[str, Any]:
    """Return arguments of ``pyLDAvis.prepare`` for documents (n, m) that have words and topics."""
    blocks = X.blocks() if isinstance(X, CsrFile) else [(slice(len(shares)), X)]
    masks, lengths, frequency = [], [], np.zeros(A.shape[1])
    for rows, block in blocks:
        values = block if sp.issparse(block) else np.nan_to_num(block)
        words = np.asarray(values.sum(axis=1, dtype=np.float64)).ravel()
        mask = (words > 0) & shares[rows].any(axis=1)
        frequency += mask.astype(np.float64) @ values
        masks.append(mask)
        lengths.append(words[mask])
    documents = np.concatenate(masks)
    if not documents.any():
        raise ValueError("No topic explains any document of X. Give documents with known words.")
    parts = (divide_by_sums(values) for values in (A, shares[documents]))
    topics, mixtures = (divide_by_sums(np.maximum(part, 1e-12)) for part in parts)  # for logarithms
    return {
        "topic_term_dists": topics,
        "doc_topic_dists": mixtures,
        "doc_lengths": np.concatenate(lengths),
        "vocab": vocabulary,
        "term_frequency": frequency,
    }


def count_copies(components: Array, cosine: float) -> int:
    """Return the number of rows that are similar to an earlier row, up to scale."""
    rows = components.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    return int(np.tril(rows @ rows.T > cosine, -1).any(axis=1).sum())
