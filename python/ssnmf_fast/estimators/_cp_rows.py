"""What a representation of rows of a tensor says of the tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._data.border import check_factor, check_matrix
from .._data.tensors import check_mode, check_tensor
from .._models.represent import explained_deviance
from .._solver.result import dense_model


class RowsOfTensors:
    """The way back from representations of a mode, and how much of a tensor they explain."""

    factors_: list[Array]
    loss_: str | float
    n_threads: int | None
    dtype: Any
    transform: Callable[..., Array]

    def inverse_transform(self, X: Any, *, mode: int = 0) -> Array:
        """Return the tensor that a representation of a mode approximates.

        Parameters
        ----------
        X : array_like, shape (n, r)
            Nonnegative representation, as from :meth:`transform` with the same `mode`.
        mode : int
            The mode of the rows; negative from the last.

        Returns
        -------
        ndarray
            Of length n in the mode and of the fitted lengths in all others: the sum over q of the
            products of column q of X and of those of the factors of the other modes.

        Raises
        ------
        ValueError
            For other numbers of columns, or if the result would have more than 2^27 places (1 GB).
        """
        check_is_fitted(self)
        mode = check_mode(mode, "mode", len(self.factors_))
        S = check_matrix(X, "X", allow_nan=False, limited=False)
        rank = self.factors_[0].shape[1]
        S = check_factor(S, "X", (len(S), rank), S.dtype, "rows x components", limited=False)
        factors = self._with_rows(S, mode)
        return dense_model(np.ones(rank, S.dtype), factors, "give fewer rows at a time")

    def score(self, X: Any, y: Any = None, *, mode: int = 0, X_weights: Any = None) -> float:
        """Return the share of the deviance of X that the model explains, with rows as fits best.

        It is ``1 - loss(X, M) / loss(X, mean of X)``, where M is the model whose factor of `mode`
        is ``transform(X, mode=mode)``: R^2 for squared errors, D^2 for other losses.

        Parameters
        ----------
        X : array_like, or sparse
            Nonnegative tensor, as for :meth:`transform`: seen or new rows of `mode`.
        y : None
            Ignored.
        mode : int
            The mode of the rows; negative from the last.
        X_weights : optional
            Nonnegative weights of the loss of every entry, as in :meth:`fit`.

        Returns
        -------
        float
            At most 1, larger is better; 0 for a model that is no better than the mean, and for a
            constant X.
        """
        del y
        S = self.transform(X, mode=mode, X_weights=X_weights)
        mode = check_mode(mode, "mode", len(self.factors_))
        return explained_deviance(
            check_tensor(X, "X", self.dtype),
            self._with_rows(S, mode),
            loss=self.loss_,
            X_weights=X_weights,
            n_threads=self.n_threads,
        )

    def _with_rows(self, S: Array, mode: int) -> list[Array]:
        """Return the factors with another one for a mode."""
        return [S if k == mode else F for k, F in enumerate(self.factors_)]
