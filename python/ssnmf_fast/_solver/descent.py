"""Updates of a factor: coordinate descent for Frobenius terms, multiplicative steps for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array, mask_of
from .._data.entries import row_slices
from .._data.weight_forms import Quadratic
from .penalties import Bound


class Part(NamedTuple):
    """``coefficient * quadratic``: what one term adds to K_i, over the other factor G."""

    quadratic: Quadratic
    coefficient: float
    G: Array

    def copied(self, copy: Callable[[Array], Array]) -> Part:
        """Return a part to which others may be added."""
        gram = self.quadratic.gram
        if gram is None:
            return self
        return self._replace(quadratic=replace(self.quadratic, gram=copy(gram)))


def descend(
    F: Array,
    P: Array,
    parts: Sequence[Part],
    support: Array | None,
    sweeps: int,
    face_steps: int,
    threads: int,
    bounds: Sequence[Bound] = (),
) -> None:
    """Lower ``sum_i f_i K_i f_i^T - 2 p_i f_i^T`` in place by sweeps over the entries of F."""
    convex = [_convex(bound, F) for bound in bounds]
    if any(one is not bound for one, bound in zip(convex, bounds, strict=True)):
        face_steps = 0  # of little use where products of components are to vanish
    P, parts = _penalized(P, parts, convex)
    grams, scales = _grams(F, parts)
    patterns = [part for part in parts if part.quadratic.entries is not None]
    if not patterns:
        rest = None, None, None, np.empty((0, F.shape[1]), F.dtype), P, F, support
        kernels.coordinate_descent(grams, scales, *rest, sweeps, face_steps, threads)
        if any(bound.linear for bound in bounds):
            _drop_unused(F, P, grams, scales, support)
        return
    G = patterns[0].G if len(patterns) == 1 else np.concatenate([p.G for p in patterns])
    for rows in row_slices(len(F)):
        kernels.coordinate_descent(
            grams,
            None if scales is None else np.ascontiguousarray(scales[:, rows]),
            *_stacked(patterns, rows, F.dtype),
            G,
            P[rows],
            F[rows],
            None if support is None else support[rows],
            sweeps,
            0,
            threads,
        )


def _penalized(
    P: Array, parts: Sequence[Part], bounds: Sequence[Bound]
) -> tuple[Array, Sequence[Part]]:
    """Return P and the parts with the bounds of penalties; those given stay as they are."""
    for bound in bounds:
        P = P - P.dtype.type(bound.linear / 2)
        if bound.up is not None:
            P += bound.up
        if bound.gram is not None:
            parts = [*parts, Part(Quadratic(bound.gram, bound.rows), 1.0, P[:0])]
    return P, parts


def _convex(bound: Bound, F: Array) -> Bound:
    """Return a bound with some curvature at every entry, below rounding: steps must not diverge."""
    if bound.gram is None:
        return bound
    wanted = np.sqrt(np.finfo(F.dtype).eps) * bound.gram.max(axis=0)
    more = np.maximum(wanted - np.diagonal(bound.gram), 0).astype(F.dtype)
    if not more.any():
        return bound
    near = F * more if bound.rows is None else F * more * bound.rows[:, None]
    up = near if bound.up is None else bound.up + near
    return replace(bound, gram=bound.gram + np.diag(more), up=up)


def _drop_unused(
    F: Array, P: Array, grams: Array, scales: Array | None, support: Array | None
) -> None:
    """Set entries to 0 that are pulled down and have no curvature: descent leaves them."""
    curvature = np.diagonal(grams, axis1=1, axis2=2)
    curvature = curvature.sum(axis=0)[None] if scales is None else scales.T @ curvature
    unused = (P < 0) & (curvature <= kernels.tiny(F.dtype))
    if unused.any():
        F[unused if support is None else unused & mask_of(support, F.shape[1])] = 0


def _grams(F: Array, parts: Sequence[Part]) -> tuple[Array, Array | None]:
    """Gram matrices of the parts and their row scales; those without scales are summed."""
    common: list[Array] = []
    scaled: list[tuple[Array, Array]] = []
    for part in parts:
        gram, rows = part.quadratic.gram, part.quadratic.rows
        if gram is not None:
            gram = gram if part.coefficient == 1 else gram.dtype.type(part.coefficient) * gram
            if rows is None:
                common.append(gram)
            else:
                scaled.append((gram, rows))
    if not common and not scaled:
        return np.empty((0, F.shape[1], F.shape[1]), dtype=F.dtype), None
    if not scaled:
        return common[0][None] if len(common) == 1 else np.sum(common, axis=0, keepdims=True), None
    if common:
        scaled.append((np.sum(common, axis=0), np.ones(len(F), dtype=F.dtype)))
    return np.stack([gram for gram, _ in scaled]), np.stack([rows for _, rows in scaled])


def _stacked(patterns: list[Part], rows: slice, dtype: Any) -> tuple[Array, Array, Array]:
    """Signed weights of some rows, side by side over the stacked G."""
    blocks = []
    for quadratic, scale, G in patterns:
        assert quadratic.entries is not None
        indptr, indices, values = quadratic.entries.csr_rows(rows)
        if len(patterns) == 1 and scale == 1:
            return indptr, indices, values
        scaled = values * dtype.type(scale)
        shape = (rows.stop - rows.start, len(G))
        blocks.append(sp.csr_array((scaled, indices, indptr), shape=shape))
    csr = blocks[0] if len(blocks) == 1 else sp.hstack(blocks, format="csr")
    return csr.indptr, csr.indices, csr.data


Sums = Mapping[Any, tuple[Array, Array]]  # (P, N) of a factor by loss; N may be one row for all

# Exponents and slopes of the pairs that the kernel takes together.
_QUADRATIC, _LOGARITHMIC = (1.0, 0.0, 2.0), (0.0, -1.0, 1.0)


def multiply(
    F: Array, sums: Sums, rule: str, relaxation: float, threads: int, bounds: Sequence[Bound] = ()
) -> None:
    """Multiply F, in place, by the minimizer of the majorizer; overwrites the sums.

    To the losses come the bounds of penalties.

    The kernel has it in closed form for losses with the majorizers of the squares and of the
    divergence.  With others ``N t^a - P t^b`` is replaced by its bound with the largest a and the
    least b of all terms: ``(t^(a+1) - 1) / (a + 1)`` rises with a for every t > 0.
    """
    pairs: dict[tuple[float, float, float], tuple[Array, Array]] = {}
    for loss, pair in sums.items():
        kind = (*loss.exponents, loss.slope)
        pairs[kind] = added(pairs[kind], pair) if kind in pairs else pair
    for bound in bounds:
        _penalize(pairs, bound, F)
    if not set(pairs) <= {_QUADRATIC, _LOGARITHMIC}:
        pairs = {_LOGARITHMIC: _common(pairs)}
    P2, N2 = pairs.get(_QUADRATIC, (None, None))
    P1, N1 = pairs.get(_LOGARITHMIC, (None, None))
    kernels.update(F, P2, N2, P1, N1, "mu" if rule == "mu" else "mm", relaxation, threads)


def _penalize(
    pairs: dict[tuple[float, float, float], tuple[Array, Array]], bound: Bound, F: Array
) -> None:
    if bound.linear:
        # Exact for an exponent of 0; a larger one bounds it, as in :func:`multiply`.
        kind = min(pairs)
        pairs[kind][1][...] += F.dtype.type(bound.linear / kind[-1])
    if bound.gram is not None:
        N = F @ bound.gram
        if bound.rows is not None:
            N *= bound.rows[:, None]
        P = np.zeros_like(F) if bound.up is None else bound.up
        if _QUADRATIC in pairs:  # P of the data may be needed afterwards
            P, N = P + pairs[_QUADRATIC][0], N + pairs[_QUADRATIC][1]
        pairs[_QUADRATIC] = P, N


def added(to: tuple[Array, Array], pair: tuple[Array, Array], scale: float = 1.0) -> Any:
    """Add a pair (P, N) to another one, in place but for an N of one row; return the sum."""
    if len(to[1]) < len(pair[1]):
        to = to[0], np.broadcast_to(to[1], pair[1].shape).copy()
    for total, part in zip(to, pair, strict=True):
        total += total.dtype.type(scale) * part
    return to


def _common(pairs: dict[tuple[float, float, float], tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return ((P / N)^exponent, 1) for the sums over all losses; (0, 0) where N vanishes."""
    P, N = (np.zeros_like(next(iter(pairs.values()))[0]) for _ in range(2))
    for (_, _, slope), pair in pairs.items():
        added((P, N), pair, slope)
    exponent = 1 / (max(a for a, _, _ in pairs) - min(b for _, b, _ in pairs))
    moves = kernels.tiny(N.dtype) < N
    with np.errstate(over="ignore"):
        np.divide(P, N, out=P, where=moves)
        np.power(P, exponent, out=P)
    P[~moves] = 0
    N[...] = moves
    return P, N
