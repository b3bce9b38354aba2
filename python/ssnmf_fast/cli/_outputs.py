"""Files and folders that results are written to, and tables of predictions."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._common.arrays import Array
from .._common.optional import PLOT_HINT, MissingPackageError
from .._common.replacement import Replacement
from .._common.text import shorten, sort_naturally
from .._config import show_config
from ..report import Summary, png, read
from ._labels import SAMPLE
from ._models import FittedModel, Ids
from ._options import KINDS, STANDARD, UsageError, for_json, warn

MODEL_NAME, METRICS_NAME, PAGE_NAME = "model.npz", "metrics.json", "report.html"
CONTENT_NAME = "page.json"  # what the page shows
SUMMARIES = (METRICS_NAME, "report.json")  # one lists the files of a folder
_OURS = "-ssnmf-fast"  # ending of the default of --out
_OF_FILES = "utf-8-sig"  # of csv; the byte order mark tells spreadsheet programs that it is UTF-8
_ESCAPED = "backslashreplace"  # such as a byte of a file name that is no text
_SIGNAL_EXIT = 128  # plus the number of the signal, as in a shell
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # beginnings of formulas, and characters that hide one
_PROBABILITY_DIGITS = 4
_NEGLIGIBLE = 1e-9  # weights below this share of the largest are written as 0

Columns = list[tuple[str, Iterable[Any]]]  # names and values
Rows = Iterable[Sequence[Any]]
Inputs = Iterable[str | Path | None]


class ResultsFolder:
    """A folder of results; `about` describes its possible files, in the order of printing."""

    def __init__(
        self, folder: Path, command: str, about: Mapping[str, str], files: Replacement, safe: bool
    ) -> None:
        self._folder, self._about, self._files, self._safe = folder, about, files, safe
        self._command, self._written = command, set[str]()
        self._left_out: dict[str, str] = {}  # files, and the reasons

    def path(self, name: str) -> Path:
        assert name in self._about  # only those are compared with the inputs
        self._written.add(name)
        return self._files.path(self._folder / name)

    def _draw(self, name: str, make: Callable[[], Any]) -> bytes | None:
        """Write a figure or a page; None if that fails, as the other results do not need it."""
        try:
            page = make()
            content = page.encode("utf-8", _ESCAPED) if isinstance(page, str) else png(page)
        except Exception as error:
            self._left_out[name] = f"to get them: {PLOT_HINT}"
            if not isinstance(error, MissingPackageError):
                self._left_out[name] = f"{type(error).__name__}: {error}"
                warn(f"{name} is left out; drawing it failed with {self._left_out[name]}")
            return None
        self.path(name).write_bytes(content)
        return content

    def finish(self, summary: Summary) -> dict[str, Any]:
        """Put all files in place, then draw, and print the files; return what programs read."""
        self.path(CONTENT_NAME).write_text(summary.content() + "\n", "utf-8", _ESCAPED)
        path = self.path(next(name for name in SUMMARIES if name in self._about))
        content = {"command": self._command, **summary.numbers, "files": sorted(self._written)}
        text = json.dumps(for_json(content), indent=2, ensure_ascii=False) + "\n"
        path.write_text(text, "utf-8", _ESCAPED)
        for name in self._about.keys() - self._written:
            self._files.remove(self._folder / name)
        self._files.move()
        images = {name: self._draw(name, make) for *_, name, make in summary.pictures if make}
        self._draw(PAGE_NAME, lambda: summary.html(images))
        names = [name for name in self._about if name in self._written]
        print("\nFiles")
        width = max(len(str(self._folder / name)) for name in names)
        for name in names:
            print(f"  {self._folder / name!s:<{width}}  {self._about[name]}")
        for reason in dict.fromkeys(self._left_out.values()):
            missing = ", ".join(name for name in self._about if self._left_out.get(name) == reason)
            print(f"  left out: {missing}; {reason}")
        numbers = {**summary.numbers, "out": str(self._folder), "files": sorted(names)}
        return numbers | ({"left_out": self._left_out} if self._left_out else {})

    def write_rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write dictionaries, if there are any."""
        if table := [*rows]:
            self.write_csv(name, [*table[0]], ([*row.values()] for row in table))

    def write_csv(self, name: str, heads: Sequence[Any], rows: Rows) -> None:
        with self.path(name).open("w", encoding=_OF_FILES, errors=_ESCAPED, newline="") as file:
            _write_table(file, heads, rows, "csv", self._safe)


