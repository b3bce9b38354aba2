"""One fit of vbnmf.py: representation of train and test, k-NN, accuracies and sparsities."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Array
from vbnmf_documents import Documents

import ssnmf_fast as sf
from ssnmf_fast import metrics

PCA, UNSUPERVISED, SUPERVISED = "PCA", "unsupervised vbNMF", "supervised vbNMF"
ITERATIONS = 60
# The paper learns it, and warns of that.  Learned with rate_shape = 1000, rank 100, it becomes
# 0.015: a higher bound, and an accuracy of 0.61 instead of 0.71.
SHAPE_OF_A = 1.0
# The paper has no such factor.  Where documents carry little mass the priors outweigh them.
COUNT_SCALE = 2.0


class Task(NamedTuple):
    """A fit: method, rank, S_shape or rate_shape (PCA: 0), number of the random start."""

    method: str
    rank: int
    shape: float
    start: int


def measure(task: Task, documents: Documents) -> dict[str, Any]:
    """Fit once and return what is measured."""
    begin = perf_counter()
    measured = _pca(task, documents) if task.method == PCA else _bayesian(task, documents)
    return task._asdict() | measured | {"seconds": round(perf_counter() - begin, 2)}


def _pca(task: Task, documents: Documents) -> dict[str, Any]:
    from sklearn.decomposition import PCA as PrincipalComponents

    model = PrincipalComponents(task.rank, svd_solver="arpack", random_state=task.start)
    Z = model.fit_transform(documents.X)
    return accuracies(Z, model.transform(documents.X_test), documents)


def _bayesian(task: Task, documents: Documents) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "n_components": task.rank,
        "A_shape": SHAPE_OF_A,
        "count_scale": COUNT_SCALE,
        "init": "random",
        "max_iter": ITERATIONS,
        "tol": 0,
        "random_state": task.start,
        "n_threads": 1,
    }
    if task.method == SUPERVISED:
        model = sf.SupervisedBayesianNMF(rate_shape=task.shape, **settings)
        S = model.fit(documents.X, documents.classes).representation_
    else:
        model = sf.BayesianNMF(S_shape=task.shape, **settings)
        S = model.fit(documents.X).representation_
    measured = accuracies(S, model.transform(documents.X_test), documents)
    return measured | sparsities(S, documents) | {"bound": model.lower_bound_}


def sparsities(S: Array, documents: Documents) -> dict[str, float]:
    """Return Hoyer's sparsity of S and of its class sums (equations 12 and 13)."""
    between = metrics.inter_label_sparsity(S, documents.classes).score
    return {"sparsity": metrics.hoyer_sparsity(S), "inter_label": between}


def accuracies(S: Array, S_test: Array, documents: Documents) -> dict[str, float]:
    """Classify by k-NN with cosine similarity and majority vote, k the root of n_train."""
    from sklearn.metrics import accuracy_score, balanced_accuracy_score
    from sklearn.neighbors import KNeighborsClassifier

    k = round(np.sqrt(len(S)))
    neighbors = KNeighborsClassifier(k, metric="cosine", algorithm="brute", n_jobs=1)
    predicted = neighbors.fit(S, documents.classes).predict(S_test)
    return {
        "micro": accuracy_score(documents.classes_test, predicted),
        "macro": balanced_accuracy_score(documents.classes_test, predicted),
    }
