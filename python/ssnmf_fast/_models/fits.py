"""What fits of the same data share, and one such fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import check_factor, check_integer, check_real, require_memory, warn_of_rank
from .._data.fingerprint import data_fingerprint
from .._data.tensors import check_mode
from .._solver.build import (
    check_weight,
    factorization,
    features_term,
    pad_factors,
    relation_of_features,
    relations,
    terms,
    view_factors,
)
from .._solver.known import Known, check_penalties, penalties_of_factor
from .._solver.loop import FitLoop, Optimality, Run
from .._solver.losses import loss_named
from .._solver.penalties import Penalties, require_scale
from .._solver.problem import Problem, problem_of
from .._solver.relations import Relation
from .._solver.result import Factorization, TensorFactorization, fingerprints, normalized
from .._solver.starts import start, start_B, start_of_labels, start_tensor, zeros_that_stay
from .._solver.terms import Term
from .._solver.units import scaled
from .receipts import factors_of, parts_of_tensor, receipt_of
from .represent import terms_of_tensor


class Fits:
    """Fits of the same data and settings, which differ in their starts alone.

    The arguments are those of `factorize`, checked here; `threads` are those of each fit.  Fits may
    run at the same time.
    """

    def __init__(
        self,
        X: Any,
        Y: Any = None,
        *,
        n_components: int,
        threads: int,
        loss: str | float = "frobenius",
        supervision_loss: str | float = "frobenius",
        supervision_weight: Any = 1.0,
        X_weights: Any = None,
        Y_weights: Any = None,
        init: Any = "auto",
        S_support: Any = None,
        A_support: Any = None,
        covariates: Any = None,
        fixed_components: Any = None,
        feature_labels: Any = None,
        feature_weight: Any = 1.0,
        penalties: Any = None,
        dtype: Any = None,
    ) -> None:
        self.rank = rank = check_integer(n_components, "n_components", 1)
        self.settings = {"loss": loss, "supervision_loss": supervision_loss, "init": init}
        self.X, self.data, self.labels, units = terms(
            X, Y, loss, supervision_loss, X_weights, Y_weights, threads, dtype=dtype
        )
        X, labels = self.X, self.labels
        self.weight = check_weight(supervision_weight)
        self.of_features = check_weight(feature_weight, "feature_weight")
        units = units if labels is None else units.weighing(self.weight)
        given = {"S_support": S_support, "A_support": A_support}
        known = Known.of(
            X.shape,
            rank,
            X.dtype,
            **given,
            covariates=covariates,
            fixed_components=fixed_components,
        )
        self.known, self.penalties, self.X_weights = known, penalties, X_weights
        self.features = features_term(feature_labels, X, supervision_loss, threads)
        if known.fixed or self.features is not None or penalties is not None:  # they have a scale
            units.require_trivial("fixed components, labels of features and penalties")
        else:
            units, init = units.taking(init, X.dtype)
        self.units, self.threads = units, threads
        if labels is None and self.features is None and not known and isinstance(init, str):
            warn_of_rank(rank, min(X.shape), "min(n, m)")
        self.init, self.C = _without_C(init, self.features, rank, X.dtype)
        self.fingerprint = data_fingerprint(scaled(X, units.x), threads)
        self.inputs = fingerprints(
            {
                "Y": Y,
                "X_weights": X_weights,
                "Y_weights": Y_weights,
                **given,
                "covariates": covariates,
                "fixed_components": fixed_components,
                "feature_labels": feature_labels,
                "penalties": penalties,
            }
        )

    def fit(self, rng: np.random.Generator, loop: FitLoop, seed: Any) -> Factorization:
        """Fit from a start that is drawn, or is given; the receipt has the seed of `rng`."""
        factors = self._start(rng)
        related = self._related(factors)
        rank, known, units = self.rank, self.known, self.units
        kept = {} if isinstance(self.init, str) else zeros_that_stay(factors, rank)
        stay, moves = sorted(kept), known.moves(factors)
        kept |= {name: T & kept.get(name, T) for name, T in moves.items()}
        lengths = {name: len(F) for name, F in factors.items()}
        unit = related[0].coefficient
        penalized = check_penalties(self.penalties, lengths, self.X.shape, rank, unit)
        if known.n_given < rank:
            require_scale(penalized, [r.names for r in related if r.coefficient > 0])
        problem = problem_of(factors, related, kept, penalties=penalized)
        steps, current = loop.steps(problem), view_factors(factors, rank, units)
        seen = Optimality(problem, moves, stay)
        run = loop.run(steps, current, units=units, unreached=problem.unreached(), optimality=seen)
        weight = self.weight
        if self.labels is not None and weight is None:
            weight = units.weight(float(related[1].coefficient))
        result = factorization(run, current, None if self.labels is None else weight)
        if self.features is not None:
            result = replace(result, feature_weight=float(related[-1].coefficient / unit))
        of_start = {"random_state": seed, "zeros_stay": ",".join(stay)}
        return self._with_receipt(result, run, loop, of_start)

    def _with_receipt(
        self, result: Factorization, run: Run, loop: FitLoop, of_start: dict[str, Any]
    ) -> Factorization:
        weights = {name: getattr(result, name) for name in ("supervision_weight", "feature_weight")}
        settings = {
            **self.settings,
            "solver": loop.solver,
            "n_components": self.rank,
            "max_iter": loop.max_iter,
            "tol": loop.tol,
            **of_start,
            **weights,
        }
        receipt = receipt_of(
            result,
            factors_of(result),
            self.threads,
            data=self.fingerprint,
            inputs=self.inputs,
            settings=settings,
            dtype=self.X.dtype,
            residuals=run.residuals,
        )
        return replace(result, receipt=receipt)

    def _start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return the factors to start from, as the kernels hold them."""
        X, rank, C = self.X, self.rank, self.C
        S, A, B = start(self.init, X, self.data, self.labels, rank, rng, self.known, self.X_weights)
        if self.features is not None and C is None:
            C = start_B(A.T, self.features, rng).astype(X.dtype)
        return pad_factors(S, A, B, C)

    def _related(self, factors: dict[str, Array]) -> list[Relation]:
        """Return the relations; "balanced" weights depend on the start."""
        related = relations(self.data, self.labels, self.weight, factors, self.units)
        if self.features is not None:
            of_features = related[0], self.features, self.of_features, factors
            related.append(relation_of_features(*of_features))
        return related


