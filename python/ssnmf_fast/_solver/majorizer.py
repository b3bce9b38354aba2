"""Majorizers: what a factor is updated by, and its two steps, coordinate descent and products."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array, mask_of
from .._common.text import short
from .._data.entries import Entries
from .._data.weight_forms import Quadratic

Kind: TypeAlias = tuple[float, float, float]  # exponents (a, b) and slope of a loss
Rule: TypeAlias = Literal["mm", "mu"]
Pair: TypeAlias = tuple[Array, Array | None]  # P and N; N may be one row for all, or unknown

# The kernel of multiplicative steps can combine these:
_SQUARES, _LOGARITHMS = (1.0, 0.0, 2.0), (0.0, -1.0, 1.0)


@dataclass(frozen=True)
class Bound:
    """An upper bound of a penalty, with equality at the factor F' (n x r) for which it was made.

    It is ``linear * sum(F) + sum_i rows_i f_i gram f_i^T - 2 <up, F>`` plus a constant, for the
    rows f_i of F.  All parts are nonnegative.

    Parameters
    ----------
    linear : float
        Weight of the sum of the entries.
    gram : ndarray, shape (r, r), optional
        Symmetric; None means zeros.
    rows : ndarray, shape (n,), optional
        None means ones.
    up : ndarray, shape (n, r), optional
        None means zeros.
    """

    linear: float = 0.0
    gram: Array | None = None
    rows: Array | None = None
    up: Array | None = None

    def part(self, rows: slice) -> Bound:
        of_rows, up = (None if each is None else each[rows] for each in (self.rows, self.up))
        return replace(self, rows=of_rows, up=up)

    def stored(self, F: Array, rank: int, name: str) -> Bound:
        """Return the bound of a penalty for a stored factor: with its type, padded by zeros."""
        more, parts = (0, F.shape[1] - rank), dict[str, Any]()
        for part, n, padding in (
            ("linear", (), ()),
            ("gram", (rank, rank), (more, more)),
            ("rows", (len(F),), ((0, 0),)),
            ("up", (len(F), rank), ((0, 0), more)),
        ):
            if (given := getattr(self, part)) is not None:
                array = np.asarray(given, dtype=F.dtype, order="C")
                if array.shape != n or not array.min(initial=0.0) >= 0:
                    hint = f"expected nonnegative numbers of shape {n}."
                    raise ValueError(f"the bound of {name} has {part} {short(given)}; {hint}")
                parts[part] = np.pad(array, padding) if n else float(given)
        if "up" in parts:  # with a gram, which all readers look for
            parts.setdefault("gram", np.zeros((F.shape[1],) * 2, dtype=F.dtype))
        return Bound(**parts)

    def down(self, F: Array) -> Array:
        """Return half the slope of the quadratic part, for a bound with a Gram matrix."""
        assert self.gram is not None
        return F @ self.gram if self.rows is None else (F @ self.gram) * self.rows[:, None]


class Weighted(NamedTuple):
    """Curvature ``scale * sum_j v_ij g_j g_j^T`` of row i, for weights v of entries."""

    entries: Entries
    scale: float
    G: Array


@dataclass
class Majorizer:
    """An upper bound of the objective in one factor F, with equality at its current value F'.

    It is the sum of what terms and penalties contribute.  For the slope of F = F' .* t, entrywise,
    a term has a pair (P, N) by its `kind` (a, b, slope), or a curvature K_i of row i instead of N::

        slope (N t^a - P t^b)        a, b, slope: 1, 0, 2 for squares; 0, -1, 1 for the divergence
        2 (f_i K_i - p_i)            K_i = gram + sum rows_i scaled + sum v_ij g_j g_j^T

    P and N are the parts of the gradient: sums W .* X times G, and W .* F G^T times G or similar
    (Haddock et al. 2020, Algorithms 1 to 3; `docs/guide/models.md` has the table).  Penalties add
    quadratic parts, and `linear` times the sum of F.  All may be added over rows of the data:
    blocks, machines and batches.

    **Multiplicative step** (:meth:`multiply`): t is the zero of the slope.  For one kind of loss
    with a - b = 1 it is the papers' ``t = P / N`` (Lee and Seung 2001, theorems 1 and 2); with
    squares and divergence it is the positive root of ``2 N2 t^2 + (N1 - 2 P2) t - P1 = 0``.  For
    other losses, ``t = (P / N)^(1 / (a - b))`` with the largest a and the least b of all terms,
    because ``(t^(a+1) - 1) / (a + 1)`` rises with a for every t > 0 (for beta < 1 the exponent is
    that of Fevotte and Idier 2011, table 2).

    **Descent** (:meth:`descend`): cyclic steps ``f_ik <- max(0, f_ik + (p_ik - f_i K_i e_k) /
    K_i,kk)``, the minimum in each entry, and conjugate gradients on the positive entries.

    Without pairs, the loss itself descends, entry by entry, and reads the data.
    """

    pairs: dict[Kind, Pair] = field(default_factory=dict)
    gram: Array | None = None
    scaled: list[tuple[Array, Array]] = field(default_factory=list)  # Gram matrices with row scales
    listed: list[Weighted] = field(default_factory=list)
    linear: float = 0.0  # also subtracted from P already
    hollow: bool = False  # whether penalties ask that products of components vanish

    @property
    def curved(self) -> bool:
        """Whether there is a curvature, for coordinate descent."""
        return self.gram is not None or bool(self.scaled or self.listed)

    @property
    def P(self) -> Array:
        """The sum of P over the kinds, in the unit of squares."""
        parts = [
            P if slope == 2 else P * (slope / 2) for (_, _, slope), (P, _) in self.pairs.items()
        ]
        return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)

    def add_curvature(self, part: Quadratic, coefficient: float, G: Array) -> None:
        """Add the curvature of a term with the other factor G, or of a penalty."""
        if part.gram is not None:
            gram = part.gram if coefficient == 1 else part.gram.dtype.type(coefficient) * part.gram
            if part.rows is not None:
                self.scaled.append((gram, part.rows))
            else:
                self.gram = gram if self.gram is None else self.gram + gram
        if part.entries is not None:
            self.listed.append(Weighted(part.entries, coefficient, G))

    def add(self, other: Majorizer, scale: float = 1.0, *, same_terms: bool = True) -> Majorizer:
        """Add a multiple of another majorizer of F in place: a block, a batch, or other terms."""
        for kind, (P, N) in other.pairs.items():
            here, there = self.pairs.get(kind, (None, None))
            self.pairs[kind] = _sum(here, P, scale), there if N is None else _sum(there, N, scale)
        if other.gram is not None:
            self.gram = _sum(self.gram, other.gram, scale)
        if same_terms:  # of other rows
            pairs = zip(self.scaled, other.scaled, strict=True)
            self.scaled = [(_sum(gram, more, scale), rows) for (gram, rows), (more, _) in pairs]
        else:
            self.scaled = [*self.scaled, *other.scaled]
        return self

    def copied(self, copy: Callable[[Array], Array] = np.copy) -> Majorizer:
        """Return a copy whose sums the problem does not overwrite."""
        pairs = {kind: (copy(P), _if(copy, N)) for kind, (P, N) in self.pairs.items()}
        return replace(self, pairs=pairs, gram=_if(copy, self.gram))

    def penalized(self, F: Array, bounds: Sequence[Bound]) -> Majorizer:
        """Return the sum with bounds of penalties at F; P of this one stays, N is overwritten."""
        found = replace(self, pairs=dict(self.pairs), scaled=[*self.scaled])
        for bound in bounds:
            found.linear += bound.linear
            if self.curved:
                found._bend(F, bound)
            elif self.pairs:
                found._pull(F, bound)
        return found

    def _bend(self, F: Array, bound: Bound) -> None:
        P, gram, up = self.P - F.dtype.type(bound.linear / 2), bound.gram, bound.up
        if gram is not None:
            # Give every entry some curvature, below rounding, so that steps do not diverge.
            wanted = np.sqrt(np.finfo(F.dtype).eps) * gram.max(axis=0)
            more = np.maximum(wanted - np.diagonal(gram), 0).astype(F.dtype)
            if more.any():
                self.hollow = True
                near = F * more if bound.rows is None else F * more * bound.rows[:, None]
                gram, up = gram + np.diag(more), near if up is None else up + near
            self.add_curvature(Quadratic(gram, bound.rows), 1.0, P[:0])
        if up is not None:
            P += up
        self.pairs = {_SQUARES: (P, None)}

    def _pull(self, F: Array, bound: Bound) -> None:
        pairs: Any = self.pairs
        if bound.linear:  # exact for an exponent of 0, a bound for larger exponents
            kind = min(pairs)
            pairs[kind][1][...] += F.dtype.type(bound.linear / kind[-1])
        if bound.gram is not None:
            P, N = np.zeros_like(F) if bound.up is None else bound.up, bound.down(F)
            if _SQUARES in pairs:  # P of the data may be needed afterwards
                P, N = P + pairs[_SQUARES][0], N + pairs[_SQUARES][1]
            pairs[_SQUARES] = P, N

    def pulls(self, F: Array, bounds: Sequence[Bound]) -> tuple[Array, Array, float]:
        """Return the pulls up and down at F, with penalties, and their unit."""
        pairs: Any = self.pairs
        if len(pairs) == 1 and not bounds:
            (((_, _, slope), (P, N)),) = pairs.items()
            return P, N, slope
        up, down = np.zeros_like(F), np.zeros_like(F)
        for (_, _, slope), (P, N) in pairs.items():
            _sum(up, P, slope)
            _sum(down, N, slope)
        for bound in bounds:
            down += F.dtype.type(bound.linear)
            if bound.gram is not None:
                down += 2 * bound.down(F)
            if bound.up is not None:
                up += 2 * bound.up
        return up, down, 1.0

    def multiply(self, F: Array, rule: Rule, relaxation: float, threads: int) -> None:
        """Multiply F, in place, by the minimizer t, or beyond it; overwrite the sums."""
        pairs: Any = self.pairs
        if not set(pairs) <= {_SQUARES, _LOGARITHMS}:
            pairs = {_LOGARITHMS: _common(pairs)}
        P2, N2 = pairs.get(_SQUARES, (None, None))
        P1, N1 = pairs.get(_LOGARITHMS, (None, None))
        kernels.update(F, P2, N2, P1, N1, rule, relaxation, threads)

    def descend(
        self, F: Array, support: Array | None, sweeps: int, face_steps: int, threads: int
    ) -> None:
        """Lower F, in place, by sweeps over its entries; those outside of `support` stay."""
        P, (grams, scales) = self.P, self._stacked_grams(F)
        if not self.listed:
            steps = 0 if self.hollow else face_steps  # useless if products should vanish
            rest = None, None, None, np.empty((0, F.shape[1]), F.dtype), P, F, support
            kernels.coordinate_descent(grams, scales, *rest, sweeps, steps, threads)
            if self.linear:
                # Descent does not move entries without curvature, even if they are pulled down.
                curvature = np.diagonal(grams, axis1=1, axis2=2)
                curvature = curvature.sum(axis=0)[None] if scales is None else scales.T @ curvature
                unused = (P < 0) & (curvature <= kernels.tiny(F.dtype))
                if unused.any():
                    F[unused if support is None else unused & mask_of(support, F.shape[1])] = 0
            return
        listed = self.listed
        G = listed[0].G if len(listed) == 1 else np.concatenate([each.G for each in listed])
        portions = [each.entries.slices(len(F)) for each in listed]
        ends = np.unique([0, *(rows.stop for slices in portions for rows in slices)]).tolist()
        for rows in itertools.starmap(slice, itertools.pairwise(ends)):
            scale = None if scales is None else np.ascontiguousarray(scales[:, rows])
            pattern = *_stacked(listed, rows, F.dtype), G
            target = P[rows], F[rows], None if support is None else support[rows]
            kernels.coordinate_descent(grams, scale, *pattern, *target, sweeps, 0, threads)

    def _stacked_grams(self, F: Array) -> tuple[Array, Array | None]:
        """Return all Gram matrices, and their row scales if there are any."""
        if not self.scaled:
            none = np.empty((0, F.shape[1], F.shape[1]), dtype=F.dtype)
            return none if self.gram is None else self.gram[None], None
        scaled = [*self.scaled]
        if self.gram is not None:
            scaled.append((self.gram, np.ones(len(F), dtype=F.dtype)))
        grams, rows = zip(*scaled, strict=True)
        return np.stack(grams), np.stack(rows)


def _if(function: Callable[[Array], Array], array: Array | None) -> Array | None:
    return None if array is None else function(array)


def _sum(total: Array | None, part: Array, scale: float) -> Array:
    """Return total + scale * part, in place unless total is None, or one row for many."""
    part = part if scale == 1 and total is not None else part.dtype.type(scale) * part
    if total is None:
        return part
    if len(total) < len(part):
        total = np.broadcast_to(total, part.shape).copy()
    total += part
    return total


def _stacked(listed: Sequence[Weighted], rows: slice, dtype: Any) -> tuple[Array, Array, Array]:
    """Return the signed weights of some rows, side by side for the stacked G."""
    blocks = []
    for entries, scale, G in listed:
        indptr, indices, values = entries.csr_rows(rows)
        if len(listed) == 1 and scale == 1:
            return indptr, indices, values
        scaled = values * dtype.type(scale)
        shape = (rows.stop - rows.start, len(G))
        blocks.append(sp.csr_array((scaled, indices, indptr), shape=shape))
    csr = blocks[0] if len(blocks) == 1 else sp.hstack(blocks, format="csr")
    return csr.indptr, csr.indices, csr.data


def _common(pairs: dict[Kind, tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return ((P / N)^exponent, 1) for the sums over all kinds; (0, 0) where N is 0."""
    P, N = (np.zeros_like(next(iter(pairs.values()))[0]) for _ in range(2))
    for (_, _, slope), pair in pairs.items():
        _sum(P, pair[0], slope)
        _sum(N, pair[1], slope)
    exponent = 1 / (max(a for a, _, _ in pairs) - min(b for _, b, _ in pairs))
    moves = kernels.tiny(N.dtype) < N
    with np.errstate(over="ignore"):
        np.divide(P, N, out=P, where=moves)
        np.power(P, exponent, out=P)
    P[~moves] = 0
    N[...] = moves
    return P, N
