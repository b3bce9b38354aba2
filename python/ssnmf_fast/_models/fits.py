"""Fits of the same data, a matrix or a tensor, which differ in their starts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from .._backend.dispatch import padded
from .._common.arrays import Array, Matrix, MatrixLike, Seed
from .._data.border import check_factor, check_integer, check_real, require_memory, warn_of_rank
from .._data.fingerprint import data_fingerprint
from .._data.tensors import Tensor
from .._solver.build import (
    check_weight,
    factorization,
    features_term,
    pad_factors,
    relations,
    tensor_relations,
    terms,
    view_factors,
)
from .._solver.known import Known, check_penalties
from .._solver.loop import Current, FitLoop, Optimality, Run
from .._solver.losses import loss_named
from .._solver.penalties import Penalties, PenaltiesLike, require_scale
from .._solver.problem import problem_kind
from .._solver.relations import Relation
from .._solver.result import Factorization, TensorFactorization, fingerprints, normalized
from .._solver.starts import start, start_B, start_of_labels, start_tensor, zeros_that_stay
from .._solver.terms import Term
from .._solver.weights import WeightsLike
from .receipts import WEIGHTS, parts_of_result, receipt_of

Result = TypeVar("Result", Factorization, TensorFactorization)


class Fits(Generic[Result]):
    """Fits of the same clean data with the same settings, which may run at the same time."""

    known = Known()
    penalties: Mapping[str, Penalties]
    starts: ClassVar[tuple[str, ...]]  # those that differ by their seeds
    _refuses_zeros = False  # whether zeros of a start may not stay where the data are positive
    _start: Callable[[np.random.Generator], dict[str, Array]]  # factors as the kernels hold them
    _relations: Callable[[dict[str, Array]], list[Relation]]  # "balanced" depends on the start
    _views: Callable[[dict[str, Array]], Current]  # which gives the factors as a user knows them
    _result: Callable[[Run, Current, list[Relation]], Result]  # without a receipt

    def __init__(
        self,
        X: Matrix,
        n_components: int,
        init: object,
        threads: int,
        settings: dict[str, Any],
        inputs: dict[str, Any],
    ) -> None:
        self.X, self.init, self.threads = X, init, threads
        self.rank = check_integer(n_components, "n_components", 1)
        self.settings = {"n_components": self.rank, **settings}
        self.fingerprint = data_fingerprint(X, threads)
        self.inputs = fingerprints(inputs)

    def fit(self, rng: np.random.Generator, loop: FitLoop, seed: Seed) -> Result:
        """Fit from a start that is drawn, or is given; the receipt has the seed of `rng`."""
        factors = self._start(rng)
        stay = {} if isinstance(self.init, str) else zeros_that_stay(factors, self.rank)
        moves = self.known.moves(factors)
        support = stay | {name: T & stay.get(name, T) for name, T in moves.items()}
        related = self._relations(factors)
        problem = problem_kind(related)(factors, related, support, penalties=self.penalties)
        if self._refuses_zeros and stay and problem.unreached() > 0:
            raise ValueError(
                "init has zeros, which stay, where X or labels are positive: the Kullback-Leibler "
                "divergence is infinite there. Add a small constant to its factors."
            )
        current = self._views(factors)
        run = loop.run(problem, current, optimality=Optimality(problem, moves, stay))
        result = self._result(run, current, related)
        settings = self.settings | {
            "solver": loop.solver,
            "max_iter": loop.max_iter,
            "tol": loop.tol,
            "random_state": seed,
            "zeros_stay": ",".join(sorted(stay)),
        }
        settings |= {name: getattr(result, name) for name in WEIGHTS if hasattr(result, name)}
        receipt = receipt_of(
            run,
            parts_of_result(result),
            self.threads,
            data=self.fingerprint,
            inputs=self.inputs,
            settings=settings,
            dtype=self.X.dtype,
        )
        return replace(result, receipt=receipt)


class MatrixFits(Fits[Factorization]):
    """Fits of a matrix; the arguments are those of `factorize`, checked here but for X."""

    starts = ("auto", "random", "least-squares", "random-acol")

    def __init__(
        self,
        X: Matrix,
        y: MatrixLike | None = None,
        *,
        n_components: int,
        threads: int,
        loss: str | float = "frobenius",
        supervision_loss: str | float = "frobenius",
        supervision_weight: Any = 1.0,
        X_weights: WeightsLike = None,
        y_weights: WeightsLike = None,
        init: object = "auto",
        S_support: npt.ArrayLike | None = None,
        A_support: npt.ArrayLike | None = None,
        covariates: npt.ArrayLike | None = None,
        fixed_components: npt.ArrayLike | None = None,
        feature_labels: MatrixLike | None = None,
        feature_weight: Any = 1.0,
        penalties: PenaltiesLike = None,
    ) -> None:
        rank = check_integer(n_components, "n_components", 1)
        self.data, self.labels = terms(X, y, loss, supervision_loss, X_weights, y_weights, threads)
        self.weight = check_weight(supervision_weight, dtype=X.dtype)
        self.of_features = check_weight(feature_weight, "feature_weight", X.dtype)
        given = {
            "S_support": S_support,
            "A_support": A_support,
            "covariates": covariates,
            "fixed_components": fixed_components,
        }
        self.known, self.X_weights = Known.of(X.shape, rank, X.dtype, **given), X_weights
        self.features = features_term(feature_labels, X, supervision_loss, threads)
        plain = self.labels is None and self.features is None and not self.known
        if plain and isinstance(init, str):
            warn_of_rank(rank, min(X.shape), "min(n, m)")
        init, self.C = _without_C(init, self.features, rank, X.dtype)
        lengths, pairs = dict(zip("SA", X.shape, strict=True)), [("S", "A")]
        for near, far, term, weight in (
            ("S", "B", self.labels, self.weight),
            ("A", "C", self.features, self.of_features),
        ):
            if term is not None:
                lengths[far] = term.shape[1]
                pairs += [] if weight == 0 else [(near, far)]
        self.penalties = check_penalties(penalties, lengths, X.shape, rank)
        if self.known.n_given < rank:
            require_scale(self.penalties, pairs)
        settings = {"loss": loss, "supervision_loss": supervision_loss, "init": init}
        inputs = {"y": y, "X_weights": X_weights, "y_weights": y_weights, **given}
        inputs |= {"feature_labels": feature_labels, "penalties": penalties}
        super().__init__(X, rank, init, threads, settings, inputs)

    def _start(self, rng: np.random.Generator) -> dict[str, Array]:
        X, rank, C = self.X, self.rank, self.C
        S, A, B = start(self.init, X, self.data, self.labels, rank, rng, self.known, self.X_weights)
        if self.features is not None and C is None:
            C = start_B(A.T, self.features, rng).astype(X.dtype)
        return pad_factors(S, A, B, C)

    def _relations(self, factors: dict[str, Array]) -> list[Relation]:
        supervision = self.labels, self.weight, factors, self.features, self.of_features
        return relations(self.data, *supervision)

    def _views(self, factors: dict[str, Array]) -> Current:
        return view_factors(factors, self.rank)

    def _result(self, run: Run, current: Current, related: list[Relation]) -> Factorization:
        weights = {r.names[1]: float(r.coefficient) for r in related}
        return factorization(run, current, weights.get("B"), weights.get("C"))


def _without_C(
    init: object, features: Term | None, rank: int, dtype: npt.DTypeLike
) -> tuple[Any, Array | None]:
    """Return a start of S, A and B, and the C that was given with them."""
    if not isinstance(init, (tuple, list)) or len(init) != 4:
        return init, None
    *others, C = init
    others = others[:2] if others[2] is None else others
    if features is None:
        raise ValueError(
            "init has a C, the fourth of its factors, and there are no feature_labels."
        )
    shape = rank, features.shape[1]
    return tuple(others), check_factor(C, "init[3] (C)", shape, dtype, "components x labels")


class TensorFits(Fits[TensorFactorization]):
    """Fits of a tensor; the arguments are those of `factorize_tensor`, checked here but for X."""

    starts = ("auto", "random", "least-squares")
    _refuses_zeros = True

    def __init__(
        self,
        X: Tensor,
        *,
        n_components: int,
        threads: int,
        loss: str | float,
        X_weights: WeightsLike,
        y: Mapping[int, Any] | None,
        supervision_loss: str | float,
        supervision_weight: float,
        init: object,
        penalties: PenaltiesLike,
    ) -> None:
        rank = check_integer(n_components, "n_components", 1)
        losses = loss_named(loss, "loss"), loss_named(supervision_loss, "supervision_loss")
        weight = check_real(supervision_weight, "supervision_weight")
        check_weight(weight, dtype=X.dtype)
        self.related, self.labels = tensor_relations(X, X_weights, y, losses, weight, threads)
        self.X_weights = X_weights
        require_memory(rank, X.shape, X.dtype)
        modes = dict(zip(self.related[0].names, range(len(X.shape)), strict=True))
        rows = dict(zip(modes, X.shape, strict=True))
        rows |= {f"B{k}": Y.shape[1] for k, Y in self.labels.items()}
        self.penalties = check_penalties(penalties, rows, X.shape, rank)
        require_scale(self.penalties, [r.names for r in self.related if r.coefficient > 0], modes)
        settings = {
            "loss": loss,
            "supervision_loss": supervision_loss,
            "supervision_weight": supervision_weight,
            "init": init,
        }
        inputs = {"X_weights": X_weights, "y": y, "penalties": penalties}
        super().__init__(X, rank, init, threads, settings, inputs)

    def _start(self, rng: np.random.Generator) -> dict[str, Array]:
        first, dtype = self.related[0], self.X.dtype
        start = start_tensor(self.init, self.X, self.X_weights, first.term, self.rank, rng)
        factors = {name: padded(F, dtype) for name, F in zip(first.names, start, strict=True)}
        for k, Y in self.labels.items():
            B = start_of_labels(self.init, k, start[k], Y, rng)
            factors[f"B{k}"] = padded(B.T, dtype)
        return factors

    def _relations(self, factors: dict[str, Array]) -> list[Relation]:
        return self.related

    def _views(self, factors: dict[str, Array]) -> Current:
        return lambda: {name: F[:, : self.rank] for name, F in factors.items()}

    def _result(self, run: Run, current: Current, related: list[Relation]) -> TensorFactorization:
        views: Any = current()
        (names, term), labels = (related[0].names, related[0].term), self.labels
        columns, weights, sizes, order = normalized([views[name] for name in names], term.loss)
        components = {
            k: np.ascontiguousarray((views[f"B{k}"] * sizes[k])[:, order].T) for k in labels
        }
        outcome = run.objective, run.n_iter, run.converged
        return TensorFactorization(columns, weights, components, *outcome)
