"""The updates of variational Bayes: posteriors of S and A, each in turn, and the bound."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from .._backend.dispatch import aligned_zeros
from .._common.arrays import Array
from .._data.entries import Target
from .._solver.relations import Relation
from .._solver.terms import Term
from .variational_priors import GammaPrior, LabelPrior, Posterior, PosteriorSums

_ENTRIES_AT_ONCE = 1 << 16


class Counts:
    """Counts as the posteriors of S and of A see them."""

    def __init__(self, relation: Relation) -> None:
        self._data = relation.term
        self._seen = {"S": relation.term.view(0), "A": relation.term.view(1)}
        self._work: Array | None = None

    def P(self, name: str, F: Array, G: Array) -> Array:
        """Return P of a factor F, which the next call overwrites; G is the other factor."""
        if self._work is None:
            longest = max(F, G, key=len)
            self._work = aligned_zeros(longest.shape, longest.dtype)
        P = self._work[: len(F)]
        self._seen[name].P(F, G, Target(P))
        return P

    def loss(self, S: Array, A: Array) -> float:
        """Return sum x log(x / z) - x, of which the bound has the negative."""
        return self._data.entries.sum("kl_loss", S, A)

    def constant(self) -> float:
        """Sum of x log x - x - log Gamma(x + 1): the bound has minus this sum with x log(x / z)."""
        values = self._data.entries.values.ravel()
        total = 0.0
        for begin in range(0, len(values), _ENTRIES_AT_ONCE):
            x = values[begin : begin + _ENTRIES_AT_ONCE].astype(np.float64)
            total += float(np.sum(xlogy(x, x) - x - gammaln(x + 1)))
        return total


class VariationalSteps:
    """Posteriors of S and A, their priors, and the updates of one of them at a time.

    Every update is a step of exact coordinate ascent: the bound never falls.  During `burn_in`
    iterations the rates lambda and the hyperparameters stay as they are.  Subclasses hold the
    counts and the posterior of S.
    """

    def __init__(
        self,
        S: PosteriorSums,
        A: Posterior,
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
    ) -> None:
        self.S, self.A, self.priors = S, A, priors
        self._burn_in = burn_in
        for name in ("A", "S"):  # from now on every posterior has the form that the bound is for
            self._update(name, learning=burn_in == 0)

    @property
    def posteriors(self) -> dict[str, PosteriorSums]:
        return {"S": self.S, "A": self.A}

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
        prior, other = self.priors[name], self.A if name == "S" else self.S
        rates = np.asarray(prior.expectations + other.sums[:, : other.rank].sum(axis=0))
        logs = learning and prior.needs_logs
        if name == "A":
            self.A.update(self.P_of_A(), prior.shape, rates, logs)
        else:
            self.update_S(prior.shape, rates, logs)

    def show(self, scale: float) -> dict[str, Array | None]:
        """Return the expectations for a callback, A in the units of X."""
        S = None if self.S.E is None else self.S.E[:, : self.A.rank]
        return {"S": S, "A": self.A.E[:, : self.A.rank].T / scale, "B": None}

    def P_of_A(self) -> Array:
        """Return P of the counts for A."""
        raise NotImplementedError

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        """Set the posterior of S."""
        raise NotImplementedError

    def bound_of_counts(self) -> float:
        """Return what the counts add to the bound, but for the sum of S A."""
        raise NotImplementedError

    def objective(self) -> float:
        """Return minus the lower bound of the log-evidence."""
        bound = self.bound_of_counts()
        bound -= float(self.S.sums.sum(axis=0) @ self.A.sums.sum(axis=0))
        for name, posterior in self.posteriors.items():
            prior = self.priors[name]
            bound += posterior.bound(prior.shape) + prior.bound(posterior)
        return -bound


class VariationalProblem(VariationalSteps):
    """The steps for counts in memory."""

    S: Posterior

    def __init__(
        self,
        data: Term,
        S: Posterior,
        A: Posterior,
        priors: dict[str, GammaPrior | LabelPrior],
        burn_in: int,
    ) -> None:
        self._counts = Counts(Relation(("S", "A"), data))
        self._constant = self._counts.constant()
        S.add_up()
        super().__init__(S, A, priors, burn_in)

    def P_of_A(self) -> Array:
        return self._counts.P("A", self.A.F, self.S.F)

    def update_S(self, prior_shape: float, rates: Array, logs: bool) -> None:
        self.S.update(self._counts.P("S", self.S.F, self.A.F), prior_shape, rates, logs)

    def bound_of_counts(self) -> float:
        return self._constant - self._counts.loss(self.S.F, self.A.F)
