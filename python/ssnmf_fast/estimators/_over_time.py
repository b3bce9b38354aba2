"""Topics of a fitted model over time: their prevalence, and how their words change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array, MatrixLike, VectorLike
from .._common.saved import Saved
from .._common.text import short
from .._data.arrays import entry_rows, refuse_on_disk
from .._data.border import check_data, check_integer, check_option, check_share
from .._data.times import Slices, cut, period_of, read_times
from .._labels import ClassLabels, Indicators, is_indicator
from .._linalg import unit_rows
from .._models.dated import mean_shares, shares_of
from .._topics import Records, Topics, divide_by_sums, make_topics, names_of, numbered_names
from ..plotting import topics_over_time as draw
from ._base import FactorizationBase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["increase", "top"]
Part = Literal["prevalence", "words", "classes"]

_DECAY, _REACH = 0.8, 31  # of the weights of other slices, which are < .001 beyond 31 slices
_ENTRIES = 4_000_000  # of temporary arrays
_ENOUGH = 50  # documents per topic, for reliable words
_NOTHING = 1e-9  # of a frequency, or its increase


class Peak(NamedTuple):
    """When a topic is most prevalent, and how concentrated it is in time.

    Attributes
    ----------
    topic : int
        Number of the component.
    slice : numpy.datetime64
        Beginning of the slice in which the topic is most prevalent.
    prevalence : float
        Its prevalence in that slice.
    concentration : float
        Share of its total prevalence in a window around the peak; near 1 for a single event.
    periodicity : float
        How regularly the topic recurs, from 0 to 1: the autocovariance at one period divided by the
        variance, after removing the moving mean.  NaN for less than two periods.
    """

    topic: int
    slice: np.datetime64
    prevalence: float
    concentration: float
    periodicity: float


class PeakInterval(NamedTuple):
    """Intervals for the peak and the length of a topic, from several fits.

    Attributes
    ----------
    topic : int
        Number of the component.
    slice, low_slice, high_slice : numpy.datetime64
        Beginnings of the slice of the model's peak and of the first and last slice of the interval.
    length, low_length, high_length : int
        The same for the number of slices that the topic lasts; see :meth:`DynamicTopics.lengths`.
    similarity : float
        Mean cosine of the topic and its matches in the fits, from 0 to 1; if it is small, the
        intervals mean little.
    """

    topic: int
    slice: np.datetime64
    low_slice: np.datetime64
    high_slice: np.datetime64
    length: int
    low_length: int
    high_length: int
    similarity: float


class SlicePrevalence(NamedTuple):
    """Prevalence of topics in slices.

    Attributes
    ----------
    slices : ndarray of datetime64, shape (slices,)
        Beginnings of the slices, from that of the first document to that of the last.
    sizes : ndarray of int, shape (slices,)
        Numbers of documents.
    values : ndarray, shape (slices, r)
        The prevalence of each topic in each slice, as `prevalence_`.
    """

    slices: Array
    sizes: Array
    values: Array


@dataclass(frozen=True, eq=False, repr=False)
class TopicsOverTime:
    """Topics of a model in slices of time, returned by :func:`ssnmf_fast.topics_over_time`.

    Attributes
    ----------
    slices, sizes : ndarray of datetime64 and of int, shape (slices,)
        Beginnings of the slices, and their numbers of documents.
    prevalence : ndarray, shape (slices, r)
        Mean shares of the topics in the documents of each slice that any topic explains; they sum
        to 1, or are 0 without such documents.
    by_class, class_sizes : dict of label to ndarray
        Prevalence (slices, r) and numbers of documents (slices,) of each class of `by`.
    shares, typicality : ndarray, shape (n, r)
        Shares of the topics in each document; these times the cosine of document and topic.
    document_slices : ndarray of int, shape (n,)
        Numbers of the slices of the documents.
    components, feature_names, topic_names, freq
        As in the model and the call; `topic_names` is empty unless the model names its topics.
    words, word_weights : dict of ndarray, shape (slices, r, n_terms)
        "increase" and "top": columns of the words of :meth:`terms`, and their weights.
    """

    _saved: ClassVar[dict[str, Saved]] = {
        "slices": Saved("t", "times"),
        "sizes": Saved("t", "counts"),
        "prevalence": Saved("tr"),
        "shares": Saved("nr"),
        "document_slices": Saved("n", "<t"),
        "by_class": Saved("tr", container=dict),
        "class_sizes": Saved("t", "counts", container=dict),
        "components": Saved("rm"),
        "typicality": Saved("nr"),
        "words": Saved("trw", "<m", container=dict),
        "word_weights": Saved("trw", "finite", container=dict),
    }

    slices: Array
    sizes: Array
    prevalence: Array
    shares: Array
    document_slices: Array
    by_class: dict[Any, Array]
    class_sizes: dict[Any, Array]
    components: Array
    feature_names: list[str]
    topic_names: list[str]
    freq: str | int
    typicality: Array
    words: dict[str, Array]
    word_weights: dict[str, Array]

    @classmethod
    def without_documents(
        cls, slices: Array, sizes: Array, prevalence: Array, model: Any, freq: str | int
    ) -> TopicsOverTime:
        """Return the prevalence of the topics of a model, without documents and words."""
        (T, r), A, none = prevalence.shape, model.components_, np.zeros((0, prevalence.shape[1]))
        names, words = names_of(None, A.shape[1], model), np.zeros((T, r, 0), dtype=np.int64)
        parts: Any = none, np.zeros(0, dtype=np.int64), {}, {}, A, names, [], freq, none
        kinds = (dict.fromkeys(get_args(Kind), one) for one in (words, words.astype(float)))
        return cls(slices, sizes, prevalence, *parts, *kinds)

    @property
    def notes(self) -> list[str]:
        """Remarks on the words of slices."""
        least, used = _ENOUGH * len(self.components), self.sizes > 0
        few = int((used & (self.sizes < least)).sum()) if self.words["top"].size else 0
        of = f"{few} of {int(used.sum())} slices have fewer than {_ENOUGH} documents per topic"
        return [f"{of}: their words are for reading, not evidence of a change."] if few else []

    def __repr__(self) -> str:
        n, (T, r), first, last = self.sizes.sum(), self.prevalence.shape, *self.slices[[0, -1]]
        head = f"TopicsOverTime({r} topics, {n} documents, {T} slices from {first} to {last})"
        return "\n".join([head, *self.notes])

    def _number(self, slice: object) -> int:
        if isinstance(slice, (int, np.integer)) and not isinstance(slice, (bool, np.timedelta64)):
            return check_integer(slice, "slice", 0, len(self.slices) - 1)
        one: Any = [slice]
        begins = self.slices.astype("datetime64[s]") == read_times(one, "slice").values
        if not begins.any():
            raise ValueError(f"slice is {short(slice)}, but none begins then; see `slices`.")
        return int(begins.argmax())

    def topics(self, feature_names: VectorLike = None, n_terms: int = 10) -> Topics:
        """Return the words of the topics over all slices."""
        names = self.feature_names if feature_names is None else feature_names
        topics = make_topics(self.components, names, n_terms)
        return topics.named(self.topic_names) if self.topic_names else topics

    def terms(self, slice: object, kind: Kind = "increase") -> Topics:
        """Return the words of each topic in a slice.

        Parameters
        ----------
        slice : int, datetime64, date or str
            Number of the slice, or its beginning, such as "2004-12".
        kind : {"increase", "top"}
            The words that are more frequent than in all slices, or the most frequent words, which
            rarely change.  A slice without documents has none.
        """
        check_option(kind, "kind", get_args(Kind))
        number = self._number(slice)
        words, weights = self.words[kind][number], self.word_weights[kind][number]
        topics = []
        for one, columns, row in zip(self.topics(), words, weights, strict=True):
            terms = tuple(self.feature_names[j] for j in columns[row > _NOTHING])
            topics.append(replace(one, terms=terms, weights=tuple(row[row > _NOTHING].tolist())))
        return Topics(topics)

    def documents(self, slice: object, topic: int, n_documents: int = 5) -> Array:
        """Return the documents (rows) of a slice by decreasing `typicality`, if above 0."""
        rows = np.flatnonzero(self.document_slices == self._number(slice))
        k = check_integer(topic, "topic", 0, len(self.components) - 1)
        rows = rows[self.typicality[rows, k] > 0]
        order = np.argsort(-self.typicality[rows, k], kind="stable")
        return np.asarray(rows[order[: check_integer(n_documents, "n_documents", 1)]])

    def peaks(self, window: int = 1, period: int | None = None) -> Records[Peak]:
        """Return when each topic is most prevalent; see :meth:`DynamicTopics.peaks`."""
        check_integer(window, "window", 0)
        period = period_of(self.freq) if period is None else check_integer(period, "period", 2)
        n, peaks = len(self.slices), []
        for topic, values in enumerate(self.prevalence.astype(np.float64).T):
            top, total, periodicity = int(values.argmax()), float(values.sum()), float("nan")
            near = float(values[max(0, top - window) : top + window + 1].sum())
            if period is not None and n >= 2 * period:
                # The autocovariance without trend, divided by the variance.
                ones, variance = np.ones(period + 1 - period % 2), float(values.var())
                mean = np.convolve(values, ones, "same") / np.convolve(np.ones(n), ones, "same")
                covariance = ((values - mean)[:-period] * (values - mean)[period:]).mean()
                periodicity = float(np.clip(covariance / variance, 0, 1)) if variance > 0 else 0.0
            share = near / total if total > 0 else 0.0
            peaks.append(Peak(topic, self.slices[top], float(values[top]), share, periodicity))
        return Records(peaks)

    def lengths(self, share: float = 0.5) -> Array:
        """Return the number of slices that topics last; see :meth:`DynamicTopics.lengths`."""
        return lengths_of(self.prevalence, check_share(share, "share", below=False))

    def to_rows(self, part: Part = "prevalence") -> Records[dict[str, Any]]:
        """Return dictionaries: prevalence by slice, words, or prevalence by class and slice."""
        check_option(part, "part", get_args(Part))
        starts = self.slices.astype(str).tolist()
        names = numbered_names(self.topics(n_terms=3))
        if part == "words":
            return Records(
                {"slice": start, "documents": size, "kind": kind, **row}
                for t, (start, size) in enumerate(zip(starts, self.sizes.tolist(), strict=True))
                for kind in get_args(Kind)
                for row in self.terms(t, kind).named(names).to_rows()
            )
        tables: list[Any] = [({}, self.sizes, self.prevalence)]
        if part == "classes":
            tables = [({"class": c}, self.class_sizes[c], P) for c, P in self.by_class.items()]
        rows = (
            {**head, "slice": start, "documents": size, **dict(zip(names, row, strict=True))}
            for head, *columns in tables
            for start, size, row in zip(starts, *(one.tolist() for one in columns), strict=True)
        )
        return Records(rows, ["class"] * (part == "classes") + ["slice", "documents", *names])

    def to_frame(self, part: Part = "prevalence") -> Any:
        """Return :meth:`to_rows` as a pandas DataFrame (needs pandas)."""
        return self.to_rows(part).to_frame()

    def plot(self, **options: Any) -> Figure:
        """Draw the prevalence with :func:`ssnmf_fast.plotting.topics_over_time`."""
        return draw(self, **options)


def lengths_of(prevalence: Array, share: float = 0.5) -> Array:
    """Return the number of slices in which each topic has at least a share of its peak."""
    lasts = prevalence >= share * prevalence.max(axis=0)
    return np.asarray((lasts & (prevalence > 0)).sum(axis=0))


def intervals_of(
    model: tuple[Array, Array, Array], fits: Sequence[tuple[Array, Array]], level: float
) -> Iterator[PeakInterval]:
    """Yield the interval of each topic, from the components and prevalence of several fits."""
    components, prevalence, starts = model
    rank = len(components)
    peaks, lengths, cosines = (np.zeros((len(fits), rank)) for _ in range(3))
    for number, (others, of_others) in enumerate(fits):
        cosine = unit_rows(components) @ unit_rows(others).T
        topics, matched = linear_sum_assignment(cosine, maximize=True)
        values = of_others[:, matched]
        peaks[number], cosines[number] = values.argmax(axis=0), cosine[topics, matched]
        lengths[number] = lengths_of(values)
    ends = [(1 - level) / 2, (1 + level) / 2]
    of_both = np.quantile([peaks, lengths], ends, axis=1, method="inverted_cdf").astype(int)
    at, long = of_both.swapaxes(0, 1)
    for k, length in enumerate(lengths_of(prevalence).tolist()):
        top, low, high = starts[[prevalence[:, k].argmax(), *at[:, k]]]
        similarity = float(np.clip(cosines[:, k].mean(), 0, 1))
        least, most = long[:, k].tolist()
        yield PeakInterval(k, top, low, high, length, least, most, similarity)


def topics_over_time(
    model: Any,
    X: MatrixLike,
    times: npt.ArrayLike,
    *,
    freq: str | int = "month",
    feature_names: VectorLike = None,
    by: VectorLike = None,
    n_terms: int = 10,
    measure: Literal["squared-length", "loading"] = "squared-length",
    unlabeled: Any = "auto",
) -> TopicsOverTime:
    """Return the prevalence of the topics of a fitted model over time, and their words.

    Parameters
    ----------
    model : fitted estimator
        With ``transform`` and `components_`; also scikit-learn's NMF and LatentDirichletAllocation.
    X : array_like or scipy.sparse, shape (n, m)
        Documents x terms, of the fit or new, in memory.
    times : array_like, shape (n,)
        Dates of the documents, as in :meth:`DynamicTopics.fit`.
    freq : str or int
        Length of the slices, or their number, as in :class:`DynamicTopics`.
    feature_names : array_like of str, shape (m,), optional
        Names of the features; by default the columns of the data frame of the fit.
    by : array_like, shape (n,) or (n, k), optional
        Classes of the documents, for `by_class`; documents without a class are left out.
    n_terms : int
        Number of words per topic and slice.
    measure : {"squared-length", "loading"}
        What the shares of topics in a document are shares of: the squared length of its model,
        ``(s_k |a_k|)^2``, or its loadings s_k.  The prevalence by "loading" is the mean of S over
        the documents of a slice, as in the heat maps of [1]_ (NMF and LDA); it depends on the
        scale of the components.
    unlabeled : "auto", None or a label
        Marks documents without a class in `by`, as in :class:`SSNMFClassifier`.

    Returns
    -------
    TopicsOverTime

    Notes
    -----
    Weights that sum to 1, such as LatentDirichletAllocation's, are used as shares.

    The words of a slice are the topics after one multiplicative update on its documents, for the
    I-divergence and fixed shares.  They are smoothed: other slices have weights that fall by a
    factor of 0.8 per step, and the mean slice is added.  Words that increase have the largest
    ``h log(h / g)`` for frequencies h in the slice and g in all slices.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, 4.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> # two topics: the second one comes later
    >>> X = np.kron(np.eye(2), np.ones((6, 3)))
    >>> times = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    >>> model = sf.NMF(2, random_state=0).fit(X)
    >>> over_time = sf.topics_over_time(model, X, times, freq="quarter")
    >>> sorted(str(peak.slice) for peak in over_time.peaks())
    ['2020-01', '2020-07']
    """
    components: Any = getattr(model, "components_", None)
    if getattr(components, "ndim", 0) != 2 or not hasattr(model, "transform"):
        raise TypeError(f"model must be fitted, and have components_ (r, m); got {short(model)}.")
    refuse_on_disk(X, "topics_over_time")
    if type(X).__module__.startswith("dask."):
        raise TypeError("X is a Dask array, but topics_over_time needs it in memory: X.compute().")
    if np.min(components) < 0:
        raise ValueError("model has negative components_; use NMF or LDA.")
    read, clean = read_times(times, first=getattr(model, "date_order_", "any")), check_data(X, 1)
    (n, m), members = clean.shape, None
    if by is not None:
        members = Indicators(by) if is_indicator(by) else ClassLabels(by, unlabeled, name="by")
    for name, one in (("times", read.values), ("by", None if members is None else members.labeled)):
        if one is not None and len(one) != n:
            raise ValueError(f"{name} has {len(one)} entries and X has {n} documents; give {n}.")
    check_option(measure, "measure", ("squared-length", "loading"))
    own = isinstance(model, FactorizationBase)
    S = model._represent(model._checked(X), None) if own else model.transform(X)
    count = min(check_integer(n_terms, "n_terms", 1), m)
    names = names_of(feature_names, m, model)
    cuts = cut(read.values, freq, least=1)
    weights, A = np.asarray(S, dtype=np.float64), np.asarray(components, dtype=np.float64)
    if measure != "loading" and not np.allclose(weights.sum(axis=1), 1, atol=1e-5):
        weights = shares_of(weights, A)
    shares = divide_by_sums(weights) if measure == "loading" else weights
    by_class, class_sizes = {}, {}
    if members is not None:
        is_member = members.matrix(np.float64) == 1
        for k, label in enumerate(members.classes.tolist()):
            some = is_member[:, [k]].nonzero()[0]
            of_class = Slices(cuts.starts, cuts.of[some])
            by_class[label] = mean_shares(weights[some], of_class)
            class_sizes[label] = of_class.sizes
    documents = clean if sp.issparse(clean) else sp.csr_array(np.nan_to_num(clean))
    topic_names = model._topic_names() if own and hasattr(model, "topic_names_") else []
    typicality = shares * np.asarray(unit_rows(documents) @ unit_rows(A).T)
    words = _words(documents, shares, A, cuts, count)
    of_documents = mean_shares(weights, cuts), shares, cuts.of, by_class, class_sizes
    parts: Any = *of_documents, A, names, topic_names, freq, typicality, *words
    return TopicsOverTime(cuts.starts, cuts.sizes, *parts)


def _words(
    X: sp.csr_array, Q: Array, A: Array, cuts: Slices, count: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return columns of the words of each kind, (slices, r, count), and their weights."""
    (n, m), r, T, at = X.shape, len(A), len(cuts.starts), np.flatnonzero(cuts.sizes)
    A = divide_by_sums(A)
    ratios, rows = sp.csr_array(X, dtype=np.float64, copy=True), entry_rows(X.indptr)
    for start in range(0, len(rows), _ENTRIES // r + 1):
        part = slice(start, start + _ENTRIES // r + 1)
        model = np.einsum("ij,ji->i", Q[rows[part]], A[:, ratios.indices[part]])
        ratios.data[part] *= np.divide(1, model, out=np.zeros_like(model), where=model > 0)
    offsets = np.arange(-min(_REACH, T - 1), min(_REACH, T - 1) + 1)
    near = sp.diags(_DECAY ** np.abs(offsets), offsets, shape=(T, T), format="csr")
    words = {kind: np.zeros((T, r, count), dtype=np.int64) for kind in get_args(Kind)}
    weights = {kind: np.zeros((T, r, count)) for kind in words}
    for k in range(r):
        E = sp.csr_array((Q[:, k], (cuts.of, np.arange(n))), (T, n)) @ ratios
        E.data *= A[k, E.indices]
        G = np.asarray(E.sum(axis=0)).ravel()
        for some in np.array_split(at, 1 + len(at) * m // _ENTRIES) if G.any() else []:
            H = divide_by_sums((near[some] @ E).toarray() + G / len(at))
            more = H * np.log(np.divide(H, G / G.sum(), out=np.ones_like(H), where=H > 0))
            for kind, values in (("increase", more), ("top", H)):
                best = np.argpartition(-values, count - 1, axis=1)[:, :count]
                order = np.argsort(-np.take_along_axis(values, best, axis=1), axis=1)
                best = np.take_along_axis(best, order, axis=1)
                words[kind][some, k] = best
                weights[kind][some, k] = np.take_along_axis(values, best, axis=1)
    return words, weights
