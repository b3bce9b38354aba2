"""Topics of dated documents, which are combined with others of the same time slice."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.linalg import eigh

from .._common.arrays import Array, Matrix
from .._common.warn import warn_user
from .._data.arrays import drop_entries, entry_rows, with_values
from .._data.border import CleanMatrix
from .._data.times import Slices, cut
from .._linalg import unit_rows
from .._solver.losses import loss_named
from .._solver.penalties import L2, Graph
from .._solver.result import Factorization, TensorFactorization
from .._topics import count_copies, divide_by_sums
from .factorize import factorize, factorize_tensor
from .represent import represent

# Prevalence is smooth except for events; the noise of slices is not.
_SMOOTHING = 1e-4
_SCALE = 1e-8  # of squares, to give a constant prevalence a scale
_FITS, _STEPS = 10, 30
_FILLER = 0.01  # of the mean of a factor
_NEIGHBORS, _WEIGHT = 10, 3.0  # their number (with the document), and the weight of their mean
_CANDIDATES, _BLOCK = 2000, 500  # candidates for neighbors, and documents at a time
_SMALL, _LEAST = 0.4, 0.2  # sizes of dropped entries of neighbors, and of pooled rows
_TERMS = 100  # shorter pooled rows keep all entries
_SAMPLE = 2000  # pooled documents of the short starts
_STARTS = {"n_starts": 3, "max_iter": 15}
_REFINED = 40  # iterations of another loss than squared errors
_NEAR = 0.75  # with more topics, relative to the number of slices, each topic becomes a slice
_FEW_TOPICS = 4  # no warning for this number of topics
_ALIKE = 0.8  # cosine of two similar topics; useful fits to news stay below 0.7
_SINGLE, _FEW_SLICES = 0.9, 4
_CHANGING = 0.045  # differences of slices from which these show the topics
_REGULAR = 0.5  # power of a single frequency: an event has less, a trend or a season more
_MOST_SLICES = 1000  # that are compared
_PERMUTED = 4  # random assignments of documents to slices


class DatedTopics(NamedTuple):
    """Topics of dated documents."""

    components: Array  # (r, m), of any scale
    fit: Factorization | TensorFactorization
    method: str
    differences: float | None = None  # of slices, for "auto"
    prevalence: Array | None = None  # the factor of time of a tensor


def reason_of(method: str, differences: float) -> str:
    """Return why "auto" chose a method."""
    found = f"slices differ by {differences:.2f} more than by chance"
    return f"method {method}: {found} ({_CHANGING} or more: tied, less: neighbors)"


def find_topics(
    method: str, X: Matrix, slices: Slices, per_slice: int | None, arguments: dict[str, Any]
) -> DatedTopics:
    """Learn topics of clean documents, with arguments of `factorize`; components have sum 1."""
    if method == "tensor":
        topics = factorize_folded(X, slices, per_slice, arguments)
    elif method == "nmf":
        fit = factorize(CleanMatrix(X), **arguments)
        topics = DatedTopics(fit.A, fit, method)
    else:
        topics = factorize_documents(method, X, slices, per_slice, arguments)
    A, prevalence = topics.components, topics.prevalence
    totals = A.sum(axis=1)
    components = np.ascontiguousarray(A / np.where(totals > 0, totals, 1)[:, None])
    if prevalence is not None:
        prevalence = (prevalence * totals).astype(prevalence.dtype, copy=False)
    components = components.astype(X.dtype, copy=False)
    return topics._replace(components=components, prevalence=prevalence)


def warn_if_degenerate(method: str, components: Array, prevalence: Array, sizes: Array) -> None:
    """Warn if topics are copies, lie in single slices, or are too many for the slices."""
    rank, used = len(components), int((sizes > 0).sum())
    largest, totals = prevalence.max(axis=0), prevalence.sum(axis=0, dtype=np.float64)
    single = int((largest > _SINGLE * totals).sum()) if used >= _FEW_SLICES else 0
    alike = count_copies(components, _ALIKE)
    counts = [(alike, "resemble others"), (single, "lie in one slice of time alone")]
    problem = " and ".join(f"{count} {what}" for count, what in counts if 2 * count > rank)
    if problem:
        text = f"Of the {rank} topics, {problem}, with {used} slices that have documents"
    elif method in ("tied", "tensor") and rank > max(_NEAR * used, _FEW_TOPICS):
        text = (
            f"n_components={rank} is near or above the number of slices with documents, "
            f"{used}: each topic may become a slice"
        )
    else:
        return
    ways = "shorter slices (freq)" + (", or method='nmf'" if method != "nmf" else "")
    warn_user(f"{text}. Use fewer topics or {ways}.", UserWarning)


def factorize_documents(
    method: str, X: Matrix, slices: Slices, most: int | None, settings: dict[str, Any]
) -> DatedTopics:
    """Find topics by "neighbors" or "tied"; "auto" chooses between them."""
    quadratic = loss_named(settings["loss"], "loss").quadratic
    documents = X if quadratic else _tfidf_rows(X)
    threads, choice, differences = settings["n_threads"], method, None
    squares = settings | {"loss": "frobenius"}
    if not quadratic:
        squares |= {"callback": None, "verbose": 0}
    if method == "auto":
        rng = deepcopy(settings["random_state"])
        differences = differences_of_slices(documents, slices, settings["n_components"], rng)
        choice = "tied" if differences >= _CHANGING else "neighbors"
    if choice == "neighbors":
        A, fit = _factorize_pooled(documents, slices, squares)
    else:
        if method == "auto" and not isinstance(settings["init"], str):
            squares["init"] = "auto"  # a given start is that of the documents
        fit = _factorize_tied(documents, slices, most, squares)
        A = fit.A
    if not quadratic:
        S = without_zeros(represent(CleanMatrix(documents), A, n_threads=threads))
        start = {"init": (S, without_zeros(_refitted(X, S, threads))), "solver": "auto"}
        start["max_iter"] = min(_REFINED, settings["max_iter"])
        fit = factorize(CleanMatrix(X), **settings | start)
        A = fit.A
    return DatedTopics(A, fit, choice, differences)


def _factorize_pooled(
    X: Matrix, slices: Slices, settings: dict[str, Any]
) -> tuple[Array, Factorization]:
    rng, threads = settings["random_state"], settings["n_threads"]
    rows = pooled(X, slices, rng)
    if is_default(settings["init"]):
        some = CleanMatrix(rows[rng.permutation(rows.shape[0])[:_SAMPLE]])
        A = _short_fit(some, settings, **_STARTS).A
        S = represent(CleanMatrix(rows), A, n_threads=threads)
        settings["init"] = without_zeros(S), without_zeros(A)
    fit = factorize(CleanMatrix(rows), **settings)
    return _refitted(X, fit.S.astype(X.dtype), threads), fit


def _refitted(X: Matrix, S: Array, n_threads: int | None) -> Array:
    """Return the topics of normalized documents with known coefficients."""
    terms = CleanMatrix(sp.csr_array(unit_rows(X).T.astype(S.dtype)))
    return np.asarray(represent(terms, np.ascontiguousarray(S.T), n_threads=n_threads).T)


def pooled(X: Matrix, slices: Slices, rng: Generator) -> sp.csr_array:
    """Return normalized documents plus the mean of their neighbors in the slice, float32."""
    rows, order, parts = sp.csr_array(unit_rows(X).astype(np.float32)), rows_of(slices), []
    large = _largest(rows, _SMALL)
    for some in filter(len, order):
        near = rng.choice(some, _CANDIDATES, replace=False) if len(some) > _CANDIDATES else some
        others, count = large[near], min(_NEIGHBORS, len(near))
        transposed = others.T.tocsr()
        for block in np.split(some, range(_BLOCK, len(some), _BLOCK)):
            distances = -(large[block] @ transposed).toarray()
            farthest = np.partition(distances, count - 1, axis=1)[:, [count - 1]]
            alike = sp.csr_array((distances <= farthest) & (distances < 0), dtype=np.float32)
            counts = np.diff(alike.indptr)
            alike.data *= np.repeat(_WEIGHT / np.maximum(counts, 1), counts)
            parts.append(_largest(rows[block] + alike @ others, _LEAST, _TERMS))
    return sp.csr_array(sp.vstack(parts, format="csr"))[np.argsort(np.concatenate(order))]


def _largest(X: sp.csr_array, share: float, enough: int = 0) -> sp.csr_array:
    """Return rows of length 1; rows with more than `enough` entries lose relatively small ones."""
    of = entry_rows(X.indptr)
    values = X.data / np.sqrt(np.maximum(np.bincount(of, X.data**2), 1e-30))[of]
    is_large = values * np.bincount(of, values)[of] >= share  # the product is 1 if all are equal
    is_large |= np.diff(X.indptr)[of] <= enough
    return drop_entries(with_values(X, values.astype(X.dtype)), ~is_large)


def shares_of(S: Array, A: Array) -> Array:
    """Return the shares of topics in the squared length of the model of each document."""
    return divide_by_sums((S * np.linalg.norm(A.astype(np.float64), axis=1)) ** 2)


def mean_shares(shares: Array, slices: Slices) -> Array:
    """Return the mean shares in each slice, over documents with topics."""
    return divide_by_sums(sums_of_slices(shares, slices))


def between_slices(shares: Array, slices: Slices) -> float:
    """Return the intraclass correlation: the share of the variance between slices."""
    sums, sizes = sums_of_slices(shares, slices), slices.sizes
    same, pairs = float((shares**2).sum()), int((sizes * (sizes - 1)).sum())
    anyone = float((shares.mean(axis=0) ** 2).sum())
    variance = same / len(shares) - anyone
    if not pairs or variance <= 1e-12:
        return 0.0
    return (float((sums**2).sum() - same) / pairs - anyone) / variance


def differences_of_slices(X: Matrix, slices: Slices, rank: int, rng: Generator) -> float:
    """Return how much the means of slices differ beyond chance, per direction of `rank` topics.

    Of the largest rank - 1 eigenvalues of their weighted covariance, the mean of the excess over
    the largest one of documents with permuted times, relative to it.  Trends and
    seasons count 0: half of their power has a single frequency (Fisher's g).  All count 0 if topics
    are too many for the slices.
    """
    used, of = np.unique(slices.of, return_inverse=True)
    if rank < 2 or rank > _NEAR * len(used):
        return 0.0
    some = of % -(-len(used) // _MOST_SLICES) == 0
    of, rows = np.unique(of[some], return_inverse=True)[1], unit_rows(X[some]).astype(np.float64)
    weights = np.sqrt(np.bincount(of).astype(float))[:, None]
    centering = np.eye(len(weights)) - weights * weights.T / len(of)

    def spectrum(of: Array, count: int) -> tuple[Array, Array]:
        sums = sums_of_slices(rows, Slices(used[: len(weights)], of))
        products = sp.csr_array(sums @ sums.T).toarray() / weights / weights.T
        ends = len(weights) - count, len(weights) - 1
        values, vectors = eigh(centering @ products @ centering, subset_by_index=ends)
        return values, np.abs(np.fft.rfft(vectors / weights, axis=0)[1:]) ** 2

    chance = max(spectrum(rng.permutation(of), 1)[0][0] for _ in range(_PERMUTED))
    values, power = spectrum(of, rank - 1)
    excess = values / max(chance, 1e-12) - 1  # unless all documents are equal
    excess[(excess < 0) | (power.max(axis=0) > _REGULAR * power.sum(axis=0))] = 0
    return float(excess.mean())


def _factorize_tied(
    X: Matrix, slices: Slices, most: int | None, settings: dict[str, Any]
) -> Factorization:
    """Minimize the squared errors of documents with the coefficients of their slice."""
    words = np.bincount(slices.of, np.asarray(X.sum(axis=1)).ravel(), len(slices.starts))
    used = words > 0 if words.any() else slices.sizes > 0
    at = np.flatnonzero(used)
    most = np.median(slices.sizes[slices.sizes > 0]) if most is None else most
    counts = np.minimum(slices.sizes, most)[used][:, None].astype(X.dtype)
    length = float(np.sqrt((X * X).sum(dtype=np.float64) / X.shape[0])) or 1.0
    rows = _product(np.sqrt(counts) / length, means_of_slices(X, slices)[used])
    # Prevalences are smooth, except across gaps.
    after = (np.diff(at) == 1).astype(float)
    chain = sp.diags([after, after], [1, -1], shape=(len(at), len(at)), format="csr")
    smooth = {"S": [Graph(_SMOOTHING, chain), L2(_SCALE)], "A": L2(_SMOOTHING)}
    init = settings["init"]
    if is_default(init):
        init = best_short_fit(rows, settings, penalties=smooth)
    return factorize(rows, **settings | {"init": init, "penalties": smooth})


def is_default(init: object) -> bool:
    return isinstance(init, str) and init in ("auto", "slices")


def _tfidf_rows(X: Matrix) -> Matrix:
    """Return TF-IDF documents of length 1."""
    matrix = sp.csr_array(X)
    frequency = np.bincount(matrix.indices, matrix.data > 0, minlength=X.shape[1])
    rarity = np.log((1 + X.shape[0]) / (1 + frequency)) + 1
    return unit_rows(_product(rarity[None], unit_rows(X))).astype(X.dtype)


def _product(weights: Array, X: Any) -> Matrix:
    """Return X times weights of its rows, (n, 1), or columns, (1, m)."""
    return sp.csr_array(X.multiply(weights)) if sp.issparse(X) else X * weights


def factorize_folded(
    X: Matrix, slices: Slices, per_slice: int | None, settings: dict[str, Any]
) -> DatedTopics:
    """Decompose the tensor (terms x documents of a slice x slices)."""
    most, rng = int(slices.sizes.max()), settings["random_state"]
    per_slice = min(per_slice or int(np.median(slices.sizes[slices.sizes > 0])), most)
    documents_of, places_of = [], []
    for some in rows_of(slices):
        count = min(len(some), per_slice)
        documents_of.append(rng.permutation(some)[:count])
        places_of.append(rng.permutation(per_slice)[:count])
    documents, places = np.concatenate(documents_of), np.concatenate(places_of)
    sample, of = sp.csr_array(X)[documents], slices.of[documents]
    repeated = (np.repeat(each, np.diff(sample.indptr)) for each in (places, of))
    shape, init = (X.shape[1], per_slice, len(slices.starts)), settings["init"]
    if is_default(init):  # start from topics of the sums of slices
        S, A = best_short_fit(sums_of_slices(sample, Slices(slices.starts, of)), settings)
        constant = np.full((per_slice, len(A)), 1 / per_slice)
        init = np.ones(len(A)), [A.T, constant, S]
    tensor = np.stack([sample.indices, *repeated]), sample.data, shape
    fit = factorize_tensor(tensor, **settings | {"init": init})
    terms, by_place, time = fit.factors
    counts = np.maximum(np.minimum(slices.sizes, per_slice), 1)[:, None]
    prevalence = (time * (fit.weights * by_place.sum(axis=0)) / counts).astype(time.dtype)
    return DatedTopics(terms.T, fit, "tensor", prevalence=prevalence)


def best_short_fit(sums: Matrix, settings: dict[str, Any], **more: Any) -> tuple[Array, Array]:
    fits = (_short_fit(sums, settings, max_iter=_STEPS, **more) for _ in range(_FITS))
    best = min(fits, key=lambda fit: fit.objective[-1][1])
    return without_zeros(best.S), without_zeros(best.A)


def _short_fit(X: Matrix, settings: dict[str, Any], **more: Any) -> Factorization:
    more |= {name: settings[name] for name in ("n_components", "random_state", "n_threads")}
    return factorize(X, init="random", **more)


def without_zeros(F: Array) -> Array:
    """Return a start without zeros, which would stay."""
    return np.maximum(F, _FILLER * (F.mean() or 1.0)).astype(F.dtype, copy=False)


def sums_of_slices(values: Matrix, slices: Slices) -> Matrix:
    n = len(slices.of)
    ones = np.ones(n, dtype=values.dtype)
    return sp.csr_array((ones, (slices.of, np.arange(n))), (len(slices.starts), n)) @ values


def means_of_slices(values: Matrix, slices: Slices) -> Matrix:
    """Return the mean of the rows of each slice; zeros for an empty slice."""
    share = (1 / np.maximum(slices.sizes, 1)).astype(values.dtype)[:, None]
    return _product(share, sums_of_slices(values, slices))


def rows_of(slices: Slices) -> list[Array]:
    """Return the documents of each slice."""
    order = np.argsort(slices.of, kind="stable")
    return np.split(order, np.cumsum(slices.sizes)[:-1])


def resampled(X: Matrix, slices: Slices, rng: Generator) -> tuple[Matrix, Slices]:
    """Resample the documents of each slice with replacement; return them and their slices."""
    samples = [some[rng.integers(len(some), size=len(some))] for some in rows_of(slices)]
    rows = np.concatenate(samples)
    return X[rows], Slices(slices.starts, slices.of[rows])


def add_slices(
    slices: Array, counts: Array, known: Array, new: Slices, totals: Array, freq: str | int
) -> tuple[Array, Array, Array]:
    """Merge new slices with known ones, their numbers of documents and their prevalence.

    `totals` are sums of prevalence in the new slices.
    """
    ends = np.concatenate([slices[[0, -1]], new.starts[[0, -1]]]).astype("datetime64[s]")
    starts = cut(ends, freq, "earlier and new times", after=slices[0]).starts
    sizes = np.zeros(len(starts), dtype=counts.dtype)
    sums = np.zeros((len(starts), totals.shape[1]))
    before, at = np.searchsorted(starts, slices), np.searchsorted(starts, new.starts)
    sizes[before], sums[before] = counts, known * counts[:, None]
    sizes[at] += new.sizes
    sums[at] += totals
    values = (sums / np.maximum(sizes, 1)[:, None]).astype(known.dtype)
    # A slice without new documents keeps exactly its values.
    same = ~np.isin(slices, new.starts[new.sizes > 0])
    values[before[same]] = known[same]
    return starts, sizes, values
