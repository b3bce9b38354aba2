"""What is asked of weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import entry_rows
from .._data.tensors import Tensor
from .losses import Loss
from .terms import Term

Self = TypeVar("Self", bound="Weights")


class Weights(ABC):
    """What is asked of weights; `name` is what errors call them."""

    _row_field: ClassVar[str]  # the field that has a row, or a number, for each sample
    by_vector: ClassVar[bool] = False  # whether it is a number

    @property
    def by_rows(self) -> Any:
        """What has a row, or a number, for each sample."""
        return getattr(self, self._row_field)

    def with_part(self: Self, part: Any) -> Self:
        """Return the weights of some samples, from their part of `by_rows`."""
        made: Self = replace(self, **{self._row_field: part})  # type: ignore[type-var]
        return made

    def hide(self, X: Any) -> Any:
        """Return X with 0 where an entry has no weight; products of vectors hide nothing."""
        absent = self.absent(X.shape)(slice(None))
        if sp.issparse(X):
            return sp.csr_array(X - X.multiply(absent))
        return np.where(absent.toarray() if sp.issparse(absent) else absent, 0, X)

    @abstractmethod
    def absent(self, shape: tuple[int, int]) -> Callable[[slice], Any]:
        """Return what finds where the weights of rows are 0: a boolean array or CSR matrix."""

    @abstractmethod
    def term(self, Z: Any, loss: Loss, name: str, threads: int) -> Term:
        """Check the weights of a clean matrix in memory, and return its term."""

    @abstractmethod
    def tensor_term(self, X: Tensor, loss: Loss, threads: int) -> Term:
        """Check the weights of a tensor (of :func:`check_tensor`), and return its term."""

    @abstractmethod
    def with_rows(self, rows: Array, name: str) -> Weights:
        """Return the weights with each row multiplied by a number >= 0."""

    @abstractmethod
    def grouped(self, X: Any, G: sp.csr_array, loss: Loss, name: str) -> tuple[Any, Weights, float]:
        """Return a clean X with one row for each group, its weights, and the constant left out.

        G (groups x samples) has a 1 for each sample.
        """

    # What follows holds entries of a clean matrix out, to see how well fits predict them.

    divisible = True  # whether `by_rows` is all that a part of the samples needs

    def seen(self, X: Any) -> Any:
        """Return X with 0 where an entry is missing, or has no weight."""
        hidden = self.hide(X)
        return hidden if sp.issparse(hidden) else np.nan_to_num(hidden, nan=0.0)

    def listed(self, X: Any) -> sp.csr_array | None:
        """Return the pattern beside which nothing has weight, if there is one."""
        del X
        return None

    @abstractmethod
    def at(self, X: Any, pattern: sp.csr_array) -> sp.csr_array:
        """Return the weights of the entries of a pattern."""

    def without(self, X: Any, hidden: sp.csr_array) -> tuple[Any, Weights]:
        """Return X and its weights without the entries of a pattern of ones."""
        if sp.issparse(X):
            return X, self.apart_from(X, hidden)
        X = X.copy()
        X[entry_rows(hidden.indptr), hidden.indices] = np.nan
        return X, self

    @abstractmethod
    def apart_from(self, X: Any, hidden: sp.csr_array) -> Weights:
        """Return the weights with 0 at the entries of a pattern of ones."""

    @abstractmethod
    def cut(self, rows: Array, columns: Array) -> Weights:
        """Return the weights of some rows and columns, given by boolean arrays."""

    @abstractmethod
    def turned(self) -> Weights:
        """Return the weights of the transposed data."""
