"""Models of a release with what they give: written once for each release, read by every later one.

    python tests/golden/golden_models.py

writes `tests/golden/VERSION`, which is committed when the version is released and never changed
afterwards: a later version has to read what its users have.  The folders `texts` and `ratings` are
those of the command.
"""

from __future__ import annotations

import csv
import io
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import ssnmf_fast as sf
from ssnmf_fast.cli import main

HERE = Path(__file__).resolve().parent
ROWS, COLUMNS, NEW = 30, 16, 6
FITTED: dict[str, Any] = {"n_components": 3, "max_iter": 30, "tol": 1e-4, "random_state": 0}
KL: dict[str, Any] = {**FITTED, "loss": "kullback-leibler"}
NAMES = np.array(["space", "sport", "größe ☃"])
DAYS = np.datetime64("2001-12-30") + np.arange(ROWS)
METHODS = ("transform", "predict", "predict_proba", "decision_function")
TEXTS = ["cat dog pet", "dog cat mat", "pet cat vet", "bank stock", "bank price", "price stock"] * 3
KINDS = ["pets", "pets", "", "money", "money", ""] * 3


def counts() -> tuple[np.ndarray, np.ndarray]:
    """Return counts of three kinds of samples, and the kinds."""
    rng = np.random.default_rng(0)
    kinds = np.arange(ROWS + NEW) % 3
    topics = rng.dirichlet(np.full(COLUMNS, 0.2), size=3)
    return rng.poisson(40 * topics[kinds] + 0.3).astype(float), kinds


def models(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Fit every class that `save` takes, and each form of its files."""
    names = NAMES[y]
    several = np.column_stack([y == 0, y > 0]).astype(int)
    tensor = X[:, :12].reshape(ROWS, 4, 3)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    yield "nmf", sf.NMF(**KL).fit(X)
    yield "nmf_float32", sf.NMF(**FITTED).fit(X.astype(np.float32))
    yield "nmf_batches", sf.NMF(**FITTED).partial_fit(X[:15]).partial_fit(X[15:])
    yield "classifier", sf.SSNMFClassifier(**FITTED, init="labels").fit(X, names)
    yield "classifier_numbers", sf.SSNMFClassifier(**FITTED, init="labels").fit(X, y)
    yield "classifier_several", sf.SSNMFClassifier(**FITTED, init="labels").fit(X, several)
    few_labels = sf.FewLabelsClassifier(max_iter=30, random_state=0)
    yield "few_labels", few_labels.fit(X, names)
    yield "few_labels_several", clone(few_labels).fit(X, several)
    joint = sf.SSNMFClassifier(**FITTED, supervision_weight=1.0, readout="joint")
    classes = list(NAMES)
    yield "classifier_batches", joint.partial_fit(X[:15], names[:15], classes=classes)
    yield "regressor", sf.SSNMFRegressor(**FITTED, supervision_weight=1.0).fit(X, y + 0.5)
    yield "topic_supervised", sf.TopicSupervisedNMF(random_state=0, max_iter=30).fit(X, names)
    yield "margin", sf.papers.MarginNMF(**FITTED).fit(X, names)
    yield "constrained", sf.papers.ConstrainedNMF(**FITTED).fit(X, names)
    yield "bayesian", sf.BayesianNMF(**FITTED).fit(X)
    yield "bayesian_supervised", sf.papers.SupervisedBayesianNMF(**FITTED).fit(X, names)
    yield "dynamic", sf.DynamicTopics(**KL, freq="week").fit(X, DAYS)
    cp = sf.NonnegativeCP(**KL)
    yield "cp", cp.fit(tensor, y={0: np.eye(3)[y]})
    yield "cp_batches", sf.NonnegativeCP(**FITTED, stream_mode=0).partial_fit(tensor)
    paths = [f"far/{name}" if kind else "near" for name, kind in zip(names, y, strict=True)]
    yield "hierarchical", sf.HierarchicalClassifier(clone(few_labels)).fit(X, paths)
    yield "nmf_split", sf.trees.split_topic(sf.NMF(**KL).fit(X), 0, 2, X)
    seeds = {name: [int(X[y == kind].sum(axis=0).argmax())] for kind, name in enumerate(NAMES)}
    yield "seeded", sf.SeededTopics(seeds, max_iter=30, n_free_topics=1, random_state=0).fit(X)
    smooth = [sf.penalties.L1(1e-3), sf.penalties.L2(1e-3)]
    yield "nmf_penalties", sf.NMF(**KL, penalties=smooth, fixed_components=X[:1]).fit(X)
    features = np.where(np.arange(COLUMNS)[:, None] < 4, np.eye(2)[np.arange(COLUMNS) % 2], np.nan)
    yield "factorization_features", sf.factorize(X, feature_labels=features, **KL)
    yield "imputer", sf.LowRankImputer(n_components=2, random_state=0, gamma_min=0.1).fit(holes)
    recommender = sf.Recommender(3, neighbors="auto", random_state=0)
    yield "recommender", recommender.fit(X)
    yield "factorization", sf.factorize(sp.csr_array(X), np.eye(3)[y], **KL)
    yield "tensor_factorization", sf.factorize_tensor(tensor, y={0: np.eye(3)[y]}, **FITTED)
    yield "consensus", sf.consensus(X, 3, n_starts=6, loss=KL["loss"], random_state=0)
    triplets = (*np.nonzero(~np.isnan(holes)), holes[~np.isnan(holes)])
    yield (
        "completion",
        sf.complete(triplets, n_components=2, gamma_min=0.1, biases=True, random_state=0),
    )


def given_by(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a model must give for new samples, by name."""
    if isinstance(model, sf.results.Factorization):
        parts = {"S": model.S, "A": model.A}
        parts |= {name: F for name in "BC" if (F := getattr(model, name)) is not None}
        return {**parts, "objective": np.array([value for _, value in model.objective])}
    if isinstance(model, sf.results.TensorFactorization):
        places = np.array([[0, 29], [1, 3], [2, 0]])
        return {"predict": model.predict(places), "labels": model.label_components[0]}
    if isinstance(model, sf.results.Completion):
        return {"dense": model.to_dense(), "predict": model.predict([0, 5], [3, 3])}
    if isinstance(model, sf.NonnegativeCP):
        X = X[:, :12].reshape(NEW, 4, 3)
    given: dict[str, np.ndarray] = {}
    for name in METHODS:
        if hasattr(model, name):
            given[name] = np.asarray(getattr(model, name)(X))
    if hasattr(model, "interval_components"):
        given["lower"], given["upper"] = model.interval_components()
    if hasattr(model, "peaks"):
        given["prevalence"] = model.prevalence_
        given["slices"] = model.slices_.astype(str)
        given["peaks"] = np.array([repr(peak) for peak in model.peaks()])
    if hasattr(model, "feature_names_in_"):
        given["feature_names"] = model.feature_names_in_
    return given


def missing_rows(X: np.ndarray) -> np.ndarray:
    """Return new rows in which some entries are missing, for the imputer."""
    return np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, np.nan, X)


