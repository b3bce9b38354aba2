"""Poisson-gamma NMF by variational Bayes (Cemgil 2009), also with labels (Ivek 2014, Table A3).

Counts, ``count_scale * X``, are sums of Poisson variables with means s_ik a_kj; S and A have gamma
priors.  The posterior is approximated by independent gamma distributions; each in turn is set to
maximize the lower bound of the log-evidence.  Outside of the fit, A is in the units of X.

A hyperparameter is one number for all entries of a matrix; it is given, or learned by maximizing
the bound for the current posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln, psi, xlogy

from .._backend.dispatch import aligned_zeros, kernels, padded, padded_zeros
from .._common.arrays import Array, Matrix, Seed
from .._common.text import short
from .._data.border import (
    check_integer,
    check_matrix,
    check_random_state,
    check_real,
    require_finite,
)
from .._data.count_scale import check_count_scale, find_count_scale, scaled
from .._data.entries import Target
from .._data.threads import Stop, resolve_threads, run_side_by_side
from .._solver.build import build_term
from .._solver.loop import FitLoop, Run, Steps
from .._solver.losses import KULLBACK_LEIBLER
from .._solver.result import FitState
from .._solver.starts import start
from .._solver.terms import Term
from .fits import MatrixFits, at_once, draw_seeds, keep_best, plan_starts

_SHAPES = (1e-6, 1e6)  # range of given shapes
_MEANS = (1e-9, 1e9)  # range of given means
_LEARNED_SHAPES = (1e-3, 1e6)  # below, posteriors without data underflow
_ENTRIES_AT_ONCE = 1 << 16


def _check_prior(value: object, name: str) -> float | None:
    """Return a hyperparameter, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    least, most = _SHAPES if name.endswith("_shape") else _MEANS
    number = -1.0 if isinstance(value, str) else check_real(value, name)
    if not least <= number <= most:
        raise ValueError(
            f"{name} must be 'auto' or a number from {least:g} to {most:g}; got {short(value)}."
        )
    return number


def best_shape(slope: Callable[[float], float]) -> float:
    """Return the zero of a falling function of a shape, within the range of learned shapes."""
    least, most = _LEARNED_SHAPES
    if slope(least) <= 0:
        return least
    if slope(most) >= 0:
        return most
    from scipy.optimize import brentq  # a slow import

    root = brentq(lambda logarithm: slope(float(np.exp(logarithm))), np.log(least), np.log(most))
    return float(np.exp(root))


class PosteriorSums:
    """Sums and rates of the gamma posteriors of a factor, for the other factor and the priors."""

    E: Array | None = None  # expectations, if there are rows
    # Part of the bound, given the prior's shape, without the terms with its rate.
    bound: Callable[[float], float]

    def __init__(self, n_rows: int, rank: int, n_groups: int, columns: int) -> None:
        self.size, self.rank = n_rows * rank, rank
        self.sums = np.zeros((n_groups, columns))  # of E, by group
        self.rates = np.ones_like(self.sums)
        self.log_sum = 0.0  # of all Lg, if the last update computed it

    def mean(self) -> float:
        return float(self.sums.sum() / self.size)

    def set_rates(self, rates: Array) -> None:
        """Set the rates, (groups or 1) x (r or 1)."""
        self.rates = np.ones_like(self.sums)
        self.rates[:, : self.rank] = rates


class Posterior(PosteriorSums):
    """Gamma posteriors of a factor: expectations E, F = exp(Lg), and rates by group of rows."""

    E: Array

    def __init__(
        self, start: Array, rank: int, threads: int, n_groups: int = 1, groups: Array | None = None
    ) -> None:
        super().__init__(len(start), rank, n_groups, start.shape[1])
        self.F, self.E = start, start.copy()
        self.threads, self.groups = threads, groups

    def add_up(self) -> None:
        kernels.group_sums(self.E, self.groups, self.sums, self.threads)

    def update(self, P: Array, prior_shape: float, rates: Array, logs: bool) -> None:
        """Set the shapes ``prior_shape + F .* P`` and the rates, (groups or 1) x (r or 1).

        With F = exp E[log of this factor], G of the other factor and P = (X / F G) G^T, these are
        A_t, B_t or A_v, B_v of Ivek 2014, Table A3 (Cemgil 2009 without labels).  Then E = shapes /
        rates, and F = exp(psi(shapes)) / rates: E_t and exp L_t, or E_v and exp L_v.
        """
        self.set_rates(rates)
        self.log_sum = kernels.gamma_update(
            self.F, P, prior_shape, self.rates, self.groups, self.E, self.rank, logs, self.threads
        )
        self.add_up()

    def bound(self, prior_shape: float) -> float:
        arguments = self.rates, self.groups, self.rank, self.threads
        return kernels.gamma_bound(self.E, prior_shape, *arguments)


