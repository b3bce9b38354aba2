"""Tables with one line a sample: predicted labels, or weights of topics."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._common.arrays import Array
from .._common.natural_order import natural_order
from .._common.replacement import Replacement
from .._topics import amounts, topic_shares
from ._errors import UsageError
from ._fitted import Fitted, predicted_labels
from ._folder import made
from ._source import STANDARD

Ids = tuple[str, Sequence[Any]]  # name of the column, and the id of every sample
Columns = list[tuple[str, Iterable[Any]]]  # names and values

KINDS = ("csv", "jsonl")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a formula begins, or what hides one
_PROBABILITY_DIGITS = 6
_NEGLIGIBLE = 1e-9  # weights below this part of the largest are written as 0


@dataclass(frozen=True)
class Output:
    """Where predictions go; `path` is None for standard output, `kind` one of KINDS.

    `safe` is whether cells of text are kept from being formulas.
    """

    path: Path | None
    kind: str
    safe: bool = False

    def __str__(self) -> str:
        return "standard output" if self.path is None else str(self.path)

    @contextmanager
    def open(self) -> Iterator[TextIO]:
        """Open it for writing; a file appears when all of it is there."""
        if self.path is None:
            yield sys.stdout
            return
        with (
            made(self.path.parent),
            Replacement() as files,
            files.path(self.path).open("w", encoding="utf-8", newline="") as file,
        ):
            yield file


def output(name: str, kind: str | None, safe: bool) -> Output:
    """Return where predictions go, in the form that is given or that of the ending."""
    out = _output(name, kind)
    if safe and out.kind != "csv":
        raise UsageError(f"--safe-csv belongs to csv; --out {name} is {out.kind}")
    return replace(out, safe=safe)


def _output(name: str, kind: str | None) -> Output:
    if name == STANDARD:
        return Output(None, kind or KINDS[0])
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"--out {name} is a folder; expected a file")
    ending = path.suffix.lower()[1:]
    if kind is None and ending not in KINDS:
        known = ", ".join(f".{known}" for known in KINDS)
        raise UsageError(
            f"--out {name}: unknown ending {path.suffix!r}; known are {known}; or name the form "
            "with --out-format"
        )
    return Output(path, kind or ending)


def write_csv(
    path: Path, names: Sequence[Any], rows: Iterable[Sequence[Any]], *, safe: bool = False
) -> None:
    """Write a table; numbers in full precision of six digits.

    `safe` puts an apostrophe before text that a spreadsheet program would take for a formula.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_cells(file, names, rows, safe)


def _write_cells(
    file: TextIO, names: Sequence[Any], rows: Iterable[Sequence[Any]], safe: bool
) -> None:
    # The ends of lines that csv writes by default are made for files, not for pipes.
    end = "\n" if file is sys.stdout else "\r\n"
    writer = csv.writer(file, lineterminator=end)
    for row in chain([names], rows):
        cells = [f"{v:.6g}" if isinstance(v, float) else v for v in row]
        writer.writerow([_harmless(cell) for cell in cells] if safe else cells)


