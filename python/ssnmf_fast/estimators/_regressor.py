"""Estimator :class:`SSNMFRegressor`, of real targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, Init, Solver
from .._common.saved import COUNT, Saved
from .._data.border import check_option, require_finite
from .._labels import RealTargets
from .._solver.losses import LossOption
from ._base import product, require, score_labeled
from ._docstrings import complete_docstring
from ._nmf import SupervisedBase
from ._receipts import Restated
from ._sklearn import RegressorMixin
from ._training_data import (
    as_outer,
    checked_weight,
    label_weights,
    labels_for_training,
    with_sample_weight,
)


@complete_docstring
@dataclass(eq=False, repr=False)
class SSNMFRegressor(RegressorMixin, SupervisedBase):
    """Semi-supervised NMF for regression, X ~ S A and Y ~ S B.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, where unlabeled
    samples are zero rows of L [1]_ and Y holds the targets minus the smallest one of each column,
    which is added to the predictions.

    Parameters
    ----------
    loss, supervision_loss : {"frobenius", "kullback-leibler"}
        Losses of X and of the targets: squared error, or the I-divergence (for counts).
    supervision_weight : float or "balanced"
        Weight (lambda) of the loss of the targets, at least 0.  "balanced" takes the ratio of the
        two losses at the start.
    init : {"random", "auto", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start, as in :class:`NMF`; a tuple may also hold B (r, k), for Y.
    readout : {"auto", "refit", "joint"}
        How predictions are made: "refit": S B with B fitted to the labeled samples, represented
        without their targets as new samples are; "joint", the papers' rule: with the B of the
        factorization.  "auto" is "refit" in :meth:`fit` and "joint" in :meth:`partial_fit`, which
        refuses "refit".

    Attributes
    ----------
    n_targets_ : int
        Number of targets k; 0 where `y` had one dimension.
    offset_ : ndarray, shape (k,)
        Smallest target of the fit or of all batches, 0 for none; predictions are no smaller.

    See Also
    --------
    SSNMFClassifier : Classes or multiple labels.

    Notes
    -----
    `y` in :meth:`fit` holds targets of any sign, shape (n,) or (n, k); NaN means unlabeled.

    Predictions, above the smallest target, grow in proportion to the sample: a column of ones in X
    lets the model learn an intercept.  In :meth:`partial_fit` the smallest target is that of all
    batches so far.

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
    loss: LossOption = "frobenius"
    supervision_loss: LossOption = "frobenius"
    supervision_weight: float | str = 1.0
    solver: Solver = "auto"
    init: Init = "random"
    readout: str = "auto"
    forget_factor: float = 0.8
    A_support: Any = None
    A_fixed: Any = None
    penalties: Any = None
    n_starts: int = 1

    _saved: ClassVar = {
        "n_targets_": COUNT,
        "offset_": Saved("k", "finite", optional=True),
        "refitted_label_components_": Saved("rk", optional=True),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    _of_fit: ClassVar = (
        *("X_weights", "sample_weight", "label_weight"),
        *("A_support", "A_fixed", "penalties"),
    )

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        require(self, X, y)
        targets, known = RealTargets(y), ("X_weights", "A_support", "A_fixed", "penalties")
        arguments = {name: self._parameter(name, given) for name in known}
        sample_weight = checked_weight(given.get("sample_weight"), X.shape[0])
        weights = label_weights(given.get("label_weight"), sample_weight, targets.labeled)
        X_weights = with_sample_weight(X, arguments["X_weights"], sample_weight)
        arguments |= {"X_weights": X_weights, "Y_weights": as_outer(weights)}
        targets.measure(weights, getattr(self, "offset_", 0.0))
        arguments["Y"] = targets.matrix(X.dtype)
        return Restated(X, arguments)

    def _learn(
        self,
        X: Any,
        y: Any,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        label_weight: Any = None,
    ) -> None:
        readout = check_option(self.readout, "readout", self._readouts)
        require(self, X, y)
        targets = RealTargets(y)
        targets.check_fit()
        weights = label_weights(label_weight, sample_weight, targets.labeled)
        targets.measure(weights)
        labels = labels_for_training(targets, label_weight, sample_weight)
        result = self._factorize(
            X,
            targets.matrix(X.dtype),
            X_weights=with_sample_weight(X, X_weights, labels.sample_weight),
            Y_weights=as_outer(weights),
            **self._arguments(),
        )
        offset = np.nan_to_num(targets.offset)
        self._keep(result, n_targets_=targets.n_targets, offset_=offset)
        if readout != "joint":
            self._refit_components(self._represent(X, X_weights), labels)

    def _batch_targets(self, y: Any) -> tuple[RealTargets, dict[str, Any]]:
        return RealTargets(y, n_targets=getattr(self, "n_targets_", None)), {}

    def _learn_batch(
        self,
        X: Any,
        targets: Any,
        X_weights: Any,
        label_weight: Any = None,
        sample_weight: Any = None,
        **replaced: Any,
    ) -> None:
        before = getattr(self, "_offset", getattr(self, "offset_", np.nan))
        weights = label_weight, sample_weight
        counted = targets.measure(label_weights(*weights, targets.labeled), before)
        lift = np.nan_to_num(before - targets.offset)
        replaced |= {"lift": lift, "counted": counted}
        super()._learn_batch(X, targets, X_weights, *weights, **replaced)

    def _keep_targets(self, targets: RealTargets, *weights: Any) -> None:
        del weights
        self.n_targets_ = targets.n_targets
        self._offset, self.offset_ = targets.offset, np.nan_to_num(targets.offset)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, X_weights: Any = None) -> float:
        """Return R squared of the predictions."""
        check_is_fitted(self)
        targets = RealTargets(y, n_targets=self.n_targets_)
        predicted = self._predicted(self._checked(X, reset=False), X_weights)
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
        X = self._checked(X, reset=False)
        return self._predicted(X, X_weights).astype(X.dtype)

    def _predicted(self, X: Any, X_weights: Any) -> Array:
        """Predict in float64, since the offset may be large."""
        S = self._represent(X, X_weights)
        above = product(S, self._components_in_use(), "the predictions")
        scores = above.astype(np.float64) + getattr(self, "offset_", 0.0)
        return np.asarray(scores if self.n_targets_ else scores[:, 0])
