"""What data see of factors: a factor, a linear map of one, or the products of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import aligned_zeros
from .._common.arrays import Array
from .._data.entries import SparseEntries, Target
from .._data.tensor_entries import RowProducts
from .terms import Term


@dataclass(frozen=True)
class LinearMap:
    """``M F`` for a nonnegative sparse M (p x n): a term approximates its data by (M F) G^T.

    For data Z ~ (M F) G^T the pair of F is M^T times the pair of M F.  The separable majorizers of
    both losses survive a nonnegative linear map (Cho and Saul 2011, appendix A, for the
    divergence; for squares because M^T M and G^T G have no negative entry), so that the
    multiplicative updates of F never raise the objective.
    """

    forward: SparseEntries
    backward: SparseEntries

    @classmethod
    def by(cls, matrix: sp.csr_array, threads: int) -> LinearMap:
        """Return the map by a matrix, (p, n)."""
        forward = SparseEntries(matrix, threads)
        return cls(forward, forward.turned())

    def of(self, F: Array) -> Array:
        """M F, by rows, (p, R)."""
        out = aligned_zeros((self.forward.matrix.shape[0], F.shape[1]), F.dtype)
        self.forward.power(0, None, F, Target(out))
        return out

    @cached_property
    def _weights(self) -> Array:
        """Column sums of M, (n,)."""
        return np.asarray(self.backward.matrix.sum(axis=1), dtype=self.backward.matrix.dtype)

    def pair(self, term: Term, MF: Array, G: Array, up: Target, down: Target) -> None:
        """Give the pair (P, N) of F: M^T times that of M F."""
        pull = aligned_zeros(MF.shape, MF.dtype)
        term.P(MF, G, Target(pull))
        self.backward.power(0, None, pull, up)
        form = term.form.mapped(self._weights)
        if term.loss.model_free and form is not None:
            term.loss.N(form, up.out, G, down)
            return
        term.N(MF, G, Target(pull))
        self.backward.power(0, None, pull, down)


class MappedFactors:
    """Factors as data see them; what is made of them is kept until they change."""

    def __init__(self, factors: Mapping[str, Array]) -> None:
        self._factors = factors
        self._made: dict[tuple[Any, ...], Array] = {}

    def of(self, names: Sequence[str], linear: LinearMap | None = None) -> Array:
        """Return a factor, its image under a map, or the products of the rows of several.

        Of several, row (i, j, ...) is the product of row i of the first, row j of the second and so
        on, the last index running fastest.  The map is that of the first.
        """
        if len(names) == 1 and linear is None:
            return self._factors[names[0]]
        key = (id(linear), *names)
        if key not in self._made:
            first, *others = (self._factors[name] for name in names)
            made = first if linear is None else linear.of(first)
            for factor in others:
                out = aligned_zeros((len(made) * len(factor), factor.shape[1]), factor.dtype)
                shape = len(made), len(factor), factor.shape[1]
                np.multiply(made[:, None], factor, out=out.reshape(shape))
                made = out
            self._made[key] = made
        return self._made[key]

    def apart(self, names: Sequence[str]) -> RowProducts:
        """Return the products of the rows of several, as their factors."""
        return RowProducts(tuple(self._factors[name] for name in names))

    def changed(self, name: str | None = None) -> None:
        """Forget what was made of a factor, or of all."""
        if not self._made:
            return
        for key in [key for key in self._made if name is None or name in key[1:]]:
            del self._made[key]
