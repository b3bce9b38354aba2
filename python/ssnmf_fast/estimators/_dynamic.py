"""Estimator :class:`DynamicTopics`: topics and their prevalence over time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LossName, Matrix, MatrixLike, Solver
from .._common.optional import TABLES_HINT, require_package
from .._common.saved import LOSS, Saved
from .._data.border import CleanMatrix, check_integer, check_option, check_random_state, check_real
from .._data.times import Times, cut, period_of, read_times
from .._models.dated import means_of_slices, resampled
from .._models.factorize import Start, TensorStart
from .._models.many_starts import draw_seeds
from .._models.online import refuse_changes
from .._models.represent import represent
from .._solver.weights import WeightsLike
from .._topics import Records, numbered_names
from ._base import FactorizationBase, keep_stream
from ._docstrings import complete_docstring
from ._dynamic_time import (
    METHODS,
    Peak,
    PeakInterval,
    SlicePrevalence,
    find_topics,
    intervals_of,
    learn_slices,
    lengths_of,
    peak_of,
    stream_of,
    warn_if_degenerate,
)


@complete_docstring
@dataclass(eq=False, repr=False)
class DynamicTopics(FactorizationBase):
    """Topics of dated documents, and how prevalent each is over time.

    The time from the first to the last document is cut into slices.  All documents of a slice share
    their coefficients over the topics: unlike a factorization of the matrix of documents, this
    finds topics that last for a short time.  Other methods are the nonnegative CP decomposition
    of a tensor [1]_ and two baselines.

    Parameters
    ----------
    freq : str or int
        Length of the slices: "hour", "day", "week" (from Monday), "month", "quarter", "year", or a
        multiple such as "6 hours" or "2 weeks".  Multiples that divide a day or a year begin with
        it, others with the first document's day, Monday, month or quarter.  Or a number of slices,
        at least 2: equal parts of the time from the first to the last document.
    method : {"tied", "tensor", "sums", "nmf"}
        How topics are found.  "tied": with the same coefficients for all documents of a slice,
        which are smooth over time; see the notes.  "tensor": by the nonnegative CP decomposition
        of the tensor terms x documents in a slice x slices.  "sums": by NMF of the sums of the
        documents of every slice.  "nmf": by NMF of the matrix of all documents, without regard to
        time.
    documents_per_slice : int, optional
        For "tied" and "tensor" only.  "tied": a slice counts for at most so many documents, so
        that one with many does not dominate the topics; all documents are in its mean.  "tensor":
        number of documents of every slice.  From a larger slice so many are drawn at random; a
        smaller one is padded with empty documents.  None: the median number of documents of the
        slices that have any.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Squared error, for TF-IDF; the I-divergence, for counts or TF-IDF; or another loss, as in
        :func:`ssnmf_fast.factorize`.
    init : {"auto", "slices", ...} or sequence of arrays
        Start.  "auto" is "slices" for "tied", "tensor" and "sums": the best of ten short fits by
        squared errors to the documents of the slices, added up.  Others as in
        :func:`ssnmf_fast.factorize_tensor` or, with the other methods, in
        :func:`ssnmf_fast.factorize`.
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
        How much of a mean document of every slice each topic explains, in the unit of X; of "tied"
        with another loss than "frobenius", of documents with sum 1.  Of the tensor: the factor of
        time, times the weights of the topics, per document that was taken.  Of "nmf": the mean of
        `representation_`.  A slice without documents has zeros.
    slices_ : ndarray of datetime64, shape (slices,)
        When the slices begin, in years, months, days, hours or seconds.
    slice_sizes_ : ndarray of int, shape (slices,)
        Numbers of documents.
    date_order_ : {"month", "day", "year", "any"}
        What stands first in dates of text such as "01/02/2003"; "any" where all dates were of other
        forms.  Later ones are read in the same order.
    representation_ : ndarray, shape (n, r)
        Coefficients of all documents over the topics, also of those that were not drawn; absent
        after :meth:`partial_fit` has continued a fit.
    objective_ : list of (int, float)
        Iterations at which the objective was evaluated, and its values.  After
        :meth:`partial_fit`: numbers of calls since the fit, and estimates of the objective per
        slice, or per document with "nmf".
    n_iter_ : int
        Number of iterations, or of calls of :meth:`partial_fit` since the fit.

    See Also
    --------
    ssnmf_fast.factorize_tensor : The decomposition.
    ssnmf_fast.plotting.topics_over_time : Heat map and curves.

    Notes
    -----
    "tied" minimizes ``sum over slices t, documents d in t of w_t / n_t d(x_d, p_t A)`` over
    prevalences p_t and topics A, where a slice counts for ``w_t = min(n_t, documents_per_slice)``
    of its n_t documents.  Up to a constant that is ``w_t ||mean_t - p_t A||^2`` for squared errors,
    ``d(w_t mean_t, w_t p_t A)`` for other losses.  By squared errors the p_t have a small penalty,
    of 1e-4 times the squares of their differences between neighboring slices, and A of 1e-4 times
    its squares, for X in units of the mean length of documents.  For other losses a document
    is divided by its sum, so that each counts the same, and the start is of terms weighted by how
    few documents have them.

    The tensor has a factor of the arbitrary places of documents within slices, the fit of which
    makes topics seem to be bound to time more than their words are.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.kron(np.eye(2), np.ones((6, 3)))  # two topics: the second one comes later
    >>> times = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    >>> model = sf.DynamicTopics(2, freq="quarter", random_state=0).fit(X, times)
    >>> sorted(str(peak.slice) for peak in model.peaks())
    ['2020-01', '2020-10']
    """

    n_components: int = 10
    _: KW_ONLY
    freq: str | int = "month"
    method: Literal["tied", "tensor", "sums", "nmf"] = "tied"
    documents_per_slice: int | None = None
    loss: LossName | float = "frobenius"
    solver: Solver = "auto"
    init: Literal["slices"] | Start | TensorStart = "auto"
    forget_factor: float = 0.98

    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _verifiable: ClassVar = False
    _saved: ClassVar = {
        "prevalence_": Saved("tr"),
        "slices_": Saved("t", "times"),
        "slice_sizes_": Saved("t"),
        "loss_": LOSS,
        "freq_": Saved(optional=True, kind=str | int),
        "method_": Saved(optional=True, kind=str),
        "date_order_": Saved(optional=True, kind=str),
        "stream_statistics_": Saved("??", container=dict, optional=True),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: MatrixLike, times: npt.ArrayLike | None = None) -> DynamicTopics:  # type: ignore[override]
        """Find topics and their prevalence.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative documents x terms: counts or TF-IDF.
        times : array_like, shape (n,)
            When each document is from; required.  NumPy or pandas datetimes, dates, ISO texts such
            as "2004-12-26", "2004Q4" or "2004-W52", or years or YYYYMMDD as texts or integers.
            pandas reads other texts, such as "26 Dec 2004", "Dec 2004" or "26/12/2004".  All of
            them together decide whether the day, the month or a year of two digits stands first;
            where several fit, it is the month, else the day.

        Raises
        ------
        MissingPackageError
            For texts that only pandas can read, if it is not installed.
        ValueError
            If a time is missing or is no date, or if no order of day, month and year fits all.

        Warns
        -----
        UserWarning
            If several orders of day, month and year fit all dates of text, or a year of two digits
            is read as one to come; if more than half of the topics resemble others, or lie in a
            single slice; or, but for "nmf", if there are nearly as many topics as slices with
            documents.
        """
        self._learn(self._checked(X, reset=True), times)
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

    def _learn(self, X: Matrix, times: npt.ArrayLike | None) -> None:
        rank = check_integer(self.n_components, "n_components", 1)
        read = self._times(X, times, "any")
        slices = cut(read.values, self.freq)
        check_option(self.method, "method", tuple(METHODS))
        if self.documents_per_slice is not None:
            check_integer(self.documents_per_slice, "documents_per_slice", 1)
            if self.method not in ("tied", "tensor"):
                raise ValueError(
                    "documents_per_slice is used by method='tied' and 'tensor' only; leave it out."
                )
        topics = find_topics(self, X, slices, rank, check_random_state(self.random_state))
        self.__dict__.pop("stream_statistics_", None)
        self.loss_, self.freq_, self.method_ = self.loss, self.freq, self.method
        self.components_, self.date_order_ = topics.components, read.first
        self.objective_, self.n_iter_ = topics.fit.objective, topics.fit.n_iter
        self._warn_unless_converged(topics.fit)
        self.representation_ = S = self._represent(X, None)
        self.slices_, self.slice_sizes_ = slices.starts, slices.sizes
        self.prevalence_: Array = (
            means_of_slices(S, slices) if topics.prevalence is None else topics.prevalence
        )
        warn_if_degenerate(self)

    def _times(self, X: Matrix, times: npt.ArrayLike | None, first: str) -> Times:
        read = read_times(times, first=first)
        if len(read.values) != X.shape[0]:
            counts = f"{len(read.values)} entries and X has {X.shape[0]} documents"
            raise ValueError(f"times has {counts}; expected one time for each document.")
        return read

    def _represent(self, X: Matrix, X_weights: WeightsLike, **known: Any) -> Array:
        self._refuse_weights(X_weights)
        X, A = CleanMatrix(X), self.components_
        return represent(X, A, loss=self.loss_, n_threads=self.n_threads)

    def prevalence(self, X: MatrixLike, times: npt.ArrayLike) -> SlicePrevalence:
        """Return the prevalence of the topics in slices of other documents.

        The slices continue those of the fit, before or after them, and may be among them; the model
        stays as it is.

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
        values = METHODS[learned["method"]].prevalence(self, X, slices)
        return SlicePrevalence(slices.starts, slices.sizes, values)

    def partial_fit(self, X: MatrixLike, times: npt.ArrayLike) -> DynamicTopics:
        """Learn from new dated documents, in addition to earlier ones.

        Returns
        -------
        self
            `prevalence_`, `slices_` and `slice_sizes_` have the new slices too, and `components_`
            are up to date; there is no `representation_`.

        Raises
        ------
        ValueError
            As :meth:`fit`; if `freq` is a number of slices; if parameters have changed.

        Notes
        -----
        Without :meth:`fit`, the first call is one: give it many slices, as all topics start there.

        The sums of the documents of every slice, or with "nmf" the documents, are learned from as
        slices of a tensor are by :meth:`NonnegativeCP.partial_fit`.  All documents are used.  Those
        of a slice that was seen before add to it, and nothing is forgotten for them.  The
        prevalence of other slices does not change.

        Only the first call uses `solver`, `init`, `max_iter`, `tol`, `callback` and `verbose`.
        """
        if not hasattr(self, "components_"):
            return self.fit(X, times)
        self._refuse_changes()
        keep = check_real(self.forget_factor, "forget_factor", maximum=1)
        X = self._checked(X, reset=False)
        read = self._times(X, times, getattr(self, "date_order_", "any"))
        new = cut(read.values, self.freq, after=self.slices_[0], least=1)
        stream = learn_slices(self, X, new, keep)
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

    def _refuse_changes(self) -> None:
        learned = self._learned_with()
        refuse_changes({name: getattr(self, name) for name in learned}, learned)

    def _check_loaded(self) -> None:
        if hasattr(self, "stream_statistics_"):
            stream_of(self, 1)

    def to_frame(self, feature_names: npt.ArrayLike | None = None, n_terms: int = 3) -> Any:
        """Return the prevalence of the topics as a table (needs pandas).

        Parameters
        ----------
        n_terms : int
            Number of terms in the name of a column, at least 1.

        Returns
        -------
        pandas.DataFrame
            A row for each slice, indexed by its beginning, and a column for each topic, named by
            its number and largest terms, as "3: tsunami, aceh, quake".
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
            Number of slices before and after the peak whose share in the prevalence is its
            `concentration`, at least 0.
        period : int, optional
            Period in slices, at least 2, for the `periodicity`.  None stands for a year; for a day
            if `freq` is an hour, or hours that divide a day.

        Returns
        -------
        list of Peak
            One for each topic, in their order; its ``to_frame()`` is a table of them.
        """
        check_is_fitted(self)
        check_integer(window, "window", 0)
        if period is None:
            period = period_of(self._learned_with()["freq"])
        else:
            period = check_integer(period, "period", 2)
        columns = enumerate(self.prevalence_.astype(np.float64).T)
        return Records(peak_of(k, values, self.slices_, window, period) for k, values in columns)

    def lengths(self, share: float = 0.5) -> Array:
        """Return how many slices every topic lasts.

        Parameters
        ----------
        share : float
            A topic lasts where it has at least this share of the prevalence of its peak, above 0
            and at most 1.

        Returns
        -------
        ndarray of int, shape (r,)
            Numbers of slices, also of those that are not next to each other; 0 for a topic without
            any prevalence.
        """
        check_is_fitted(self)
        if not 0 < check_real(share, "share") <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {share!r}.")
        return lengths_of(self.prevalence_, share)

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

        The model is fitted again `n_fits` times, with other seeds, which takes that many times as
        long as one fit without representations.  Topics are matched by the cosine of their terms.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            The documents of the fit.
        over : {"documents", "starts"}
            What differs between the fits.  "documents": as many documents of every slice are drawn
            with replacement (the bootstrap), and the start too.  "starts": the start, and for the
            tensor which documents are drawn.
        n_fits : int
            Number of fits, at least 2.

        Returns
        -------
        list of PeakInterval
            One for each topic, in their order; its ``to_frame()`` is a table of them.  The peak of
            a topic that comes back every year may lie in any of them.
        """
        check_is_fitted(self)
        self._refuse_changes()
        n_fits = check_integer(n_fits, "n_fits", 2)
        if not 0 < check_real(level, "level") < 1:
            raise ValueError(f"level must be above 0 and below 1; got {level!r}.")
        redrawn = check_option(over, "over", ("documents", "starts")) == "documents"
        X = self._checked(X, reset=False)
        slices = cut(self._times(X, times, getattr(self, "date_order_", "any")).values, self.freq)
        if not np.array_equal(slices.starts, self.slices_):
            raise ValueError(
                f"times have {len(slices.starts)} slices from {slices.starts[0]} on, and the fit "
                f"had {len(self.slices_)} from {self.slices_[0]} on; give the documents of the fit."
            )
        again = clone(self).set_params(callback=None, verbose=0)
        again.loss_, fits = self.loss_, []
        for seed in draw_seeds(check_random_state(self.random_state), n_fits):
            rng = np.random.default_rng(seed)
            drawn = resampled(X, slices, rng) if redrawn else (X, slices)
            A, prevalence, _ = find_topics(again, *drawn, len(self.components_), rng)
            if prevalence is None:
                again.components_ = A
                prevalence = METHODS[self.method].prevalence(again, *drawn)
            fits.append((A, prevalence))
        return Records(intervals_of(self, fits, level))
