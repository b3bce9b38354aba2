"""Files of a fit: model, tables, representation and report."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..report._missing import PLOT_HINT, MissingPackageError
from ._text import FILE_NAME, Vectorizer

MODEL_NAME = "model.npz"
_NEGLIGIBLE = 1e-6  # relative to the largest weight of the topic
_TERMS_PRINTED = 8
_LABEL_WIDTH = 32


@dataclass(frozen=True)
class Fitted:
    """A fitted model and what it was fitted to."""

    model: Any
    X: Any
    labels: npt.NDArray[np.object_] | None
    held_out: npt.NDArray[np.bool_]
    terms: list[str] | None
    seconds: float
    settings: list[tuple[str, str]]


def write_all(fitted: Fitted, folder: Path, vectorizer: Vectorizer | None, n_terms: int) -> None:
    """Write every file into the folder and print what is where."""
    from .. import save
    from ..report import confusion

    model = fitted.model
    save(model, folder / MODEL_NAME)
    files = [(MODEL_NAME, "the model, for `ssnmf-fast predict` and ssnmf_fast.load")]
    (folder / FILE_NAME).unlink(missing_ok=True)  # that of an earlier run would not fit
    if vectorizer is not None:
        vectorizer.save(folder / FILE_NAME)
        files.append((FILE_NAME, "vocabulary and idf, read by `ssnmf-fast predict`"))
    topics = model.topics(fitted.terms, n_terms)
    write_topics(folder / "topics.csv", topics)
    files.append(("topics.csv", "top terms of every topic"))
    if fitted.labels is not None:
        write_shares(folder / "topic_classes.csv", topics)
        files.append(("topic_classes.csv", "share of every class in a topic"))
    predicted = write_predictions(folder / "predictions.csv", model, fitted)
    files.append(("predictions.csv", "one line per sample"))
    np.save(folder / "representation.npy", model.representation_)
    files.append(("representation.npy", "weights of the topics in every sample"))

    table = None
    if fitted.labels is not None and fitted.held_out.any():
        truth = fitted.labels[fitted.held_out].astype(str)
        table = confusion(truth, predicted[fitted.held_out], model.classes_)
    left_out = write_fit_report(folder / "report.html", fitted, topics, table)
    if not left_out:
        files.append(("report.html", "all of it on one page: open this first"))
    _print_summary(fitted, topics, table)
    print_files(folder, files, left_out)


def write_topics(path: Path, topics: Any) -> None:
    """Write topic, rank, term and weight."""
    rows = (
        (topic.topic, rank, term, weight)
        for topic in topics
        for rank, (term, weight) in enumerate(real_terms(topic), start=1)
    )
    write_csv(path, ("topic", "rank", "term", "weight"), rows)


def write_shares(path: Path, topics: Any) -> None:
    """Write the share of every class in every topic."""
    names = ["topic", *(label for label, _ in topics[0].shares)]
    write_csv(path, names, ([t.topic, *(share for _, share in t.shares)] for t in topics))


def write_predictions(path: Path, model: Any, fitted: Fitted) -> npt.NDArray[Any]:
    """Write the prediction of every sample (plain NMF: its topic) and return it."""
    if fitted.labels is None:
        S = model.representation_
        topics: npt.NDArray[Any] = S.argmax(axis=1)
        write_csv(path, ("sample", "topic", "weight"), _topic_rows(S))
        return topics
    scores = model.predict_proba(fitted.X)
    predicted = model.classes_[scores.argmax(axis=1)]
    known = [label is not None for label in fitted.labels]
    used = [
        "held out" if hidden else "training" if labelled else "unlabelled"
        for labelled, hidden in zip(known, fitted.held_out, strict=True)
    ]
    labels = ["" if label is None else label for label in fitted.labels]
    names = ["sample", "label", "used as", "prediction", *map(_score_name, model.classes_)]
    columns = zip(labels, used, predicted, scores.tolist(), strict=True)
    write_csv(path, names, ([i, a, b, c, *d] for i, (a, b, c, d) in enumerate(columns)))
    return np.asarray(predicted)


def write_new_predictions(path: Path, model: Any, X: Any) -> int:
    """Write predictions for new data; return the number of samples."""
    if not hasattr(model, "classes_"):
        write_csv(path, ("sample", "topic", "weight"), _topic_rows(model.transform(X)))
        return int(X.shape[0])
    scores = model.predict_proba(X)
    predicted = model.classes_[scores.argmax(axis=1)]
    names = ["sample", "prediction", *map(_score_name, model.classes_)]
    columns = zip(predicted, scores.tolist(), strict=True)
    write_csv(path, names, ([i, label, *row] for i, (label, row) in enumerate(columns)))
    return len(predicted)


def _topic_rows(S: npt.NDArray[Any]) -> Iterable[list[Any]]:
    return ([i, int(np.argmax(row)), float(np.max(row))] for i, row in enumerate(S))


def _score_name(label: Any) -> str:
    return f"score {label}"


def write_csv(path: Path, names: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; numbers in full precision of six digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])


def write_fit_report(path: Path, fitted: Fitted, topics: Any, table: Any) -> list[str]:
    """Write the report; return the names of the files that had to be left out."""
    from ..report import Report, write_report

    model = fitted.model
    report = Report(
        title="Topics and labels" if fitted.labels is not None else "Topics",
        lead=f"{type(model).__name__}, {len(topics)} topics, fitted to {fitted.settings[0][1]}.",
        facts=facts(fitted),
        settings=fitted.settings,
        objective=model.objective_,
        topics=topics,
        confusion=table,
    )
    path.unlink(missing_ok=True)
    try:
        write_report(path, report)
    except MissingPackageError:
        return [path.name]
    return []


def facts(fitted: Fitted) -> list[tuple[str, str]]:
    """Return the figures at the head of the report."""
    model = fitted.model
    pairs = [("samples", str(fitted.X.shape[0])), ("topics", str(len(model.components_)))]
    if fitted.labels is not None:
        labelled = sum(label is not None for label in fitted.labels)
        pairs += [
            ("classes", str(len(model.classes_))),
            ("labelled", str(labelled - int(fitted.held_out.sum()))),
            ("held out", str(int(fitted.held_out.sum()))),
        ]
    return [*pairs, ("iterations", str(model.n_iter_)), ("fit", f"{fitted.seconds:.2f} s")]


def _print_summary(fitted: Fitted, topics: Any, table: Any) -> None:
    print(", ".join(f"{name} {value}" for name, value in facts(fitted)))
    if table is not None:
        print(f"accuracy on {table.total} held-out samples: {table.accuracy:.1%}")
    print_topics(topics)


def print_topics(topics: Any) -> None:
    """Print the class and the first terms of every topic."""
    print("\nTopics")
    labels = []
    for topic in topics:
        best = sorted(topic.shares, key=lambda pair: -pair[1])[:1]
        words = [str(topic.topic), *(f"{name} {share:.0%}" for name, share in best)]
        labels.append(" ".join(words))
    width = min(max(map(len, labels)), _LABEL_WIDTH)
    for label, topic in zip(labels, topics, strict=True):
        terms = [name for name, _ in real_terms(topic)[:_TERMS_PRINTED]]
        print(f"  {label:<{width}}  {', '.join(terms)}")


def real_terms(topic: Any) -> list[tuple[str, float]]:
    """Return terms and weights of a topic without those whose weight is next to nothing."""
    least = _NEGLIGIBLE * max(topic.weights)
    pairs = zip(topic.terms, topic.weights, strict=True)
    return [(term, weight) for term, weight in pairs if weight > least]


def print_files(folder: Path, files: list[tuple[str, str]], left_out: list[str]) -> None:
    """Print where the results are, and what is missing for want of a package."""
    print("\nFiles")
    paths = [str(folder / name) for name, _ in files]
    width = max(map(len, paths))
    for path, (_, text) in zip(paths, files, strict=True):
        print(f"  {path:<{width}}  {text}")
    if left_out:
        print(f"  left out: {', '.join(left_out)}; to have them: {PLOT_HINT}")
