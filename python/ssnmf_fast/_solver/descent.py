"""Updates of a factor: coordinate descent for Frobenius terms, multiplicative steps for all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array, mask_of
from .._data.weight_forms import Quadratic
from .penalties import Bound


class Part(NamedTuple):
    """``coefficient * quadratic``: the part of one term in K_i, with the other factor G."""

    quadratic: Quadratic
    coefficient: float
    G: Array


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
    for bound in bounds:  # without changing P and parts of the caller
        P, gram, up = P - P.dtype.type(bound.linear / 2), bound.gram, bound.up
        if gram is not None:
            # Give every entry some curvature, below rounding, so that steps do not diverge.
            wanted = np.sqrt(np.finfo(F.dtype).eps) * gram.max(axis=0)
            more = np.maximum(wanted - np.diagonal(gram), 0).astype(F.dtype)
            if more.any():
                face_steps = 0  # useless if products of components should vanish
                near = F * more if bound.rows is None else F * more * bound.rows[:, None]
                gram, up = gram + np.diag(more), near if up is None else up + near
            parts = [*parts, Part(Quadratic(gram, bound.rows), 1.0, P[:0])]
        if up is not None:
            P += up
    grams, scales = _grams(F, parts)
    patterns = [part for part in parts if part.quadratic.entries is not None]
    if not patterns:
        rest = None, None, None, np.empty((0, F.shape[1]), F.dtype), P, F, support
        kernels.coordinate_descent(grams, scales, *rest, sweeps, face_steps, threads)
        if any(bound.linear for bound in bounds):
            # Descent does not move entries without curvature, even if they are pulled down.
            curvature = np.diagonal(grams, axis1=1, axis2=2)
            curvature = curvature.sum(axis=0)[None] if scales is None else scales.T @ curvature
            unused = (P < 0) & (curvature <= kernels.tiny(F.dtype))
            if unused.any():
                F[unused if support is None else unused & mask_of(support, F.shape[1])] = 0
        return
    G = patterns[0].G if len(patterns) == 1 else np.concatenate([p.G for p in patterns])
    portions = [e.slices(len(F)) for e in (p.quadratic.entries for p in parts) if e is not None]
    ends = np.unique([0, *(rows.stop for slices in portions for rows in slices)]).tolist()
    for rows in itertools.starmap(slice, itertools.pairwise(ends)):
        scale = None if scales is None else np.ascontiguousarray(scales[:, rows])
        pattern = *_stacked(patterns, rows, F.dtype), G
        target = P[rows], F[rows], None if support is None else support[rows]
        kernels.coordinate_descent(grams, scale, *pattern, *target, sweeps, 0, threads)


def _grams(F: Array, parts: Sequence[Part]) -> tuple[Array, Array | None]:
    """Return Gram matrices of the parts and their row scales; sum those without scales."""
    grams = [
        (gram if coefficient == 1 else gram.dtype.type(coefficient) * gram, quadratic.rows)
        for quadratic, coefficient, _ in parts
        if (gram := quadratic.gram) is not None
    ]
    common = [gram for gram, rows in grams if rows is None]
    scaled = [(gram, rows) for gram, rows in grams if rows is not None]
    if not grams:
        return np.empty((0, F.shape[1], F.shape[1]), dtype=F.dtype), None
    if not scaled:
        total = common[0] if len(common) == 1 else np.sum(common, axis=0)
        return total[None], None
    if common:
        scaled.append((np.sum(common, axis=0), np.ones(len(F), dtype=F.dtype)))
    return np.stack([gram for gram, _ in scaled]), np.stack([rows for _, rows in scaled])


def _stacked(patterns: list[Part], rows: slice, dtype: Any) -> tuple[Array, Array, Array]:
    """Return the signed weights of some rows, side by side for the stacked G."""
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
_Pairs = dict[tuple[float, float, float], tuple[Array, Array]]  # by exponents and slope
# The kernel can combine these:
_QUADRATIC, _LOGARITHMIC = (1.0, 0.0, 2.0), (0.0, -1.0, 1.0)


def multiply(
    F: Array, sums: Sums, rule: str, relaxation: float, threads: int, bounds: Sequence[Bound] = ()
) -> None:
    """Multiply F, in place, by the minimizer of the majorizer; overwrite the sums.

    The kernel has a closed form for the majorizers of squares and of the divergence.  For other
    losses, ``N t^a - P t^b`` is replaced by its bound with the largest a and the least b of all
    terms, because ``(t^(a+1) - 1) / (a + 1)`` rises with a for every t > 0.
    """
    pairs: _Pairs = {}
    for loss, pair in sums.items():
        kind = (*loss.exponents, loss.slope)
        pairs[kind] = added(pairs[kind], pair) if kind in pairs else pair
    for bound in bounds:
        if bound.linear:  # exact for an exponent of 0, a bound for larger exponents
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
    if not set(pairs) <= {_QUADRATIC, _LOGARITHMIC}:
        pairs = {_LOGARITHMIC: _common(pairs)}
    P2, N2 = pairs.get(_QUADRATIC, (None, None))
    P1, N1 = pairs.get(_LOGARITHMIC, (None, None))
    kernels.update(F, P2, N2, P1, N1, "mu" if rule == "mu" else "mm", relaxation, threads)


def added(to: tuple[Array, Array], pair: tuple[Array, Array], scale: float = 1.0) -> Any:
    """Add a pair (P, N) to another, in place except for an N with one row; return the sum."""
    if len(to[1]) < len(pair[1]):
        to = to[0], np.broadcast_to(to[1], pair[1].shape).copy()
    for total, part in zip(to, pair, strict=True):
        total += total.dtype.type(scale) * part
    return to


def _common(pairs: _Pairs) -> tuple[Array, Array]:
    """Return ((P / N)^exponent, 1) for the sums over all losses; (0, 0) where N is 0."""
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
