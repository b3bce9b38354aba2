"""Labels of the samples in files: none, one or several each; those filled in later; seeds."""

from __future__ import annotations

import csv
import json
import re
import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.optional import require_package
from .._common.text import as_first_given, nfc, short
from .._labels import indicator_matrix, is_missing, missing_words
from .._persist.texts import strip_markup
from ._read import (
    Source,
    Table,
    UsageError,
    find_source,
    open_text,
    read_table,
    read_values,
    reporting,
    warn,
)
from ._text import find_ids, find_text_column

Mask = npt.NDArray[np.bool_]
Names = tuple[str, ...]

SAMPLE = "sample"  # the column with the number of a sample, in tables of samples
_COLUMN = "label"  # of a table to fill in, where the labels of the data are in a file
_FEW, _MANY = 20, 100  # labeled samples: of few each may well have a class of its own
_HALF, _MOSTLY = 0.5, 0.9  # share with a label that no other sample has
_SEPARATORS = (";", "|", ",")
_SPREADSHEET_DELIMITERS = (",", ";", "\t")  # which programs choose by the country
_COMPARED = 500  # characters of a text


class NamedColumns(np.ndarray):
    """An indicator matrix whose columns have names, as estimators read them of a data frame."""

    columns: list[str]


@dataclass(frozen=True)
class SampleLabels:
    """Labels of every sample; a sample without any is unlabeled."""

    each: tuple[Names, ...]
    several: bool
    passed_over: frozenset[int] = frozenset()

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
        """Return what a model takes that knows both forms; unlabeled rows are None or NaN."""
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
        """Choose labeled samples to hide; every label keeps a sample that shows it."""
        rng = np.random.default_rng(seed)
        hidden = np.zeros(len(self.each), dtype=bool)
        if not self.several:  # the same share of every class
            labels = self.single()
            for name in self.names:
                members = rng.permutation(np.flatnonzero(labels == name))
                hidden[members[: min(round(share * len(members)), len(members) - 1)]] = True
            return hidden
        left = Counter(name for names in self.each for name in names)
        wanted = round(share * int(self.known.sum()))
        for i in rng.permutation(np.flatnonzero(self.known)):
            if wanted and all(left[name] > 1 for name in self.each[i]):
                left.subtract(self.each[i])
                hidden[i] = True
                wanted -= 1
        return hidden


def read_labels_of(options: Namespace, data: Table | Source, n_samples: int) -> SampleLabels | None:
    """Return the labels that the options name, of a table or of a file next to a matrix."""
    if not options.labels:
        return None
    things = "samples, empty for an unlabeled one"
    values = read_values(options.labels, data, n_samples, things, lists=True)
    passed_over: set[int] = set()
    if options.more_labels:
        values, passed_over = _add_more_labels(values, data, options)
    labels = parse_labels(values, options.label_separator, options.unlabeled or ())
    return replace(labels, passed_over=frozenset(passed_over))


def parse_labels(
    values: Sequence[Any], separator: str | None, unlabeled: Sequence[str] = ()
) -> SampleLabels:
    """Return the labels in a column; raise UsageError if no sample is labeled."""
    absent = {"", *map(nfc, unlabeled)}
    written = [_split_labels(value, separator, absent) for value in values]
    spelling = as_first_given(name for names in written for name in names)
    each = tuple(tuple(dict.fromkeys(spelling[name] for name in names)) for names in written)
    if not any(each):
        raise UsageError("all labels are empty; give at least two classes, or use --model nmf")
    return SampleLabels(each, any(len(names) > 1 for names in each))


def _split_labels(value: Any, separator: str | None, absent: Collection[str] = ()) -> list[str]:
    """Return the labels of one sample as they are written, without those that mean none."""
    parts = value if isinstance(value, list) else [value]
    if separator is not None and isinstance(value, str):
        parts = value.split(separator)
    texts = [str(part).strip() for part in parts if not is_missing(part)]
    return [text for text in texts if nfc(text) not in absent]


