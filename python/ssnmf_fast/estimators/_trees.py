"""Trees of topics and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, LossName, MatrixLike, Seed
from .._common.optional import TABLES_HINT, require_package
from .._common.text import short
from .._data.border import check_integer
from .._data.threads import one_blas_thread
from .._solver.weights import WeightsLike
from .._topics import Topics, amounts, divide_by_sums, make_topics, names_of, real_terms
from ._docstrings import complete_methods
from ._nmf import NMF, SEPARATOR, check_topics, divided, grouped, names_of_topics, representation_of


@dataclass(frozen=True)
class TopicNode:
    """A topic of a tree.

    Attributes
    ----------
    name : str
        Its path: the name of its parent, "/" and its own.
    parent : str or None
        Name of its parent; None at the top.
    level : int
        0 at the top.
    share : float
        Share of the samples that it explains, the sum of the shares of its parts.
    components : ndarray, shape (m,)
        Its weights of the features; for a topic with parts, their mean weighted by their sizes.
    """

    name: str
    parent: str | None
    level: int
    share: float
    components: Array = field(repr=False, compare=False)


@dataclass(frozen=True)
class TopicTree:
    """A tree of topics: those of a fitted model, and sums of these.

    Parameters
    ----------
    model : NMF or other fitted estimator
        With names of topics such as "3/0", a part of "3", as returned by :func:`topic_tree` and
        :func:`split_topic`.  Save ``tree.model``; ``TopicTree(load(path))`` restores the tree.
    feature_names : array_like of str, shape (m,), optional
        Names of the features.  None: those seen in fit, or "x0", "x1", ...
    """

    model: Any
    feature_names: npt.ArrayLike | None = None
    _of_methods: ClassVar = """
    Parameters
    ----------
    level : int
        0 for the top, -1 for the last; topics without parts belong to all levels below too.
    """

    def __post_init__(self) -> None:
        check_topics(self.model)
        representation_of(self.model)
        whole = {path[:end] for path in self._paths for end in range(1, len(path))}
        if both := sorted(SEPARATOR.join(path) for path in whole & set(self._paths)):
            topic = short(both[0])
            raise ValueError(f"model has topic {topic} and also subtopics of it; merge them first.")
        names = names_of(self.feature_names, self.model.components_.shape[1], self.model)
        object.__setattr__(self, "feature_names", tuple(names))

    @cached_property
    def _paths(self) -> list[tuple[str, ...]]:
        return [tuple(name.split(SEPARATOR)) for name in names_of_topics(self.model)]

    @property
    def depth(self) -> int:
        """Number of levels."""
        return max(map(len, self._paths))

    def _groups(self, level: int) -> tuple[list[str], Array]:
        cut = [SEPARATOR.join(path[: level + 1]) for path in self._paths]
        names = list(dict.fromkeys(cut))
        return names, np.array([names.index(name) for name in cut])

    @cached_property
    def nodes(self) -> tuple[TopicNode, ...]:
        """All topics, each followed by its parts."""
        nodes: dict[str, TopicNode] = {}
        for level in range(self.depth):
            names, group = self._groups(level)
            S, A = representation_of(self.model), self.model.components_
            rows = grouped(S, A, group, S[:0])[1]
            sums = np.bincount(group, amounts(S, A).sum(axis=0))
            shares = divide_by_sums(sums, axis=0).tolist()
            for name, share, row in zip(names, shares, rows, strict=True):
                parent = name.rpartition(SEPARATOR)[0] or None
                depth = name.count(SEPARATOR)
                nodes.setdefault(name, TopicNode(name, parent, depth, share, row))
        ends = [(path, end) for path in self._paths for end in range(1, len(path) + 1)]
        ordered = dict.fromkeys(SEPARATOR.join(path[:end]) for path, end in ends)
        return tuple(nodes[name] for name in ordered)

    def topics(self, level: int = -1, n_terms: int = 10) -> Topics:
        """Return the topics of a level, with their names and sizes."""
        names, _ = self._groups(place_of_level(level, self.depth))
        nodes = {node.name: node for node in self.nodes}
        rows = np.array([nodes[name].components for name in names])
        topics = make_topics(rows, self.feature_names, n_terms).named(names)
        return topics.with_sizes(np.array([nodes[name].share for name in names]))

    def transform(self, X: MatrixLike, level: int = -1) -> Array:
        """Represent samples by the topics of a level.

        Returns
        -------
        ndarray, shape (n_samples, topics of the level)
            Coefficients; a topic explains the sum of what its parts explain.
        """
        _, group = self._groups(place_of_level(level, self.depth))
        S, A = self.model.transform(X), self.model.components_
        return grouped(representation_of(self.model), A, group, S)[0]

    def topic_proportions(self, X: MatrixLike, level: int = -1) -> Array:
        """Return the share of each topic of a level in each sample.

        Returns
        -------
        ndarray, shape (n_samples, topics of the level)
            As :meth:`NMF.topic_proportions`; the share of a topic is the sum of those of its parts.
        """
        names, group = self._groups(place_of_level(level, self.depth))
        with one_blas_thread():
            return np.asarray(self.model.topic_proportions(X) @ np.eye(len(names))[group])

    def to_rows(self, n_terms: int = 5) -> list[dict[str, Any]]:
        """Return a list with a dictionary (name, parent, level, share, terms) for each topic."""
        rows = np.array([node.components for node in self.nodes])
        topics = make_topics(rows, self.feature_names, n_terms)
        return [
            {"name": n.name, "parent": n.parent, "level": n.level, "share": n.share}
            | {"terms": ", ".join(term for term, _ in real_terms(topic))}
            for n, topic in zip(self.nodes, topics, strict=True)
        ]

    def to_frame(self, n_terms: int = 5) -> Any:
        """Return :meth:`to_rows` as a pandas DataFrame (needs pandas)."""
        with require_package("pandas", f"{TABLES_HINT}, or use to_rows"):
            import pandas
        return pandas.DataFrame(self.to_rows(n_terms))

    def __str__(self) -> str:
        return "\n".join(
            f"{'    ' * row['level']}{row['name']} {row['share']:.0%}: {row['terms'] or 'not used'}"
            for row in self.to_rows()
        )


complete_methods(TopicTree)


def topic_tree(
    X: MatrixLike,
    levels: Sequence[int],
    *,
    loss: LossName | float = "frobenius",
    X_weights: WeightsLike = None,
    feature_names: npt.ArrayLike | None = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Seed = None,
    n_threads: int | None = None,
) -> TopicTree:
    """Learn topics, their parts, the parts of these and so on.

    The first level is fitted by :class:`NMF`.  Then all topics of a level are split, as in
    :func:`split_topic`, and refitted together.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n_samples, m)
        Nonnegative samples; NaN in a dense X means missing.
    levels : sequence of int
        Increasing numbers of topics, such as ``[5, 20]``; larger topics get more parts.
    loss, X_weights, max_iter, tol, random_state, n_threads
        As in :class:`NMF`.
    feature_names : array_like of str, shape (m,), optional
        Names of the features.

    Returns
    -------
    TopicTree

    Raises
    ------
    ValueError, TypeError
        If data or levels are invalid.

    See Also
    --------
    HierarchicalClassifier : A tree of labels.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.kron(np.eye(3), np.ones((4, 3)))
    >>> tree = sf.trees.topic_tree(X, [2, 3], feature_names=list("abcdefghi"),
    ...                            random_state=0)
    >>> [len(tree.topics(level)) for level in range(tree.depth)]
    [2, 3]
    """
    if isinstance(levels, (str, bytes)) or not isinstance(levels, (Sequence, np.ndarray)):
        raise TypeError(f"levels must be a sequence, such as [5, 20]; got {short(levels)}.")
    numbers = [check_integer(number, "levels", 1) for number in levels]
    if not numbers or numbers != sorted(set(numbers)):
        raise ValueError(f"levels is {list(levels)}; expected increasing numbers.")
    stopping: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "n_threads": n_threads}
    model = NMF(numbers[0], loss=loss, random_state=random_state, **stopping)
    model.fit(X, X_weights=X_weights)
    for level, total in enumerate(numbers[1:], start=1):
        sizes = amounts(model.representation_, model.components_).sum(axis=0)
        quotas = divide_by_sums(sizes, axis=0) * (total - len(sizes))
        counts = np.floor(quotas).astype(np.int64)  # beyond one for each topic
        left = total - len(sizes) - int(counts.sum())
        counts[np.argsort(counts - quotas, kind="stable")[:left]] += 1
        model = divided(model, (counts + 1).tolist(), X, X_weights, level)
    return TopicTree(model, feature_names)


def place_of_level(level: int, depth: int) -> int:
    """Return the number of a level; negative levels count from the last."""
    level = check_integer(level, "level", -depth)
    if level >= depth:
        raise ValueError(f"level is {level}; there are {depth} levels, numbered from 0.")
    return level % depth
