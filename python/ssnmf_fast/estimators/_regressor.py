"""Estimator :class:`SSNMFRegressor`: nonnegative real targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import COUNT, Saved
from .._data.border import CleanMatrix, require_finite
from .._labels import RealTargets
from .._models.factorize import factorize
from ._batches import SupervisedBase
from ._conventions import documented, require, score_labeled, set_parameters
from ._training_labels import as_outer, label_weights, labels_for_training


@documented
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
    .. [1] J. Haddock, L. Kassab, S. Li, A. Kryshchenko, R. Grotheer, E. Sizikova, C. Wang,
       T. Merkh, R. W. M. A. Madushani, M. Ahn, D. Needell, K. Leonard, "Semi-supervised NMF models
       for topic modeling in learning tasks", 2020.

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

    _saved: ClassVar = {
        **SupervisedBase._saved,
        "n_targets_": COUNT,
        "refitted_label_components_": Saved("rk", optional=True),
    }

    def __init__(
        self,
        n_components: int | str = 10,
        *,
        loss: str = "frobenius",
        supervision_loss: str = "frobenius",
        supervision_weight: float | str = 1.0,
        solver: str = "auto",
        init: Any = "random",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
        readout: str = "auto",
        forget_factor: float = 0.8,
    ) -> None:
        set_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, sample_weight: Any = None) -> None:
        readout = self._chosen_readout()
        require(self, X, y)
        targets = self._targets(y)
        targets.check_fit()
        labels = labels_for_training(targets, sample_weight)
        result = factorize(
            CleanMatrix(X),
            targets.matrix(X.dtype),
            X_weights=X_weights,
            Y_weights=as_outer(label_weights(sample_weight, targets.labeled)),
            **self._arguments(self._model_parameters + self._loop_parameters),
        )
        self._keep(result, n_targets_=targets.n_targets)
        if readout == "refit":
            self._refit_components(self._represent(X, X_weights), labels)

    @staticmethod
    def _targets(y: Any, n_targets: int | None = None) -> RealTargets:
        targets = RealTargets(y, n_targets=n_targets)
        targets.check_sign()
        return targets

    def partial_fit(
        self, X: Any, y: Any, *, X_weights: Any = None, sample_weight: Any = None
    ) -> SSNMFRegressor:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Their targets; all of them may be unlabeled (NaN).
        sample_weight : array_like, shape (n,), optional
            Nonnegative weights of the targets.

        Returns
        -------
        self
            The attributes are set as by :meth:`NMF.partial_fit`; the readout is "joint".

        Raises
        ------
        ValueError
            As :meth:`fit`, and if `readout` is "refit".

        Warns
        -----
        UserWarning
            If `readout` is "auto" and an earlier :meth:`fit` had "refit", which is left.
        """
        self._require_joint()
        X = self._batch(X)
        require(self, X, y)
        targets = self._targets(y, getattr(self, "n_targets_", None))
        self._learn_batch(X, targets, X_weights, sample_weight)
        self.n_targets_ = targets.n_targets
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, X_weights: Any = None) -> float:
        """Return R squared of the predictions.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            True targets; samples that are not, or not wholly, labeled are left out.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        targets = RealTargets(y, n_targets=self.n_targets_)
        predicted = self.predict(X, X_weights=X_weights)
        given = targets.known, targets.complete, sample_weight
        with np.errstate(over="ignore", invalid="ignore"):
            found = score_labeled(predicted, *given, r2_score)
        require_finite({"The score": found}, "Bring y nearer to 1, by a constant factor.")
        return found

    def predict(self, X: Any, *, X_weights: Any = None) -> Array:
        """Predict the targets, S B.

        Returns
        -------
        ndarray, shape (n,) or (n, k)
            Shaped like the `y` of the fit, of the dtype of X.
        """
        scores = self._scores(X, X_weights)
        return np.asarray(scores if self.n_targets_ else scores[:, 0])
