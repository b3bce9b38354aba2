"""Public calls of every family, for those scripts that time or compare all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import one_hot, start, zipf_text


def calls(folder: Path, size: int = 1) -> dict[str, Callable[[], Any]]:
    """Return public calls of a few tens of milliseconds each, or `size` times, with one thread."""
    import ssnmf_fast as sf
    from ssnmf_fast import linalg

    # Commits to compare with may have all names at the top level.
    papers, open_csr = getattr(sf, "papers", sf), getattr(sf, "io", sf).open_csr
    rank = {"n_components" if "n_components" in signature(sf.complete).parameters else "rank": 5}

    rng = np.random.default_rng(0)
    n = 2000 * size
    X, Y = zipf_text(n, 1500, 40), one_hot(n)
    small, labels = X[: 50 * size], Y.argmax(axis=1)
    sp.save_npz(folder / "X.npz", X, compressed=False)
    on_disk = open_csr(folder / "X.npz", memory=300_000)
    tensor = rng.random((40 * size, 50, 60))
    low_rank = rng.random((300 * size, 5)) @ rng.random((5, 200))
    low_rank[rng.random(low_rank.shape) < 0.5] = np.nan
    absent = sp.csr_array(rng.random(X.shape) < 0.1)
    counts = rng.poisson(rng.random((200, 5)) @ rng.random((5, 96)) * 10).astype(float)
    S, A, B = start(X, Y.shape[1], 10)
    frobenius, divergence = "frobenius", "kullback-leibler"
    fixed = {"tol": 0, "n_threads": 1}

    def fit(data: Any, iterations: int, *targets: Any, **more: Any) -> Callable[[], Any]:
        begin = (S[: data.shape[0]], A, B) if targets else (S[: data.shape[0]], A)
        settings = {"n_components": 10, "init": begin, "max_iter": iterations, **fixed, **more}
        return lambda: sf.factorize(data, *targets, **settings)

    def model(estimator: Any, y: Any = None) -> Callable[[], Any]:
        return lambda: estimator.fit(X, y)

    random = {"n_components": 10, "init": "random", "random_state": 0, "max_iter": 10, **fixed}
    few = random | {"n_components": 5}
    guided = {name: value for name, value in random.items() if name != "n_components"}
    guided["init"] = "random-acol"
    months = np.datetime64("2020-01", "M") + np.arange(n) // (100 * size)
    pairs = [(a, b) for a in (frobenius, divergence) for b in (frobenius, divergence)]
    return {
        **{
            f"factorize, {a}, labels {b}": fit(X, 10, Y, loss=a, supervision_loss=b)
            for a, b in pairs
        },
        **{f"factorize, {loss}": fit(X, 10, loss=loss) for loss in (frobenius, divergence)},
        "factorize, dense": fit(X.toarray(), 10),
        "factorize, dense, set-up and one iteration": fit(X.toarray(), 1),
        "factorize, dense, half missing": lambda: sf.factorize(low_rank, **random),
        "factorize, small": lambda: sf.factorize(counts, **few | {"max_iter": 100 * size}),
        "factorize, small, 20 starts": lambda: sf.factorize(counts, n_starts=20 * size, **few),
        "factorize, few samples": fit(small, 50),
        "factorize, a tenth missing": fit(X, 10, X_weights=sf.weights.missing(absent)),
        "factorize, a tenth missing, MU": fit(
            X, 10, X_weights=sf.weights.missing(absent), solver="mu"
        ),
        "factorize, observed entries": fit(X, 10, X_weights=sf.weights.observed(X != 0)),
        "factorize, on disk": lambda: sf.factorize(on_disk, **random),
        "represent": lambda: sf.represent(X, A, n_threads=1),
        "represent, Kullback-Leibler": lambda: sf.represent(small, A, loss=divergence, n_threads=1),
        "randomized_svd": lambda: linalg.randomized_svd(X, 10, random_state=0, n_threads=1),
        "complete": lambda: sf.complete(low_rank, **rank, max_iter=10, random_state=0, **fixed),
        "complete, structured": lambda: sf.complete(
            low_rank, **rank, method="structured-sirls", max_iter=10, random_state=0, **fixed
        ),
        "factorize_tensor": lambda: sf.factorize_tensor(tensor, **random),
        "BayesianNMF": model(sf.BayesianNMF(**random)),
        "SupervisedBayesianNMF": model(papers.SupervisedBayesianNMF(**random), labels),
        "SSNMFClassifier": model(sf.SSNMFClassifier(**random), labels),
        "SSNMFRegressor": model(sf.SSNMFRegressor(**random), labels.astype(float)),
        "TopicSupervisedNMF": model(sf.TopicSupervisedNMF(**guided), labels),
        "SeededTopics": model(sf.SeededTopics(random_state=0, max_iter=10, **fixed), labels),
        "MarginNMF": model(papers.MarginNMF(**random), labels),
        "ConstrainedNMF": model(papers.ConstrainedNMF(**random), labels),
        "NonnegativeCP": lambda: sf.NonnegativeCP(**random).fit(tensor),
        "DynamicTopics": lambda: sf.DynamicTopics(**random).fit(X, months),
        "LowRankImputer": lambda: sf.LowRankImputer(5, gamma_min=0.1, random_state=0).fit(low_rank),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(*calls(Path(temporary)), sep="\n")
