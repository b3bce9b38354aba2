"""What the models share that labels guide, and that predict by a readout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from ._base import FactorizationBase, require
from ._predicting import READOUT_ATTRIBUTES, ReadoutPredictions

Array = npt.NDArray[Any]


class GuidedBase(ReadoutPredictions, ClassifierMixin, FactorizationBase):  # type: ignore[misc]
    """A dictionary whose learning labels guide; samples are represented over it without labels."""

    _fitted_attributes = (
        *FactorizationBase._fitted_attributes,
        *READOUT_ATTRIBUTES,
        "classes_",
        "class_prior_",
        "multilabel_",
    )

    score = ReadoutPredictions.score  # that of ClassifierMixin counts unlabelled samples

    def __init__(
        self,
        *,
        reconstruction: str,
        solver: str,
        init: Any,
        max_iter: int,
        tol: float,
        random_state: Any,
        n_threads: int | None,
        callback: Callable[[Any], Any] | None,
        verbose: int,
        readout: str | None,
    ) -> None:
        self.reconstruction = reconstruction
        self.solver = solver
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose
        self.readout = readout

    def __sklearn_tags__(self) -> Any:
        """Return the tags: y is required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, *, X_weights: Any = None) -> Any:
        """Learn a dictionary from samples and what is known of some of them.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.
        y : array_like, shape (n,) or (n, k)
            What is known of the samples, as the class describes it.
        X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the loss of every entry.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad data, labels or parameters; the message says how to mend them.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` is reached before the stopping rule is met, unless tol = 0.
        """
        X = self._checked(X, reset=True)
        require(self, X, y)
        self._learn(X, y, X_weights, None)
        return self

    def fit_transform(self, X: Any, y: Any, *, X_weights: Any = None) -> Array:
        """Fit, then represent the same samples over the learned dictionary.

        The same as ``fit(X, y).transform(X)``: the labels have no say in it.  The factor of the
        fit itself, in which they do, is `representation_`.  Parameters as in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n, r)
        """
        X = self._checked(X, reset=True)
        require(self, X, y)
        self._learn(X, y, X_weights, None)
        return np.asarray(self._represent(X, X_weights))
