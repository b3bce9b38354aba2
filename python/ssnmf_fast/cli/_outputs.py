"""Files of a fit: model, tables, representation and report."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._topics import real_terms
from ..report import Example
from ._errors import UsageError
from ._findings import Findings, facts
from ._fit_report import PICTURE, SHARES, draw_components, write_fit_report
from ._fitted import Fitted
from ._folder import Results
from ._learning_curve import LearningCurve
from ._models import Model
from ._predictions import write_csv, write_predictions
from ._quality import as_json
from ._text import FILE_NAME, Vectorizer
from ._times import PICTURE as HEAT_MAP
from ._times import TABLE as OVER_TIME
from ._times import draw_over_time, peaks, print_peaks, write_over_time

MODEL_NAME = "model.npz"
METRICS_NAME = "metrics.json"
_TOPICS, _EXAMPLES = "topics.csv", "topic_examples.csv"
_PREDICTIONS, _REPRESENTATION = "predictions.csv", "representation.npy"
_REPORT = "report.html"
FILES = {
    MODEL_NAME: "the model, for `ssnmf-fast predict` and ssnmf_fast.load",
    FILE_NAME: "vocabulary and idf, read by `ssnmf-fast predict`",
    _TOPICS: "top terms of every topic",
    SHARES: "share of every class in a topic",
    _EXAMPLES: "samples that every topic explains best",
    _PREDICTIONS: "one line per sample",
    _REPRESENTATION: "weights of the topics in every sample",
    METRICS_NAME: "sizes and measures",
    PICTURE: "the topics as images",
    OVER_TIME: "prevalence of every topic in every slice of time",
    HEAT_MAP: "the same as a picture",
    _REPORT: "all of it on one page: open this first",
}
SEPARATOR = ";"  # between the labels of a sample, unless another is given


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
    if vectorizer is not None:
        vectorizer.save(out.path(FILE_NAME))
    _write_tables(out, fitted, results, options.safe_csv)
    separator = getattr(options, "label_separator", None) or SEPARATOR
    write_predictions(out.path(_PREDICTIONS), fitted, separator, safe=options.safe_csv)
    np.save(out.path(_REPRESENTATION), fitted.model.representation_)
    write_metrics(out.path(METRICS_NAME), model, fitted, results, separator)
    pictures = draw_components(out, fitted, results)
    if fitted.dated:
        pictures += draw_over_time(out, fitted.model, fitted.terms)
    if not write_fit_report(out.path(_REPORT), fitted, results, pictures):
        out.leave_out(_REPORT)
    out.finish()
    _print_summary(fitted, results)
    out.show()


def _write_tables(out: Results, fitted: Fitted, results: Findings, safe: bool) -> None:
    """Write what is known of the topics."""
    write_topics(out.path(_TOPICS), results.topics, safe=safe)
    if results.topics[0].shares:
        write_shares(out.path(SHARES), results.topics, safe=safe)
    if fitted.dated:
        write_over_time(out.path(OVER_TIME), fitted.model, fitted.terms, safe=safe)
    write_examples(
        out.path(_EXAMPLES),
        results.topics,
        results.examples,
        labels=fitted.labels is not None,
        texts=fitted.texts is not None,
        safe=safe,
    )


def write_metrics(
    path: Path, model: Model, fitted: Fitted, results: Findings, separator: str
) -> None:
    """Write sizes and measures as JSON."""
    judged = results.judged
    by = None if judged is None else "validation" if judged.by_validation else "held-out samples"
    content: dict[str, Any] = {
        "model": model.name,
        "samples": int(fitted.X.shape[0]),
        "labeled": int(fitted.training.sum()),
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
        "settings": dict(fitted.settings),
        "warnings": results.warnings,
        "remarks": results.remarks,
    }
    if fitted.dated:
        content["slices"] = len(fitted.model.slices_)
        content["peaks"] = peaks(fitted.model)
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
    except RecursionError as error:
        raise UsageError(
            f"{folder / METRICS_NAME} is not of `ssnmf-fast fit`: lists or objects too deep; fit "
            "again, or remove it"
        ) from error
    except (OSError, ValueError, KeyError, TypeError):  # a model of another origin
        return SEPARATOR


def _print_summary(fitted: Fitted, results: Findings) -> None:
    print(", ".join(f"{name} {value}" for name, value in facts(fitted)))
    for line in results.remarks:
        print(line)
    for measure in results.measures:
        print(f"{measure.name}: {measure.text}")
    for line in results.warnings:
        warnings.warn(line, stacklevel=2)
    if results.curve is not None:
        print(f"\nLearning curve: {results.curve.metric} on {results.curve.tested} samples")
        for line in results.curve.lines():
            print(f"  {line}")
    print_topics(results.topics, terms=fitted.image_shape is None)
    if fitted.dated:
        print_peaks(fitted.model, fitted.terms)


_TERMS_PRINTED = 8
_IMAGES_PRINTED = 10  # topics that are better seen than listed
_LABEL_WIDTH = 32


def write_topics(path: Path, topics: Any, *, safe: bool = False) -> None:
    """Write topic, its name where it has one, rank, term and weight."""
    rows = [
        [(rank, term, weight) for rank, (term, weight) in enumerate(real_terms(topic), start=1)]
        for topic in topics
    ]
    _write(path, topics, ("rank", "term", "weight"), rows, safe)


def write_shares(path: Path, topics: Any, *, safe: bool = False) -> None:
    """Write the share of every class in every topic."""
    names = [label for label, _ in topics[0].shares]
    rows = [[[share for _, share in topic.shares]] for topic in topics]
    _write(path, topics, names, rows, safe)


def write_examples(
    path: Path,
    topics: Any,
    found: list[list[Example]],
    *,
    labels: bool,
    texts: bool,
    safe: bool = False,
) -> None:
    """Write topic, its name where it has one, rank, sample and share; id, label, text if any."""
    ids = any(one.id for some in found for one in some)
    names = [
        "sample",
        *(["id"] if ids else []),
        "share",
        *(["label"] if labels else []),
        *(["text"] if texts else []),
    ]
    rows = [
        [
            [rank, *(getattr(example, name) for name in names)]
            for rank, example in enumerate(some, start=1)
        ]
        for some in found
    ]
    _write(path, topics, ["rank", *names], rows, safe)


def _write(path: Path, topics: Any, names: Sequence[Any], rows: Any, safe: bool) -> None:
    """Write the rows of every topic behind its number and, where topics have one, its name."""
    named = any(topic.name for topic in topics)
    heads = [[topic.topic, topic.name] if named else [topic.topic] for topic in topics]
    lines = ([*head, *row] for head, some in zip(heads, rows, strict=True) for row in some)
    write_csv(path, [*(["topic", "name"] if named else ["topic"]), *names], lines, safe=safe)


def print_topics(topics: Any, *, terms: bool = True) -> None:
    """Print size, name or else class, and the first terms of every topic; fewer without terms."""
    print("\nTopics")
    more = 0 if terms else max(0, len(topics) - _IMAGES_PRINTED)
    topics = list(topics)[: len(topics) - more]
    heads = [_head(topic) for topic in topics]
    width = min(max(map(len, heads)), _LABEL_WIDTH)
    for head, topic in zip(heads, topics, strict=True):
        words = [name for name, _ in real_terms(topic)[:_TERMS_PRINTED]] if terms else []
        print(f"  {head:<{width}}  {', '.join(words)}".rstrip())
    if more:
        print(f"  and {more} more")


def _head(topic: Any) -> str:
    words = [str(topic.topic)]
    if topic.size is not None:
        words.append(f"({topic.size:.0%})")
    if topic.name:
        words.append(topic.name)
    else:
        words += [f"{name} {share:.0%}" for name, share in topic.leading[:1]]
    return " ".join(words)
