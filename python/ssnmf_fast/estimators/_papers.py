"""Topics guided by labels: TopicSupervisedNMF, ConstrainedNMF and MarginNMF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from .._common.arrays import Array, LabelsLike, LossName, Matrix, MatrixLike, Solver
from .._common.saved import COUNT, Saved
from .._common.text import short
from .._common.warn import warn_user
from .._data.arrays import DataLike, refuse_on_disk
from .._data.border import CleanMatrix, check_integer, check_matrix, check_option, check_real
from .._labels import ClassLabels, Indicators, LabelLists, labels_of
from .._models.factorize import factorize
from .._models.nmf_alpha import factorize_preserving, preserving_check
from .._models.receipts import Check, factorization_check
from .._solver.build import as_weights, collapse
from .._solver.losses import loss_named
from .._solver.weights import WeightsLike
from ._base import require
from ._docstrings import complete_docstring
from ._predicting import NamedTopics, ReadoutPredictions
from ._training_data import labels_for_training


@complete_docstring
@dataclass(eq=False, repr=False)
class ConstrainedNMF(ReadoutPredictions):
    r"""Constrained NMF (CNMF) of Liu and Wu: all labeled samples of a class share one row of S.

    Minimizes :math:`\sum W \odot d(X, S A)` with S = G P, where P has a row for each class and each
    unlabeled sample, and G assigns the samples to rows [1]_.  Labels are hard constraints, without
    a weight to choose.

    Parameters
    ----------
    init : {"random", "nndsvda", "random-acol"} or tuple of arrays
        Start; a tuple holds S (n, r), whose rows are averaged by class, and A (r, m).
    callback : callable, optional
        As in :class:`NMF`; S has a row for each class, then one for each unlabeled sample.

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
    `y` in :meth:`fit` holds a class label for each sample, or -1, None or NaN for an unlabeled one.
    Samples that share a row are replaced by their weighted mean; many labels make a fit fast.

    References
    ----------
    .. [1] H. Liu, Z. Wu, "Non-negative matrix factorization with constraints", AAAI 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2],
    ...               [4, 1, 0, 0]])
    >>> y = [0, 0, 1, 1, -1]
    >>> model = sf.papers.ConstrainedNMF(n_components=2, unlabeled=-1,
    ...                                  random_state=0).fit(X, y)
    >>> bool(np.allclose(model.representation_[0], model.representation_[1]))
    True
    """

    n_components: int = 10
    _: KW_ONLY
    loss: LossName = "frobenius"
    solver: Solver = "auto"
    init: Any = "random"
    predicts: bool = True
    _saved: ClassVar = {"class_representation_": Saved("kr"), "n_labeled_": COUNT}

    def _grouped(
        self, X: Matrix, y: LabelsLike, X_weights: WeightsLike, loss: LossName | float
    ) -> tuple[ClassLabels, Array, Any]:
        """Return labels, the rows of P of the samples, and the means, weights and loss of rows.

        The first rows of P are those of the classes; each unlabeled sample has one of the others.
        """
        labels: ClassLabels = self._labels_of_fit(X, y, ClassLabels)
        free = ~labels.labeled
        groups = len(labels.classes) - 1 + np.cumsum(free)
        groups[labels.labeled] = labels.codes
        n_groups = len(labels.classes) + int(free.sum())
        merged = collapse(X, X_weights, groups, n_groups, loss_named(loss, "loss"))
        return labels, groups, merged

    def _check_of(self, X: Any, y: LabelsLike, given: Mapping[str, Any], threads: int) -> Check:
        merged = self._grouped(self._checked(X), y, given.get("X_weights"), self.loss_)
        _, groups, (means, weights, constant) = merged
        S = self.representation_[np.unique(groups, return_index=True)[1]]
        fit, inputs = replace(self.factorization_, S=S), {"X_weights": weights}
        return factorization_check(fit, CleanMatrix(means), inputs, threads, constant)

    def _learn(self, X: Matrix, y: LabelsLike, *, X_weights: WeightsLike = None) -> None:
        refuse_on_disk(X, "ConstrainedNMF")
        labels, groups, (means, weights, constant) = self._grouped(X, y, X_weights, self.loss)
        arguments = self._arguments()
        if isinstance(self.init, (tuple, list)) and self.init:
            S = np.asarray(self.init[0])
            if S.ndim != 2 or len(S) != len(groups):
                rows = f"{len(groups)} rows, one for each sample"
                raise ValueError(f"init[0] (S) has shape {S.shape}; expected {rows}.")
            sums = np.zeros((means.shape[0], S.shape[1]), np.result_type(S.dtype, np.float32))
            np.add.at(sums, groups, S)
            arguments["init"] = (sums / np.bincount(groups)[:, None], *self.init[1:])
        result = factorize(means, X_weights=weights, **arguments)
        objective = [(step, value + constant) for step, value in result.objective]
        receipt = result.receipt and result.receipt.with_objective(objective)
        rows, n_labeled = result.S[: len(labels.classes)].copy(), int(labels.labeled.sum())
        result = replace(result, S=result.S[groups], objective=objective, receipt=receipt)
        self._keep(result, class_representation_=rows, n_labeled_=n_labeled)
        self._keep_predictions(X, X_weights, labels_for_training(labels), labels.classes)


@complete_docstring
@dataclass(eq=False, repr=False)
class TopicSupervisedNMF(NamedTopics):
    r"""Topic-supervised NMF (TS-NMF): labels restrict the topics of their documents.

    Minimizes :math:`\sum W \odot d(X, (S \odot T) A)` [1]_, where T (n x r) is 1 for the topics
    that a document may have: all for unlabeled documents, only the labels for labeled documents.

    Parameters
    ----------
    n_free_topics : int
        Number of topics without a name, at least 0, which only unlabeled documents may have.
    labeled_weight : "inverse-rate" or float
        Weight of labeled documents; unlabeled documents have weight 1.  "inverse-rate", as in the
        paper, is the number of documents divided by that of labeled documents.
    init : {"random-acol", "random", "nndsvda"} or tuple of arrays
        As in :class:`NMF`; "random-acol", as in the paper, takes means of a few random documents.
    topic_names : sequence, optional
        All named topics in the desired order; by default those of `y`, sorted.

    Attributes
    ----------
    topic_names_ : ndarray, shape (k,)
        The named topics: the first k of the r components.
    representation_ : ndarray, shape (n, r)
        Factor S of the fit; zero for topics that a document may not have.

    See Also
    --------
    SSNMFClassifier : Topics that predict labels.

    Notes
    -----
    `y` in :meth:`fit` is one of

    - a list with a list of topics for each document, empty or None for unlabeled documents;
    - one topic for each document, or -1, None or NaN;
    - a matrix (n, k) of 0 and 1 (array, data frame or sparse), with rows of zeros, -1 or NaN for
      unlabeled documents or, if there are no such rows, rows of ones (L of the paper); topics have
      the names of its columns, or 0 ... k - 1.

    :meth:`predict` returns topics or, if `y` held lists or a matrix, a matrix (n, k) of 0 and 1,
    with a column for each of `classes_`.

    References
    ----------
    .. [1] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [1, 0, 1, 2],
    ...               [4, 1, 0, 0]])
    >>> y = [["sport"], [], ["politics"], ["politics", "sport"], None]
    >>> model = sf.TopicSupervisedNMF(random_state=0).fit(X, y)
    >>> print(model.topic_names_[model.topic_proportions(X).argmax(axis=1)])
    ['sport' 'sport' 'politics' 'politics' 'sport']
    """

    _: KW_ONLY
    n_free_topics: int = 0
    loss: LossName = "frobenius"
    labeled_weight: float | Literal["inverse-rate"] = "inverse-rate"
    solver: Solver = "auto"
    init: Any = "random-acol"
    n_starts: int = 1
    topic_names: Any = None
    predicts: bool = True

    def _fit_inputs(self, X: Matrix, y: LabelsLike, X_weights: WeightsLike = None) -> Any:
        return self._inputs(X, y, X_weights, self.topic_names_.tolist())[1]

    def _learn(self, X: Matrix, y: LabelsLike, X_weights: WeightsLike = None) -> None:
        lists, inputs = self._inputs(X, y, X_weights, self.topic_names)
        rank = len(lists.names) + self.n_free_topics
        result = self._factorize(X, n_components=rank, **inputs, **self._arguments())
        self._keep(result, topic_names_=lists.names, n_labeled_=int(lists.labeled.sum()))
        labels, classes = labels_for_training(lists), lists.names[lists.order]
        self._keep_predictions(X, X_weights, labels, classes)

    def _inputs(
        self, X: Matrix, y: LabelsLike, X_weights: WeightsLike, names: Any
    ) -> tuple[LabelLists, dict[str, Any]]:
        """Return the topics of documents, and the weights and support for these."""
        require(self, X, y)
        lists = LabelLists(y, names, self.unlabeled)
        rank = len(lists.names) + check_integer(self.n_free_topics, "n_free_topics", 0)
        weight, labeled = self.labeled_weight, lists.labeled
        if isinstance(weight, str):
            if weight != "inverse-rate":
                expected = "labeled_weight must be 'inverse-rate' or a number >= 0"
                raise ValueError(f"{expected}; got {short(weight)}.")
            weight = len(labeled) / labeled.sum()
        rows = np.where(labeled, check_real(weight, "labeled_weight"), 1.0)
        if (rows != 1).any():
            X_weights = self._with_rows(X_weights, rows)
        return lists, {"X_weights": X_weights, "S_support": self._support(X, lists, rank)}

    def _with_rows(self, X_weights: WeightsLike, rows: Array) -> Any:
        return as_weights(X_weights, "X_weights").with_rows(rows, "X_weights")

    def _support(self, X: Any, lists: LabelLists, rank: int) -> Any:
        return lists.support(rank)

    def _known_targets(self, y: LabelsLike) -> tuple[Array, Array]:
        lists = LabelLists(y, self.classes_.tolist(), self.unlabeled)
        if self.multilabel_:
            return lists.members[lists.labeled].toarray().astype(np.int64), lists.labeled
        single = lists.members[lists.labeled].argmax(axis=1)
        return np.asarray(self.classes_[np.asarray(single).ravel()]), lists.labeled


FEATURES = ("inner-product", "representation")


@complete_docstring
@dataclass(eq=False, repr=False)
class MarginNMF(ReadoutPredictions):
    r"""NMF-alpha: components that also preserve the separation of the classes.

    The normal vectors of p support vector machines, trained on the labeled samples, are differences
    of combinations :math:`\alpha^T X` of samples, with dual coefficients alpha (n x 2p).  The model
    minimizes :math:`d(X, S A) + \lambda d(\alpha^T X, \alpha^T S A)` [1]_.

    Parameters
    ----------
    supervision_weight : float, "auto" or "balanced"
        Weight (lambda) of the preserved combinations, at least 0.  "auto" scales their sum to that
        of the data; try 0.1 to 100 times this, less for texts with few labels, more for fewer
        components than classes.  "balanced", the ratio of the initial losses, is about twice that.
    C : float
        Penalty of the machines on margin violations, above 0; ignored if `alpha` is given.  Labeled
        samples are scaled by a common factor to a mean squared length of 1.
    features : {"inner-product", "representation"}
        Result of :meth:`transform`: Z = S (A A^T)^{1/2}, which has the inner products of S A
        (eq. 5) and may be negative, or S itself.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`ssnmf_fast.factorize`; "mu" is the rule of the paper.

    Attributes
    ----------
    alpha_ : scipy.sparse.csr_array, shape (n, q)
        The coefficients alpha.
    n_directions_ : int
        Number q of columns of alpha: 2p with p machines.

    See Also
    --------
    SSNMFClassifier : Labels as a second matrix to approximate (Lee, Yoo and Choi).
    ConstrainedNMF : Labels as hard constraints (Liu and Wu).

    Notes
    -----
    `y` in :meth:`fit` holds a class label for each sample, or -1, None or NaN (one machine per pair
    of classes), or is an indicator matrix with rows of NaN (dense) or -1 for unlabeled samples (one
    machine per label); without it there are no predictions.  X must be complete.

    References
    ----------
    .. [1] Y. Cho, L. K. Saul, "Nonnegative matrix factorization for semi-supervised dimensionality
       reduction", 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import ssnmf_fast as sf
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> model = make_pipeline(sf.papers.MarginNMF(n_components=5, random_state=0),
    ...                       LinearSVC())
    >>> bool(model.fit(X / 16, y).score(X / 16, y) > 0.95)
    True
    """

    n_components: int = 10
    _: KW_ONLY
    supervision_weight: float | Literal["auto", "balanced"] = "auto"
    C: float = 1.0
    features: Literal["inner-product", "representation"] = "inner-product"
    loss: LossName = "kullback-leibler"
    solver: Solver = "auto"
    init: Any = "random"
    predicts: bool = True
    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _tags: ClassVar = {"target_tags": "multi_output"}
    _saved: ClassVar = {
        "alpha_": Saved("nq", optional=True),
        "n_directions_": COUNT,
        "supervision_weight_": Saved(optional=True, kind=float),
    }

    def fit(
        self,
        X: DataLike,
        y: LabelsLike = None,
        *,
        X_weights: WeightsLike = None,
        alpha: MatrixLike | None = None,
    ) -> MarginNMF:
        """Learn components from samples and the labels of some of them.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Labels, see the class; with `alpha`, they are optional and used only for predictions.
        alpha : array_like or scipy.sparse, shape (n, q), optional
            Nonnegative coefficients of other combinations to preserve, one per column.
        """
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, alpha=alpha)
        return self

    _check = staticmethod(preserving_check)

    def _fit_inputs(self, X: Any, y: LabelsLike, *, X_weights: Any = None, **given: Any) -> Any:
        Y = None if y is None else labels_of(y, self.unlabeled).matrix(np.float64)
        return {"X_weights": X_weights, "alpha": self.alpha_, "y": Y}

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, alpha: Any = None) -> None:
        check_option(self.features, "features", FEATURES)
        targets: Any = None
        if alpha is None or y is not None:
            targets = self._labels_of_fit(X, y)
            if isinstance(targets, ClassLabels):
                self._warn_of_notation(y, targets.classes)
        if alpha is None:
            C = check_real(self.C, "C")
            if C == 0:
                raise ValueError("C must be above 0; got 0.")
            alpha = dual_coefficients(X, targets, C, _root_mean_square(X[targets.labeled]))
        else:
            alpha = check_matrix(alpha, "alpha", dtype=X.dtype, allow_nan=False)
            alpha = sp.csr_array(alpha, copy=True)
        arguments = {"alpha": alpha, "X_weights": X_weights, **self._arguments()}
        result = factorize_preserving(CleanMatrix(X), **arguments)
        inputs = {"y": None if targets is None else targets.matrix(np.float64)}
        learned = {"alpha_": alpha, "n_directions_": alpha.shape[1]}
        learned["supervision_weight_"] = result.supervision_weight
        self._keep(result, inputs, **learned)
        if targets is not None:
            self._keep_predictions(X, X_weights, labels_for_training(targets), targets.classes)

    def _warn_of_notation(self, y: Any, classes: Array) -> None:
        """Warn if labels may be those of the paper: -1 and 1, and 0 for unlabeled samples."""
        automatic = isinstance(self.unlabeled, str) and self.unlabeled == "auto"
        if automatic and classes.tolist() == [0, 1] and (np.asarray(y, dtype=object) == -1).any():
            warn_user(
                "The labels in y are -1, 0 and 1: samples with -1 are unlabeled, 0 and 1 are "
                "classes. If 0 marks unlabeled samples, pass unlabeled=0; otherwise unlabeled=-1.",
                UserWarning,
            )

    def _features(self, X: Matrix, X_weights: WeightsLike, **known: object) -> Array:
        check_option(self.features, "features", FEATURES)
        S = self._represent(X, X_weights)
        return S if self.features == "representation" else S @ self._root(0.5).astype(S.dtype)

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Map features back to data, S A; for Z with a pseudo-inverse."""
        if self.features == "representation":
            return super().inverse_transform(X)
        Z = self._checked_features(X)
        return np.asarray(Z @ (self._root(-0.5) @ self.components_).astype(Z.dtype))

    def _root(self, power: float) -> Array:
        """Return (A A^T)^power, (r, r), float64; the pseudo-inverse for a negative power."""
        A = self.components_.astype(np.float64)
        values, vectors = np.linalg.eigh(A @ A.T)
        least = values[-1] * len(values) * np.finfo(np.float64).eps
        powers = np.zeros_like(values)
        powers[values > least] = values[values > least] ** power
        return np.asarray((vectors * powers) @ vectors.T)


