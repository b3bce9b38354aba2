"""What ``ssnmf-fast fit`` reports of a fit: printed, in files, and on a page."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.text import command_line, shorten, sort_naturally
from .._persist.io import save_with_notes
from .._persist.texts import VECTORIZER_NAME, write_vectorizer
from .._topics import Topics, class_means, numbered_names, real_terms
from ..estimators import TopicTree
from ..plotting import image_grid
from ..report import Example, Names, Picture, Summary, Table
from ..report.evaluation import REGRESSION, SVC, explain_no_estimate, format_score, values_of
from ..report.shares import ClassShare
from ..selection import RankChoice
from ._models import FittedModel, measure
from ._options import for_json, warn
from ._outputs import (
    METRICS_NAME,
    MODEL_NAME,
    PAGE_NAME,
    ResultsFolder,
    default_out,
    list_probabilities,
    make_predictions,
    make_table,
)

_PREDICTIONS, CURVE = "predictions.csv", "ranks.png"
FILES = {
    MODEL_NAME: "the model, for `ssnmf-fast predict` and ssnmf_fast.load",
    VECTORIZER_NAME: "vocabulary and idf, for `predict` and ssnmf_fast.io.load_vectorizer",
    "topics.csv": "top terms of every topic",
    "topic_classes.csv": "share of every class in a topic",
    "topic_examples.csv": "typical samples of every topic",
    "codes.csv": "every code: coded, predicted, and its share of all samples",
    "codes_by.csv": "the same for every value of other columns",
    _PREDICTIONS: "one line per sample",
    "probabilities.csv": "the same with the probabilities of all codes",
    "representation.npy": "weights of the topics in every sample",
    METRICS_NAME: "sizes and measures",
    "components.png": "the topics as images",
    CURVE: "how well numbers of topics predict words",
    "topics_over_time.csv": "prevalence of every topic in every slice of time",
    "topics_over_time.png": "the same as a picture",
    "words_over_time.csv": "words of every topic in every slice, and those that increase there",
    "classes_over_time.csv": "prevalence of every topic in every class and slice",
}
_DIGITS, _MOVED = 4, 0.05  # of a share; a difference of shares that is told
_ENOUGH = 10  # held-out samples of every class, to compute shares from them alone
_LEAST, _MAIN = 0.01, 0.5  # least share of an example, also relative to the largest of its topic
_CHECKED = 20  # predictions listed on the page
# Options that `suggest` takes too.
_SHARED = ["text", "labels", "more_labels", "label_separator", "unlabeled", "id", "stop_words"]
_SHARED += ["format", "encoding", "delimiter", "quoting"]
_NAME_TERMS = 3  # in the name of a topic over time
_TERMS_PRINTED, _IMAGES_PRINTED, _CLASSES_PRINTED, _LONGEST_NAME = 8, 10, 20, 32


def write_all(fit: FittedModel, summary: Summary, out: ResultsFolder, options: Namespace) -> None:
    """Write the model and every table."""
    model = fit.model
    notes = {"label_separator": fit.separator, "id": options.id}  # for `predict`
    notes |= {"least": fit.sure[0]} if fit.target else {}
    save_with_notes(model, out.path(MODEL_NAME), notes)
    if (vectorizer := fit.vectorizer) is not None:
        write_vectorizer(out.path(VECTORIZER_NAME), *vectorizer)
    _write_topics(out, fit, summary)
    out.write_csv(_PREDICTIONS, *make_predictions(fit))
    np.save(out.path("representation.npy"), model.representation_)
    if fit.predicts:
        out.write_csv("probabilities.csv", *make_table(fit.ids, list_probabilities(fit)))
        out.write_rows("codes.csv", map(_row, summary.codes))
        if fit.groups:
            shares = (
                {"column": column, "value": group, **_row(share)}
                for column, groups in fit.groups.items()
                for group in sort_naturally([*set(groups)])
                for share in fit.shares_of_codes(np.array(groups) == group)
            )
            out.write_rows("codes_by.csv", shares)
    if (topics := fit.over_time) is not None:
        for part, name in (("prevalence", "topics"), ("words", "words"), ("classes", "classes")):
            out.write_rows(f"{name}_over_time.csv", topics.to_rows(part))  # type: ignore[arg-type]


def _row(share: ClassShare) -> dict[str, Any]:
    """Return a row of the tables of codes, None where a share is not known."""
    shares = {name: round(getattr(share, name), _DIGITS) for name in ("share", "low", "high")}
    return dict(for_json(share._asdict() | shares))


def _list_pictures(fit: FittedModel, summary: Summary) -> list[Picture]:
    pictures, model, shape = list[Picture](), fit.model, fit.image_shape
    if shape is not None:
        labels = [", ".join(str(name) for name, _ in row) for row in summary.leading]
        names = [f"{k} ({label})" if label else str(k) for k, label in enumerate(labels)]
        also = " and main classes" if any(labels) else ""
        caption = f"With their numbers{also}. Each image is approximated by a weighted sum of them."
        grid = partial(image_grid, model.components_, shape, names=names)
        pictures.append(Picture("Components", caption, "components.png", grid))
    if (choice := getattr(model, "rank_choice_", None)) is not None:
        pictures.append(curve_of(choice))
    if (topics := fit.over_time) is not None:
        caption = (
            f"Prevalence of every topic in {len(topics.slices)} slices of time, relative to its "
            "peak. Topics are sorted by peak; gray slices have no documents."
        )
        plot = partial(topics.plot, n_terms=_NAME_TERMS)
        pictures.append(Picture("Topics over time", caption, "topics_over_time.png", plot))
    return pictures


def curve_of(choice: RankChoice) -> Picture:
    """Return the curve of scores by number of topics."""
    caption = f"The {choice.label} for every number of topics"
    if choice.criterion == "bound":
        caption += ": the largest of all starts; points are single starts"
    elif choice.scores.shape[1] > 1:
        caption += ": means of the splits, with one standard error; points are single splits"
    caption += "; any number in the shaded range will do" * (choice.criterion == "words")
    better = "Larger" if choice.larger_is_better else "Smaller"
    return Picture("Number of topics", f"{caption}. {better} is better.", CURVE, choice.plot)


def summarize(fit: FittedModel, options: Namespace, issued: Sequence[str]) -> Summary:
    """Return what a fit found, with its warnings, to which those of its scores are added."""
    evaluation, labels, model = fit.evaluation, fit.labels, fit.model
    labeled, shape, tree = int(fit.training.sum()), fit.image_shape, ""
    measures, remarks = measure(fit), list[str]()
    if evaluation is not None:
        measures = [*evaluation.measures(), *measures]
        for line in evaluation.shortfalls():
            warn(line)
        if not {SVC, REGRESSION} & evaluation.predictions.keys():
            remarks.append("not compared with a simple classifier: the data are too large")
    if fit.target is not None and fit.coded.any():
        remarks.append(describe_sure(fit))
    if evaluation is None and fit.guided and labels is not None:
        remarks.append(explain_no_estimate(model, labeled, len(labels.names)))
    if getattr(model, "class_prior", "labels") is None and labels is not None:
        shares = fit.indicators[fit.training].mean(axis=0)
        if np.abs(model.class_prior_ - shares).max() > _MOVED:
            what = "classes have other shares among all samples than among the labels"
            remarks.append(f"{what} (see the codes); if you know them, see --class-prior")
    topics, note, counts = describe_topics(fit, options.terms)
    if any("/" in topic.name for topic in topics):  # names of subtopics, such as "grain/wheat"
        with suppress(ValueError):  # a topic and its subtopics
            tree = str(TopicTree(model, fit.terms))
    facts: dict[str, Any] = {"samples": fit.X.shape[0], "topics": len(topics)}
    if labels is not None:
        facts |= {"labels" if labels.several else "classes": len(labels.names), "labeled": labeled}
        if fit.held_out.any():
            facts["held out"] = int(fit.held_out.sum())
    if (topics_in_time := fit.over_time) is not None:
        facts["slices of time"] = len(topics_in_time.slices)
        if "freq" not in options.given:
            remarks.append(f"length of slices by the span of the dates: {fit.freq}; see --freq")
        remarks += topics_in_time.notes
    facts |= {name: number for name, number in fit.odd_texts.items() if number}
    details: dict[str, Any] = {"iterations": model.n_iter_}
    if fit.residual is not None:
        details["residual"] = f"{fit.residual:.1e}"
    details |= {"dtype": str(model.components_.dtype), "fit": f"{fit.seconds:.2f} s"}
    settings, names_given = fit.settings, [name.replace("_", " ") for name in options.given]
    summary = Summary(
        title="Topics and labels" if labels is not None else "Topics",
        lead=f"{type(model).__name__}, {len(topics)} topics, fitted to {fit.size}.",
        facts=facts,
        settings={name: value for name, value in settings.items() if name in names_given},
        details=details,
        other_settings={name: value for name, value in settings.items() if name not in names_given},
        objective=model.objective_,
        topics=topics,
        shares_note=note,
        class_counts=counts,
        codes=fit.shares_of_codes() if fit.predicts else (),
        examples=find_examples(fit),
        parts=() if shape is None else [*model.components_.reshape(-1, *shape)],
        steps=_list_steps(fit, options),
        tables=_list_to_check(fit),
        **({} if evaluation is None else evaluation.shown),
        measures=measures,
        warnings=[*issued],
        remarks=remarks,
        tree=tree,
    )
    numbers, pictures = _list_numbers(fit, summary, options), _list_pictures(fit, summary)
    return replace(summary, numbers=numbers, pictures=pictures)


def describe_sure(fit: FittedModel) -> str:
    """Return how many predictions have the target accuracy, and how many are to check by hand."""
    count, unsure, right = int(fit.coded.sum()), len(fit.to_check), "none by validation"
    if (score := fit.sure[1]) is not None:
        estimate = "{:.1%} by validation, 95% interval {:.1%} to {:.1%}".format(*score)
        right = f"{count - unsure} of {count} predictions ({estimate})"
    return f"at least {fit.target:.0%} right: {right}; {unsure} to check by hand"


def _list_to_check(fit: FittedModel) -> list[Table]:
    """Return a table of the least sure predictions."""
    if not fit.predicts or not len(samples := fit.to_check):
        return []
    rows, ids, texts = list[Names](), fit.ids, fit.texts
    names, second = fit.predictions, fit.name_second()
    for k in samples[:_CHECKED].tolist():
        cells = k if ids is None else ids[1][k], "" if texts is None else shorten(texts[k])
        rows.append([*map(str, cells), names[k], f"{fit.certainty[k]:.2f}", second[k]])
    note = f"The {len(rows)} least sure of {len(samples)} predictions"
    note += " to check" * (fit.target is not None)
    heads = ("Sample", "Text", "Predicted", "Probability", "Second")
    return [("Check by hand", f"{note}; all are in {_PREDICTIONS}.", heads, rows)]


def _list_steps(fit: FittedModel, options: Namespace) -> list[tuple[str, list[str]]]:
    """Return what to do next, and the commands for it."""
    labels, steps = fit.labels, list[tuple[str, list[str]]]()
    if fit.predicts and (count := len(fit.to_check)):
        what = "the" if fit.target is None else f"the {count}"
        what = f"Check {what} least sure predictions by hand: see below, and {_PREDICTIONS}."
        steps.append((what, []))
    if labels is not None and not labels.known.all() and hasattr(fit.model, "suggest"):
        number = len(options.more_labels or ())
        table = default_out(options.data, f"-to-label{number + 1 if number else ''}.csv")
        words = ["ssnmf-fast", "suggest", options.data]
        for name in [name for name in _SHARED if name in options.given]:
            for value in np.atleast_1d(getattr(options, name)):
                words += [f"--{name.replace('_', '-')}", str(value)]
        command = command_line(["ssnmf-fast", "fit", options.data, "...", "--more-labels", table])
        what = "For a higher accuracy, label the samples that help most, in a table to fill in:"
        steps.append((what, [command_line([*words, "--out", table]), command]))
    return steps


def describe_topics(fit: FittedModel, n_terms: int) -> tuple[Topics, str, list[int]]:
    """Return topics with sizes and, with labels, shares of the classes; a note on these; counts."""
    topics: Topics = fit.model.topics(fit.terms, n_terms)
    topics = topics.with_sizes(fit.amounts.sum(axis=0))
    labels, held_out = fit.labels, fit.held_out
    if labels is None:
        return topics, "", []
    samples, reason = labels.known, "with labels"
    if fit.guided and (labels.indicators()[held_out].sum(axis=0) >= _ENOUGH).all():
        samples, reason = held_out, "whose labels were hidden from the fit"
    note = (
        "How strongly each class uses the topic, in percent (rows add up to 100): the mean share "
        "of the topic in samples of the class, so that small classes count as much as large ones. "
        f"Computed from the {samples.sum()} samples {reason} (their numbers are in parentheses), "
        "represented without their labels."
    )
    if fit.guided and (samples & fit.training).any():
        note += " The fit has seen labels of these samples; shares are less clear for new samples."
    if labels.several:
        note += " A sample with several labels is split evenly between them."
    names = sort_naturally(labels.names)
    members = labels.indicators(names)[samples]
    topics = topics.with_shares(names, class_means(fit.shares[samples], members))
    return topics, note, members.sum(axis=0).astype(int).tolist()


def find_examples(fit: FittedModel, count: int = 3) -> list[list[Example]]:
    """Return typical samples of every topic."""
    from sklearn.metrics.pairwise import cosine_similarity

    shares, similarities = fit.shares, cosine_similarity(fit.scaled, fit.model.components_)
    labels = fit.labels.text("; ") if fit.labels is not None else [""] * len(shares)
    ids = None if fit.ids is None else fit.ids[1]
    examples = []
    for share, cosine in zip(shares.T, similarities.T, strict=True):
        by_text: dict[str, Example] = {}
        candidates = np.flatnonzero(share >= max(_LEAST, _MAIN * share.max()))
        for sample in candidates[np.lexsort((-share[candidates], -cosine[candidates]))].tolist():
            if len(by_text) == count:
                break
            text, image = "" if fit.texts is None else shorten(fit.texts[sample]), None
            if fit.image_shape is not None:
                row = fit.X[[sample]]
                row = np.asarray(row.toarray() if sp.issparse(row) else row)
                image = row.reshape(fit.image_shape)
            name = "" if ids is None else str(ids[sample])
            example = Example(sample, float(share[sample]), labels[sample], text, image, name)
            by_text.setdefault(text or str(sample), example)
        examples.append(list(by_text.values()))
    return examples


def _write_topics(out: ResultsFolder, fit: FittedModel, summary: Summary) -> None:
    topics, examples = summary.topics, summary.examples
    heads = ["topic", "name"] if any(topic.name for topic in topics) else ["topic"]
    starts = [[getattr(topic, head) for head in heads] for topic in topics]
    terms = (
        [*start, rank, *pair]
        for start, topic in zip(starts, topics, strict=True)
        for rank, pair in enumerate(real_terms(topic), start=1)
    )
    out.write_csv("topics.csv", [*heads, "rank", "term", "weight"], terms)
    if topics[0].shares:
        classes = [label for label, _ in topics[0].shares]
        shares = ([share for _, share in topic.shares] for topic in topics)
        rows = (start + row for start, row in zip(starts, shares, strict=True))
        out.write_csv("topic_classes.csv", [*heads, *classes], rows)
    names = ["sample"] + ["id"] * any(sample.id for row in examples for sample in row) + ["share"]
    names += ["label"] * (fit.labels is not None) + ["text"] * (fit.texts is not None)
    rows_of_examples = (
        [*start, rank, *(getattr(sample, name) for name in names)]
        for start, row in zip(starts, examples, strict=True)
        for rank, sample in enumerate(row, start=1)
    )
    out.write_csv("topic_examples.csv", [*heads, "rank", *names], rows_of_examples)


def _list_numbers(fit: FittedModel, summary: Summary, options: Namespace) -> dict[str, Any]:
    """Return sizes and measures, for programs."""
    evaluation = fit.evaluation
    judge = evaluation and ("validation" if evaluation.by_validation else "held-out samples")
    scores = [score._asdict() for score in summary.class_scores]
    numbers: dict[str, Any] = {
        "model": options.model,
        "samples": int(fit.X.shape[0]),
        "labeled": int(fit.training.sum()),
        "held_out": int(fit.held_out.sum()),
        "topics": len(summary.topics),
        "iterations": int(fit.model.n_iter_),
        "residual": fit.residual,
        "seconds": round(fit.seconds, 3),
        "topic_sizes": [round(topic.size or 0.0, 6) for topic in summary.topics],
        **values_of(summary.measures),
        "judged_by": judge,
        "judged_samples": 0 if evaluation is None else len(evaluation.truth),
        "classes": {score.pop("name"): score for score in scores},
        "codes": [*map(_row, summary.codes)],
        "settings": fit.settings,
        **({"odd_texts": fit.odd_texts} if fit.odd_texts else {}),
        "warnings": summary.warnings,
        "remarks": summary.remarks,
    }
    if (topics := fit.over_time) is not None:
        numbers["slices"] = len(topics.slices)
        numbers["peaks"] = [
            peak._asdict()
            | {"slice": str(peak.slice), "length": length}
            | {name: round(getattr(peak, name), 6) for name in ("concentration", "periodicity")}
            for peak, length in zip(topics.peaks(), topics.lengths().tolist(), strict=True)
        ]
    if fit.labels is not None and fit.labels.several:
        numbers["label_separator"] = fit.separator
    return numbers


def print_summary(fit: FittedModel, summary: Summary) -> None:
    facts = {**summary.facts, **summary.details}
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    for line in [*summary.remarks, *(f"{score.name}: {score.text}" for score in summary.measures)]:
        print(line)
    if codes := summary.codes:
        form = "{}|{}|{:.1%}|{:.1%} to {:.1%}".format
        texts = [form(*code[1:]).replace("nan% to nan%", "-").split("|") for code in codes]
        rows = [(code.code, text, code.share) for code, text in zip(codes, texts, strict=True)]
        print_classes("Codes", ("labeled", "predicted", "share", "95% interval"), rows)
    if scores := summary.class_scores:
        rows = [(s[0], [*map(format_score, s[1:4]), str(s[4])], s.samples) for s in scores]
        print_classes("Classes", ("precision", "recall", "F", "samples"), rows)
    print("\nTopics")
    terms = fit.image_shape is None
    topics = summary.topics if terms else summary.topics[:_IMAGES_PRINTED]
    heads = []
    for topic, classes in zip(topics, summary.leading, strict=False):
        size = "" if topic.size is None else f" ({topic.size:.0%})"
        leading = " ".join(f"{name} {share:.0%}" for name, share in classes[:1])
        heads.append(f"{topic.topic}{size} {topic.name or leading}".rstrip())
    width = min(max(map(len, heads)), _LONGEST_NAME)
    for head, topic in zip(heads, topics, strict=True):
        words = [name for name, _ in real_terms(topic)[:_TERMS_PRINTED]] if terms else []
        print(f"  {head:<{width}}  {', '.join(words)}".rstrip())
    if len(topics) < len(summary.topics):
        print(f"  and {len(summary.topics) - len(topics)} more")
    if (topics_in_time := fit.over_time) is not None:
        names = numbered_names(topics_in_time.topics(n_terms=_NAME_TERMS))
        width = max(map(len, names))
        print("\nPeaks (share of the topic within one slice of its peak)")
        for peak in sorted(topics_in_time.peaks(), key=lambda peak: peak.slice):
            print(f"  {names[peak.topic]:<{width}}  {peak.slice}  {peak.concentration:.0%}")


def print_classes(title: str, heads: Names, rows: Sequence[tuple[str, Names, float]]) -> None:
    """Print a line for every class, or for the largest of many; rows have name, cells and size."""
    largest = sorted(rows, key=lambda row: -row[2])[:_CLASSES_PRINTED]
    shown = [row for row in rows if row in largest]
    width = min(max(len(row[0]) for row in shown), _LONGEST_NAME)
    cut = [name if len(name) <= width else f"{name[: width - 3]}..." for name, _, _ in shown]
    lines = [(title, heads), *((f"  {name}", row[1]) for name, row in zip(cut, shown, strict=True))]
    sizes = [max(map(len, column)) for column in zip(*(cells for _, cells in lines), strict=True)]
    print()
    for name, cells in lines:
        parts = (f"  {cell:>{size}}" for cell, size in zip(cells, sizes, strict=True))
        print(f"{name:<{width + 2}}{''.join(parts)}")
    if len(shown) < len(rows):
        print(f"  and {len(rows) - len(shown)} smaller classes; see {PAGE_NAME}")
