"""Fits to the same data, a matrix or a tensor, from different starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from .._backend.dispatch import padded
from .._common.arrays import Array, Matrix, MatrixLike, Seed
from .._data.border import check_factor, check_integer, check_real, require_memory, warn_of_rank
from .._data.fingerprint import data_fingerprint
from .._solver import build
from .._solver.known import Known, check_penalties, matrix_penalties
from .._solver.loop import Current, FitLoop, Optimality, Run
from .._solver.penalties import Penalties, PenaltiesLike, require_scale
from .._solver.problem import problem_kind
from .._solver.relations import Relation
from .._solver.result import Factorization, TensorFactorization, fingerprints, normalized
from .._solver.starts import start, start_B, start_of_labels, start_tensor, zeros_that_stay
from .._solver.weights import WeightsLike
from .receipts import INPUTS, KNOWN, TENSOR_INPUTS, with_receipt

Result = TypeVar("Result", Factorization, TensorFactorization)


@dataclass(eq=False)
class Fits(Generic[Result]):
    """Fits to the same clean data with the same settings, which may run at the same time.

    The parameters are those of `factorize` and `factorize_tensor`; all but X are checked here.
    """

    X: Matrix
    y: Any = None
    _: KW_ONLY
    n_components: int
    threads: int
    loss: str | float = "frobenius"
    supervision_loss: str | float = "frobenius"
    supervision_weight: Any = 1.0
    X_weights: WeightsLike = None
    init: Any = "auto"
    penalties: PenaltiesLike = None

    starts: ClassVar[tuple[str, ...]]  # those that depend on the seed
    _settings: ClassVar[tuple[str, ...]] = ("loss", "supervision_loss", "init")  # of the receipt
    _inputs: ClassVar[tuple[str, ...]] = INPUTS
    _keeps_zeros: ClassVar = True  # of a given start
    _refuses_zeros: ClassVar = False  # those of a start where the data are positive
    _prepare: ClassVar[Callable[..., None]]
    # Returns factors in the storage of the kernels, their relations, and the user's factors.
    _begin: ClassVar[Callable[..., tuple[dict[str, Array], list[Relation], Current]]]
    _result: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        self.rank = check_integer(self.n_components, "n_components", 1)
        self.known, self.penalized = Known(), dict[str, Penalties]()
        self._prepare()
        self.settings = {name: getattr(self, name) for name in self._settings}
        self.fingerprint = data_fingerprint(self.X, self.threads)
        self.prints = fingerprints({name: getattr(self, name) for name in self._inputs})

    def fit(self, rng: Generator, loop: FitLoop, seed: Seed) -> Result:
        """Fit from a drawn or given start; `seed`, that of `rng`, is for the receipt."""
        factors, related, current = self._begin(rng)
        given = self._keeps_zeros and not isinstance(self.init, str)
        stay = zeros_that_stay(factors, self.rank) if given else {}
        moves = self.known.moves(factors)
        support = stay | {name: T & stay.get(name, T) for name, T in moves.items()}
        problem = problem_kind(related)(factors, related, support, penalties=self.penalized)
        problem.clear_unobserved(_title)
        if self._refuses_zeros and stay and 0 < problem.unreached() < inf:
            raise ValueError(
                "init has zeros, which stay, where X or labels are positive: the Kullback-Leibler "
                "divergence is infinite. Add a small constant to its factors."
            )
        run = loop.run(problem, current, optimality=Optimality(problem, moves, stay))
        result: Result = self._result(run, current, related)
        settings = {"n_components": self.rank, **self.settings, **loop.settings}
        settings |= {"random_state": seed, "zeros_stay": ",".join(sorted(stay))}
        settings |= {"plan": str(run.plan)}
        fingerprint = self.fingerprint, self.prints
        return with_receipt(result, run, self.threads, *fingerprint, settings)


def _title(last: str) -> str:
    """Return the argument with the data of a relation, from the name of its last factor."""
    if last[0] != "B":
        return "feature_labels" if last == "C" else "X"
    return f"y[{last[1:]}]" if last[1:] else "y"


@dataclass(eq=False, kw_only=True)
class MatrixFits(Fits[Factorization]):
    """Fits of a matrix."""

    y_weights: WeightsLike = None
    S_support: npt.ArrayLike | None = None
    A_support: npt.ArrayLike | None = None
    covariates: npt.ArrayLike | None = None
    fixed_components: npt.ArrayLike | None = None
    feature_labels: MatrixLike | None = None
    feature_weight: Any = 1.0

    starts = ("auto", "random", "least-squares", "random-acol")

    def _prepare(self) -> None:
        X, rank, init = self.X, self.rank, self.init
        losses, weights = (self.loss, self.supervision_loss), (self.X_weights, self.y_weights)
        self.data, self.labels = build.terms(X, self.y, *losses, *weights, self.threads)
        self.weight = build.check_weight(self.supervision_weight, dtype=X.dtype)
        self.of_features = build.check_weight(self.feature_weight, "feature_weight", X.dtype)
        known = {name: getattr(self, name) for name in KNOWN}
        self.known = Known.of(X.shape, rank, X.dtype, **known)
        self.features = build.features_term(self.feature_labels, X, losses[1], self.threads)
        plain = self.labels is None and self.features is None and not self.known
        if plain and isinstance(init, str):
            warn_of_rank(rank, min(X.shape), "min(n, m)")
        self.C: Array | None = None
        if isinstance(init, (tuple, list)) and len(init) == 4:
            if self.features is None:
                raise ValueError(
                    "init has a C, the fourth of its factors, and there are no feature_labels."
                )
            wanted = (rank, self.features.shape[1]), X.dtype, "components x labels"
            self.C = check_factor(init[3], "init[3] (C)", *wanted)
            self.init = tuple(init[: 2 if init[2] is None else 3])
        n_labels, n_of_features = (t.shape[1] if t else None for t in (self.labels, self.features))
        others = (n_labels, self.weight), (n_of_features, self.of_features)
        self.penalized = matrix_penalties(self.penalties, X.shape, rank, self.known, *others)

    def _begin(self, rng: Generator) -> tuple[dict[str, Array], list[Relation], Current]:
        terms, C = (self.data, self.labels), self.C
        S, A, B = start(self.init, self.X, *terms, self.rank, rng, self.known, self.X_weights)
        if self.features is not None and C is None:
            C = start_B(A.T, self.features, rng).astype(self.X.dtype)
        factors = build.pad_factors(S, A, B, C, self.threads)
        related = build.relations(*terms, self.weight, factors, self.features, self.of_features)
        return factors, related, build.view_factors(factors, self.rank)

    def _result(self, run: Run, current: Current, related: list[Relation]) -> Factorization:
        weights = {r.names[1]: float(r.coefficient) for r in related}
        return build.factorization(run, current, weights.get("B"), weights.get("C"))


@dataclass(eq=False)
class TensorFits(Fits[TensorFactorization]):
    """Fits of a tensor."""

    starts = ("auto", "random", "least-squares")
    _settings = ("loss", "supervision_loss", "supervision_weight", "init")
    _inputs = TENSOR_INPUTS
    _refuses_zeros = True

    def _prepare(self) -> None:
        X = self.X
        weight = check_real(self.supervision_weight, "supervision_weight")
        build.check_weight(weight, dtype=X.dtype)
        losses, given = (self.loss, self.supervision_loss), (X, self.X_weights, self.y)
        self.related, self.labels = build.tensor_relations(*given, losses, weight, self.threads)
        require_memory(self.rank, X.shape, X.dtype)
        modes = dict(zip(self.related[0].names, range(len(X.shape)), strict=True))
        rows = dict(zip(modes, X.shape, strict=True))
        rows |= {f"B{k}": Y.shape[1] for k, Y in self.labels.items()}
        self.penalized = check_penalties(self.penalties, rows, X.shape, self.rank)
        require_scale(self.penalized, [r.names for r in self.related if r.coefficient > 0], modes)

    def _begin(self, rng: Generator) -> tuple[dict[str, Array], list[Relation], Current]:
        first, dtype = self.related[0], self.X.dtype
        start = start_tensor(self.init, self.X, self.X_weights, first.term, self.rank, rng)
        pairs = zip(first.names, start, strict=True)
        factors = {name: padded(F, dtype, self.threads) for name, F in pairs}
        for k, Y in self.labels.items():
            B = start_of_labels(self.init, k, start[k], Y, rng)
            factors[f"B{k}"] = padded(B.T, dtype)
        return factors, self.related, lambda: {n: F[:, : self.rank] for n, F in factors.items()}

    def _result(self, run: Run, current: Current, related: list[Relation]) -> TensorFactorization:
        views: Any = current()
        (names, term), labels = (related[0].names, related[0].term), self.labels
        columns, weights, sizes, order = normalized([views[name] for name in names], term.loss)
        found = {k: np.ascontiguousarray((views[f"B{k}"] * sizes[k])[:, order].T) for k in labels}
        outcome = run.objective, run.n_iter, run.converged
        return TensorFactorization(columns, weights, found, *outcome)
