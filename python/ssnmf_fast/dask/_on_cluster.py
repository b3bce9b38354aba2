"""What the estimators share whose data are on a cluster: fit, and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client
from sklearn.utils.validation import check_is_fitted, validate_data

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._models.factorize import Factorization
from .._models.represent import represent
from .._solver.build import as_weights
from .._solver.losses import LossOption
from ..estimators._base import FactorizationBase
from ..estimators._explanation import Explanation
from ..estimators._predicting import ReadoutPredictions, with_readout
from ._block import BlockInput, as_matrix, weights_of
from ._cluster import check_client, keep_value
from ._data import MEMORY, Data, blocks_of, count_threads, cut_weights, load, whole_rows
from ._factorize import factorize
from ._waiting import result_of

Self = TypeVar("Self", bound="OnCluster")


def lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of an estimator in memory for samples on the cluster too."""
    name, accepted = method.__name__, signature(method)

    @wraps(method)
    def either(self: Any, X: Any, **weights: Any) -> Any:
        accepted.bind(self, X, **weights)
        if is_on_cluster(X):
            return self._lazily(name, X, **weights)
        return getattr(super(OnCluster, self), name)(X, **weights)

    summary, _, rest = (method.__doc__ or "").partition("\n")
    either.__doc__ = f"""{summary}

For a dask array, or a list of blocks as `fit` takes, the result is a dask array, which is computed
when it is asked for.  X_weights may then be cut into blocks as well.
{rest}"""
    return either


class OnCluster(FactorizationBase):
    """An estimator in memory whose data may be on a cluster."""

    _kind: ClassVar[Any]  # the estimator in memory, which is saved, and with which workers predict
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
        return self._fit_data(X, y, client, checkpoint, memory, X_weights=X_weights)

    def _fit_data(
        self: Self,
        X: Any,
        y: Any,
        client: Client | None,
        checkpoint: str | Path | None,
        memory: int,
        **weights: Any,
    ) -> Self:
        if getattr(self, "n_starts", 1) != 1:
            raise ValueError(
                f"n_starts must be 1 for data on a cluster; got {self.n_starts}. Fit models with "
                "several values of random_state, and keep the one of the smallest objective_."
            )
        client = check_client(client)
        data = load(client, X, count_threads(self.n_threads), memory, dtype=self.dtype)
        data = replace(data, checkpoint=checkpoint)
        self._learn(self._checked(data, reset=True), gather(client, y), **weights)
        return self

    def fit_transform(self, X: Any, y: Any = None, **given: Any) -> Any:
        """Fit, then transform the same samples: the same as ``fit(X, y).transform(X)``.

        Parameters are those of :meth:`fit`.

        Returns
        -------
        dask.array.Array, shape (n, r)
            Computed when it is asked for.
        """
        weights = {name: given[name] for name in given if name == "X_weights"}
        return self.fit(X, y, **given).transform(X, **weights)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, Data):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        if is_on_cluster(X):
            raise TypeError(
                "X must be in memory for partial_fit, suggest and to_pyldavis; got data on a "
                f"cluster ({type(X).__name__}). Give NumPy arrays or SciPy sparse matrices."
            )
        return super()._checked(X, reset=reset)

    def _factorize(self, X: Data, Y: Any = None, **arguments: Any) -> Factorization:
        arguments.pop("n_starts", None)
        return factorize(X, Y, client=X.client, checkpoint=X.checkpoint, **arguments)

    def _represent(self, X: Any, X_weights: Any, **known: Any) -> Array:
        """Represent samples, those on a cluster in the memory of the caller too."""
        if not isinstance(X, Data):
            return super()._represent(X, X_weights)
        assert X.chosen is not None
        data = X.with_weights(X_weights, self.n_threads)
        shared = keep_value(X.client, self.components_), self.loss, self.n_threads
        futures = data.start(_represent_rows, *shared, parts=data.parts(X.chosen))
        return np.vstack(result_of(X.client, futures))

    def in_memory(self, *, rows: bool = False) -> Any:
        """Return the model as an estimator in memory, without anything of the cluster.

        It is what :func:`ssnmf_fast.load` gives.  Only with `rows` does it have a `representation_`
        and what else has a row for each sample, which then come to the caller.
        """
        parameters = self.get_params(deep=False)
        parameters["callback"] = None
        if not isinstance(parameters["init"], str):
            parameters.pop("init")
        model = self._kind(**parameters)
        for name, value in vars(self).items():
            if name in self._left_out and rows:
                setattr(model, name, gather(None, value))
            elif name.endswith("_") and name not in self._left_out:
                setattr(model, name, value)
        return model

    def _lazily(self, method: str, X: Any, X_weights: Any = None, side: Any = None) -> da.Array:
        """Return what a method of the model in memory makes of the blocks of X."""
        check_is_fitted(self)
        if side is not None:
            raise ValueError("side must be None for data on a cluster.")
        model = self.in_memory()
        model.n_threads = count_threads(self.n_threads)
        if not isinstance(X, da.Array):
            data = load(check_client(None), X, model.n_threads, dtype=self.dtype)
            X = data.array(data.start(attrgetter("X")), data.n_columns, data.dtype)
        X = whole_rows(X, "X")
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        example = getattr(model, method)(np.ones((1, X.shape[1]), dtype))[:0]
        empty = example.reshape(0, example.shape[1] if example.ndim == 2 else 1)
        given = [X] if X_weights is None else [X, _weights(X_weights, X.chunks[0])]
        shared = {"model": delayed(model, traverse=False), "method": method, "empty": empty}
        chunks = X.chunks[0], empty.shape[1:]
        found = da.map_blocks(_apply, *given, **shared, meta=empty, chunks=chunks)
        return found if example.ndim == 2 else found[:, 0]

    transform = lazy(FactorizationBase.transform)
    topic_proportions = lazy(FactorizationBase.topic_proportions)
    inverse_transform = lazy(FactorizationBase.inverse_transform)


