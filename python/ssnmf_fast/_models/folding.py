"""Documents of slices of time as a tensor: terms x places of documents in a slice x slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.times import Slices
from .._solver.units import exponent_of, scaled
from .factorize import factorize

_FITS, _STEPS = 10, 30
_FILLER = 0.01  # of the mean of a factor

Tensor = tuple[Array, Array, tuple[int, int, int]]


def drawn_places(slices: Slices, per_slice: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw up to `per_slice` documents of each slice; return them and their places in it.

    Fewer ones are spread over the places: none stands for a part of the slices only.
    """
    documents, places = [], []
    for some in slices.members:
        count = min(len(some), per_slice)
        documents.append(rng.permutation(some)[:count])
        places.append(rng.permutation(per_slice)[:count])
    return np.concatenate(documents), np.concatenate(places)


def folded(X: Any, slices: Slices, per_slice: int, rng: np.random.Generator) -> Tensor:
    """Return coordinates, values and shape of the tensor of a CSR matrix (documents x terms)."""
    documents, places = drawn_places(slices, per_slice, rng)
    some = sp.csr_array(X)[documents]
    counts = np.diff(some.indptr)
    coords = np.stack(
        [some.indices, np.repeat(places, counts), np.repeat(slices.of[documents], counts)]
    )
    return coords, some.data, (X.shape[1], per_slice, len(slices.starts))


def start_from_slices(
    tensor: Tensor, rank: int, rng: np.random.Generator, n_threads: int | None
) -> tuple[Array, list[Array]]:
    """Return weights and factors to start from: topics of the sums of the documents of the slices.

    The order of documents within a slice has no meaning, and other starts soon fit it.
    """
    (terms, _, slices), values, (n_terms, per_slice, n_slices) = tensor
    exponent = exponent_of(values, "X")
    values = np.ldexp(values, -exponent)
    sums = sp.coo_array((values, (slices, terms)), shape=(n_slices, n_terms)).tocsr()
    S, A = best_short_fit(sums, rank, rng, n_threads)
    constant = np.full((per_slice, rank), 1 / per_slice)
    return np.full(rank, np.ldexp(1.0, exponent)), [A.T, constant, S]


def best_short_fit(
    sums: Any,
    rank: int,
    rng: np.random.Generator,
    n_threads: int | None,
    penalties: dict[str, Any] | None = None,
) -> tuple[Array, Array]:
    """Return S and A, without zeros, to start from: of the sums of the documents of the slices.

    Least squares, of which the best of several short fits is taken, find topics that last a short
    time.
    """
    exponent = exponent_of(sums, "X")  # so that the objectives of short fits can be compared
    fits = (
        factorize(
            scaled(sums, -exponent),
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
    return np.ldexp(without_zeros(best.S), exponent), without_zeros(best.A)


def without_zeros(F: Array) -> Array:
    """Return a factor to start from; zeros would stay."""
    return np.maximum(F, _FILLER * (F.mean() or 1.0)).astype(F.dtype, copy=False)


def sums_of_slices(values: Any, slices: Slices) -> Any:
    """Return the sum of the rows of every slice, sparse where they are."""
    n = len(slices.of)
    ones = np.ones(n, dtype=values.dtype)
    return sp.csr_array((ones, (slices.of, np.arange(n))), (len(slices.starts), n)) @ values


def means_of_slices(values: Any, slices: Slices) -> Any:
    """Return the mean of the rows of every slice; zeros for a slice without any."""
    sums = sums_of_slices(values, slices)
    share = (1 / np.maximum(slices.sizes, 1)).astype(values.dtype)[:, None]
    return sp.csr_array(sums.multiply(share)) if sp.issparse(sums) else sums * share


def resampled(X: Any, slices: Slices, rng: np.random.Generator) -> tuple[Any, Slices]:
    """Draw as many documents of every slice as it has, with replacement, and give their slices."""
    order = np.argsort(slices.of, kind="stable")
    of = slices.of[order]
    first = np.cumsum(slices.sizes) - slices.sizes
    drawn = order[first[of] + rng.integers(slices.sizes[of])]
    return X[drawn], Slices(slices.starts, of)
