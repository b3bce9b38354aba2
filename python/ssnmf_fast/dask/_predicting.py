"""Lazy predictions of the estimators that predict classes."""

from __future__ import annotations

from typing import Any

from ..estimators._predicting import with_readout
from ._on_cluster import OnCluster, on_cluster
from ._samples import gathered


class PredictsOnCluster(OnCluster):
    """The same for an estimator that predicts classes."""

    @with_readout
    def decision_function(self, X: Any, *, X_weights: Any = None) -> Any:
        """Return how strongly the samples belong to the classes.

        Parameters
        ----------
        X, X_weights
            As in :meth:`transform`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, k) or (n,)
            As in memory.
        """
        return self._either("decision_function", X, X_weights)

    @with_readout
    def predict_proba(self, X: Any, *, X_weights: Any = None) -> Any:
        """Return the probability of every class, or of every label by itself.

        Parameters
        ----------
        X, X_weights
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, k)
        """
        return self._either("predict_proba", X, X_weights)

    @with_readout
    def predict_log_proba(self, X: Any, *, X_weights: Any = None) -> Any:
        """Return the logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X, X_weights
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, k)
        """
        return self._either("predict_log_proba", X, X_weights)

    @with_readout
    def predict(self, X: Any, *, X_weights: Any = None) -> Any:
        """Predict classes, or an indicator matrix of labels.

        Parameters
        ----------
        X, X_weights
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n,) or (n, k)
        """
        return self._either("predict", X, X_weights)

    def _either(self, method: str, X: Any, X_weights: Any) -> Any:
        if on_cluster(X):
            return self._lazily(method, X, X_weights)
        return getattr(super(), method)(X, X_weights=X_weights)

    @with_readout
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, X_weights: Any = None) -> float:
        """Return the accuracy; with multiple labels, the share of samples without a wrong label.

        Parameters
        ----------
        X, X_weights
            As in :meth:`decision_function`; its predictions are computed, and come to the caller.
        y : array_like or dask.array.Array, shape (n,) or (n, k)
            True labels; samples that are not fully labeled are left out.
        sample_weight : array_like, shape (n,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        given = gathered(None, y), gathered(None, sample_weight)
        score: float = super().score(X, *given, X_weights=X_weights)
        return score
