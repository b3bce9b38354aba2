"""Starts: random, least-squares, nndsvda, random-acol, or given factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import padded
from .._common.arrays import Array, bits_of
from .._data.arrays import on_disk_error
from .._data.border import check_factor, check_option, require_memory
from .._data.csr_file import CsrFile
from .._linalg.operators import MatrixOperator
from .._linalg.randomized_svd import truncated_svd
from .beta_divergences import FROBENIUS
from .known import Known
from .loop import steps_of
from .losses import Loss
from .problem import Problem
from .relations import Relation
from .terms import Term, values_of, with_values
from .weights import build_term

INITS = ("auto", "random", "least-squares", "nndsvda", "random-acol")

SKETCH = 10, 4  # columns beside the rank, and power steps, of randomized SVD
ROWS_PER_MEAN = 5  # "Random Acol" of the TS-NMF paper averages a few random rows
_NOTHING = Known()
_LEAST_SQUARES_STEPS = 10  # see docs/evidence/solvers.md
FILLER = 0.01  # of the mean of a factor, in place of its zeros, which would stay


def start(
    init: Any,
    X: Any,
    data: Term,
    labels: Term | None,
    rank: int,
    rng: np.random.Generator,
    known: Known = _NOTHING,
    X_weights: Any = None,
) -> tuple[Array, Array, Array | None]:
    """Return S (n x r), A (r x m) and B (r x k) to start from, of the dtype of X.

    The mean of S A is that of X, and the mean of S B that of Y: the stopping rule measures progress
    against the objective of the start.  What is known of the factors holds.
    """
    dtype = X.dtype
    require_memory(rank, data.shape, dtype)
    if isinstance(init, (tuple, list)):
        return _given(init, data.shape, labels, rank, rng, dtype, known)
    name, found = choose_start(init, data.loss, isinstance(X, CsrFile)), None
    if name == "least-squares" and data.entries.total() > 0:
        found = _least_squares(X, X_weights, data.threads, rank, rng, known)
    if found is not None:
        S, A = known.restore("S", found[0]), known.restore("A", found[1]).T
        S = S * ratio(data.mean(), float(S.mean(axis=0) @ A.mean(axis=1)))
        S = known.restore("S", S)
    else:
        S, A = _drawn(name, X, data, rank, rng)
        S, F = _as_known(S, A.T, known, data.mean())
        A = F.T
    B = None if labels is None else start_B(S, labels, rng)
    return S.astype(dtype), A.astype(dtype), None if B is None else B.astype(dtype)


def choose_start(init: str, loss: Loss, on_disk: bool) -> str:
    """Return the name of the start that is meant, and can be had."""
    check_option(init, "init", INITS)
    if init == "auto":
        return "random" if on_disk else loss.start
    if init in ("nndsvda", "least-squares") and on_disk:
        raise on_disk_error(f"init={init!r} (other than 'random' or 'random-acol')")
    return init


def _drawn(
    init: str, X: Any, data: Term, rank: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return S and A of a start by name, float64; uniform ones where it cannot be had."""
    mean = data.mean()
    if init == "nndsvda":
        return _nndsvda(X, rank, mean, rng, data.threads)
    if init == "random-acol":
        A = _random_rows(X, rank, rng) + 0.01 * mean
        S = rng.random((data.shape[0], rank))
        return S * (mean / float(S.mean(axis=0) @ A.mean(axis=1))), A
    S, F = uniform(data.shape, mean, rank, rng)
    return S, F.T


def uniform(
    shape: tuple[int, ...], mean: float, rank: int, rng: np.random.Generator
) -> list[Array]:
    """Return uniform factors (n_k x r) of a model of this mean."""
    level = mean / rank
    scale = 2 * (np.sqrt(level) if len(shape) == 2 else level ** (1 / len(shape)))
    first = scale * rng.random((shape[0], rank))
    return [first, *(scale * rng.random((rank, n)).T for n in shape[1:])]


def _as_known(S: Array, F: Array, known: Known, mean: float) -> list[Array]:
    """Return a drawn S and an A by columns with what is known of them."""
    drawn = {"S": S, "A": F}
    factors = {name: known.restore(name, known.within(name, F)) for name, F in drawn.items()}
    levels = known.levels({name: F.mean(axis=0) for name, F in factors.items()}, mean)
    return [F * levels[name] for name, F in factors.items()]


def _least_squares(
    X: Any,
    X_weights: Any,
    threads: int,
    rank: int,
    rng: np.random.Generator,
    known: Known,
) -> list[Array] | None:
    """Return the squares of factors that were fitted to the square roots of X, float64.

    None where one of them vanishes; A is by columns.  Errors of the roots of counts are all of
    about one size, so that least squares suit them.
    """
    data = build_term(roots(X), X_weights, FROBENIUS, "X", threads)
    S, F = uniform(data.shape, data.mean(), rank, rng)
    S, F = _as_known(S, F, known.roots(), data.mean())
    stored = {"S": padded(S, X.dtype), "A": padded(F, X.dtype)}
    return squares_of_fit(data, stored, rank, known.moves(stored))


