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
from .._common.optional import TABLES_HINT, require_package
from .._common.saved import LOSS, Saved
from .._data.border import CleanMatrix, check_integer, check_option, check_random_state, check_real
from .._data.tensors import check_tensor
from .._data.threads import resolve_threads
from .._data.times import Slices, Times, cut, read_times
from .._models import dated
from .._models.factorize import Start, TensorStart
from .._models.many_starts import draw_seeds
from .._models.online import refuse_changes
from .._models.represent import represent
from .._solver.weights import WeightsLike
from .._topics import Records, numbered_names
from . import _dynamic_time
from ._base import FactorizationBase, keep_stream
from ._docstrings import complete_docstring
from ._dynamic_time import Peak, PeakInterval, SlicePrevalence


@complete_docstring
@dataclass(eq=False, repr=False)
class DynamicTopics(FactorizationBase):
    """Topics of dated documents, and how prevalent each is over time.

    The time from the first to the last document is cut into slices.  Topics are found with the
    help of other documents of the same slice, and the prevalence of each in every slice.

    Parameters
    ----------
    freq : str or int
        Length of the slices: "hour", "day", "week" (from Monday), "month", "quarter", "year", or a
        multiple such as "6 hours" or "2 weeks".  Multiples that divide a day or a year begin with
        it, others with the first document's day, Monday, month or quarter.  Or a number of equal
        slices, at least 2.
    method : {"auto", "neighbors", "tied", "nmf", "tensor"}
        How topics are found.  "neighbors": by NMF of every document together with the documents of
        its slice that are most like it.  "tied": with the same coefficients for all documents of a
        slice, which are smooth over time, for slices with a single event each.  "auto":
        "neighbors", or "tied" if a fifth or more of the variance of topics lies between slices.
        "nmf": NMF of all documents, without regard to time.  "tensor": nonnegative CP decomposition
        of the tensor terms x documents in a slice x slices [1]_.  See the notes.
    documents_per_slice : int, optional
        "tied": the largest number of documents that a slice counts for.  "tensor": how many every
        slice has; larger ones are sampled at random, smaller ones padded with empty documents.
        None: the median number of documents of the slices that have any.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        As in :func:`ssnmf_fast.factorize`: squared error for TF-IDF, the I-divergence for counts.
    init : {"auto", "slices", ...} or sequence of arrays
        Start, of "neighbors" that of the documents with their neighbors.  "auto" is "slices" for
        "tied" and "tensor", the best of ten short fits by squared errors to the sums of the slices,
        and for "neighbors" the best of three to at most 2,000 documents.  Others as in
        :func:`ssnmf_fast.factorize_tensor` for "tensor", else in :func:`ssnmf_fast.factorize`.
    tol : float, optional
        As in :class:`NMF`.  None is 1e-4, and 0 for "tensor" with ``solver="mu"``, the thesis'
        model: its multiplicative updates fall too slowly for a tolerance.
    forget_factor : float
        In :meth:`partial_fit`, the share of their weight that earlier slices keep per new slice,
        between 0 and 1.  1 is for topics whose terms stay the same.
    random_state : None, int, Generator or RandomState
        Seed of the documents that are drawn and of the start.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Terms of every topic, with sum 1.
    prevalence_ : ndarray, shape (slices, r)
        Share of every topic in a slice, with sum 1; 0 without documents.  It is the mean of the
        shares of its documents: squared lengths of what the topics explain, over their sum.
        "tensor": the factor of time times the weights of the topics, per document that was taken.
    slices_ : ndarray of datetime64, shape (slices,)
        When the slices begin.
    slice_sizes_ : ndarray of int, shape (slices,)
        Numbers of documents.
    method_ : {"neighbors", "tied", "nmf", "tensor"}
        The method, of "auto" the one that was taken; ``verbose=1`` prints it and why.
    between_slices_ : float
        Which share of the variance of the documents' topics lies between slices (the intraclass
        correlation); with "auto" that of the topics by "neighbors".
    date_order_ : {"month", "day", "year", "any"}
        What stands first in dates such as "01/02/2003"; "any" where all were of other forms.
    representation_ : ndarray, shape (n, r)
        Coefficients of all documents over the topics; absent once :meth:`partial_fit` continued.
    objective_ : list of (int, float)
        Iterations and values of the objective.  After :meth:`partial_fit`: numbers of calls since
        the fit, and estimates for each document, or slice of the "tensor".
    n_iter_ : int
        Number of iterations, or of calls of :meth:`partial_fit` since the fit.

    See Also
    --------
    ssnmf_fast.factorize_tensor : The decomposition.
    ssnmf_fast.topics_over_time : Words, documents and classes of the slices, for any model.
    ssnmf_fast.plotting.topics_over_time : Heat map and curves.

    Notes
    -----
    "neighbors" adds to each document, of length 1, three times the mean of itself and its 9 nearest
    ones of the slice by cosine (from 2,000 drawn at random of a larger slice), and scales that to
    length 1, without small entries of neighbors and, beyond 100 terms, of the result.  The
    components are then fitted to the documents alone.

    "tied" minimizes ``sum over slices t of w_t ||mean_t - p_t A||^2`` over prevalences p_t and
    topics A, where a slice counts for ``w_t = min(n_t, documents_per_slice)`` of its n_t documents,
    with small penalties: 1e-4 times the squares of the differences of p_t between neighboring
    slices, and of A, for X in units of the mean length of documents.

    Both use squared errors.  Another loss is fitted to the documents from their topics, for at most
    40 iterations; these are then topics of documents with terms weighted by how few have them.

    "tensor" also fits the arbitrary places of documents within slices, which makes topics seem
    bound to time more than their words are.

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
        "slice_sizes_": Saved("t"),
        "loss_": LOSS,
        "freq_": Saved(optional=True, kind=str | int),
        "method_": Saved(optional=True, kind=str),
        "between_slices_": Saved(optional=True, kind=float),
        "date_order_": Saved(optional=True, kind=str),
        "stream_statistics_": Saved("??", container=dict, optional=True),
    }

    def _tol(self) -> float:
        slow = self.method == "tensor" and self.solver == "mu"
        return (0.0 if slow else 1e-4) if self.tol is None else self.tol

    def _arguments(self, *function: Any) -> dict[str, Any]:
        return super()._arguments(*function) | {"tol": self._tol()}

    def fit(self, X: MatrixLike, times: npt.ArrayLike | None = None) -> DynamicTopics:  # type: ignore[override]
        """Find topics and their prevalence.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative documents x terms: counts or TF-IDF.
        times : array_like, shape (n,)
            When each document is from; required.  NumPy or pandas datetimes, dates, ISO texts such
            as "2004-12-26", "2004Q4" or "2004-W52", or years or YYYYMMDD as texts or integers.
            pandas reads other texts, such as "26 Dec 2004" or "26/12/2004"; all together decide
            whether day, month or year stands first (of several the month, then the day).

        Raises
        ------
        MissingPackageError
            For texts that only pandas can read, if it is not installed.
        ValueError
            If a time is missing or is no date, or if no order of day, month and year fits all.

        Warns
        -----
        UserWarning
            If several orders of day, month and year fit all dates, or a year of two digits is read
            as one to come; if most topics resemble others or lie in a single slice; or, with "tied"
            and "tensor", if there are nearly as many topics as slices.
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
        found = self._find(self.method, X, slices, settings)
        fit, self.components_, self.method_ = found.fit, found.components, found.method
        self.__dict__.pop("stream_statistics_", None)
        self.loss_, self.freq_ = self.loss, self.freq
        self.objective_, self.n_iter_, self.date_order_ = fit.objective, fit.n_iter, read.first
        if self.verbose and found.between is not None:
            print(found.reason(), file=sys.stderr, flush=True)
        self._warn_unless_converged(fit)
        self.representation_ = self._represent(X, None)
        self.slices_, self.slice_sizes_ = slices.starts, slices.sizes
        shares, between = dated.shares_of(self.representation_, self.components_), found.between
        self.between_slices_ = dated.between_slices(shares, slices) if between is None else between
        prevalence = (
            dated.mean_shares(shares, slices) if found.prevalence is None else found.prevalence
        )
        self.prevalence_: Array = prevalence.astype(X.dtype, copy=False)
        _dynamic_time.warn_if_degenerate(self.method_, self.components_, prevalence, slices.sizes)
        return self

    def fit_transform(self, X: MatrixLike, times: npt.ArrayLike | None = None) -> Array:  # type: ignore[override]
        """Fit, and return the coefficients of the documents over the topics.

        Returns
        -------
        ndarray, shape (n, r)
            `representation_`: the same as ``fit(X, times).transform(X)``.
        """
        return self.fit(X, times).representation_

    def transform(self, X: MatrixLike) -> Array:  # type: ignore[override]
        """Return the coefficients of documents over the topics."""
        return super().transform(X)

    def _times(self, X: Matrix, times: npt.ArrayLike | None, first: str) -> Times:
        read = read_times(times, first=first)
        if len(read.values) != X.shape[0]:
            counts = f"{len(read.values)} entries and X has {X.shape[0]} documents"
            raise ValueError(f"times has {counts}; expected one time for each document.")
        return read

    def _find(self, method: str, X: Matrix, slices: Slices, settings: Any) -> dated.DatedTopics:
        arguments = self._arguments() | settings
        return _dynamic_time.find_topics(method, X, slices, self.documents_per_slice, arguments)

    def _represent(self, X: Matrix, X_weights: WeightsLike, **known: Any) -> Array:
        self._refuse_weights(X_weights)
        X, A = CleanMatrix(X), self.components_
        return represent(X, A, loss=self.loss_, n_threads=self.n_threads)

    def _prevalence(self, method: str, X: Matrix, slices: Slices, A: Array) -> Array:
        rows = dated.means_of_slices(X, slices) if method == "tensor" else CleanMatrix(X)
        S = represent(rows, A, loss=self.loss_, n_threads=self.n_threads)
        P = S if method == "tensor" else dated.mean_shares(dated.shares_of(S, A), slices)
        return P.astype(S.dtype, copy=False)

    def prevalence(self, X: MatrixLike, times: npt.ArrayLike) -> SlicePrevalence:
        """Return the prevalence of the topics in slices of other documents.

        Their slices continue those of the fit, or are among them.

        Returns
        -------
        SlicePrevalence
            A named tuple: `slices`, `sizes` and `values` (slices, r).

        Raises
        ------
        ValueError
            If `freq` was a number of slices, which other times do not continue.
        """
        check_is_fitted(self)
        X, learned = self._checked(X, reset=False), self._learned_with()
        read = self._times(X, times, getattr(self, "date_order_", "any")).values
        slices = cut(read, learned["freq"], after=self.slices_[0], least=1)
        values = self._prevalence(learned["method"], X, slices, self.components_)
        return SlicePrevalence(slices.starts, slices.sizes, values)

    def partial_fit(self, X: MatrixLike, times: npt.ArrayLike) -> DynamicTopics:
        """Learn from new dated documents, in addition to earlier ones.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As :meth:`fit`; if `freq` is a number of slices; if parameters have changed.

        Notes
        -----
        Without :meth:`fit`, the first call is one: give it many slices.  Later ones ignore
        `solver`, `init`, `max_iter`, `tol`, `callback` and `verbose`; `representation_` goes.

        The documents ("neighbors": pooled with those of the same call and slice; "tensor": the sums
        of every slice) are learned from as by :meth:`NonnegativeCP.partial_fit`.  Those of a slice
        that was seen before add to it, and nothing is forgotten for them.
        """
        if not hasattr(self, "components_"):
            return self.fit(X, times)
        method = self._unchanged()["method"]
        keep = check_real(self.forget_factor, "forget_factor", maximum=1)
        X = self._checked(X, reset=False)
        read = self._times(X, times, getattr(self, "date_order_", "any"))
        new = cut(read.values, self.freq, after=self.slices_[0], least=1)
        rows = X.astype(self.components_.dtype, copy=False)
        if method != "tensor" and not hasattr(self, "between_slices_"):
            raise ValueError("prevalence_ is in the unit of an earlier version; fit again.")
        if method == "neighbors":
            rows = dated.pooled(rows, new, check_random_state(self.random_state)).astype(rows.dtype)
        elif method == "tensor":
            rows = dated.sums_of_slices(rows, new)[new.sizes > 0]
        fresh = ~np.isin(new.starts[new.sizes > 0], self.slices_[self.slice_sizes_ > 0])
        share = keep ** (float(fresh.sum()) / rows.shape[0])  # of earlier rows, for each of these
        if sp.issparse(rows):
            *places, values = sp.find(rows)
            rows = np.stack(places), values, rows.shape
        threads = resolve_threads(self.n_threads)
        learn = _dynamic_time.stream_of(self, method, threads).learn
        stream, S = learn(check_tensor(rows, "X"), loss=self.loss, keep=share, threads=threads)
        (F,) = stream.factors
        sums = F.sum(axis=0)
        self.components_ = np.ascontiguousarray((F / np.where(sums > 0, sums, 1)).T)
        if method == "tensor":
            totals = np.zeros((len(new.starts), len(sums)))
            totals[new.sizes > 0] = S * sums
        else:
            totals = self._prevalence(method, X, new, self.components_) * new.sizes[:, None]
        known = SlicePrevalence(self.slices_, self.slice_sizes_, self.prevalence_)
        both = _dynamic_time.add_slices(known, new, totals, self.freq)
        self.slices_, self.slice_sizes_, self.prevalence_ = both
        self.date_order_ = read.first
        keep_stream(self, stream)
        self.__dict__.pop("representation_", None)
        return self

    def _learned_with(self) -> dict[str, Any]:
        """Return the settings of the fit; files of earlier versions do not have all of them."""
        return {
            "n_components": len(self.components_),
            "loss": self.loss_,
            "freq": getattr(self, "freq_", self.freq),
            "method": getattr(self, "method_", self.method),
        }

    def _unchanged(self) -> dict[str, Any]:
        learned = self._learned_with()
        now = {name: getattr(self, name) for name in learned}
        if self.method == "auto" and learned["method"] in ("neighbors", "tied"):
            now["method"] = learned["method"]  # what was taken
        refuse_changes(now, learned)
        return learned

    def _check_loaded(self) -> None:
        if hasattr(self, "stream_statistics_"):
            _dynamic_time.stream_of(self, self._learned_with()["method"], 1)

    def to_frame(self, feature_names: npt.ArrayLike | None = None, n_terms: int = 3) -> Any:
        """Return the prevalence of the topics as a table (needs pandas).

        Parameters
        ----------
        n_terms : int
            Number of terms in the name of a column, at least 1.

        Returns
        -------
        pandas.DataFrame
            Slices, indexed by their beginnings, x topics, named as "3: tsunami, aceh, quake".
        """
        names = numbered_names(self.topics(feature_names, n_terms))
        with require_package("pandas", f"{TABLES_HINT}, or use slices_ and prevalence_"):
            import pandas
        index = pandas.DatetimeIndex(self.slices_.astype("datetime64[s]"), name="slice")
        return pandas.DataFrame(self.prevalence_, index=index, columns=names)

    def peaks(self, window: int = 1, period: int | None = None) -> Records[Peak]:
        """Return when every topic is most prevalent, and how much it is bound to that time.

        Parameters
        ----------
        window : int
            Number of slices before and after the peak for the `concentration`, at least 0.
        period : int, optional
            Period in slices, at least 2, for the `periodicity`.  None stands for a year; for a day
            if `freq` is an hour, or hours that divide a day.

        Returns
        -------
        list of Peak
            One for each topic, in their order; its ``to_frame()`` is a table of them.
        """
        check_is_fitted(self)
        freq = self._learned_with()["freq"]
        return _dynamic_time.peaks_of(self.prevalence_, self.slices_, freq, window, period)

    def lengths(self, share: float = 0.5) -> Array:
        """Return how many slices every topic lasts.

        Parameters
        ----------
        share : float
            Of the prevalence at its peak that a topic has where it lasts; above 0, at most 1.

        Returns
        -------
        ndarray of int, shape (r,)
            Numbers of slices, next to each other or not; 0 for a topic without any prevalence.
        """
        check_is_fitted(self)
        if not 0 < check_real(share, "share") <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {share!r}.")
        return _dynamic_time.lengths_of(self.prevalence_, share)

    def intervals(
        self,
        X: MatrixLike,
        times: npt.ArrayLike,
        *,
        over: Literal["documents", "starts"] = "documents",
        n_fits: int = 20,
        level: float = 0.8,
    ) -> Records[PeakInterval]:
        """Return between which slices the peaks of topics lie, and how long the topics last.

        The model is fitted `n_fits` times with other seeds.  Topics are matched by the cosine of
        their terms.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            The documents of the fit.
        over : {"documents", "starts"}
            What differs between the fits.  "documents": the start and the documents, of which every
            slice has as many, drawn with replacement (the bootstrap).  "starts": the start, and for
            the tensor which documents are drawn.
        n_fits : int
            Number of fits, at least 2.

        Returns
        -------
        list of PeakInterval
            One for each topic, in their order; its ``to_frame()`` is a table of them.  The peak of
            a topic that comes back every year may lie in any.
        """
        check_is_fitted(self)
        method = self._unchanged()["method"]
        n_fits = check_integer(n_fits, "n_fits", 2)
        if not 0 < check_real(level, "level") < 1:
            raise ValueError(f"level must be above 0 and below 1; got {level!r}.")
        redrawn = check_option(over, "over", ("documents", "starts")) == "documents"
        X = self._checked(X, reset=False)
        slices = cut(self._times(X, times, getattr(self, "date_order_", "any")).values, self.freq)
        if not np.array_equal(slices.starts, self.slices_):
            new = f"times have {len(slices.starts)} slices from {slices.starts[0]} on"
            old = f"the fit had {len(self.slices_)} from {self.slices_[0]} on"
            raise ValueError(f"{new}, and {old}; give the documents of the fit.")
        fits = []
        for seed in draw_seeds(check_random_state(self.random_state), n_fits):
            rng = np.random.default_rng(seed)
            drawn, cuts = dated.resampled(X, slices, rng) if redrawn else (X, slices)
            settings = {"callback": None, "verbose": 0, "random_state": rng}
            found = self._find(method, drawn, cuts, settings)
            A, P = found.components, found.prevalence
            fits.append((A, self._prevalence(method, drawn, cuts, A) if P is None else P))
        model = self.components_, self.prevalence_, self.slices_
        return Records(_dynamic_time.intervals_of(model, fits, level))
