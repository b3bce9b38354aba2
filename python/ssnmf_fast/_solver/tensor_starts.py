"""Starts of the factors of a tensor: random, least-squares, svd, or given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.checks import check_factor, check_option, check_vector
from .._data.tensor_checks import depth
from .._data.tensors import SparseTensor, Tensor
from .._linalg.operators import MatrixOperator
from .._linalg.randomized_svd import truncated_svd
from .beta_divergences import FROBENIUS, KULLBACK_LEIBLER
from .result import sizes_of
from .starts import SKETCH, ratio, roots, squares_of_fit, uniform
from .terms import Term
from .weights import build_tensor_term

TENSOR_INITS = ("auto", "random", "least-squares", "svd")

# Binary orders of magnitude between a given start and the data.
_FURTHEST = {np.dtype(np.float32): 45, np.dtype(np.float64): 300}


def mode_names(n_modes: int) -> tuple[str, ...]:
    """Return the names of the factors of the modes."""
    return tuple(f"F{mode}" for mode in range(n_modes))


def start_tensor(
    init: Any,
    X: Tensor,
    weights: Any,
    term: Term,
    rank: int,
    rng: np.random.Generator,
    exponent: int = 0,
) -> list[Array]:
    """Return a factor for each mode, (n_k x r), of the dtype of X, with a model of its mean.

    A given start is one of X times 2^exponent.
    """
    dtype = X.dtype
    given = given_factors(init)
    if given is not None:
        return _given(*given, X.shape, rank, dtype, exponent)
    name = check_option(init, "init", TENSOR_INITS)
    if name == "auto":
        name = term.loss.start
    if name == "svd":
        factors = _svd(X, rank, rng, term.threads)
    else:
        factors = uniform(X.shape, term.mean(), rank, rng)
        if name == "least-squares":
            factors = _least_squares(factors, X, weights, term, rank, dtype)
    scale = 1.0
    if name != "random":  # which has about that mean
        found = float(np.prod([F.mean(axis=0) for F in factors], axis=0).sum())
        scale = ratio(term.mean(), found) ** (1 / len(factors))
    return [(scale * F).astype(dtype) for F in factors]


def given_factors(init: Any) -> tuple[Any, list[Any]] | None:
    """Return the weights, perhaps None, and the factors of a given start; None if it is a name."""
    for name in ("factors", "factor_matrices"):  # the latter of pyttb
        if hasattr(init, "weights") and hasattr(init, name):
            return init.weights, list(getattr(init, name))
    if not isinstance(init, (tuple, list)):
        return None
    pair = len(init) == 2 and isinstance(init[1], (tuple, list))
    if pair and (init[0] is None or depth(init[0]) == 1):
        return init[0], list(init[1])
    return None, list(init)


def _given(
    weights: Any,
    factors: Sequence[Any],
    shape: tuple[int, ...],
    rank: int,
    dtype: Any,
    exponent: int,
) -> list[Array]:
    """Return given factors, whose columns share the size of their component by powers of two."""
    if len(factors) != len(shape):
        raise ValueError(
            f"init has {len(factors)} factors; expected {len(shape)}, one for each mode."
        )
    checked = []
    for mode, (F, n) in enumerate(zip(factors, shape, strict=True)):
        wanted = (n, rank), np.float64, f"length of mode {mode} x components"
        checked.append(check_factor(F, f"init[{mode}]", *wanted, limited=False))
    total = np.full(rank, -exponent)
    if weights is not None:
        vector = check_vector(weights, "weights of init", rank, np.float64, limited=False)
        fractions, exponents = np.frexp(vector)
        checked[0] = checked[0] * fractions
        total += exponents
    elif _without_sizes(checked):
        warn_user(
            "init has factors with columns of size 1, as those of a result, without the weights of "
            "the components; give init=result, or init=(weights, factors).",
            UserWarning,
        )
    sizes = np.array([np.frexp(F.max(axis=0))[1] for F in checked])
    total += sizes.sum(axis=0)
    alive = np.all([F.any(axis=0) for F in checked], axis=0)
    largest = int(total[alive].max()) if alive.any() else 0
    if abs(largest) > _FURTHEST[dtype]:
        found, wanted = (round(power * np.log10(2)) for power in (largest + exponent, exponent))
        raise ValueError(
            f"init is a model with entries of about 1e{found}, and X has entries of about "
            f"1e{wanted}; multiply a factor of init by a constant that brings it near to X."
        )
    shares = np.tile(total // len(shape), (len(shape), 1))
    shares[0] = total - shares[1:].sum(axis=0)
    return [
        np.ldexp(F, share - size).astype(dtype)
        for F, share, size in zip(checked, shares, sizes, strict=True)
    ]


def _without_sizes(factors: Sequence[Array]) -> bool:
    """Return whether columns of factors have sum 1, or all of them norm 1."""
    if max(len(F) for F in factors) == 1:
        return False
    return any(
        all(np.allclose(sizes_of(F, loss), 1, rtol=1e-6) for F in factors)
        for loss in (KULLBACK_LEIBLER, FROBENIUS)
    )


def _least_squares(
    factors: list[Array], X: Tensor, weights: Any, term: Term, rank: int, dtype: Any
) -> list[Array]:
    """Return the squares of factors that were fitted to the square roots of X."""
    of_roots = build_tensor_term(roots(X), weights, FROBENIUS, term.threads)
    level = (of_roots.mean() / term.mean()) ** (1 / len(factors))
    names = mode_names(len(factors))
    stored = {name: padded(level * F, dtype) for name, F in zip(names, factors, strict=True)}
    return squares_of_fit(of_roots, stored, rank, {}) or [F**2 for F in factors]


def _svd(X: Tensor, rank: int, rng: np.random.Generator, threads: int) -> list[Array]:
    """Leading left singular vectors of every unfolding, their larger parts of one sign.

    Zeros become the mean of their column; a short mode has random columns beside its vectors.
    """
    factors = []
    for mode, length in enumerate(X.shape):
        if isinstance(X, SparseTensor):
            matrix: Any = X.matrix(mode)
        else:
            unfolded = np.nan_to_num(np.moveaxis(X, mode, 0).reshape(length, -1), nan=0.0)
            # Without empty columns, which sparse tensors do not have: both get the same sketch.
            matrix = unfolded[:, unfolded.any(axis=0)] if unfolded.any() else unfolded[:, :1]
        kept = min(rank, *matrix.shape)
        operator = MatrixOperator(matrix, threads)
        U, singular, _ = truncated_svd(operator, kept, *SKETCH, rng)
        F = rng.random((length, rank))
        for j in range(len(singular)):
            parts = np.maximum(U[:, j], 0), np.maximum(-U[:, j], 0)
            part = max(parts, key=np.linalg.norm)
            if part.any():
                F[:, j] = np.where(part > 0, part, part.mean())
        norms = np.linalg.norm(F, axis=0)
        factors.append(F / np.where(norms > 0, norms, 1.0))
    return factors
