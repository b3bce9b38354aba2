"""Labels of samples in files: none, one or several each; labels filled in later; seeds."""

from __future__ import annotations

import csv
import json
import os
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.text import as_first_given, command_line, nfc, short
from .._data.arrays import is_missing
from .._labels import doubts, indicator_matrix, label_key, parse_list
from .._persist.texts import strip_markup
from ._options import SEEDS_EXAMPLE, UsageError, changed, warn
from ._read import (
    Source,
    Table,
    encoding_of,
    find_source,
    open_text,
    read_table,
    read_values,
    reporting,
)
from ._text import find_ids, find_text_column

Mask = npt.NDArray[np.bool_]
Names = tuple[str, ...]

SAMPLE = "sample"  # the column with the number of a sample, in tables of samples
_COLUMN = "label"  # of a table to fill in, if the labels of the data are in a file
_FEW, _MANY = 20, 100  # labeled samples: a few may all have different classes
_HALF, _MOSTLY = 0.5, 0.9  # share with a label that no other sample has
_ADVICE = {
    "spelling": "if they are one class, write it in one way",
    "missing": "if it is one, give --unlabeled{}",
    "list": "give a JSON list of texts or numbers for several labels",
    "joined": "if they are several labels, give --label-separator{}",
}
_COMPARED = 500  # characters of a text


class NamedColumns(np.ndarray):
    """An indicator matrix with names of columns, like a data frame."""

    columns: list[str]


@dataclass(frozen=True)
class SampleLabels:
    """Labels of every sample; a sample without any is unlabeled."""

    each: tuple[Names, ...]
    several: bool
    passed_over: frozenset[int] = frozenset()
    columns: Sequence[str] = ()  # or files, that hold them

    @property
    def known(self) -> Mask:
        return np.array([bool(names) for names in self.each], dtype=bool)

    @property
    def names(self) -> list[str]:
        return sorted({name for names in self.each for name in names})

    def single(self) -> npt.NDArray[np.object_]:
        return np.array([names[0] if names else None for names in self.each], dtype=object)

    def indicators(self, names: Sequence[str] | None = None) -> Array:
        position = {name: k for k, name in enumerate(self.names if names is None else names)}
        n = len(self.each)
        return np.asarray(indicator_matrix(self.each, position, np.arange(n), n).toarray())

    def single_or_indicators(self) -> Array:
        """Return labels for models that take both forms; unlabeled rows are None or NaN."""
        if not self.several:
            return self.single()
        matrix = self.indicators().view(NamedColumns)
        matrix[~self.known] = np.nan
        matrix.columns = self.names
        return matrix

    def without(self, hidden: Mask) -> SampleLabels:
        each = [() if hide else names for names, hide in zip(self.each, hidden, strict=True)]
        return SampleLabels(tuple(each), self.several)

    def text(self, separator: str) -> list[str]:
        return [separator.join(names) for names in self.each]

    def hold_out(self, share: float, seed: int) -> Mask:
        """Choose labeled samples to hide; every label keeps at least one sample."""
        rng = np.random.default_rng(seed)
        hidden = np.zeros(len(self.each), dtype=bool)
        if not self.several:  # the same share of every class
            labels = self.single()
            for name in self.names:
                members = rng.permutation(np.flatnonzero(labels == name))
                hidden[members[: min(round(share * len(members)), len(members) - 1)]] = True
            return hidden
        counts = Counter(name for names in self.each for name in names)
        n_hidden = round(share * int(self.known.sum()))
        for i in rng.permutation(np.flatnonzero(self.known)):
            if n_hidden and all(counts[name] > 1 for name in self.each[i]):
                counts.subtract(self.each[i])
                hidden[i] = True
                n_hidden -= 1
        return hidden


def read_labels_of(options: Namespace, data: Table | Source, n_samples: int) -> SampleLabels | None:
    """Return the labels that the options name, from a table or from a file."""
    if not options.labels:
        return None
    names, things = label_columns(data, options), "samples, empty for an unlabeled one"
    columns = [read_values(name, data, n_samples, things, lists=True) for name in names]
    values = _join_columns(columns, options.label_separator)
    passed_over: set[int] = set()
    if options.more_labels:
        values, passed_over = _add_more_labels(values, data, changed(options, labels=names))
    labels = parse_labels(values, options.label_separator, options.unlabeled or ())
    return replace(labels, passed_over=frozenset(passed_over), columns=names)


