"""Table 6 of the SSNMF paper: which weight and tolerance are best on validation documents?

The paper's grid, its rule (see ssnmf_newsgroups.py, "as their program") and its splits: 60 % of the
documents are fitted, and the accuracy is that of 20 %.  The paper has ten trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from records import Options, Question, Record, grouped, markdown, mean_of
from ssnmf_models import MODELS, PROTOCOLS, fit, represent, split

WEIGHTS, TOLERANCES = (10.0, 100.0, 1000.0), (1e-4, 1e-3, 1e-2)
OPTIONS = {"trials": (3, "the paper: 10"), "models": (list(MODELS), "", MODELS)}
QUICK = {"trials": 1, "models": ["(D, F)"]}


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    yield from product(range(options.trials), options.models, WEIGHTS, TOLERANCES)


def measure(options: Options, trial: int, model: str, weight: float, tol: float) -> Record:
    part = split(options.quick, trial)[0]
    settings = MODELS[model]._replace(weight=weight, tol=tol)
    protocol = next(iter(PROTOCOLS.values()))
    result, updates = fit(part.X, part.Y, settings, protocol, trial)
    S = represent(part.X_held, result.A, settings.loss, trial + 1000)
    right = (S @ result.B).argmax(axis=1) == part.classes_held
    return {"accuracy": float(right.mean()), "updates": updates}


def report(records: list[Record], options: Options) -> str:
    rows = []
    for name, own in grouped(records, "model").items():
        cells = grouped(own, "weight", "tol")
        means = {case: np.mean([r["accuracy"] for r in these]) for case, these in cells.items()}
        best, printed = max(means, key=lambda case: means[case]), MODELS[name]
        theirs = cells[printed.weight, printed.tol]
        row = [name, f"{printed.weight:g}, {printed.tol:g}", mean_of(theirs, "accuracy", 100)]
        rows.append([*row, f"{best[0]:g}, {best[1]:g}", mean_of(cells[best], "accuracy", 100)])
    header = ["model", "paper's lambda, tol", "accuracy, %", "our best", "accuracy, %"]
    return f"Validation, {len(grouped(records, 'trial'))} trials:\n\n" + markdown(header, rows)


QUESTION = Question("trial model weight tol", cases, measure, report)
