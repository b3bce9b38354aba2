"""The report of a fit, and its pictures; they need the packages of the extra `plot`."""

from __future__ import annotations

from pathlib import Path

from .._common.optional import MissingPackageError
from ..report import Measure, Picture
from ._findings import Findings, facts
from ._fitted import Fitted
from ._folder import Results
from ._learning_curve import LearningCurve

PICTURE, SHARES = "components.png", "topic_classes.csv"


def draw_components(out: Results, fitted: Fitted, results: Findings) -> list[Picture]:
    """Draw topics that are images; return the picture, if there is one."""
    if fitted.image_shape is None:
        return []
    from ..plotting import image_grid
    from ..report._pictures import png

    classes = [", ".join(str(name) for name, _ in topic.leading) for topic in results.topics]
    names = [f"{k} ({one})" if one else str(k) for k, one in enumerate(classes)]
    components, shape = fitted.model.components_, fitted.image_shape
    drawn = out.written(PICTURE, lambda: png(image_grid(components, shape, names=names)))
    if drawn is None:
        return []
    brackets = " and, in brackets, the classes that it stands for" if any(classes) else ""
    caption = f"Each with its number{brackets}. An image is approximated by a weighted sum of them."
    return [Picture("Components", caption, drawn)]


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
        shares_file=SHARES,
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
    judged, count = results.judged, len(results.judged.truth)
    lines = "Lines: 95 % intervals."
    if judged.by_validation:
        part = " Of so many labels hiding a part is enough." if judged.labeled > count else ""
        new = "Expect about as much for new samples."
        if judged.several:
            new = "New samples score lower, as the thresholds are chosen on these."
        where = judged.where
        return (
            f"{where[0].upper()}{where[1:]}: each is predicted by fits that did not know its "
            f"label.{part} {new} {lines}"
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
