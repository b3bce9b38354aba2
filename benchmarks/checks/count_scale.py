"""What should TF-IDF be multiplied by, for models that take data as counts?

For several counts of the median entry: accuracy of nearest neighbors on the representation of
SupervisedBayesianNMF with few and with all labels, coherence (NPMI) of the topics of BayesianNMF
and how many of them are neither idle nor copies.  The last line of a collection has its raw counts.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from common import Array
from records import Options, Question, Record, grouped, markdown
from sklearn.neighbors import KNeighborsClassifier
from text_sets import documents

import ssnmf_fast as sf

SETS = ("20 Newsgroups", "BBC", "Reuters")
TRAIN, TEST = 3000, 1500


def accuracy(X: Any, y: Array, share: float, rank: int, seed: int) -> float:
    """Return the accuracy in percent on new texts, a share of the others labeled."""
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
    model = sf.BayesianNMF(
        n_components=rank, count_scale=1, tol=0, random_state=seed, n_threads=1
    ).fit(X)
    A = model.components_[model.active_components_]
    rows = A / np.linalg.norm(A, axis=1, keepdims=True)
    copies = (np.tril(rows @ rows.T, -1) > 0.9).any(axis=1).sum()
    coherence = sf.metrics.topic_coherence(X, model.components_).score
    return coherence, len(A) - int(copies)


OPTIONS = {
    "data": (list(SETS), "", SETS),
    "medians": [0.1, 0.5, 1.0, 2.0, 4.0, 16.0],
    "shares": [0.05, 0.2, 1.0],
    "rank": 20,
    "seeds": 2,
}


def cases(options: Options) -> Any:
    return product(options.data, [*options.medians, None], [options.rank], range(options.seeds))


def measure(options: Options, data: str, median: float | None, rank: int, seed: int) -> Record:
    """Measure one collection at one scale; without a median, its raw counts."""
    X, y = documents(data, "counts" if median is None else "tfidf")
    if median is not None:
        X = X * (median / np.median(X.data))
    coherence, distinct = topics(X, rank, seed)
    scores = {f"{100 * s:g} %": accuracy(X, y, s, rank, seed) for s in options.shares}
    return {"accuracy": scores, "coherence": coherence, "distinct": distinct}


def report(records: list[Record], options: Options) -> str:
    rows = []
    for (data, median), own in grouped(records, "data", "median").items():
        rows.append([data, "raw counts" if median is None else f"{median:g}"])
        for share in own[0]["accuracy"]:
            rows[-1].append(f"{np.mean([r['accuracy'][share] for r in own]):.1f}")
        rows[-1].append(f"{np.mean([r['coherence'] for r in own]):.3f}")
        rows[-1].append(f"{np.mean([r['distinct'] for r in own]):.1f}")
    shares = [f"accuracy, {share} labeled" for share in records[0]["accuracy"]]
    return markdown(["data", "median entry", *shares, "NPMI", "distinct topics"], rows)


QUESTION = Question("data median rank seed", cases, measure, report)
