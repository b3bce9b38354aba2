"""Tables with one line a sample: predicted labels, or weights of topics."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ._fitted import Fitted, amounts

Array = npt.NDArray[Any]


def write_csv(path: Path, names: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; numbers in full precision of six digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])


def write_predictions(path: Path, fitted: Fitted, separator: str) -> None:
    """Write labels, use and prediction of every sample; for other models than classifiers topics.

    Parameters
    ----------
    path : Path
    fitted : Fitted
    separator : str
        Put between several labels of a sample.
    """
    names, columns = _known(fitted, separator)
    if predicts_labels(fitted.model):
        more, results = _label_columns(fitted.model, fitted.scores)
    elif hasattr(fitted.model, "topic_names_"):
        more, results = _topic_columns(fitted.model, fitted.amounts)
    else:
        more, results = _largest(fitted.model.representation_)
    _write(path, [*names, *more], [*columns, *results])


def write_new_predictions(path: Path, model: Any, X: Any) -> int:
    """Write what a saved model says of new data; return the number of samples.

    Classifiers: labels and scores.  Models with named topics: the largest of these and how much of
    the sample every topic explains.  Others: the largest component and the representation.
    """
    if predicts_labels(model):
        names, columns = _label_columns(model, model.predict_proba(X))
    elif hasattr(model, "topic_names_"):
        names, columns = _topic_columns(model, amounts(model, model.transform(X)))
    else:
        S = model.transform(X)
        names, columns = _largest(S)
        names += [f"component{k}" for k in range(S.shape[1])]
        columns += S.T.tolist()
    _write(path, names, columns)
    return int(X.shape[0])


def predicts_labels(model: Any) -> bool:
    """Return whether the model is a classifier."""
    return hasattr(model, "predict_proba")


def _write(path: Path, names: list[str], columns: list[Iterable[Any]]) -> None:
    rows = ([i, *row] for i, row in enumerate(zip(*columns, strict=True)))
    write_csv(path, ["sample", *names], rows)


def _known(fitted: Fitted, separator: str) -> tuple[list[str], list[Iterable[Any]]]:
    """Return what was given of every sample, where labels were."""
    labels = fitted.labels
    if labels is None:
        return [], []
    text = labels.text(separator)
    if not fitted.guided:
        return ["label"], [text]
    used = [
        "held out" if hidden else "training" if labelled else "unlabelled"
        for labelled, hidden in zip(labels.known, fitted.held_out, strict=True)
    ]
    return ["label", "used as"], [text, used]


def _label_columns(model: Any, scores: Array) -> tuple[list[str], list[Iterable[Any]]]:
    predicted = model.classes_[scores.argmax(axis=1)]
    names = ["prediction", *(f"score {label}" for label in model.classes_)]
    return names, [predicted, *scores.T.tolist()]


def _topic_columns(model: Any, S: Array) -> tuple[list[str], list[Iterable[Any]]]:
    """Return the largest of the named topics, and how much of a sample each topic explains.

    Free topics may explain what no label is about, and so are no answer to which label fits.
    """
    largest, weights = _largest(S[:, : len(model.topic_names_)])[1]
    names = [f"weight {name}" for name in model.get_feature_names_out()]
    named = [str(model.topic_names_[k]) for k in largest]
    # A sample that no named topic explains has none.
    found = [name if weight else "" for name, weight in zip(named, weights, strict=True)]
    return ["topic", "weight", *names], [found, weights, *S.T.tolist()]


def _largest(S: Array) -> tuple[list[str], list[Any]]:
    return ["topic", "weight"], [S.argmax(axis=1).tolist(), S.max(axis=1).tolist()]
