"""Section 3 of the NMF-alpha paper: do labels help a reduction that precedes a linear classifier?

Three tasks (MNIST fours against nines, 20 Newsgroups, aviation safety reports), several shares of
labeled training rows, several ranks, five splits into training and validation rows, one test
part.  Every reduction sees all training rows; linear support vector machines are trained on the
labeled ones alone, mapped as the test rows are.  Their penalty, and the weight of the supervision,
are chosen by the validation rows, whose labels are known, as in the paper.

Since a choice among weights is in itself worth something, "NMF, chosen start" chooses among as many
random starts.  Remove the results after a change of the weights.  On one
core two rates and three ranks of MNIST take about 25 minutes, two ranks of 20 Newsgroups 12.

MNIST has pixels in [0, 1].  20 Newsgroups: all twenty groups, "bydate", without headers, footers
and quotes, TF-IDF.  Aviation: presence of 500 words in safety reports, 22 labels; the file names no
test part, so that one of the competition's size is drawn once.  Quick runs have made-up data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import NEWSGROUPS, Array, data_file, read_lines, stop_words, strip
from records import Options, Question, Record, grouped, markdown, mean_of, pivot
from sklearn.decomposition import PCA as Centered
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import ssnmf_fast as sf
from ssnmf_fast._labels import ClassLabels, Indicators
from ssnmf_fast.estimators._papers import dual_coefficients

ALPHA, MANY = "NMF-alpha", "NMF-alpha, 50 machines"
NMF, STARTS = "NMF", "NMF, chosen start"
PCA, LEE, CONSTRAINED, RAW = "PCA", "Lee et al.", "CNMF", "SVM on raw inputs"
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
class Data:
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

    data: Data
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
def plain_model(data: Data, split: int, rank: int, updates: int, start: int) -> sf.NMF:
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


METHODS: dict[str, Callable[[Case, int], Iterator[Candidate]]] = {
    ALPHA: margin,
    MANY: partial(margin, method=MANY),
    NMF: unsupervised,
    # From as many starts as NMF-alpha has weights: what mere choice is worth.
    STARTS: partial(unsupervised, starts=len(WEIGHTS[ALPHA])),
    PCA: principal,
    LEE: lee,
    CONSTRAINED: constrained,
    RAW: lambda case, rank: iter([(0.0, case.parts)]),
}


def possible(method: str, name: str, several: bool) -> bool:
    """CNMF needs classes, and many machines are of use where there are two."""
    return name == "mnist" if method == MANY else method != CONSTRAINED or not several


def score_of(data: Data, truth: Array, predicted: Array) -> float:
    if not data.multilabel:
        return float((truth == predicted).mean())
    kinds = ("macro", "micro")
    return float(np.mean([f1_score(truth, predicted, average=k, zero_division=0) for k in kinds]))


def classifier(data: Data, penalty: float, is_raw: bool) -> Any:
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


N_TERMS = 6000
AVIATION_TEST = 7077
TITLES = {
    "mnist": "MNIST, fours against nines: accuracy, %",
    "news": "20 Newsgroups: accuracy, %",
    "aviation": "Aviation reports: mean of macro and micro F-measure, x 100",
}
# Shares of labeled training rows: the paper's, and the 5 % of the others for MNIST too.
RATES = {"mnist": (0.02, 0.05, 0.1, 1.0), "news": (0.05, 0.1, 1.0), "aviation": (0.05, 0.1, 1.0)}
OPTIONS = {
    "data": (list(TITLES), "", TITLES),
    "splits": (5, "as many as in the paper"),
    "ranks": [20, 40, 80],
    "rates": ([float], "shares of labeled training rows"),
    "methods": (list(METHODS), "", METHODS),
    "updates": (100, "of every factorization"),
}
QUICK = {"splits": 1, "ranks": [3], "rates": [0.5], "updates": 10}


def mnist() -> Data:
    parts = []
    for name in ("mnist_train.npz", "mnist_t10k.npz"):
        with np.load(data_file(name)) as file:
            images, labels = file["images"], file["labels"]
        chosen = np.isin(labels, (4, 9))
        flat = images[chosen].reshape(int(chosen.sum()), -1) / 255.0
        parts += [sp.csr_matrix(flat), (labels[chosen] == 9).astype(int)]
    return Data("mnist", *parts)


def news() -> Data:
    """Return the twenty groups (11314 + 7532 posts, TF-IDF of 6000 terms)."""
    records = read_lines(NEWSGROUPS)
    names = sorted({record["label"] for record in records})
    vectorizer = TfidfVectorizer(
        token_pattern="[a-zA-Z]+", max_df=0.5, max_features=N_TERMS, stop_words=stop_words()
    )
    parts: list[Any] = []
    for part, convert in (("train", vectorizer.fit_transform), ("test", vectorizer.transform)):
        chosen = [record for record in records if record["split"] == part]
        parts.append(sp.csr_matrix(convert([strip(r["text"]) for r in chosen])))
        parts.append(np.array([names.index(record["label"]) for record in chosen]))
    return Data("news", *parts)


def aviation() -> Data:
    """Return the safety reports (21519 + 7077, presence of 500 words, 22 labels)."""
    with np.load(data_file("aviation_tmc2007_500.npz")) as file:
        words = np.ones(len(file["indices"]))
        shape = tuple(int(size) for size in file["shape"])
        X = sp.csr_matrix((words, file["indices"], file["indptr"]), shape=shape)
        Y = file["labels"].astype(int)
    order = np.random.default_rng(2007).permutation(shape[0])
    test, rest = order[:AVIATION_TEST], order[AVIATION_TEST:]
    return Data("aviation", X[rest], Y[rest], X[test], Y[test])


def made_up(name: str, n: int = 240, side: int = 8, seed: int = 0) -> Data:
    """Return small random data of the same kind: classes, many classes or several labels."""
    rng = np.random.default_rng(seed)
    kinds = {"mnist": 2, "news": 4, "aviation": 3}[name]
    profiles = rng.gamma(0.3, size=(kinds, side * side))
    if name == "aviation":
        y = (rng.random((n, kinds)) < 0.5).astype(int)
        means = y @ profiles
    else:
        y = rng.integers(kinds, size=n)
        means = profiles[y]
    X = sp.csr_matrix(rng.poisson(means + 0.3).astype(float))
    cut = 2 * n // 3
    return Data(name, X[:cut], y[:cut], X[cut:], y[cut:])


DATA: dict[str, Callable[[], Data]] = {"mnist": mnist, "news": news, "aviation": aviation}


@cache
def data_of(name: str, quick: bool) -> Data:
    return made_up(name) if quick else DATA[name]()


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    """Yield what belongs to the run, split by split; raw inputs have one rank only, 0."""
    for name in options.data:
        several = data_of(name, options.quick).multilabel
        rates = options.rates or RATES[name]
        grid = product(range(options.splits), [0, *options.ranks], rates, options.methods)
        for number, rank, rate, method in grid:
            if (rank == 0) == (method == RAW) and possible(method, name, several):
                yield name, options.updates, number, rank, rate, method


def measure(
    options: Options, data: str, updates: int, split: int, rank: int, rate: float, method: str
) -> Record:
    return judge(Case(data_of(data, options.quick), split, rate, updates), rank, method)


def scores(records: list[Record]) -> str:
    return pivot(records, "labeled method", "rank", lambda own: mean_of(own, "test", 100))


def differences(records: list[Record]) -> str:
    """Return how far NMF-alpha is above others, on the same splits, and in how many of them."""
    ours = {(r["rate"], r["rank"], r["split"]): r["test"] for r in records if r["method"] == ALPHA}

    def cell(theirs: list[Record]) -> str:
        pairs = [(ours.get((r["rate"], r["rank"], r["split"])), r["test"]) for r in theirs]
        above = [mine - other for mine, other in pairs if mine is not None]
        wins = sum(difference > 0 for difference in above)
        return f"{100 * np.mean(above):+.2f}, {wins} of {len(above)}" if above else ""

    return pivot([r for r in records if r["method"] != ALPHA], "labeled method", "rank", cell)


def weights(records: list[Record], method: str) -> str:
    """Return the mean test score of every weight, and in how many splits it was chosen."""
    rows = []
    for (labeled, rank), own in grouped(records, "labeled", "rank").items():
        times = Counter(record["weight"] for record in own)
        row = [labeled, str(rank)]
        for place, weight in enumerate(WEIGHTS[method]):
            score = np.mean([record["grid"][place]["test"] for record in own])
            row.append(f"{100 * score:.2f} ({times[weight]})")
        rows.append(row)
    return markdown(["labeled", "rank", *(f"{weight:g}" for weight in WEIGHTS[method])], rows)


def report(records: list[Record], options: Options) -> str:
    parts = []
    for name, own in grouped(records, "data").items():
        ranks = sorted({r["rank"] for r in own} - {0}) or [0]
        # Raw inputs are compared with every rank.
        listed = [
            {**r, "rank": rank, "labeled": f"{r['rate']:.0%}"}
            for rank in ranks
            for r in own
            if r["rank"] in (rank, 0)
        ]
        order = list(METHODS)
        listed.sort(key=lambda r: (r["rate"], order.index(r["method"]), r["rank"]))
        splits, updates = len({r["split"] for r in own}), own[0]["updates"]
        parts += [f"## {TITLES[name]}"]
        parts += [
            f"Mean (standard deviation) of the test scores of {splits} splits, {updates} updates."
        ]
        parts += [scores(listed)]
        methods = grouped(listed, "method")
        if ALPHA in methods and len(methods) > 1:
            parts += ["Mean difference, and splits in which NMF-alpha is better:"]
            parts += [differences(listed)]
        for method in [m for m in WEIGHTS if m in methods]:
            parts += [
                f"{method} by weight (1: as large in total as the data), and how often chosen:"
            ]
            parts += [weights(methods[method], method)]
    return "\n\n".join(parts)


QUESTION = Question("data updates split rank rate method", cases, measure, report)
