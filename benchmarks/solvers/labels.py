"""What do the solvers do to predictions?  The four models on digits, half of the labels hidden.

For each number of iterations: mean accuracy on new samples and mean objective over random splits.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import markdown

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
TRAIN, SAMPLES = 600, 900


def outcomes(losses: tuple[str, str], solver: str, iterations: int, splits: int) -> Any:
    """Return accuracy and objective, one row for each split."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    rows = []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(X))[:SAMPLES]
        train, test = order[:TRAIN], order[TRAIN:]
        model = sf.SSNMFClassifier(
            n_components=15,
            loss=losses[0],
            supervision_loss=losses[1],
            supervision_weight="balanced",
            init="random",
            readout="joint",
            solver=solver,
            max_iter=iterations,
            tol=0,
            random_state=split,
        )
        model.fit(X[train], np.where(np.arange(TRAIN) % 2, y[train], -1))
        rows.append((model.score(X[test], y[test]), model.objective_[-1][1]))
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solvers", nargs="+", default=["mm", "hals", "auto"])
    parser.add_argument("--iterations", nargs="+", type=int, default=[20, 50, 100])
    parser.add_argument("--splits", type=int, default=12)
    options = parser.parse_args()
    table = []
    for losses in itertools.product((F, D), (F, D)):
        for n in options.iterations:
            cells = []
            for solver in options.solvers:
                accuracy, objective = outcomes(losses, solver, n, options.splits).mean(axis=0)
                cells.append(f"{100 * accuracy:.1f} % ({objective:.0f})")
            name = ",".join("F" if loss == F else "D" for loss in losses)
            table.append([f"({name})", str(n), *cells])
    print(markdown(["model", "iterations", *options.solvers], table))


if __name__ == "__main__":
    main()
