"""What the estimators share whose data are on a cluster: fit, and lazy predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client
from sklearn.utils.validation import check_is_fitted, validate_data

from .._common.arrays import Array
from .._models.factorize import Factorization
from ..estimators._base import FactorizationBase
from . import _build
from ._cluster import check_client
from ._factorize import factorize
from ._samples import MEMORY, Samples, floating, gathered, samples_of
from ._sources import blocks_of, cut_weights, whole_rows

Self = TypeVar("Self", bound="OnCluster")


class OnCluster(FactorizationBase):
    """An estimator in memory whose data may be on a cluster.

    A subclass says in `_kind` what it is in memory: that is what is saved, and what the workers
    predict with.
    """

    _kind: ClassVar[Any]
    _left_out: ClassVar[tuple[str, ...]] = ("representation_",)  # in memory

    def fit(
        self: Self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        client: Client | None = None,
        checkpoint: str | Path | None = None,
        memory: int = MEMORY,
    ) -> Self:
        """Learn a dictionary from samples on the cluster.

        Parameters
        ----------
        X, X_weights, client, checkpoint, memory
            As in :func:`ssnmf_fast.dask.factorize`.
        y : array_like or dask.array.Array, optional
            Labels of all samples, as the class describes them.  They come to the caller.

        Returns
        -------
        self
            `representation_` is a dask array, cut as X is.
        """
        return self._fitted(X, y, client, checkpoint, memory, X_weights=X_weights)

    def _fitted(
        self: Self,
        X: Any,
        y: Any,
        client: Client | None,
        checkpoint: str | Path | None,
        memory: int,
        **weights: Any,
    ) -> Self:
        client = check_client(client)
        samples = samples_of(client, X, memory, checkpoint)
        self._learn(self._checked(samples, reset=True), gathered(client, y), **weights)
        return self

    def fit_transform(self, X: Any, y: Any = None, **given: Any) -> Any:
        """Fit, then transform the same samples: the same as ``fit(X, y).transform(X)``.

        Parameters
        ----------
        X, y, **given
            As in :meth:`fit`.

        Returns
        -------
        dask.array.Array, shape (n, r)
            It is computed when it is asked for.
        """
        return self.fit(X, y, **given).transform(X, X_weights=given.get("X_weights"))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, Samples):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        if on_cluster(X):
            raise TypeError(
                f"X is a {type(X).__name__} on a cluster, which fit takes and partial_fit does "
                "not; give it batches as NumPy arrays or SciPy sparse matrices."
            )
        return super()._checked(X, reset=reset)

    def _factorize(self, X: Any, Y: Any = None, **arguments: Any) -> Factorization:
        if not isinstance(X, Samples):
            return super()._factorize(X, Y, **arguments)
        given = {"client": X.client, "checkpoint": X.checkpoint, "memory": X.memory}
        return factorize(X.futures, Y, **arguments, **given)

    def _represent(self, X: Any, X_weights: Any) -> Array:
        if not isinstance(X, Samples):
            return super()._represent(X, X_weights)
        return X.represented(self.components_, self.loss, X_weights, self.n_threads)

    def in_memory(self, *, rows: bool = False) -> Any:
        """Return the model as an estimator in memory, without anything of the cluster.

        Parameters
        ----------
        rows : bool
            Whether `representation_` comes to the caller, and with it what else has a row for each
            sample.

        Returns
        -------
        estimator
            Of the class of the same name in :mod:`ssnmf_fast`, as :func:`ssnmf_fast.save` and
            :func:`ssnmf_fast.load` give it; without `rows` it has no `representation_`.
        """
        parameters = self.get_params(deep=False)
        parameters["callback"] = None
        if not isinstance(parameters["init"], str):
            parameters.pop("init")
        model = self._kind(**parameters)
        for name, value in vars(self).items():
            if name in self._left_out and rows:
                setattr(model, name, gathered(None, value))
            elif name.endswith("_") and name not in self._left_out:
                setattr(model, name, value)
        return model

    def _lazily(self, method: str, X: Any, X_weights: Any = None) -> da.Array:
        """Return what a method of the model in memory makes of the blocks of X."""
        check_is_fitted(self)
        X = X if isinstance(X, da.Array) else samples_of(check_client(None), X).array()
        model = self.in_memory()
        model.n_threads = self.n_threads or 1  # a worker runs several tasks at a time
        example = getattr(model, method)(np.ones((1, X.shape[1]), floating(X.dtype)))[:0]
        X = whole_rows(X, "X")
        empty = example.reshape(0, example.shape[1] if example.ndim == 2 else 1)
        given = [X] if X_weights is None else [X, _weights(X_weights, X.chunks[0])]
        found = da.map_blocks(
            _applied,
            *given,
            model=delayed(model, traverse=False),
            method=method,
            empty=empty,
            meta=empty,
            chunks=(X.chunks[0], empty.shape[1:]),
        )
        return found if example.ndim == 2 else found[:, 0]

    def transform(self, X: Any, *, X_weights: Any = None) -> Any:
        """Represent samples over the learned dictionary.

        Parameters
        ----------
        X : array_like, scipy.sparse, dask.array.Array or list of blocks, shape (n, m)
            Samples in memory, or as in :meth:`fit`.
        X_weights : optional
            As in :meth:`fit`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, r)
            For samples on the cluster a dask array, computed when it is asked for.
        """
        if on_cluster(X):
            return self._lazily("transform", X, X_weights)
        return super().transform(X, X_weights=X_weights)

    def shares(self, X: Any, *, X_weights: Any = None) -> Any:
        """Return the share of each sample that every component explains, as in memory.

        Parameters
        ----------
        X, X_weights
            As in :meth:`transform`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, r)
            Rows sum to 1 or are zero.
        """
        if on_cluster(X):
            return self._lazily("shares", X, X_weights)
        return super().shares(X, X_weights=X_weights)

    def inverse_transform(self, X: Any) -> Any:
        """Return the data that a representation approximates, ``S @ components_``.

        Parameters
        ----------
        X : array_like or dask.array.Array, shape (n, r)
            A representation S, as from :meth:`transform`.

        Returns
        -------
        ndarray or dask.array.Array, shape (n, m)
        """
        if on_cluster(X):
            return self._lazily("inverse_transform", X)
        return super().inverse_transform(X)


def on_cluster(X: Any) -> bool:
    """Whether samples are cut into blocks."""
    return isinstance(X, da.Array) or (
        isinstance(X, (list, tuple)) and len(X) > 0 and blocks_of(X, "X") is not None
    )


def _weights(X_weights: Any, rows: Any) -> da.Array:
    """Return an array whose blocks are the weights of blocks of rows."""
    if np.isnan(rows).any():
        raise ValueError(
            "X_weights are given for a dask array whose blocks have unknown numbers of rows; call "
            "compute_chunk_sizes on it before."
        )
    meta = np.empty((0, 1), dtype=object)
    parts = [
        da.from_delayed(delayed(part), (n, 1), meta=meta)
        for part, n in zip(cut_weights(X_weights, "X_weights", rows), rows, strict=True)
    ]
    return da.concatenate(parts)


def _applied(block: Any, weights: Any = None, *, model: Any, method: str, empty: Array) -> Array:
    """Apply a method of a model to a block of rows; the result has two dimensions."""
    X = _build.as_matrix(block)
    if not X.shape[0]:
        return empty
    given = {} if weights is None else {"X_weights": _build.weights_of(weights)}
    found: Array = getattr(model, method)(X, **given)
    return found.reshape(len(found), -1)
