"""NMF that preserves given combinations of the samples (NMF-alpha; Cho and Saul 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Matrix, MatrixLike, Seed
from .._data.border import (
    check_data,
    check_integer,
    check_option,
    check_random_state,
    warn_of_rank,
)
from .._data.fingerprint import data_fingerprint
from .._data.threads import resolve_threads
from .._solver.build import (
    balance_weight,
    build_term,
    check_rows,
    check_weight,
    factorization,
    pad_factors,
    terms,
    view_factors,
)
from .._solver.loop import FitLoop, Optimality
from .._solver.problem import Problem
from .._solver.relations import LinearMap, Relation
from .._solver.result import Factorization, fingerprints
from .._solver.starts import start
from .._solver.weights import WeightsLike
from .receipts import (
    Check,
    Recomputed,
    factorization_check,
    recomputed,
    with_receipt,
)


def factorize_preserving(
    X: Matrix,
    alpha: MatrixLike,
    X_weights: WeightsLike,
    *,
    n_components: int,
    loss: str,
    supervision_weight: float | str,
    init: object,
    random_state: Seed,
    n_threads: int | None,
    dtype: npt.DTypeLike | None = None,
    **loop_parameters: Any,
) -> tuple[Factorization, float]:
    """Minimize ``d(X, S A) + supervision_weight * d(alpha^T X, alpha^T S A)`` (eq. 14).

    `alpha` is a nonnegative matrix (n, q).  X is complete, and its weights count in the first loss.
    The other parameters are those of :func:`ssnmf_fast.factorize`, and the weight may be "auto":
    then the weighted combinations sum to as much as the data.  Returned is the weight, too.
    """
    rank = check_integer(n_components, "n_components", 1)
    loop = FitLoop(**loop_parameters)
    threads = resolve_threads(n_threads)
    rng = check_random_state(random_state)
    if isinstance(supervision_weight, str):
        check_option(supervision_weight, "supervision_weight", ("auto", "balanced"))
    automatic = supervision_weight == "auto"
    weight = None if automatic else check_weight(supervision_weight)
    X = check_data(X, threads, dtype)
    data, preserved = _relations(X, alpha, X_weights, loss, threads)
    if automatic:
        total = preserved.term.entries.total()
        weight = data.term.entries.total() / total if total > 0 else 1.0

    if isinstance(init, str):
        warn_of_rank(rank, min(X.shape), "min(n, m)")
    factors = pad_factors(*start(init, X, data.term, None, rank, rng, X_weights=X_weights))
    related = [data, balance_weight(data, preserved, weight, factors)]
    problem, current = Problem(factors, related), view_factors(factors, rank)
    run = loop.run(problem, current, optimality=Optimality(problem))
    result, weight = factorization(run, current), related[1].coefficient
    settings = {"loss": loss, "n_components": n_components, "init": init, **loop.settings}
    settings |= {"random_state": random_state, "zeros_stay": ""}
    inputs = fingerprints({"X_weights": X_weights, "alpha": alpha})
    result = replace(result, supervision_weight=weight)
    result = with_receipt(result, run, threads, data_fingerprint(X, threads), inputs, settings)
    return result, weight


def preserving_check(
    result: Factorization, X: Matrix, inputs: Mapping[str, Any], threads: int
) -> Check:
    """Return the check of such a fit that has a receipt."""
    receipt, alpha, X_weights = result.receipt, inputs["alpha"], inputs["X_weights"]
    assert receipt is not None

    def recompute() -> Recomputed:
        loss, weight = receipt.settings["loss"], receipt.settings["supervision_weight"]
        Z, S, A = check_data(X, threads), result.S, result.A
        data, preserved = _relations(Z, alpha, X_weights, loss, threads)
        if (len(S), A.shape[1]) != Z.shape:
            raise ValueError(f"X has shape {Z.shape}, and S A has {(len(S), A.shape[1])}.")
        factors = pad_factors(S, A)
        related = [data, balance_weight(data, preserved, weight, factors)]
        problem = Problem(factors, related)
        return recomputed(problem, Optimality(problem))

    return replace(factorization_check(result, X, inputs, threads), recompute=recompute)


def _relations(
    X: Matrix, alpha: MatrixLike, X_weights: WeightsLike, loss: str, threads: int
) -> tuple[Relation, Relation]:
    """Return the relations of clean data X and of alpha^T X."""
    data, _ = terms(X, None, loss, loss, X_weights, None, threads)
    checked = check_rows(alpha, "alpha", X.dtype, X.shape[0], "sample of X", allow_nan=False)
    mixing = sp.csr_array(checked.T)
    preserved = build_term(mixing @ X, None, data.loss, "X", threads)
    names = "S", "A"
    return Relation(names, data), Relation(names, preserved, map=LinearMap(mixing, threads))
