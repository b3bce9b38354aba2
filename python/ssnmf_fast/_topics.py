"""Tables of the terms of the largest weight per topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ._validation import check_integer

Array = npt.NDArray[Any]

__all__ = ["Topic", "Topics", "make_topics"]


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes
    ----------
    topic : int
        Number of the component.
    terms : tuple of str
        Features of the largest weight, in falling order.
    weights : tuple of float
        Their weights in the dictionary.
    shares : tuple of (label, float)
        Share of every class in the topic, summing to 1; empty for a model without classes.
    name : str
        What the topic is called; empty for a model whose topics have no names.
    """

    topic: int
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    shares: tuple[tuple[Any, float], ...] = ()
    name: str = ""

    def __str__(self) -> str:
        words = ", ".join(f"{t} {w:.3g}" for t, w in zip(self.terms, self.weights, strict=True))
        largest = sorted(self.shares, key=lambda pair: -pair[1])[:3]
        shares = ", ".join(f"{label} {share:.0%}" for label, share in largest if share > 0)
        name = f" ({self.name})" if self.name else ""
        return f"topic {self.topic}{name}{f' [{shares}]' if shares else ''}: {words}"


class Topics(Sequence[Topic]):
    """Topics of a model, in the order of its components."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        self._topics = tuple(topics)

    def __len__(self) -> int:
        return len(self._topics)

    @overload
    def __getitem__(self, index: int) -> Topic: ...
    @overload
    def __getitem__(self, index: slice) -> Topics: ...
    def __getitem__(self, index: int | slice) -> Topic | Topics:
        if isinstance(index, slice):
            return Topics(self._topics[index])
        return self._topics[index]

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics)

    def __str__(self) -> str:
        return "\n".join(map(str, self._topics))

    def __repr__(self) -> str:
        return str(self)

    def named(self, names: Sequence[str]) -> Topics:
        """Return the topics with a name each."""
        pairs = zip(self._topics, names, strict=True)
        return Topics([replace(topic, name=name) for topic, name in pairs])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary (topic, rank, term, weight) per term; the first rank is 1."""
        return [
            {"topic": t.topic, "rank": rank, "term": term, "weight": weight}
            for t in self._topics
            for rank, (term, weight) in enumerate(zip(t.terms, t.weights, strict=True), start=1)
        ]

    def to_frame(self) -> Any:
        """Return :meth:`to_rows` as a pandas DataFrame (needs pandas)."""
        return _pandas().DataFrame(self.to_rows(), columns=["topic", "rank", "term", "weight"])

    def shares_to_frame(self) -> Any:
        """Return the shares of the classes as a DataFrame, topics by classes (needs pandas)."""
        return _pandas().DataFrame(
            [dict(t.shares) for t in self._topics], index=[t.topic for t in self._topics]
        )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame needs pandas; install it, or use to_rows.") from error
    return pandas


def make_topics(
    components: Array,
    feature_names: Any = None,
    n_terms: int = 10,
    classes: Array | None = None,
    class_components: Array | None = None,
) -> Topics:
    """Return the topics of a dictionary.

    Parameters
    ----------
    components : ndarray, shape (r, m)
        Dictionary A.
    feature_names : array_like of str, shape (m,), optional
        Names of the features; None stands for "x0", "x1", ...
    n_terms : int
        Number of terms per topic, at least 1.
    classes, class_components : ndarray, shapes (k,) and (r, k), optional
        Classes, and the components over them.

    Returns
    -------
    Topics

    Raises
    ------
    ValueError
        If there is not one name for each feature, or n_terms < 1.
    """
    count = min(check_integer(n_terms, "n_terms", 1), components.shape[1])
    names = _names(feature_names, components.shape[1])
    order = np.argsort(-components, axis=1, kind="stable")[:, :count]
    shares = _shares(len(components), classes, class_components)
    return Topics(
        [
            Topic(
                topic,
                tuple(names[i] for i in best),
                tuple(float(row[i]) for i in best),
                shares[topic],
            )
            for topic, (row, best) in enumerate(zip(components, order, strict=True))
        ]
    )


def _names(feature_names: Any, n_features: int) -> list[str]:
    if feature_names is None:
        return [f"x{i}" for i in range(n_features)]
    names = [str(name) for name in feature_names]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names holds {len(names)} names; needed is one for each of the {n_features} "
            "features."
        )
    return names


def _shares(
    n_topics: int, classes: Array | None, class_components: Array | None
) -> list[tuple[tuple[Any, float], ...]]:
    if classes is None or class_components is None:
        return [()] * n_topics
    totals = class_components.sum(axis=1, keepdims=True)
    shares = np.divide(
        class_components, totals, out=np.zeros_like(class_components), where=totals > 0
    )
    labels = classes.tolist()
    return [tuple(zip(labels, row, strict=True)) for row in shares.tolist()]
