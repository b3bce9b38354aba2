"""Relations between data and factors, and their statistics for one factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import aligned_zeros
from .._common.arrays import Array, Solver
from .._data.entries import SparseEntries, Target
from .._data.tensors import RowProducts, whole
from .descent import Part, added
from .penalties import NONE, Penalties
from .terms import Loss, Term

SOLVERS = ("auto", "mm", "mu", "hals")

_MOST_FACE_STEPS = 16  # of conjugate gradients, before the last sweep
_SHARE_OF_STEPS = 1 / 3  # of the arithmetic of a product with the data


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

    def of(self, F: Array) -> Array:
        """M F, by rows, (p, R)."""
        out = aligned_zeros((self._forward.matrix.shape[0], F.shape[1]), F.dtype)
        self._forward.power(0, None, F, Target(out))
        return out

    @cached_property
    def _weights(self) -> Array:
        """Column sums of M, (n,)."""
        matrix = self._backward.matrix
        return np.asarray(matrix.sum(axis=1), dtype=matrix.dtype)

    def pair(self, term: Term, MF: Array, G: Array, up: Target, down: Target) -> None:
        """Give the pair (P, N) of F: M^T times that of M F."""
        pull = aligned_zeros(MF.shape, MF.dtype)
        term.P(MF, G, Target(pull))
        self._backward.power(0, None, pull, up)
        form = term.form.mapped(self._weights)
        if term.loss.model_free and form is not None:
            term.loss.N(form, up.out, G, down)
            return
        term.N(MF, G, Target(pull))
        self._backward.power(0, None, pull, down)


class Images:
    """Factors by name, and their images under maps, which are kept until they change."""

    def __init__(self, factors: Mapping[str, Array]) -> None:
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
        if self._made:
            kept = {key: F for key, F in self._made.items() if name not in (None, key[0])}
            self._made = kept


@dataclass(frozen=True)
class Relation:
    """``coefficient * term``: data approximated by the product of the factors of these names.

    With two names, Z ~ F G^T.  With more, the far side is the products of the rows of all others,
    and ``term.view(k)`` are the data unfolded by the rows of factor k.  With a map, the first
    factor F stands for its image.
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
    """A relation as one of its factors sees it, with the maps of this factor and of the others."""

    term: Term
    far: tuple[str, ...]
    coefficient: float
    map: LinearMap | None = None
    far_map: LinearMap | None = None

    @property
    def quadratic(self) -> bool:
        return self._unmapped and self.term.loss.quadratic and self.term.form.curved

    @property
    def by_entries(self) -> bool:
        """Whether coordinate descent may use its loss itself, entry by entry."""
        entries = self.term.entries
        return (
            entries.sparse and not entries.by_factors and self.term.loss.descends and self._unmapped
        )

    @property
    def _unmapped(self) -> bool:
        return self.map is None and self.far_map is None

    @property
    def equal_N(self) -> bool:
        return self.map is None and self.term.loss.model_free and self.term.form.equal_rows

    def G(self, images: Images) -> Any:
        """Return the factor on the far side, or the factors whose rows are multiplied."""
        if len(self.far) == 1 and not self.term.entries.by_factors:
            return images.of(self.far[0], self.far_map)
        products = RowProducts(tuple(images.factors[name] for name in self.far))
        return products if self.term.entries.by_factors else whole(products)


def value(
    relations: Sequence[Relation], factors: Mapping[str, Array], images: Images | None = None
) -> float:
    images = images or Images(factors)
    return sum(r.coefficient * r.term.value(*r.pair(images)) for r in relations if r.coefficient)


def unreached(relations: Sequence[Relation], factors: Mapping[str, Array]) -> float:
    """Return what of the value belongs to entries that no component can reach."""
    pairs = [(r, r.pair(Images(factors))) for r in relations if r.coefficient]
    return sum(r.coefficient * r.term.unreached(*pair) for r, pair in pairs)