def _root_mean_square(samples: Matrix) -> float:
    """Return the root mean squared length of samples; 1 for rows of zeros."""
    values = np.asarray(samples.data if sp.issparse(samples) else samples, dtype=np.float64)
    exponent = int(np.frexp(values.max(initial=0.0))[1])
    values = np.ldexp(values, -exponent)  # squares would overflow or underflow
    total = float(np.sum(values**2))
    return float(np.ldexp(np.sqrt(total / samples.shape[0]), exponent)) if total > 0 else 1.0


def dual_coefficients(
    X: Matrix, targets: ClassLabels | Indicators, C: float, length: float = 1.0
) -> sp.csr_array:
    """Return alpha, (n, 2 p), of p machines for X / length: positive sides, then negative sides."""
    if isinstance(targets, Indicators):
        rows, members = np.flatnonzero(targets.complete), (targets.values != 0).T
        tasks = [(rows[has], rows[~has]) for has in members if has.any() and not has.all()]
    else:
        rows = np.flatnonzero(targets.labeled)
        classes = [rows[targets.codes == k] for k in range(len(targets.classes))]
        tasks = [(second, first) for first, second in combinations(classes, 2)]
    if not tasks:
        raise ValueError("No label in y separates labeled samples: each marks all of them or none.")
    parts = []
    for machine, (positive, negative) in enumerate(tasks):
        labeled = np.concatenate([positive, negative])
        sign = np.repeat([1, -1], [len(positive), len(negative)])
        samples = X[labeled].astype(np.float64)
        # SciPy would divide by multiplying with the inverse, which may overflow.
        if sp.issparse(samples):  # with 32-bit indices, as LIBLINEAR requires
            places = (part.astype(np.int32) for part in (samples.indices, samples.indptr))
            samples = sp.csr_array((samples.data / length, *places), shape=samples.shape)
        else:
            samples = np.ascontiguousarray(samples / length)
        solver = LinearSVC(C=C, loss="squared_hinge", dual=False, max_iter=5000)
        scores = solver.fit(samples, sign).decision_function(samples)
        # Not from LIBLINEAR's dual solver, whose random generator is shared between threads.
        alpha = 2 * C * np.maximum(0, 1 - sign * scores)
        is_support = alpha > 0
        columns = machine + len(tasks) * (sign[is_support] < 0)
        parts.append((alpha[is_support], labeled[is_support], columns))
    values, *place = map(np.concatenate, zip(*parts, strict=True))
    return sp.csr_array((values, tuple(place)), shape=(X.shape[0], 2 * len(tasks)))
