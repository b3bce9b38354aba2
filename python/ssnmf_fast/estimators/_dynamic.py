"""Estimator :class:`DynamicTopics`: topics and their prevalence over time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from .._common.arrays import Array, Init, Solver
from .._common.saved import LOSS, Saved
from .._data.border import CleanMatrix, check_integer, check_random_state
from .._data.times import cut
from .._models.dated import means_of_slices
from .._models.represent import represent
from .._solver.losses import LossOption
from ._docstrings import complete_docstring
from ._dynamic_fits import find_topics, method_of, name_of, warn_if_degenerate
from ._dynamic_peaks import TopicsOverTime
from ._dynamic_stream import dated


@complete_docstring
@dataclass(eq=False, repr=False)
class DynamicTopics(TopicsOverTime):
    """Topics of dated documents, and how prevalent each is over time.

    The time from the first to the last document is cut into slices.  All documents of a slice share
    their coefficients over the topics: unlike a factorization of the matrix of documents, this
    finds topics that last for a short time.  The nonnegative CP decomposition of a tensor [1]_ and
    baselines are one argument away.

    Parameters
    ----------
    freq : str or int
        Length of the slices: "hour", "day", "week" (from Monday), "month", "quarter", "year", or a
        multiple such as "6 hours" or "2 weeks".  Multiples that divide a day or a year begin with
        it, others with the first document's day, Monday, month or quarter.  Or a number of slices,
        at least 2: equal parts of the time from the first to the last document.
    method : {"tied", "tensor", "sums", "two-layer", "nmf"} or estimator
        How topics are found.  "tied": with the same coefficients for all documents of a slice,
        which are smooth over time; see the notes.  "tensor": by the nonnegative CP decomposition
        of the tensor terms x documents in a slice x slices.  "sums": by NMF of the sums of the
        documents of every slice.  "two-layer": by NMF of the documents of every slice, and of the
        topics of all slices, each by its 20 largest terms [2]_; both have `n_components` topics.
        "nmf": by NMF of the matrix of all documents, without regard to time.  An estimator that is
        not fitted, with `fit_transform` and `components_`, such as LatentDirichletAllocation of
        scikit-learn, also finds them without regard to time: a copy of it is fitted, with
        `n_components` and, unless it has one, a `random_state` of this model.  Other parameters
        have no say in that; `loss` is that of representations.
    documents_per_slice : int, optional
        Of "tied": for how many documents a slice counts at most, so that one with many does not
        rule the topics; all documents are in its mean.  Of "tensor": number of documents of every
        slice.  Of a slice with more so many are drawn at random; one with fewer is padded with
        empty documents.  None takes the median number of documents of the slices that have any; no
        more than the largest slice has are taken.
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
        time, times the weights of the topics, per document that was taken.  Of "two-layer" and
        "nmf": the mean of `representation_`.  Of an estimator: the mean of its weights, as they are
        where they are shares that sum to 1.  A slice without documents has zeros.
    slices_ : ndarray of datetime64, shape (slices,)
        When the slices begin, in years, months, days, hours or seconds.
    slice_sizes_ : ndarray of int, shape (slices,)
        Numbers of documents.
    date_order_ : {"month", "day", "year", "any"}
        What stands first in dates of text such as "01/02/2003"; "any" where all dates were of other
        forms.  Later ones are read in the same order.
    representation_ : ndarray, shape (n, r)
        Coefficients of all documents over the topics, also of those that were not drawn.  Not
        there after :meth:`partial_fit` has continued a fit.
    objective_ : list of (int, float)
        Iterations at which the objective was evaluated, and its values; of "two-layer" that of the
        topics of slices, of an estimator none.  After :meth:`partial_fit`: numbers of calls since
        the fit, and estimates of the objective per slice, or per document with "nmf".
    n_iter_ : int
        Number of iterations, or of calls of :meth:`partial_fit` since the fit.
    estimator_ : estimator
        The fitted copy of an estimator that is the `method`; it is not saved.

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

    The tensor has a factor of the places of documents within slices.  Their order is arbitrary, and
    a fit of it makes topics seem to be bound to time more than their words are.

    Documents are represented over the factor of terms, as :meth:`transform` does.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, chapter 4.
    .. [2] D. Greene, J. P. Cross, "Exploring the political agenda of the European Parliament using
       a dynamic topic modeling approach", Political Analysis 25(1), 2017.

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
    method: Any = "tied"
    documents_per_slice: int | None = None
    loss: LossOption = "frobenius"
    solver: Solver = "auto"
    init: Init = "auto"
    forget_factor: float = 0.98

    _allow_nan: ClassVar = False
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

    def fit(self, X: Any, times: Any) -> DynamicTopics:  # type: ignore[override]
        """Find topics and their prevalence.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative documents x terms: counts or TF-IDF.
        times : array_like, shape (n,)
            When each document is from: NumPy or pandas datetimes, dates, ISO texts such as
            "2004-12-26", "2004Q4" or "2004-W52", or years or YYYYMMDD as texts or integers.  pandas
            reads other texts, such as "26 Dec 2004", "Dec 2004" or "26/12/2004".  All of them
            together decide whether the day, the month or a year of two digits stands first; where
            several fit, it is the month, else the day.

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
            single slice; or, for "tied", "tensor" and "sums", if there are nearly as many topics as
            slices with documents.
        """
        self._learn(self._checked(X, reset=True), times)
        return self

    def fit_transform(self, X: Any, times: Any) -> Array:  # type: ignore[override]
        """Fit, and return the coefficients of the documents over the topics.

        Parameters
        ----------
        times : array_like, shape (n,)
            When each document is from, as in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n, r)
            `representation_`: the same as ``fit(X, times).transform(X)``.
        """
        return self.fit(X, times).representation_

    def transform(self, X: Any) -> Array:  # type: ignore[override]
        """Return the coefficients of documents over the topics."""
        return super().transform(X)

    def _learn(self, X: Any, times: Any) -> None:
        rank = check_integer(self.n_components, "n_components", 1)
        read = dated(X, times)
        slices = cut(read.values, self.freq)
        method = method_of(self.method)
        if self.documents_per_slice is not None:
            check_integer(self.documents_per_slice, "documents_per_slice", 1)
            if not method.per_slice:
                raise ValueError(
                    "documents_per_slice belongs to method='tied' and 'tensor'; the others take "
                    "all documents. Leave it out."
                )
        found = find_topics(self, X, slices, rank, check_random_state(self.random_state))
        for earlier in ("stream_statistics_", "estimator_"):
            self.__dict__.pop(earlier, None)
        self.loss_, self.freq_, self.method_ = self.loss, self.freq, name_of(self.method)
        self.components_ = found.components
        self.objective_, self.n_iter_ = found.objective, found.n_iter
        if found.estimator is not None:
            self.estimator_ = found.estimator
        self._warn_unless_converged(found)
        self.representation_ = S = self._represent(X, None)
        given = found.prevalence
        self.prevalence_ = means_of_slices(S, slices) if given is None else given
        self.slices_, self.slice_sizes_, self.date_order_ = slices.starts, slices.sizes, read.first
        warn_if_degenerate(self, not method.of_documents)

    def _represent(self, X: Any, X_weights: Any, **known: Any) -> Array:
        self._refuse_weights(X_weights)
        X, A = CleanMatrix(X), self.components_
        return represent(X, A, loss=self.loss_, n_threads=self.n_threads)
