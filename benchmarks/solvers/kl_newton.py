"""Second-order rules for the Kullback-Leibler divergence, for `kl_rules.py`: see `kl_steps.py`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from kl_steps import Array, Rule, Steps, Work, mm, momentum, multiplied

from ssnmf_fast._data.entries import SparseEntries, Target

SWEEP = 7 / 4  # passes: u = a / m, z u, sums of gradient, curvature, model, beside 4 flops of a pass
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
        plain = mm()(work, factors)
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
        plain = mm()(work, factors)
        for _ in range(warm):
            yield next(plain)
        descent = Coordinates(work, damped=False)
        yield from momentum(descent.sweep)(work, factors)

    return rule


def curvature(work: Work, factors: list[Array], side: int) -> Array:
    """Return the row sums H 1 of the Hessians of the rows: (Z (G 1) / (F G^T)^2) G."""
    F, G = factors[side], factors[1 - side]
    indptr, columns, z = work.sides[side].csr
    scaled = sp.csr_array((z * G.sum(axis=1)[columns], columns, indptr), shape=(len(F), len(G)))
    H = np.empty_like(F)
    SparseEntries(scaled, work.threads).power(-2, F, G, Target(H))
    work.passes += 0.5
    return H


def som(gamma: float = 1.0, warm: int = 10) -> Rule:
    """AmSOM (Pham, Cohen and Chonavel 2023): x - gamma g / (H 1), below at a tiny number.

    g and H are gradient and Hessian of a row with the other factor fixed.  H 1 bounds H from above
    as a diagonal matrix does, but only at x: the rule may raise the loss.  So it begins after `warm`
    multiplicative iterations, as the authors advise, and each step that raises the loss is replaced
    by a multiplicative one.  H 1 costs half a pass if it shares the model with the gradient, the
    comparison a pass.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        plain = mm()(work, factors)
        for _ in range(warm):
            yield next(plain)
        value = work.loss(factors)
        while True:
            for side in (0, 1):
                F, G = factors[side], factors[1 - side]
                P, N = work.ratio(factors, side)
                H = curvature(work, factors, side)
                with np.errstate(divide="ignore", invalid="ignore"):
                    moved = np.where(H > 0, F - gamma * (N - P) / H, 0.0)
                old = F.copy()
                F[...] = np.maximum(moved, FLOOR * (G.sum(axis=0) > 0))
                reached = work.loss(factors)
                if not reached <= value:
                    F[...] = old
                    multiplied(F, P, N, 0.0)
                    reached = work.loss(factors)
                value = reached
            yield value

    return rule
