"""What should TF-IDF be multiplied by, for models that take data as counts?

For several counts of the median entry: accuracy of nearest neighbors on the representation of
SupervisedBayesianNMF with few and with all labels, coherence (NPMI) of the topics of BayesianNMF
and how many of them are neither idle nor copies.  The last line of a collection has its raw counts.

    python benchmarks/checks/count_scale.py
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, blas_threads, markdown, new_parser, say
from text_sets import documents

import ssnmf_fast as sf

SETS = ("20 Newsgroups", "BBC", "Reuters")
TRAIN, TEST = 3000, 1500


def accuracy(X: Any, y: Array, share: float, rank: int, seed: int) -> float:
    """Return the accuracy in percent on new texts, a share of the others labeled."""
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    n_train = min(TRAIN, int(0.7 * len(y)))
    train, test = order[:n_train], order[n_train:][:TEST]
    known = rng.random(n_train) < share
    labels = np.where(known, y[train], None)
    model = sf.papers.SupervisedBayesianNMF(
        n_components=rank, count_scale=1, tol=0, random_state=seed, n_threads=1
    ).fit(X[train], labels)
    neighbors = KNeighborsClassifier(round(np.sqrt(known.sum())), metric="cosine")
    neighbors.fit(model.transform(X[train[known]]), y[train[known]])
    return float(100 * np.mean(neighbors.predict(model.transform(X[test])) == y[test]))


def topics(X: Any, rank: int, seed: int) -> tuple[float, int]:
    """Return coherence and number of distinct topics without labels."""
    model = sf.BayesianNMF(
        n_components=rank, count_scale=1, tol=0, random_state=seed, n_threads=1
    ).fit(X)
    A = model.components_[model.active_components_]
    rows = A / np.linalg.norm(A, axis=1, keepdims=True)
    copies = (np.tril(rows @ rows.T, -1) > 0.9).any(axis=1).sum()
    coherence = sf.metrics.topic_coherence(X, model.components_).score
    return coherence, len(A) - int(copies)


def row(name: str, median: float | None, options: argparse.Namespace) -> list[str]:
    """Measure one collection at one scale."""
    X, y = documents(name, "counts" if median is None else "tfidf")
    assert y is not None
    if median is not None:
        X = X * (median / np.median(X.data))
    cells = [name, "raw counts" if median is None else f"{median:g}"]
    for share in options.shares:
        scores = [accuracy(X, y, share, options.rank, seed) for seed in range(options.seeds)]
        cells.append(f"{np.mean(scores):.1f}")
    found = np.mean([topics(X, options.rank, seed) for seed in range(options.seeds)], axis=0)
    say(f"{cells} {found}")
    return [*cells, f"{found[0]:.3f}", f"{found[1]:.1f}"]


def main(arguments: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--medians", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 4, 16])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.05, 0.2, 1.0])
    parser.add_argument("--rank", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    with blas_threads(1):
        for name in options.data:
            for median in [*options.medians, None]:
                rows.append(row(name, median, options))
    shares = [f"accuracy, {100 * share:g} % labeled" for share in options.shares]
    print(markdown(["data", "median entry", *shares, "NPMI", "distinct topics"], rows))


if __name__ == "__main__":
    main()