@dataclass
class GammaPrior:
    """One gamma prior for all entries, with its shape and mean."""

    shape: float
    mean: float
    learns_shape: bool
    learns_mean: bool

    @classmethod
    def given(cls, shape: float | None, mean: float | None, start: float) -> GammaPrior:
        """Return the prior; None is learned, the mean beginning at `start`."""
        return cls(shape or 1.0, mean or start, shape is None, mean is None)

    @property
    def rate(self) -> float:
        return self.shape / self.mean

    @property
    def expectations(self) -> Array:
        """Prior rates, for all groups and components."""
        return np.array([[self.rate]])

    def update(self, posterior: PosteriorSums) -> None:
        """The rate has no posterior."""

    def bound(self, posterior: PosteriorSums) -> float:
        """Return the terms of the bound with the prior's rate, and its normalization."""
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)
        return float(posterior.size * constant - self.rate * posterior.sums.sum())

    def learn(self, posterior: PosteriorSums) -> None:
        """Set the learned hyperparameters to maximize the bound; without data they stay."""
        mean, log_mean = posterior.mean(), posterior.log_sum / posterior.size
        if not mean > 0:
            return
        if self.learns_shape:
            prior = mean if self.learns_mean else self.mean
            below = np.log(prior) + mean / prior - 1 - log_mean
            # The derivative of the bound in the shape, per entry; a learned mean follows.
            self.shape = best_shape(lambda a: float(np.log(a) - psi(a) - below))
        if self.learns_mean:
            self.mean = mean


class LabelPrior:
    """Exponential prior of S whose rates, by component and class, have gamma posteriors."""

    shape = 1.0
    learns_shape = False

    def __init__(
        self, shape: float, mean: float | None, counts: Array, start: float, rank: int
    ) -> None:
        self.prior_shape = shape
        self.learns_mean = mean is None
        self.prior_mean = start if mean is None else mean
        self._counts = counts[:, None].astype(float)
        self._shapes = shape + self._counts
        self._inverse = np.repeat(start / self._shapes, rank, axis=1)  # 1 / rate

    @property
    def expectations(self) -> Array:
        """E of lambda, (classes, r)."""
        return np.asarray(self._shapes * self._inverse)

    def update(self, posterior: PosteriorSums) -> None:
        """Set the posteriors of lambda from the sums of S by class (B_lambda of Table A3)."""
        sums = posterior.sums[:, : posterior.rank]
        self._inverse = 1 / (self.prior_shape / self.prior_mean + sums)

    def bound(self, posterior: PosteriorSums) -> float:
        """Return the terms of the bound with lambda."""
        a, b = self.prior_shape, self.prior_mean / self.prior_shape
        E, Lg = self.expectations, psi(self._shapes) + np.log(self._inverse)
        of_S = self._counts * Lg - E * posterior.sums[:, : posterior.rank]
        posteriors = self._shapes * (np.log(self._inverse) + 1) + gammaln(self._shapes)
        priors = (a - self._shapes) * Lg - E / b - a * np.log(b) - gammaln(a)
        return float(np.sum(of_S + posteriors + priors))

    def learn(self, posterior: PosteriorSums) -> None:
        """Set the mean of the prior of lambda, if it is learned, to maximize the bound."""
        if self.learns_mean:
            self.prior_mean = float(self.expectations.mean())


