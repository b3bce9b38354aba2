"""Linear images of factors: data that meet sums of rows of a factor, not the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import scipy.sparse as sp

from ._arrays import aligned_zeros
from ._entries import SparseEntries, Target
from ._terms import Term

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

    def pull(self, term: Term, F: Array, G: Array, up: Target, down: Target) -> None:
        """Give the pair (P, N) of F: M^T times that of M F."""
        MF = self.of(F, up.n_threads)
        pull = aligned_zeros(MF.shape, MF.dtype)
        for give, to in ((term.pull_up, up), (term.pull_down, down)):
            give(MF, G, Target(pull, 1.0, to.n_threads))
            self.backward.product(pull, to)