@contextmanager
def open_results(
    options: Namespace, command: str, about: Mapping[str, str], inputs: Inputs, ending: str = _OURS
) -> Iterator[ResultsFolder]:
    """Make a folder for results, which replace those of an earlier run, and nothing else."""
    if options.out == STANDARD:
        raise UsageError("--out -: the results are several files; --out needs a folder")
    folder = Path(options.out or default_out(options.data, ending))
    about = {**about, CONTENT_NAME: "content of the page, for `ssnmf-fast report`"}
    about |= {PAGE_NAME: "everything on one page: open this first"}
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --out needs a folder")
    for name in ("", *about):
        _refuse_input(folder / name, inputs if name else ())
        if (folder / name).exists() and not os.access(folder / name, os.W_OK):
            raise UsageError(f"--out: {folder / name} cannot be written to")
    owner, paths = read_summary(folder)[0], folder.iterdir() if folder.exists() else ()
    others = sorted(path.name for path in paths if not path.name.startswith("."))
    if owner != command and others:
        wrong = f"results of `ssnmf-fast {owner}`" if owner else f"other files, such as {others[0]}"
        choices = f"a new or empty one, or one with results of {command}"
        raise UsageError(f"--out: the folder {folder} has {wrong}; name {choices}")
    with new_files(folder) as files:
        yield ResultsFolder(folder, command, about, files, options.safe_csv)


def read_summary(folder: Path) -> tuple[str, set[str]]:
    """Return the command that wrote a folder, and its files; nothing if none did."""
    for name in SUMMARIES:
        with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
            content = json.loads((folder / name).read_text(encoding="utf-8"))
            if name in content["files"]:
                return str(content["command"]), {*map(str, content["files"])}
    return "", set()


def run_report(options: Namespace) -> dict[str, Any]:
    """Write the page of a folder of results again."""
    folder = Path(options.folder)
    try:
        summary = read((folder / CONTENT_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, LookupError) as error:
        wrong = f"{folder} has no {CONTENT_NAME} of this version of ssnmf-fast"
        command = read_summary(folder)[0] or "fit, choose-rank, complete or recommend"
        raise UsageError(f"{wrong}; it needs a new folder of {command}") from error
    paths = {picture.file: folder / picture.file for picture in summary.pictures}
    page = summary.html({name: path.read_bytes() for name, path in paths.items() if path.exists()})
    with new_files(folder) as files:
        files.path(folder / PAGE_NAME).write_text(page, "utf-8", _ESCAPED)
    print(f"the page is in {folder / PAGE_NAME}")
    return {"out": str(folder / PAGE_NAME)}


def run_show_config(options: Namespace) -> None:
    del options
    show_config()


def default_out(data: str, ending: str) -> str:
    """Return the default of --out: the name of the data, in the working directory."""
    name = "input" if data == STANDARD else Path(data).name
    return (name.split(".")[0] or name) + ending


def refuse_replacing(out: Path, inputs: Inputs) -> None:
    """Raise UsageError if a file would replace an input, or one in a folder of results."""
    _refuse_input(out, inputs)
    real = Path(os.path.realpath(out))
    command, names = read_summary(real.parent)
    results = [real.parent / name for name in names if name.lower() == real.name.lower()]
    if real.exists() and any(path.exists() and real.samefile(path) for path in results):
        wrong = f"{out} would replace a result of `ssnmf-fast {command}`"
        raise UsageError(f"--out: {wrong}; name another place")


def _refuse_input(out: Path, inputs: Inputs) -> None:
    for path in inputs:  # under any name
        if path is not None and out.exists() and os.path.exists(path) and out.samefile(path):
            raise UsageError(f"--out: {out} would replace {path}, an input; name another place")


@contextmanager
def new_files(folder: Path) -> Iterator[Replacement]:
    """Make a folder and its parents, for files that appear together at the end."""
    folders = [path for path in (folder, *folder.parents) if not path.exists()]
    # Only the main thread may handle signals.
    catches = threading.current_thread() is threading.main_thread()
    catches = catches and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if catches:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(_SIGNAL_EXIT + number))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Replacement() as files:
            yield files
    except BaseException:
        for path in folders:  # the innermost first
            if not path.is_dir() or any(path.iterdir()):
                break
            path.rmdir()
        raise
    finally:
        if catches:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class TableOutput:
    """Place and format of a table, from --out, --out-format and --safe-csv."""

    def __init__(self, options: Namespace) -> None:
        name, kind, self._safe = options.out, options.out_format, options.safe_csv
        self.path = None if name == STANDARD else Path(name)
        if self.path is None:
            kind = kind or KINDS[0]
        elif self.path.is_dir():
            raise UsageError(f"--out {name} is a folder; expected a file")
        elif kind is None:
            kind = self.path.suffix.lower()[1:]
            if kind not in KINDS:
                wrong = f"unknown ending {self.path.suffix!r}; known are .csv, .jsonl"
                raise UsageError(f"--out {name}: {wrong}; or name the format with --out-format")
        if self._safe and kind != "csv":
            raise UsageError(f"--safe-csv is only for csv; --out {name} is {kind}")
        self._kind = kind

    def __str__(self) -> str:
        return "standard output" if self.path is None else str(self.path)

    def write(self, names: Sequence[str], rows: Rows) -> None:
        encoding = _OF_FILES if self._kind == "csv" else "utf-8"
        if self.path is None:
            _write_table(sys.stdout, names, rows, self._kind, self._safe)
            return
        with (
            new_files(self.path.parent) as files,
            files.path(self.path).open("w", -1, encoding, _ESCAPED, newline="") as file,
        ):
            _write_table(file, names, rows, self._kind, self._safe)


