"""Estimator :class:`BayesianNMF` for data on a cluster."""

from __future__ import annotations

from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import estimators
from .._common.arrays import Array
from ..estimators._bayesian_base import interval_ends
from ._build import as_matrix
from ._cluster import check_client
from ._sources import blocks_of
from ._variational import fit_variational

Self = TypeVar("Self", bound="BayesianNMF")


class BayesianNMF(estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.BayesianNMF`, but
    that `representation_` and `representation_groups_` are dask arrays.  In every iteration each
    worker updates the posteriors of the rows of S that belong to its blocks, and sends what they
    say of A; these sums are added in a fixed order.  So the result does not depend on the number of
    workers.  :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.BayesianNMF`.  `init` is not "nndsvda"; in a tuple S may be a
        dask array.  `n_threads` are those of each task, None for one.  A callback is shown an S of
        None.

    See Also
    --------
    ssnmf_fast.dask.factorize : Point estimates, also of data on disk.

    Notes
    -----
    When a worker is lost, its blocks are loaded again by another one, and the posteriors of their
    rows are found again, given that of A.

    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.BayesianNMF`, without
    `representation_` and its groups, and :func:`ssnmf_fast.load` gives that estimator.

    Examples
    --------
    >>> import dask.array as da                                       # doctest: +SKIP
    >>> from dask.distributed import Client                           # doctest: +SKIP
    >>> import ssnmf_fast.dask as sfd                                 # doctest: +SKIP
    >>> client = Client(n_workers=2, threads_per_worker=1)            # doctest: +SKIP
    >>> X = da.random.poisson(2, (10_000, 50), chunks=(2_500, 50))    # doctest: +SKIP
    >>> model = sfd.BayesianNMF(n_components=5, random_state=0)       # doctest: +SKIP
    >>> model.fit(X).transform(X[:100]).compute().shape               # doctest: +SKIP
    (100, 5)
    """

    def fit(  # type: ignore[override]
        self: Self, X: Any, y: Any = None, *, client: Client | None = None
    ) -> Self:
        """Learn the posteriors from samples on the cluster.

        Parameters
        ----------
        X : dask.array.Array, shape (n, m), or list of delayed objects or futures
            Nonnegative samples, without NaN, cut by rows; as in :func:`ssnmf_fast.dask.factorize`.
        y : ignored
        client : dask.distributed.Client, optional
            None takes the one in use.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad data or parameters; the message names the block and says how to mend them.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As in memory.
        """
        self._learn((check_client(client), X), y)
        self.n_features_in_ = self.components_.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        return self

    def _fit_variational(self, X: Any, groups: Any, **arguments: Any) -> Any:
        client, blocks = X
        return fit_variational(client, blocks, groups, **arguments)

    def fit_transform(self, X: Any, y: Any = None, **given: Any) -> Any:
        """Fit, then transform the same samples: the same as ``fit(X, y).transform(X)``.

        Parameters
        ----------
        X : dask.array.Array, shape (n, m)
        y, **given
            As in :meth:`fit`.

        Returns
        -------
        dask.array.Array, shape (n, r)
            It is computed when it is asked for.
        """
        _check_no_list(X)
        return self.fit(X, y, **given).transform(X)

    def transform(self, X: Any) -> Any:  # type: ignore[override]
        """Represent samples over the learned dictionary, whose posterior does not change.

        Parameters
        ----------
        X : array_like, scipy.sparse or dask.array.Array, shape (n, m)
            Nonnegative samples, without NaN.

        Returns
        -------
        S : ndarray or dask.array.Array, shape (n, r)
            Posterior expectations as in memory; of a dask array they are computed when they are
            asked for.
        """
        check_is_fitted(self)
        _check_no_list(X)
        if not isinstance(X, da.Array):
            return super().transform(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        empty = np.zeros((0, self._n_features_out), dtype=dtype)
        model = self.in_memory()
        model.n_threads = self.n_threads or 1  # a worker runs several tasks at a time
        shared, represent = delayed(model, traverse=False), delayed(_represented, pure=False)
        parts = [
            da.from_delayed(represent(shared, block, empty), (n, empty.shape[1]), meta=empty)
            for block, n in zip(blocks_of(X, "X") or (), X.chunks[0], strict=True)
        ]
        return da.concatenate(parts)

    def interval_representation(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return credible intervals of the entries of `representation_`.

        Parameters
        ----------
        level : float
            As in :meth:`interval_components`.

        Returns
        -------
        low, high : dask.array.Array, shape (n, r)
            Quantiles of the gamma posteriors, computed when they are asked for.
        """
        check_is_fitted(self)
        S: Any = self.representation_
        rates = self.representation_rates_
        interval_ends(np.ones((0, S.shape[1])), rates, level)  # checks the level at once
        low, high = (
            da.map_blocks(_end, S, rates, level, end, dtype=S.dtype, meta=S._meta) for end in (0, 1)
        )
        return low, high

    def in_memory(self) -> Any:
        """Return the model as an estimator in memory, without anything of the cluster.

        Returns
        -------
        ssnmf_fast.BayesianNMF
            As :func:`ssnmf_fast.save` and :func:`ssnmf_fast.load` give it: without
            `representation_` and `representation_groups_`.
        """
        parameters = self.get_params(deep=False)
        parameters["callback"] = None
        if not isinstance(parameters["init"], str):
            parameters.pop("init")
        model = estimators.BayesianNMF(**parameters)
        for name, value in vars(self).items():
            if name.endswith("_") and not isinstance(value, da.Array):
                setattr(model, name, value)
        return model


def _check_no_list(X: Any) -> None:
    if isinstance(X, (list, tuple)) and blocks_of(X, "X"):
        raise TypeError(
            "X is a list of blocks; expected a dask array, which knows their numbers of rows. Make "
            "one with dask.array.concatenate of dask.array.from_delayed."
        )


def _represented(model: Any, block: Any, empty: Array) -> Array:
    """Represent a block of rows."""
    X = as_matrix(block)
    found: Array = model.transform(X) if X.shape[0] else empty
    return found


def _end(S: Array, rates: Array, level: float, end: int) -> Array:
    return interval_ends(S, rates, level)[end]