def warn_of_labels(labels: SampleLabels, option: str, separator: str | None) -> None:
    """Warn of a wrong column, a missing separator, and texts that mean no label.

    A column that is surely wrong raises UsageError: a fit of that many classes takes minutes.
    `option` is the value of --labels.
    """
    messages = []
    occurs = Counter(name for names in labels.each for name in names)
    alone = sum(all(occurs[name] == 1 for name in names) for names in labels.each if names)
    count = int(labels.known.sum())
    if count > _FEW and alone > _HALF * count:
        unique = (
            f"{alone} of the {count} labeled samples in {option!r} have a label that no other has, "
            "as ids, dates or numbers are"
        )
        if alone >= _MOSTLY * count or count > _MANY:
            raise UsageError(
                f"{unique}; name the column of the labels with --labels, or label several samples "
                "of each class"
            )
        messages = [f"{unique}; is it the column of the labels?"]
    if separator is None and not labels.several:
        hints = (_separator_hint(labels.names, mark) for mark in _SEPARATORS)
        messages += [hint for hint in hints if hint is not None][:1]
    for name in missing_words(labels.names):
        count = sum(name in names for names in labels.each)
        messages.append(
            f"{count} samples are of the class {name!r}, which looks like a missing label; if it "
            f"is one, give --unlabeled {shlex.quote(name)}"
        )
    for message in messages:
        warn(message)


def _separator_hint(names: list[str], mark: str) -> str | None:
    """Return a hint if a mark stands between parts of names, some of which occur in others too."""
    split = {name: {part.strip() for part in name.split(mark)} for name in names}
    joined = [name for name, parts in split.items() if len(parts) > 1]
    occurs = Counter(part for parts in split.values() for part in parts)
    if not any(part and occurs[part] > 1 for name in joined for part in split[name]):
        return None
    return (
        f"{len(joined)} of the {len(names)} classes contain {mark!r}, such as {joined[0]!r}; if "
        f"they are several labels, give --label-separator {mark!r}"
    )


def column_to_fill(labels: str) -> str:
    """Return the name of the column of `suggest` for labels, for a value of --labels."""
    return _COLUMN if Path(labels).is_file() else labels


def _add_more_labels(
    values: Sequence[Any], data: Table | Source, options: Namespace
) -> tuple[list[Any], set[int]]:
    """Return labels with those of filled tables in place of others; and the samples left empty."""
    merged, column = list(values), column_to_fill(options.labels)
    passed_over: set[int] = set()
    places: dict[int, str] = {}
    for name in options.more_labels:
        table = _read_filled(name, column, options.encoding)
        cells = zip(
            table.frame.index,
            table.column(column, lists=True),
            _match_samples(table, data, options, len(merged)),
            strict=True,
        )
        is_empty = True
        for line, value, sample in cells:
            if value is None or value == [] or not str(value).strip():
                passed_over |= {sample} if isinstance(sample, int) else set()
                continue
            is_empty, place = False, f"{table}, line {line}"
            if isinstance(sample, str):
                raise UsageError(f"{place}: {sample}")
            if sample in places:
                earlier, later = (
                    {*map(nfc, _split_labels(one, options.label_separator))}
                    for one in (merged[sample], value)
                )
                if earlier != later:
                    raise UsageError(
                        f"{place}: sample {sample} has the label {short(value)}, and "
                        f"{short(merged[sample])} in {places[sample]}; leave one of them empty"
                    )
            merged[sample], places[sample] = value, place
        if is_empty:
            raise UsageError(f"{name}: no cell of column {column!r} is filled in")
    return merged, passed_over - places.keys()


