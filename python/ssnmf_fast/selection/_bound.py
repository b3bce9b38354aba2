"""Choosing a rank by the bound of a Bayesian model, which sees all data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.warn import IDLE, quietly
from .._data.threads import Stop
from ..estimators._bayesian import BayesianBase, BayesianNMF
from ._fits import fitted, refuse_both, require_no_start
from ._rank_choice import RankChoice
from ._search import Outcome, Search


@dataclass(frozen=True)
class _Whole:
    """All data, from which nothing is held out."""

    model: BayesianBase
    X: Any
    y: Any

    def run(self, rank: int, seed: int, threads: int, stop: Stop) -> Outcome:
        # More components than the data need are tried on purpose.
        model = quietly(IDLE, fitted, self.model, self.X, self.y, rank, seed, threads, stop)
        return Outcome(-model.lower_bound_, {"bound": model.lower_bound_}, model)


def choose_by_bound(
    X: Any,
    y: Any,
    model: Any,
    given: dict[str, Any],
    search: Search,
    rule: str,
    rng: np.random.Generator,
) -> RankChoice:
    """Fit a Bayesian model of every rank from several starts; keep that of the largest bound."""
    model = BayesianNMF() if model is None else model
    if not isinstance(model, BayesianBase):
        raise TypeError(
            "criterion 'bound' needs a BayesianNMF or SupervisedBayesianNMF as estimator, whose "
            f"bounds can be compared; got {type(model).__name__}."
        )
    refuse_both(model, {name: value for name, value in given.items() if value is not None})
    require_no_start(model)
    seeds = rng.integers(2**31 - 1, size=search.n_starts).tolist()
    bounds = np.empty((len(search.ranks), search.n_starts))
    best: Any = None
    for place, outcomes in enumerate(search.starts(_Whole(model, X, y), search.ranks, seeds)):
        for number, outcome in enumerate(outcomes):
            bounds[place, number] = outcome.measures["bound"]
            if best is None or outcome.objective < best.objective:
                best = outcome
    return RankChoice.of(search.ranks, bounds, "bound", rule, best_model=best.model)