class Counts:
    """Counts, viewed by the posteriors of S and of A."""

    def __init__(self, data: Term) -> None:
        self._data = data
        self._seen = {"S": data.view(0), "A": data.view(1)}
        self._work: Array | None = None

    def P(self, name: str, F: Array, G: Array) -> Array:
        """Return P of a factor F, given the other factor G; the next call overwrites it."""
        if self._work is None:
            longest = max(F, G, key=len)
            self._work = aligned_zeros(longest.shape, longest.dtype)
        P = self._work[: len(F)]
        self._seen[name].P(F, G, Target(P))
        return P

    def loss(self, S: Array, A: Array) -> float:
        """Return sum x log(x / z) - x, which the bound subtracts."""
        return self._data.entries.sum("kl_loss", S, A)

    def constant(self) -> float:
        """Return the sum of x log x - x - log Gamma(x + 1), a constant of the bound."""
        values = self._data.entries.values.ravel()
        total = 0.0
        for begin in range(0, len(values), _ENTRIES_AT_ONCE):
            x = values[begin : begin + _ENTRIES_AT_ONCE].astype(np.float64)
            total += float(np.sum(xlogy(x, x) - x - gammaln(x + 1)))
        return total


class VariationalSteps(Steps):
    """Posteriors of S and A, their priors, and exact coordinate ascent.

    The counts are `data` in memory, or belong to a derived class.
    """

    S: Posterior

    def __init__(
        self,
        S: PosteriorSums,
        A: Posterior,
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
        data: Term | None = None,
    ) -> None:
        self.posteriors: dict[str, PosteriorSums] = {"S": S, "A": A}
        self.A, self.priors, self._burn_in = A, priors, burn_in
        if data is not None:
            assert isinstance(S, Posterior)
            self.S, self._counts = S, Counts(data)
            self._constant = self._counts.constant()
            S.add_up()
        for name in ("A", "S"):  # the bound is only valid for updated posteriors
            self._update(name, learning=burn_in == 0)

    def P_of_A(self) -> Array:
        return self._counts.P("A", self.A.F, self.S.F)

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        self.S.update(self._counts.P("S", self.S.F, self.A.F), prior_shape, rates, logs)

    def bound_of_counts(self) -> float:
        """Return their part of the bound, without the sum of S A."""
        return self._constant - self._counts.loss(self.S.F, self.A.F)

    def iterate(self, iteration: int) -> None:
        """Update the posteriors of A, S and lambda, and the hyperparameters."""
        learning = iteration > self._burn_in
        for name in ("A", "S"):
            self._update(name, learning)
        if learning:
            self.priors["S"].update(self.S)
            for name, prior in self.priors.items():
                prior.learn(self.posteriors[name])

    def _update(self, name: str, learning: bool) -> None:
        """Update a posterior; its rates, 1 / B_t or 1 / B_v, add sums of E of the other factor."""
        prior, other = self.priors[name], self.A if name == "S" else self.S
        rates = np.asarray(prior.expectations + other.sums[:, : other.rank].sum(axis=0))
        logs = learning and prior.learns_shape
        if name == "A":
            self.A.update(self.P_of_A(), prior.shape, rates, logs)
        else:
            self.update_S(prior.shape, rates, logs)

    def show(self, scale: float) -> dict[str, Array | None]:
        """Return the expectations for a callback, A in the units of X."""
        S = None if self.S.E is None else self.S.E[:, : self.A.rank]
        return {"S": S, "A": self.A.E[:, : self.A.rank].T / scale, "B": None}

    def objective(self) -> float:
        """Return minus the lower bound of the log-evidence."""
        bound = self.bound_of_counts()
        bound -= float(self.S.sums.sum(axis=0) @ self.A.sums.sum(axis=0))
        for name, posterior in self.posteriors.items():
            prior = self.priors[name]
            bound += posterior.bound(prior.shape) + prior.bound(posterior)
        return -bound


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
        self.given = {name: _check_prior(value, name) for name, value in hyperparameters.items()}
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
    rng, arguments = check_random_state(random_state), (n_starts, n_threads, init, checked.loop)
    count, jobs, threads = plan_starts(*arguments, MatrixFits.starts)
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