def _read_filled(name: str, column: str, encoding: str) -> Table:
    options = Namespace(data=name, format=None, encoding=encoding, delimiter=None)
    source = find_source(options)
    if not source.is_table or source.path is None:
        raise UsageError(f"--more-labels {name}: expected a table of `ssnmf-fast suggest`")
    if source.kind == ".csv":
        with reporting(name), open_text(source.path, encoding) as file:
            head = file.readline()
        for mark in reversed(_SPREADSHEET_DELIMITERS):
            if column in next(csv.reader([head], delimiter=mark), []):
                source = replace(source, delimiter=mark)
    return read_table(source)


def _match_samples(
    filled: Table, data: Table | Source, options: Namespace, count: int
) -> list[int | str]:
    """Return for every row of a filled table the number of its sample, or why there is none."""
    name, samples = SAMPLE, {str(k): k for k in range(count)}
    texts = written = None
    if isinstance(data, Table):
        others = options.labels, options.time
        column = find_text_column(data, options.text, *others)
        ids = find_ids(data, options.id, column, *others)
        if ids is not None and ids[0] in filled.frame:
            by_id = {nfc(str(one)): sample for sample, one in enumerate(ids[1])}
            name, samples = (ids[0], by_id) if len(by_id) == count else (name, samples)
        if column in filled.frame:
            texts, written = data.column(column), filled.column(column)
    keys = filled.column(name) if name in filled.frame else [""] * len(filled.frame)
    matches: list[int | str] = []
    for row, key in enumerate(keys):
        sample = samples.get(nfc(str("" if key is None else key).strip()))
        if sample is None:
            matches.append(f"{data} has no sample whose {name} is {short(str(key).strip())}")
        elif texts is not None and written is not None and _differ(texts[sample], written[row]):
            matches.append(
                f"the text is not that of sample {sample} of {data}; it must be the table from "
                "which the samples were suggested"
            )
        else:
            matches.append(sample)
    return matches


def _differ(text: Any, written: Any) -> bool:
    """Whether texts differ in what programs leave as it is: ASCII letters and digits."""
    plain = "" if text is None else str(text)
    first, second, other = (
        re.sub(r"[^0-9A-Za-z]+", "", "" if one is None else nfc(str(one)))[:_COMPARED]
        for one in (plain, strip_markup(plain), written)
    )
    return other not in (first, second)


SEEDS_EXAMPLE = '{"space": ["orbit", "nasa"], "sport": {"game": 2, "team": 1}}'
_YAML_HINT = "python -m pip install pyyaml, or give a .json file"


def read_seeds(name: str, encoding: str) -> dict[str, Any]:
    """Return the words, or words and strengths, of every topic."""
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected seeds such as {SEEDS_EXAMPLE}")
    with reporting(path), open_text(path, encoding) as file:
        text = file.read()
    content = (_parse_yaml if path.suffix.lower() in (".yaml", ".yml") else _parse_json)(text, path)
    if not isinstance(content, dict) or not all(
        isinstance(words, (list, dict))
        and all(isinstance(word, str) for word in words)
        and (isinstance(words, list) or all(type(one) in (int, float) for one in words.values()))
        for words in content.values()
    ):
        raise UsageError(f"{path} holds no seeds; expected words by topic, such as {SEEDS_EXAMPLE}")
    return {str(topic): seeds for topic, seeds in content.items()}


def _refuse_repeated(names: list[str], path: Path) -> None:
    """Raise UsageError for a name that a mapping has twice, of which readers take the last."""
    for name, count in Counter(map(nfc, names)).items():
        if count > 1:
            raise UsageError(f"{path} has {short(name)} twice in one mapping; merge the two")


def _parse_json(text: str, path: Path) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_repeated([name for name, _ in pairs], path)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=mapping)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON ({error}); expected {SEEDS_EXAMPLE}") from error


def _parse_yaml(text: str, path: Path) -> Any:
    with require_package("PyYAML", _YAML_HINT):
        import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _refuse_repeated([str(key.value) for key, _ in node.value], path)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # of a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{path} is no YAML ({' '.join(str(error).split())})") from error
