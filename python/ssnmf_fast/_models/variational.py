"""Poisson-gamma NMF by variational Bayes (Cemgil 2009), also with labels (Ivek 2014, Table A3).

Counts, ``count_scale * X``, are sums of Poisson variables with means s_ik a_kj; S and A have gamma
priors.  The posterior is approximated by independent gamma distributions; each in turn is set to
maximize the lower bound of the log-evidence.  Outside of the fit, A is in the units of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import psi

from .._backend.dispatch import kernels, padded, padded_zeros
from .._common.arrays import Array, Matrix, Seed
from .._data.border import check_integer, check_matrix, check_random_state, require_finite
from .._data.count_scale import check_count_scale, find_count_scale, scaled
from .._data.entries import Target
from .._data.threads import Stop, resolve_threads, run_side_by_side
from .._solver.build import build_term
from .._solver.loop import FitLoop, Run
from .._solver.losses import KULLBACK_LEIBLER
from .._solver.result import FitState
from .._solver.starts import start
from .fits import MatrixFits, at_once, draw_seeds, keep_best, plan_starts
from .variational_problem import GammaPrior, LabelPrior, Posterior, VariationalSteps, check_prior


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """Result of :func:`fit_variational`: expectations, posterior rates, hyperparameters, bound."""

    S: Array
    A: Array
    S_rates: Array
    S_groups: Array
    A_rates: Array
    label_rates: Array | None
    count_scale: float
    hyperparameters: dict[str, float]
    objective: list[tuple[int, float]]
    n_iter: int
    converged: bool


class Parameters:
    """Checked parameters of a fit; hyperparameters with None are learned."""

    def __init__(
        self,
        *,
        n_components: int,
        burn_in: int,
        max_iter: int,
        tol: float,
        callback: Callable[[FitState], Any] | None,
        verbose: int,
        count_scale: object = 1.0,
        **hyperparameters: Any,
    ) -> None:
        self.rank = check_integer(n_components, "n_components", 1)
        self.burn_in = check_integer(burn_in, "burn_in", 0)
        self.given = {name: check_prior(value, name) for name, value in hyperparameters.items()}
        self.count_scale = check_count_scale(count_scale)
        self.loop = FitLoop("auto", max_iter, tol, callback, verbose)

    def priors(
        self, scale: float, class_counts: Array | None, mean_S: float, mean_A: float
    ) -> dict[str, GammaPrior | LabelPrior]:
        """Return the priors; learned means begin at those of the start."""
        given, mean_S, mean_A = self.given, mean_S or 1.0, mean_A or 1.0
        given_mean = None if given["A_mean"] is None else scale * given["A_mean"]
        prior_A = GammaPrior.given(given["A_shape"], given_mean, mean_A)
        if class_counts is None:
            return {"S": GammaPrior.given(given["S_shape"], given["S_mean"], mean_S), "A": prior_A}
        rate_shape = given["rate_shape"]
        assert rate_shape is not None
        labels = LabelPrior(rate_shape, given["rate_mean"], class_counts, 1 / mean_S, self.rank)
        return {"S": labels, "A": prior_A}


def fit_variational(
    X: Matrix,
    groups: Array | None,
    *,
    init: object,
    random_state: Seed,
    n_threads: int | None,
    n_starts: int = 1,
    **parameters: Any,
) -> VariationalFit:
    """Fit the model to checked data, with labels if there are groups; return the best start."""

    def fit_once(rng: Generator, threads: int, checked: Parameters) -> VariationalFit:
        rank, loop = checked.rank, checked.loop
        clean = check_matrix(X, "X", allow_nan=False, n_threads=threads)
        scale = find_count_scale(clean) if checked.count_scale is None else checked.count_scale
        counts = counts_of(clean, scale)
        data = build_term(counts, None, KULLBACK_LEIBLER, "X", threads)
        S, A, _ = start(init, counts, data, None, rank, rng)
        if not isinstance(init, str):
            A = scaled(A, scale)
        sizes = None if groups is None else np.bincount(groups)
        n_groups = 1 if sizes is None else len(sizes)
        of_S = Posterior(padded(S, S.dtype), rank, threads, n_groups, groups)
        of_A = Posterior(padded(A.T, A.dtype), rank, threads)
        means = (float(F.mean(dtype=np.float64)) for F in (S, A))
        priors = checked.priors(scale, sizes, *means)
        steps = VariationalSteps(of_S, of_A, priors, checked.burn_in, data)
        run = loop.run(steps, lambda: steps.show(scale), checked.burn_in)
        S = np.ascontiguousarray(of_S.E[:, :rank])
        S_groups = np.zeros(len(S), dtype=np.int32) if groups is None else groups
        return variational_fit(steps, run, scale, S, S_groups)

    def fit(seed: int, threads: int, stop: Stop) -> VariationalFit:
        silent = Parameters(**parameters | {"callback": stop, "verbose": 0})
        return fit_once(check_random_state(seed), threads, silent)

    checked = Parameters(**parameters)
    rng, given = check_random_state(random_state), (n_starts, n_threads, init, checked.loop)
    count, jobs, threads = plan_starts(*given, MatrixFits.starts)
    if count == 1:
        return fit_once(rng, threads, checked)
    tasks = (partial(fit, seed) for seed in draw_seeds(rng, count))
    jobs = at_once(checked.rank, X, jobs)
    return keep_best(run_side_by_side(tasks, jobs, threads), count, checked.loop.verbose)[0]


def counts_of(X: Matrix, scale: float) -> Any:
    """Return scale * X, checked to be in the range of the dtype."""
    return X if scale == 1 else check_matrix(scaled(X, scale), "count_scale * X")


def variational_fit(
    steps: VariationalSteps, run: Run, scale: float, S: Array, S_groups: Array
) -> VariationalFit:
    """Return the result of steps, with expectations of S and groups of its rows."""
    A, rank = steps.A, steps.A.rank
    prior_S, prior_A = steps.priors["S"], steps.priors["A"]
    assert isinstance(prior_A, GammaPrior)
    hyperparameters = {"A_shape": prior_A.shape, "A_mean": prior_A.mean / scale}
    if isinstance(prior_S, GammaPrior):
        hyperparameters |= {"S_shape": prior_S.shape, "S_mean": prior_S.mean}
    else:
        hyperparameters |= {"rate_shape": prior_S.prior_shape, "rate_mean": prior_S.prior_mean}
    return VariationalFit(
        S=S,
        A=scaled(np.ascontiguousarray(A.E[:, :rank].T), 1 / scale),
        S_rates=steps.S.rates[:, :rank].copy(),
        S_groups=S_groups,
        A_rates=A.rates[0, :rank] * scale,
        label_rates=prior_S.expectations if isinstance(prior_S, LabelPrior) else None,
        count_scale=scale,
        hyperparameters=hyperparameters,
        objective=run.objective,
        n_iter=run.n_iter,
        converged=run.converged,
    )


def infer(
    X: Matrix,
    A: Array,
    A_rates: Array,
    prior_shape: float,
    prior_rates: Array | float,
    n_iter: int,
    n_threads: int | None,
    count_scale: float = 1.0,
) -> Array:
    """Return the expectations of S for new samples after a fixed number of steps, given A."""
    threads = resolve_threads(n_threads)
    X = check_matrix(X, "X", allow_nan=False, n_threads=threads)
    data = build_term(counts_of(X, count_scale), None, KULLBACK_LEIBLER, "X", threads)
    rank = len(A)
    rates_of_A = A_rates[:, None] / count_scale
    logs = psi(A.astype(np.float64) * A_rates[:, None]) - np.log(rates_of_A)
    # Shares of components in an entry depend only on ratios within a feature.
    logs -= logs.max(axis=0)
    G = padded(np.maximum(np.exp(logs), kernels.tiny(X.dtype)).T, X.dtype)
    F = padded(np.ones((X.shape[0], rank)), X.dtype)
    new = Posterior(F, rank, threads)
    rates = prior_rates + count_scale * A.sum(axis=1, dtype=np.float64)
    P = padded_zeros(X.shape[0], rank, X.dtype)
    for _ in range(n_iter):
        data.P(new.F, G, Target(P))
        new.update(P, prior_shape, rates, False)
    S = np.ascontiguousarray(new.E[:, :rank])
    require_finite({"the representation": S})
    return S
