"""Linear images of factors: data that meet sums of rows of a factor, not the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._arrays import aligned_zeros
from ._entries import SparseEntries, Target
from ._terms import Term
from ._weight_forms import Separable, is_unweighted

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Image:
    """``M F`` for a nonnegative sparse M (p x n): a term approximates its data by (M F) G^T.

    For data Z ~ (M F) G^T the pair of F is M^T times the pair of M F.  The separable majorisers of
    both losses survive a nonnegative linear map (Cho and Saul 2011, appendix A, for the
    divergence; for squares because M^T M and G^T G have no negative entry), so that the
    multiplicative updates of F never raise the objective.
    """

    forward: SparseEntries
    backward: SparseEntries

    @classmethod
    def by(cls, matrix: sp.csr_array, n_threads: int) -> Image:
        """Return the image under a matrix, (p, n)."""
        forward = SparseEntries(matrix)
        return cls(forward, forward.transposed(n_threads))

    def of(self, F: Array, n_threads: int) -> Array:
        """M F, by rows, (p, R)."""
        out = aligned_zeros((self.forward.matrix.shape[0], F.shape[1]), F.dtype)
        self.forward.product(F, Target(out, 1.0, n_threads))
        return out

    @cached_property
    def _weights(self) -> Array:
        """Column sums of M, (n,)."""
        return np.asarray(self.backward.matrix.sum(axis=1), dtype=self.backward.matrix.dtype)

    def pull(self, term: Term, MF: Array, G: Array, up: Target, down: Target) -> None:
        """Give the pair (P, N) of F: M^T times that of M F."""
        pull = aligned_zeros(MF.shape, MF.dtype)
        term.pull_up(MF, G, Target(pull, 1.0, up.n_threads))
        self.backward.product(pull, up)
        if term.loss == "kullback-leibler" and is_unweighted(term.form):
            Separable(rows=self._weights).kl(G, down)  # all rows of N of M F are equal
            return
        term.pull_down(MF, G, Target(pull, 1.0, down.n_threads))
        self.backward.product(pull, down)


class Seen:
    """What data see of factors: the factors themselves, or their images, each made once."""

    def __init__(self, factors: dict[str, Array], n_threads: int) -> None:
        self._factors = factors
        self._n_threads = n_threads
        self._made: dict[tuple[str, int], Array] = {}

    def of(self, name: str, image: Image | None) -> Array:
        """Return a factor, or its image."""
        if image is None:
            return self._factors[name]
        key = name, id(image)
        if key not in self._made:
            self._made[key] = image.of(self._factors[name], self._n_threads)
        return self._made[key]

    def changed(self) -> None:
        """Forget the images: factors have changed."""
        self._made.clear()
