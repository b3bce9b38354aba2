"""Functions that split one topic into several, and merge several into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, MatrixLike
from .._common.text import listed, nfc, short
from .._data.arrays import refuse_on_disk
from .._data.border import CleanMatrix, check_integer
from .._data.threads import one_blas_thread
from .._models.factorize import factorize
from .._models.represent import objective, represent
from .._solver.build import as_weights
from .._solver.weights import WeightsLike
from .._topics import amounts, topic_shares
from ._base import FactorizationBase
from ._nmf import NMF

SEPARATOR = "/"  # between the names of a topic and of its part
_LIFT = 1e-2  # of a mean coefficient: a coefficient that is zero at the start would stay zero
_OF_FITS = ("loss", "max_iter", "n_threads", "random_state", "solver", "tol")


def split_topic(
    model: FactorizationBase,
    topic: int | str,
    n: int,
    X: MatrixLike,
    *,
    X_weights: WeightsLike = None,
) -> NMF:
    """Split one topic of a model into several, which all topics are then fitted with.

    The parts begin as a factorization of `X` weighted by the shares of the topic.  The result
    explains `X` at least as well as `model`.

    Parameters
    ----------
    model : fitted estimator
        With topics and a `loss`, such as :class:`NMF` or :class:`TopicSupervisedNMF`.
    topic : int or str
        Number of the topic or, where topics have names, its name.
    n : int
        Number of parts, at least 2.
    X : array_like or scipy.sparse, shape (n_samples, m)
        Samples to learn the parts from, as a rule those of the fit.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of every entry.

    Returns
    -------
    NMF
        Fitted, with parameters of the model.  The parts take the place of the topic, and
        `topic_names_` holds the names of all topics: the parts of "3" are "3/0", "3/1" and so on.

    Raises
    ------
    ValueError, TypeError
        For a model without topics, an unknown topic, or bad data.

    Notes
    -----
    Labels play no part: to predict, fit a classifier with ``init=(S, A)`` of the result.

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
    place, count = _place(model, topic), check_integer(n, "n", 2)
    counts = [count if k == place else 1 for k in range(model.n_components_)]
    return divided(model, counts, X, X_weights)


