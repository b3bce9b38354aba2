"""Estimator :class:`NMF`, learning from batches, and splitting and merging of topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LossName, MatrixLike, Solver, VectorLike
from .._common.saved import Saved
from .._common.text import listed, nfc, short
from .._data.arrays import DataLike, as_array, refuse_on_disk
from .._data.border import CleanMatrix, by_name, check_integer, check_matrix
from .._data.threads import one_blas_thread
from .._models.factorize import Start, factorize
from .._models.represent import objective, represent
from .._solver.build import as_weights
from .._solver.losses import loss_named
from .._solver.starts import INITS
from .._solver.weights import WeightsLike
from .._topics import amounts, topic_shares
from ._base import FactorizationBase
from ._batches import BatchLearner
from ._docstrings import complete_docstring

SEPARATOR = "/"  # between the names of a topic and of its part
_LIFT = 1e-2  # added to coefficients, relative to their mean: zeros at the start would stay zero
_OF_PARTS = ("loss", "max_iter", "n_threads", "random_state", "solver", "tol")


@complete_docstring
@dataclass(eq=False, repr=False)
class NMF(BatchLearner):
    r"""Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes :math:`\sum W \odot d(X, S A)` over S, A >= 0; see :func:`ssnmf_fast.factorize`.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components r, at least 1.  "auto", for texts in a sparse X, chooses it like
        :func:`choose_rank` with ``criterion="words"``, which uses only whether entries are above 0.

    Attributes
    ----------
    rank_choice_ : RankChoice
        The choice made by "auto".
    covariate_names_ : list
        Columns of the covariates of the fit, if a data frame; those of new samples are matched.
    topic_names_ : ndarray of str, shape (r,)
        Names of topics of :func:`ssnmf_fast.trees.split_topic` and `merge_topics`.

    See Also
    --------
    SSNMFClassifier, SSNMFRegressor : The same with supervision.
    ssnmf_fast.factorize : The underlying function.

    Notes
    -----
    :meth:`transform` solves a convex problem to its optimality conditions, so
    ``fit_transform(X)`` equals ``fit(X).transform(X)``; `representation_` is close to both.

    References
    ----------
    .. [1] D. D. Lee, H. S. Seung, "Algorithms for non-negative matrix factorization", 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> model = sf.NMF(n_components=3, random_state=0).fit(X)
    >>> model.transform(X[:2]).shape
    (2, 3)
    """

    n_components: int | Literal["auto"] = 10
    _: KW_ONLY
    loss: LossName | float = "frobenius"
    solver: Solver = "auto"
    init: Start = "auto"
    n_starts: int = 1
    forget_factor: float = 0.8
    A_support: npt.ArrayLike | None = None
    fixed_components: npt.ArrayLike | None = None
    penalties: Any = None
    _saved: ClassVar = {
        "topic_names_": Saved("r", "text", optional=True),
        "covariate_names_": Saved(optional=True, kind=list[str | int]),
    }

    @property
    def reconstruction_err_(self) -> float:
        """Norm of ``X - representation_ @ components_``, or the root of twice another loss."""
        receipt = getattr(self, "receipt_", None)
        if receipt is None:
            raise AttributeError("reconstruction_err_ is available only after fit.")
        if given := [name for name in ("X_weights", "penalties") if name in receipt.inputs]:
            hint = "See objective_, or score with the same weights."
            raise AttributeError(f"reconstruction_err_ needs a fit without {given[0]}. {hint}")
        loss = receipt.settings["loss"]
        factor = 1 if loss_named(self.loss if loss == "given" else loss, "loss").quadratic else 2
        return math.sqrt(factor * max(0.0, receipt.objective))

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, covariates: Any = None) -> None:
        given: Any = {**self._arguments(), "n_components": self._choose_rank(X)}
        table, names = _table(covariates), list(getattr(covariates, "columns", ()))
        learned: dict[str, Any] = {"n_fixed_": 0 if table is None else table.shape[1]}
        if names and len({*names}) == len(names) and all(isinstance(n, str | int) for n in names):
            learned["covariate_names_"] = names
        fit = self._factorize(X, X_weights=X_weights, **given | {"covariates": table})
        self._keep(fit, **learned)

    def _fit_inputs(self, X: Any, y: Any, **given: Any) -> dict[str, Any]:
        table = _table(given.get("covariates"), getattr(self, "covariate_names_", None))
        return {"X_weights": None} | given | {"covariates": table}

    def fit(
        self,
        X: DataLike,
        y: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        covariates: VectorLike = None,
    ) -> NMF:
        """Learn components from samples.

        Parameters
        ----------
        covariates : array_like, shape (n, number of fixed components), optional
            Fixed last columns of S, such as indicators of batches or a column of ones; their
            components are learned.
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights=X_weights, covariates=covariates)
        return self

    def transform(
        self, X: DataLike, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> Array:
        """Represent samples by the learned components."""
        return self._represent(self._checked(X), X_weights, covariates=covariates)

    def topic_proportions(
        self, X: DataLike, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> Array:
        """Return the share of each component in each sample."""
        S = self._represent(self._checked(X), X_weights, covariates=covariates)
        return topic_shares(S, self.components_)

    def score(
        self,
        X: DataLike,
        y: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        covariates: VectorLike = None,
    ) -> float:
        """Return the share of the deviance of X that the model explains."""
        return self._explained(self._checked(X), X_weights, covariates=covariates)

    def _represent(self, X: Any, X_weights: WeightsLike, **known: Any) -> Array:
        names, wanted = getattr(self, "covariate_names_", None), getattr(self, "n_fixed_", 0)
        covariates = _table(known.get("covariates"), names)
        k = 0 if covariates is None else covariates.shape[1]
        way = "give these; a call that takes none needs a model without" if wanted else "omit it"
        if k != wanted:
            raise ValueError(f"covariates has {k} columns, and the fit had {wanted}: {way}.")
        return super()._represent(X, X_weights, covariates=covariates)

    def partial_fit(
        self, X: DataLike, y: VectorLike = None, *, X_weights: WeightsLike = None
    ) -> NMF:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Samples of a batch, preferably hundreds or more; NaN in a dense X means missing.

        Returns
        -------
        self
            Without `representation_`; `n_iter_` counts batches, and `objective_` holds estimates of
            the objective per sample.

        Notes
        -----
        After :meth:`fit` without covariates and penalties, learning continues from its components.
        `solver`, `max_iter`, `tol`, `callback` and `verbose` are ignored; other parameters must not
        change.
        ``n_components="auto"`` requires an earlier :meth:`fit`.
        """
        fitted = hasattr(self, "components_")
        if self.n_components == "auto" and not fitted:
            hint = "from one batch; give a number, or call fit first."
            raise ValueError(f"partial_fit cannot choose n_components='auto' {hint}")
        X = self._checked(X, reset=not fitted)
        rank = self.n_components_ if self.n_components == "auto" else self.n_components
        self._learn_batch(X, X_weights, None, {}, n_components=rank)
        return self


def _table(covariates: Any, names: list[Any] | None = None) -> Any:
    """Return fixed columns of S as a checked array, by name; a chunked array is not changed."""
    if covariates is None or hasattr(covariates, "chunks"):
        return covariates
    own = list(getattr(covariates, "columns", ()))
    if names and own and {*own} == {*names}:
        covariates = covariates[names]
    elif names and own and all(isinstance(one, str) for one in (*own, *names)):
        raise ValueError(f"covariates has the columns {listed(own)}; the fit had {listed(names)}.")
    return check_matrix(as_array(covariates, "covariates"), "covariates", allow_nan=False)


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
    kept = np.delete(np.array(names), others)
    made = _fitted(model, kept.tolist(), [group == k for k in range(len(kept))])
    vars(made).update(components_=A, representation_=S, objective_=[], n_iter_=0)
    return made


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
    given = {"loss": model.loss, "X_weights": X_weights, "n_threads": model.n_threads}
    S, A, X = model._represent(X, X_weights), model.components_, CleanMatrix(X)
    names = []
    for name, count in zip(names_of_topics(model), counts, strict=True):
        above = name + f"{SEPARATOR}0" * max(level - 1 - name.count(SEPARATOR), 0)
        parts_of = [f"{above}{SEPARATOR}{number}" for number in range(count)]
        names += parts_of if count > 1 else [name]
    whole = np.repeat(np.arange(len(A)), counts)
    made = _fitted(model, names, whole[:, None] == np.arange(len(A)))
    options, weights = made._arguments(), as_weights(X_weights, "X_weights")
    of_parts = {name: options[name] for name in _OF_PARTS}
    shares, rows = topic_shares(S, A), np.split(A, len(A))
    for topic, count in enumerate(counts):
        if count > 1:  # samples are weighted by their shares of the topic
            of = shares[:, topic] if shares[:, topic].any() else np.ones(len(S))
            weighed = weights.with_rows(of, "X_weights")
            if made.A_support is not None:
                of_parts["A_support"] = np.asarray(made.A_support)[whole == topic]
            rows[topic] = factorize(X, n_components=count, X_weights=weighed, **of_parts).A
    parts = np.vstack(rows)
    best = represent(X, parts, **given)
    starts = [(best + _LIFT * best.mean(axis=0), parts), (best, parts)]
    explained = objective(X, S, A, **given)
    start = next((s for s in starts if objective(X, *s, **given) <= explained), None)
    if start is None:  # the same product S A, with topics cut by features
        totals = np.zeros((len(A), parts.shape[1]))
        np.add.at(totals, whole, parts)
        totals, even = totals[whole], 1 / np.bincount(whole)[whole, None]
        cuts = np.where(totals > 0, parts / np.where(totals > 0, totals, 1), even)
        start = S[:, whole], A[whole] * cuts.astype(parts.dtype)
    options |= {"init": start, "n_starts": 1, "random_state": None}
    made._keep(factorize(X, X_weights=X_weights, **options), topic_names_=made.topic_names_)
    return made


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
    made, given = NMF(), model.get_params(deep=False)
    given |= {"n_components": len(names), "tol": model._tol()}
    if not isinstance(given.get("init"), str) or given["init"] not in INITS:
        given["init"] = "auto"
    if given.get("A_support") is not None:
        given["A_support"] = (np.asarray(whole, float) @ np.asarray(given["A_support"], float)) > 0
    if isinstance(given.get("penalties"), Mapping):  # without those of labels
        given["penalties"] = {k: one for k, one in given["penalties"].items() if k in ("S", "A")}
    made.set_params(**{name: given[name] for name in made.get_params() if name in given})
    kept = ("n_features_in_", "feature_names_in_", "sample_penalties_")
    seen = {name: vars(model)[name] for name in kept if name in vars(model)}
    vars(made).update(topic_names_=np.array(names), **seen)
    return made