def label_columns(data: Table | Source, options: Namespace) -> list[str]:
    """Return the columns of --labels: a text such as "code1,code2" is two, unless it is one."""
    columns = data.frame.columns if isinstance(data, Table) else options.labels
    split = (
        [name] if name in columns or os.path.isfile(name) else map(str.strip, name.split(","))
        for name in options.labels or ()
    )
    return [*dict.fromkeys(filter(None, chain.from_iterable(split)))] or options.labels or []


def _join_columns(columns: Sequence[list[Any]], separator: str | None) -> list[Any]:
    """Return the only column, or for every row a list of the labels in all columns."""
    if len(columns) == 1:
        return columns[0]
    rows = zip(*columns, strict=True)
    return [[label for cell in row for label in _split_labels(cell, separator)] for row in rows]


def parse_labels(
    values: Sequence[Any], separator: str | None, unlabeled: Sequence[str] = ()
) -> SampleLabels:
    """Return the labels in a column; raise UsageError if no sample is labeled."""
    no_label = {*map(label_key, unlabeled)}
    labels = [_split_labels(value, separator, no_label) for value in values]
    spelling = as_first_given(name for names in labels for name in names)
    each = tuple(tuple(dict.fromkeys(spelling[name] for name in names)) for names in labels)
    if not any(each):
        raise UsageError("all labels are empty; give at least two classes, or use --model nmf")
    return SampleLabels(each, any(len(names) > 1 for names in each))


def _split_labels(value: Any, separator: str | None, no_label: Collection[str] = ()) -> list[str]:
    """Return the labels of one sample as written, without those that mean "no label"."""
    values = parse_list(value) if isinstance(value, str) else value
    if not isinstance(values, list):
        values = [value]
        if separator is not None and isinstance(value, str):
            values = value.split(separator.replace(r"\n", "\n"))
    texts = [str(part).strip() for part in values if not is_missing(part)]
    return [text for text in texts if text and not (no_label and label_key(text) in no_label)]


def warn_of_labels(labels: SampleLabels, options: Namespace) -> None:
    """Warn about a wrong column, and about labels that are hardly meant.

    A column that is surely wrong raises UsageError, as a fit with that many classes takes minutes.
    """
    option = " and ".join(map(repr, labels.columns))
    counts = Counter(name for names in labels.each for name in names)
    n_alone = sum(all(counts[name] == 1 for name in names) for names in labels.each if names)
    count = int(labels.known.sum())
    if count > _FEW and n_alone > _HALF * count:
        finding = (
            f"{n_alone} of the {count} labeled samples in {option} have a label that no other has, "
            "like ids, dates or numbers"
        )
        if n_alone >= _MOSTLY * count or count > _MANY:
            right = "name the column of the labels with --labels"
            raise UsageError(f"{finding}; {right}, or label several samples of each class")
        warn(f"{finding}; is it the column of the labels?")
    for kind, wrong, word in doubts(counts, map(nfc, options.unlabeled or ())):
        if kind == "joined" and (labels.several or options.label_separator is not None):
            continue
        mark = command_line([(word or "").replace("\n", r"\n")])
        of = f"{counts[word]} samples are of"
        mark = f"={mark}" if mark.startswith("-") else f" {mark}"  # lest it be an option
        who = of if kind == "missing" else f"labels in {option} have"
        warn(f"{who} {wrong}; {_ADVICE[kind].format(mark)}")


def columns_to_fill(labels: Sequence[str]) -> list[str]:
    """Return the columns to fill in in tables of `suggest`, for the values of --labels."""
    return [*dict.fromkeys(_COLUMN if os.path.isfile(name) else name for name in labels)]


