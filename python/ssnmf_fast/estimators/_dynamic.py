"""Estimator :class:`DynamicTopics`: topics and their prevalence over time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import PLAIN, Saved
from .._data.border import CleanMatrix
from .._data.checks import check_integer, check_option
from .._data.csr_file import CsrFile
from .._data.times import PER_YEAR, cut, read_times
from .._models.represent import represent
from .._topics import numbered_names
from ._base import FactorizationBase
from ._docstrings import complete_docstring
from ._dynamic_fits import (
    METHODS,
    Peak,
    fit_matrix,
    fit_tensor,
    means,
    peak_of,
    warn_if_degenerate,
)


@complete_docstring
@dataclass(eq=False, repr=False)
class DynamicTopics(FactorizationBase):
    """Topics of dated documents, and how prevalent each is over time.

    The time from the first to the last document is cut into slices.  With ``method="tensor"`` the
    documents are folded to a tensor, terms x documents in a slice x slices, whose nonnegative CP
    decomposition has a factor of time beside that of terms: unlike a factorization of the matrix,
    it finds topics that last for a short time [1]_.

    Parameters
    ----------
    freq : {"day", "week", "month", "quarter", "year"} or int
        Length of the slices (weeks begin on Mondays), or their number, at least 2: equal parts of
        the time from the first to the last document.
    method : {"tensor", "nmf"}
        "nmf" factorizes the matrix of all documents, without regard to time; the prevalence of a
        topic is its mean in the documents of a slice.
    documents_per_slice : int, optional
        Of the tensor: number of documents of every slice.  Of a slice with more documents so many
        are drawn at random; one with fewer is padded with empty documents.  None takes the median
        number of documents of the slices that have any; no more than the largest slice has are
        taken.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Squared error (of the paper), the I-divergence, for counts, or another loss, as in
        :func:`ssnmf_fast.factorize`.
    init : {"auto", "slices", ...} or sequence of arrays
        Start.  "auto" is "slices" for the tensor: the best of ten short fits of NMF to the sums of
        the documents of the slices.  Others as in :func:`ssnmf_fast.factorize_tensor` or, with
        "nmf", in :func:`ssnmf_fast.factorize`.
    random_state : None, int, Generator or RandomState
        Seed of the documents that are drawn and of the start.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Terms of every topic, with sum 1.
    prevalence_ : ndarray, shape (slices, r)
        How much of a mean document of every slice each topic explains, in the unit of X.  Of the
        tensor: the factor of time, times the weights of the topics, per document that was taken.  A
        slice without documents has zeros.
    slices_ : ndarray of datetime64, shape (slices,)
        When the slices begin, in years, months, days or seconds.
    slice_sizes_ : ndarray of int, shape (slices,)
        Numbers of documents.
    representation_ : ndarray, shape (n, r)
        Coefficients of all documents over the topics, also of those that were not drawn.

    See Also
    --------
    ssnmf_fast.factorize_tensor : The decomposition.
    ssnmf_fast.plotting.topics_over_time : Heat map and curves.

    Notes
    -----
    The order of the documents within a slice is arbitrary, and so is the factor of documents;
    documents are represented over the factor of terms instead, as :meth:`transform` does.

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
    ['2020-01', '2020-07']
    """

    n_components: int = 10
    _: KW_ONLY
    freq: str | int = "month"
    method: str = "tensor"
    documents_per_slice: int | None = None
    loss: str | float = "frobenius"
    solver: str = "auto"
    init: Any = "auto"

    _allow_nan: ClassVar = False
    _verifiable: ClassVar = False
    _saved: ClassVar = {
        "prevalence_": Saved("tr"),
        "slices_": Saved("t", "times"),
        "slice_sizes_": Saved("t"),
        "loss_": PLAIN,
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
            "2004-12-26", or YYYYMMDD as texts or integers.  pandas reads other texts, which must
            all have one form; of "03/04/2004" the month is taken to be the first number.

        Raises
        ------
        MissingPackageError
            For texts that only pandas can read, if it is not installed.

        Warns
        -----
        UserWarning
            If more than half of the topics resemble others, or lie in a single slice; or, for
            ``method="tensor"``, if there are nearly as many topics as slices with documents.
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
        if isinstance(X, CsrFile):
            raise ValueError(
                "X is on disk, and DynamicTopics needs it in memory: it puts documents into slices."
            )
        rank = check_integer(self.n_components, "n_components", 1)
        read = read_times(times)
        if len(read) != X.shape[0]:
            raise ValueError(
                f"times has {len(read)} entries and X has {X.shape[0]} documents; expected one "
                "time for each document."
            )
        slices = cut(read, self.freq)
        tensor = check_option(self.method, "method", METHODS) == "tensor"
        if self.documents_per_slice is not None:
            check_integer(self.documents_per_slice, "documents_per_slice", 1)
            if not tensor:
                raise ValueError(
                    "documents_per_slice belongs to method='tensor'; the other takes all "
                    "documents. Leave it out."
                )
        self.loss_ = self.loss
        if tensor:
            self.prevalence_ = fit_tensor(self, X, slices, rank)
        else:
            fit_matrix(self, X, rank)
        self.representation_ = S = self._represent(X, None)
        if not tensor:
            self.prevalence_ = means(S, slices)
        self.slices_, self.slice_sizes_ = slices.starts, slices.sizes
        warn_if_degenerate(self, tensor)

    def _represent(self, X: Any, X_weights: Any, **known: Any) -> Array:
        self._refuse_weights(X_weights)
        X, A = CleanMatrix(X), self.components_
        return represent(X, A, loss=self.loss_, n_threads=self.n_threads)

    def topics_over_time(self, feature_names: Any = None, n_terms: int = 3) -> Any:
        """Return the prevalence of the topics as a table.

        Parameters
        ----------
        n_terms : int
            Number of terms in the name of a column, at least 1.

        Returns
        -------
        pandas.DataFrame
            A row for each slice, indexed by its beginning, and a column for each topic, called by
            its number and largest terms, as "3: tsunami, aceh, quake".  Without pandas: a
            structured array with the same columns behind one called "slice".
        """
        names = numbered_names(self.topics(feature_names, n_terms))
        starts, prevalence = self.slices_, self.prevalence_
        try:
            import pandas
        except ImportError:
            columns = [("slice", starts.dtype), *((name, prevalence.dtype) for name in names)]
            table = np.empty(len(starts), dtype=columns)
            table["slice"] = starts
            for name, values in zip(names, prevalence.T, strict=True):
                table[name] = values
            return table
        index = pandas.DatetimeIndex(starts.astype("datetime64[s]"), name="slice")
        return pandas.DataFrame(prevalence, index=index, columns=names)

    def peaks(self, window: int = 1, period: int | None = None) -> list[Peak]:
        """Return when every topic is most prevalent, and how much it is bound to that time.

        Parameters
        ----------
        window : int
            Number of slices before and after the peak whose share in the prevalence is its
            `concentration`, at least 0.
        period : int, optional
            Period in slices, at least 2, for the `periodicity`.  None stands for a year, which
            slices of a quarter or shorter have.

        Returns
        -------
        list of Peak
            One for each topic, in their order; ``pandas.DataFrame(model.peaks())`` is a table of
            them.
        """
        check_is_fitted(self)
        check_integer(window, "window", 0)
        if period is not None:
            period = check_integer(period, "period", 2)
        elif isinstance(self.freq, str):
            period = PER_YEAR.get(self.freq)
        of_topics = self.prevalence_.astype(np.float64).T
        return [
            peak_of(k, values, self.slices_, window, period) for k, values in enumerate(of_topics)
        ]
