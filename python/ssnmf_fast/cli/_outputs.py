"""Files of a fit: model, tables, representation and report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..report import Confusion, Measure, confusion
from ..report._missing import PLOT_HINT, MissingPackageError
from ._fitted import Fitted
from ._measures import Guess, as_json, coherence_measures, prediction_measures
from ._models import Model
from ._predictions import write_csv, write_predictions
from ._shares import with_shares
from ._text import FILE_NAME, Vectorizer

MODEL_NAME = "model.npz"
METRICS_NAME = "metrics.json"
_NEGLIGIBLE = 1e-6  # relative to the largest weight of the topic
_TERMS_PRINTED = 8
_LABEL_WIDTH = 32


class Results:
    """What is made of a fit: topics, predictions for the held-out samples, measures."""

    def __init__(self, model: Model, fitted: Fitted, n_terms: int) -> None:
        self.topics, self.shares_note = with_shares(fitted, n_terms)
        self.guess: Guess | None = None
        self.measures: list[Measure] = []
        if model.judge is not None and fitted.held_out.any():
            self.guess = model.judge(fitted)
            self.measures += prediction_measures(fitted, self.guess)
        for measure in (*model.measures, coherence_measures):
            self.measures += measure(fitted)

    def confusion(self, fitted: Fitted) -> Confusion | None:
        """Return the table of true and predicted classes, where there is one label a sample."""
        if self.guess is None or fitted.labels is None or fitted.labels.several:
            return None
        truth = fitted.labels.single()[fitted.held_out]
        return confusion(truth, self.guess.predicted, fitted.labels.without(fitted.held_out).names)


def write_all(
    model: Model, fitted: Fitted, folder: Path, vectorizer: Vectorizer | None, options: Any
) -> None:
    """Write every file into the folder and print what is where."""
    from .. import save

    results = Results(model, fitted, options.terms)
    save(fitted.model, folder / MODEL_NAME)
    files = [(MODEL_NAME, "the model, for `ssnmf-fast predict` and ssnmf_fast.load")]
    for name in (FILE_NAME, METRICS_NAME, "topic_classes.csv"):
        (folder / name).unlink(missing_ok=True)  # that of an earlier run would not fit
    if vectorizer is not None:
        vectorizer.save(folder / FILE_NAME)
        files.append((FILE_NAME, "vocabulary and idf, read by `ssnmf-fast predict`"))
    write_topics(folder / "topics.csv", results.topics)
    files.append(("topics.csv", "top terms of every topic"))
    if results.topics[0].shares:
        write_shares(folder / "topic_classes.csv", results.topics)
        files.append(("topic_classes.csv", "share of every class in a topic"))
    separator = getattr(options, "label_separator", None) or ";"
    write_predictions(folder / "predictions.csv", fitted, separator)
    files.append(("predictions.csv", "one line per sample"))
    np.save(folder / "representation.npy", fitted.model.representation_)
    files.append(("representation.npy", "weights of the topics in every sample"))
    write_metrics(folder / METRICS_NAME, model, fitted, results.measures)
    files.append((METRICS_NAME, "sizes and measures"))
    left_out = write_fit_report(folder / "report.html", fitted, results)
    if not left_out:
        files.append(("report.html", "all of it on one page: open this first"))
    _print_summary(fitted, results)
    print_files(folder, files, left_out)


def write_metrics(path: Path, model: Model, fitted: Fitted, measures: list[Measure]) -> None:
    """Write sizes and measures as JSON."""
    content = {
        "model": model.name,
        "samples": int(fitted.X.shape[0]),
        "labelled": int(fitted.training.sum()),
        "held_out": int(fitted.held_out.sum()),
        "topics": len(fitted.model.components_),
        "iterations": int(fitted.model.n_iter_),
        "seconds": round(fitted.seconds, 3),
        "measures": as_json(measures),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_topics(path: Path, topics: Any) -> None:
    """Write topic, its name where it has one, rank, term and weight."""
    named = any(topic.name for topic in topics)
    rows = (
        (topic.topic, *([topic.name] if named else []), rank, term, weight)
        for topic in topics
        for rank, (term, weight) in enumerate(real_terms(topic), start=1)
    )
    write_csv(path, ("topic", *(["name"] if named else []), "rank", "term", "weight"), rows)


def write_shares(path: Path, topics: Any) -> None:
    """Write the share of every class in every topic."""
    named = any(topic.name for topic in topics)
    names = ["topic", *(["name"] if named else []), *(label for label, _ in topics[0].shares)]
    rows = (
        [topic.topic, *([topic.name] if named else []), *(share for _, share in topic.shares)]
        for topic in topics
    )
    write_csv(path, names, rows)


def write_fit_report(path: Path, fitted: Fitted, results: Results) -> list[str]:
    """Write the report; return the names of the files that had to be left out."""
    from ..report import Report, write_report

    model, topics = fitted.model, results.topics
    table = results.confusion(fitted)
    by = results.guess.by if results.guess is not None else ""
    accuracies = [(f"{by} on the representation", table.accuracy)] if table and by else []
    report = Report(
        title="Topics and labels" if fitted.labels is not None else "Topics",
        lead=f"{type(model).__name__}, {len(topics)} topics, fitted to {fitted.settings[0][1]}.",
        facts=facts(fitted),
        settings=fitted.settings,
        objective=model.objective_,
        topics=topics,
        confusion=table,
        accuracies=accuracies,
        measures=results.measures,
        shares_note=results.shares_note,
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
        kind = "labels" if fitted.labels.several else "classes"
        pairs += [
            (kind, str(len(fitted.labels.names))),
            ("labelled", str(int(fitted.training.sum()))),
        ]
        if fitted.guided:
            pairs.append(("held out", str(int(fitted.held_out.sum()))))
    return [*pairs, ("iterations", str(model.n_iter_)), ("fit", f"{fitted.seconds:.2f} s")]


def _print_summary(fitted: Fitted, results: Results) -> None:
    print(", ".join(f"{name} {value}" for name, value in facts(fitted)))
    for measure in results.measures:
        print(f"{measure.name}: {measure.shown}")
    print_topics(results.topics)


def print_topics(topics: Any) -> None:
    """Print the name, or else the class, and the first terms of every topic."""
    print("\nTopics")
    labels = []
    for topic in topics:
        best = sorted(topic.shares, key=lambda pair: -pair[1])[:1]
        classes = [f"{name} {share:.0%}" for name, share in best if share > 0]
        words = [str(topic.topic), *([topic.name] if topic.name else classes)]
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