def _write_table(file: TextIO, names: Sequence[Any], rows: Rows, kind: str, safe: bool) -> None:
    """Write a table; csv has numbers with six digits and, if `safe`, formulas marked as text."""
    if kind == "jsonl":
        for row in rows:
            content = dict(zip(names, for_json(row), strict=True))
            file.write(json.dumps(content, ensure_ascii=False, default=np.generic.item) + "\n")
        return
    # The default line ends of csv are for files, not for pipes.
    writer = csv.writer(file, lineterminator="\n" if file is sys.stdout else "\r\n")
    for row in chain([names], rows):
        cells = [f"{v:.6g}" if isinstance(v, float) else v for v in row]
        writer.writerow([f"'{v}" if safe and _is_formula(v) else v for v in cells])


def _is_formula(cell: Any) -> bool:
    try:
        float(cell)  # a number may begin with a sign
    except (TypeError, ValueError):
        return isinstance(cell, str) and cell.startswith(_FORMULA)
    return False


def make_table(ids: Ids | None, columns: Columns) -> tuple[list[str], Rows]:
    """Return names and rows of a table: the number and perhaps id of a sample, and columns."""
    names = [SAMPLE, *(name for name, _ in columns)]
    values = [column for _, column in columns]
    if ids is not None:
        names.insert(1, ids[0] if ids[0] not in names else "id")
        values.insert(0, ids[1])
    return names, ([i, *row] for i, row in enumerate(zip(*values, strict=True)))


def make_predictions(
    fit: FittedModel, *, new: bool = False, explain: bool = False
) -> tuple[list[str], Rows]:
    """Return a table of the labels of every sample, and the predictions of a model."""
    texts, labels, columns = fit.texts, fit.labels, Columns()
    if texts is not None:
        columns.append(("text", [*map(shorten, texts)]))
    predictions = fit.predictions if fit.predicts else []
    if labels is not None:
        given = labels.text(fit.separator)
        if predictions:
            sources = np.where(fit.coded, "predicted", np.where(fit.known, "given", ""))
            sources = np.where(fit.held_out, "held out", sources).tolist()
            codes = [label or guess for label, guess in zip(given, predictions, strict=True)]
            columns += [("code", codes), ("source", sources)]
        columns.append(("label", given))
    if fit.predicts:
        certainty = fit.certainty.round(_PROBABILITY_DIGITS).astype(object)
        second, checks = fit.name_second(), np.full(len(certainty), "", dtype=object)
        certainty[~fit.coded] = second[~fit.coded] = None
        checks[fit.to_check] = "check by hand"
        columns += [("prediction", predictions), ("probability", certainty), ("second", second)]
        if fit.target is not None or fit.least is not None:
            columns.append(("check", checks))
    if any(fit.reasons):
        columns.append(("reason", fit.reasons))
    columns += list_probabilities(fit) if new and fit.predicts else []
    if explain:
        explanation = fit.model.explain(fit.X)
        if fit.terms is not None:
            explanation = replace(explanation, feature_names=fit.terms)
        leading = explanation.leading_terms()
        if not any(leading):
            reason = "the model predicts from topics alone, or the samples have none of its terms"
            warn(f"no term supports a prediction: {reason}")
        columns.append(("terms", [", ".join(terms) for terms in leading]))
    if hasattr(fit.model, "topic_names_"):
        # Free topics explain what no label describes, and do not show which label fits.
        topic_names = [str(name) for name in fit.model.topic_names_]
        topics, weights = _find_largest(fit.amounts[:, : len(topic_names)], topic_names)
        names = [f"weight {name}" for name in fit.model.get_feature_names_out()]
        columns += [("topic", topics), ("weight", weights)]
        columns += zip(names, _drop_tiny(fit.amounts).T.tolist(), strict=True)
    elif not fit.predicts:
        topics, shares = _find_largest(fit.shares, range(fit.shares.shape[1]))
        columns += [("topic", topics), ("share", shares)]
        if new:
            weights = _drop_tiny(fit.representation).T.tolist()
            columns += [(f"component{k}", column) for k, column in enumerate(weights)]
    return make_table(fit.ids, columns)


def list_probabilities(fit: FittedModel) -> Columns:
    """Return a column for every class, in natural order; none for a sample with a reason."""
    values = fit.proba.round(_PROBABILITY_DIGITS).astype(object)
    values[np.array(fit.reasons) != ""] = None
    proba = dict(zip(fit.classes, values.T.tolist(), strict=True))
    return [(f"probability {name}", proba[name]) for name in sort_naturally([*proba])]


def _drop_tiny(weights: Array) -> Array:
    """Return weights with 0 for negligible ones, such as 8e-293."""
    least = _NEGLIGIBLE * float(np.abs(weights).max(initial=0.0))
    return np.where(np.abs(weights) < least, 0.0, weights)


def _find_largest(S: Array, names: Sequence[Any]) -> tuple[list[Any], list[float]]:
    """Return the name of the largest column in each row, None for a row of zeros, and its value."""
    columns, values = S.argmax(axis=1).tolist(), S.max(axis=1).tolist()
    pairs = zip(columns, values, strict=True)
    return [names[k] if value else None for k, value in pairs], values
