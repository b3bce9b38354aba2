"""Dated documents that come after a fit: their prevalence, and learning from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._data.arrays import refuse_on_disk
from .._data.border import check_real
from .._data.tensors import Tensor, check_tensor
from .._data.threads import resolve_threads
from .._data.times import Slices, Times, cut, read_times
from .._models.dated import means_of_slices, sums_of_slices
from .._models.online import Stream
from .._solver.losses import loss_named
from .._solver.result import sizes_of
from ._base import FactorizationBase
from ._dynamic_fits import METHODS, Method, method_of, name_of, weights_of_estimator


class SlicePrevalence(NamedTuple):
    """How prevalent topics are in slices.

    Attributes
    ----------
    slices : ndarray of datetime64, shape (slices,)
        When the slices begin, from that of the first document to that of the last.
    sizes : ndarray of int, shape (slices,)
        Numbers of documents.
    values : ndarray, shape (slices, r)
        How much of a mean document of every slice each topic explains, as `prevalence_`.
    """

    slices: Array
    sizes: Array
    values: Array


class DatedLearner(FactorizationBase):
    """Topics of dated documents, which later documents may continue."""

    prevalence_: Array
    slices_: Array
    slice_sizes_: Array
    date_order_: str = "any"  # also of files of earlier versions
    loss_: Any
    freq: Any
    method: Any

    def prevalence(self, X: Any, times: Any) -> SlicePrevalence:
        """Return the prevalence of the topics in slices of other documents.

        The slices continue those of the fit, before or after them, and may be among them; the model
        stays as it is.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative documents, with the terms and the weighting of the fit.
        times : array_like, shape (n,)
            When each document is from, as in :meth:`fit`.

        Returns
        -------
        SlicePrevalence
            A named tuple: `slices`, `sizes` and `values` (slices, r).

        Raises
        ------
        ValueError
            If `freq` was a number of slices, which other times do not continue, or `method` an
            estimator and the model was loaded, as files have no estimator.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        of_fit = self._learned_with()
        read = dated(X, times, self.date_order_).values
        slices = cut(read, of_fit["freq"], after=self.slices_[0], least=1)
        if of_fit["method"] in METHODS:
            values = METHODS[of_fit["method"]].prevalence(self, X, slices)
        elif hasattr(self, "estimator_"):
            weights = np.asarray(self.estimator_.transform(X))
            values = weights_of_estimator(self.estimator_, weights, slices).astype(X.dtype)
        else:
            raise ValueError(
                f"the {of_fit['method']} that found the topics is not saved, and prevalence "
                "needs it; fit again."
            )
        return SlicePrevalence(slices.starts, slices.sizes, values)

    def partial_fit(self, X: Any, times: Any) -> DatedLearner:
        """Learn from new dated documents, in addition to earlier ones.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative documents, with the terms and the weighting of earlier ones.
        times : array_like, shape (n,)
            When each document is from, as in :meth:`fit`.

        Returns
        -------
        self
            `prevalence_`, `slices_` and `slice_sizes_` have the new slices too, and `components_`
            are up to date; there is no `representation_`.

        Raises
        ------
        ValueError
            As :meth:`fit`; if `method` is "two-layer" or an estimator, which cannot continue a fit,
            or `freq` a number of slices; if one of them, `loss` or `n_components` has changed.

        Notes
        -----
        The first call, where there was no :meth:`fit`, is one: give it the documents of many
        slices, if possible, as all topics start there.

        The sums of the documents of every slice, or with "nmf" the documents, are learned from as
        slices of a tensor are by :meth:`NonnegativeCP.partial_fit`: they are represented over the
        topics, the topics move to the minimizer of a sum over all slices, earlier ones with the
        weight that they have left, and both are repeated a few times.  Of earlier slices only sums
        are kept.  All documents are taken, whatever `documents_per_slice` is.  Documents of a slice
        that was seen before add to it: its prevalence becomes that of a mean document of all, and
        nothing is forgotten for them.  The prevalence of other slices stays as it was found.

        `solver`, `init`, `max_iter`, `tol`, `callback` and `verbose` are of the first call only.
        """
        method = method_of(self.method)
        if not method.continues:
            raise ValueError(
                f"method={name_of(self.method)!r} cannot continue a fit by new documents; fit all "
                "documents together, or choose 'tied', 'tensor', 'sums' or 'nmf'."
            )
        if not hasattr(self, "components_"):
            self.fit(X, times)
            return self
        self._refuse_changes()
        keep = check_real(self.forget_factor, "forget_factor")
        if keep > 1:
            raise ValueError(f"forget_factor must be at most 1; got {self.forget_factor!r}.")
        X = self._checked(X, reset=False)
        read = dated(X, times, self.date_order_)
        X = X.astype(self.components_.dtype, copy=False)
        new = cut(read.values, self.freq, after=self.slices_[0], least=1)
        used = new.sizes > 0
        seen = np.isin(new.starts[used], self.slices_[self.slice_sizes_ > 0])
        X = method.prepare(X, self.loss)
        rows = X if method.of_documents else sums_of_slices(X, new)[used]
        share = keep ** (float((~seen).sum()) / rows.shape[0])  # of earlier rows, for each of these
        threads = resolve_threads(self.n_threads)
        given = {"loss": self.loss, "threads": threads}
        stream, S = self._stream(method, threads).learn(_as_tensor(rows), keep=share, **given)
        (F,) = stream.factors
        sums = F.sum(axis=0)
        self.components_ = np.ascontiguousarray((F / np.where(sums > 0, sums, 1)).T)
        self._extend(new, S * sums, of_documents=method.of_documents)
        self.date_order_ = read.first
        first = not hasattr(self, "stream_statistics_")
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        self.objective_ = [*([] if first else self.objective_), (self.n_iter_, stream.mean_loss)]
        self.stream_statistics_ = stream.arrays()
        self.__dict__.pop("representation_", None)
        return self

    def _learned_with(self) -> dict[str, Any]:
        """Return the settings of the fit; files of earlier versions do not have all of them."""
        return {
            "n_components": len(self.components_),
            "loss": self.loss_,
            "freq": getattr(self, "freq_", self.freq),
            "method": getattr(self, "method_", name_of(self.method)),
        }

    def _refuse_changes(self) -> None:
        """Raise ValueError if settings have changed since the fit."""
        for name, earlier in self._learned_with().items():
            value = getattr(self, name) if name != "method" else name_of(self.method)
            if value != earlier:
                raise ValueError(
                    f"{name}={value!r} differs from {name}={earlier!r}, with which the model has "
                    "learned so far; what it has learned does not hold for another setting. Set "
                    "it back, or make a new estimator, for example by sklearn.base.clone."
                )

    def _sized(self) -> tuple[Array, Array]:
        """Return the factor of terms (m, r) with columns of size 1, and their former sizes."""
        size = sizes_of(self.components_.T, loss_named(self.loss_, "loss"))
        size = size.astype(self.components_.dtype)
        return np.ascontiguousarray(self.components_.T / np.where(size > 0, size, 1)), size

    def _stream(self, method: Method, threads: int) -> Stream:
        """Return what was learned so far: with its statistics, or as it follows from the fit."""
        F, size = self._sized()
        if hasattr(self, "stream_statistics_"):
            return Stream.of_arrays([F], self.stream_statistics_)
        if method.of_documents:
            rows = self.representation_
        else:
            rows = (self.prevalence_ * self.slice_sizes_[:, None])[self.slice_sizes_ > 0]
        rows = (rows * size).astype(F.dtype)
        fitted = Stream.resumed([F], rows, loss=self.loss, keep=1.0, total=0.0, threads=threads)
        return replace(fitted, seen=0.0)  # losses are those of new rows: the fit may have others

    def _extend(self, new: Slices, explained: Array, *, of_documents: bool) -> None:
        """Add slices, and what the topics explain of their documents or of the sums of these."""
        ends = np.concatenate([self.slices_[[0, -1]], new.starts[[0, -1]]]).astype("datetime64[s]")
        name = "earlier and new times"
        starts = cut(ends, self.freq, name, after=self.slices_[0]).starts
        sizes = np.zeros(len(starts), dtype=self.slice_sizes_.dtype)
        totals = np.zeros((len(starts), explained.shape[1]))
        before = np.searchsorted(starts, self.slices_)
        sizes[before] = self.slice_sizes_
        totals[before] = self.prevalence_ * self.slice_sizes_[:, None]
        at = np.searchsorted(starts, new.starts)
        sizes[at] += new.sizes
        if of_documents:
            totals[at] += means_of_slices(explained, new) * new.sizes[:, None]
        else:
            totals[at[new.sizes > 0]] += explained
        # A slice to which nothing came stays as it is, to the last bit.
        prevalence = (totals / np.maximum(sizes, 1)[:, None]).astype(self.prevalence_.dtype)
        same = ~np.isin(self.slices_, new.starts[new.sizes > 0])
        prevalence[before[same]] = self.prevalence_[same]
        self.prevalence_, self.slices_, self.slice_sizes_ = prevalence, starts, sizes

    def _check_loaded(self) -> None:
        """Raise ValueError for a model of a file whose statistics do not fit its topics."""
        if hasattr(self, "stream_statistics_"):
            Stream.of_arrays([self._sized()[0]], self.stream_statistics_)


def dated(X: Any, times: Any, first: str = "any") -> Times:
    """Return the times of documents in memory, one for each."""
    refuse_on_disk(X, "DynamicTopics")
    read = read_times(times, first=first)
    if len(read.values) != X.shape[0]:
        raise ValueError(
            f"times has {len(read.values)} entries and X has {X.shape[0]} documents; expected one "
            "time for each document."
        )
    return read


def _as_tensor(rows: Any) -> Tensor:
    """Return a matrix as a tensor of two modes."""
    if not sp.issparse(rows):
        return check_tensor(np.ascontiguousarray(rows), "X")
    places = sp.coo_array(rows)
    return check_tensor((np.stack([places.row, places.col]), places.data, rows.shape), "X")
