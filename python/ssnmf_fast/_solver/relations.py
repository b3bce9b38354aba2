"""Relations between data and factors, and their statistics for one factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import aligned_zeros
from .._common.arrays import Array, Factors
from .._data.entries import SparseEntries, Target
from .._data.tensors import RowProducts
from .terms import Term

SOLVERS = ("auto", "mm", "mu", "hals")


def mode_names(n_modes: int) -> tuple[str, ...]:
    return tuple(f"F{mode}" for mode in range(n_modes))


class LinearMap:
    """``M F`` for a nonnegative sparse M (p x n): a term approximates its data by (M F) G^T.

    The pair of F is M^T times the pair of M F.  The separable majorizers of both losses survive a
    nonnegative map (Cho and Saul 2011, appendix A; for squares because M^T M and G^T G have no
    negative entry): multiplicative updates of F never raise the objective.
    """

    def __init__(self, matrix: sp.csr_array, threads: int) -> None:
        self._forward = SparseEntries(matrix, threads)
        self._backward = self._forward.turned()
        sums = self._backward.matrix.sum(axis=1)
        self._weights = np.asarray(sums, dtype=matrix.dtype)  # sums of the columns of M, (n,)

    def of(self, F: Array) -> Array:
        """Return M F, by rows, (p, R)."""
        out = aligned_zeros((self._forward.matrix.shape[0], F.shape[1]), F.dtype)
        self._forward.power(0, None, F, Target(out))
        return out

    def pair(self, term: Term, MF: Array, G: Array, up: Target, down: Target) -> None:
        """Compute the pair (P, N) of F: M^T times that of M F."""
        pull = aligned_zeros(MF.shape, MF.dtype)
        term.P(MF, G, Target(pull))
        self._backward.power(0, None, pull, up)
        form: Any = term.form
        if term.loss.model_free and form.equal_rows:  # M^T V is the sums of M times a row of V
            term.loss.N(form.with_rows(self._weights), up.out, G, down)
            return
        term.N(MF, G, Target(pull))
        self._backward.power(0, None, pull, down)


class Images:
    """Factors by name, and their images under maps, kept until they change."""

    def __init__(self, factors: Factors) -> None:
        self.factors = factors
        self._made: dict[tuple[str, LinearMap], Array] = {}

    def of(self, name: str, linear: LinearMap | None) -> Array:
        if linear is None:
            return self.factors[name]
        key = name, linear
        if key not in self._made:
            self._made[key] = linear.of(self.factors[name])
        return self._made[key]

    def forget(self, name: str | None = None) -> None:
        """Forget the images of a factor that has changed, or of all."""
        self._made = {key: F for key, F in self._made.items() if name not in (None, key[0])}


@dataclass(frozen=True)
class Relation:
    """``coefficient * term``: data approximated by the product of the factors of these names.

    With more than two names, the far side is the products of the rows of all others, and
    ``term.view(k)`` are the data unfolded by factor k.  With a map, the first factor is its image.
    """

    names: tuple[str, ...]
    term: Term
    coefficient: float = 1.0
    map: LinearMap | None = None

    def pair(self, images: Images) -> tuple[Array, Any]:
        return images.of(self.names[0], self.map), self.view(self.names[0]).G(images)

    def view(self, name: str) -> TermView:
        position = self.names.index(name)
        far = self.names[:position] + self.names[position + 1 :]
        maps = (self.map, None) if position == 0 else (None, self.map)
        return TermView(self.term.view(position), far, self.coefficient, *maps)


class TermView(NamedTuple):
    """A relation viewed from one of its factors, with the maps of this factor and the others."""

    term: Term
    far: tuple[str, ...]
    coefficient: float
    map: LinearMap | None = None
    far_map: LinearMap | None = None

    @property
    def one_row(self) -> bool:
        """Whether N is one row for all rows of the factor."""
        return self.term.loss.model_free and self.map is None and self.term.form.equal_rows

    @property
    def mapped(self) -> bool:
        return self.map is not None or self.far_map is not None

    def G(self, images: Images) -> Any:
        """Return the factor on the far side, or the factors with rows to be multiplied."""
        if len(self.far) == 1 and not self.term.entries.by_factors:
            return images.of(self.far[0], self.far_map)
        products = RowProducts(tuple(images.factors[name] for name in self.far))
        return products if self.term.entries.by_factors else products[:]


def value(relations: Sequence[Relation], factors: Factors, images: Images | None = None) -> float:
    images = images or Images(factors)
    return sum(r.coefficient * r.term.value(*r.pair(images)) for r in relations if r.coefficient)


def unreached(relations: Sequence[Relation], factors: Factors) -> float:
    """Return the part of the value from entries that no component can reach."""
    pairs = [(r, r.pair(Images(factors))) for r in relations if r.coefficient]
    return sum(r.coefficient * r.term.unreached(*pair) for r, pair in pairs)