class PredictsOnCluster(OnCluster):
    """The same for an estimator that predicts classes."""

    decision_function = with_readout(lazy(ReadoutPredictions.decision_function))
    predict_proba = with_readout(lazy(ReadoutPredictions.predict_proba))
    predict_log_proba = with_readout(lazy(ReadoutPredictions.predict_log_proba))
    predict = with_readout(lazy(ReadoutPredictions.predict))

    @with_readout
    def explain(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Explanation:
        """Return what topics, features and neighbors add to the scores of the classes, exactly.

        Samples and their weights must be in memory: as an explanation holds what it tells of, it is
        for some samples, such as ``X[:100].compute()``.
        """
        if is_on_cluster(X):
            raise TypeError(
                f"X must be in memory for explain; got data on a cluster ({type(X).__name__}). "
                "Give the rows to explain, for example X[:100].compute()."
            )
        found: Explanation = super().explain(X, X_weights=X_weights, side=side)  # type: ignore[misc]
        return found

    @with_readout
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_weights: Any = None,
        side: Any = None,
    ) -> float:
        """Return the accuracy; with multiple labels, the share of samples without a wrong label.

        Parameters are those of the method in memory; all may be dask arrays.  Predictions and
        labels come to the caller.
        """
        given = gather(None, y), gather(None, sample_weight)
        score = super().score  # type: ignore[misc]
        return float(score(X, *given, X_weights=X_weights, side=side))


def gather(client: Client | None, y: Any) -> Any:
    """Return labels in memory."""
    if not isinstance(y, da.Array):
        return y
    client = check_client(client)
    return result_of(client, client.compute(y))


def with_rows(X_weights: Any, rows: Array | None) -> Any:
    """Return weights of X, those of each sample multiplied by a number."""
    if rows is None:
        return X_weights
    if isinstance(X_weights, da.Array):
        return X_weights * da.from_array(rows[:, None], chunks=(X_weights.chunks[0], 1))
    weights = as_weights(X_weights, "X_weights")
    if weights.by_vector and isinstance(weights.by_rows, da.Array):
        weights = weights.with_part(gather(None, weights.by_rows))
    elif isinstance(weights.by_rows, (da.Array, list, tuple)):
        kind = type(X_weights).__name__.lower()
        raise ValueError(
            f"X_weights must be one array where samples have weights of their own; got blocks "
            f"({kind}). Give them as one dask array, or no weights of samples (sample_weight None, "
            "labeled_weight 1)."
        )
    return weights.with_rows(rows, "X_weights")


def is_on_cluster(X: Any) -> bool:
    """Whether samples are cut into blocks."""
    return isinstance(X, da.Array) or (
        isinstance(X, (list, tuple)) and len(X) > 0 and blocks_of(X, "X") is not None
    )


def _weights(X_weights: Any, rows: Any) -> da.Array:
    """Return an array whose blocks are the weights of blocks of rows."""
    if np.isnan(rows).any():
        raise ValueError(
            "X must have blocks of known numbers of rows with X_weights; call "
            "X.compute_chunk_sizes() before."
        )
    meta = np.empty((0, 1), dtype=object)
    parts = [
        da.from_delayed(delayed(part), (n, 1), meta=meta)
        for part, n in zip(cut_weights(X_weights, "X_weights", rows), rows, strict=True)
    ]
    return da.concatenate(parts)


def _apply(block: Any, weights: Any = None, *, model: Any, method: str, empty: Array) -> Array:
    """Apply a method of a model to a block of rows; the result has two dimensions."""
    X = as_matrix(block)
    if not X.shape[0]:
        return empty
    given = {} if weights is None else {"X_weights": weights_of(weights)}
    found: Array = getattr(model, method)(X, **given)
    return found.reshape(len(found), -1)


def _represent_rows(
    given: BlockInput, rows: Array, A: Array, loss: LossOption, n_threads: int | None
) -> Array:
    """Return some rows of a block over a dictionary."""
    X, weights = given.X, given.X_weights
    few = weights is None and not isinstance(X, CsrFile)
    S = represent(X[rows] if few else X, A, loss=loss, X_weights=weights, n_threads=n_threads or 1)
    return S if few else S[rows]