def _add_more_labels(
    values: Sequence[Any], data: Table | Source, options: Namespace
) -> tuple[list[Any], set[int]]:
    """Return labels, updated from filled tables, and the samples that were left empty."""
    merged, columns = list(values), columns_to_fill(options.labels)
    passed_over: set[int] = set()
    places: dict[int, str] = {}
    for name in options.more_labels:
        form = {"data": name, "format": None, "encoding": options.encoding, "delimiter": None}
        source = find_source(Namespace(**form))
        if not source.is_table or source.path is None:
            raise UsageError(f"--more-labels {name}: expected a table of `ssnmf-fast suggest`")
        source = replace(source, encoding=encoding_of(source.path, options.encoding))
        if source.kind == ".csv":
            with reporting(name), open_text(source.path, source.encoding) as file:
                header = file.readline()
            for mark in ("\t", ";", ","):  # spreadsheet programs choose by locale
                if columns[0] in next(csv.reader([header], delimiter=mark), []):
                    source = replace(source, delimiter=mark)
        table = read_table(source)
        samples = _match_samples(table, data, options, len(merged))
        cells = [table.column(column, lists=True) for column in columns]
        labels = _join_columns(cells, options.label_separator)
        rows = zip(table.frame.index, labels, samples, strict=True)
        is_empty = True
        for line, value, sample in rows:
            if value is None or value == [] or not str(value).strip():
                passed_over |= {sample} if isinstance(sample, int) else set()
                continue
            is_empty, place = False, f"{table}, line {line}"
            if isinstance(sample, str):
                raise UsageError(f"{place}: {sample}")
            if sample in places:
                earlier, later = (
                    {*map(label_key, _split_labels(labels_of_sample, options.label_separator))}
                    for labels_of_sample in (merged[sample], value)
                )
                if earlier != later:
                    other = f"{short(merged[sample])} in {places[sample]}"
                    wrong = f"sample {sample} has the label {short(value)}, and {other}"
                    raise UsageError(f"{place}: {wrong}; leave one of them empty")
            merged[sample], places[sample] = value, place
        if is_empty:
            empty = " or ".join(map(repr, columns))
            raise UsageError(f"{name}: no cell of column {empty} is filled in")
    return merged, passed_over - places.keys()


def _match_samples(
    filled: Table, data: Table | Source, options: Namespace, count: int
) -> list[int | str]:
    """Return for every row of a filled table its sample, or why there is none."""
    keys: dict[str, tuple[Any, dict[str, int]]]
    keys = {SAMPLE: (label_key, {str(k): k for k in range(count)})}
    blanks: list[Any] = [None] * len(filled.frame)
    texts, texts_filled = [], blanks
    if isinstance(data, Table):
        other_columns = *options.labels, options.time
        column = find_text_column(data, options.text, *other_columns)
        ids = find_ids(data, options.id, column, *other_columns)
        if ids is not None and ids[0] in filled.frame:
            for key_of in (lambda value: nfc(str(value)), label_key):
                by_id = {key_of(value): sample for sample, value in enumerate(ids[1])}
                if len(by_id) == count:
                    keys = {ids[0]: (key_of, by_id), SAMPLE: keys[SAMPLE]}
        if column in filled.frame:
            texts, texts_filled = data.column(column), filled.column(column)
    # Spreadsheets change ids such as 00020: the number of the sample and its text are left.
    names = [name for name in keys if name in filled.frame] or [SAMPLE]

    def plain(text: object) -> str:
        """Return only ASCII letters and digits, which programs do not change."""
        return re.sub(r"[^0-9A-Za-z]+", "", "" if text is None else nfc(str(text)))[:_COMPARED]

    def find(name: str, key: object, other: object) -> int | str:
        key = str("" if key is None else key).strip()
        key_of, samples = keys[name]
        sample = samples.get(key_of(key))
        if sample is None:
            return f"{data} has no sample whose {name} is {short(key)}"
        text = "" if not texts or texts[sample] is None else str(texts[sample])
        if texts and plain(other) not in (plain(text), plain(strip_markup(text))):
            same = "it must be the table from which the samples were suggested"
            return f"the text is not that of sample {sample} of {data}; {same}"
        return sample

    matches = []
    for name in names if texts else names[:1]:
        cells = filled.column(name) if name in filled.frame else blanks
        matches.append([find(name, *pair) for pair in zip(cells, texts_filled, strict=True)])
    rows = zip(*matches, strict=True)
    return [next((sample for sample in row if isinstance(sample, int)), row[0]) for row in rows]


def read_seeds(name: str, encoding: str) -> dict[str, Any]:
    """Return the words, perhaps with strengths, of every topic."""
    path = Path(name)
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file; expected seeds such as {SEEDS_EXAMPLE}")
    with reporting(path), open_text(path, encoding) as file:
        text = file.read()

    def make_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, count in Counter(nfc(name) for name, _ in pairs).items():
            if count > 1:  # of which JSON takes the last
                raise UsageError(f"{path} has {short(name)} twice in one mapping; merge the two")
        return dict(pairs)

    try:
        content = json.loads(text, object_pairs_hook=make_mapping)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({error}); expected {SEEDS_EXAMPLE}") from error
    if not isinstance(content, dict) or not all(
        isinstance(words, (list, dict))
        and all(isinstance(word, str) for word in words)
        and (isinstance(words, list) or all(type(one) in (int, float) for one in words.values()))
        for words in content.values()
    ):
        raise UsageError(f"{path} has no seeds; expected words by topic, such as {SEEDS_EXAMPLE}")
    return content
