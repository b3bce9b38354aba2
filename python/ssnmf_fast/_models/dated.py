"""Topics of dated documents, with the help of others of their slice of time."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from .._common.arrays import Array, Matrix
from .._data.border import CleanMatrix
from .._data.times import Slices
from .._linalg.operators import unit_rows
from .._solver.losses import loss_named
from .._solver.penalties import L2, Graph
from .._solver.result import Factorization, TensorFactorization
from .factorize import factorize
from .represent import represent

# Prevalence is smooth but for events, and the noise of a slice is not.
_SMOOTHING = 1e-4
_SCALE = 1e-8  # of squares: a prevalence that is the same at all times has a scale, too


_NEIGHBORS, _WEIGHT = 10, 3.0  # of their mean, added to a document, which is the first of them
_CANDIDATES, _BLOCK = 2000, 500  # documents of a slice among which, and for which at a time
_TERMS = 200
_STARTS = {"n_starts": 3, "max_iter": 15}
_REFINED = 40  # iterations of another loss than squared errors
_SINGLE_EVENTS = 0.2  # of the variance of shares lies between slices: they are single events


class DatedTopics(NamedTuple):
    """Topics of dated documents; components of any scale, coefficients of all documents."""

    components: Array  # (r, m)
    fit: Factorization | TensorFactorization
    method: str
    between: float | None = None  # "auto": share of the topics' variance between slices

    def reason(self) -> str:
        share = f"{self.between:.2f} of the variance of topics lies between slices"
        return f"method {self.method}: {share} ({_SINGLE_EVENTS} or more: tied, less: neighbors)"


def factorize_documents(
    method: str,
    X: Matrix,
    slices: Slices,
    rank: int,
    rng: Generator,
    most: int | None,
    settings: dict[str, Any],
) -> DatedTopics:
    """Find topics by "neighbors" or "tied", or by what "auto" takes of these."""
    quadratic = loss_named(settings["loss"], "loss").quadratic
    documents = X if quadratic else _tfidf_rows(X)
    threads, between = settings["n_threads"], None
    squares = settings | {"loss": "frobenius", "n_components": rank, "random_state": rng}
    if not quadratic:
        squares |= {"callback": None, "verbose": 0}
    if method != "tied":
        of_pooled = squares | {"random_state": deepcopy(rng)}
        A, fit = _factorize_pooled(documents, slices, of_pooled)
        taken = "neighbors"
    if method == "auto":
        of_documents = shares_of(represent(CleanMatrix(documents), A, n_threads=threads), A)
        between = between_slices(of_documents, slices)
    if method == "tied" or (between is not None and between >= _SINGLE_EVENTS):
        init = settings["init"]
        squares["init"] = init if method == "tied" or isinstance(init, str) else "auto"
        fit = _factorize_tied(documents, slices, rank, rng, most, squares)
        A, taken = fit.A, "tied"
    if not quadratic:
        S = without_zeros(represent(CleanMatrix(documents), A, n_threads=threads))
        start = {"init": (S, without_zeros(_refitted(X, S, threads))), "solver": "auto"}
        start["max_iter"] = min(_REFINED, settings["max_iter"])
        fit = factorize(CleanMatrix(X), **settings | {"n_components": rank} | start)
        A = fit.A
    return DatedTopics(A, fit, taken, between)


def _factorize_pooled(
    X: Matrix, slices: Slices, settings: dict[str, Any]
) -> tuple[Array, Factorization]:
    rng = settings["random_state"]
    rows = CleanMatrix(pooled(X, slices, rng))
    if _is_default(settings["init"]):
        rank, threads = settings["n_components"], settings["n_threads"]
        drawn = {"init": "random", "random_state": rng, "n_threads": threads}
        best = factorize(rows, n_components=rank, **_STARTS | drawn)
        settings["init"] = without_zeros(best.S), without_zeros(best.A)
    fit = factorize(rows, **settings)
    return _refitted(X, fit.S, settings["n_threads"]), fit


def _refitted(X: Matrix, S: Array, n_threads: int | None) -> Array:
    """Return the topics of documents of length 1 whose coefficients are known."""
    terms = CleanMatrix(sp.csr_array(unit_rows(X).T.astype(S.dtype)))
    return np.asarray(represent(terms, np.ascontiguousarray(S.T), n_threads=n_threads).T)


def pooled(X: Matrix, slices: Slices, rng: Generator) -> sp.csr_array:
    """Return documents with the mean of the nearest ones of their slices, of length 1.

    Of every one the largest terms are kept.
    """
    rows = sp.csr_array(unit_rows(X))
    order = np.argsort(slices.of, kind="stable")
    parts = []
    for some in np.split(order, np.cumsum(slices.sizes)[:-1]):
        near = some
        if len(some) > _CANDIDATES:
            near = np.sort(rng.choice(some, _CANDIDATES, replace=False))
        others, count = sp.csr_array(rows[near]), min(_NEIGHBORS - 1, len(near))
        transposed = others.T.tocsr()
        for start in range(0, len(some), _BLOCK):
            block = some[start : start + _BLOCK]
            own = rows[block]
            cosines = (own @ transposed).toarray()
            cosines[block[:, None] == near] = 0
            nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            alike = np.take_along_axis(cosines, nearest, axis=1) > 0
            share = _WEIGHT / (1 + alike.sum(axis=1, keepdims=True))
            starts = np.arange(0, nearest.size + 1, count)
            of_others = sp.csr_array(
                ((share * alike).ravel(), nearest.ravel(), starts), cosines.shape
            )
            parts.append(_trimmed(sp.csr_array(own.multiply(1 + share) + of_others @ others)))
    whole = sp.csr_array(unit_rows(sp.vstack(parts, format="csr")))
    return whole[np.argsort(order)].astype(X.dtype)


def _trimmed(X: sp.csr_array) -> sp.csr_array:
    """Keep the largest entries of every row."""
    ends = X.indptr
    for row in np.flatnonzero(np.diff(ends) > _TERMS):
        values = X.data[ends[row] : ends[row + 1]]
        values[values < np.partition(values, -_TERMS)[-_TERMS]] = 0
    X.eliminate_zeros()
    return X


def shares_of(S: Array, A: Array) -> Array:
    """Return which share of the squared length of what it explains a topic has, by document."""
    squares = (S * np.linalg.norm(A.astype(np.float64), axis=1)) ** 2
    totals = squares.sum(axis=1, keepdims=True)
    return np.asarray(squares / np.where(totals > 0, totals, 1))


def mean_shares(S: Array, A: Array, slices: Slices) -> Array:
    """Return the mean shares in every slice, of documents that any topic explains."""
    sums = sums_of_slices(shares_of(S, A), slices)
    totals = sums.sum(axis=1, keepdims=True)
    return np.asarray(sums / np.where(totals > 0, totals, 1)).astype(S.dtype)


def between_slices(shares: Array, slices: Slices) -> float:
    """Return the intraclass correlation: which share of the variance lies between slices."""
    n, sizes = len(shares), slices.sizes
    same, pairs = float((shares**2).sum()), int((sizes * (sizes - 1)).sum())
    sums = sums_of_slices(shares, slices)
    anyone = float((shares.mean(axis=0) ** 2).sum())
    variance = same / n - anyone
    if not pairs or variance <= 1e-12:
        return 0.0
    return (float((sums**2).sum() - same) / pairs - anyone) / variance


def _factorize_tied(
    X: Matrix, slices: Slices, rank: int, rng: Generator, most: int | None, settings: dict[str, Any]
) -> Factorization:
    """Minimize the squared errors of documents whose coefficients are those of their slice."""
    words = np.bincount(slices.of, np.asarray(X.sum(axis=1)).ravel(), len(slices.starts))
    used = words > 0 if words.any() else slices.sizes > 0
    at = np.flatnonzero(used)
    if most is None:
        most = np.median(slices.sizes[slices.sizes > 0])
    counted = np.minimum(slices.sizes, most)[used][:, None].astype(X.dtype)
    mean_square = float((X * X).sum(dtype=np.float64)) / X.shape[0]
    length = float(np.sqrt(mean_square)) or 1.0
    rows = _product(np.sqrt(counted) / length, means_of_slices(X, slices)[used])
    # Prevalences are smooth but across gaps.
    after = (np.diff(at) == 1).astype(float)
    chain = sp.diags([after, after], [1, -1], shape=(len(at), len(at)), format="csr")
    smooth = {"S": [Graph(_SMOOTHING, chain), L2(_SCALE)], "A": L2(_SMOOTHING)}
    init = settings["init"]
    if _is_default(init):
        init = best_short_fit(rows, rank, rng, settings["n_threads"], penalties=smooth)
    return factorize(rows, **settings | {"init": init, "penalties": smooth})


def _is_default(init: object) -> bool:
    return isinstance(init, str) and init in ("auto", "slices")


def _tfidf_rows(X: Matrix) -> Matrix:
    """Return documents of length 1, their terms weighted as by TF-IDF."""
    stored = sp.csr_array(X)
    frequency = np.bincount(stored.indices, stored.data > 0, minlength=X.shape[1])
    rarity = np.log((1 + X.shape[0]) / (1 + frequency)) + 1
    return unit_rows(_product(rarity[None], unit_rows(X))).astype(X.dtype)


def _product(weights: Array, X: Any) -> Matrix:
    """Return X times weights of its rows, (n, 1), or columns, (1, m)."""
    return sp.csr_array(X.multiply(weights)) if sp.issparse(X) else X * weights


_FITS, _STEPS = 10, 30
_FILLER = 0.01  # of the mean of a factor

Tensor = tuple[Array, Array, tuple[int, int, int]]


def folded(X: Matrix, slices: Slices, per_slice: int, rng: Generator) -> Tensor:
    """Return coordinates, values and shape of the tensor of a CSR matrix (documents x terms)."""
    documents_of, places_of = [], []
    order = np.argsort(slices.of, kind="stable")
    for some in np.split(order, np.cumsum(slices.sizes)[:-1]):
        count = min(len(some), per_slice)
        documents_of.append(rng.permutation(some)[:count])
        places_of.append(rng.permutation(per_slice)[:count])
    documents, places = np.concatenate(documents_of), np.concatenate(places_of)
    drawn = sp.csr_array(X)[documents]
    repeated = (np.repeat(each, np.diff(drawn.indptr)) for each in (places, slices.of[documents]))
    return (
        np.stack([drawn.indices, *repeated]),
        drawn.data,
        (X.shape[1], per_slice, len(slices.starts)),
    )


def start_from_slices(
    tensor: Tensor, rank: int, rng: Generator, n_threads: int | None
) -> tuple[Array, list[Array]]:
    """Return weights and factors to start from: topics of the sums of the documents of slices."""
    (terms, _, slices), values, (n_terms, per_slice, n_slices) = tensor
    sums = sp.coo_array((values, (slices, terms)), shape=(n_slices, n_terms)).tocsr()
    S, A = best_short_fit(sums, rank, rng, n_threads)
    constant = np.full((per_slice, rank), 1 / per_slice)
    return np.ones(rank), [A.T, constant, S]


def best_short_fit(
    sums: Matrix, rank: int, rng: Generator, n_threads: int | None, **penalties: Any
) -> tuple[Array, Array]:
    settings = {"max_iter": _STEPS, "init": "random", "n_threads": n_threads, **penalties}
    fits = (factorize(sums, n_components=rank, random_state=rng, **settings) for _ in range(_FITS))
    best = min(fits, key=lambda fit: fit.objective[-1][1])
    return without_zeros(best.S), without_zeros(best.A)


def without_zeros(F: Array) -> Array:
    """Return a factor to start from; zeros would stay."""
    return np.maximum(F, _FILLER * (F.mean() or 1.0)).astype(F.dtype, copy=False)


def sums_of_slices(values: Matrix, slices: Slices) -> Matrix:
    n = len(slices.of)
    ones = np.ones(n, dtype=values.dtype)
    return sp.csr_array((ones, (slices.of, np.arange(n))), (len(slices.starts), n)) @ values


def means_of_slices(values: Matrix, slices: Slices) -> Matrix:
    """Return the mean of the rows of every slice; zeros for a slice without any."""
    sums: Any = sums_of_slices(values, slices)
    share = (1 / np.maximum(slices.sizes, 1)).astype(values.dtype)[:, None]
    return sp.csr_array(sums.multiply(share)) if sp.issparse(sums) else sums * share


def resampled(X: Matrix, slices: Slices, rng: Generator) -> tuple[Matrix, Slices]:
    """Draw as many documents of every slice as it has, with replacement, and give their slices."""
    order = np.argsort(slices.of, kind="stable")
    of = slices.of[order]
    first = np.cumsum(slices.sizes) - slices.sizes
    drawn = order[first[of] + rng.integers(slices.sizes[of])]
    return X[drawn], Slices(slices.starts, of)
