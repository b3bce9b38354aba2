"""Topics that the user describes by words: SeededTopics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._common.arrays import Array, Solver
from .._common.saved import Saved
from .._common.text import listed, nfc, short
from .._data.border import check_integer, check_option, check_random_state
from .._labels import ClassLabels, names_array
from .._models.factorize import Factorization
from .._solver.losses import LossOption
from .._topics import Topics
from ._base import require
from ._class_topics import OVERALL, even_start, weighted_sums
from ._constrained import NamedTopics
from ._docstrings import complete_docstring
from ._members import Linear, fit_naive_bayes
from ._readout import LogisticReadout
from ._receipts import Restated, said_by
from ._seeds import LABEL_WEIGHT, Seeds, shares_of_named, start_of_mixture, topics_of_samples
from ._training_data import TrainingLabels, surest
from ._views import context_of, directions_of

_MEMBERSHIPS = ("single", "mixed")
_SURE = 0.5  # share of the samples of each topic that keep to it in the factorization
_SLOPE = 3.0  # of the logits of naive Bayes, which is less sure than right


@complete_docstring
@dataclass(eq=False, repr=False)
class SeededTopics(NamedTopics):
    """Topics that start from a few words each, and classes of samples without any label.

    A mixture in which every sample has one topic spreads the seeds to other words and samples [1]_.
    Its predictions train a complement naive Bayes classifier, which predicts; the surer half of the
    samples may only have their topic, and free ones, in the factorization
    ``sum d(X, (S .* T) A)`` [2]_.

    Parameters
    ----------
    seeds : dict, optional
        What is known of each topic, by its name: a list of features, a dict of features with their
        strengths (above 0; in a list all have 1), or a row of weights of all features, a float
        array such as a row of `components_` of an earlier model.  An empty list is for a topic that
        labels tell of.  None: the topics are those of `y`.
    n_free_topics : int
        Number of topics beside the named ones, at least 0: r is the number of both.
    forbidden : dict, optional
        Features that a topic may not have, by its name: their weights stay 0.  They do not keep
        samples away from the topic.
    membership : {"single", "mixed"}
        "single" is as above, for texts that are mostly about one topic.  "mixed" is for samples
        that mix topics, such as cells that run several gene programs: seeds are where a
        factorization without restrictions starts and what names its topics, so that the data
        correct wrong seeds.  What explains most of each sample is then what predictions learn from.
    feature_names : array_like of str, optional
        Names of the features, such as those of a vectorizer; by default the columns of a data
        frame.  Without names, seeds are numbers of columns.
    readout : {"naive-bayes"} or None
        How predictions are made; None makes none.

    Attributes
    ----------
    topic_names_ : ndarray, shape (k,)
        The named topics in the order of `seeds`: the first k of the r components.
    classes_ : ndarray, shape (k,)
        The same as `topic_names_`.
    seed_weights_ : scipy.sparse.csr_array, shape (k, m)
        Strengths of the seeds, divided by their sum for each topic.
    unknown_seeds_ : list of str
        Seeds that are not among the features, which a warning names.

    See Also
    --------
    SSNMFClassifier : Often better from about ten labels a class on.
    TopicSupervisedNMF : Topics named by labels.

    Notes
    -----
    `y` in :meth:`fit` is optional: the name of a topic for each sample, or -1, None or NaN for an
    unlabeled one.  A label counts as much as 20 predictions.

    The order and the lengths of the lists do not matter: each seed counts in inverse proportion to
    its sum over all samples, and the seeds of each topic as much as those of every other one.

    References
    ----------
    .. [1] K. Nigam, A. McCallum, S. Thrun, T. Mitchell, "Text classification from labeled and
       unlabeled documents using EM", 2000.
    .. [2] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["orbit and moon", "moon rocket", "goal and match", "match referee", "rocket"]
    >>> vectorizer = CountVectorizer()
    >>> X = vectorizer.fit_transform(texts)
    >>> seeds = {"space": ["orbit", "moon"], "sport": ["goal", "match"]}
    >>> model = sf.SeededTopics(seeds, feature_names=vectorizer.get_feature_names_out())
    >>> print(model.fit(X).predict(X))
    ['space' 'space' 'sport' 'sport' 'space']
    """

    seeds: Any = None
    _: KW_ONLY
    n_free_topics: int = 0
    forbidden: Any = None
    membership: str = "single"
    feature_names: Any = None
    loss: LossOption = "kullback-leibler"
    solver: Solver = "auto"
    readout: str | None = "naive-bayes"

    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _saved: ClassVar = {
        "seed_weights_": Saved("tm"),
        "unknown_seeds_": Saved(kind=list[str]),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.seeds is None
        return tags

    def _check_readout(self) -> None:
        if self.readout is not None:
            check_option(self.readout, "readout", ("naive-bayes",))

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None) -> None:
        self._refuse_weights(X_weights)
        self._check_readout()
        n_free = check_integer(self.n_free_topics, "n_free_topics", 0)
        mixed = check_option(self.membership, "membership", _MEMBERSHIPS) == "mixed"
        seeds, members = self._known(X, y)
        labeled = np.asarray(members.any(axis=1))
        if mixed:
            fit = self._fit_mixture(X, seeds, members, labeled, n_free)
            likely = shares_of_named(fit, members)
        else:
            likely = topics_of_samples(X, seeds, members)
            fit = self._fit_topics(X, seeds, likely, labeled, n_free)
        self._keep(
            fit,
            topic_names_=names_array(seeds.names),
            n_labeled_=int(labeled.sum()),
            seed_weights_=seeds.strengths,
            unknown_seeds_=seeds.unknown,
        )
        self._keep_classes(X, likely, labeled)
        self._note_inputs(y=said_by(None if y is None else ClassLabels(y, self.unlabeled)))

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        labels = None if y is None else ClassLabels(y, self.unlabeled)
        return Restated(X, {}, {"y": said_by(labels)}, untold=("S_support",))

    def _known(self, X: Any, y: Any) -> tuple[Seeds, Array]:
        """Return the seeds, and 1 for the topic of each labeled sample, (n, k)."""
        labels = None
        if y is not None or self.seeds is None:
            require(self, X, y)
            labels = ClassLabels(y, self.unlabeled)
        given = self.seeds
        if given is None and labels is not None:
            labels.check_fit()
            given = {name: [] for name in labels.classes.tolist()}
        names = self.feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        seeds = Seeds.read(given, self.forbidden, names, X.shape[1])
        if len(seeds.names) < 2:
            raise ValueError(
                f"seeds has the topics {seeds.names}; expected two or more. Describe what else "
                "there is by a topic of its own."
            )
        members = np.zeros((X.shape[0], len(seeds.names)))
        if labels is not None:
            members[np.flatnonzero(labels.labeled), _numbers(labels, seeds)] = 1
        return seeds, members

    def _fit_topics(
        self, X: Any, seeds: Seeds, likely: Array, labeled: Array, n_free: int
    ) -> Factorization:
        """Factorize X from the means of the topics; sure samples have theirs and free ones."""
        k = len(seeds.names)
        sure = labeled | surest(likely, _SURE, ~labeled)
        support = np.ones((len(likely), k + n_free), dtype=bool)
        support[sure, :k] = likely[sure] == likely[sure].max(axis=1, keepdims=True)
        sums = weighted_sums(X, np.hstack([likely, np.ones((len(likely), 1))]))
        means = sums / np.append(likely.sum(axis=0), len(likely))[:, None]
        overall = means[k]
        named = ((1 - OVERALL) * means[:k] + OVERALL * overall) * seeds.allowed
        rng = check_random_state(self.random_state)
        free = overall * rng.uniform(0.5, 1.5, (n_free, len(overall)))
        A = np.vstack([named, free])
        start = even_start(X, A, support), A.astype(X.dtype)
        return self._factorize(
            X, n_components=len(A), init=start, S_support=support, **self._arguments()
        )

    def _fit_mixture(
        self, X: Any, seeds: Seeds, members: Array, labeled: Array, n_free: int
    ) -> Factorization:
        """Factorize X from the start that seeds guide; only labels restrict the samples."""
        k = len(seeds.names)
        rng = check_random_state(self.random_state)
        S, A = start_of_mixture(X, seeds, members, n_free, rng, self.n_threads)
        A[:k] *= seeds.allowed
        support = np.ones(S.shape, dtype=bool)
        support[labeled, :k] = members[labeled] > 0
        given = {"S_support": support} if labeled.any() else {}
        return self._factorize(
            X, n_components=len(A), init=(S * support, A), **given, **self._arguments()
        )

    def _keep_classes(self, X: Any, likely: Array, labeled: Array) -> None:
        """Fit naive Bayes to the predictions and the labels, and set what belongs to it."""
        self._drop_readout()
        self.multilabel_, self.classes_ = False, self.topic_names_
        self.class_prior_ = likely.mean(axis=0)
        if self.readout is None:
            return
        k = likely.shape[1]
        members = np.eye(k)[likely.argmax(axis=1)]
        weights = np.where(labeled, 1.0, 1 / LABEL_WEIGHT)
        labels = TrainingLabels(members, np.repeat(weights[:, None], k, axis=1), False)
        directions = directions_of(X, None, 0, self.n_threads)
        context = context_of(X, directions)
        member = fit_naive_bayes(context, labels) if context else Linear(np.zeros(k))
        readout = LogisticReadout.of(member, len(self.components_), context)
        self.readout_ = replace(readout, slopes=np.full(k, _SLOPE))

    def topics(self, feature_names: Any = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest weights of every topic, and the names of topics.

        Parameters
        ----------
        feature_names : array_like of str, optional
            Names of the features; by default those that the model was given.
        """
        names = self.feature_names if feature_names is None else feature_names
        return super().topics(names, n_terms)


def _numbers(labels: ClassLabels, seeds: Seeds) -> list[int]:
    """Return the number of the topic of each labeled sample."""
    place = {nfc(name): number for number, name in enumerate(seeds.names)}
    strange = [name for name in labels.classes.tolist() if nfc(name) not in place]
    if strange:
        raise ValueError(
            f"y holds {short(strange[0])}, which is not one of the topics of seeds: "
            f"{listed(seeds.names)}. Give it seeds, or an empty list for a topic that labels tell "
            "of."
        )
    return [place[nfc(name)] for name in labels.known.tolist()]
