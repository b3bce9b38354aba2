"""Splitting and merging of topics, and trees of topics and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LossName, MatrixLike, Seed
from .._common.locks import cached_property
from .._common.optional import data_frame
from .._common.text import listed, nfc, short
from .._data.arrays import refuse_on_disk
from .._data.border import CleanMatrix, by_name, check_integer
from .._data.threads import one_blas_thread
from .._models.factorize import factorize
from .._models.represent import objective, represent
from .._solver.build import as_weights
from .._solver.starts import INITS
from .._solver.weights import WeightsLike
from .._topics import Topics, amounts, divide_by_sums, make_topics, names_of, real_terms
from ._base import FactorizationBase
from ._docstrings import complete_methods
from ._nmf import NMF

SEPARATOR = "/"  # between the names of a topic and of its part
_LIFT = 1e-2  # added to coefficients, relative to their mean: zeros at the start would stay zero
_OF_PARTS = ("loss", "max_iter", "n_threads", "random_state", "solver", "tol")


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
        return data_frame(self.to_rows(n_terms), ", or use to_rows")

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


def split_topic(
    model: FactorizationBase,
    topic: int | str,
    n: int,
    X: MatrixLike,
    *,
    X_weights: WeightsLike = None,
) -> NMF:
    """Split a topic of a model into several, and refit all topics.

    The parts start from a factorization of `X` weighted by the shares of the topic.

    Parameters
    ----------
    model : fitted estimator
        With topics and a `loss`, such as :class:`NMF` or :class:`TopicSupervisedNMF`.
    topic : int or str
        Number of the topic or, where topics have names, its name.
    n : int
        Number of parts, at least 2.
    X : array_like or scipy.sparse, shape (n_samples, m)
        Samples to learn the parts from, usually those of the fit.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of each entry.

    Returns
    -------
    NMF
        Fitted, with the parameters of the model, except an `init` of arrays; without penalties, it
        explains `X` at least as well.  The parts replace the topic: in `topic_names_`, those of
        "3" are "3/0", "3/1" and so on.

    Raises
    ------
    ValueError, TypeError
        If the model has no topics, the topic is unknown or one of `fixed_components`, the fit had
        covariates, or data are invalid.

    Notes
    -----
    Labels are not used.  To predict, fit a classifier with ``init=(S, A)`` of the result.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.kron(np.eye(3), np.ones((4, 3)))  # three blocks, two topics
    >>> model = sf.NMF(2, random_state=0).fit(X)
    >>> largest = int(model.topic_proportions(X).sum(axis=0).argmax())
    >>> parts = sf.trees.split_topic(model, largest, 2, X)
    >>> bool(parts.reconstruction_err_ < 1e-6 < model.reconstruction_err_)
    True
    """
    check_topics(model)
    place, count = _place(model, topic, "split_topic"), check_integer(n, "n", 2)
    counts = [count if k == place else 1 for k in range(model.n_components_)]
    return divided(model, counts, X, X_weights)


def merge_topics(model: FactorizationBase, topics: Sequence[int | str]) -> NMF:
    """Merge topics of a model into their sum, weighted by their sizes in the fit.

    Parameters
    ----------
    model : fitted estimator
        As in :func:`split_topic`, with its `representation_`.
    topics : sequence of int or str
        Numbers or names of the topics, at least two.

    Returns
    -------
    NMF
        With the parameters of the model.  The sum replaces the first of the topics.  In
        `topic_names_`, all parts of "3" become "3" again; other topics are joined like "0+2".

    Raises
    ------
    ValueError, TypeError
        If the model has no topics or no `representation_`, topics are unknown, repeated or among
        `fixed_components`, or the fit had covariates.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.kron(np.eye(3), np.ones((4, 3)))
    >>> model = sf.NMF(3, random_state=0).fit(X)
    >>> print(sf.trees.merge_topics(model, [0, 2]).topic_names_)
    ['0+2' '1']
    """
    check_topics(model)
    if isinstance(topics, str) or not isinstance(topics, (Sequence, np.ndarray)):
        raise TypeError(f"topics must be a sequence of numbers or names; got {short(topics)}.")
    places = sorted(_place(model, topic, "merge_topics") for topic in topics)
    if len(places) < 2 or len(set(places)) < len(places):
        raise ValueError(f"topics is {list(topics)}; expected at least two different topics.")
    S, names = representation_of(model), names_of_topics(model)
    first, *others = places
    group = np.arange(len(names))
    group[others] = first
    group = np.unique(group, return_inverse=True)[1]
    S, A = grouped(S, model.components_, group, S)
    names[first] = joined([names[place] for place in places], names)
    rest = np.delete(np.array(names), others)
    merged = _fitted(model, rest.tolist(), [group == k for k in range(len(rest))])
    vars(merged).update(components_=A, representation_=S, objective_=[], n_iter_=0)
    return merged


def divided(
    model: FactorizationBase,
    counts: Sequence[int],
    X: MatrixLike,
    X_weights: WeightsLike = None,
    level: int = 0,
) -> NMF:
    """Return a model in which each topic is divided into the given number of parts."""
    X_weights = by_name(X, X_weights=X_weights)["X_weights"]
    X = model._checked(X)
    refuse_on_disk(X, "the splitting of topics")
    arguments = {"loss": model.loss, "X_weights": X_weights, "n_threads": model.n_threads}
    S, A, X = model._represent(X, X_weights), model.components_, CleanMatrix(X)
    names = []
    for name, count in zip(names_of_topics(model), counts, strict=True):
        above = name + f"{SEPARATOR}0" * max(level - 1 - name.count(SEPARATOR), 0)
        parts_of = [f"{above}{SEPARATOR}{number}" for number in range(count)]
        names += parts_of if count > 1 else [name]
    whole = np.repeat(np.arange(len(A)), counts)
    result = _fitted(model, names, whole[:, None] == np.arange(len(A)))
    options, weights = result._arguments(), as_weights(X_weights, "X_weights")
    of_parts = {name: options[name] for name in _OF_PARTS}
    shares, rows = divide_by_sums(amounts(S, A)), np.split(A, len(A))
    for topic, count in enumerate(counts):
        if count > 1:  # samples are weighted by their shares of the topic
            of = shares[:, topic] if shares[:, topic].any() else np.ones(len(S))
            weighed = weights.with_rows(of, "X_weights")
            if result.A_support is not None:
                of_parts["A_support"] = np.asarray(result.A_support)[whole == topic]
            rows[topic] = factorize(X, n_components=count, X_weights=weighed, **of_parts).A
    parts = np.vstack(rows)
    best = represent(X, parts, **arguments)
    starts = [(best + _LIFT * best.mean(axis=0), parts), (best, parts)]
    explained = objective(X, S, A, **arguments)
    start = next((s for s in starts if objective(X, *s, **arguments) <= explained), None)
    if start is None:  # the same product S A, with topics cut by features
        totals = np.zeros((len(A), parts.shape[1]))
        np.add.at(totals, whole, parts)
        totals, even = totals[whole], 1 / np.bincount(whole)[whole, None]
        cuts = np.where(totals > 0, parts / np.where(totals > 0, totals, 1), even)
        start = S[:, whole], A[whole] * cuts.astype(parts.dtype)
    options |= {"init": start, "n_starts": 1, "random_state": None}
    result._keep(factorize(X, X_weights=X_weights, **options), topic_names_=result.topic_names_)
    return result


@one_blas_thread()
def grouped(S_of_fit: Array, A: Array, group: Array, S: Array) -> tuple[Array, Array]:
    """Return coefficients S and components A of topics merged by `group`, (r,).

    Components are means weighted by coefficients in the fit; each explains as much as its topics.
    """
    G = np.eye(int(group.max()) + 1)[:, group]
    weights = G * S_of_fit.sum(axis=0, dtype=np.float64)
    weights += G * ~(weights > 0).any(axis=1)[:, None]  # equal weights if all are 0
    means = (weights / weights.sum(axis=1, keepdims=True)) @ A
    alone = G.sum(axis=1)[group] == 1
    means[group[alone]] = A[alone]
    means = np.asarray(means, dtype=A.dtype)
    sizes = means.sum(axis=1, dtype=np.float64)
    sums = amounts(S, A) @ G.T / np.where(sizes > 0, sizes, 1)
    sums[:, group[alone]] = S[:, alone]
    return np.asarray(sums, dtype=S.dtype), means


def joined(parts: list[str], names: list[str]) -> str:
    """Return the name of merged topics: that of their parent if these are all its parts."""
    paths = [name.split(SEPARATOR) for name in parts]
    depth = 0
    while len({tuple(path[: depth + 1]) for path in paths}) == 1:
        depth += 1
    shared = SEPARATOR.join(paths[0][:depth])
    if shared and {n for n in names if n.startswith(shared + SEPARATOR)} == set(parts):
        return shared
    last = "+".join(".".join(path[depth:]) for path in paths)
    return f"{shared}{SEPARATOR}{last}" if shared else last


def check_topics(model: object) -> None:
    """Raise TypeError or ValueError unless a model is fitted, and has topics and a loss."""
    if not isinstance(model, FactorizationBase) or not hasattr(model, "loss"):
        kind = "a fitted estimator with topics and a loss, such as NMF"
        raise TypeError(f"model must be {kind}; got {type(model).__name__}.")
    check_is_fitted(model, "components_")


def names_of_topics(model: FactorizationBase) -> list[str]:
    return [topic.name or str(topic.topic) for topic in model.topics(n_terms=1)]


def representation_of(model: FactorizationBase) -> Array:
    if not hasattr(model, "representation_"):
        name = type(model).__name__
        raise ValueError(f"This {name} has no representation_ (as after partial_fit); call fit.")
    return np.asarray(model.representation_)


def _place(model: FactorizationBase, topic: int | str, function: str) -> int:
    """Return the number of a topic that a function may change."""
    names, fixed = names_of_topics(model), getattr(model, "fixed_components", None)
    if isinstance(topic, str):
        forms = [nfc(name) for name in names]
        if nfc(topic) not in forms:
            raise ValueError(f"Unknown topic {short(topic)}; topics are {listed(names)}.")
        topic = forms.index(nfc(topic))
    place, n = check_integer(topic, "topic", 0), len(names)
    if place >= n:
        raise ValueError(f"topic is {place}; the model has {n} topics, numbered from 0.")
    if getattr(model, "n_fixed_", 0):
        raise ValueError(f"{function} needs a fit without covariates, which it cannot keep.")
    if fixed is not None and place < np.shape(fixed)[0]:
        raise ValueError(f"{function} cannot change topic {place}, one of fixed_components.")
    return place


def _fitted(model: FactorizationBase, names: list[str], whole: Any) -> NMF:
    """Return an NMF with the parameters of a model; `whole` (new, old): which came from which."""
    new, given = NMF(), model.get_params(deep=False)
    given |= {"n_components": len(names), "tol": model._tol()}
    if not isinstance(given.get("init"), str) or given["init"] not in INITS:
        given["init"] = "auto"
    if given.get("A_support") is not None:
        given["A_support"] = (np.asarray(whole, float) @ np.asarray(given["A_support"], float)) > 0
    if isinstance(given.get("penalties"), Mapping):  # without those of labels
        given["penalties"] = {k: one for k, one in given["penalties"].items() if k in ("S", "A")}
    new.set_params(**{name: given[name] for name in new.get_params() if name in given})
    kept = ("n_features_in_", "feature_names_in_", "sample_penalties_")
    seen = {name: vars(model)[name] for name in kept if name in vars(model)}
    vars(new).update(topic_names_=np.array(names), **seen)
    return new
