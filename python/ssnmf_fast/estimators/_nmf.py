"""Estimator :class:`NMF`, and `partial_fit` of its relatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, LabelsLike, LossName, Solver, VectorLike
from .._common.saved import Saved
from .._common.warn import warn_user
from .._data.arrays import DataLike, as_array
from .._data.border import check_matrix
from .._labels import Targets
from .._models.factorize import Start
from .._models.online import Online, learn_batch
from .._models.represent import represent
from .._solver.losses import loss_named
from .._solver.weights import WeightsLike
from .._topics import topic_shares
from ._base import FactorizationBase, Self
from ._conventions import require
from ._docstrings import complete_docstring
from ._training_data import (
    TrainingLabels,
    as_outer,
    checked_weight,
    label_weights,
    with_sample_weight,
)


class BatchLearner(FactorizationBase):
    """A factorization that may learn from one batch of samples after the other."""

    def _learn_batch(
        self,
        X: Any,
        X_weights: WeightsLike,
        targets: Targets | None = None,
        weights: Mapping[str, Any] = MappingProxyType({}),
        **replaced: Any,
    ) -> None:
        """Learn from a checked batch, and set the attributes; some parameters may be replaced."""
        sample_weight = checked_weight(weights.get("sample_weight"), X.shape[0])
        if targets is not None:
            replaced["y_weights"] = as_outer(label_weights(targets.labeled, **weights))
        online = getattr(self, "_online", None)
        # A new list: copies of the model share the old one.
        objective = [] if online is None else [*self.objective_]
        if online is None and hasattr(self, "components_"):
            online = Online.resume(self.components_, getattr(self, "label_components_", None))
        online = learn_batch(
            online,
            X,
            None if targets is None else targets.matrix(X.dtype),
            X_weights=with_sample_weight(X, X_weights, sample_weight),
            sample_weight=sample_weight,
            **self._arguments(learn_batch) | {"y_weights": None} | replaced,
        )
        self._online = online
        self.components_ = online.array("A")
        if targets is not None:
            self.label_components_ = online.array("B")
        self.n_iter_ = online.n_steps
        self.objective_ = [*objective, (online.n_steps, online.mean_loss)]
        for name in ("representation_", "refitted_label_components_", "receipt_"):
            self.__dict__.pop(name, None)


class SupervisedBase(BatchLearner):
    """A factorization X ~ S A, Y ~ S B, of which B predicts the targets Y."""

    _saved: ClassVar = {
        "label_components_": Saved("rk"),
        "refitted_label_components_": Saved("rk", optional=True),
    }

    def fit(
        self: Self,
        X: DataLike,
        y: LabelsLike = None,
        *,
        X_weights: WeightsLike = None,
        sample_weight: VectorLike = None,
        label_weight: VectorLike = None,
    ) -> Self:
        """Learn dictionary and predictions from samples and the labels of some of them."""
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, **weights)
        return self

    def partial_fit(
        self: Self,
        X: DataLike,
        y: LabelsLike,
        *,
        X_weights: WeightsLike = None,
        sample_weight: VectorLike = None,
        label_weight: VectorLike = None,
    ) -> Self:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Their labels or targets; all of them may be unlabeled.

        Returns
        -------
        self
            The attributes are set as by :meth:`NMF.partial_fit`; predictions are by "joint".

        Warns
        -----
        UserWarning
            If an earlier :meth:`fit` had another readout than "joint", which is discarded.
        """
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        self._learn_labeled(self._batch(X, y), y, X_weights, weights)
        return self

    def _batch(self, X: DataLike, y: LabelsLike) -> Any:
        """Return checked samples, and warn of a readout that they end."""
        if hasattr(self, "readout_") or hasattr(self, "refitted_label_components_"):
            warn_user(
                "The readout of the fit cannot be updated by batches: from now on the model "
                "predicts by 'joint'. Set readout='joint' before fit to have it throughout.",
                UserWarning,
            )
        X = self._checked(X, reset=not hasattr(self, "components_"))
        require(self, X, y)
        return X

    def _refit_components(self, S: Array, labels: TrainingLabels) -> None:
        """Set the B that minimizes sum L .* d(Y, S B), where S does not know the labels."""
        rows = labels.known
        weights = labels.entry_weights[rows] * labels.weight[rows, None]
        B = represent(
            np.ascontiguousarray(labels.members[rows].T, dtype=S.dtype),
            np.ascontiguousarray(S[rows].T),
            loss=self.supervision_loss,
            X_weights=None if (weights == 1).all() else np.ascontiguousarray(weights.T),
        )
        self.refitted_label_components_ = np.ascontiguousarray(B.T)

    def _components_in_use(self) -> Array:
        """Return the B of the readout "refit" or "joint"."""
        return getattr(self, "refitted_label_components_", self.label_components_)