def squares_of_fit(
    roots: Term, stored: dict[str, Array], rank: int, support: dict[str, Array]
) -> list[Array] | None:
    """Return the squares of factors after a short fit to roots, float64.

    None where there is nothing to fit.  Sparse and dense data have the same start.
    """
    if not roots.entries.total() > 0:
        return None
    roots = replace(roots, row_lengths=())  # no conjugate gradients in so short a fit
    fit_roots(Problem(stored, [Relation(tuple(stored), roots)], support))
    squares = [F[:, :rank].astype(np.float64) ** 2 for F in stored.values()]
    if not all(F.mean() > 0 for F in squares):
        return None
    return [np.maximum(F, FILLER * F.mean()) for F in squares]


def fit_roots(problem: Problem) -> None:
    """Fit factors to roots, in a few iterations."""
    steps = steps_of(problem, "auto")
    for iteration in range(_LEAST_SQUARES_STEPS):
        steps.iterate(iteration + 1)
    steps.objective()  # brings the scales of components together


def roots(X: Any) -> Any:
    """Return the square roots of the entries."""
    return with_values(X, np.sqrt(values_of(X)))


def start_B(S: Array, labels: Term, rng: np.random.Generator) -> Array:
    """Uniform entries, scaled so that the mean of S B is the mean of Y."""
    B = rng.random((S.shape[1], labels.shape[1]))
    return B * ratio(labels.mean(), float(S.mean(axis=0) @ B.mean(axis=1)))


def ratio(wanted: float, found: float) -> float:
    """Return what brings a mean to the wanted one; 1 for factors of zeros."""
    return wanted / found if found > 0 else 1.0


def _given(
    init: Sequence[Any],
    shape: tuple[int, ...],
    labels: Term | None,
    rank: int,
    rng: np.random.Generator,
    dtype: Any,
    known: Known,
) -> tuple[Array, Array, Array | None]:
    if not 2 <= len(init) <= 2 + (labels is not None):
        wanted = "(S, A)" if labels is None else "(S, A) or (S, A, B)"
        raise ValueError(f"init must hold {wanted}; got a sequence of {len(init)}.")
    S = check_factor(init[0], "init[0] (S)", (shape[0], rank), dtype, "samples x components")
    A = check_factor(init[1], "init[1] (A)", (rank, shape[1]), dtype, "components x features")
    S, A = known.restore("S", S), known.restore("A", A.T).T
    if labels is None:
        return S, A, None
    if len(init) < 3:
        return S, A, start_B(S, labels, rng).astype(dtype)
    shape = rank, labels.shape[1]
    return S, A, check_factor(init[2], "init[2] (B)", shape, dtype, "components x labels")


def rows_of(X: Any, rows: Array) -> Any:
    """Return a copy of some rows, in their order, with 0 for NaN."""
    if isinstance(X, CsrFile):
        return sp.vstack([X.rows(slice(row, row + 1)) for row in rows], format="csr")
    return X[rows] if sp.issparse(X) else np.nan_to_num(X[rows], nan=0.0)


def _random_rows(X: Any, rank: int, rng: np.random.Generator) -> Array:
    """Means of a few random rows of X (r x m)."""
    chosen = rng.integers(X.shape[0], size=(rank, ROWS_PER_MEAN))
    means = [np.asarray(rows_of(X, rows).mean(axis=0)).ravel() for rows in chosen]
    return np.asarray(means, dtype=np.float64)


def _nndsvda(
    X: Any, rank: int, mean: float, rng: np.random.Generator, threads: int
) -> tuple[Array, Array]:
    """Nonnegative double SVD with zeros set to the mean (Boutsidis and Gallopoulos 2008)."""
    kept = min(rank, *X.shape)
    operator = MatrixOperator(X, threads)
    U, singular, Vt = truncated_svd(operator, kept, *SKETCH, rng)
    S = np.zeros((X.shape[0], rank))
    A = np.zeros((rank, X.shape[1]))
    for j in range(len(singular)):
        u, v = U[:, j], Vt[j]
        if j == 0:
            u, v = np.abs(u), np.abs(v)  # the leading pair of a nonnegative matrix has one sign
        pairs = [(np.maximum(s * u, 0), np.maximum(s * v, 0)) for s in (1, -1)]
        norms = [(np.linalg.norm(p), np.linalg.norm(q)) for p, q in pairs]
        (p, q), (of_p, of_q) = max(zip(pairs, norms, strict=True), key=lambda each: prod(each[1]))
        if of_p * of_q > 0:
            size = np.sqrt(singular[j] * (of_p * of_q))
            S[:, j], A[j] = size * p / of_p, size * q / of_q
    filler = np.sqrt(mean / rank)
    S[S <= 0] = filler
    A[A <= 0] = filler
    return S, A


def zeros_that_stay(factors: dict[str, Array], rank: int) -> dict[str, Array]:
    """Return where a given start is not zero, as bits, for the factors that have zeros.

    Multiplicative rules keep zeros by themselves; coordinate descent would not.
    """
    return {
        name: bits_of(factor > 0) for name, factor in factors.items() if not factor[:, :rank].all()
    }
