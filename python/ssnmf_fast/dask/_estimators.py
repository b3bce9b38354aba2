"""Estimators for data on a cluster: those in memory, with another fit and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from itertools import pairwise
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed
from distributed import Client, Future
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import estimators
from .._common.arrays import Array, LossName, Matrix
from .._common.docstrings import complete
from .._common.locks import cached_property
from .._data.csr_file import CsrFile
from .._labels import ClassLabels, Indicators, LabelLists, allowed
from .._models.factorize import Factorization
from .._models.represent import represent
from .._solver.weights import Weights
from ..estimators import _class_topics
from ..estimators._base import FactorizationBase
from ..estimators._docstrings import complete_docstring
from ..estimators._predicting import ReadoutPredictions, with_readout
from ..estimators._training_data import as_outer, labels_for_training
from ..estimators._views import visible
from . import _data
from ._cluster import check_client, keep_value, reduce_tasks, result_of
from ._data import MEMORY, BlockInput, Blocks, ByRows, ClusterData, FilePath, RowWeights
from ._functions import factorize

Self = TypeVar("Self", bound="OnCluster")
Class = TypeVar("Class", bound="type[OnCluster]")

_LEFT_OUT = ("representation_", "representation_groups_")  # of a model in memory

_SHARED = """What the estimators share.

Parameters
----------
solver, init, n_threads, callback
    As in :func:`ssnmf_fast.dask.factorize`.

Attributes
----------
representation_ : dask.array.Array, shape (n, r)
    Factor S of the fit, with the blocks of X; it is not saved.
"""


def documented(cls: Class) -> Class:
    """Complete the docstring of an estimator by shared entries, and by its bases."""
    cls._kind = cls.__bases__[-1]
    doc, parameters = cls.__doc__ or "", signature(cls).parameters
    cls.__doc__ = complete(doc, [_SHARED], parameters, _LEFT_OUT)
    return complete_docstring(cls)


def lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of an estimator in memory that also accepts samples on the cluster."""
    name, accepted = method.__name__, signature(method)

    @wraps(method)
    def either(self: OnCluster, X: Blocks | Matrix, **weights: Any) -> Any:
        accepted.bind(self, X, **weights)
        if not _data.is_on_cluster(X):
            return getattr(super(OnCluster, self), name)(X, **weights)
        check_is_fitted(self)
        if weights.get("side") is not None:
            raise ValueError("side must be None for data on a cluster.")
        model, X_weights = self.in_memory(), weights.get("X_weights")
        model.n_threads = _data.count_threads(self.n_threads)
        if not isinstance(X, da.Array):
            data = _data.load_blocks(
                check_client(self._client), X, model.n_threads, dtype=self.dtype
            )
            X = data.array(data.start(attrgetter("X")), data.n_columns, data.dtype)
        X = _data.whole_rows(X, "X")
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        example = getattr(model, name)(np.ones((1, X.shape[1]), dtype))[:0]
        empty = example.reshape(0, example.shape[1] if example.ndim == 2 else 1)
        arrays = [X] if X_weights is None else [X, _data.lazy_weights(X_weights, X.chunks[0])]
        call = delayed(getattr)(delayed(model, traverse=False), name)
        options = {"meta": empty, "chunks": (X.chunks[0], empty.shape[1:])}
        result = da.map_blocks(_apply, *arrays, call=call, empty=empty, **options)
        return result if example.ndim == 2 else result[:, 0]

    summary, _, rest = (method.__doc__ or "").partition("\n")
    either.__doc__ = f"""{summary}

For a dask array, or a list of blocks as in `fit`, the result is a lazy dask array.  X_weights may
then be cut into blocks as well.
{rest}"""
    return either


