"""Documents of slices of time as a tensor: terms x places of documents in a slice x slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.times import Slices
from .._solver.units import exponent_of
from .factorize import factorize

_FITS, _STEPS = 10, 30
_FILLER = 0.01  # of the mean of a factor

Tensor = tuple[Array, Array, tuple[int, int, int]]


def drawn_places(slices: Slices, per_slice: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw up to `per_slice` documents of each slice; return them and their places in it.

    Fewer ones are spread over the places: none stands for a part of the slices only.
    """
    order = np.argsort(slices.of, kind="stable")
    members = np.split(order, np.cumsum(slices.sizes)[:-1])
    documents, places = [], []
    for some in members:
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

    The order of documents within a slice has no meaning, and other starts soon fit it.  Least
    squares, of which the best of several short fits is taken, find topics that last a short time.
    """
    (terms, _, slices), values, (n_terms, per_slice, n_slices) = tensor
    exponent = exponent_of(values, "X")  # so that the objectives of short fits can be compared
    values = np.ldexp(values, -exponent)
    sums = sp.coo_array((values, (slices, terms)), shape=(n_slices, n_terms)).tocsr()
    fits = (
        factorize(
            sums,
            n_components=rank,
            max_iter=_STEPS,
            init="random",
            random_state=rng,
            n_threads=n_threads,
        )
        for _ in range(_FITS)
    )
    best = min(fits, key=lambda fit: fit.objective[-1][1])
    constant = np.full((per_slice, rank), 1 / per_slice)
    size = np.full(rank, np.ldexp(1.0, exponent))
    # Zeros would stay.
    A, S = (np.maximum(F, _FILLER * (F.mean() or 1.0)) for F in (best.A.T, best.S))
    return size, [A, constant, S]
