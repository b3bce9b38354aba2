"""Reductions of the dimension for nmf_alpha.py, and the linear classifiers that judge them.

Every reduction learns from all training rows, knows the labels of some, and then maps labeled,
validation and test rows by one and the same map, which sees no label.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array
from nmf_alpha_data import Data, Split

import ssnmf_fast as sf
from ssnmf_fast._labels import ClassLabels, Indicators
from ssnmf_fast.estimators._papers import dual_coefficients

ALPHA, MANY = "NMF-alpha", "NMF-alpha, 50 machines"
NMF, STARTS = "NMF", "NMF, chosen start"
PCA, LEE, CONSTRAINED, RAW = "PCA", "Lee et al.", "CNMF", "SVM on raw inputs"
# Penalties of the classifiers, times the mean squared length of the features.
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Weights of the supervision; 1 makes what it approximates as large in total as the data.  The grids
# were found on splits 0 and 1 at 5 % of labels.
WEIGHTS = {
    ALPHA: (0.1, 0.3, 1.0, 10.0, 1000.0),
    MANY: (0.3, 1.0, 3.0),
    LEE: (0.001, 0.01, 0.1, 1.0),
}
# Of the machines whose normal vectors are kept, on the same scale: one, or many with hard margins.
MACHINE_PENALTY, HARD_PENALTY = 1.0, 1000.0
# One machine keeps two directions; many, each from a few of the labeled rows, keep more.
MACHINES, ROWS_OF_A_CLASS = 50, 15


@dataclass(frozen=True, eq=False)
class Case:
    """One split at one rate of labels: what a method may see, and what judges it."""

    data: Data
    split: Split
    rate: float
    seed: int
    updates: int

    @cached_property
    def X(self) -> Any:
        """Return all training rows, the labeled ones first."""
        return self.data.X[self.split.order].astype(np.float32)

    @cached_property
    def labeled(self) -> Array:
        return self.split.labeled(self.rate)

    @cached_property
    def y(self) -> Array:
        """Return the labels of the training rows; -1, or a row of NaN, where unknown."""
        known = self.data.y[self.labeled]
        hidden = self.X.shape[0] - len(known)
        if self.data.multilabel:
            return np.vstack([known, np.full((hidden, known.shape[1]), np.nan)])
        return np.concatenate([known, np.full(hidden, -1)])

    @cached_property
    def parts(self) -> tuple[Any, Any, Any]:
        """Return labeled, validation and test rows."""
        X = self.data.X
        rows = X[self.labeled], X[self.split.validation], self.data.X_test
        labeled, validation, test = (part.astype(np.float32) for part in rows)
        return labeled, validation, test

    @cached_property
    def alpha(self) -> sp.csr_array:
        """Return the dual coefficients of the paper's machines."""
        return self._scaled(self._duals(self.y, MACHINE_PENALTY))

    @cached_property
    def alpha_of_many(self) -> sp.csr_array:
        """Return those of many machines, each trained on a few rows of both classes."""
        rng = np.random.default_rng([self.seed, len(self.labeled)])
        parts = []
        for _ in range(MACHINES):
            y = np.full(len(self.y), -1)
            for label in (0, 1):
                members = np.flatnonzero(self.y == label)
                y[rng.permutation(members)[:ROWS_OF_A_CLASS]] = label
            parts.append(self._duals(y, HARD_PENALTY))
        return self._scaled(sp.hstack(parts, format="csr"))

    def _duals(self, y: Array, penalty: float) -> sp.csr_array:
        targets: Any = Indicators(y) if self.data.multilabel else ClassLabels(y, -1)
        squares = float(self.parts[0].multiply(self.parts[0]).sum() / len(self.labeled))
        return dual_coefficients(self.X, targets, penalty / squares)

    def _scaled(self, alpha: sp.csr_array) -> sp.csr_array:
        """Scale so that alpha^T X sums to as much as X."""
        return sp.csr_array(alpha * (self.X.sum() / (alpha.T @ self.X).sum()))


Features = tuple[Array, Array, Array]
Candidate = tuple[float, Features]  # weight (or number of the start), features


def mapped(case: Case, model: Any) -> Features:
    """Return the features of labeled, validation and test rows."""
    labeled, validation, test = (np.asarray(model.transform(part)) for part in case.parts)
    return labeled, validation, test


def corrected(case: Case, model: Any) -> Features:
    """Return S (A A^T)^{1/2}, which has the inner products of the data (eq. 5)."""
    values, vectors = np.linalg.eigh(model.components_ @ model.components_.T)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    labeled, validation, test = (part @ root for part in mapped(case, model))
    return labeled, validation, test


def common_arguments(case: Case, rank: int, start: int = 0) -> dict[str, Any]:
    """Return what all factorizations are given: the same start and number of updates."""
    return {
        "n_components": rank,
        "init": "random",
        "max_iter": case.updates,
        "tol": 0,
        "random_state": 1000 * start + case.seed,
        "n_threads": 1,
    }


def margin_model(case: Case, rank: int, weight: float, many: bool = False) -> sf.papers.MarginNMF:
    """Fit NMF-alpha."""
    model = sf.papers.MarginNMF(supervision_weight=weight, **common_arguments(case, rank))
    return model.fit(case.X, alpha=case.alpha_of_many if many else case.alpha)


