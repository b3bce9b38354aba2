"""Learning from slices of a tensor: what `partial_fit` does with them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.text import short
from .._data.border import check_real
from .._data.tensors import SparseTensor, Tensor, as_type, check_mode, check_tensor
from .._data.threads import resolve_threads
from .._models.factorize import TensorFactorization, factorize_tensor
from .._models.online import Stream
from .._solver.losses import loss_named
from .._solver.result import sizes_of
from .._solver.starts import given_factors
from ._base import IterativeEstimator
from ._receipts import WithReceipt
from ._sklearn import ClassNamePrefixFeaturesOutMixin


class SliceLearner(WithReceipt, ClassNamePrefixFeaturesOutMixin, IterativeEstimator):
    """A decomposition that may learn from one slice after the other."""

    factors_: list[Array]
    weights_: Array
    objective_: list[tuple[int, float]]
    n_iter_: int

    @property
    def shape_(self) -> tuple[int, ...]:
        return tuple(len(F) for F in self.factors_)

    @property
    def stream_representation_(self) -> Array:
        mode: Any = getattr(self, "stream_mode_", self.stream_mode)
        F: Array = self.factors_[mode]
        return F * self.weights_

    def partial_fit(self, X: Any, y: Any = None, *, one_slice: bool | None = None) -> SliceLearner:
        """Learn from new slices along `stream_mode`, in addition to earlier ones.

        Parameters
        ----------
        X : array_like, or sparse
            Nonnegative tensor whose length in `stream_mode` is the number of new slices; all other
            lengths must stay the same.  Or a single slice, with a mode less.  The first call fits
            its slices as :meth:`fit` does: give it some tens, if possible, as all components start
            there, and one slice alone does not determine them.
        one_slice : bool, optional
            Whether X is a single slice, without `stream_mode`.  None goes by the number of modes
            of earlier calls; the first call takes X to have the mode, and must be told if X has
            two modes only.

        Returns
        -------
        self
            The factors are up to date, that of `stream_mode` has a row more for each new slice.

        Raises
        ------
        ValueError, TypeError
            For bad data, other lengths, or a loss or a number of components that has changed.

        Notes
        -----
        New slices are coded first: their rows of the factor of `stream_mode` are found with the
        other factors fixed, a convex problem.  Then the other factors move to the minimizer of a
        sum over all slices, earlier ones with the weight that they have left, and both are repeated
        a few times.  Of earlier slices only sums are kept: for each mode a matrix of the size of
        its factor and, for squared errors, one of r x r, (sum n_k) r numbers in all.  What is added
        up was computed with the factors of its time: the usual approximation of online learning
        (Mairal et al. 2010).  Rows of earlier slices stay as they were found; :meth:`transform`
        with ``mode=stream_mode`` gives them over the present factors.

        After :meth:`fit`, learning continues from its factors, from which the statistics of its
        slices follow.  Only the first call uses `solver`, `init`, `max_iter`, `tol`, `callback` and
        `verbose`.
        """
        del y
        keep = check_real(self.forget_factor, "forget_factor")
        if keep > 1:
            raise ValueError(f"forget_factor must be at most 1; got {self.forget_factor!r}.")
        known = self.shape_ if hasattr(self, "factors_") else None
        X, mode = slices_first(check_tensor(X, "X", self.dtype), self.stream_mode, known, one_slice)
        threads = resolve_threads(self.n_threads)
        resume = partial(Stream.resumed, loss=self.loss, keep=keep, threads=threads)
        if known is None:
            result = self._decomposed(X, mode)
            rows = result.factors[0] * result.weights
            stream = resume(result.factors[1:], rows, total=result.objective[-1][1])
        else:
            self._refuse_changes(mode)
            if hasattr(self, "stream_statistics_"):
                stream = Stream.of_arrays(self._others(mode), self.stream_statistics_)
            else:
                rows, total = self.stream_representation_, self.objective_[-1][1]
                stream = resume(self._others(mode), rows, total=total)
            X = as_type(X, self.weights_.dtype)
            stream, new = stream.learn(X, loss=self.loss, keep=keep, threads=threads)
            rows = np.concatenate([self.stream_representation_, new])
        self._keep_stream(stream, rows, mode)
        return self

    def _decomposed(self, X: Tensor, mode: int) -> TensorFactorization:
        """Decompose the first slices, which are the first mode of X."""
        parameters = self._arguments(factorize_tensor)
        given = given_factors(self.init)
        if given is not None and len(given[1]) == len(X.shape):
            weights, factors = given
            factors.insert(0, factors.pop(mode))
            parameters["init"] = weights, factors
        parts = (X.at.places, X.values, X.shape) if isinstance(X, SparseTensor) else X
        return factorize_tensor(parts, **parameters)

    def _check_loaded(self) -> None:
        """Raise ValueError for a model of a file whose statistics do not fit its factors."""
        if hasattr(self, "stream_statistics_"):
            others = self._others(getattr(self, "stream_mode_", 0))
            Stream.of_arrays(others, self.stream_statistics_)

    def _others(self, mode: int) -> list[Array]:
        """Return the factors of all modes but one."""
        return [F for k, F in enumerate(self.factors_) if k != mode]

    def _refuse_changes(self, mode: int) -> None:
        """Raise ValueError if settings have changed since earlier slices."""
        learned = {
            "n_components": (self.n_components, len(self.weights_)),
            "loss": (self.loss, self.loss_),
            "stream_mode": (mode, getattr(self, "stream_mode_", mode)),
        }
        for name, (value, earlier) in learned.items():
            if value != earlier:
                raise ValueError(
                    f"{name}={value!r} differs from {name}={earlier!r}, with which the model has "
                    "learned so far; what it has learned does not hold for another setting. Set "
                    "it back, or make a new estimator, for example by sklearn.base.clone."
                )

    def _keep_stream(self, stream: Stream, rows: Array, mode: int) -> None:
        """Set the attributes after a call; `rows` are those of all slices."""
        size = sizes_of(rows, loss_named(self.loss, "loss")).astype(rows.dtype)
        factors = list(stream.factors)
        factors.insert(mode, rows / np.where(size > 0, size, 1).astype(rows.dtype))
        first = not hasattr(self, "stream_statistics_")
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        earlier = [] if first else self.objective_
        self.objective_ = [*earlier, (self.n_iter_, stream.mean_loss)]
        self.factors_, self.weights_ = factors, size
        self.loss_, self.stream_mode_ = self.loss, mode
        self.stream_statistics_ = stream.arrays()
        for name in ("label_components_", "receipt_"):
            self.__dict__.pop(name, None)


def other_lengths(X: Tensor, shape: tuple[int, ...], mode: int, rest: str) -> ValueError:
    lengths = ", ".join("any" if k == mode else str(n) for k, n in enumerate(shape))
    return ValueError(
        f"X has shape {X.shape}; expected lengths ({lengths}), those of the fit in all modes but "
        f"{mode}, {rest}."
    )


def slices_first(
    X: Tensor, mode: int, shape: tuple[int, ...] | None, one_slice: bool | None
) -> tuple[Tensor, int]:
    """Return new slices as the first mode of a tensor, and the mode of slices counted from 0."""
    n_modes = len(X.shape)
    if one_slice is not None and not isinstance(one_slice, (bool, np.bool_)):
        raise TypeError(f"one_slice must be True, False or None; got {short(one_slice)}.")
    if one_slice is None:
        if shape is None and n_modes == 2:
            raise ValueError(
                f"X has two modes, shape {X.shape}: pass one_slice=True if it is one slice of "
                "a tensor of three, or by one_slice=False that it is a matrix of slices."
            )
        one_slice = shape is not None and n_modes == len(shape) - 1
    n_modes += one_slice
    mode = check_mode(mode, "stream_mode", n_modes)
    others = X.shape if one_slice else X.shape[:mode] + X.shape[mode + 1 :]
    if shape is not None and (n_modes != len(shape) or others != shape[:mode] + shape[mode + 1 :]):
        raise other_lengths(X, shape, mode, "or one slice without that mode")
    if isinstance(X, SparseTensor):
        return X.with_leading_mode() if one_slice else X.leading(mode), mode
    return X[None] if one_slice else np.ascontiguousarray(np.moveaxis(X, mode, 0)), mode
