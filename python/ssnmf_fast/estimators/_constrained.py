"""Estimators :class:`TopicSupervisedNMF` and :class:`ConstrainedNMF`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, Init, Solver
from .._common.saved import COUNT, Saved
from .._common.text import short
from .._data.arrays import refuse_on_disk
from .._data.border import check_integer, check_real
from .._labels import ClassLabels, LabelLists
from .._models.factorize import factorize
from .._solver.losses import LossOption, loss_named
from .._solver.weights import as_weights, collapse
from .._topics import Topics
from ._base import require
from ._docstrings import complete_docstring
from ._predicting import ReadoutPredictions
from ._receipts import Restated


@dataclass(eq=False, repr=False, kw_only=True)
class NamedTopics(ReadoutPredictions):
    """A dictionary whose first topics have names, which are also classes of the samples."""

    readout: str | None = "logistic"

    _saved: ClassVar = {
        "topic_names_": Saved("t"),
        "n_labeled_": COUNT,
    }

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the topics; those of free ones are "free0", "free1", ...

        Returns
        -------
        ndarray of str, shape (r,)
        """
        check_is_fitted(self)
        return np.array(self._names(), dtype=object)

    def topics(self, feature_names: Any = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest weights of every topic, and the names of topics."""
        return super().topics(feature_names, n_terms).named(self._names())

    def _names(self) -> list[str]:
        named = [str(name) for name in self.topic_names_.tolist()]
        return named + [f"free{k}" for k in range(len(self.components_) - len(named))]


@complete_docstring
@dataclass(eq=False, repr=False)
class ConstrainedNMF(ReadoutPredictions):
    """Constrained NMF (CNMF) of Liu and Wu: all labeled samples of a class share one row of S.

    Minimizes ``sum W .* d(X, S A)`` with S = G P, where G (n x (k + number of unlabeled samples))
    sends every labeled sample to the row of its class in P, and every unlabeled one to a row of
    its own [1]_.  There is no weight to choose: labels are hard constraints.

    Parameters
    ----------
    init : {"random", "nndsvda", "random-acol"} or tuple of arrays
        Start; a tuple holds S (n, r), whose rows are averaged by class, and A (r, m).
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``S`` and ``A``) after every
        check of the objective, S having a row for each class, then one for each unlabeled sample;
        returning True stops the fit.

    Attributes
    ----------
    class_representation_ : ndarray, shape (k, r)
        The row of S that the labeled samples of each class share.

    See Also
    --------
    SSNMFClassifier : Labels as a second matrix to approximate (Lee, Yoo and Choi).
    MarginNMF : Labels through support vector machines.

    Notes
    -----
    `y` in :meth:`fit` holds a class label for each sample, or -1, None or NaN for an unlabeled
    one.  Samples that share a row count as one, their weighted mean: a fit with many labels is
    faster than one without, and has the paper's updates.

    References
    ----------
    .. [1] H. Liu, Z. Wu, "Non-negative matrix factorization with constraints", AAAI 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2], [4, 1, 0, 0]])
    >>> y = [0, 0, 1, 1, -1]
    >>> model = sf.papers.ConstrainedNMF(n_components=2, unlabeled=-1, random_state=0).fit(X, y)
    >>> bool(np.allclose(model.representation_[0], model.representation_[1]))
    True
    """

    n_components: int = 10
    _: KW_ONLY
    loss: LossOption = "frobenius"
    solver: Solver = "auto"
    init: Init = "random"
    readout: str | None = "logistic"

    _saved: ClassVar = {
        "class_representation_": Saved("kr"),
        "n_labeled_": COUNT,
    }

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        require(self, X, y)
        groups, n_groups = _groups(ClassLabels(y, self.unlabeled))
        loss = loss_named(self.loss, "loss")
        means, weights, constant = collapse(X, given.get("X_weights"), groups, n_groups, loss)
        S = self.representation_[np.unique(groups, return_index=True)[1]]
        return Restated(means, {"X_weights": weights}, S=S, constant=constant)

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None) -> None:
        require(self, X, y)
        refuse_on_disk(X, "ConstrainedNMF")
        loss = loss_named(self.loss, "loss")
        self._check_readout()
        labels = ClassLabels(y, self.unlabeled)
        labels.check_fit()
        groups, n_groups = _groups(labels)
        means, weights, constant = collapse(X, X_weights, groups, n_groups, loss)
        arguments = self._arguments()
        arguments["init"] = _averaged(self.init, groups, n_groups)
        result = factorize(means, X_weights=weights, **arguments)
        k = len(labels.classes)
        objective = [(step, value + constant) for step, value in result.objective]
        self._keep(
            replace(result, S=result.S[groups], objective=objective),
            class_representation_=result.S[:k].copy(),
            n_labeled_=int(labels.labeled.sum()),
        )
        self._keep_predictions(X, X_weights, labels)


def _groups(labels: ClassLabels) -> tuple[Array, int]:
    """Return the row of P for every sample: its class, or a row of its own after the classes."""
    k, free = len(labels.classes), ~labels.labeled
    groups = k - 1 + np.cumsum(free)
    groups[labels.labeled] = labels.codes
    return groups, k + int(free.sum())


def _averaged(init: Any, groups: Array, n_groups: int) -> Any:
    """Average the rows of a given S over the groups."""
    if not isinstance(init, (tuple, list)) or not init:
        return init
    S = np.asarray(init[0])
    if S.ndim != 2 or len(S) != len(groups):
        raise ValueError(
            f"init[0] (S) has shape {S.shape}; expected a row for each of {len(groups)} samples."
        )
    sums = np.zeros((n_groups, S.shape[1]), dtype=np.result_type(S.dtype, np.float32))
    np.add.at(sums, groups, S)
    return (sums / np.bincount(groups)[:, None], *init[1:])


@complete_docstring
@dataclass(eq=False, repr=False)
class TopicSupervisedNMF(NamedTopics):
    """Topic-supervised NMF (TS-NMF): some documents say which topics they may have.

    Minimizes ``sum W .* d(X, (S .* T) A)`` [1]_, where T (n x r) is 1 where a document may have a
    topic: everywhere for unlabeled documents, for labeled ones only at the topics that they name.

    Parameters
    ----------
    n_free_topics : int
        Number of topics beside the named ones, at least 0: r is the number of both.
    labeled_weight : "inverse-rate" or float
        Weight of the loss of a labeled document, where an unlabeled one has 1.  "inverse-rate",
        the paper's, is the number of documents divided by that of labeled ones.
    free_in_labeled : bool
        Whether labeled documents may have free topics too.
    init : {"random-acol", "random", "nndsvda"} or tuple of arrays
        Start; "random-acol", the paper's, takes the mean of a few random documents for each topic.
        A tuple holds S (n, r) and A (r, m).
    topic_names : sequence, optional
        All named topics in the order that they are to have; by default those of `y`, sorted.

    Attributes
    ----------
    topic_names_ : ndarray, shape (k,)
        The named topics: the first k of the r components.
    representation_ : ndarray, shape (n, r)
        Factor S of the fit: zero where a document may not have a topic.
    classes_ : ndarray, shape (k,)
        The same as `topic_names_`.

    See Also
    --------
    SSNMFClassifier : Topics that predict labels, instead of being named by them.

    Notes
    -----
    `y` in :meth:`fit` is one of

    - a list with a list of topics for each document, empty or None for an unlabeled one;
    - one topic for each document, or -1, None or NaN;
    - a matrix (n, k) of 0 and 1 (array, data frame or sparse), with a row of zeros, of -1 or of NaN
      for an unlabeled document; then the topics are called by its columns or 0 ... k - 1.

    :meth:`transform` represents new documents over all topics.  :meth:`predict` gives a topic for
    each document or, where `y` held lists or a matrix, a matrix of 0 and 1 with a column for each
    of `topic_names_`; its readout is fitted to representations that do not use the labels.

    References
    ----------
    .. [1] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [1, 0, 1, 2], [4, 1, 0, 0]])
    >>> y = [["sport"], [], ["politics"], ["politics", "sport"], None]
    >>> model = sf.TopicSupervisedNMF(random_state=0).fit(X, y)
    >>> print(model.topic_names_[model.shares(X).argmax(axis=1)])
    ['sport' 'sport' 'politics' 'politics' 'sport']
    """

    _: KW_ONLY
    n_free_topics: int = 0
    loss: LossOption = "frobenius"
    labeled_weight: float | str = "inverse-rate"
    free_in_labeled: bool = False
    solver: Solver = "auto"
    init: Init = "random-acol"
    n_starts: int = 1
    topic_names: Any = None

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        require(self, X, y)
        lists = LabelLists(y, self.topic_names_.tolist(), self.unlabeled)
        return Restated(X, self._known(X, lists, given.get("X_weights"), self.n_components_))

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None) -> None:
        require(self, X, y)
        self._check_readout()
        lists = LabelLists(y, self.topic_names, self.unlabeled)
        rank = len(lists.names) + check_integer(self.n_free_topics, "n_free_topics", 0)
        given = {"n_components": rank, **self._known(X, lists, X_weights, rank)}
        result = self._factorize(X, **given, **self._arguments())
        self._keep(result, topic_names_=lists.names, n_labeled_=int(lists.labeled.sum()))
        X, lists = self._for_readout(X, lists)
        self._keep_predictions(X, X_weights, lists.targets(), lists.names)

    def _known(self, X: Any, lists: LabelLists, X_weights: Any, rank: int) -> dict[str, Any]:
        """Return what labels say: how much samples weigh, and where S may be positive."""
        rows = np.where(lists.labeled, self._labeled_weight(lists.labeled), 1.0)
        weights = self._with_rows(X_weights, rows) if (rows != 1).any() else X_weights
        return {"X_weights": weights, "S_support": self._support(X, lists, rank)}

    def _with_rows(self, X_weights: Any, rows: Array) -> Any:
        """Return the weights with each row multiplied by a number."""
        return as_weights(X_weights, "X_weights").with_rows(rows, "X_weights")

    def _support(self, X: Any, lists: LabelLists, rank: int) -> Any:
        """Return where S may be positive."""
        del X
        return lists.support(rank, bool(self.free_in_labeled))

    def _for_readout(self, X: Any, lists: LabelLists) -> tuple[Any, LabelLists]:
        """Return the samples that the readout is to see, with their labels."""
        return X, lists

    def _known_targets(self, y: Any) -> tuple[Array, Array]:
        lists = LabelLists(y, self.topic_names_.tolist(), self.unlabeled)
        if self.multilabel_:
            return lists.members[lists.labeled].toarray().astype(np.int64), lists.labeled
        single = lists.members[lists.labeled].argmax(axis=1)
        return np.asarray(self.classes_[np.asarray(single).ravel()]), lists.labeled

    def _labeled_weight(self, labeled: Array) -> float:
        weight = self.labeled_weight
        if not isinstance(weight, str):
            return check_real(weight, "labeled_weight")
        if weight != "inverse-rate":
            raise ValueError(
                f"labeled_weight must be 'inverse-rate' or a number >= 0; got {short(weight)}."
            )
        return float(len(labeled) / labeled.sum())
