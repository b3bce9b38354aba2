"""Files of a fit: model, tables, representation and report."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..report import Confusion, Example, Measure, Picture, confusion
from ..report._missing import PLOT_HINT, MissingPackageError
from ._examples import examples
from ._fitted import Fitted
from ._folder import Results
from ._judged import MODEL, judged
from ._learning_curve import LearningCurve
from ._measures import as_json, coherence_measures
from ._models import Model
from ._predictions import write_predictions
from ._quality import not_known, quality_measures, shortfalls
from ._shares import data_topics
from ._text import FILE_NAME, Vectorizer
from ._topic_tables import print_topics, write_examples, write_shares, write_topics

MODEL_NAME = "model.npz"
METRICS_NAME = "metrics.json"
_TOPICS, _CLASSES, _EXAMPLES = "topics.csv", "topic_classes.csv", "topic_examples.csv"
_PREDICTIONS, _REPRESENTATION = "predictions.csv", "representation.npy"
_PICTURE, _REPORT = "components.png", "report.html"
FILES = (
    *(MODEL_NAME, FILE_NAME, METRICS_NAME, _TOPICS, _CLASSES, _EXAMPLES),
    *(_PREDICTIONS, _REPRESENTATION, _PICTURE, _REPORT),
)
SEPARATOR = ";"  # between the labels of a sample, unless another is given


class Findings:
    """What is made of a fit: topics, predictions for the held-out samples, measures."""

    def __init__(
        self, model: Model, fitted: Fitted, n_terms: int, curve: LearningCurve | None = None
    ) -> None:
        self.described = data_topics(fitted, n_terms)
        self.topics = self.described.topics
        self.examples: list[list[Example]] = examples(fitted)
        self.judged = judged(fitted)
        self.curve = curve
        self.measures: list[Measure] = []
        self.warnings: list[str] = []
        self.remarks: list[str] = []
        if self.judged is not None:
            self.measures += quality_measures(self.judged)
            self.warnings += shortfalls(self.judged)
            if not self.judged.trained:
                self.remarks.append("no simple classifier stands beside it: the data are too large")
        elif model.targets is not None:
            self.remarks.append(not_known(fitted))
        for measure in (*model.measures, coherence_measures):
            self.measures += measure(fitted)

    def confusion(self) -> Confusion | None:
        """Return the table of true and predicted classes, where there is one label a sample."""
        if self.judged is None or self.judged.several:
            return None
        return confusion(self.judged.truth, self.judged.guesses[MODEL], self.judged.classes)


def write_all(
    model: Model,
    fitted: Fitted,
    out: Results,
    vectorizer: Vectorizer | None,
    options: Any,
    curve: LearningCurve | None = None,
) -> None:
    """Write every file, put them in place together, and print what is where."""
    from .. import save

    results = Findings(model, fitted, options.terms, curve)
    save(fitted.model, out.path(MODEL_NAME))
    files = [(MODEL_NAME, "the model, for `ssnmf-fast predict` and ssnmf_fast.load")]
    if vectorizer is not None:
        vectorizer.save(out.path(FILE_NAME))
        files.append((FILE_NAME, "vocabulary and idf, read by `ssnmf-fast predict`"))
    files += _write_tables(out, fitted, results, options.safe_csv)
    separator = getattr(options, "label_separator", None) or SEPARATOR
    write_predictions(out.path(_PREDICTIONS), fitted, separator, safe=options.safe_csv)
    files.append((_PREDICTIONS, "one line per sample"))
    np.save(out.path(_REPRESENTATION), fitted.model.representation_)
    files.append((_REPRESENTATION, "weights of the topics in every sample"))
    write_metrics(out.path(METRICS_NAME), model, fitted, results, separator)
    files.append((METRICS_NAME, "sizes and measures"))
    pictures, left_out = _draw_components(out, fitted, results)
    if pictures:
        files.append((_PICTURE, "the topics as images"))
    if write_fit_report(out.path(_REPORT), fitted, results, pictures):
        files.append((_REPORT, "all of it on one page: open this first"))
    else:
        out.drop(_REPORT)
        left_out.append(_REPORT)
    out.finish()
    _print_summary(fitted, results)
    print_files(out.folder, files, left_out)


def _write_tables(
    out: Results, fitted: Fitted, results: Findings, safe: bool
) -> list[tuple[str, str]]:
    """Write what is known of the topics; return the files."""
    write_topics(out.path(_TOPICS), results.topics, safe=safe)
    files = [(_TOPICS, "top terms of every topic")]
    if results.topics[0].shares:
        write_shares(out.path(_CLASSES), results.topics, safe=safe)
        files.append((_CLASSES, "share of every class in a topic"))
    write_examples(
        out.path(_EXAMPLES),
        results.topics,
        results.examples,
        labels=fitted.labels is not None,
        texts=fitted.texts is not None,
        safe=safe,
    )
    return [*files, (_EXAMPLES, "samples that every topic explains best")]


def write_metrics(
    path: Path, model: Model, fitted: Fitted, results: Findings, separator: str
) -> None:
    """Write sizes and measures as JSON."""
    judged = results.judged
    by = None if judged is None else "validation" if judged.by_validation else "held-out samples"
    content: dict[str, Any] = {
        "model": model.name,
        "samples": int(fitted.X.shape[0]),
        "labelled": int(fitted.training.sum()),
        "held_out": int(fitted.held_out.sum()),
        "topics": len(fitted.model.components_),
        "iterations": int(fitted.model.n_iter_),
        "seconds": round(fitted.seconds, 3),
        "topic_sizes": [round(topic.size or 0.0, 6) for topic in results.topics],
        "measures": as_json(results.measures),
        "intervals": {
            one.key: list(one.interval) for one in results.measures if one.interval is not None
        },
        "judged_by": by,
        "judged_samples": 0 if judged is None else len(judged.truth),
        "warnings": results.warnings,
        "remarks": results.remarks,
    }
    if results.curve is not None:
        content["learning_curve"] = results.curve.summary()
    if fitted.labels is not None and fitted.labels.several:
        content["label_separator"] = separator
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def separator_of(folder: Path) -> str:
    """Return what stands between the labels of a sample in the results of a fit."""
    try:
        content = json.loads((folder / METRICS_NAME).read_text(encoding="utf-8"))
        return str(content["label_separator"])
    except (OSError, ValueError, KeyError, TypeError):  # a model of another origin
        return SEPARATOR


def _draw_components(
    out: Results, fitted: Fitted, results: Findings
) -> tuple[list[Picture], list[str]]:
    """Draw topics that are images; return the picture, or the file that had to be left out."""
    if fitted.image_shape is None:
        return [], []
    from ..plotting import image_grid
    from ..report._pictures import png

    classes = [", ".join(str(name) for name, _ in topic.leading) for topic in results.topics]
    names = [f"{k} ({one})" if one else str(k) for k, one in enumerate(classes)]
    try:
        drawn = png(image_grid(fitted.model.components_, fitted.image_shape, names=names))
    except MissingPackageError:
        return [], [_PICTURE]
    out.path(_PICTURE).write_bytes(drawn)
    brackets = " and, in brackets, the classes that it stands for" if any(classes) else ""
    caption = f"Each with its number{brackets}. An image is approximated by a weighted sum of them."
    return [Picture("Components", caption, drawn)], []


def write_fit_report(
    path: Path, fitted: Fitted, results: Findings, pictures: list[Picture]
) -> bool:
    """Write the report; return whether the packages for it are there."""
    from ..report import Report, write_report

    model, topics, shape = fitted.model, results.topics, fitted.image_shape
    scores = [one for one in results.measures if one.interval is not None]
    if results.judged is not None and results.judged.several:
        scores = [one for one in scores if one.key.endswith("micro_f")]
    report = Report(
        title="Topics and labels" if fitted.labels is not None else "Topics",
        lead=f"{type(model).__name__}, {len(topics)} topics, fitted to {fitted.settings[0][1]}.",
        facts=facts(fitted),
        settings=fitted.settings,
        objective=model.objective_,
        topics=topics,
        confusion=results.confusion(),
        accuracies=[(_short_name(one), one.value) for one in scores],
        intervals=[one.interval for one in scores if one.interval is not None],
        accuracy_title="Micro F" if results.judged and results.judged.several else "Accuracy",
        accuracy_note=_accuracy_note(results),
        warnings=results.warnings,
        remarks=[_sentence(one) for one in results.remarks],
        measures=results.measures,
        pictures=[*_curve_picture(results.curve), *pictures],
        shares_note=results.described.note,
        class_counts=results.described.counts,
        examples=results.examples,
        parts=None if shape is None else model.components_.reshape(-1, *shape),
    )
    try:
        write_report(path, report)
    except MissingPackageError:
        return False
    return True


def _short_name(measure: Measure) -> str:
    return "this model" if measure.key in ("accuracy", "micro_f") else measure.name


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _accuracy_note(results: Findings) -> str:
    """Say what the scores were measured on."""
    if results.judged is None:
        return ""
    count = len(results.judged.truth)
    lines = "Lines: 95 % intervals."
    if results.judged.by_validation:
        return (
            f"By validation on {count} labelled samples: each is predicted by fits that did not "
            f"know its label. Expect about as much for new samples. {lines}"
        )
    return f"On {count} samples whose labels were hidden from the fit. {lines}"


def _curve_picture(curve: LearningCurve | None) -> list[Picture]:
    if curve is None:
        return []
    from ..report import learning_picture

    values = {
        name: [(score.value, score.low, score.high) for score in scores]
        for name, scores in curve.scores.items()
    }
    try:
        drawn = learning_picture(curve.sizes, values, curve.metric)
    except MissingPackageError:
        return []
    caption = (
        f"Fits with growing numbers of labels, judged on {curve.tested} samples whose labels none "
        "of them has seen; 95 % intervals. Where the curve still rises, more labels help."
    )
    return [Picture("Learning curve", caption, drawn)]


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
        if fitted.held_out.any():
            pairs.append(("held out", str(int(fitted.held_out.sum()))))
    return [*pairs, ("iterations", str(model.n_iter_)), ("fit", f"{fitted.seconds:.2f} s")]


def _print_summary(fitted: Fitted, results: Findings) -> None:
    print(", ".join(f"{name} {value}" for name, value in facts(fitted)))
    for line in results.remarks:
        print(line)
    for measure in results.measures:
        print(f"{measure.name}: {measure.shown}")
    for line in results.warnings:
        warnings.warn(line, stacklevel=2)
    if results.curve is not None:
        print(f"\nLearning curve: {results.curve.metric} on {results.curve.tested} samples")
        for line in results.curve.lines():
            print(f"  {line}")
    print_topics(results.topics, terms=fitted.image_shape is None)


def print_files(folder: Path, files: list[tuple[str, str]], left_out: list[str]) -> None:
    """Print where the results are, and what is missing for want of a package."""
    print("\nFiles")
    paths = [str(folder / name) for name, _ in files]
    width = max(map(len, paths))
    for path, (_, text) in zip(paths, files, strict=True):
        print(f"  {path:<{width}}  {text}")
    if left_out:
        print(f"  left out: {', '.join(left_out)}; to have them: {PLOT_HINT}")
