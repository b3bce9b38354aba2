"""What fits of the same data share, and one such fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_factor, check_integer, warn_of_rank
from .._data.fingerprint import data_fingerprint
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
from .._solver.known import Known, check_penalties
from .._solver.loop import FitLoop, Optimality, Run
from .._solver.penalties import require_scale
from .._solver.problem import problem_of
from .._solver.relations import Relation
from .._solver.result import Factorization, fingerprints
from .._solver.starts import start, start_B, zeros_that_stay
from .._solver.terms import Term
from .._solver.units import scaled
from .receipts import factors_of, receipt_of


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
        S_fixed: Any = None,
        A_fixed: Any = None,
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
        known = Known.of(X.shape, rank, X.dtype, **given, S_fixed=S_fixed, A_fixed=A_fixed)
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
                "S_fixed": S_fixed,
                "A_fixed": A_fixed,
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
