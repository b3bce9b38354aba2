"""Priors and posteriors of the variational models, and their parts of the bound.

Every prior is a gamma distribution.  A hyperparameter is one number for all entries of a matrix; it
is given, or learned by maximizing the bound for the current posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, psi, xlogy

from .._backend.dispatch import aligned_zeros, kernels
from .._common.arrays import Array
from .._common.text import short
from .._data.border import check_real
from .._data.entries import Target
from .._solver.loop import Steps
from .._solver.terms import Term

_SHAPES = (1e-6, 1e6)  # range of given shapes
_MEANS = (1e-9, 1e9)  # range of given means
_LEARNED_SHAPES = (1e-3, 1e6)  # below, posteriors without data underflow


def check_prior(value: object, name: str) -> float | None:
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
        given = self.rates, self.groups, self.rank, self.threads
        return kernels.gamma_bound(self.E, prior_shape, *given)


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


_ENTRIES_AT_ONCE = 1 << 16


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
