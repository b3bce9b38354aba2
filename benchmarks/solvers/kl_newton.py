"""Second-order rules for the Kullback-Leibler divergence, for `kl_rules.py`: see `kl_steps.py`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from kl_steps import RELAXATION, Array, Rule, Steps, Work, mm, momentum

from ssnmf_fast._data.entries import SparseEntries, Target

SWEEP = (
    7 / 4
)  # passes: u = a / m, z u, sums of gradient, curvature, model, beside 4 flops of a pass
FLOOR = 1e-12  # of entries
SAFE = 0.683802  # of what self-concordance makes of a Newton step: so far it goes in full


class Coordinates:
    """Newton steps of single entries, all rows at once, one component after the other.

    It keeps the model at the entries.  `damped` are the scalar Newton steps of Hien and Gillis
    (2021), which the self-concordance of the loss of an entry keeps from raising it; else the full
    steps of Hsieh and Dhillon (2011), one for an entry in a sweep.
    """

    def __init__(self, work: Work, damped: bool) -> None:
        self.damped = damped
        self._sides = []
        for entries in work.sides:
            indptr, columns, z = entries.csr
            rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            least = np.full(len(indptr) - 1, np.inf)
            np.minimum.at(least, rows, np.where(z > 0, z, np.inf))
            self._sides.append((rows, columns, z, indptr, 1 / np.sqrt(least)))

    def sweep(self, work: Work, factors: list[Array], side: int) -> None:
        """Give every entry of a factor a step."""
        rows, columns, z, indptr, concordance = self._sides[side]
        F, G = factors[side], factors[1 - side]
        work.passes += SWEEP
        model = np.maximum(inner(F, G, rows, columns), FLOOR)
        filled = np.flatnonzero(np.diff(indptr))
        begins = indptr[filled]
        for k, total in enumerate(G.sum(axis=0)):
            if total <= 0:
                continue
            a = G[:, k][columns]
            u = a / model
            pulls = z * u
            pull, curvature = (np.add.reduceat(part, begins) for part in (pulls, pulls * u))
            gradient = total - pull
            with np.errstate(divide="ignore", invalid="ignore"):
                step = -gradient / curvature
                if self.damped:
                    size = concordance[filled] * np.abs(gradient) / np.sqrt(curvature)
                    safe = (size <= SAFE) | (gradient <= 0)
                    step = np.where(safe, step, step / (1 + size))
            step = np.where(np.isfinite(step), step, 0.0)
            new = np.maximum(F[filled, k] + step, FLOOR)
            change = np.zeros(len(F))
            change[filled] = new - F[filled, k]
            F[filled, k] = new
            model += change[rows] * a
            np.maximum(model, FLOOR, out=model)


def inner(F: Array, G: Array, rows: Array, columns: Array, block: int = 1 << 15) -> Array:
    """Return the rows of F times those of G, pair by pair."""
    out = np.empty(len(rows))
    for begin in range(0, len(rows), block):
        part = slice(begin, begin + block)
        np.einsum("ij,ij->i", F[rows[part]], G[columns[part]], out=out[part])
    return out


def coordinates(damped: bool = False, warm: int = 10) -> Rule:
    """Coordinate descent after some multiplicative steps: a sweep over S, then one over A."""

    def rule(work: Work, factors: list[Array]) -> Steps:
        plain = mm(RELAXATION)(work, factors)
        for _ in range(warm):
            yield next(plain)
        descent = Coordinates(work, damped)
        while True:
            for side in (0, 1):
                descent.sweep(work, factors, side)
            yield None

    return rule


def extrapolated(warm: int = 10) -> Rule:
    """Coordinate descent with extrapolation after some multiplicative steps, as in fastTopics.

    Carbonetto et al. (2021); the extrapolation is that of Ang and Gillis, :func:`momentum`.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        plain = mm(RELAXATION)(work, factors)
        for _ in range(warm):
            yield next(plain)
        descent = Coordinates(work, damped=False)
        yield from momentum(descent.sweep)(work, factors)

    return rule


def curvature(work: Work, factors: list[Array], side: int) -> Array:
    """Return the row sums H 1 of the Hessians of the rows: (Z (G 1) / (F G^T)^2) G.

    That is a pass, and would be half a one if it shared the model with the gradient.
    """
    F, G = factors[side], factors[1 - side]
    indptr, columns, z = work.sides[side].csr
    scaled = sp.csr_array((z * G.sum(axis=1)[columns], columns, indptr), shape=(len(F), len(G)))
    H = np.empty_like(F)
    SparseEntries(scaled, work.threads).power(-2, F, G, Target(H))
    work.passes += 1
    return H


def majorant(gamma: float, share: float = np.inf, warm: int = 10) -> Rule:
    """Steps x - gamma g / D, cut at a tiny number, with the diagonal D = (H u) / u of a row.

    g and H are gradient and Hessian of the row x with the other factor fixed.  D bounds H from
    above for every u > 0 (Pham, Cohen and Chonavel 2023), but only at x: the rule may raise the
    loss.  u = x gives multiplicative steps, since H x = P; u = 1 gives their AmSOM (`share` is
    infinite).  In between, u = x + c with c = `share` times the mean of the row, for which H u is
    P + c H 1: entries near zero move freely, those above as in multiplicative steps.

    It begins after `warm` relaxed multiplicative iterations, as the authors advise.  An iteration
    that raises the loss is undone and replaced by a multiplicative one; the comparison is a pass.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        plain = mm(RELAXATION)(work, factors)
        for _ in range(warm):
            yield next(plain)
        value = work.loss(factors)
        while True:
            kept = [F.copy() for F in factors]
            for side in (0, 1):
                newton_like(work, factors, side, gamma, share)
            reached = work.loss(factors)
            if not reached <= value:
                for F, old in zip(factors, kept, strict=True):
                    F[...] = old
                next(plain)
                reached = work.loss(factors)
            value = reached
            yield value

    return rule


def newton_like(work: Work, factors: list[Array], side: int, gamma: float, share: float) -> None:
    """Do the step of :func:`majorant` for one factor."""
    F = factors[side]
    P, N = work.ratio(factors, side)
    H = curvature(work, factors, side)
    with np.errstate(divide="ignore", invalid="ignore"):
        D = H
        if np.isfinite(share):
            c = share * F.sum(axis=1, keepdims=True) / np.count_nonzero(N)
            D = (P + c * H) / (F + c)
        moved = np.where(D > 0, F - gamma * (N - P) / D, 0.0)
    F[...] = np.where(N > 0, np.maximum(moved, FLOOR), 0.0)
