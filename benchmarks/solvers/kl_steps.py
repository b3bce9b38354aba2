"""Rules that minimize the Kullback-Leibler divergence, as generators for `kl_rules.py`.

A rule changes the factors [S, A^T] in place and yields once for an iteration: the loss if it knows
that, else None.  Rows of both factors are those of padded storage, with columns of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ssnmf_fast._backend.dispatch import kernels
from ssnmf_fast._data.entries import SparseEntries, Target

Array = np.ndarray[Any, Any]
Steps = Iterator[float | None]
Rule = Callable[["Work", list[Array]], Steps]
Step = Callable[["Work", list[Array], int], None]  # changes the factor of that side

RELAXATION = 0.9
SMALLEST = 1e-300


class Work:
    """The data as either factor sees them, and the passes over them so far."""

    def __init__(self, X: Any, threads: int) -> None:
        rows = SparseEntries(X, threads)
        self.threads = threads
        self.sides = rows, rows.turned()
        self.passes = 0.0

    def ratio(self, factors: list[Array], side: int) -> tuple[Array, Array]:
        """Return P = (Z / F G^T) G and N = 1 G, the gradient of a factor being N - P."""
        F, G = factors[side], factors[1 - side]
        P = np.empty_like(F)
        self.sides[side].power(-1, F, G, Target(P))
        self.passes += 1
        return P, G.sum(axis=0)

    def loss(self, factors: list[Array], count: bool = True) -> float:
        """Return the divergence; a rule that asks for it pays a pass."""
        self.passes += count
        S, A = factors
        return float(self.sides[0].sum("kl_loss", S, A) + S.sum(axis=0) @ A.sum(axis=0))


def multiplied(F: Array, P: Array, N: Array, relaxation: float, threads: int = 1) -> None:
    """Do the multiplicative step of the package in place."""
    kernels.update(F, None, None, P, np.tile(N, (len(F), 1)), "mm", relaxation, threads)


def multiplicative(relaxation: float) -> Step:
    """Return the multiplicative step of a factor."""

    def step(work: Work, factors: list[Array], side: int) -> None:
        multiplied(factors[side], *work.ratio(factors, side), relaxation, work.threads)

    return step


def mm(relaxation: float = 0.0, rounds: int = 1) -> Rule:
    """Multiplicative steps, over-relaxed: those of S `rounds` times before that of A."""

    def rule(work: Work, factors: list[Array]) -> Steps:
        step = multiplicative(relaxation)
        while True:
            for side in (*(0,) * rounds, 1):
                step(work, factors, side)
            yield None

    return rule


# ---------------------------------------------------------------------------------- momentum


def ahead(F: Array, before: Array, step: Array | float) -> Array:
    """Return F + step (F - before); entries that fall take F / (1 + step (before / F - 1)) > 0."""
    falls = before > F
    change = step * (before - F)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(falls, np.where(F > 0, F / (1 + change / F), 0.0), F - change)


def momentum(update: Step, growth: float = 1.05) -> Rule:
    """Momentum with restart (Ang and Gillis 2019, Algorithm 2) on steps of single factors.

    The iterate is (S ahead, A); one that raises the loss is undone, and the next goes without
    momentum.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        S, A = (F.copy() for F in factors)  # the last updates
        apart = A.copy()  # from where A sets out
        value = work.loss(factors)
        step = step_before = 0.25
        largest, moving = 1.0, False
        while True:
            now = step if moving else 0.0
            kept = [F.copy() for F in factors]
            new = factors[0].copy()
            update(work, [new, apart], 0)
            factors[0][...], S = ahead(new, S, now), new
            factors[1][...] = apart
            update(work, factors, 1)
            reached = work.loss(factors)
            if reached > value:
                for F, old in zip(factors, kept, strict=True):
                    F[...] = old
                S, A, apart = kept[0], kept[1], kept[1].copy()
                largest, step, moving = step_before, step / 1.5, False
            else:
                apart, A = ahead(factors[1], A, now), factors[1].copy()
                value, moving, step_before = reached, True, step
                step, largest = min(largest, growth * step), min(1.0, 1.01 * largest)
            yield value

    return rule


