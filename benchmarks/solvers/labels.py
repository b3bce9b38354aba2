"""What do the solvers do to predictions?  The four models on digits, half of the labels hidden.

For each number of iterations: mean accuracy on new samples and mean objective over random splits.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from common import D, F
from records import Options, Question, Record, pivot
from sklearn.datasets import load_digits

import ssnmf_fast as sf

LETTERS = {"F": F, "D": D}
TRAIN, SAMPLES = 600, 900


OPTIONS = {"solvers": ["mm", "hals", "auto"], "iterations": [20, 50, 100], "splits": 12}
QUICK = {"solvers": ["mm", "auto"], "iterations": [2], "splits": 1}


def measure(options: Options, model: str, iterations: int, solver: str, split: int) -> Record:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    order = np.random.default_rng(split).permutation(len(X))[:SAMPLES]
    train, test = order[:TRAIN], order[TRAIN:]
    losses = {"loss": LETTERS[model[1]], "supervision_loss": LETTERS[model[3]]}
    given: dict[str, Any] = {"n_components": 15, "supervision_weight": "balanced", "init": "random"}
    given |= {"readout": "joint", "solver": solver, "max_iter": iterations, "tol": 0}
    given |= {"random_state": split}
    known = np.where(np.arange(TRAIN) % 2, y[train], -1)
    fitted = sf.SSNMFClassifier(**given, **losses).fit(X[train], known)
    return {"accuracy": fitted.score(X[test], y[test]), "objective": fitted.objective_[-1][1]}


def report(records: list[Record], options: Options) -> str:
    def cell(own: list[Record]) -> str:
        accuracy = np.mean([r["accuracy"] for r in own])
        return f"{100 * accuracy:.1f} % ({np.mean([r['objective'] for r in own]):.0f})"

    return pivot(records, "model iterations", "solver", cell)


def cases(options: Options) -> Any:
    models = [f"({a},{b})" for a, b in product(LETTERS, LETTERS)]
    return product(models, options.iterations, options.solvers, range(options.splits))


QUESTION = Question("model iterations solver split", cases, measure, report, threads=None)
