"""Starts: random, least-squares, nndsvda, random-acol, or given factors."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.random import Generator

from .._backend.dispatch import padded
from .._common.arrays import Array, Matrix, bits_of
from .._common.warn import warn_user
from .._data.arrays import on_disk_error
from .._data.border import check_factor, check_option, check_vector, require_memory
from .._data.csr_file import CsrFile
from .._data.tensors import SparseTensor, Tensor, depth
from .._linalg import MatrixOperator, truncated_svd
from .build import as_weights, build_term, even_weight
from .known import Known
from .loop import steps_of
from .losses import FROBENIUS, KULLBACK_LEIBLER
from .problem import Problem
from .relations import Relation, mode_names
from .result import TensorFactorization, sizes_of
from .term_forms import values_of, with_values
from .terms import Loss, Term
from .weights import WeightsLike

INITS = ("auto", "random", "least-squares", "nndsvda", "random-acol")

SKETCH = 10, 4  # columns beyond the rank, and power steps, of randomized SVD
ROWS_PER_MEAN = 5  # "Random Acol" of the TS-NMF paper averages a few random rows
_NOTHING = Known()
# Binary orders of magnitude below 1 at which squares are well within the range.
_SQUARED = {np.dtype(np.float32): 45, np.dtype(np.float64): 450}
_LEAST_SQUARES_STEPS = 10  # see docs/evidence/solvers.md
FILLER = 0.01  # replacement of zeros, which would stay, relative to the mean of the factor


def start(
    init: Any,
    X: Any,
    data: Term,
    labels: Term | None,
    rank: int,
    rng: Generator,
    known: Known = _NOTHING,
    X_weights: WeightsLike = None,
) -> tuple[Array, Array, Array | None]:
    """Return a start S (n x r), A (r x m) and B (r x k) with the means of X and Y."""
    dtype = X.dtype
    require_memory(rank, data.shape, dtype)
    if isinstance(init, (tuple, list)):
        return _given(init, data.shape, labels, rank, rng, dtype, known)
    name, squares = choose_start(init, data.loss, isinstance(X, CsrFile)), None
    if name == "least-squares" and data.entries.total() > 0:
        of_roots = build_term(roots(X), X_weights, FROBENIUS, "X", data.threads)
        mean = of_roots.mean()
        drawn = _as_known(uniform(data.shape, mean, rank, rng), known.roots(), mean)
        stored = {name: padded(F, dtype) for name, F in zip("SA", drawn, strict=True)}
        squares = squares_of_fit(of_roots, stored, rank, known.moves(stored))
    if squares is None:
        mean = data.mean()
        S, F = _as_known(_drawn(name, X, data, mean, rank, rng, X_weights), known, mean)
    else:
        S, F = (known.restore(name, F) for name, F in zip("SA", squares, strict=True))
        S = S * even_weight(data.mean(), float(S.mean(axis=0) @ F.mean(axis=0)))
        S = known.restore("S", S)
    B = None if labels is None else start_B(S, labels, rng)
    return S.astype(dtype), F.T.astype(dtype), None if B is None else B.astype(dtype)


def choose_start(init: str, loss: Loss, on_disk: bool) -> str:
    """Return the name of an available start; "auto" depends on the loss."""
    check_option(init, "init", INITS)
    if init == "auto":
        return "random" if on_disk else loss.start
    if init in ("nndsvda", "least-squares") and on_disk:
        raise on_disk_error(f"init={init!r} (other than 'random' or 'random-acol')")
    return init


def _drawn(
    init: str,
    X: Matrix,
    data: Term,
    mean: float,
    rank: int,
    rng: Generator,
    weights: WeightsLike,
) -> Sequence[Array]:
    """Return S and A.T of a named start, float64; uniform for others."""
    if init not in ("nndsvda", "random-acol"):
        return uniform(data.shape, mean, rank, rng)
    if weights is not None:  # starts must not use entries without weight
        X = as_weights(weights, "X_weights").hide(X)
    if init == "nndsvda":
        return _nndsvda(X, rank, mean, rng, data.threads)
    chosen = rng.integers(X.shape[0], size=(rank, ROWS_PER_MEAN))
    means = [np.asarray(rows_of(X, rows).mean(axis=0)).ravel() for rows in chosen]
    A = np.asarray(means, dtype=np.float64) + 0.01 * mean
    S = rng.random((data.shape[0], rank))
    return S * (mean / float(S.mean(axis=0) @ A.mean(axis=1))), A.T


def uniform(shape: tuple[int, ...], mean: float, rank: int, rng: Generator) -> list[Array]:
    level = mean / rank
    scale = 2 * (np.sqrt(level) if len(shape) == 2 else level ** (1 / len(shape)))
    first = scale * rng.random((shape[0], rank))
    return [first, *(scale * rng.random((rank, n)).T for n in shape[1:])]


def _as_known(drawn: Sequence[Array], known: Known, mean: float) -> list[Array]:
    """Return a drawn S and A.T with their known parts."""
    if not known:
        return [*drawn]
    pairs = zip("SA", drawn, strict=True)
    factors = {name: known.restore(name, known.within(name, F)) for name, F in pairs}
    levels = known.levels({name: F.mean(axis=0) for name, F in factors.items()}, mean)
    return [F * levels[name] for name, F in factors.items()]


def squares_of_fit(
    roots: Term, stored: dict[str, Array], rank: int, support: dict[str, Array]
) -> list[Array] | None:
    """Return the squares of factors of a short fit to roots, float64; None if one is 0."""
    if not roots.entries.total() > 0:
        return None
    roots = replace(roots, row_lengths=())  # no conjugate gradients in so short a fit
    short_fit(Problem(stored, [Relation(tuple(stored), roots)], support))
    squares = [F[:, :rank].astype(np.float64) ** 2 for F in stored.values()]
    # The scale of a component that is 0 in one factor is arbitrary in the others.
    alive = np.all([F.any(axis=0) for F in squares], axis=0)
    squares = [np.where(alive, F, np.minimum(F, F[:, alive].max(initial=0.0))) for F in squares]
    if not all(F.mean() > 0 for F in squares):
        return None
    return [np.maximum(F, FILLER * F.mean()) for F in squares]


def short_fit(problem: Problem, n_steps: int = _LEAST_SQUARES_STEPS) -> float:
    """Return the objective after some steps, and balance the scales of components."""
    steps = steps_of(problem, problem.plan("auto"))
    steps.advance(range(1, n_steps + 1))
    steps.settle()
    return steps.objective()


def roots(X: Matrix) -> Any:
    return with_values(X, np.sqrt(values_of(X)))


def start_B(S: Array, labels: Term, rng: Generator) -> Array:
    """Return uniform entries, scaled so that S B has the mean of Y."""
    B = rng.random((S.shape[1], labels.shape[1]))
    return B * even_weight(labels.mean(), float(S.mean(axis=0) @ B.mean(axis=1)))


def _given(
    init: Sequence[Any],
    shape: tuple[int, ...],
    labels: Term | None,
    rank: int,
    rng: Generator,
    dtype: npt.DTypeLike,
    known: Known,
) -> tuple[Array, Array, Array | None]:
    if not 2 <= len(init) <= 2 + (labels is not None):
        wanted = "(S, A)" if labels is None else "(S, A) or (S, A, B)"
        raise ValueError(f"init must hold {wanted}; got a sequence of {len(init)}.")
    S = check_factor(init[0], "init[0] (S)", (shape[0], rank), dtype, "samples x components")
    A = check_factor(init[1], "init[1] (A)", (rank, shape[1]), dtype, "components x features")
    S, A = known.restore("S", S), known.restore("A", A.T).T
    B = None
    if labels is not None and len(init) > 2:
        shape = rank, labels.shape[1]
        B = check_factor(init[2], "init[2] (B)", shape, dtype, "components x labels")
    exponent = int(np.frexp(S.max(initial=0.0))[1])
    if exponent < -_SQUARED[dtype] and not known.fixed:  # the squares of S would vanish
        S, A = np.ldexp(S, -exponent), np.ldexp(A, exponent)
        B = None if B is None else np.ldexp(B, exponent)
    if labels is not None and B is None:
        B = start_B(S, labels, rng).astype(dtype)
    return S, A, B


def rows_of(X: Matrix, rows: Array) -> Any:
    """Return a copy of some rows, in the given order, with 0 for NaN."""
    if isinstance(X, CsrFile):
        return sp.vstack([X.rows(slice(row, row + 1)) for row in rows], format="csr")
    return X[rows] if sp.issparse(X) else np.nan_to_num(X[rows], nan=0.0)


def _nndsvda(X: Matrix, rank: int, mean: float, rng: Generator, threads: int) -> Sequence[Array]:
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
    for F in (S, A.T):
        F[np.finfo(F.dtype).eps * F.max(axis=0) >= F] = filler  # rounding errors of zeros, too
    return S, A.T


def zeros_that_stay(factors: dict[str, Array], rank: int) -> dict[str, Array]:
    """Return bits of the positive entries of a given start, for the factors that have zeros."""
    return {name: bits_of(F > 0) for name, F in factors.items() if not F[:, :rank].all()}


TENSOR_INITS = ("auto", "random", "least-squares", "svd")

_TRIED = "least-squares", "svd"  # by "auto", for as many iterations
_TRIAL = 3
# Largest number of pairs of entries within columns, per entry, to use a Gram matrix for an SVD.
_PAIRS = 64
_SKETCH_OF_GRAM = SKETCH[0], SKETCH[1] // 2  # its singular values are squares

# Binary orders of magnitude between a given start and the data.
_FURTHEST = {np.dtype(np.float32): 45, np.dtype(np.float64): 300}


def start_tensor(
    init: object, X: Tensor, weights: WeightsLike, term: Term, rank: int, rng: Generator
) -> list[Array]:
    """Return a start (n_k x r) for each mode, with the dtype and the mean of X."""
    given = given_factors(init)
    if given is not None:
        return _given_factors(*given, X.shape, rank, X.dtype)
    names: Sequence[str] = (check_option(init, "init", TENSOR_INITS),)
    if names[0] == "auto":
        tried = len(X.shape) > 2 and term.loss in (FROBENIUS, KULLBACK_LEIBLER)
        names = _TRIED if tried else (term.loss.start,)
    tries = []
    for name in names:
        own = deepcopy(rng)
        start, value = _named(name, X, weights, term, rank, own), 0.0
        if len(names) > 1:
            modes = mode_names(len(start))
            stored = {mode: padded(F, X.dtype) for mode, F in zip(modes, start, strict=True)}
            value = short_fit(Problem(stored, [Relation(modes, term)]), _TRIAL)
        tries.append((value, start, own))
    _, best, after = min(tries, key=lambda each: each[0])
    rng.bit_generator.state = after.bit_generator.state
    return best


def start_of_labels(init: Any, mode: int, F: Array, labels: Term, rng: Generator) -> Array:
    """Return the start of B (r x k) of a mode with factor F; a given result is continued."""
    known = init.label_components if isinstance(init, TensorFactorization) else {}
    if mode not in known or known[mode].shape != (F.shape[1], labels.shape[1]):
        return start_B(F, labels, rng)
    before, now = (np.linalg.norm(columns, axis=0) for columns in (init.factors[mode], F))
    scale = np.divide(before, now, out=np.zeros(len(now)), where=now > 0)
    return np.asarray(known[mode] * scale[:, None])


def _named(
    name: str, X: Tensor, weights: WeightsLike, term: Term, rank: int, rng: Generator
) -> list[Array]:
    """Return a named start with the mean of X."""
    if name == "svd":
        known = X if weights is None else as_weights(weights, "X_weights", len(X.shape)).seen(X)
        factors = _svd(known, rank, rng, term.threads)
    else:
        factors = uniform(X.shape, term.mean(), rank, rng)
        if name == "least-squares":
            of_roots = build_term(roots(X), weights, FROBENIUS, "X", term.threads, tensor=True)
            level = (of_roots.mean() / term.mean()) ** (1 / len(factors))
            pairs = zip(mode_names(len(factors)), factors, strict=True)
            stored = {mode: padded(level * F, X.dtype) for mode, F in pairs}
            factors = squares_of_fit(of_roots, stored, rank, {}) or [F**2 for F in factors]
    scale = 1.0
    if name != "random":  # "random" has about this mean
        found = float(np.prod([F.mean(axis=0) for F in factors], axis=0).sum())
        scale = even_weight(term.mean(), found) ** (1 / len(factors))
    return [(scale * F).astype(X.dtype) for F in factors]


def given_factors(init: object) -> tuple[Any, list[Any]] | None:
    """Return the weights (or None) and the factors of a given start; None if it is a name."""
    for name in ("factors", "factor_matrices"):  # the latter in pyttb
        if hasattr(init, "weights") and hasattr(init, name):
            return init.weights, list(getattr(init, name))
    if not isinstance(init, (tuple, list)):
        return None
    pair = len(init) == 2 and isinstance(init[1], (tuple, list))
    if pair and (init[0] is None or depth(init[0]) == 1):
        return init[0], list(init[1])
    return None, list(init)


def _given_factors(
    weights: Any, factors: Sequence[Any], shape: tuple[int, ...], rank: int, dtype: npt.DTypeLike
) -> list[Array]:
    """Return given factors, with sizes of components distributed over them by powers of two."""
    if len(factors) != len(shape):
        raise ValueError(
            f"init has {len(factors)} factors; expected {len(shape)}, one for each mode."
        )
    checked = []
    for mode, (F, n) in enumerate(zip(factors, shape, strict=True)):
        wanted = (n, rank), np.float64, f"length of mode {mode} x components"
        checked.append(check_factor(F, f"init[{mode}]", *wanted, limited=False))
    total = np.zeros(rank, dtype=np.int64)
    alive = np.all([F.any(axis=0) for F in checked], axis=0)
    if weights is not None:
        vector = check_vector(weights, "weights of init", rank, np.float64, limited=False)
        # If a column of a component is 0, keep the others, which labels may use.
        fractions, exponents = np.frexp(np.where(alive, vector, 1.0))
        checked[0] = checked[0] * fractions
        total += exponents
    elif max(shape) > 1 and any(  # columns of sum 1, or all of them of norm 1
        all(np.allclose(sizes_of(F, loss), 1, rtol=1e-6) for F in checked)
        for loss in (KULLBACK_LEIBLER, FROBENIUS)
    ):
        warn_user(
            "init has factors with columns of size 1, as in a result, but no weights of the "
            "components; give init=result, or init=(weights, factors).",
            UserWarning,
        )
    sizes = np.array([np.frexp(F.max(axis=0))[1] for F in checked])
    total += sizes.sum(axis=0)
    alive &= checked[0].any(axis=0)
    total[~alive] = 0
    largest = int(total[alive].max()) if alive.any() else 0
    if abs(largest) > _FURTHEST[dtype]:
        raise ValueError(
            f"init is a model with entries of about 1e{round(largest * np.log10(2))}; multiply a "
            "factor of init by a constant that brings it near to X."
        )
    shares = np.tile(total // len(shape), (len(shape), 1))
    shares[0] = total - shares[1:].sum(axis=0)
    return [
        np.ldexp(F, share - size).astype(dtype)
        for F, share, size in zip(checked, shares, sizes, strict=True)
    ]


def _svd(X: Tensor, rank: int, rng: Generator, threads: int) -> list[Array]:
    """Return parts of one sign of the leading left singular vectors of each unfolding."""
    factors, rounding = [], np.sqrt(np.finfo(X.dtype).eps)
    for mode, length in enumerate(X.shape):
        if isinstance(X, SparseTensor):
            matrix: Any = X.matrix(mode)
        else:
            unfolded = np.nan_to_num(np.moveaxis(X, mode, 0).reshape(length, -1), nan=0.0)
            # Drop empty columns, which sparse tensors do not have, to get the same sketch.
            matrix = unfolded[:, unfolded.any(axis=0)] if unfolded.any() else unfolded[:, :1]
        U = _left_vectors(matrix, min(rank, *matrix.shape), rng, threads)
        F = rng.random((length, rank))
        for j in range(U.shape[1]):
            parts = np.maximum(U[:, j], 0), np.maximum(-U[:, j], 0)
            part = max(parts, key=np.linalg.norm)
            if part.any():
                # Rounding errors of zeros depend on the form of the data.
                F[:, j] = np.where(part > rounding * part.max(), part, part.mean())
        norms = np.linalg.norm(F, axis=0)
        factors.append(F / np.where(norms > 0, norms, 1.0))
    return factors


def _left_vectors(matrix: Any, rank: int, rng: Generator, threads: int) -> Array:
    """Return the leading left singular vectors of a wide matrix, from a Gram matrix if faster."""
    sparse = sp.issparse(matrix)
    columns = matrix.shape[1]
    counts = np.bincount(matrix.indices, minlength=columns) if sparse else (matrix > 0).sum(axis=0)
    counts = counts.astype(np.float64)
    sketch = SKETCH
    if counts @ counts <= _PAIRS * counts.sum():
        matrix = matrix.astype(np.float64)
        if sparse:
            matrix = sp.csr_array(matrix @ matrix.T)
        else:
            wide = padded(matrix.T, np.float64)
            matrix = MatrixOperator(matrix, threads).times(wide)[:, : len(matrix)]
        sketch = _SKETCH_OF_GRAM
    return truncated_svd(MatrixOperator(matrix, threads), rank, *sketch, rng)[0]
