"""Estimators without classes: :class:`NMF`, and :class:`SSNMFRegressor` of real targets."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import COUNT, Saved
from .._data.border import require_finite
from .._labels import RealTargets
from .._solver.beta_divergences import loss_named
from .._topics import Topics
from ._base import product
from ._batches import BatchLearner, SupervisedBase
from ._conventions import require, score_labeled
from ._docstrings import complete_docstring
from ._training_data import as_outer, label_weights, labels_for_training


@complete_docstring
@dataclass(eq=False, repr=False)
class NMF(BatchLearner):
    """Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes ``sum W .* d(X, S A)`` over nonnegative S and A; see :func:`ssnmf_fast.factorize`.

    Attributes
    ----------
    topic_names_ : ndarray of str, shape (r,)
        Names of the topics, where they come from :func:`ssnmf_fast.split` or
        :func:`ssnmf_fast.merge`.

    See Also
    --------
    SSNMFClassifier, SSNMFRegressor : The same with supervision.
    ssnmf_fast.factorize : The function behind it.

    Notes
    -----
    :meth:`transform` solves a convex problem over the fixed dictionary to its optimality
    conditions, so that ``fit_transform(X)`` equals ``fit(X).transform(X)``; `representation_`, the
    last iterate of the fit, lies close to both.

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

    n_components: int = 10
    _: KW_ONLY
    loss: str = "frobenius"
    solver: str = "auto"
    init: Any = "auto"
    forget_factor: float = 0.8

    _saved: ClassVar = {"topic_names_": Saved("r", "text", optional=True)}

    @property
    def reconstruction_err_(self) -> float:
        """Distance of X from ``representation_ @ components_``, defined as in scikit-learn.

        The Frobenius norm of the difference; for another loss, the root of twice the loss.
        """
        if not hasattr(self, "representation_") or not self.objective_:
            raise AttributeError(
                "reconstruction_err_ is known after fit, not after partial_fit or merge."
            )
        factor = 1 if loss_named(self.loss, "loss").quadratic else 2
        return math.sqrt(factor * self.objective_[-1][1])

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None) -> None:
        del y
        self._keep(self._factorize(X, X_weights=X_weights, **self._arguments()))

    def topics(self, feature_names: Any = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest weights of every topic, and names of split ones."""
        topics, names = super().topics(feature_names, n_terms), getattr(self, "topic_names_", None)
        return topics if names is None else topics.named(names.tolist())

    def partial_fit(self, X: Any, y: Any = None, *, X_weights: Any = None) -> NMF:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples of a batch, some hundreds or more; NaN in a dense X means missing.

        Returns
        -------
        self
            After each batch `components_` is up to date, `n_iter_` is the number of batches, and
            `objective_` has pairs of it and an estimate of the objective of all data, per sample.
            There is no `representation_`.

        Notes
        -----
        After :meth:`fit`, learning continues from its dictionary.  `solver`, `max_iter`, `tol`,
        `callback` and `verbose` are not used.  Losses, `n_components` and the weight of the
        supervision must stay the same for all batches: a change is refused.
        """
        self._learn_batch(self._batch(X), None, X_weights, None)
        return self


@complete_docstring
@dataclass(eq=False, repr=False)
class SSNMFRegressor(RegressorMixin, SupervisedBase):  # type: ignore[misc]
    """Semi-supervised NMF for regression on nonnegative targets, X ~ S A and Y ~ S B.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, where unlabeled
    samples are zero rows of L [1]_.

    Parameters
    ----------
    loss, supervision_loss : {"frobenius", "kullback-leibler"}
        Losses of X and of the targets: squared error, or the I-divergence (for counts).
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of the targets, at least 0.  "balanced" takes the ratio of the
        two losses at the start.
    init : {"random", "auto", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start, as in :class:`NMF`; a tuple may also hold B (r, k).
    readout : {"auto", "refit", "joint"}
        How predictions are made: "refit": S B with B fitted to the labeled samples, represented
        without their targets as new samples are; "joint", the papers' rule: with the B of the
        factorization.  "auto" is "refit" in :meth:`fit` and "joint" in :meth:`partial_fit`, which
        refuses "refit".

    Attributes
    ----------
    n_targets_ : int
        Number of targets k; 0 where `y` had one dimension.

    See Also
    --------
    SSNMFClassifier : Classes or multiple labels.

    Notes
    -----
    `y` in :meth:`fit` holds targets >= 0, shape (n,) or (n, k); NaN means unlabeled.

    Predictions have no intercept and grow in proportion to the sample: a column of ones in X
    lets the model learn one.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((30, 4))
    >>> y = X @ [1.0, 2.0, 0.0, 3.0]
    >>> y[20:] = np.nan  # unlabeled
    >>> model = sf.SSNMFRegressor(n_components=4, tol=1e-6, max_iter=2000, random_state=0)
    >>> model.fit(X, y).predict(X[:2]).shape
    (2,)
    """

    n_components: int | str = 10
    _: KW_ONLY
    loss: str = "frobenius"
    supervision_loss: str = "frobenius"
    supervision_weight: float | str = 1.0
    solver: str = "auto"
    init: Any = "random"
    readout: str = "auto"
    forget_factor: float = 0.8

    _saved: ClassVar = {
        "n_targets_": COUNT,
        "refitted_label_components_": Saved("rk", optional=True),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, sample_weight: Any = None) -> None:
        readout = self._chosen_readout()
        require(self, X, y)
        targets = RealTargets(y)
        targets.check_sign()
        targets.check_fit()
        labels = labels_for_training(targets, sample_weight)
        result = self._factorize(
            X,
            targets.matrix(X.dtype),
            X_weights=X_weights,
            Y_weights=as_outer(label_weights(sample_weight, targets.labeled)),
            **self._arguments(),
        )
        self._keep(result, n_targets_=targets.n_targets)
        if readout == "refit":
            self._refit_components(self._represent(X, X_weights), labels)

    def _batch_targets(self, y: Any) -> tuple[RealTargets, dict[str, Any]]:
        targets = RealTargets(y, n_targets=getattr(self, "n_targets_", None))
        targets.check_sign()
        return targets, {}

    def _keep_targets(self, targets: RealTargets) -> None:
        self.n_targets_ = targets.n_targets

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, X_weights: Any = None) -> float:
        """Return R squared of the predictions."""
        check_is_fitted(self)
        targets = RealTargets(y, n_targets=self.n_targets_)
        predicted = self.predict(X, X_weights=X_weights)
        with np.errstate(over="ignore", invalid="ignore"):
            known = targets.known, targets.complete
            found = score_labeled(predicted, *known, sample_weight, r2_score)
        require_finite({"The score": found}, "Bring y nearer to 1, by a constant factor.")
        return found

    def predict(self, X: Any, *, X_weights: Any = None) -> Array:
        """Predict the targets, S B.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            Shaped like the `y` of the fit, of the dtype of X.
        """
        check_is_fitted(self)
        S = self._represent(self._checked(X, reset=False), X_weights)
        scores = product(S, self._components_in_use(), "the predictions")
        return np.asarray(scores if self.n_targets_ else scores[:, 0])