class OnCluster(FactorizationBase):
    """An estimator for data on a cluster.

    Representations and predictions for a dask array are lazy dask arrays.  :func:`ssnmf_fast.save`
    writes the file of the estimator in memory, without `representation_`.
    """

    _kind: ClassVar[type[FactorizationBase]]  # the class in memory, for files and predictions
    _client: Client | None = None  # of the fit, if it was given

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc]
        return {name: value for name, value in state.items() if name != "_client"}

    def fit(
        self: Self,
        X: Blocks,
        y: ByRows | None = None,
        *,
        client: Client | None = None,
        checkpoint: FilePath | None = None,
        memory: int = MEMORY,
        **weights: RowWeights,
    ) -> Self:
        """Learn from samples on the cluster.

        Parameters
        ----------
        X, client, checkpoint, memory
            As in :func:`ssnmf_fast.dask.factorize`.
        y : array_like or dask.array.Array, optional
            Labels of all samples, as for the estimator in memory; they are sent to the caller.
        **weights
            Other arguments of the method in memory, such as `X_weights`, `covariates` or
            `sample_weight`; all may be dask arrays.  After a fit with covariates, represent new
            samples in memory (``model.in_memory().transform(X, covariates=...)``).

        Returns
        -------
        self
        """
        if getattr(self, "n_starts", 1) != 1:
            raise ValueError(
                f"n_starts must be 1 for data on a cluster; got {self.n_starts}. Fit models with "
                "several values of random_state, and keep the model with the smallest objective_."
            )
        if getattr(self, "n_components", 1) == "auto":
            raise ValueError(
                "n_components must be a number for data on a cluster; got 'auto'. Choose it with a "
                "part of the data in memory: choose_rank(part, criterion='words')."
            )
        for name in {"sample_weight", "label_weight"} & {*weights}:
            weights[name] = _data.gather(client, weights[name])
        self._client = client
        client = check_client(client)
        data = _data.load_blocks(client, X, _data.count_threads(self.n_threads), memory, self.dtype)
        data = replace(data, checkpoint=checkpoint)
        self._learn(self._checked(data, reset=True), _data.gather(client, y), **weights)
        return self

    def fit_transform(self, X: Blocks, y: ByRows | None = None, **parameters: Any) -> da.Array:
        """Return ``fit(X, y).transform(X)``, a lazy dask array; parameters as in :meth:`fit`."""
        weights = {name: parameters[name] for name in parameters if name == "X_weights"}
        return self.fit(X, y, **parameters).transform(X, **weights)

    def _checked(self, X: ClusterData | Blocks | Matrix, *, reset: bool = False) -> Any:
        if isinstance(X, ClusterData):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        if _data.is_on_cluster(X):
            raise TypeError(
                "X must be in memory for explain, partial_fit, score, suggest and to_pyldavis; got "
                f"data on a cluster ({type(X).__name__}). Give a part, such as X[:100].compute()."
            )
        return super()._checked(X, reset=reset)

    def _factorize(
        self, X: ClusterData, y: Matrix | None = None, **arguments: Any
    ) -> Factorization:
        arguments.pop("n_starts", None)
        return factorize(X, y, client=X.client, checkpoint=X.checkpoint, **arguments)

    def _represent(self, X: ClusterData | Matrix, X_weights: Any, **known: Array) -> Array:
        if not isinstance(X, ClusterData):
            return super()._represent(X, X_weights, **known)
        assert X.chosen is not None
        data = X.with_weights(X_weights, self.n_threads)
        shared = keep_value(X.client, self.components_), self.loss_, self.n_threads
        futures = data.start(_represent_rows, *shared, parts=data.parts(X.chosen))
        return np.vstack(result_of(X.client, futures))

    def in_memory(self) -> Any:
        """Return the model as an estimator in memory, as :func:`ssnmf_fast.load` does."""
        parameters = self.get_params(deep=False)
        parameters["callback"] = None
        if not isinstance(parameters["init"], str):
            parameters.pop("init")
        model = self._kind(**parameters)
        for name, value in vars(self).items():
            if (name.endswith("_") or name in self._saved) and name not in _LEFT_OUT:
                setattr(model, name, value)
        return model

    transform = lazy(FactorizationBase.transform)
    topic_proportions = lazy(FactorizationBase.topic_proportions)
    inverse_transform = lazy(FactorizationBase.inverse_transform)


class PredictsOnCluster(OnCluster):
    """A classifier for data on a cluster."""

    decision_function = with_readout(lazy(ReadoutPredictions.decision_function))
    predict_proba = with_readout(lazy(ReadoutPredictions.predict_proba))
    predict_log_proba = with_readout(lazy(ReadoutPredictions.predict_log_proba))
    predict = with_readout(lazy(ReadoutPredictions.predict))

    def _represent_rows(self, X: ClusterData, X_weights: RowWeights, rows: Array) -> Array:
        return self._represent(replace(X, chosen=rows), X_weights)

    @with_readout
    def score(  # type: ignore[override]
        self, X: Blocks, y: ByRows, sample_weight: ByRows | None = None, **parameters: Any
    ) -> float:
        """Return the accuracy; with multiple labels, the share of samples without a wrong label.

        Parameters are those of the method in memory; all may be dask arrays.
        """
        in_memory: Any = super()
        given = (_data.gather(self._client, each) for each in (y, sample_weight))
        return float(in_memory.score(X, *given, **parameters))


def _apply(
    block: Matrix,
    weights: _data.WeightParts | None = None,
    *,
    call: Callable[..., Array],
    empty: Array,
) -> Array:
    """Apply a method of a model to a block of rows; return a 2-D array."""
    X = _data.as_matrix(block)
    if not X.shape[0]:
        return empty
    parameters = {} if weights is None else {"X_weights": _data.weights_of(weights)}
    result = call(X, **parameters)
    return result.reshape(len(result), -1)


def _represent_rows(
    block: BlockInput, rows: Array, A: Array, loss: LossName | float, n_threads: int | None
) -> Array:
    X, weights = block.X, block.X_weights
    few = weights is None and not isinstance(X, CsrFile)
    S = represent(X[rows] if few else X, A, loss=loss, X_weights=weights, n_threads=n_threads or 1)
    return S if few else S[rows]


@documented
class NMF(OnCluster, estimators.NMF):
    """Nonnegative matrix factorization X ~ S A for data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.NMF`.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> import ssnmf_fast.dask as sfd
    >>> X = da.random.default_rng(0).random((1000, 50), chunks=(250, 50))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = sfd.NMF(n_components=5, random_state=0).fit(X)
    ...     print(model.transform(X[:100]).compute().shape)
    (100, 5)
    """


