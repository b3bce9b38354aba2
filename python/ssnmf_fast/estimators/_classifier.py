"""Estimator :class:`SSNMFClassifier`: classes or multiple labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from ._batches import batch_classes, running_prior
from ._supervised import SupervisedBase
from ._targets import ClassLabels, Indicators, labels_of

Array = npt.NDArray[Any]


class SSNMFClassifier(ClassifierMixin, SupervisedBase):  # type: ignore[misc]
    """Semi-supervised NMF for classification, X ~ S A and Y ~ S B.

    Minimises ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, where Y is the
    indicator matrix of the labels and unlabelled samples are zero rows of L [1]_.  The components
    are topics of the data and predict the classes.

    Parameters
    ----------
    n_components : int
        Rank r, at least 1.  About the number of classes, or somewhat more, is a good start.
    reconstruction, supervision : {"frobenius", "kullback-leibler"}
        Losses of X and of Y: squared error, or the I-divergence.
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of Y, at least 0.  "balanced" takes the ratio of the two losses
        at the start.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`ssnmf_fast.factorize`.
    init, max_iter, tol, random_state, n_threads, callback, verbose
        As in :class:`NMF`; a tuple `init` may also hold B (r, k).
    unlabelled : "auto", None or a label
        What marks an unlabelled sample in `y`, besides None and NaN, which always do.  "auto" takes
        -1, as scikit-learn does, unless -1 and one other value are the only labels: then both are
        classes.  Give -1 to have -1 always mean unlabelled, None for no marker.
    threshold : float
        With multiple labels, a label is predicted where its score lies above this.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        The classes, sorted; with multiple labels, 0 ... k - 1.
    class_prior_ : ndarray, shape (k,)
        Share of every class (or label) among the labelled samples.
    n_labelled_ : int
        Number of labelled samples, over all batches.
    multilabel_ : bool
        Whether `y` was an indicator matrix.
    components_ : ndarray, shape (r, m)
        Dictionary A.
    label_components_ : ndarray, shape (r, k)
        Classifier B: the components over the classes.
    representation_ : ndarray, shape (n, r)
        Factor S of the fit, in which the labels had a say.
    objective_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`NMF`.

    See Also
    --------
    SSNMFRegressor : Real targets.

    Notes
    -----
    `y` in :meth:`fit` is either an array of class labels (integers, strings or objects) or, for
    multiple labels, an indicator matrix (n, k) of 0 and 1, dense or sparse.  A row that is all NaN
    (dense) or all -1 is unlabelled; single NaN entries are missing.

    Scores grow in proportion to the sample, so that classes that differ only in the length of their
    samples cannot be told apart.

    References
    ----------
    .. [1] J. Haddock, L. Kassab, S. Li, A. Kryshchenko, R. Grotheer, E. Sizikova, C. Wang,
       T. Merkh, R. W. M. A. Madushani, M. Ahn, D. Needell, K. Leonard, "Semi-supervised NMF models
       for topic modeling in learning tasks", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2], [4, 1, 0, 0]])
    >>> y = ["sport", "sport", "politics", "politics", None]
    >>> model = sf.SSNMFClassifier(n_components=2, random_state=0).fit(X, y)
    >>> print(model.predict([[1, 0, 0, 0], [0, 0, 0, 1]]))
    ['sport' 'politics']
    """

    _fitted_attributes = (
        *SupervisedBase._fitted_attributes,
        "classes_",
        "class_prior_",
        "multilabel_",
        "n_labelled_",
    )

    def __init__(
        self,
        *,
        n_components: int = 10,
        reconstruction: str = "frobenius",
        supervision: str = "frobenius",
        supervision_weight: float | str = 1.0,
        solver: str = "auto",
        init: Any = "random",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
        unlabelled: Any = "auto",
        threshold: float = 0.5,
    ) -> None:
        super().__init__(
            n_components=n_components,
            reconstruction=reconstruction,
            supervision=supervision,
            supervision_weight=supervision_weight,
            solver=solver,
            init=init,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            n_threads=n_threads,
            callback=callback,
            verbose=verbose,
        )
        self.unlabelled = unlabelled
        self.threshold = threshold

    def __sklearn_tags__(self) -> Any:
        """Return the tags: multiple labels are supported.

        `poor_score`, as for MultinomialNB: scores grow in proportion to the sample, so that the
        blobs of scikit-learn's checks, which differ in position alone, cannot all be told apart.
        """
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_label = True
        return tags

    score = SupervisedBase.score  # that of ClassifierMixin counts unlabelled samples

    def _targets_of_fit(self, y: Any) -> tuple[ClassLabels | Indicators, dict[str, Any]]:
        targets = labels_of(y, self.unlabelled)
        targets.check_fit()
        facts = {
            "multilabel_": isinstance(targets, Indicators),
            "classes_": targets.classes,
            "class_prior_": targets.prior(),
            "n_labelled_": int(targets.labelled.sum()),
        }
        return targets, facts

    def _targets_of_batch(
        self, y: Any, **known: Any
    ) -> tuple[ClassLabels | Indicators, dict[str, Any]]:
        several, classes = batch_classes(self, y, known["classes"])
        targets: ClassLabels | Indicators
        if several:
            targets = Indicators(y, n_labels=len(classes))
        else:
            targets = ClassLabels(y, self.unlabelled, known_classes=classes)
        facts = {"multilabel_": several, "classes_": classes, **running_prior(self, targets)}
        return targets, facts

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        X_weights: Any = None,
        y_weights: Any = None,
        past_weight: float = 0.8,
    ) -> SSNMFClassifier:
        """Learn from one batch of samples, and from earlier batches through what was kept of them.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples of a batch, some hundreds or more; NaN in a dense X means missing.
        y : array_like, shape (n,) or (n, k)
            Their labels; all of them may be unlabelled.
        classes : array_like, optional
            All classes that any batch will hold; needed in the first call, unless y is an indicator
            matrix.
        X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the loss of every entry of X.
        y_weights : None, array_like of shape (n,) or (n, k), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the samples (n,), or of the entries of the n x k target matrix.
        past_weight : float
            Share of their weight that earlier batches keep, between 0 and 1; see
            :meth:`NMF.partial_fit`, which also says what becomes of the attributes.

        Returns
        -------
        self
        """
        self._learn_batch(X, y, X_weights, y_weights, past_weight, classes=classes)
        return self

    def _known_targets(self, y: Any) -> tuple[Array, Array]:
        if self.multilabel_:
            indicators = Indicators(y, n_labels=len(self.classes_))
            return indicators.known, indicators.complete
        labels = ClassLabels(y, self.unlabelled, known_classes=self.classes_)
        return labels.known, labels.labelled

    @staticmethod
    def _metric(truth: Array, predicted: Array, *, sample_weight: Any) -> float:
        return float(accuracy_score(truth, predicted, sample_weight=sample_weight))

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        return self.classes_, self.label_components_

    def _class_scores(self, X: Any) -> Array:
        """Return S B, (n, k), with the class frequencies in rows of zeros."""
        scores = self._scores(X)
        if not self.multilabel_:
            scores[~scores.any(axis=1)] = self.class_prior_
        return scores

    def decision_function(self, X: Any) -> Array:
        """Return how strongly the samples belong to the classes.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.

        Returns
        -------
        ndarray, shape (n, k) or (n,)
            The scores S B.  With two classes, the share of the second less that of the first (of
            :meth:`predict_proba`); with multiple labels, the scores less `threshold`: positive
            values are predicted.  A sample whose scores are all zero gets `class_prior_`.
        """
        scores = self._class_scores(X)
        if self.multilabel_:
            return np.asarray(scores - scores.dtype.type(self.threshold))
        if scores.shape[1] > 2:
            return scores
        shares = _shares(scores)
        return np.asarray(shares[:, 1] - shares[:, 0])

    def predict_proba(self, X: Any) -> Array:
        """Return the scores as shares of the classes.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.

        Returns
        -------
        ndarray, shape (n, k)
            Scores S B divided by their sum over the classes, `class_prior_` where all are zero;
            with multiple labels, the score of every label, clipped to the inside of (0, 1).  They
            are not calibrated.
        """
        scores = self._class_scores(X)
        if self.multilabel_:
            margin = np.finfo(scores.dtype).eps
            return np.clip(scores, margin, 1 - margin)
        return _shares(scores)

    def predict(self, X: Any) -> Array:
        """Predict classes, or an indicator matrix of labels.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            The class of the largest score; with multiple labels, 1 (int64) where the score lies
            above `threshold`.
        """
        scores = self._class_scores(X)
        if self.multilabel_:
            return np.asarray(scores > scores.dtype.type(self.threshold), dtype=np.int64)
        return np.asarray(self.classes_[_shares(scores).argmax(axis=1)])


def _shares(scores: Array) -> Array:
    """Divide the rows by their sums; scaled first, so that tiny scores cannot vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))