@dataclass
class Statistics:
    """Sufficient statistics of rows of the data for a factor: they add up.

    (P, N) by loss, with N as one row where all are the same; or P and the parts of the curvature;
    or nothing for coordinate descent entry by entry, which reads the data itself.
    """

    sums: dict[Loss, tuple[Array, Array]]
    parts: list[Part]

    @property
    def P(self) -> Array:
        return next(iter(self.sums.values()))[0]

    def copied(self, copy: Callable[[Array], Array] = np.copy) -> Statistics:
        """Return what the problem does not overwrite."""
        sums = {loss: (copy(P), copy(N)) for loss, (P, N) in self.sums.items()}
        return Statistics(sums, [part.copied(copy) for part in self.parts])

    def join(self, others: Statistics) -> None:
        for loss, pair in others.sums.items():
            self.sums[loss] = added(self.sums[loss], pair) if loss in self.sums else pair
        self.parts += others.parts

    def add(self, others: Statistics) -> None:
        """Add those of other rows; the curvature must be one Gram matrix."""
        for loss, (P, N) in self.sums.items():
            P += others.sums[loss][0]
            N += others.sums[loss][1]
        for part, other in zip(self.parts, others.parts, strict=True):
            mine, its = part.quadratic.gram, other.quadratic.gram
            if mine is not None and its is not None:
                mine += its


class Rules:
    """Which rule updates each factor: what its terms allow.

    Where other rows are elsewhere, the problem is not `whole`: the curvature of another factor is
    then known as one Gram matrix only.  `elsewhere` has a flag for each further relation of the
    fit, without these rows: whether it has such a curvature.
    """

    def __init__(
        self,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        penalties: Mapping[str, Penalties],
        whole: bool,
        elsewhere: Sequence[bool] = (),
    ) -> None:
        self.factors = factors
        self.relations = relations
        self.penalties = penalties
        self.rows, *self.others = factors
        self._views: dict[str, list[TermView]] = {}
        self._n_elsewhere = len(elsewhere)
        self._n_relations = len(relations) + len(elsewhere)
        # With weights of every row only for one data matrix: products with them take long.
        lists = whole and self._n_relations == 1
        self._all_quadratic = all(elsewhere) and all(
            r.map is None
            and (r.term.gram or (lists and r.term.form.lists_few))
            and r.term.loss.quadratic
            for r in relations
        )

    def views(self, name: str) -> list[TermView]:
        """Return the terms that meet a factor, as that factor sees them."""
        if name not in self._views:
            meet = [r for r in self.relations if name in r.names]
            views = [r.view(name) for r in sorted(meet, key=lambda r: r.names[0] != name)]
            # A coefficient common to all terms changes no update; without it, lambda = 0 fits B.
            if len(views) == 1 and name not in self.penalties:
                views = [views[0]._replace(coefficient=1.0)]
            self._views[name] = views
        return self._views[name]

    def extrapolates(self) -> bool:
        """Whether "auto" adds momentum: only without labels, where minima are as good."""
        here = sum(r.coefficient > 0 for r in self.relations)
        return self._all_quadratic and here + self._n_elsewhere == 1

    def descends(self, name: str, rule: Solver) -> bool:
        """Whether a factor is updated by coordinate descent, and not by a multiplicative step."""
        if rule == "auto":
            return self._all_quadratic
        if rule != "hals":
            return False
        return all(view.quadratic for view in self.views(name)) or self._by_entries(name)

    def _by_entries(self, name: str) -> bool:
        linear = self.penalties.get(name, NONE).linear
        return self._n_relations == 1 and linear and self.views(name)[0].by_entries

    def refines(self) -> bool:
        """Whether "auto" goes on by coordinate descent where multiplicative steps get slow."""
        return all(self._by_entries(name) for name in self.factors)

    def _face_steps(self, name: str) -> int:
        """Return the number of conjugate gradient steps: a share of the work of a product."""
        if not self.extrapolates():
            return 0
        length = sum(view.term.row_lengths[0] for view in self.views(name) if view.term.row_lengths)
        rank = -(-self.factors[name].shape[1] // 8) * 8  # as the compiled kernels pad it
        return min(int(_SHARE_OF_STEPS * length / rank), _MOST_FACE_STEPS)
