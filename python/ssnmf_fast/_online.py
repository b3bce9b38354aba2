"""Learning from mini-batches: the majorisers of past batches are kept as two sums each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import padded
from ._csr_file import CsrFile
from ._descent import Part, descend
from ._dispatch import kernels
from ._initialise import generator, start
from ._model import check_weight, relations, terms
from ._problem import Problem, Relation
from ._terms import Term
from ._threads import resolve_threads
from ._validation import check_integer, check_real
from ._weight_forms import Quadratic, Separable

Array = npt.NDArray[Any]

_ROUNDS, _UPDATES_OF_S, _SWEEPS = 5, 2, 2


@dataclass
class _Evidence:
    """What batches say of a factor F with rows f.

    Frobenius, one curvature K for all rows:  sum of f K f^T - 2 b f^T
    Frobenius, weights of their own:          majoriser, sum of a f^2 - 2 b f
    Kullback-Leibler:                         majoriser, sum of a f - b log f
    """

    a: Array
    b: Array

    def plus(self, new: _Evidence, keep: float) -> _Evidence:
        """Return what is left of this evidence, and the new."""
        share = self.a.dtype.type(keep)
        return _Evidence(share * self.a + new.a, share * self.b + new.b)


@dataclass
class Online:
    """Dictionary A and classifier B, stored by rows and padded, and what past batches say of them.

    At every batch its representation S is updated against the current A and B, and adds its part to
    the sums; A and B then go to the minimiser of the sum of all majorisers (as in online dictionary
    learning, Mairal et al. 2010, and scikit-learn's MiniBatchNMF).  Older batches weigh less and
    less: their majorisers were taken at other factors, and are loose by now.
    """

    factors: dict[str, Array]
    rank: int
    weight: float | None = None  # of the supervision; None until the first batch balances it
    n_steps: int = 0
    mean_loss: float = 0.0  # per sample, averaged as the sums are
    _seen: float = 0.0
    _evidence: dict[str, _Evidence] = field(default_factory=dict)

    @classmethod
    def resumed(cls, A: Array, B: Array | None) -> Online:
        """Set out from a dictionary (r x m) and a classifier (r x k) that were learned before."""
        factors = {"A": padded(A.T, A.dtype)}
        if B is not None:
            factors["B"] = padded(B.T, A.dtype)
        return cls(factors, A.shape[0])

    def array(self, name: str) -> Array:
        """Return a copy of A or B as (r x m) or (r x k)."""
        return np.ascontiguousarray(self.factors[name][:, : self.rank].T)

    def step(self, data: Term, labels: Term | None, keep: float, n_threads: int) -> float:
        """Learn from one batch; returns the estimated objective per sample.

        `keep` is the share of the weight of earlier batches that remains.
        """
        problem = self._problem(data, labels, n_threads)
        evidence: dict[str, _Evidence] = {}
        for _ in range(_ROUNDS):
            for _ in range(_UPDATES_OF_S):
                problem.update("S", "auto")
            value = problem.objective()
            for name in self.factors:
                new = self._new_evidence(problem, name)
                past = self._evidence.get(name)
                evidence[name] = new if past is None else past.plus(new, keep)
                self._follow(problem, name, evidence[name])
        self._evidence = evidence
        n = data.shape[0]
        self._seen = keep * self._seen + n
        self.mean_loss += (value - n * self.mean_loss) / self._seen
        self.n_steps += 1
        return self.mean_loss

    def _problem(self, data: Term, labels: Term | None, n_threads: int) -> Problem:
        factors = {"S": _flat(data, self.factors["A"]), **self.factors}
        related: list[Relation] = relations(data, labels, self.weight, factors, n_threads)
        if labels is not None:
            self.weight = related[1].coefficient
        return Problem(factors, related, n_threads)

    def _new_evidence(self, problem: Problem, name: str) -> _Evidence:
        F = self.factors[name]
        ((term, other, _),) = problem.sides[name]
        ((loss, (up, down)),) = problem.pulls(name).items()
        if loss == "kullback-leibler":
            return _Evidence(down.copy(), F * up)
        if isinstance(term.form, Separable):
            gram = term.form.gram(problem.factors[other], problem.n_threads)
            return _Evidence(gram, up.copy())
        return _Evidence(np.divide(down, F, out=np.zeros_like(F), where=F > 0), up.copy())

    def _follow(self, problem: Problem, name: str, evidence: _Evidence) -> None:
        """Go to the minimiser of what the evidence says, or (a common curvature) towards it."""
        F, a, b, threads = self.factors[name], evidence.a, evidence.b, problem.n_threads
        ((term, other, _),) = problem.sides[name]
        alive = F > 0
        if term.loss == "kullback-leibler":
            up = np.divide(b, F, out=np.zeros_like(F), where=alive)
            kernels.update(F, None, None, up, a, "mm", 0.0, threads)
        elif isinstance(term.form, Separable):
            G = problem.factors[other]
            descend(F, b, [Part(Quadratic(a, term.form.rows), 1.0, G)], None, _SWEEPS, threads)
        else:
            kernels.update(F, b, a * F, None, None, "mm", 0.0, threads)
        # What no batch has held so far must be able to come back from a later one.
        F[alive & (F == 0)] = np.sqrt(kernels.tiny(F.dtype))


def _flat(data: Term, A: Array) -> Array:
    """Equal entries in every used column of S, scaled to the mean of the data."""
    used = A.any(axis=0)
    size = float(A.sum(axis=1, dtype=np.float64).mean())
    mean = data.entries.total() / (data.shape[0] * data.shape[1])
    level = mean / size if mean > 0 and size > 0 else 1.0
    row = np.where(used, level, 0.0)
    S: Array = padded(np.tile(row, (data.shape[0], 1)), A.dtype)
    return S


def learn_batch(
    online: Online | None,
    X: Any,
    Y: Any,
    *,
    n_components: int,
    reconstruction: str,
    supervision: str = "frobenius",
    supervision_weight: float | str = 1.0,
    X_weights: Any,
    Y_weights: Any,
    init: Any,
    random_state: Any,
    n_threads: int | None,
    past_weight: float,
) -> Online:
    """Learn from one batch, the first of all where `online` is None; see :func:`factorize`."""
    if isinstance(X, CsrFile):
        raise TypeError("partial_fit takes batches in memory; fit takes a matrix on disk.")
    rank = check_integer(n_components, "n_components", 1)
    keep = check_real(past_weight, "past_weight")
    if keep > 1:
        raise ValueError(f"past_weight must be at most 1; got {past_weight!r}.")
    threads = resolve_threads(n_threads)
    weight = check_weight(supervision_weight)
    if online is not None:
        X = X.astype(online.factors["A"].dtype, copy=False)
    X, data, labels = terms(X, Y, reconstruction, supervision, X_weights, Y_weights, threads)
    if online is None:
        _, A, B = start(init, X, data, labels, rank, generator(random_state), X.dtype)
        online = Online.resumed(A, B)
    if online.rank != rank:
        raise ValueError(
            f"n_components={rank} differs from the {online.rank} components learned so far; set it "
            "back, or start anew."
        )
    if online.weight is None:
        online.weight = weight
    online.step(data, labels, keep, threads)
    return online