@documented
class TopicSupervisedNMF(PredictsOnCluster, estimators.TopicSupervisedNMF):
    """Topic-supervised NMF (TS-NMF) for data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.TopicSupervisedNMF`.

    Notes
    -----
    The caller receives the labels of all samples and, for the readout, the representations of the
    labeled samples, an array (labeled samples, r).  As for data on disk, the readout uses only
    topics; in memory it also uses features and singular directions, so its predictions differ.
    """

    _with_rows = staticmethod(_data.with_rows)

    def _support(self, X: ClusterData, lists: LabelLists, rank: int) -> list[Future]:
        """Return the support of each block; for all samples it would be as large as S."""
        parts = [lists.part(slice(begin, end)) for begin, end in pairwise(np.cumsum([0, *X.rows]))]
        return [X.client.submit(LabelLists.support, p, rank, pure=False) for p in parts]


@documented
class SSNMFClassifier(PredictsOnCluster, estimators.SSNMFClassifier):
    """Semi-supervised NMF for classification, X ~ S A and Y ~ S B, for data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.SSNMFClassifier`.

    Parameters
    ----------
    solver, init, n_threads, callback
        As in :func:`ssnmf_fast.dask.factorize`; `init` may also be "labels".

    Notes
    -----
    The caller receives the labels of all samples and, for the readout, the representations of the
    labeled samples, an array (labeled samples, r), and their indicators, (labeled samples, k).  As
    for data on disk, the readout "logistic" uses only topics; in memory it also uses features and
    singular directions, so its predictions differ.
    """

    def _samples(
        self,
        X: ClusterData,
        X_weights: RowWeights,
        targets: ClassLabels | Indicators,
        **weights: Any,
    ) -> LabeledBlocks:
        labels = labels_for_training(targets, **weights)
        return LabeledBlocks.of(self, X, labels, init=self.init, X_weights=X_weights)


@dataclass(frozen=True, kw_only=True)
class LabeledBlocks(_class_topics.LabeledSamples):
    """Samples on a cluster."""

    X: ClusterData
    factorize: ClassVar = staticmethod(factorize)

    @cached_property
    def _data(self) -> ClusterData:
        return self.X.with_weights(self.X_weights, self.options["n_threads"])

    def sums(self, rows: Array, weights: Array) -> Array:
        add = _class_topics.weighted_sums
        sums = self._data.start(
            lambda block, *part: add(visible(block.X, block.X_weights), *part),
            parts=self._data.parts(rows, weights),
        )
        return np.asarray(reduce_tasks(self.X.client, sums))

    def support(self, owner: Array) -> list[Future]:
        def of_block(block: BlockInput, rows: Array, members: Array) -> Array:
            return allowed(block.X.shape[0], rows, members, owner)

        labels = self.labels.rows, self.labels.truth.members
        return self._data.start(of_block, parts=self._data.parts(*labels, everywhere=True))

    def even_start(self, A: Array, support: list[Future] | None) -> list[Future]:
        def of_block(block: BlockInput, support: Array | None, A: Array) -> Array:
            S = _class_topics.even_start(visible(block.X, block.X_weights), A, support)
            return np.asarray(S, dtype=block.X.dtype)

        parts = [(each,) for each in support or [None] * len(self._data.futures)]
        return self._data.start(of_block, keep_value(self.X.client, A), parts=parts)

    def labeled_sums(self, S: da.Array | list[Future]) -> Array:
        client, rows = self.X.client, (self.labels.rows, self.labels.truth.weight[:, None])
        if isinstance(S, da.Array):
            return np.asarray(result_of(client, client.compute(_sum(S, *rows))))
        blocks = replace(self._data, futures=S)
        sums = blocks.start(_sum, parts=blocks.parts(*rows, everywhere=True))
        return np.asarray(reduce_tasks(client, sums))

    def targets(self) -> tuple[sp.csr_array, Weights | list[Future] | None]:
        truth = self.labels.truth
        Y = self.labels.indicators().astype(self.X.dtype)
        weights = truth.entry_weights * truth.weight[:, None]
        if (weights == weights[:, :1]).all():
            return Y, as_outer(self.labels.spread(weights[:, 0]))
        parts = self._data.parts(self.labels.rows, weights, everywhere=True)
        return Y, self._data.start(_spread, parts=parts)

    @property
    def arguments(self) -> dict[str, Any]:
        X_weights = _data.with_rows(self.X_weights, self.labels.sample_weight)
        cluster = {"client": self.X.client, "checkpoint": self.X.checkpoint}
        return {"X": self.X, "X_weights": X_weights, **cluster, **self.options}


def _spread(block: BlockInput, rows: Array | slice, values: Array) -> Array:
    """Return values for all rows of a block, with zeros except in `rows`."""
    spread = np.zeros((block.X.shape[0], *values.shape[1:]), dtype=values.dtype)
    spread[rows] = values
    return spread


def _sum(S: Any, rows: Array, weights: Array) -> Any:
    return (S[rows] * weights).sum(axis=0, dtype=np.float64)
