"""Files of a fit: model, tables, representation and report; and what is printed of it."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._persist.texts import VECTORIZER_NAME
from .._topics import Topic, numbered_names, real_terms
from ..report import Picture, Report, png, render
from ._class_scores import class_content, print_class_scores
from ._findings import PICTURE, draw_components, make_report
from ._fitted import Fitted
from ._folder import Results
from ._models import Model
from ._predictions import predictions, write_csv
from ._source import UsageError

MODEL_NAME = "model.npz"
METRICS_NAME = "metrics.json"
_TOPICS, _SHARES, _EXAMPLES = "topics.csv", "topic_classes.csv", "topic_examples.csv"
_PREDICTIONS, _REPRESENTATION = "predictions.csv", "representation.npy"
_OVER_TIME, _HEAT_MAP = "topics_over_time.csv", "topics_over_time.png"
_REPORT = "report.html"
FILES = {
    MODEL_NAME: "the model, for `ssnmf-fast predict` and ssnmf_fast.load",
    VECTORIZER_NAME: "vocabulary and idf, for `ssnmf-fast predict` and ssnmf_fast.load_vectorizer",
    _TOPICS: "top terms of every topic",
    _SHARES: "share of every class in a topic",
    _EXAMPLES: "samples that are typical of every topic",
    _PREDICTIONS: "one line per sample",
    _REPRESENTATION: "weights of the topics in every sample",
    METRICS_NAME: "sizes and measures",
    PICTURE: "the topics as images",
    _OVER_TIME: "prevalence of every topic in every slice of time",
    _HEAT_MAP: "the same as a picture",
    _REPORT: "all of it on one page: open this first",
}
SEPARATOR = ";"  # between the labels of a sample, unless another is given
HARDER = (
    "labels of `suggest` are of samples that are harder than others: on all samples the accuracy "
    "is usually higher than on the labeled ones"
)
_TERMS_PRINTED = 8
_NAME_TERMS = 3  # in the name of a topic over time
_IMAGES_PRINTED = 10  # topics that are better seen than listed
_LABEL_WIDTH = 32


def write_all(
    model: Model, fitted: Fitted, out: Results, options: Any
) -> tuple[Report, dict[str, Any]]:
    """Write every file; return what is reported, and the sizes and measures for JSON."""
    from .. import save

    report = make_report(model, fitted, options.terms)
    if options.more_labels and report.judged is not None:
        report = replace(report, remarks=[*report.remarks, HARDER])
    save(fitted.model, out.path(MODEL_NAME))
    if fitted.vectorizer is not None:
        fitted.vectorizer.save(out.path(VECTORIZER_NAME))
    separator, safe = options.label_separator or SEPARATOR, options.safe_csv
    _write_topics(out, fitted, report, safe)
    write_csv(out.path(_PREDICTIONS), *predictions(fitted, separator), safe=safe)
    np.save(out.path(_REPRESENTATION), fitted.model.representation_)
    pictures = draw_components(out, fitted, report.topics)
    if fitted.dated:
        pictures.append(_write_over_time(out, fitted.model, fitted.terms, safe))
    content = describe(model, fitted, report, separator)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    out.path(METRICS_NAME).write_text(text, encoding="utf-8")
    out.written(_REPORT, lambda: render(replace(report, pictures=pictures)).encode())
    return report, content


def _write_topics(out: Results, fitted: Fitted, report: Report, safe: bool) -> None:
    """Write terms, shares of the classes and examples of every topic."""
    topics = report.topics
    heads = ["topic", "name"] if any(topic.name for topic in topics) else ["topic"]

    def write(file: str, names: Sequence[Any], tables: Iterable[Iterable[Sequence[Any]]]) -> None:
        """Write the rows of every topic behind its number and, where topics have one, its name."""
        rows = (
            [*(getattr(topic, head) for head in heads), *row]
            for topic, table in zip(topics, tables, strict=True)
            for row in table
        )
        write_csv(out.path(file), [*heads, *names], rows, safe=safe)

    terms = ([(k, *pair) for k, pair in enumerate(real_terms(one), start=1)] for one in topics)
    write(_TOPICS, ("rank", "term", "weight"), terms)
    if topics[0].shares:
        shares = ([[share for _, share in topic.shares]] for topic in topics)
        write(_SHARES, [label for label, _ in topics[0].shares], shares)
    known = {
        "sample": True,
        "id": any(one.id for some in report.examples for one in some),
        "share": True,
        "label": fitted.labels is not None,
        "text": fitted.texts is not None,
    }
    names = [name for name, is_known in known.items() if is_known]
    examples = (
        [[rank, *(getattr(one, name) for name in names)] for rank, one in enumerate(some, start=1)]
        for some in report.examples
    )
    write(_EXAMPLES, ["rank", *names], examples)


def describe(model: Model, fitted: Fitted, report: Report, separator: str) -> dict[str, Any]:
    """Return sizes and measures, for JSON."""
    judged = report.judged
    by = None if judged is None else "validation" if judged.by_validation else "held-out samples"
    content: dict[str, Any] = {
        "model": model.name,
        "samples": int(fitted.X.shape[0]),
        "labeled": int(fitted.training.sum()),
        "held_out": int(fitted.held_out.sum()),
        "topics": len(report.topics),
        "iterations": int(fitted.model.n_iter_),
        "residual": fitted.residual,
        "seconds": round(fitted.seconds, 3),
        "topic_sizes": [round(topic.size or 0.0, 6) for topic in report.topics],
        "measures": {one.key: one.value for one in report.measures},
        "intervals": {one.key: list(one.interval) for one in report.measures if one.interval},
        "judged_by": by,
        "judged_samples": 0 if judged is None else len(judged.truth),
        "classes": class_content(judged),
        "settings": dict(fitted.settings),
        "warnings": report.warnings,
        "remarks": report.remarks,
    }
    if fitted.dated:
        content["slices"] = len(fitted.model.slices_)
        content["peaks"] = _peaks(fitted.model)
    if fitted.labels is not None and fitted.labels.several:
        content["label_separator"] = separator
    return content


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


def print_report(fitted: Fitted, report: Report) -> None:
    """Print figures, measures and topics."""
    print(", ".join(f"{name} {value}" for name, value in report.facts))
    for line in report.remarks:
        print(line)
    for measure in report.measures:
        print(f"{measure.name}: {measure.text}")
    for line in report.warnings:
        warnings.warn(line, stacklevel=2)
    print_class_scores(report.judged, _REPORT)
    _print_topics(report.topics, fitted.image_shape is None)
    if fitted.dated:
        _print_peaks(fitted.model, fitted.terms)


def _print_topics(topics: Sequence[Topic], terms: bool) -> None:
    """Print size, name or else class, and the first terms of every topic; fewer without terms."""
    print("\nTopics")
    more = 0 if terms else max(0, len(topics) - _IMAGES_PRINTED)
    topics = topics[: len(topics) - more]
    heads = [_head(topic) for topic in topics]
    width = min(max(map(len, heads)), _LABEL_WIDTH)
    for head, topic in zip(heads, topics, strict=True):
        words = [name for name, _ in real_terms(topic)[:_TERMS_PRINTED]] if terms else []
        print(f"  {head:<{width}}  {', '.join(words)}".rstrip())
    if more:
        print(f"  and {more} more")


def _head(topic: Topic) -> str:
    words = [str(topic.topic)]
    if topic.size is not None:
        words.append(f"({topic.size:.0%})")
    if topic.name:
        words.append(topic.name)
    else:
        words += [f"{name} {share:.0%}" for name, share in topic.leading[:1]]
    return " ".join(words)


def _write_over_time(out: Results, model: Any, terms: Any, safe: bool) -> Picture:
    """Write the prevalence of every topic in every slice of time, as a table and as a heat map."""
    from ..plotting import topics_over_time

    names = numbered_names(model.topics(terms, _NAME_TERMS))
    columns = zip(
        model.slices_.astype(str).tolist(),
        model.slice_sizes_.tolist(),
        model.prevalence_.tolist(),
        strict=True,
    )
    rows = ([start, size, *values] for start, size, values in columns)
    write_csv(out.path(_OVER_TIME), ["slice", "documents", *names], rows, safe=safe)
    drawn = out.written(_HEAT_MAP, lambda: png(topics_over_time(model, terms, n_terms=_NAME_TERMS)))
    caption = (
        f"How prevalent every topic is in {len(model.slices_)} slices of time, relative to its "
        "peak. Topics are in the order of their peaks; gray slices have no documents."
    )
    return Picture("Topics over time", caption, drawn)


def _peaks(model: Any) -> list[dict[str, Any]]:
    """Return the peak of every topic, for JSON."""
    return [
        {
            "topic": peak.topic,
            "slice": str(peak.slice),
            "prevalence": peak.prevalence,
            "concentration": round(peak.concentration, 6),
            "periodicity": None if math.isnan(peak.periodicity) else round(peak.periodicity, 6),
            "length": length,
        }
        for peak, length in zip(model.peaks(), model.lengths().tolist(), strict=True)
    ]


def _print_peaks(model: Any, terms: Any) -> None:
    """Print when every topic is most prevalent, the earliest first."""
    names = numbered_names(model.topics(terms, _NAME_TERMS))
    width = max(map(len, names))
    print("\nPeaks (share of the topic within one slice of its peak)")
    for peak in sorted(model.peaks(), key=lambda one: one.slice):
        print(f"  {names[peak.topic]:<{width}}  {peak.slice}  {peak.concentration:.0%}")
