"""Topics of dated documents that share their coefficients within a slice of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Matrix
from .._data.times import Slices
from .._solver.losses import loss_named
from .._solver.penalties import L2, Graph
from .._solver.result import Factorization, TensorFactorization
from .factorize import factorize

# Prevalence is smooth but for events, and the noise of a slice is not.  The two are equal, as
# components share their size between the factors; chosen on planted events.
_SMOOTHING = 1e-4
_SCALE = 1e-8  # of squares: a prevalence that is the same at all times has a scale, too


class DatedTopics(NamedTuple):
    """Topics of dated documents."""

    components: Array  # (r, m), of any scale
    prevalence: Array | None  # (slices, r) in a mean document; None: its mean representation
    fit: Factorization | TensorFactorization


def factorize_tied(
    X: Matrix,
    slices: Slices,
    rank: int,
    rng: np.random.Generator,
    most: int | None,
    arguments: dict[str, Any],
) -> DatedTopics:
    """Minimize the loss of documents whose coefficients are those of their slice.

    ``sum over slices t, documents d in t of w_t / n_t d(x_d, p_t A)``, where w_t is n_t, the number
    of documents, at most `most`; None: the median of the slices in use.  Up to a constant that is
    the loss of the mean documents: for squared errors ``w_t ||mean_t - p_t A||^2``, else
    ``d(w_t mean_t, w_t p_t A)``.
    """
    words = np.bincount(slices.of, np.asarray(X.sum(axis=1)).ravel(), len(slices.starts))
    used = words > 0 if words.any() else slices.sizes > 0
    at = np.flatnonzero(used)
    limit = np.median(slices.sizes[slices.sizes > 0]) if most is None else most
    counted = np.minimum(slices.sizes, limit)[used][:, None].astype(X.dtype)
    arguments = arguments | {"n_components": rank, "random_state": rng}
    if _is_quadratic(arguments["loss"]):
        # The root of the mean square of the lengths of documents; 1 for zeros.
        length = float(np.sqrt(float((X * X).sum(dtype=np.float64)) / X.shape[0])) or 1.0
        weights = np.sqrt(counted)
        rows = _product(weights / length, means_of_slices(X, slices)[used])
        fit = _fit_squares(rows, at, rng, arguments)
        P = fit.S * (length / weights)
    else:
        shares = _shares(X)
        rows = _product(counted, means_of_slices(shares, slices)[used])
        if _is_default(arguments["init"]):
            weights = np.sqrt(counted)
            rows_of_start = _product(weights, means_of_slices(_tfidf_rows(X, shares), slices)[used])
            squares = {"loss": "frobenius", "callback": None, "verbose": 0}
            S = _fit_squares(rows_of_start, at, rng, arguments | squares).S * weights
            arguments["init"] = _topics_of(S, rows, counted)
        fit = factorize(rows, **arguments)
        P = fit.S / counted
    prevalence = np.zeros((len(used), rank), dtype=fit.S.dtype)
    prevalence[used] = P
    return DatedTopics(fit.A, prevalence, fit)


def normalize_documents(X: Matrix, loss: str | float) -> Matrix:
    """Return documents as they are for squared errors, else with sum 1."""
    return X if _is_quadratic(loss) else _shares(X)


def _is_quadratic(loss: str | float) -> bool:
    return bool(loss_named(loss, "loss").quadratic)


def _shares(X: Matrix) -> Matrix:
    """Return documents with sum 1, so that each counts the same; empty ones stay."""
    sums = np.asarray(X.sum(axis=1)).reshape(-1, 1)
    return _product((1 / np.where(sums > 0, sums, 1)).astype(X.dtype), X)


def _is_default(init: object) -> bool:
    return isinstance(init, str) and init in ("auto", "slices")


def _fit_squares(
    rows: Matrix, at: Array, rng: np.random.Generator, arguments: dict[str, Any]
) -> Factorization:
    """Fit mean documents of the slices `at` by squares, with prevalences smooth but across gaps."""
    after = (np.diff(at) == 1).astype(float)
    chain = sp.diags([after, after], [1, -1], shape=(len(at), len(at)), format="csr")
    smooth = {"S": [Graph(_SMOOTHING, chain), L2(_SCALE)], "A": L2(_SMOOTHING)}
    arguments = arguments | {"penalties": smooth}
    if _is_default(arguments["init"]):
        settings = arguments["n_components"], rng, arguments["n_threads"], smooth
        arguments["init"] = best_short_fit(rows, *settings)
    return factorize(rows, **arguments)


def _tfidf_rows(X: Matrix, shares: Matrix) -> Matrix:
    """Return documents of length 1, their terms weighted as by TF-IDF."""
    stored = sp.csr_array(X)
    frequency = np.bincount(stored.indices, stored.data > 0, minlength=X.shape[1])
    rarity = np.log((1 + X.shape[0]) / (1 + frequency)) + 1
    documents = _product(rarity[None].astype(X.dtype), shares)
    length = np.sqrt(np.asarray((documents * documents).sum(axis=1))).reshape(-1, 1)
    return _product((1 / np.where(length > 0, length, 1)).astype(X.dtype), documents)


def _topics_of(S: Array, rows: Matrix, counted: Array) -> tuple[Array, Array]:
    """Return S and A to start from: of each topic the mean of slices by its share in these."""
    S = without_zeros(S)
    S *= counted / S.sum(axis=1, keepdims=True)
    A = (S / counted).T @ rows
    A = np.asarray(A.toarray() if sp.issparse(A) else A)
    return S, without_zeros(A / S.sum(axis=0)[:, None])


def _product(weights: Array, X: Any) -> Matrix:
    """Return X times weights of its rows, (n, 1), or columns, (1, m)."""
    return sp.csr_array(X.multiply(weights)) if sp.issparse(X) else X * weights


_FITS, _STEPS = 10, 30
_FILLER = 0.01  # of the mean of a factor

Tensor = tuple[Array, Array, tuple[int, int, int]]


def folded(X: Matrix, slices: Slices, per_slice: int, rng: np.random.Generator) -> Tensor:
    """Return coordinates, values and shape of the tensor of some documents, at random places."""
    drawn = [(rng.permutation(one), rng.permutation(per_slice)) for one in slices.members]
    pairs = [(one[:per_slice], places[: len(one)]) for one, places in drawn]
    documents, places = (np.concatenate(each) for each in zip(*pairs, strict=True))
    some = sp.csr_array(X)[documents]
    rows = np.repeat([places, slices.of[documents]], np.diff(some.indptr), axis=1)
    coords = np.stack([some.indices, *rows])
    return coords, some.data, (X.shape[1], per_slice, len(slices.starts))


def start_from_slices(
    tensor: Tensor, rank: int, rng: np.random.Generator, n_threads: int | None
) -> tuple[Array, list[Array]]:
    """Return weights and factors to start from: topics of the sums of the documents of slices."""
    (terms, _, slices), values, (n_terms, per_slice, n_slices) = tensor
    sums = sp.coo_array((values, (slices, terms)), shape=(n_slices, n_terms)).tocsr()
    S, A = best_short_fit(sums, rank, rng, n_threads)
    constant = np.full((per_slice, rank), 1 / per_slice)
    return np.ones(rank), [A.T, constant, S]


def best_short_fit(
    sums: Matrix,
    rank: int,
    rng: np.random.Generator,
    n_threads: int | None,
    penalties: dict[str, Any] | None = None,
) -> tuple[Array, Array]:
    """Return S and A of the best of several short least-squares fits, without zeros."""
    fits = (
        factorize(
            sums,
            n_components=rank,
            max_iter=_STEPS,
            init="random",
            random_state=rng,
            n_threads=n_threads,
            penalties=penalties,
        )
        for _ in range(_FITS)
    )
    best = min(fits, key=lambda fit: fit.objective[-1][1])
    return without_zeros(best.S), without_zeros(best.A)


def without_zeros(F: Array) -> Array:
    """Return a factor to start from; zeros would stay."""
    return np.maximum(F, _FILLER * (F.mean() or 1.0)).astype(F.dtype, copy=False)


def sums_of_slices(values: Matrix, slices: Slices) -> Matrix:
    """Return the sum of the rows of every slice, sparse where they are."""
    n = len(slices.of)
    places = slices.of, np.arange(n)
    return sp.csr_array((np.ones(n, values.dtype), places), (len(slices.starts), n)) @ values


def means_of_slices(values: Matrix, slices: Slices) -> Matrix:
    """Return the mean of the rows of every slice; zeros for a slice without any."""
    sums: Any = sums_of_slices(values, slices)
    share = (1 / np.maximum(slices.sizes, 1)).astype(values.dtype)[:, None]
    return sp.csr_array(sums.multiply(share)) if sp.issparse(sums) else sums * share


def resampled(X: Matrix, slices: Slices, rng: np.random.Generator) -> tuple[Matrix, Slices]:
    """Draw as many documents of every slice as it has, with replacement, and give their slices."""
    order = np.argsort(slices.of, kind="stable")
    of = slices.of[order]
    first = np.cumsum(slices.sizes) - slices.sizes
    drawn = order[first[of] + rng.integers(slices.sizes[of])]
    return X[drawn], Slices(slices.starts, of)