@complete_docstring
@dataclass(eq=False, repr=False)
class NMF(BatchLearner):
    """Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes ``sum W .* d(X, S A)`` over nonnegative S and A; see :func:`ssnmf_fast.factorize`.

    Attributes
    ----------
    topic_names_ : ndarray of str, shape (r,)
        Names of topics of :func:`ssnmf_fast.trees.split_topic` and `merge_topics`.

    See Also
    --------
    SSNMFClassifier, SSNMFRegressor : The same with supervision.
    ssnmf_fast.factorize : The function behind it.

    Notes
    -----
    :meth:`transform` solves a convex problem to its optimality conditions, so that
    ``fit_transform(X)`` equals ``fit(X).transform(X)``; `representation_` lies close to both.

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
    loss: LossName | float = "frobenius"
    solver: Solver = "auto"
    init: Start = "auto"
    n_starts: int = 1
    forget_factor: float = 0.8
    A_support: npt.ArrayLike | None = None
    fixed_components: npt.ArrayLike | None = None
    penalties: Any = None

    _saved: ClassVar = {"topic_names_": Saved("r", "text", optional=True)}

    @property
    def reconstruction_err_(self) -> float:
        """Norm of ``X - representation_ @ components_``, or the root of twice another loss."""
        if not hasattr(self, "representation_") or not self.objective_:
            raise AttributeError("reconstruction_err_ is known after fit only.")
        factor = 1 if loss_named(self.loss, "loss").quadratic else 2
        return math.sqrt(factor * self.objective_[-1][1])

    def _learn(
        self, X: Any, y: Any, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> None:
        given: Any = {"X_weights": X_weights, **self._arguments()}
        if covariates is not None:
            given["covariates"] = _table(covariates)
        n_fixed = 0 if covariates is None else given["covariates"].shape[1]
        self._keep(self._factorize(X, **given), n_fixed_=n_fixed)

    def _fit_inputs(self, X: Any, y: Any, **given: Any) -> dict[str, Any]:
        return dict.fromkeys(("X_weights", "covariates")) | given

    def fit(
        self,
        X: DataLike,
        y: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        covariates: VectorLike = None,
    ) -> NMF:
        """Learn a dictionary.

        Parameters
        ----------
        covariates : array_like, shape (n, number of fixed components), optional
            The last columns of S, which are given: known covariates of the samples such as
            indicators of batches, or a column of ones.  The dictionary learns what goes with them.
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights=X_weights, covariates=covariates)
        return self

    def transform(
        self, X: DataLike, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> Array:
        """Represent samples over the learned dictionary."""
        return self._represent(self._checked(X), X_weights, covariates=covariates)

    def topic_proportions(
        self, X: DataLike, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> Array:
        """Return the share of each sample that every component explains."""
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
        covariates = _table(known.get("covariates"))
        count, wanted = (
            0 if covariates is None else covariates.shape[1],
            getattr(self, "n_fixed_", 0),
        )
        if count != wanted:
            raise ValueError(
                f"covariates has {count} columns, and the fit had {wanted}; give the same ones."
            )
        return super()._represent(X, X_weights, covariates=covariates)

    def partial_fit(
        self, X: DataLike, y: VectorLike = None, *, X_weights: WeightsLike = None
    ) -> NMF:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples of a batch, some hundreds or more; NaN in a dense X means missing.

        Returns
        -------
        self
            `components_` is up to date, `n_iter_` is the number of batches, and `objective_` has
            pairs of it and an estimate of the objective of all data, per sample.  There is no
            `representation_`.

        Notes
        -----
        After :meth:`fit`, learning continues from its dictionary.  `solver`, `max_iter`, `tol`,
        `callback` and `verbose` are not used.  Losses, `n_components` and the weight of the
        supervision must stay the same for all batches: a change is refused.
        """
        self._learn_batch(self._checked(X, reset=not hasattr(self, "components_")), X_weights)
        return self


def _table(covariates: VectorLike) -> Any:
    """Return given columns of S as a checked array; one in chunks stays as it is."""
    if covariates is None or hasattr(covariates, "chunks"):
        return covariates
    return check_matrix(as_array(covariates, "covariates"), "covariates", allow_nan=False)
