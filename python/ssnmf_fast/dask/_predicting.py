"""Lazy predictions of the estimators that predict classes."""

from __future__ import annotations

from typing import Any

from ._on_cluster import OnCluster, on_cluster
from ._samples import gathered


class PredictsOnCluster(OnCluster):
    """The same for an estimator that predicts classes."""

    def decision_function(self, X: Any) -> Any:
        """Return how strongly the samples belong to the classes.

        Parameters
        ----------
        X : array_like, scipy.sparse, dask.array.Array or list of blocks, shape (n, m)
            As in :meth:`transform`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, k) or (n,)
            As in memory.
        """
        return self._either("decision_function", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class, or of every label by itself.

        Parameters
        ----------
        X
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, k)
        """
        return self._either("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, k)
        """
        return self._either("predict_log_proba", X)

    def predict(self, X: Any) -> Any:
        """Predict classes, or an indicator matrix of labels.

        Parameters
        ----------
        X
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n,) or (n, k)
        """
        return self._either("predict", X)

    def _either(self, method: str, X: Any) -> Any:
        if on_cluster(X):
            return self._lazily(method, X)
        return getattr(super(), method)(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; with multiple labels, the share of samples without a wrong label.

        Parameters
        ----------
        X
            As in :meth:`decision_function`; its predictions are computed, and come to the caller.
        y : array_like or dask.array.Array, shape (n,) or (n, k)
            True labels; samples that are not fully labelled are left out.
        sample_weight : array_like, shape (n,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        score: float = super().score(X, gathered(None, y), gathered(None, sample_weight))
        return score
