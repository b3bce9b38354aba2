"""Estimator :class:`DynamicTopics`: topics and their prevalence over time."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LossName, Matrix, MatrixLike, Solver
from .._common.optional import data_frame
from .._common.saved import LOSS, Saved
from .._data.border import (
    CleanMatrix,
    check_integer,
    check_option,
    check_random_state,
    check_real,
    check_share,
)
from .._data.tensors import check_tensor
from .._data.threads import resolve_threads
from .._data.times import Slices, Times, cut, read_times
from .._models import dated
from .._models.factorize import Start, TensorStart
from .._models.fits import draw_seeds
from .._models.online import Stream, refuse_changes
from .._models.represent import represent
from .._solver.losses import loss_named
from .._solver.result import sizes_of
from .._solver.weights import WeightsLike
from .._topics import Records, numbered_names
from ._base import FactorizationBase
from ._docstrings import complete_docstring
from ._nmf import BatchLearner
from ._over_time import Peak, PeakInterval, SlicePrevalence, TopicsOverTime, intervals_of


@complete_docstring
@dataclass(eq=False, repr=False)
class DynamicTopics(BatchLearner, FactorizationBase):
    r"""Topics of dated documents and their prevalence over time.

    The time from the first to the last document is divided into slices.  Topics are learned with
    the help of the other documents in a slice, and have a prevalence in each slice.

    Parameters
    ----------
    freq : str or int
        Length of the slices: "hour", "day", "week" (from Monday), "month", "quarter", "year", or a
        multiple such as "6 hours" or "2 weeks".  Multiples that divide a day or a year are aligned
        with it, others with the day, Monday, month or quarter of the first document.  Or a number
        of equal slices, at least 2.
    method : {"auto", "neighbors", "tied", "nmf", "tensor"}
        "neighbors": NMF of each document combined with the most similar documents of its slice.
        "tied": all documents of a slice have the same coefficients, which are smooth over time; for
        events.  "auto": "tied" if `slice_differences_` is 0.045 or more, or else "neighbors".
        "nmf": NMF without regard to time.  "tensor": nonnegative CP decomposition of the tensor
        terms x documents in a slice x slices [1]_.
    documents_per_slice : int, optional
        "tied": maximum weight of a slice, in documents.  "tensor": documents per slice; larger
        slices are sampled at random, smaller slices padded with empty documents.  None: the median
        number of documents in nonempty slices.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        As in :func:`ssnmf_fast.factorize`: squared error for TF-IDF, the I-divergence for counts.
    init : {"auto", "slices", ...} or sequence of arrays
        Start; for "neighbors", of the combined documents.  "auto" is "slices" for "tied" and
        "tensor": the best of ten short least-squares fits to the sums of the slices.  For
        "neighbors" it is the best of three fits to at most 2,000 documents.  Others as in
        :func:`ssnmf_fast.factorize_tensor` for "tensor", or :func:`ssnmf_fast.factorize`.
    tol : float, optional
        As in :class:`NMF`.  None is 1e-4, but 0 for "tensor" with ``solver="mu"``, the model of the
        thesis: its multiplicative updates converge too slowly for a tolerance.
    forget_factor : float
        In :meth:`partial_fit`, the fraction of their weight that earlier slices keep per new slice,
        between 0 and 1.  1 assumes that the terms of topics do not change.
    random_state : None, int, Generator or RandomState
        Seed of the start and of the sampling of documents.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Weights of the terms in each topic, which sum to 1.
    prevalence_ : ndarray, shape (slices, r)
        Shares of the topics in each slice, which sum to 1 (0 without documents): means of the
        shares in its documents, which are squared lengths of what each topic explains, divided by
        their sum.  "tensor": the factor of time times the weights of the topics, per document.
    slices_ : ndarray of datetime64, shape (slices,)
        Beginnings of the slices.
    slice_sizes_ : ndarray of int, shape (slices,)
        Numbers of documents.
    over_time_ : TopicsOverTime
        These, with peaks and tables; :func:`ssnmf_fast.topics_over_time` adds words.
    method_ : {"neighbors", "tied", "nmf", "tensor"}
        The method, given or chosen; ``verbose=1`` prints a choice and the reason.
    between_slices_ : float
        Share of the variance of the documents' topics that lies between slices (intraclass
        correlation).
    slice_differences_ : float
        With "auto": how much the means of slices differ beyond chance.  Of the largest r - 1
        eigenvalues of their covariance, the mean of the excess over the largest eigenvalue of
        documents with permuted times, relative to it.  Trends and seasons
        count 0: half of their power has a single frequency (Fisher's g).
    date_order_ : {"month", "day", "any"}
        What comes first in dates such as "01/02/2003"; "any" if all had other formats.
    representation_ : ndarray, shape (n, r)
        Coefficients of the documents; deleted when :meth:`partial_fit` updates the model.
    objective_ : list of (int, float)
        Iterations and values of the objective.  After :meth:`partial_fit`: numbers of calls since
        the fit, and estimates per document ("tensor": per slice).
    n_iter_ : int
        Number of iterations, or of calls of :meth:`partial_fit` since the fit.

    See Also
    --------
    ssnmf_fast.factorize_tensor : The decomposition.
    ssnmf_fast.topics_over_time : Words, documents and classes of the slices, for any model.
    ssnmf_fast.plotting.topics_over_time : Heat map and curves.

    Notes
    -----
    "neighbors" adds to each document, scaled to length 1, three times the mean of itself and its 9
    nearest neighbors in the slice by cosine (among 2,000 random documents of a larger slice), and
    scales the sum to length 1.  Small entries of neighbors and, beyond 100 terms, of the sum are
    dropped.  Finally, the components are fitted to the documents alone.

    "tied" minimizes :math:`\sum_t w_t \|\mathrm{mean}_t - p_t A\|^2` over prevalences p_t of slices
    t and topics A.  The weight of a slice with n_t documents is ``min(n_t, documents_per_slice)``.
    Small penalties, 1e-4 for X in units of the mean length of documents, apply to the squares of A
    and of the differences of p_t between consecutive slices.

    Both use squared errors.  For another loss, they learn from documents with terms weighted by
    their rarity; at most 40 iterations from these topics then fit the loss to the documents.

    "tensor" also fits the arbitrary positions of documents within slices, so topics seem more
    concentrated in time than their words are.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> # two topics: the second one comes later
    >>> X = np.kron(np.eye(2), np.ones((6, 3)))
    >>> times = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    >>> model = sf.DynamicTopics(2, freq="quarter", random_state=0).fit(X, times)
    >>> sorted(str(peak.slice) for peak in model.peaks())
    ['2020-01', '2020-07']
    """

    n_components: int | Literal["auto"] = 10
    _: KW_ONLY
    freq: str | int = "month"
    method: Literal["auto", "neighbors", "tied", "nmf", "tensor"] = "auto"
    documents_per_slice: int | None = None
    loss: LossName | float = "frobenius"
    solver: Solver = "auto"
    init: Literal["slices"] | Start | TensorStart = "auto"
    tol: float | None = None  # type: ignore[assignment]
    forget_factor: float = 0.98

    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _verifiable: ClassVar = False
    _tags: ClassVar = {"target_tags": "required"}
    _saved: ClassVar = {
        "prevalence_": Saved("tr"),
        "slices_": Saved("t", "times"),
        "slice_sizes_": Saved("t", "counts"),
        "loss_": LOSS,
        "freq_": Saved(kind=str | int),
        **dict.fromkeys(("method_", "date_order_"), Saved(kind=str)),
        "between_slices_": Saved(optional=True, kind=float),
        "slice_differences_": Saved(optional=True, kind=float),
    }

    def _tol(self) -> float:
        slow = self.method == "tensor" and self.solver == "mu"
        return (0.0 if slow else 1e-4) if self.tol is None else self.tol

    def _arguments(self, *function: Any) -> dict[str, Any]:
        return super()._arguments(*function) | {"tol": self._tol()}

    def fit(self, X: MatrixLike, times: npt.ArrayLike | None = None) -> DynamicTopics:  # type: ignore[override]
        """Learn topics and their prevalence.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative documents x terms: counts or TF-IDF.
        times : array_like, shape (n,)
            Dates of the documents, required: NumPy or pandas datetimes, dates, ISO strings such as
            "2004-12-26", "2004Q4" or "2004-W52", or years or YYYYMMDD as strings or integers.
            pandas reads other strings, such as "26 Dec 2004" or "26/12/2004"; all dates together
            determine whether day, month or year comes first (month before day if both fit).

        Raises
        ------
        MissingPackageError
            If pandas is needed to read the dates, and not installed.
        ValueError
            If a date is missing or invalid, or no order of day, month and year fits all dates.

        Warns
        -----
        UserWarning
            If several orders fit all dates, or a year of two digits is read as a future year; if
            most topics resemble others or lie in a single slice; or, with "tied" and "tensor", if
            the number of topics is close to that of the slices.
        """
        X = self._checked(X, reset=True)
        rank = self._choose_rank(X)
        read = self._times(X, times, "any")
        slices = cut(read.values, self.freq)
        check_option(self.method, "method", ("auto", "neighbors", "tied", "nmf", "tensor"))
        if self.documents_per_slice is not None:
            check_integer(self.documents_per_slice, "documents_per_slice", 1)
            if self.method in ("neighbors", "nmf"):
                raise ValueError(f"Leave out documents_per_slice with method={self.method!r}.")
        settings = {"n_components": rank, "random_state": check_random_state(self.random_state)}
        topics = self._find(self.method, X, slices, settings)
        fit, prevalence = topics.fit, topics.prevalence
        self.components_, self.method_ = topics.components, topics.method
        self.loss_, self.freq_ = self.loss, self.freq
        self.objective_, self.n_iter_, self.date_order_ = fit.objective, fit.n_iter, read.first
        vars(self).pop("slice_differences_", None)
        if topics.differences is not None:
            self.slice_differences_ = topics.differences
            if self.verbose:
                print(self._reason(), file=sys.stderr, flush=True)
        self._warn_unless_converged(fit)
        self.representation_ = self._represent(X, None)
        self.slices_, self.slice_sizes_ = slices.starts, slices.sizes
        shares = dated.shares_of(self.representation_, self.components_)
        self.between_slices_ = dated.between_slices(shares, slices)
        prevalence = dated.mean_shares(shares, slices) if prevalence is None else prevalence
        self.prevalence_: Array = prevalence.astype(X.dtype, copy=False)
        dated.warn_if_degenerate(self.method_, self.components_, prevalence, slices.sizes)
        return self

    def fit_transform(self, X: MatrixLike, times: npt.ArrayLike | None = None) -> Array:  # type: ignore[override]
        """Fit, and return `representation_`, which equals ``fit(X, times).transform(X)``."""
        return self.fit(X, times).representation_

    def transform(self, X: MatrixLike) -> Array:  # type: ignore[override]
        """Represent documents by the topics."""
        return super().transform(X)

    def _times(self, X: Matrix, times: npt.ArrayLike | None, first: str) -> Times:
        read = read_times(times, first=first)
        if len(read.values) != X.shape[0]:
            counts = f"{len(read.values)} entries and X has {X.shape[0]} documents"
            raise ValueError(f"times has {counts}; expected one time for each document.")
        return read

    def _find(self, method: str, X: Matrix, slices: Slices, settings: Any) -> dated.DatedTopics:
        arguments = self._arguments() | settings
        return dated.find_topics(method, X, slices, self.documents_per_slice, arguments)

    def _reason(self) -> str:
        return dated.reason_of(self.method_, self.slice_differences_)

    def _represent(self, X: Matrix, X_weights: WeightsLike, **known: Any) -> Array:
        self._refuse_weights(X_weights)
        X, A = CleanMatrix(X), self.components_
        return represent(X, A, loss=self.loss_, n_threads=self.n_threads)

    def _prevalence(self, X: Matrix, slices: Slices, A: Array) -> Array:
        folded = self.method_ == "tensor"
        rows = dated.means_of_slices(X, slices) if folded else CleanMatrix(X)
        S = represent(rows, A, loss=self.loss_, n_threads=self.n_threads)
        P = S if folded else dated.mean_shares(dated.shares_of(S, A), slices)
        return P.astype(S.dtype, copy=False)

    def prevalence(self, X: MatrixLike, times: npt.ArrayLike) -> SlicePrevalence:
        """Return the prevalence of the topics in other documents, by slices as in the fit.

        Returns
        -------
        SlicePrevalence
            A named tuple: `slices`, `sizes` and `values` (slices, r).

        Raises
        ------
        ValueError
            If `freq` was a number of slices, which cannot be continued.
        """
        X = self._checked(X)
        read = self._times(X, times, self.date_order_)
        slices = cut(read.values, self.freq_, after=self.slices_[0], least=1)
        values = self._prevalence(X, slices, self.components_)
        return SlicePrevalence(slices.starts, slices.sizes, values)

    def partial_fit(self, X: MatrixLike, times: npt.ArrayLike) -> DynamicTopics:
        """Learn from new dated documents, in addition to earlier documents.

        Raises
        ------
        ValueError
            If `freq` is a number of slices, or parameters have changed.

        Notes
        -----
        Without an earlier :meth:`fit`, the first call is a fit and should have many slices.  Later
        calls ignore `documents_per_slice`, `solver`, `init`, `max_iter`, `tol`, `callback` and
        `verbose`.

        :meth:`NonnegativeCP.partial_fit` describes the algorithm.  It learns from the documents
        ("neighbors": combined within the call and slice; "tensor": summed over each slice).  New
        documents of earlier slices are added to these, and nothing is forgotten for them.
        """
        if not hasattr(self, "components_"):
            return self.fit(X, times)
        self._refuse_changes()
        keep = check_real(self.forget_factor, "forget_factor", maximum=1)
        X = self._checked(X)
        read = self._times(X, times, self.date_order_)
        new = cut(read.values, self.freq, after=self.slices_[0], least=1)
        rows = X.astype(self.components_.dtype, copy=False)
        if self.method_ == "neighbors":
            rows = dated.pooled(rows, new, check_random_state(self.random_state)).astype(rows.dtype)
        elif self.method_ == "tensor":
            rows = dated.sums_of_slices(rows, new)[new.sizes > 0]
        fresh = ~np.isin(new.starts[new.sizes > 0], self.slices_[self.slice_sizes_ > 0])
        share = keep ** (float(fresh.sum()) / rows.shape[0])  # of earlier rows, for each of these
        if sp.issparse(rows):
            *places, values = sp.find(rows)
            rows = np.stack(places), values, rows.shape
        stream = self._resumed()
        S = stream.learn(check_tensor(rows, "X"), share, resolve_threads(self.n_threads))
        F = np.ascontiguousarray(stream.factor("0"))
        sums = F.sum(axis=0)
        self.components_ = np.ascontiguousarray((F / np.where(sums > 0, sums, 1)).T)
        if self.method_ == "tensor":
            totals = np.zeros((len(new.starts), len(sums)))
            totals[new.sizes > 0] = S * sums
        else:
            totals = self._prevalence(X, new, self.components_) * new.sizes[:, None]
        earlier = self.slices_, self.slice_sizes_, self.prevalence_
        both = dated.add_slices(*earlier, new, totals, self.freq)
        self.slices_, self.slice_sizes_, self.prevalence_ = both
        self.date_order_ = read.first
        self._keep_learned(stream)
        return self

    def _refuse_changes(self) -> None:
        names = ("n_components", "loss", "freq", "method")
        learned = {name: getattr(self, f"{name}_") for name in names}
        now = {name: getattr(self, name) for name in names}
        for name in ("n_components", *["method"] * (self.method_ in ("neighbors", "tied"))):
            now[name] = learned[name] if now[name] == "auto" else now[name]
        refuse_changes(now, learned)

    def _resumed(self) -> Stream:
        # The factor of terms (m, r) with columns of size 1, and their former sizes.
        A = self.components_
        size = sizes_of(A.T, loss_named(self.loss_, "loss")).astype(A.dtype)
        F = np.ascontiguousarray(A.T / np.where(size > 0, size, 1))
        stream = Stream.resume([F], self.loss_, getattr(self, "stream_statistics_", {}))
        if stream.sums:
            return stream
        if self.method_ == "tensor":
            rows = (self.prevalence_ * self.slice_sizes_[:, None])[self.slice_sizes_ > 0]
        else:
            rows = self.representation_
        stream.take_fit((rows * size).astype(F.dtype), resolve_threads(self.n_threads))
        stream.seen = 0.0  # losses are those of new rows: the fit may have others
        return stream

    @property
    def over_time_(self) -> TopicsOverTime:
        """The prevalence over time, without documents and words."""
        check_is_fitted(self)
        of_slices = self.slices_, self.slice_sizes_, self.prevalence_
        return TopicsOverTime.without_documents(*of_slices, self, self.freq_)

    def to_frame(self, feature_names: npt.ArrayLike | None = None, n_terms: int = 3) -> Any:
        """Return the prevalence of the topics as a table (needs pandas).

        Returns
        -------
        pandas.DataFrame
            Slices, indexed by their beginnings, x topics, named like "3: tsunami, aceh, quake".
        """
        names = numbered_names(self.topics(feature_names, n_terms))
        labels = {"index": self.slices_.astype("datetime64[s]"), "columns": names}
        table = data_frame(self.prevalence_, ", or use slices_ and prevalence_", **labels)
        return table.rename_axis("slice")

    def peaks(self, window: int = 1, period: int | None = None) -> Records[Peak]:
        """Return when each topic is most prevalent, and how concentrated it is in time.

        Parameters
        ----------
        window : int
            Number of slices before and after the peak for the `concentration`, at least 0.
        period : int, optional
            Period in slices, at least 2, for the `periodicity`.  None is a year, or a day if `freq`
            is a number of hours that divides a day.

        Returns
        -------
        list of Peak
            One per topic; the list has ``to_frame()``.
        """
        return self.over_time_.peaks(window, period)

    def lengths(self, share: float = 0.5) -> Array:
        """Return the number of slices that each topic lasts.

        Parameters
        ----------
        share : float
            Slices with at least this share of the peak prevalence count; above 0, at most 1.

        Returns
        -------
        ndarray of int, shape (r,)
            Numbers of slices, consecutive or not; 0 for a topic without prevalence.
        """
        return self.over_time_.lengths(share)

    def intervals(
        self,
        X: MatrixLike,
        times: npt.ArrayLike,
        *,
        over: Literal["documents", "starts"] = "documents",
        n_fits: int = 20,
        level: float = 0.8,
    ) -> Records[PeakInterval]:
        """Return intervals for the peaks and the lengths of the topics.

        The model is fitted `n_fits` times with different seeds; topics are matched by the cosine of
        their terms.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            The documents of the fit.
        over : {"documents", "starts"}
            "documents": fits have different starts and bootstrap samples of the documents of each
            slice.  "starts": fits have different starts and, for "tensor", sampled documents.
        n_fits : int
            Number of fits, at least 2.

        Returns
        -------
        list of PeakInterval
            One per topic; the list has ``to_frame()``.  The peak of a yearly topic may be in any
            year.
        """
        check_is_fitted(self)
        self._refuse_changes()
        n_fits = check_integer(n_fits, "n_fits", 2)
        level = check_share(level, "level")
        redrawn = check_option(over, "over", ("documents", "starts")) == "documents"
        X = self._checked(X)
        slices = cut(self._times(X, times, self.date_order_).values, self.freq)
        if not np.array_equal(slices.starts, self.slices_):
            new = f"times has {len(slices.starts)} slices starting at {slices.starts[0]}"
            old = f"the fit had {len(self.slices_)} starting at {self.slices_[0]}"
            raise ValueError(f"{new}, and {old}; pass the documents of the fit.")
        fits = []
        for seed in draw_seeds(check_random_state(self.random_state), n_fits):
            rng = np.random.default_rng(seed)
            documents, cuts = dated.resampled(X, slices, rng) if redrawn else (X, slices)
            settings = {"callback": None, "verbose": 0, "random_state": rng}
            settings["n_components"] = self.n_components_
            topics = self._find(self.method_, documents, cuts, settings)
            A, P = topics.components, topics.prevalence
            fits.append((A, self._prevalence(documents, cuts, A) if P is None else P))
        model = self.components_, self.prevalence_, self.slices_
        return Records(intervals_of(model, fits, level))
