"""Rows of one mode of a tensor over fixed factors of all others: a convex problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backend.dispatch import padded, padded_zeros
from .._common.arrays import Array
from .._data.checks import check_real
from .._data.tensor_entries import RowProducts
from .._data.threads import resolve_threads
from .._solver.beta_divergences import loss_named
from .._solver.tensor_terms import Tensor
from .._solver.weights import build_tensor_term
from .factorize_tensor import in_units
from .represent import solve_rows


def represent_tensor(
    X: Tensor,
    others: Sequence[Array],
    mode: int,
    *,
    loss: str | float = "frobenius",
    X_weights: Any = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
) -> Array:
    """Return argmin over F >= 0 of sum W .* d(X, M), with F (n_mode x r) the factor of a mode.

    Parameters
    ----------
    X : ndarray or SparseTensor
        Tensor, as :func:`check_tensor` returns it.
    others : sequence of ndarray, shapes (n_k, r)
        Factors of the other modes, in their order.
    mode : int
        The mode of the rows, from 0.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss, as in :func:`represent`.
    X_weights : optional
        Weights, as in :func:`factorize_tensor`.
    tol : float
        Largest residual of the optimality conditions, as in :func:`represent`.
    n_threads : int, optional
        Number of threads; it does not change the result.

    Warns
    -----
    RuntimeWarning
        If rows are left unsolved after 1000 sweeps.
    """
    divergence = loss_named(loss, "loss")
    tol = check_real(tol, "tol")
    X, size = in_units(X)
    term = build_tensor_term(X, X_weights, divergence, resolve_threads(n_threads)).view(mode)
    dtype = others[0].dtype
    # Components of one size: one residual of the optimality conditions stands for all of them.
    exponents = [np.frexp(factor.max(axis=0))[1] for factor in others]
    scaled = [np.ldexp(F, -shift) for F, shift in zip(others, exponents, strict=True)]
    G: Any = RowProducts(tuple(padded(F, dtype) for F in scaled))
    rank = others[0].shape[1]
    F = padded_zeros(X.shape[mode], rank, dtype)
    return solve_rows(term, F, G, tol, rank, size - np.sum(exponents, axis=0))