def certified(relaxation: float = RELAXATION, growth: float = 1.2, most: float = 0.98) -> Rule:
    """Momentum of every row on its own, which a bound keeps from raising the loss: no loss pass.

    With the other factor fixed the loss f is convex in a row.  The row sets out from y beyond the
    accepted x; its gradient g at y is what the step needs anyway.  The step to y t lets f fall by D
    at least, the fall of the majorizer, and f(y) <= f(x) + <g, y - x>.  A row whose
    <g, y - x> - D is above 0 returns to x, and goes without momentum the next time.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        before = [F.copy() for F in factors]
        steps = [np.full((len(F), 1), 0.25) for F in factors]
        moving = [np.zeros((len(F), 1), dtype=bool) for F in factors]
        while True:
            for side in (0, 1):
                F = factors[side]
                y = ahead(F, before[side], steps[side] * moving[side])
                P, N = work.ratio([y, factors[1]] if side == 0 else [factors[0], y], side)
                new = y.copy()
                multiplied(new, P.copy(), N, relaxation)
                with np.errstate(divide="ignore", invalid="ignore"):
                    pulls = np.where(new > 0, y * P * np.log(new / y), 0.0)
                rise = ((N - P) * (y - F) + N * (new - y) - pulls).sum(axis=1, keepdims=True)
                falls = rise <= 0
                before[side] = np.where(falls, F, before[side])
                F[...] = np.where(falls, new, F)
                grown = np.minimum(most, growth * steps[side])
                steps[side] = np.where(falls, grown, steps[side] / 2)
                moving[side] = falls
            yield None

    return rule


# ------------------------------------------------------- extrapolation of the whole fixed point


def squarem(relaxation: float = RELAXATION) -> Rule:
    """SQUAREM (Varadhan and Roland 2008, scheme S3) on logarithms of both factors.

    Two iterations give the differences d and v; then exp(x - 2 a d + a^2 v) with a = -|d| / |v|,
    unless the loss is higher there than after the two iterations.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        plain = mm(relaxation)(work, factors)
        value = work.loss(factors)
        while True:
            points = [[np.log(np.maximum(F, SMALLEST)) for F in factors]]
            for _ in range(2):
                next(plain)
                points.append([np.log(np.maximum(F, SMALLEST)) for F in factors])
            after = [F.copy() for F in factors]
            first = [b - a for a, b in zip(points[0], points[1], strict=True)]
            second = [c - b - d for b, c, d in zip(points[1], points[2], first, strict=True)]
            weight = [np.exp(a) for a in points[0]]
            squares = [
                sum(float(np.vdot(w, d * d)) for w, d in zip(weight, parts, strict=True))
                for parts in (first, second)
            ]
            a = max(1.0, np.sqrt(squares[0] / max(squares[1], SMALLEST)))
            for F, x, d, v in zip(factors, points[0], first, second, strict=True):
                moved = np.exp(np.clip(x + 2 * a * d + a * a * v, -600, 100))
                F[...] = np.where(F > 0, moved, 0.0)
            reached = work.loss(factors)
            if not reached <= value:
                for F, old in zip(factors, after, strict=True):
                    F[...] = old
                reached = work.loss(factors)
            value = reached
            yield value

    return rule


def anderson(relaxation: float = RELAXATION, memory: int = 5) -> Rule:
    """Anderson acceleration of the iteration, restarted when the loss would rise.

    The new point is the combination of the last images with the least residual, positive as
    :func:`ahead` keeps it; one that is above the loss of before is replaced by the plain image.
    """

    def rule(work: Work, factors: list[Array]) -> Steps:
        plain = mm(relaxation)(work, factors)
        sizes = np.cumsum([F.size for F in factors])[:-1]
        shapes = [F.shape for F in factors]
        value = work.loss(factors)
        moves: list[tuple[Array, Array]] = []  # differences of residuals and of images
        last: tuple[Array, Array] | None = None
        while True:
            x = np.concatenate([F.ravel() for F in factors])
            next(plain)
            image = np.concatenate([F.ravel() for F in factors])
            residual = image - x
            if last is not None:
                moves = [*moves, (residual - last[0], image - last[1])][-memory:]
            last = residual, image
            if moves:
                gram = np.array([[a @ b for b, _ in moves] for a, _ in moves])
                gram[np.diag_indices(len(moves))] *= 1 + 1e-8
                right = np.array([a @ residual for a, _ in moves])
                weights = np.linalg.lstsq(gram, right, rcond=None)[0]
                change = sum(w * b for w, (_, b) in zip(weights, moves, strict=True))
                moved = np.maximum(image - change, 0.1 * image)
                for F, part, shape in zip(factors, np.split(moved, sizes), shapes, strict=True):
                    F[...] = part.reshape(shape)
            reached = work.loss(factors)
            if not reached <= value:
                for F, part, shape in zip(factors, np.split(image, sizes), shapes, strict=True):
                    F[...] = part.reshape(shape)
                moves, last = [], None
                reached = work.loss(factors)
            value = reached
            yield value

    return rule
