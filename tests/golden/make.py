"""Make the golden models of this version: files that every later version must read.

    python tests/golden/make.py

Run it once for each release, and keep what it writes: a folder named by the version.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import ssnmf_fast as sf

HERE = Path(__file__).parent


def data() -> dict[str, Any]:
    """Return data of integers, which no version of NumPy draws otherwise."""
    i, j = np.ogrid[:30, :8]
    X = ((i * 7 + j * 5) % 11 + (i % 3 == j % 3) * 6).astype(float)
    return {
        "X": X,
        "y": np.arange(30) % 3,
        "some": np.where(np.arange(30) % 2 == 0, np.arange(30) % 3, -1),
        "numbers": (np.arange(30) % 5).astype(float),
        "times": np.datetime64("2020-01", "M") + np.arange(30) // 5,
        "tensor": X.reshape(30, 4, 2),
        "holes": np.where((i + 2 * j) % 7 == 0, np.nan, X),
    }


def models() -> dict[str, Any]:
    """Return a fitted model of every class that can be saved."""
    d = data()
    fixed: dict[str, Any] = {"random_state": 0, "max_iter": 50, "tol": 0}
    X, y = d["X"], d["y"]
    readout = {"n_components": 3, "readout": "refit", "supervision_weight": 1.0, "self_training": 0}
    return {
        "NMF": sf.NMF(3, **fixed).fit(X),
        "SSNMFClassifier": sf.SSNMFClassifier(**readout, **fixed).fit(X, d["some"]),
        "SSNMFRegressor": sf.SSNMFRegressor(3, **fixed).fit(X, d["numbers"]),
        "TopicSupervisedNMF": sf.TopicSupervisedNMF(n_free_topics=1, **fixed).fit(X, d["some"]),
        "MarginNMF": sf.MarginNMF(3, **fixed).fit(X, y),
        "ConstrainedNMF": sf.ConstrainedNMF(3, **fixed).fit(X, d["some"]),
        "BayesianNMF": sf.BayesianNMF(3, **fixed).fit(X),
        "SupervisedBayesianNMF": sf.SupervisedBayesianNMF(3, **fixed).fit(X, y),
        "NonnegativeCP": sf.NonnegativeCP(2, **fixed).fit(d["tensor"]),
        "DynamicTopics": sf.DynamicTopics(2, **fixed).fit(X, d["times"]),
        "LowRankImputer": sf.LowRankImputer(2, gamma_min=0.01, random_state=0).fit(d["holes"]),
        "Factorization": sf.factorize(X, n_components=3, **fixed),
        "TensorFactorization": sf.factorize_tensor(d["tensor"], n_components=2, **fixed),
        "Completion": sf.complete(d["holes"], rank=2, random_state=0),
    }


def answers(model: Any) -> dict[str, Any]:
    """Return what a model gives for the data above."""
    d = data()
    X = {"NonnegativeCP": d["tensor"], "LowRankImputer": d["holes"]}.get(
        type(model).__name__, d["X"]
    )[:6]
    found = {}
    for name in ("transform", "predict", "predict_proba"):
        if hasattr(model, "fit") and hasattr(model, name):
            found[name] = np.asarray(getattr(model, name)(X))
    for name in ("S", "A", "left", "right", "weights", "prevalence_"):
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name))
    for mode, factor in enumerate(getattr(model, "factors", ())):
        found[f"factor_{mode}"] = np.asarray(factor)
    return found


def main() -> int:
    """Write a folder for this version, unless it is there."""
    folder = HERE / sf.__version__
    if folder.exists():
        print(f"{folder} is there: golden models of a version are made once", file=sys.stderr)
        return 1
    folder.mkdir()
    for name, model in models().items():
        sf.save(model, folder / f"{name}.npz")
        np.savez_compressed(folder / f"{name}.answers.npz", **answers(model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