def _harmless(cell: Any) -> Any:
    """Return a cell that is no formula; a number may begin with a sign."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def write_predictions(path: Path, fitted: Fitted, separator: str, *, safe: bool = False) -> None:
    """Write labels, use and prediction of every sample; for models that do not predict, topics.

    `separator` stands between several labels of a sample, and `safe` is that of :func:`write_csv`.
    """
    model, columns = fitted.model, _known(fitted, separator)
    if predicts_labels(model):
        columns += _label_columns(model, fitted.predicted, fitted.chances, separator)
    if hasattr(model, "topic_names_"):
        columns += _topic_columns(model, fitted.amounts)
    elif not predicts_labels(model):
        columns += _largest_share(fitted.shares)
    write_columns(Output(path, "csv", safe), fitted.ids, columns)


def write_new_predictions(out: Output, model: Any, X: Any, ids: Ids | None, separator: str) -> int:
    """Write what a saved model predicts of new data; return the number of samples.

    Models that labels guided: labels and probabilities.  With named topics also the largest of
    these and how much of the sample every topic explains.  Models without labels: the topic of the
    largest share and the representation.
    """
    columns: Columns = []
    if predicts_labels(model):
        chances = model.predict_proba(X)
        columns += _label_columns(model, predicted_labels(model, X, chances), chances, separator)
    if hasattr(model, "topic_names_"):
        columns += _topic_columns(model, amounts(model.transform(X), model.components_))
    elif not columns:
        S = model.transform(X)
        columns += _largest_share(topic_shares(S, model.components_))
        columns += [(f"component{k}", column) for k, column in enumerate(_sane(S).T.tolist())]
    write_columns(out, ids, columns)
    return int(X.shape[0])


def predicts_labels(model: Any) -> bool:
    """Return whether the model predicts labels."""
    return hasattr(model, "predict_proba")


def write_columns(out: Output, ids: Ids | None, columns: Columns) -> None:
    """Write columns beside the number and, where there is one, the id of every sample."""
    names = ["sample", *(name for name, _ in columns)]
    values = [column for _, column in columns]
    if ids is not None:
        names.insert(1, ids[0] if ids[0] not in names else "id")
        values.insert(0, ids[1])
    rows = ([i, *row] for i, row in enumerate(zip(*values, strict=True)))
    with out.open() as file:
        if out.kind == "csv":
            _write_cells(file, names, rows, out.safe)
            return
        for row in rows:
            file.write(json.dumps(_json_object(names, row), ensure_ascii=False) + "\n")


def _json_object(names: list[str], row: list[Any]) -> dict[str, Any]:
    """Return a row by name; JSON has no NaN and no infinity."""
    numbers = (None if isinstance(v, float) and not math.isfinite(v) else _plain(v) for v in row)
    return dict(zip(names, numbers, strict=True))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _sane(weights: Array) -> Array:
    """Return weights with 0 for those that are negligible, such as 8e-293."""
    least = _NEGLIGIBLE * float(np.abs(weights).max(initial=0.0))
    return np.where(np.abs(weights) < least, 0.0, weights)


def _known(fitted: Fitted, separator: str) -> Columns:
    """Return what was given of every sample, where labels were."""
    labels = fitted.labels
    if labels is None:
        return []
    columns: Columns = [("label", labels.text(separator))]
    if fitted.guided:
        used = [
            "held out" if hidden else "training" if labeled else "unlabeled"
            for labeled, hidden in zip(labels.known, fitted.held_out, strict=True)
        ]
        columns.append(("used as", used))
    return columns


def _label_columns(model: Any, predicted: Array, chances: Array, separator: str) -> Columns:
    classes = [str(label) for label in model.classes_]
    found = predicted.tolist()
    if predicted.ndim == 2:
        found = [
            separator.join(name for name, one in zip(classes, row, strict=True) if one)
            for row in found
        ]
    rounded = chances.round(_PROBABILITY_DIGITS).T.tolist()
    columns = [(f"probability {classes[k]}", rounded[k]) for k in natural_order(classes)]
    return [("prediction", found), *columns]


def _topic_columns(model: Any, S: Array) -> Columns:
    """Return the largest of the named topics, and how much of a sample each topic explains.

    Free topics may explain what no label is about, and so are no answer to which label fits.
    """
    found, weights = _largest(
        S[:, : len(model.topic_names_)], [str(name) for name in model.topic_names_]
    )
    names = (f"weight {name}" for name in model.get_feature_names_out())
    return [("topic", found), ("weight", weights), *zip(names, _sane(S).T.tolist(), strict=True)]


def _largest_share(shares: Array) -> Columns:
    """Return the topic that explains the largest share of each sample, and this share."""
    topics, largest = _largest(shares, range(shares.shape[1]))
    return [("topic", topics), ("share", largest)]


def _largest(S: Array, names: Sequence[Any]) -> tuple[list[Any], list[float]]:
    """Return the name of the largest column in each row, None for a row of zeros, and its value."""
    columns, values = S.argmax(axis=1).tolist(), S.max(axis=1).tolist()
    pairs = zip(columns, values, strict=True)
    return [names[k] if value else None for k, value in pairs], values