def table(rows: list[list[str]]) -> str:
    """Return the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def run(*arguments: object) -> None:
    """Run the command, which must succeed."""
    if main([*map(str, arguments), "--quiet"]):
        raise RuntimeError(f"ssnmf-fast {arguments} failed")


def write_command(folder: Path) -> None:
    """Keep of two folders of the command what `predict` reads, new data and its answer."""
    rng = np.random.default_rng(0)
    ratings = [
        [f"u{u}", f"i{i}", f"{3 + (u % 3 - 1) * (i % 2) + rng.normal() / 4:.2f}"]
        for u in range(12)
        for i in range(8)
        if rng.random() < 0.7
    ]
    cases: dict[str, tuple[list[list[str]], list[list[str]], list[object]]] = {
        "texts": (
            [["text", "kind"], *map(list, zip(TEXTS, KINDS, strict=True))],
            [["text"], ["a cat and a dog"], ["the price of the stock"]],
            ["--text", "text", "--labels", "kind", "--min-df", 1, "--test-size", 0],
        ),
        "ratings": (
            [["user", "item", "rating"], *ratings],
            [["user", "item"], ["u3", "i5"], ["u11", "i0"]],
            ["--rank", 1, "--test-size", 0],
        ),
    }
    for name, (rows, new, options) in cases.items():
        kept = folder / name
        kept.mkdir()
        (kept / "new.csv").write_text(table(new), encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            data, out = Path(scratch) / "data.csv", Path(scratch) / "out"
            data.write_text(table(rows), encoding="utf-8")
            if name == "texts":
                words = Path(scratch) / "words.txt"
                words.write_text("the\nand\n", encoding="utf-8")
                options = [*options, "--stop-words", words]
            run("fit" if name == "texts" else "complete", data, *options, "--out", out)
            for file in ("model.npz", "vectorizer.json"):
                if (out / file).exists():
                    shutil.copy(out / file, kept / file)
            run("predict", kept, kept / "new.csv", "--out", kept / "expected.csv")


def write(folder: Path) -> None:
    """Write all models of this version, new samples, and what the models give for them."""
    if folder.exists():
        sys.exit(f"{folder} is there: the models of a version are written once")
    folder.mkdir()
    X, y = counts()
    X, new, y = X[:ROWS], X[ROWS:], y[:ROWS]
    expected: dict[str, np.ndarray] = {"new": new}
    for name, model in models(X, y):
        sf.save(model, folder / f"{name}.npz")
        samples = missing_rows(new) if name == "imputer" else new
        expected |= {f"{name}/{key}": value for key, value in given_by(model, samples).items()}
    np.savez_compressed(folder / "expected.npz", **expected)
    write_command(folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # fits of so few iterations do not converge
    write(HERE / (sys.argv[1] if len(sys.argv) > 1 else sf.__version__))