def margin(case: Case, rank: int) -> Iterator[Candidate]:
    for weight in WEIGHTS[ALPHA]:
        yield weight, mapped(case, margin_model(case, rank, weight))


def margin_of_many(case: Case, rank: int) -> Iterator[Candidate]:
    for weight in WEIGHTS[MANY]:
        yield weight, mapped(case, margin_model(case, rank, weight, many=True))


@lru_cache(maxsize=2 * len(WEIGHTS[ALPHA]))
def plain_model(data: Data, rows: Split, rank: int, updates: int, seed: int) -> sf.NMF:
    """Fit NMF, once for all rates of labels."""
    case = Case(data, rows, 1.0, 0, updates)
    arguments = common_arguments(case, rank) | {"random_state": seed}
    return sf.NMF(loss="kullback-leibler", **arguments).fit(case.X)


def unsupervised(case: Case, rank: int, starts: int = 1) -> Iterator[Candidate]:
    for number in range(starts):
        seed = common_arguments(case, rank, number)["random_state"]
        model = plain_model(case.data, case.split, rank, case.updates, seed)
        yield number, corrected(case, model)


def chosen_start(case: Case, rank: int) -> Iterator[Candidate]:
    """NMF from as many starts as NMF-alpha has weights: what mere choice is worth."""
    return unsupervised(case, rank, len(WEIGHTS[ALPHA]))


def principal(case: Case, rank: int) -> Iterator[Candidate]:
    """PCA of images; truncated singular vectors of text, which is not centered."""
    from sklearn.decomposition import PCA as Centered
    from sklearn.decomposition import TruncatedSVD

    if case.data.name == "mnist":
        model = Centered(rank, svd_solver="covariance_eigh")
    else:
        model = TruncatedSVD(rank, random_state=case.seed)
    yield 0.0, mapped(case, model.fit(case.X))


def lee(case: Case, rank: int) -> Iterator[Candidate]:
    ones = case.data.y[case.labeled].sum() if case.data.multilabel else len(case.labeled)
    scale = float(case.X.multiply(case.X).sum() / ones)
    for weight in WEIGHTS[LEE]:
        model = sf.SSNMFClassifier(
            loss="frobenius",
            supervision_loss="frobenius",
            supervision_weight=weight * scale,
            readout="joint",
            unlabeled=-1,
            **common_arguments(case, rank),
        )
        yield weight, corrected(case, model.fit(case.X, case.y))


def constrained(case: Case, rank: int) -> Iterator[Candidate]:
    model = sf.papers.ConstrainedNMF(unlabeled=-1, predicts=False, **common_arguments(case, rank))
    yield 0.0, corrected(case, model.fit(case.X, case.y))


def raw(case: Case, rank: int) -> Iterator[Candidate]:
    yield 0.0, case.parts


METHODS: dict[str, Callable[[Case, int], Iterator[Candidate]]] = {
    ALPHA: margin,
    MANY: margin_of_many,
    NMF: unsupervised,
    STARTS: chosen_start,
    PCA: principal,
    LEE: lee,
    CONSTRAINED: constrained,
    RAW: raw,
}


def possible(method: str, data: Data) -> bool:
    """CNMF needs classes, and many machines are of use where there are two."""
    if method == MANY:
        return data.name == "mnist"
    return method != CONSTRAINED or not data.multilabel


def judged(data: Data, truth: Array, predicted: Array) -> float:
    """Return the accuracy, or the mean of macro- and micro-averaged F-measure."""
    from sklearn.metrics import f1_score

    if not data.multilabel:
        return float((truth == predicted).mean())
    kinds = ("macro", "micro")
    return float(np.mean([f1_score(truth, predicted, average=k, zero_division=0) for k in kinds]))


def classifier(data: Data, penalty: float, is_raw: bool) -> Any:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=penalty, dual="auto" if is_raw else False, tol=1e-3, random_state=0)
    return OneVsRestClassifier(machine) if data.multilabel else machine


def classify(case: Case, features: Features, is_raw: bool) -> dict[str, float]:
    """Train on the labeled rows; choose the penalty by the validation rows, and score the test."""
    labeled, validation, test = features
    squares = labeled.multiply(labeled).sum() if is_raw else np.square(labeled).sum()
    unit = len(case.labeled) / max(float(squares), 1e-30)
    known, held = case.data.y[case.labeled], case.data.y[case.split.validation]
    best: dict[str, float] = {"validation": -1.0}
    for penalty in PENALTIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # large penalties may stop at the limit of iterations
            machine = classifier(case.data, penalty * unit, is_raw).fit(labeled, known)
        score = judged(case.data, held, machine.predict(validation))
        if score > best["validation"]:
            reached = judged(case.data, case.data.y_test, machine.predict(test))
            best = {"validation": score, "test": reached, "penalty": penalty}
    return best


def measure(case: Case, rank: int, method: str) -> dict[str, Any]:
    """Return what the candidate with the best validation score reaches, and the whole grid."""
    begin = perf_counter()
    grid = [
        {"weight": weight} | classify(case, features, method == RAW)
        for weight, features in METHODS[method](case, rank)
    ]
    best = max(grid, key=lambda entry: entry["validation"])
    seconds = round(perf_counter() - begin, 3)
    return best | {"grid": grid, "seconds": seconds, "labeled": len(case.labeled)}
