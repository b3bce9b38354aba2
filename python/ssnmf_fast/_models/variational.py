"""Poisson-gamma NMF by variational Bayes (Cemgil 2009), also with labels (Ivek 2014, Table A3).

Counts x_ij are sums over the components of Poisson variables of means s_ik a_kj; S and A have gamma
priors.  The posterior is approximated by independent gamma distributions, each set in turn to where
the lower bound of the log-evidence is largest, given the others.

Counts are a multiple of the data, ``count_scale * X``.  Within the fit A is that of the counts;
outside of it A, its rates and b_A are in the units of X.  S is the same for any units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, psi, xlogy

from .._backend.dispatch import kernels
from .._backend.layout import aligned_zeros, padded, padded_zeros
from .._common.arrays import Array
from .._common.random import generator
from .._data.checks import check_integer, check_matrix
from .._data.count_scale import check_count_scale, find_count_scale, scaled
from .._data.entries import DenseEntries, SparseEntries, Target
from .._data.threads import resolve_threads
from .._solver.beta_divergences import KULLBACK_LEIBLER
from .._solver.loop import FitLoop, Run
from .._solver.result import named
from .._solver.starts import start
from .._solver.state import State
from .._solver.terms import Term
from .._solver.weights import build_term
from .variational_priors import GammaPrior, LabelPrior, Posterior, check_prior

_ENTRIES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Groups:
    """Classes of samples: a code for each sample, and the number of samples with each code."""

    codes: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """Result of :func:`fit_variational`: expectations, posterior rates, hyperparameters, bound."""

    S: Array
    A: Array
    S_rates: Array
    A_rates: Array
    label_rates: Array | None
    count_scale: float
    hyperparameters: dict[str, float]
    objective: list[tuple[int, float]]
    n_iter: int
    converged: bool


class VariationalProblem:
    """Posteriors of S and A, their priors, and the updates of one of them at a time.

    Every update is a step of exact coordinate ascent: the bound never falls.  During `burn_in`
    iterations the rates lambda and the hyperparameters stay as they are.
    """

    def __init__(
        self,
        data: Term,
        posteriors: dict[str, Posterior],
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
    ) -> None:
        self.posteriors, self.priors = posteriors, priors
        self._sides = {"S": (data, "A"), "A": (data.view(1), "S")}
        self._burn_in = burn_in
        self._constant = _constant(data)
        longest = max((p.F for p in posteriors.values()), key=len)
        self._work = aligned_zeros(longest.shape, longest.dtype)
        posteriors["S"].add_up()
        for name in ("A", "S"):  # from now on every posterior has the form that the bound is for
            self._update(name, learning=burn_in == 0)

    @property
    def factors(self) -> dict[str, Array]:
        """The expectations, by rows and padded."""
        return {name: posterior.E for name, posterior in self.posteriors.items()}

    def iterate(self, iteration: int) -> None:
        """Update the posteriors of A, S and lambda, and the hyperparameters."""
        learning = iteration > self._burn_in
        for name in ("A", "S"):
            self._update(name, learning)
        if learning:
            self.priors["S"].update(self.posteriors["S"])
            for name, prior in self.priors.items():
                prior.learn(self.posteriors[name])

    def _update(self, name: str, learning: bool) -> None:
        term, other = self._sides[name]
        this, that, prior = self.posteriors[name], self.posteriors[other], self.priors[name]
        P = self._work[: len(this.F)]
        term.P(this.F, that.F, Target(P))
        rates = prior.expectations + that.sums[:, : that.rank].sum(axis=0)
        this.update(P, prior.shape, rates, learning and prior.needs_logs)

    def objective(self) -> float:
        """Return minus the lower bound of the log-evidence."""
        S, A = self.posteriors["S"], self.posteriors["A"]
        data, _ = self._sides["S"]
        fitted = float(S.sums.sum(axis=0) @ A.sums.sum(axis=0))
        bound = self._constant - data.entries.sum("kl_loss", S.F, A.F) - fitted
        for name, posterior in self.posteriors.items():
            prior = self.priors[name]
            bound += posterior.bound(prior.shape) + prior.bound(posterior)
        return -bound


def _constant(data: Term) -> float:
    """Sum of x log x - x - log Gamma(x + 1): the bound has minus this sum with x log(x / z)."""
    entries = data.entries
    assert isinstance(entries, (SparseEntries, DenseEntries))
    values = entries.matrix.data if isinstance(entries, SparseEntries) else entries.array.ravel()
    total = 0.0
    for begin in range(0, len(values), _ENTRIES_AT_ONCE):
        x = values[begin : begin + _ENTRIES_AT_ONCE].astype(np.float64)
        total += float(np.sum(xlogy(x, x) - x - gammaln(x + 1)))
    return total


def fit_variational(
    X: Any,
    groups: Groups | None,
    *,
    n_components: int,
    burn_in: int,
    init: Any,
    max_iter: int,
    tol: float,
    random_state: Any,
    n_threads: int | None,
    callback: Callable[[State], Any] | None,
    verbose: int,
    count_scale: Any = 1.0,
    **hyperparameters: Any,
) -> VariationalFit:
    """Fit the model to checked data; with groups, the one with labels.

    Hyperparameters are a_A and b_A; a_S and b_S, or with groups a_lambda and b_lambda.
    """
    rank = check_integer(n_components, "n_components", 1)
    burn_in = check_integer(burn_in, "burn_in", 0)
    given = {name: check_prior(value, name) for name, value in hyperparameters.items()}
    chosen = check_count_scale(count_scale)
    threads = resolve_threads(n_threads)
    X = check_matrix(X, "X", allow_nan=False, n_threads=threads)
    scale = find_count_scale(X) if chosen is None else chosen
    seen = callback if callback is None or scale == 1 else _in_units(callback, scale)
    loop = FitLoop.checked("auto", max_iter, tol, seen, verbose)
    counts = _counts(X, scale)
    data = build_term(counts, None, KULLBACK_LEIBLER, "X", threads)
    S, A, _ = start(init, counts, data, None, rank, generator(random_state))
    if not isinstance(init, str):
        A = scaled(A, scale)
    if given["b_A"] is not None:
        given["b_A"] *= scale
    posteriors = _posteriors(S, A, groups, threads)
    priors = _priors(given, groups, S, A)
    problem = VariationalProblem(data, posteriors, priors, burn_in)
    run = loop.run(problem, named(problem.factors, rank), burn_in)
    return _result(problem, run, scale)


def _counts(X: Any, scale: float) -> Any:
    """Return scale * X, which must be in the range of the dtype as well."""
    return X if scale == 1 else check_matrix(scaled(X, scale), "count_scale * X")


def _in_units(callback: Callable[[State], Any], scale: float) -> Callable[[State], Any]:
    """Return the callback, to which A is shown in the units of X."""

    def shown(state: State) -> Any:
        A = state.A / scale
        A.flags.writeable = False
        return callback(replace(state, factors={**state.factors, "A": A}))

    return shown


def _posteriors(S: Array, A: Array, groups: Groups | None, threads: int) -> dict[str, Posterior]:
    rank = S.shape[1]
    n_groups, codes = (1, None) if groups is None else (len(groups.counts), groups.codes)
    return {
        "S": Posterior(padded(S, S.dtype), rank, threads, n_groups, codes),
        "A": Posterior(padded(A.T, A.dtype), rank, threads),
    }


def _priors(
    given: dict[str, float | None], groups: Groups | None, S: Array, A: Array
) -> dict[str, GammaPrior | LabelPrior]:
    """Priors whose means, where they are learned, are those of the start."""
    mean_S, mean_A = (float(F.mean(dtype=np.float64)) or 1.0 for F in (S, A))
    a_A, b_A = given["a_A"], given["b_A"]
    shape = 1.0 if a_A is None else a_A
    prior_A = GammaPrior(shape, b_A or mean_A / shape, a_A is None, b_A is None)
    if groups is None:
        a_S, b_S = given["a_S"], given["b_S"]
        prior_S = GammaPrior(a_S or 1.0, b_S or mean_S, a_S is None, b_S is None, by_mean=True)
        return {"S": prior_S, "A": prior_A}
    a_lambda = given["a_lambda"]
    assert a_lambda is not None
    labels = LabelPrior(a_lambda, given["b_lambda"], groups.counts, 1 / mean_S, S.shape[1])
    return {"S": labels, "A": prior_A}


def _result(problem: VariationalProblem, run: Run, scale: float) -> VariationalFit:
    S, A = problem.posteriors["S"], problem.posteriors["A"]
    rank = S.rank
    prior_S, prior_A = problem.priors["S"], problem.priors["A"]
    assert isinstance(prior_A, GammaPrior)
    hyperparameters = {"a_A": prior_A.shape, "b_A": prior_A.scale / scale}
    if isinstance(prior_S, GammaPrior):
        hyperparameters |= {"a_S": prior_S.shape, "b_S": prior_S.scale}
    else:
        hyperparameters |= {"a_lambda": prior_S.prior_shape, "b_lambda": prior_S.prior_scale}
    return VariationalFit(
        S=np.ascontiguousarray(S.E[:, :rank]),
        A=scaled(np.ascontiguousarray(A.E[:, :rank].T), 1 / scale),
        S_rates=S.rates[:, :rank].copy(),
        A_rates=A.rates[0, :rank] * scale,
        label_rates=prior_S.expectations if isinstance(prior_S, LabelPrior) else None,
        count_scale=scale,
        hyperparameters=hyperparameters,
        objective=run.objective,
        n_iter=run.n_iter,
        converged=run.converged,
    )


def infer(
    X: Any,
    A: Array,
    A_rates: Array,
    prior_shape: float,
    prior_rates: Array | float,
    n_iter: int,
    n_threads: int | None,
    count_scale: float = 1.0,
) -> Array:
    """Return the expectations of S for new samples, the posterior of A being what it is.

    A and its rates are in the units of X.  The number of iterations is fixed, so that no row
    depends on the others.
    """
    threads = resolve_threads(n_threads)
    X = check_matrix(X, "X", allow_nan=False, n_threads=threads)
    data = build_term(_counts(X, count_scale), None, KULLBACK_LEIBLER, "X", threads)
    rank = len(A)
    rates_of_A = A_rates[:, None] / count_scale
    logs = psi(A.astype(np.float64) * A_rates[:, None]) - np.log(rates_of_A)
    G = padded(np.maximum(np.exp(logs), kernels.tiny(X.dtype)).T, X.dtype)
    F = padded(np.ones((X.shape[0], rank)), X.dtype)
    new = Posterior(F, rank, threads)
    rates = prior_rates + count_scale * A.sum(axis=1, dtype=np.float64)
    P = padded_zeros(X.shape[0], rank, X.dtype)
    for _ in range(n_iter):
        data.P(new.F, G, Target(P))
        new.update(P, prior_shape, rates, False)
    return np.ascontiguousarray(new.E[:, :rank])


__all__ = ["Groups", "State", "VariationalFit", "VariationalProblem", "fit_variational", "infer"]