def merge_topics(model: FactorizationBase, topics: Sequence[int | str]) -> NMF:
    """Make several topics of a model one: their sum, weighted by their sizes in the fit.

    Parameters
    ----------
    model : fitted estimator
        As in :func:`split_topic`, with its `representation_`.
    topics : sequence of int or str
        Numbers or names of the topics, at least two.

    Returns
    -------
    NMF
        With parameters of the model.  The sum takes the place of the first of the topics.  In
        `topic_names_` all parts of "3" become "3" again, and other topics are joined as "0+2".

    Raises
    ------
    ValueError, TypeError
        For a model without topics or `representation_`, topics that are unknown or named twice.

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
    places = sorted(_place(model, topic) for topic in topics)
    if len(places) < 2 or len(set(places)) < len(places):
        raise ValueError(f"topics is {list(topics)}; expected at least two different topics.")
    S, names = representation_of(model), names_of_topics(model)
    first, *others = places
    group = np.arange(len(names))
    group[others] = first
    group = np.unique(group, return_inverse=True)[1]
    A = components_of_groups(S, model.components_, group)
    S = representation_by_groups(S, model.components_, group, A)
    names[first] = joined([names[place] for place in places], names)
    kept = np.delete(np.array(names), others)
    return _fitted(model, kept.tolist(), components_=A, representation_=S, objective_=[], n_iter_=0)


def divided(
    model: FactorizationBase,
    counts: Sequence[int],
    X: MatrixLike,
    X_weights: WeightsLike = None,
    level: int = 0,
) -> NMF:
    """Return a model in which each checked topic is divided into its number of parts."""
    X = model._checked(X)
    refuse_on_disk(X, "the splitting of topics")
    given = {"loss": model.loss, "X_weights": X_weights, "n_threads": model.n_threads}
    S, A, X = model._represent(X, X_weights), model.components_, CleanMatrix(X)
    options, weights = _options(model), as_weights(X_weights, "X_weights")
    shares, rows = topic_shares(S, A), np.split(A, len(A))
    for topic, count in enumerate(counts):
        if count > 1:  # a fit in which samples weigh as their shares of the topic
            weighed = weights.with_rows(shares[:, topic], "X_weights")
            rows[topic] = factorize(X, n_components=count, X_weights=weighed, **options).A
    parts, whole = np.vstack(rows), np.repeat(np.arange(len(A)), counts)
    best = represent(X, parts, **given)
    starts = [(best + _LIFT * best.mean(axis=0), parts), (best, parts)]
    explained = objective(X, S, A, **given)
    start = next((s for s in starts if objective(X, *s, **given) <= explained), None)
    if start is None:  # the same product as before, cut by features
        totals = np.zeros((len(A), parts.shape[1]))
        np.add.at(totals, whole, parts)
        totals, even = totals[whole], 1 / np.bincount(whole)[whole, None]
        cuts = np.where(totals > 0, parts / np.where(totals > 0, totals, 1), even)
        start = S[:, whole], A[whole] * cuts.astype(parts.dtype)
    options.pop("random_state", None)
    fit = factorize(X, n_components=len(whole), init=start, X_weights=X_weights, **options)
    names = []
    for name, count in zip(names_of_topics(model), counts, strict=True):
        above = name + f"{SEPARATOR}0" * max(level - 1 - name.count(SEPARATOR), 0)
        parts_of = [f"{above}{SEPARATOR}{number}" for number in range(count)]
        names += parts_of if count > 1 else [name]
    made = _fitted(model, names)
    made._keep(fit, topic_names_=made.topic_names_)
    return made


@one_blas_thread()
def components_of_groups(S: Array, A: Array, group: Array) -> Array:
    """Return the mean components, by their coefficients, of groups of topics, numbered (r,)."""
    G = np.eye(int(group.max()) + 1)[:, group]
    weights = G * S.sum(axis=0, dtype=np.float64)
    weights += G * ~(weights > 0).any(axis=1)[:, None]  # nothing to weigh by
    means = (weights / weights.sum(axis=1, keepdims=True)) @ A
    alone = G.sum(axis=1)[group] == 1
    means[group[alone]] = A[alone]
    return np.asarray(means, dtype=A.dtype)


@one_blas_thread()
def representation_by_groups(S: Array, A: Array, group: Array, grouped: Array) -> Array:
    """Return coefficients of components of groups, which explain as much as their topics do."""
    sizes = grouped.sum(axis=1, dtype=np.float64)
    G = np.eye(len(grouped))[:, group]
    grouped_S = amounts(S, A) @ G.T / np.where(sizes > 0, sizes, 1)
    alone = G.sum(axis=1)[group] == 1
    grouped_S[:, group[alone]] = S[:, alone]
    return np.asarray(grouped_S, dtype=S.dtype)


def joined(parts: list[str], names: list[str]) -> str:
    """Return the name of the sum of topics: what they are part of, if these are all its parts."""
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
        raise ValueError(
            f"This {type(model).__name__} has no representation_, as after partial_fit; fit it."
        )
    return np.asarray(model.representation_)


def _place(model: FactorizationBase, topic: int | str) -> int:
    names = names_of_topics(model)
    if isinstance(topic, str):
        forms = [nfc(name) for name in names]
        if nfc(topic) not in forms:
            raise ValueError(f"Unknown topic {short(topic)}; topics are {listed(names)}.")
        return forms.index(nfc(topic))
    place = check_integer(topic, "topic", 0)
    if place >= len(names):
        raise ValueError(f"topic is {place}; the model has {len(names)}, of which the first is 0.")
    return place


def _options(model: FactorizationBase) -> dict[str, Any]:
    given = model.get_params(deep=False)
    return {name: given[name] for name in _OF_FITS if name in given}


def _fitted(model: FactorizationBase, names: list[str], **attributes: Any) -> NMF:
    """Return an NMF with the parameters of a model that apply, named topics and attributes."""
    made = NMF(len(names), **_options(model))
    seen = {n: vars(model)[n] for n in ("n_features_in_", "feature_names_in_") if n in vars(model)}
    vars(made).update(topic_names_=np.array(names), **seen, **attributes)
    return made