def _without_C(init: Any, features: Term | None, rank: int, dtype: Any) -> tuple[Any, Array | None]:
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


class TensorFits:
    """Decompositions of the same tensor with the same settings, which differ in their starts alone.

    The arguments are those of `factorize_tensor`, checked here; `threads` are those of each fit.
    Fits may run at the same time.
    """

    def __init__(
        self,
        X: Any,
        *,
        n_components: int,
        threads: int,
        loss: str | float,
        X_weights: Any,
        labels: Mapping[int, Any] | None,
        supervision_loss: str | float,
        supervision_weight: float,
        init: Any,
        penalties: Any,
        dtype: Any,
    ) -> None:
        self.rank = check_integer(n_components, "n_components", 1)
        self.loss = loss_named(loss, "loss")
        losses = self.loss, loss_named(supervision_loss, "supervision_loss")
        weight = check_real(supervision_weight, "supervision_weight")
        given = terms_of_tensor(X, X_weights, labels, losses, weight, threads, dtype)
        self.X, self.units, self.relations = given.X, given.units, given.relations
        self.labels, self.X_weights, self.init = given.labels, X_weights, init
        require_memory(self.rank, self.X.shape, self.X.dtype)
        modes = dict(zip(self.relations[0].names, range(len(self.X.shape)), strict=True))
        self.penalties = _penalties(penalties, self.X.shape, modes, self.labels, self.rank)
        if self.penalties:
            self.units.require_trivial("penalties")
        require_scale(self.penalties, [r.names for r in self.relations if r.coefficient > 0], modes)
        self.threads = threads
        self.settings = {
            "loss": loss,
            "supervision_loss": supervision_loss,
            "supervision_weight": supervision_weight,
            "n_components": n_components,
            "init": init,
        }
        self.fingerprint = data_fingerprint(scaled(self.X, self.units.x), threads)
        self.inputs = fingerprints(
            {"X_weights": X_weights, "labels": labels, "penalties": penalties}
        )

    def fit(self, rng: np.random.Generator, loop: FitLoop, seed: Any) -> TensorFactorization:
        """Fit from a start that is drawn, or is given; the receipt has the seed of `rng`."""
        rank, relations, units = self.rank, self.relations, self.units
        factors = self._start(rng)
        kept = {} if isinstance(self.init, str) else zeros_that_stay(factors, rank)
        problem = Problem(factors, relations, kept, penalties=self.penalties)
        unreached = problem.unreached()
        if kept and unreached > 0:
            raise ValueError(
                "init has zeros, which stay, where X or labels are positive: the Kullback-Leibler "
                "divergence is infinite there. Add a small constant to its factors."
            )
        found = {name: F[:, :rank] for name, F in factors.items()}
        steps = loop.steps(problem)
        seen = Optimality(problem, stay=kept)
        run = loop.run(steps, lambda: found, units=units, unreached=unreached, optimality=seen)
        names = relations[0].names
        columns, weights, sizes, order = normalized([found[name] for name in names], self.loss)
        components = {
            k: np.ascontiguousarray((found[f"B{k}"] * sizes[k])[:, order].T) for k in self.labels
        }
        weights = np.ldexp(weights, units.x)
        result = TensorFactorization(
            columns, weights, components, run.objective, run.n_iter, run.converged
        )
        return self._with_receipt(result, run, loop, seed, kept)

    def _start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return the factors to start from, as the kernels hold them."""
        term, dtype, names = self.relations[0].term, self.X.dtype, self.relations[0].names
        of_X = self.X, self.X_weights, term, self.rank
        start = start_tensor(self.init, *of_X, rng, self.units.x)
        factors = {name: padded(F, dtype) for name, F in zip(names, start, strict=True)}
        for k, Y in self.labels.items():
            B = start_of_labels(self.init, k, start[k], Y, rng)
            factors[f"B{k}"] = padded(B.T, dtype)
        return factors

    def _with_receipt(
        self,
        result: TensorFactorization,
        run: Run,
        loop: FitLoop,
        seed: Any,
        kept: Mapping[str, Array],
    ) -> TensorFactorization:
        settings = {
            **self.settings,
            "solver": loop.solver,
            "max_iter": loop.max_iter,
            "tol": loop.tol,
            "random_state": seed,
            "zeros_stay": ",".join(sorted(kept)),
        }
        receipt = receipt_of(
            run,
            parts_of_tensor(result),
            self.threads,
            data=self.fingerprint,
            inputs=self.inputs,
            settings=settings,
            dtype=self.X.dtype,
            residuals=run.residuals,
        )
        return replace(result, receipt=receipt)


def _penalties(
    given: Any,
    shape: tuple[int, ...],
    modes: Mapping[str, int],
    labels: Mapping[int, Term],
    rank: int,
) -> dict[str, Penalties]:
    """Return the penalties of the factors by name, each times the entries that its rows meet.

    Factors of the data are given by their modes, and those of labels by their names.
    """
    size = prod(shape)
    of_modes = {k: (name, shape[k], size // max(shape[k], 1)) for name, k in modes.items()}
    of_labels = {f"B{k}": (f"B{k}", Y.shape[1], shape[k]) for k, Y in labels.items()}
    known, found = of_modes | of_labels, {}
    given = {} if given is None else given
    by_key = given if isinstance(given, Mapping) else dict.fromkeys(known, given)
    for key, each in by_key.items():
        mode = key if key in of_labels else check_mode(key, "a mode of penalties", len(shape))
        name, n_rows, meets = known[mode]
        title = name if key in of_labels else f"mode {mode}"
        listed = penalties_of_factor(each, title, n_rows, meets)
        if listed:
            found[name] = Penalties(listed, rank)
    return found
