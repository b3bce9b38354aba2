"""Estimator :class:`SeededTopics`: topics described by seed words."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from .._common.arrays import Array, LabelsLike, LossName, Matrix, Solver, VectorLike
from .._common.saved import Saved
from .._common.text import listed, nfc, short
from .._common.warn import LABELS, quietly, warn_user
from .._data import border
from .._data.arrays import DataLike
from .._data.threads import one_blas_thread
from .._labels import ClassLabels, allowed, names_array, sorting, warn_of_doubts
from .._linalg import unit_rows
from .._models.dated import without_zeros
from .._models.factorize import Factorization, factorize
from .._solver.starts import roots
from .._topics import divide_by_sums, names_of, topic_shares
from ._base import require
from ._class_topics import OVERALL, even_start, weighted_sums
from ._docstrings import complete_docstring
from ._predicting import NamedTopics
from ._readout import Linear, LogisticReadout, fit_member
from ._training_data import Truth, surest
from ._views import directions_of, row_sums, view_of

_LABEL_WEIGHT = 20.0  # relative to a predicted label
_STEPS = 5  # with more steps, topics may drift from their seeds
_TOTAL = 20.0  # sum of the features of a sample, so that long samples are not more certain
_SMOOTHING = 0.05
_HELD = 5  # iterations in which named topics are fixed and free topics adapt
_FREE = 10  # iterations in which all topics adapt
_SURE = 0.5  # share of the samples of each topic that are restricted to it
_SLOPE = 3.0  # of the logits of naive Bayes, which is underconfident


class Vocabulary:
    """Features by name or by number; unknown names are collected."""

    def __init__(self, names: list[str], n_features: int) -> None:
        self.n_features = n_features
        self.unknown: list[str] = []
        # The first of several spellings of a name; an exact match takes precedence.
        pairs = [(name, i) for i, name in enumerate(names)]
        self._positions = {nfc(name): i for name, i in reversed(pairs)} | dict(pairs)

    def positions(self, features: object, where: str) -> Iterator[tuple[Any, int | None]]:
        """Yield the features of a list with their numbers; None for an unknown name."""
        if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
            raise TypeError(f"{where} must be a list of features; got {short(features)}.")
        for feature in features.tolist() if isinstance(features, np.ndarray) else features:
            if isinstance(feature, numbers.Integral):
                name, last = f"every number in {where}", self.n_features - 1
                yield feature, border.check_integer(feature, name, 0, last)
                continue
            if not isinstance(feature, str):
                expected = "expected names or numbers of features"
                raise TypeError(f"{where} holds {short(feature)}; {expected}.")
            if not self._positions:
                hint = "X has no feature names. Give feature_names, or numbers of columns."
                raise ValueError(f"{where} holds the name {short(feature)}, but {hint}")
            position = self._positions.get(feature, self._positions.get(nfc(feature)))
            if position is None:
                self.unknown.append(feature)
            yield feature, position

    def take_unknown(self, where: str) -> list[str]:
        """Return and clear the unknown names, with a warning."""
        unknown, self.unknown = self.unknown, []
        if unknown:
            hint = "Check the spelling, and how the vectorizer changes words."
            text = f"{where} has features that are not in X and are ignored: {listed(unknown)}."
            warn_user(f"{text} {hint}", UserWarning)
        return unknown


@dataclass(frozen=True)
class Seeds:
    """Seeds of k topics, and their allowed features, (k, m)."""

    names: list[Any]
    strengths: sp.csr_array  # rows sum to 1, or are 0 for a topic without seeds
    allowed: Array  # bool
    unknown: list[str]

    @classmethod
    def read(cls, topics: object, without: object, names: list[str], n_features: int) -> Seeds:
        """Check seeds and forbidden features of topics, and warn about unknown names."""
        seeds = _checked(topics, "seeds")
        forbidden = {nfc(k): features for k, features in _checked(without, "forbidden").items()}
        strange = [name for name in forbidden if name not in set(map(nfc, seeds))]
        if strange:
            text = f"forbidden has the topic {short(strange[0])}, which is not in seeds"
            raise ValueError(f"{text}: {listed([*seeds])}.")
        vocabulary = Vocabulary(names, n_features)
        rows = [_strengths(features, name, vocabulary) for name, features in seeds.items()]
        unknown = vocabulary.take_unknown("seeds")
        allowed = np.ones((len(rows), n_features), dtype=bool)
        for k, name in enumerate(seeds):
            where = f"forbidden[{short(name)}]"
            for feature, position in vocabulary.positions(forbidden.get(nfc(name), ()), where):
                if position is None:
                    continue
                if isinstance(seeds[name], np.ndarray):  # weights of all features
                    rows[k].pop(position, None)
                elif position in rows[k]:
                    both = f"a seed of the topic {short(name)} and forbidden in it"
                    raise ValueError(f"{short(feature)} is both {both}; remove it from one.")
                allowed[k, position] = False
        vocabulary.take_unknown("forbidden")
        matrix = np.zeros(allowed.shape)
        for k, row in enumerate(rows):  # divided by their sums: lengths of lists do not matter
            matrix[k, [*row]] = np.array([*row.values()]) / (sum(row.values()) or 1)
        return cls(list(seeds), sp.csr_array(matrix), allowed, unknown)


def _checked(topics: object, name: str) -> Mapping[Any, Any]:
    if topics is None:
        return {}
    if not isinstance(topics, Mapping):
        example = "{'space': ['orbit', 'nasa']}"
        raise TypeError(f"{name} must be a dict, such as {example}; got {short(topics)}.")
    twice = [topic for topic, count in Counter(map(nfc, topics)).items() if count > 1]
    if twice:
        raise ValueError(f"{name} has the topic {short(twice[0])} twice; merge them.")
    return topics


def _strengths(features: Matrix, name: object, vocabulary: Vocabulary) -> dict[int, float]:
    """Return the strengths of the seeds of a topic, by the numbers of the features."""
    where = f"seeds[{short(name)}]"
    if isinstance(features, np.ndarray) and features.dtype.kind == "f":  # a row of a model
        row = border.check_vector(features, where, vocabulary.n_features, np.float64)
        return dict(enumerate(row.tolist()))
    strengths: dict[int, float] = {}
    graded = isinstance(features, Mapping)
    for feature, position in vocabulary.positions(features, where):
        strength = features[feature] if graded else 1.0
        number = border.check_real(strength, f"{where}[{short(feature)}]")
        if number == 0:
            hint = "strengths must be above 0. Leave the feature out, or add it to forbidden."
            raise ValueError(f"{where}[{short(feature)}] is 0; {hint}")
        if position is not None:
            if graded and strengths.get(position, number) != number:
                both = f"{strengths[position]:g} and {number:g}"
                raise ValueError(f"{where} gives {short(feature)} the strengths {both}; give one.")
            strengths[position] = number
    return strengths


@one_blas_thread()
def topics_of_samples(X: Matrix, seeds: Seeds, members: Array) -> Array:
    """Return the probability of each topic for each sample, (n, k), by naive Bayes and EM."""
    parts, evidence = _evidence(X, seeds, members)
    columns = np.asarray(parts.sum(axis=0)).ravel()
    everywhere = np.log((columns + _SMOOTHING) / (columns + _SMOOTHING).sum())
    labeled = np.any(members, axis=1, keepdims=True)
    likely = np.where(labeled, members, divide_by_sums(evidence))
    for _ in range(_STEPS):
        weights = np.where(labeled, _LABEL_WEIGHT * members, likely)
        counts = _TOTAL * np.asarray((parts.T @ weights).T) + _SMOOTHING
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        logs = np.where(seeds.allowed, logs, everywhere)
        prior = np.log((likely.sum(axis=0) + 1) / (likely.sum() + len(counts)))
        chances = softmax(_TOTAL * np.asarray(parts @ logs.T) + prior, axis=1)
        likely = np.where(labeled, members, chances)
    return np.asarray(likely)


@one_blas_thread()
def _evidence(X: Matrix, seeds: Seeds, members: Array) -> tuple[Any, Array]:
    """Return X with rows that sum to 1, float64, and its weighted sums of seeds, (n, k)."""
    rows = unit_rows(X)  # avoids underflow of tiny rows
    sums = row_sums(rows)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)[:, None]
    parts = rows.multiply(scale).tocsr() if sp.issparse(rows) else rows * scale
    columns = np.asarray(parts.sum(axis=0)).ravel()
    once = np.divide(1.0, columns, out=np.zeros_like(columns), where=columns > 0)
    evidence = np.asarray(parts @ seeds.strengths.multiply(once[None, :]).T.toarray())
    scores = np.where(np.any(members, axis=1, keepdims=True), members, evidence)
    absent = np.flatnonzero(~scores.any(axis=0))
    if absent.size:
        topic, hint = short(seeds.names[absent[0]]), "Add seeds that occur in X, or labels."
        raise ValueError(f"No sample has a seed of the topic {topic} or its label. {hint}")
    return parts, evidence


@complete_docstring
@dataclass(eq=False, repr=False)
class SeededTopics(NamedTopics):
    r"""Topics described by seed words, and classes of samples without labels.

    A mixture model with one topic per sample extends the seeds to other words and samples [1]_.
    Its predictions train the complement naive Bayes classifier that predicts.  The factorization
    :math:`\sum d(X, (S \odot T) A)` [2]_ restricts the more certain half of the samples to their
    topics and the free topics.

    Parameters
    ----------
    seeds : dict, optional
        Seeds of each topic, by its name: a list of features (empty for a topic with labels only), a
        dict of features with strengths above 0 (in a list 1), or a float array of weights of all
        features, such as a row of `components_`.  None: the topics are those of `y`.
    n_free_topics : int
        Number of topics without a name, at least 0.
    forbidden : dict, optional
        Features that have weight 0 in a topic, by the name of the topic.
    membership : {"single", "mixed"}
        "single", as above, is for texts that are mostly about one topic.  "mixed" is for samples
        that mix topics, such as cells with several gene programs: an unrestricted factorization
        starts from the seeds, so that data can correct wrong seeds, and predictions are trained on
        the topic that explains most of each sample.
    feature_names : array_like of str, optional
        Names of the features; by default the columns of a data frame.  Without names, seeds are
        numbers of columns.

    Attributes
    ----------
    topic_names_ : ndarray, shape (k,)
        The named topics in the order of `seeds`: the first k of the r components.
    seed_weights_ : scipy.sparse.csr_array, shape (k, m)
        Strengths of the seeds, divided by their sum for each topic.
    unknown_seeds_ : list of str
        Seeds that are not among the features.

    See Also
    --------
    SSNMFClassifier : Often better with about ten labels per class or more.
    TopicSupervisedNMF : Topics named by labels.

    Notes
    -----
    `y` in :meth:`fit` is optional: the name of a topic for each sample, or -1, None or NaN for
    unlabeled samples.  A label has the weight of 20 predictions.

    Seeds are weighted inversely to their sums over all samples, and all topics have the same total
    weight of seeds, whatever the lengths of their lists.

    References
    ----------
    .. [1] K. Nigam, A. McCallum, S. Thrun, T. Mitchell, "Text classification from labeled and
       unlabeled documents using EM", 2000.
    .. [2] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017,
       eq. 2.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["orbit and moon", "moon rocket", "goal and match",
    ...          "match referee", "rocket"]
    >>> vectorizer = CountVectorizer()
    >>> X = vectorizer.fit_transform(texts)
    >>> seeds = {"space": ["orbit", "moon"], "sport": ["goal", "match"]}
    >>> model = sf.SeededTopics(seeds,
    ...                         feature_names=vectorizer.get_feature_names_out())
    >>> print(model.fit(X).predict(X))
    ['space' 'space' 'sport' 'sport' 'space']
    """

    seeds: Mapping[Any, Any] | None = None
    _: KW_ONLY
    n_free_topics: int = 0
    forbidden: Mapping[Any, Any] | None = None
    membership: Literal["single", "mixed"] = "single"
    feature_names: VectorLike = None
    loss: LossName = "kullback-leibler"
    solver: Solver = "auto"

    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _saved: ClassVar = {"seed_weights_": Saved("tm"), "unknown_seeds_": Saved(kind=list[str])}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.seeds is None
        return tags

    def fit(self, X: DataLike, y: LabelsLike = None) -> SeededTopics:  # type: ignore[override]
        """Learn topics from samples, and classes from seeds and labels."""
        self._learn(self._checked(X, reset=True), y)
        return self

    def _learn(self, X: Matrix, y: LabelsLike) -> None:
        n_free = border.check_integer(self.n_free_topics, "n_free_topics", 0)
        mixed = border.check_option(self.membership, "membership", ("single", "mixed")) == "mixed"
        seeds, members = self._known(X, y)
        labeled, k = np.asarray(members.any(axis=1)), members.shape[1]
        if mixed:
            fit = self._fit_mixture(X, seeds, members, labeled, n_free)
            # The shares of the named topics in each sample, or their mean.
            likely = divide_by_sums(topic_shares(fit.S, fit.A)[:, :k])
            likely = np.where(labeled[:, None], members, likely)
            total = likely.sum(axis=0)
            mean = total / total.sum() if total.any() else np.full(k, 1 / k)
            likely = np.where(likely.any(axis=1, keepdims=True), likely, mean)
        else:
            likely = topics_of_samples(X, seeds, members)
            fit = self._fit_topics(X, seeds, likely, labeled, n_free)
        self._keep(
            fit,
            topic_names_=names_array(seeds.names),
            n_labeled_=int(labeled.sum()),
            seed_weights_=seeds.strengths,
            unknown_seeds_=seeds.unknown,
            inputs=self._fit_inputs(X, y),
        )
        order = sorting(self.topic_names_)
        self.multilabel_, self.classes_ = False, self.topic_names_[order]
        self.class_prior_ = likely.mean(axis=0)[order]
        # Naive Bayes is fitted to the predictions and the labels.
        weights = np.where(labeled, 1.0, 1 / _LABEL_WEIGHT)[:, None]
        truth = Truth(np.eye(k)[likely.argmax(axis=1)][:, order], weights, False)
        view = view_of(X, directions_of(X, 0, self.n_threads))
        complete = view.rows is not None
        member = fit_member("naive Bayes", view, truth) if complete else Linear(np.zeros(k))
        readout = LogisticReadout.of(member, len(self.components_), view)
        self.readout_ = replace(readout, slopes=np.full(k, _SLOPE))

    def _fit_inputs(self, X: Matrix, y: LabelsLike) -> dict[str, Any]:
        if y is None:
            return {}
        labels = quietly(LABELS, ClassLabels, y, self.unlabeled)  # which the fit has read
        return {"labels": {"classes": labels.classes, "members": labels.matrix(np.float64)}}

    def _known(self, X: Matrix, y: LabelsLike) -> tuple[Seeds, Array]:
        """Return the seeds, and 1 for the topic of each labeled sample, (n, k)."""
        labels, topics, names = None, self.seeds, self.feature_names
        if y is not None or topics is None:
            require(self, X, y)
            labels = ClassLabels(y, self.unlabeled)
        if topics is None and labels is not None:
            labels.check_fit()
            topics = {name: [] for name in labels.classes.tolist()}
        has_names = names is not None or hasattr(self, "feature_names_in_")
        names = names_of(names, X.shape[1], self) if has_names else []
        seeds = Seeds.read(topics, self.forbidden, names, X.shape[1])
        warn_of_doubts(dict.fromkeys(self.seeds or {}, 0), "seeds", None, several=True)
        if len(seeds.names) < 2:
            hint = "expected two or more. Add a topic for all other samples."
            raise ValueError(f"seeds has the topics {seeds.names}; {hint}")
        members = np.zeros((X.shape[0], len(seeds.names)))
        if labels is not None:
            place = {nfc(name): number for number, name in enumerate(seeds.names)}
            strange = [name for name in labels.classes.tolist() if nfc(name) not in place]
            if strange:
                text = f"y holds {short(strange[0])}, which is not one of the topics of seeds"
                raise ValueError(f"{text}: {listed(seeds.names)}. Add it, without seeds.")
            numbers_of_labels = [place[nfc(name)] for name in labels.values.tolist()]
            members[np.flatnonzero(labels.labeled), numbers_of_labels] = 1
        return seeds, members

    def _fit_topics(
        self, X: Matrix, seeds: Seeds, likely: Array, labeled: Array, n_free: int
    ) -> Factorization:
        """Factorize X from topic means; certain samples use only their topics and free topics."""
        sure = labeled | surest(likely, _SURE, ~labeled)
        n, best = len(likely), likely[sure] == likely[sure].max(axis=1, keepdims=True)
        support = allowed(n, sure, best, len(seeds.names) + n_free, free=True)
        sums = weighted_sums(X, np.arange(n), np.hstack([likely, np.ones((n, 1))]))
        *means, overall = sums / np.append(likely.sum(axis=0), len(likely))[:, None]
        topics = ((1 - OVERALL) * np.array(means) + OVERALL * overall) * seeds.allowed
        rng = border.check_random_state(self.random_state)
        free = overall * rng.uniform(0.5, 1.5, (n_free, len(overall)))
        A = np.vstack([topics, free])
        start = even_start(X, A, support), A.astype(X.dtype)
        settings = {"n_components": len(A), "init": start, "S_support": support}
        return self._factorize(X, **settings, **self._arguments())

    def _fit_mixture(
        self, X: Matrix, seeds: Seeds, members: Array, labeled: Array, n_free: int
    ) -> Factorization:
        """Factorize X from a start guided by seeds; only labels restrict samples."""
        # Squares favor few samples that contain much of the topic over many that contain little.
        k = members.shape[1]
        evidence = np.where(labeled[:, None], 0, _evidence(X, seeds, members)[1])
        of_labels = divide_by_sums(members, axis=0)
        weights = divide_by_sums(divide_by_sums(evidence**2, axis=0) + of_labels, axis=0)
        sums = weighted_sums(X, np.arange(len(weights)), weights)
        topics = np.sqrt(divide_by_sums(sums)).astype(X.dtype)
        largest = float(X.max()) or 1.0
        parts = roots(X)
        parts *= largest**-0.5  # fixed components need data of moderate size
        parts = border.CleanMatrix(parts)
        settings: Any = {"n_components": k + n_free, "loss": "frobenius", "tol": 0}
        settings |= {"n_threads": self.n_threads, "random_state": self.random_state}
        trial = factorize(parts, fixed_components=topics, init="random", max_iter=_HELD, **settings)
        init = without_zeros(trial.S), without_zeros(trial.A)
        fit = factorize(parts, init=init, max_iter=_FREE, **settings)
        # Order the topics by names: those that match seeds and labels best.
        profiles = divide_by_sums(fit.A.astype(np.float64) ** 2)
        match = seeds.strengths @ divide_by_sums(profiles, axis=0).T
        match = match + of_labels.T @ topic_shares(fit.S**2, fit.A**2)
        _, columns = linear_sum_assignment(match, maximize=True)
        order = np.append(columns, np.setdiff1d(np.arange(len(profiles)), columns))
        S, A = (without_zeros(F[order].astype(np.float64) ** 2) for F in (fit.S.T, fit.A))
        sizes = A.max(axis=1, keepdims=True)
        half = largest**0.5  # in S and in A, so that neither grows too large
        S, A = (half * sizes * S).T.astype(X.dtype), (half / sizes * A).astype(X.dtype)
        A[:k] *= seeds.allowed
        support = allowed(len(S), labeled, members[labeled], len(A), free=True)
        settings = {"n_components": len(A), "init": (S * support, A)}
        settings |= {"S_support": support} if labeled.any() else {}
        return self._factorize(X, **settings, **self._arguments())
