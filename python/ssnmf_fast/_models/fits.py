"""Fits to the same data, a matrix or a tensor, from one start or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from .._backend.dispatch import padded
from .._common.arrays import Array, LossName, Matrix, MatrixLike, Seed, Solver
from .._common.text import short
from .._data.arrays import DataLike
from .._data.border import (
    CleanMatrix,
    check_data,
    check_factor,
    check_integer,
    check_random_state,
    check_real,
    require_memory,
    warn_of_rank,
)
from .._data.fingerprint import data_fingerprint
from .._data.threads import Stop, resolve_jobs, resolve_threads, run_side_by_side
from .._solver import build
from .._solver.known import Known, check_penalties, matrix_penalties
from .._solver.loop import Current, FitLoop, Optimality, Run, verbose_progress
from .._solver.penalties import Penalties, PenaltiesLike, require_scale
from .._solver.problem import problem_kind
from .._solver.relations import Relation
from .._solver.result import Factorization, FitState, TensorFactorization, fingerprints, normalized
from .._solver.starts import start, start_B, start_of_labels, start_tensor, zeros_that_stay
from .._solver.terms import Term
from .._solver.weights import WeightsLike
from .receipts import INPUTS, KNOWN, TENSOR_INPUTS, Result, with_receipt

AnyResult = TypeVar("AnyResult", bound=Any)  # also those of variational Bayes


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Checked inputs that all fits to the same data share; `penalties` are by factor."""

    known: Known = field(default_factory=Known)
    penalties: Mapping[str, Penalties] = field(default_factory=dict)


P = TypeVar("P", bound=Prepared)


@dataclass(eq=False)
class Fits(Generic[Result, P]):
    """Fits to the same clean data with the same settings, which may run at the same time.

    The parameters are those of `factorize` and `factorize_tensor`; all but X are checked here.
    """

    X: Matrix
    y: Any = None
    _: KW_ONLY
    n_components: int
    threads: int
    loss: LossName | float = "frobenius"
    supervision_loss: LossName | float = "frobenius"
    supervision_weight: Any = 1.0
    X_weights: WeightsLike = None
    init: Any = "auto"
    penalties: PenaltiesLike = None

    starts: ClassVar[tuple[str, ...]]  # those that depend on the seed
    _settings: ClassVar[tuple[str, ...]] = ("loss", "supervision_loss", "init")  # of the receipt
    _inputs: ClassVar[tuple[str, ...]] = INPUTS
    _keeps_zeros: ClassVar = True  # of a given start
    _refuses_zeros: ClassVar = False  # those of a start where the data are positive
    _prepare: ClassVar[Callable[..., Any]]  # returns P, what is `prepared`
    # Returns factors in the storage of the kernels, their relations, and the user's factors.
    _begin: ClassVar[Callable[..., tuple[dict[str, Array], list[Relation], Current]]]
    _result: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        self.rank = check_integer(self.n_components, "n_components", 1)
        self.prepared: P = self._prepare()
        self.settings = {name: getattr(self, name) for name in self._settings}
        self.fingerprint = data_fingerprint(self.X, self.threads)
        self.prints = fingerprints({name: getattr(self, name) for name in self._inputs})

    def fit(self, rng: Generator, loop: FitLoop, seed: Seed) -> Result:
        """Fit from a drawn or given start; `seed`, that of `rng`, is for the receipt."""
        factors, related, current = self._begin(rng)
        starts_from_arrays = self._keeps_zeros and not isinstance(self.init, str)
        stay = zeros_that_stay(factors, self.rank) if starts_from_arrays else {}
        moves = self.prepared.known.moves(factors)
        support = stay | {name: T & stay.get(name, T) for name, T in moves.items()}
        penalized = self.prepared.penalties
        problem = problem_kind(related)(factors, related, support, penalties=penalized)
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
        parts = {_title(name): values for name, values in run.parts.items()}
        result = replace(result, objective_parts=parts)
        fingerprint = self.fingerprint, self.prints
        return with_receipt(result, run, self.threads, *fingerprint, settings)


def _title(last: str) -> str:
    """Return the argument with the data of a relation, from the name of its last factor."""
    if last == "penalties":
        return last
    if last[0] != "B":
        return "feature_labels" if last == "C" else "X"
    return f"y[{last[1:]}]" if last[1:] else "y"


@dataclass(frozen=True, kw_only=True)
class PreparedMatrix(Prepared):
    """Terms of the data, of labels and of features, weights (None balances), and the start."""

    data: Term
    labels: Term | None
    features: Term | None
    weight: float | None
    feature_weight: float | None
    init: Any  # a name, or S, A and perhaps B
    C: Array | None


