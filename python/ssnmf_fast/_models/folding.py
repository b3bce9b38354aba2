"""Documents of slices of time as a tensor: terms x places of documents in a slice x slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.times import Slices

Tensor = tuple[Array, Array, tuple[int, int, int]]


def drawn_places(slices: Slices, per_slice: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the documents that are drawn, and the place of each in its slice.

    Of a slice with more than `per_slice` documents so many are drawn; the fewer ones of another
    are spread over the places, so that no place stands for a part of the slices only.
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
