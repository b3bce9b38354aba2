"""Labels that were filled in after `suggest`: which samples they are of."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._common.text import nfc, short
from .._labels import is_missing
from .._persist.texts import strip_markup
from ._labels import names_in
from ._predictions import SAMPLE
from ._read import (
    Row,
    Source,
    Table,
    UsageError,
    check_cell,
    open_text,
    read_table,
    reporting,
    source,
)
from ._text import ids_of, text_column

_COLUMN = "label"  # of the table, where the labels of the data are in a file of their own
_DELIMITERS = (",", ";", "\t")  # spreadsheet programs choose by the country
_COMPARED = 500  # characters of a text


def column_of_labels(labels: str) -> str:
    """Return the name of the column to fill in, for a value of --labels."""
    return _COLUMN if Path(labels).is_file() else labels


def with_more_labels(
    values: Sequence[Any], data: Table | Source, options: Any
) -> tuple[list[Any], set[int]]:
    """Return labels of the samples of `data`, with those that are filled in in place of others.

    And the samples of filled tables whose cells were left empty.  The samples are found by their
    ids, where those of the data are all different, else by their numbers.  Two cells of one sample
    must have the same labels.
    """
    merged, column = list(values), column_of_labels(options.labels)
    passed_over: set[int] = set()
    places: dict[int, str] = {}
    for name in options.more_labels:
        table = _read_filled(name, column, options.encoding)
        samples, found = _Samples.of(data, table, options, len(merged)), False
        for line, row in table.rows:
            value = row.get(column)
            check_cell(value, column, table.source, line, lists=True)
            if is_missing(value) or value == [] or not str(value).strip():
                with suppress(UsageError):  # such as a row that has no cell at all
                    passed_over.add(samples.find(line, row))
                continue
            sample, found, place = samples.find(line, row), True, f"{table.source}, line {line}"
            if sample in places:
                earlier, later = (
                    {*map(nfc, names_in(one, options.label_separator))}
                    for one in (merged[sample], value)
                )
                if earlier != later:
                    raise UsageError(
                        f"{place}: sample {sample} has the label {short(value)}, and "
                        f"{short(merged[sample])} in {places[sample]}; leave one of them empty"
                    )
            merged[sample], places[sample] = value, place
        if not found:
            raise UsageError(f"{name}: no cell of column {column!r} is filled in")
    return merged, passed_over - places.keys()


def _read_filled(name: str, column: str, encoding: str) -> Table:
    given = argparse.Namespace(data=name, format=None, encoding=encoding, delimiter=None)
    found = source(given)
    if not found.is_table or found.path is None:
        raise UsageError(f"--more-labels {name}: expected a table of `ssnmf-fast suggest`")
    if found.kind == ".csv":
        with reporting(name), open_text(found.path, encoding) as file:
            first = file.readline()
        heads = ((mark, next(csv.reader([first], delimiter=mark), [])) for mark in _DELIMITERS)
        given.delimiter = next((mark for mark, head in heads if column in head), None)
        found = source(given)
    table = read_table(found)
    table.column(column, lists=True)  # or an error that names the others
    return table


@dataclass(frozen=True)
class _Samples:
    """Which sample of the data a row of a filled table is."""

    source: Source  # of the filled table
    data: Table | Source
    count: int
    by_id: tuple[str, dict[str, int]] | None  # name of the column, and the sample of each id
    texts: tuple[str, list[Any]] | None  # name of the column, and the text of every sample

    @classmethod
    def of(cls, data: Table | Source, filled: Table, options: Any, count: int) -> _Samples:
        by_id = texts = None
        if isinstance(data, Table):
            others = options.labels, options.time
            column = text_column(data, options.text, *others)
            ids = ids_of(data, options.id, column, *others)
            if ids is not None and ids[0] in filled.columns:
                places = {nfc(str(one)): sample for sample, one in enumerate(ids[1])}
                by_id = (ids[0], places) if len(places) == count else None
            if column in filled.columns:
                texts = column, data.column(column)
        return cls(filled.source, data, count, by_id, texts)

    def find(self, line: int, row: Row) -> int:
        """Return the number of the sample; raise UsageError if it is another one by its text."""
        name, places = self.by_id or (SAMPLE, None)
        given = nfc(str(row.get(name, "")).strip())
        if places is not None:
            sample = places.get(given)
        else:
            sample = int(given) if given.isdecimal() and int(given) < self.count else None
        if sample is None:
            raise UsageError(
                f"{self.source}, line {line}: {self.data} has no sample whose {name} is "
                f"{short(given)}"
            )
        if self.texts is not None:
            column, texts = self.texts
            text = "" if texts[sample] is None else str(texts[sample])
            if _letters(row.get(column)) not in map(_letters, (text, strip_markup(text))):
                raise UsageError(
                    f"{self.source}, line {line}: the text is not that of sample {sample} of "
                    f"{self.data}; it must be the table from which the samples were suggested"
                )
        return sample


def _letters(text: Any) -> str:
    """Return what programs leave as it is: ASCII letters and digits, of a bounded part."""
    return re.sub(r"[^0-9A-Za-z]+", "", "" if text is None else nfc(str(text)))[:_COMPARED]
