"""Reductions of the dimension for nmf_alpha.py, and the linear classifiers that judge them.

Every reduction learns from all training rows, knows the labels of some, and then maps labeled,
validation and test rows by one and the same map, which sees no label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array
from sklearn.decomposition import PCA as Centered
from sklearn.decomposition import TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import ssnmf_fast as sf
from ssnmf_fast._labels import ClassLabels, Indicators
from ssnmf_fast.estimators._papers import dual_coefficients

ALPHA, MANY = "NMF-alpha", "NMF-alpha, 50 machines"
NMF, STARTS = "NMF", "NMF, chosen start"
PCA, LEE, CONSTRAINED, RAW = "PCA", "Lee et al.", "CNMF", "SVM on raw inputs"
LDA = "LDA"
ONE_RANK = (RAW, LDA)  # which has no parameter
VALIDATION = 0.2  # of the documents that are not test
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


Features = tuple[Any, ...]  # of labeled, validation and test rows
Candidate = tuple[float, Features]  # weight (or number of the start), features


@dataclass(frozen=True, eq=False)
class Dataset:
    """A task: rows to train and validate on, and test rows that are the same in every split."""

    name: str
    X: Any
    y: Array  # classes, or the indicator matrix of several labels a row
    X_test: Any
    y_test: Array

    @property
    def multilabel(self) -> bool:
        return self.y.ndim == 2


@dataclass(frozen=True, eq=False)
class Case:
    """One split at one rate of labels: what a method may see, and what judges it."""

    data: Dataset
    seed: int  # number of the split
    rate: float
    updates: int

    @cached_property
    def split(self) -> tuple[Array, Array]:
        """Return the training rows in the order in which they get labels, and validation rows."""
        order = np.random.default_rng([self.seed, 2011]).permutation(self.data.X.shape[0])
        held = round(VALIDATION * len(order))
        return order[held:], order[:held]

    @cached_property
    def X(self) -> Any:
        """Return all training rows, the labeled ones first."""
        return self.data.X[self.split[0]].astype(np.float32)

    @cached_property
    def labeled(self) -> Array:
        """Return the labeled training rows, which have those of smaller rates among them."""
        order = self.split[0]
        return order[: max(2, round(self.rate * len(order)))]

    @cached_property
    def y(self) -> Array:
        """Return the labels of the training rows; -1, or a row of NaN, where unknown."""
        known = self.data.y[self.labeled]
        hidden = self.X.shape[0] - len(known)
        if self.data.multilabel:
            return np.vstack([known, np.full((hidden, known.shape[1]), np.nan)])
        return np.concatenate([known, np.full(hidden, -1)])

    @cached_property
    def parts(self) -> Features:
        X = self.data.X
        rows = X[self.labeled], X[self.split[1]], self.data.X_test
        return tuple(part.astype(np.float32) for part in rows)

    @cached_property
    def alpha(self) -> sp.csr_array:
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
        return sp.csr_array(alpha * (self.X.sum() / (alpha.T @ self.X).sum()))


def mapped(case: Case, model: Any) -> Features:
    return tuple(np.asarray(model.transform(part)) for part in case.parts)


def corrected(case: Case, model: Any) -> Features:
    """Return S (A A^T)^{1/2}, which has the inner products of the data (eq. 5)."""
    values, vectors = np.linalg.eigh(model.components_ @ model.components_.T)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return tuple(part @ root for part in mapped(case, model))


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


def margin(case: Case, rank: int, method: str = ALPHA) -> Iterator[Candidate]:
    alpha = case.alpha_of_many if method == MANY else case.alpha
    for weight in WEIGHTS[method]:
        model = sf.papers.MarginNMF(supervision_weight=weight, **common_arguments(case, rank))
        yield weight, mapped(case, model.fit(case.X, alpha=alpha))


@lru_cache(maxsize=2 * len(WEIGHTS[ALPHA]))
def plain_model(data: Dataset, split: int, rank: int, updates: int, start: int) -> sf.NMF:
    case = Case(data, split, 1.0, updates)
    arguments = common_arguments(case, rank, start)
    return sf.NMF(loss="kullback-leibler", **arguments).fit(case.X)


def unsupervised(case: Case, rank: int, starts: int = 1) -> Iterator[Candidate]:
    for number in range(starts):
        model = plain_model(case.data, case.seed, rank, case.updates, number)
        yield number, corrected(case, model)


def principal(case: Case, rank: int) -> Iterator[Candidate]:
    """PCA of images; truncated singular vectors of text, which is not centered."""
    if case.data.name == "mnist":
        model = Centered(rank, svd_solver="covariance_eigh")
    else:
        model = TruncatedSVD(rank, random_state=case.seed)
    yield 0.0, mapped(case, model.fit(case.X))


def lee(case: Case, rank: int) -> Iterator[Candidate]:
    ones = case.data.y[case.labeled].sum() if case.data.multilabel else len(case.labeled)
    scale = float(case.X.multiply(case.X).sum() / ones)
    for weight in WEIGHTS[LEE]:
        given: dict[str, Any] = {"loss": "frobenius", "supervision_loss": "frobenius"}
        given |= {"supervision_weight": weight * scale, "readout": "joint", "unlabeled": -1}
        model = sf.SSNMFClassifier(**given, **common_arguments(case, rank))
        yield weight, corrected(case, model.fit(case.X, case.y))


def constrained(case: Case, rank: int) -> Iterator[Candidate]:
    model = sf.papers.ConstrainedNMF(unlabeled=-1, predicts=False, **common_arguments(case, rank))
    yield 0.0, corrected(case, model.fit(case.X, case.y))


def discriminants(case: Case, rank: int) -> Iterator[Candidate]:
    """Linear discriminants of the labeled rows: one fewer than classes, or one for each label."""
    labeled, y = case.parts[0].toarray(), case.data.y[case.labeled]
    columns = y.T if case.data.multilabel else y[None]
    models = [LinearDiscriminantAnalysis().fit(labeled, column) for column in columns]
    yield 0.0, tuple(np.hstack([m.transform(p.toarray()) for m in models]) for p in case.parts)


METHODS: dict[str, Callable[[Case, int], Iterator[Candidate]]] = {
    ALPHA: margin,
    MANY: partial(margin, method=MANY),
    NMF: unsupervised,
    # From as many starts as NMF-alpha has weights: what mere choice is worth.
    STARTS: partial(unsupervised, starts=len(WEIGHTS[ALPHA])),
    PCA: principal,
    LEE: lee,
    CONSTRAINED: constrained,
    LDA: discriminants,
    RAW: lambda case, rank: iter([(0.0, case.parts)]),
}


def possible(method: str, name: str, several: bool) -> bool:
    """CNMF needs classes, and many machines are of use where there are two."""
    return name == "mnist" if method == MANY else method != CONSTRAINED or not several


def score_of(data: Dataset, truth: Array, predicted: Array) -> float:
    if not data.multilabel:
        return float((truth == predicted).mean())
    kinds = ("macro", "micro")
    return float(np.mean([f1_score(truth, predicted, average=k, zero_division=0) for k in kinds]))


def classifier(data: Dataset, penalty: float, is_raw: bool) -> Any:
    machine = LinearSVC(C=penalty, dual="auto" if is_raw else False, tol=1e-3, random_state=0)
    return OneVsRestClassifier(machine) if data.multilabel else machine


def classify(case: Case, features: Features, is_raw: bool) -> dict[str, float]:
    """Train on the labeled rows; choose the penalty by the validation rows, and score the test."""
    labeled, validation, test = features
    squares = labeled.multiply(labeled).sum() if is_raw else np.square(labeled).sum()
    unit = len(case.labeled) / max(float(squares), 1e-30)
    known, held = case.data.y[case.labeled], case.data.y[case.split[1]]
    best: dict[str, float] = {"validation": -1.0}
    for penalty in PENALTIES:
        machine = classifier(case.data, penalty * unit, is_raw).fit(labeled, known)
        score = score_of(case.data, held, machine.predict(validation))
        if score > best["validation"]:
            reached = score_of(case.data, case.data.y_test, machine.predict(test))
            best = {"validation": score, "test": reached, "penalty": penalty}
    return best


def judge(case: Case, rank: int, method: str) -> dict[str, Any]:
    """Return what the candidate with the best validation score reaches, and the whole grid."""
    begin = perf_counter()
    grid = [
        {"weight": weight} | classify(case, features, method == RAW)
        for weight, features in METHODS[method](case, rank)
    ]
    best = max(grid, key=lambda entry: entry["validation"])
    return best | {"grid": grid, "seconds": round(perf_counter() - begin, 3)}
