"""NMF that preserves given combinations of the samples (NMF-alpha; Cho and Saul 2011)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
import scipy.sparse as sp
from numpy.random import Generator

from .._common.arrays import Array, Matrix, MatrixLike, Seed
from .._data.border import check_data, check_option, check_random_state, warn_of_rank
from .._data.threads import resolve_threads
from .._solver import build
from .._solver.loop import Current, FitLoop, Optimality, Run
from .._solver.problem import Problem
from .._solver.relations import LinearMap, Relation
from .._solver.result import Factorization
from .._solver.starts import start
from .fits import Fits, Prepared
from .receipts import Check, Inputs, Recomputed, factorization_check, recomputed


@dataclass(frozen=True, kw_only=True)
class PreparedPair(Prepared):
    """Relations of the data and of their weighted combinations, whose weight None balances."""

    data: Relation
    preserved: Relation
    weight: float | None

    def relations(self, factors: dict[str, Array]) -> list[Relation]:
        return [
            self.data,
            build.balance_weight(self.data, self.preserved, self.weight, factors),
        ]


@dataclass(eq=False, kw_only=True)
class PreservingFits(Fits[Factorization, PreparedPair]):
    """Fits of ``d(X, S A) + supervision_weight * d(alpha^T X, alpha^T S A)`` (eq. 14).

    The multiplicative steps of A and S are eqs. 15 and 16; features of samples are eq. 5.
    `alpha` is a nonnegative matrix (n, q).  X is complete; its weights count in the first loss.
    With the weight "auto", the weighted combinations have the same sum as the data.
    """

    alpha: MatrixLike

    _settings = ("loss", "init")
    _inputs = ("X_weights", "alpha")
    _keeps_zeros = False

    def _prepare(self) -> PreparedPair:
        X, weight = self.X, self.supervision_weight
        if isinstance(weight, str):
            check_option(weight, "supervision_weight", ("auto", "balanced"))
        number = None if weight == "auto" else build.check_weight(weight)
        term, _ = build.terms(X, None, self.loss, self.loss, self.X_weights, None, self.threads)
        arguments = self.alpha, "alpha", X.dtype, X.shape[0], "sample of X"
        alpha = build.check_rows(*arguments, allow_nan=False)
        mixing = sp.csr_array(alpha.T)
        combined = build.build_term(mixing @ X, None, term.loss, "X", self.threads)
        data = Relation(("S", "A"), term)
        preserved = Relation(("S", "A"), combined, map=LinearMap(mixing, self.threads))
        if weight == "auto":
            number = build.even_weight(term.entries.total(), combined.entries.total())
        if isinstance(self.init, str):
            warn_of_rank(self.rank, min(X.shape), "min(n, m)")
        return PreparedPair(data=data, preserved=preserved, weight=number)

    def _begin(self, rng: Generator) -> tuple[dict[str, Array], list[Relation], Current]:
        arguments = self.X, self.prepared.data.term, None, self.rank, rng
        factors = build.pad_factors(*start(self.init, *arguments, X_weights=self.X_weights))
        current = build.view_factors(factors, self.rank)
        return factors, self.prepared.relations(factors), current

    def _result(self, run: Run, current: Current, related: list[Relation]) -> Factorization:
        return build.factorization(run, current, related[1].coefficient)


def factorize_preserving(
    X: Matrix,
    *,
    random_state: Seed,
    n_threads: int | None,
    dtype: npt.DTypeLike | None = None,
    **parameters: Any,
) -> Factorization:
    """Return the fit of :class:`PreservingFits`."""
    names = "solver", "max_iter", "tol", "callback", "verbose"
    loop = FitLoop(**{name: parameters.pop(name) for name in names})
    threads = resolve_threads(n_threads)
    fits = PreservingFits(check_data(X, threads, dtype), threads=threads, **parameters)
    return fits.fit(check_random_state(random_state), loop, random_state)


def preserving_check(result: Factorization, X: Matrix, inputs: Inputs, threads: int) -> Check:
    """Return the check of a result of `factorize_preserving` with a receipt."""
    receipt = result.receipt
    assert receipt is not None

    def recompute() -> Recomputed:
        arguments = {name: inputs[name] for name in ("alpha", "X_weights")}
        arguments |= {name: receipt.settings[name] for name in ("loss", "supervision_weight")}
        Z, S, A = check_data(X, threads), result.S, result.A
        fits = PreservingFits(Z, n_components=len(A), threads=threads, init=(), **arguments)
        if (len(S), A.shape[1]) != Z.shape:
            raise ValueError(f"X has shape {Z.shape}, and S A has {(len(S), A.shape[1])}.")
        factors = build.pad_factors(S, A)
        problem = Problem(factors, fits.prepared.relations(factors))
        return recomputed(problem, Optimality(problem))

    return replace(factorization_check(result, X, inputs, threads), recompute=recompute)
