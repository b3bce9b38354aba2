"""What classifier and regressor share: fit with targets, scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._labels import Targets
from ._base import FactorizationBase, require
from ._predicting import scored
from ._target_weights import combined_weights

Array = npt.NDArray[Any]


class SupervisedBase(FactorizationBase):
    """A factorisation steered by targets; subclasses say how targets are read and scored."""

    _fitted_attributes = (*FactorizationBase._fitted_attributes, "label_components_")
    _model_parameters = (
        *FactorizationBase._model_parameters,
        "supervision",
        "supervision_weight",
    )

    def __init__(
        self,
        *,
        n_components: int | str = 10,
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
        readout: str = "refit",
    ) -> None:
        self.n_components = n_components
        self.reconstruction = reconstruction
        self.supervision = supervision
        self.supervision_weight = supervision_weight
        self.solver = solver
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose
        self.readout = readout

    def fit(self, X: Any, y: Any, *, X_weights: Any = None, y_weights: Any = None) -> Any:
        """Learn dictionary and classifier from samples and their targets.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.
        y : array_like, shape (n,) or (n, k)
            Targets, as the class describes them; unlabelled samples are allowed.
        X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the loss of every entry of X.
        y_weights : None, array_like of shape (n,) or (n, k), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the samples (n,), or of the entries of the n x k target matrix.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad data, targets or parameters; the message says how to mend them.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` is reached before the stopping rule is met, unless tol = 0.
        """
        self._learn(self._checked(X, reset=True), y, X_weights, y_weights)
        return self

    def fit_transform(
        self, X: Any, y: Any, *, X_weights: Any = None, y_weights: Any = None
    ) -> Array:
        """Fit, then represent the same samples over the learned dictionary.

        The same as ``fit(X, y).transform(X)``: the labels have no say in it.  The factor of the
        fit itself, in which they do, is `representation_`.  Parameters as in :meth:`fit`.

        Returns
        -------
        S : ndarray, shape (n, r)
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights, y_weights)
        return self._represent(X, X_weights)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score the predictions: accuracy of a classifier, R squared of a regressor.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples.
        y : array_like, shape (n,) or (n, k)
            True targets; samples that are not, or not wholly, labelled are left out.
        sample_weight : array_like, shape (n,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        truth, labelled = self._known_targets(y)
        return scored(self, X, truth, labelled, sample_weight, self._metric)

    def _scores(self, X: Any) -> Array:
        """Return S B, (n, k), with B as the readout says."""
        check_is_fitted(self)
        S = self._represent(self._checked(X, reset=False), None)
        B = getattr(self, "refitted_label_components_", self.label_components_)
        return np.asarray(S @ B.astype(S.dtype, copy=False))

    def _read_targets(self, X: Any, y: Any, y_weights: Any) -> tuple[Any, Any, dict[str, Any]]:
        require(self, X, y)
        targets, facts = self._targets_of_fit(y)
        return *_matrix_and_weights(targets, X, y_weights), facts

    def _read_batch(
        self, X: Any, y: Any, y_weights: Any, **known: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        require(self, X, y)
        targets, facts = self._targets_of_batch(y, **known)
        return *_matrix_and_weights(targets, X, y_weights), facts

    def _targets_of_fit(self, y: Any) -> tuple[Targets, dict[str, Any]]:
        """Return the targets to fit to, and the attributes that follow from them."""
        raise NotImplementedError

    def _targets_of_batch(self, y: Any, **known: Any) -> tuple[Targets, dict[str, Any]]:
        """Return the same of one batch, of which no sample need be labelled."""
        raise NotImplementedError

    def predict(self, X: Any) -> Array:
        """Return the predicted targets."""
        raise NotImplementedError

    def _known_targets(self, y: Any) -> tuple[Array, Array]:
        """Return the targets of the labelled samples, and which samples those are."""
        raise NotImplementedError

    @staticmethod
    def _metric(truth: Array, predicted: Array, *, sample_weight: Any) -> float:
        """Compare predictions with the truth."""
        raise NotImplementedError


def _matrix_and_weights(targets: Targets, X: Any, y_weights: Any) -> tuple[Any, Any]:
    """Return the matrix Y, (n, k), of the dtype of X, and its weights."""
    Y = targets.matrix(X.dtype)
    return Y, combined_weights(y_weights, targets.labelled, Y.shape)
