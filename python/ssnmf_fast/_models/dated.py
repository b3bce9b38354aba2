"""Topics of dated documents that share their coefficients within a slice of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from .._common.arrays import Array, Matrix
from .._data.times import Slices
from .._solver.losses import loss_named
from .._solver.penalties import L2, Graph
from .._solver.result import Factorization, TensorFactorization
from .factorize import factorize

# Prevalence is smooth but for events, and the noise of a slice is not.
_SMOOTHING = 1e-4
_SCALE = 1e-8  # of squares: a prevalence that is the same at all times has a scale, too


class DatedTopics(NamedTuple):
    """Topics of dated documents."""

    components: Array  # (r, m), of any scale
    prevalence: Array | None  # (slices, r) in a mean document; None: its mean representation
    fit: Factorization | TensorFactorization


def factorize_tied(
    X: Matrix, slices: Slices, rank: int, rng: Generator, most: int | None, settings: dict[str, Any]
) -> DatedTopics:
    """Minimize the loss of documents whose coefficients are those of their slice."""
    words = np.bincount(slices.of, np.asarray(X.sum(axis=1)).ravel(), len(slices.starts))
    used = words > 0 if words.any() else slices.sizes > 0
    at = np.flatnonzero(used)
    if most is None:
        most = np.median(slices.sizes[slices.sizes > 0])
    counted = np.minimum(slices.sizes, most)[used][:, None].astype(X.dtype)
    settings = settings | {"n_components": rank, "random_state": rng}
    if loss_named(settings["loss"], "loss").quadratic:
        mean_square = float((X * X).sum(dtype=np.float64)) / X.shape[0]
        length = float(np.sqrt(mean_square)) or 1.0
        weights = np.sqrt(counted)
        rows = _product(weights / length, means_of_slices(X, slices)[used])
        fit = _fit_squares(rows, at, rng, settings)
        P = fit.S * (length / weights)
    else:
        shares = _shares(X)
        rows = _product(counted, means_of_slices(shares, slices)[used])
        if _is_default(settings["init"]):
            weights = np.sqrt(counted)
            rows_of_start = _product(weights, means_of_slices(_tfidf_rows(X, shares), slices)[used])
            squares = {"loss": "frobenius", "callback": None, "verbose": 0}
            S = _fit_squares(rows_of_start, at, rng, settings | squares).S * weights
            # To start from: of each topic the mean of slices by its share in these.
            S = without_zeros(S)
            S *= counted / S.sum(axis=1, keepdims=True)
            A: Any = (S / counted).T @ rows
            A = np.asarray(A.toarray() if sp.issparse(A) else A)
            settings["init"] = S, without_zeros(A / S.sum(axis=0)[:, None])
        fit = factorize(rows, **settings)
        P = fit.S / counted
    prevalence = np.zeros((len(used), rank), dtype=fit.S.dtype)
    prevalence[used] = P
    return DatedTopics(fit.A, prevalence, fit)


def normalize_documents(X: Matrix, loss: str | float) -> Matrix:
    return X if loss_named(loss, "loss").quadratic else _shares(X)


def _shares(X: Matrix) -> Matrix:
    """Return documents with sum 1, so that each counts the same; empty ones stay."""
    sums = np.asarray(X.sum(axis=1)).reshape(-1, 1)
    return _product((1 / np.where(sums > 0, sums, 1)).astype(X.dtype), X)


def _is_default(init: object) -> bool:
    return isinstance(init, str) and init in ("auto", "slices")


def _fit_squares(
    rows: Matrix, at: Array, rng: Generator, arguments: dict[str, Any]
) -> Factorization:
    """Fit mean documents of the slices `at` by squares, with prevalences smooth but across gaps."""
    after = (np.diff(at) == 1).astype(float)
    chain = sp.diags([after, after], [1, -1], shape=(len(at), len(at)), format="csr")
    smooth = {"S": [Graph(_SMOOTHING, chain), L2(_SCALE)], "A": L2(_SMOOTHING)}
    init = arguments["init"]
    if _is_default(init):
        rank = arguments["n_components"]
        init = best_short_fit(rows, rank, rng, arguments["n_threads"], penalties=smooth)
    return factorize(rows, **arguments | {"init": init, "penalties": smooth})


def _tfidf_rows(X: Matrix, shares: Matrix) -> Matrix:
    """Return documents of length 1, their terms weighted as by TF-IDF."""
    stored = sp.csr_array(X)
    frequency = np.bincount(stored.indices, stored.data > 0, minlength=X.shape[1])
    rarity = np.log((1 + X.shape[0]) / (1 + frequency)) + 1
    documents = _product(rarity[None].astype(X.dtype), shares)
    length = np.sqrt(np.asarray((documents * documents).sum(axis=1))).reshape(-1, 1)
    return _product((1 / np.where(length > 0, length, 1)).astype(X.dtype), documents)


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