@dataclass(eq=False, kw_only=True)
class MatrixFits(Fits[Factorization, PreparedMatrix]):
    """Fits of a matrix."""

    y_weights: WeightsLike = None
    S_support: npt.ArrayLike | None = None
    A_support: npt.ArrayLike | None = None
    covariates: npt.ArrayLike | None = None
    fixed_components: npt.ArrayLike | None = None
    feature_labels: MatrixLike | None = None
    feature_weight: Any = 1.0

    starts = ("auto", "random", "least-squares", "random-acol")

    def _prepare(self) -> PreparedMatrix:
        X, rank, init, C = self.X, self.rank, self.init, None
        losses, weights = (self.loss, self.supervision_loss), (self.X_weights, self.y_weights)
        data, labels = build.terms(X, self.y, *losses, *weights, self.threads)
        weight = build.check_weight(self.supervision_weight, dtype=X.dtype)
        of_features = build.check_weight(self.feature_weight, "feature_weight", X.dtype)
        known = Known.of(X.shape, rank, X.dtype, **{name: getattr(self, name) for name in KNOWN})
        features = build.features_term(self.feature_labels, X, losses[1], self.threads)
        if labels is None and features is None and not known and isinstance(init, str):
            warn_of_rank(rank, min(X.shape), "min(n, m)")
        if isinstance(init, (tuple, list)) and len(init) == 4:
            if features is None:
                raise ValueError(
                    "init has a C, the fourth of its factors, and there are no feature_labels."
                )
            expected = (rank, features.shape[1]), X.dtype, "components x labels"
            C = check_factor(init[3], "init[3] (C)", *expected)
            init = tuple(init[: 2 if init[2] is None else 3])
        n_labels, n_of_features = (term.shape[1] if term else None for term in (labels, features))
        others = (n_labels, weight), (n_of_features, of_features)
        return PreparedMatrix(
            known=known,
            penalties=matrix_penalties(self.penalties, X.shape, rank, known, *others),
            data=data,
            labels=labels,
            features=features,
            weight=weight,
            feature_weight=of_features,
            init=init,
            C=C,
        )

    def _begin(self, rng: Generator) -> tuple[dict[str, Array], list[Relation], Current]:
        given = self.prepared
        terms, C = (given.data, given.labels), given.C
        S, A, B = start(given.init, self.X, *terms, self.rank, rng, given.known, self.X_weights)
        if given.features is not None and C is None:
            C = start_B(A.T, given.features, rng).astype(self.X.dtype)
        factors = build.pad_factors(S, A, B, C, self.threads)
        of_features = given.features, given.feature_weight
        related = build.relations(*terms, given.weight, factors, *of_features)
        return factors, related, build.view_factors(factors, self.rank)

    def _result(self, run: Run, current: Current, related: list[Relation]) -> Factorization:
        weights = {r.names[1]: float(r.coefficient) for r in related}
        return build.factorization(run, current, weights.get("B"), weights.get("C"))


@dataclass(frozen=True, kw_only=True)
class PreparedTensor(Prepared):
    """Relations of the tensor and of labels, and the terms of the labels by mode."""

    related: list[Relation]
    labels: dict[int, Term]


@dataclass(eq=False)
class TensorFits(Fits[TensorFactorization, PreparedTensor]):
    """Fits of a tensor."""

    starts = ("auto", "random", "least-squares")
    _settings = ("loss", "supervision_loss", "supervision_weight", "init")
    _inputs = TENSOR_INPUTS
    _refuses_zeros = True

    def _prepare(self) -> PreparedTensor:
        X = self.X
        weight = check_real(self.supervision_weight, "supervision_weight")
        build.check_weight(weight, dtype=X.dtype)
        losses, given = (self.loss, self.supervision_loss), (X, self.X_weights, self.y)
        related, labels = build.tensor_relations(*given, losses, weight, self.threads)
        require_memory(self.rank, X.shape, X.dtype)
        modes = dict(zip(related[0].names, range(len(X.shape)), strict=True))
        rows = dict(zip(modes, X.shape, strict=True))
        rows |= {f"B{k}": Y.shape[1] for k, Y in labels.items()}
        penalized = check_penalties(self.penalties, rows, X.shape, self.rank)
        require_scale(penalized, [r.names for r in related if r.coefficient > 0], modes)
        return PreparedTensor(penalties=penalized, related=related, labels=labels)

    def _begin(self, rng: Generator) -> tuple[dict[str, Array], list[Relation], Current]:
        first, dtype = self.prepared.related[0], self.X.dtype
        start = start_tensor(self.init, self.X, self.X_weights, first.term, self.rank, rng)
        pairs = zip(first.names, start, strict=True)
        factors = {name: padded(F, dtype, self.threads) for name, F in pairs}
        for k, Y in self.prepared.labels.items():
            B = start_of_labels(self.init, k, start[k], Y, rng)
            factors[f"B{k}"] = padded(B.T, dtype)
        related = self.prepared.related
        return factors, related, lambda: {n: F[:, : self.rank] for n, F in factors.items()}

    def _result(self, run: Run, current: Current, related: list[Relation]) -> TensorFactorization:
        views: Any = current()
        (names, term), labels = (related[0].names, related[0].term), self.prepared.labels
        columns, weights, sizes, order = normalized([views[name] for name in names], term.loss)
        B = {k: np.ascontiguousarray((views[f"B{k}"] * sizes[k])[:, order].T) for k in labels}
        outcome = run.objective, run.n_iter, run.converged
        return TensorFactorization(columns, weights, B, *outcome)


def fit_starts(
    X: DataLike | CleanMatrix,
    seeds: Sequence[int],
    y: MatrixLike | None = None,
    *,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    solver: Solver = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    dtype: npt.DTypeLike | None = None,
    **arguments: Any,
) -> Iterator[Factorization]:
    """Yield the result of `factorize` for each seed, in order."""
    loop = FitLoop(solver, max_iter, tol, None, 0)
    X = check_data(X, resolve_threads(n_threads), dtype)
    jobs, threads = resolve_jobs(n_jobs, n_threads, len(seeds))
    yield from run_starts(MatrixFits(X, y, threads=threads, **arguments), seeds, loop, jobs)


def run_starts(
    fits: Fits[Result, Any], seeds: Sequence[int], loop: FitLoop, jobs: int
) -> Iterator[Result]:
    """Yield the result for each seed, in order; shared work is done once."""

    def fit(seed: int, threads: int, stop: Stop) -> Result:
        silent = replace(loop, callback=stop, verbose=0)
        return fits.fit(check_random_state(seed), silent, seed)

    jobs = at_once(fits.rank, fits.X, jobs)
    yield from run_side_by_side((partial(fit, seed) for seed in seeds), jobs, fits.threads)


def at_once(rank: int, X: Any, jobs: int) -> int:
    """Return how many of `jobs` fits memory has room for, and for as many that wait."""
    return max(1, require_memory(rank, X.shape, X.dtype, n_fits=2 * jobs) // 2)


def draw_seeds(rng: Generator, n_starts: int) -> list[int]:
    """Return a seed for each start; a larger number only adds seeds."""
    return [int(seed) for seed in rng.integers(2**31 - 1, size=n_starts)]


def best_start(
    fits: Fits[Result, Any], n_starts: int, rng: Generator, loop: FitLoop, jobs: int
) -> Result:
    """Return the fit with the smallest objective among several starts."""
    runs = run_starts(fits, draw_seeds(rng, n_starts), loop, jobs)
    best, values = keep_best(runs, n_starts, loop.verbose)
    return replace(best, start_objectives=tuple(values))


def plan_starts(
    n_starts: int, n_threads: int | None, init: object, loop: FitLoop, drawn: Sequence[str]
) -> tuple[int, int, int]:
    """Return the numbers of starts, simultaneous fits and threads; several starts must differ."""
    count = check_integer(n_starts, "n_starts", 1)
    if count > 1 and (not isinstance(init, str) or init in ("nndsvda", "svd")):
        given = "holds arrays" if not isinstance(init, str) else f"is {short(init)}"
        hint = f"expected one of {', '.join(map(repr, drawn))}, or n_starts=1."
        raise ValueError(f"n_starts={n_starts} needs different starts, but init {given}; {hint}")
    if count > 1 and loop.callback is not None:
        raise ValueError(
            f"callback is not supported with n_starts={n_starts}; leave one of them out."
        )
    return count, *resolve_jobs(None, n_threads, count)


def keep_best(
    results: Iterable[AnyResult], n_starts: int, verbose: int
) -> tuple[AnyResult, list[float]]:
    """Return the result with the smallest objective, and the final objectives of all."""
    values: list[float] = []
    best: Any = None
    with verbose_progress(verbose, n_starts, "starts") as progress:
        for result in results:
            values.append(result.objective[-1][1])
            if best is None or values[-1] < best.objective[-1][1]:
                best = result
            if progress is not None:
                progress(FitState(len(values), min(values)))
    return best, values
