"""Labels of the samples as files hold them: none, one or several each."""

from __future__ import annotations

import json
import shlex
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.optional import require_package
from .._common.text import as_first_given, nfc, short
from .._labels import indicator_matrix, is_missing, missing_words
from ._read import UsageError, open_text, reporting

Mask = npt.NDArray[np.bool_]
Names = tuple[str, ...]

_FEW, _MANY = 20, 100  # labeled samples: of few each may well have a class of its own
_HALF, _MOSTLY = 0.5, 0.9  # share with a label that no other sample has
_SEPARATORS = (";", "|", ",")


class NamedColumns(np.ndarray):
    """An indicator matrix whose columns have names, as estimators read them of a data frame."""

    columns: list[str]


@dataclass(frozen=True)
class SampleLabels:
    """Labels of every sample; a sample without any is unlabeled.

    `several` tells whether any sample has more than one, also where those are hidden.  Those that
    are `passed_over` were suggested, and got no label.
    """

    each: tuple[Names, ...]
    several: bool
    passed_over: frozenset[int] = frozenset()

    @property
    def known(self) -> Mask:
        """Which samples are labeled."""
        return np.array([bool(names) for names in self.each], dtype=bool)

    @property
    def names(self) -> list[str]:
        """All labels, sorted."""
        return sorted({name for names in self.each for name in names})

    def single(self) -> npt.NDArray[np.object_]:
        """Return one label a sample, None where there is none."""
        first = [names[0] if names else None for names in self.each]
        return np.array(first, dtype=object)

    def indicators(self, names: Sequence[str] | None = None) -> Array:
        """Return which labels the samples have, (n, k) of 0 and 1, in the order of `names`."""
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
        """Return the labels with those of some samples hidden."""
        each = [() if hide else names for names, hide in zip(self.each, hidden, strict=True)]
        return SampleLabels(tuple(each), self.several)

    def text(self, separator: str) -> list[str]:
        """Return the labels as one text a sample."""
        return [separator.join(names) for names in self.each]

    def hold_out(self, share: float, seed: int) -> Mask:
        """Choose labeled samples to hide; every label keeps a sample that shows it."""
        rng = np.random.default_rng(seed)
        chosen = np.zeros(len(self.each), dtype=bool)
        if not self.several:  # the same share of every class
            labels = self.single()
            for name in self.names:
                members = rng.permutation(np.flatnonzero(labels == name))
                count = min(round(share * len(members)), len(members) - 1)
                chosen[members[:count]] = True
            return chosen
        left = Counter(name for names in self.each for name in names)
        wanted = round(share * int(self.known.sum()))
        for i in rng.permutation(np.flatnonzero(self.known)):
            if wanted and all(left[name] > 1 for name in self.each[i]):
                left.subtract(self.each[i])
                chosen[i] = True
                wanted -= 1
        return chosen


def read_labels(
    values: Sequence[Any], separator: str | None, unlabeled: Sequence[str] = ()
) -> SampleLabels:
    """Return the labels in a column; raise UsageError if no sample is labeled.

    A value is a label, a list of labels, or nothing (None, NaN, an empty text or list, one of the
    texts in `unlabeled`).  What is equal in the form NFC of Unicode is one label, named as given
    first.  The separator stands between several labels in a text; None takes a
    text as one label.
    """
    absent = {"", *map(nfc, unlabeled)}
    written = [names_in(value, separator, absent) for value in values]
    spelling = as_first_given(name for names in written for name in names)
    each = tuple(tuple(dict.fromkeys(spelling[name] for name in names)) for names in written)
    if not any(each):
        raise UsageError("all labels are empty; give at least two classes, or use --model nmf")
    return SampleLabels(each, any(len(names) > 1 for names in each))


def names_in(value: Any, separator: str | None, absent: Collection[str] = ()) -> list[str]:
    """Return the labels of one sample, as they are written, but for those that mean none."""
    parts = value if isinstance(value, list) else [value]
    if separator is not None and isinstance(value, str):
        parts = value.split(separator)
    texts = [str(part).strip() for part in parts if not is_missing(part)]
    return [text for text in texts if nfc(text) not in absent]


def warn_of_labels(labels: SampleLabels, given: str, separator: str | None) -> None:
    """Warn of a wrong column, a separator that was not given, and texts that mean no label.

    A column that is surely wrong raises UsageError: a fit of so many classes takes minutes.
    `given` is the value of --labels.
    """
    messages = []
    count, alone = _alone(labels)
    if count > _FEW and alone > _HALF * count:
        found = (
            f"{alone} of the {count} labeled samples in {given!r} have a label that no other has, "
            "as ids, dates or numbers are"
        )
        if alone >= _MOSTLY * count or count > _MANY:
            raise UsageError(
                f"{found}; name the column of the labels with --labels, or label several samples "
                "of each class"
            )
        messages = [f"{found}; is it the column of the labels?"]
    if separator is None and not labels.several:
        hints = (_joined(labels.names, mark) for mark in _SEPARATORS)
        messages += [hint for hint in hints if hint is not None][:1]
    for name in missing_words(labels.names):
        count = sum(name in names for names in labels.each)
        messages.append(
            f"{count} samples are of the class {name!r}, which looks like a missing label; if it "
            f"is one, give --unlabeled {shlex.quote(name)}"
        )
    for message in messages:
        warnings.warn(message, stacklevel=2)


def _alone(labels: SampleLabels) -> tuple[int, int]:
    """Return how many samples are labeled, and how many of them have labels of their own."""
    occurs = Counter(name for names in labels.each for name in names)
    alone = sum(all(occurs[name] == 1 for name in names) for names in labels.each if names)
    return int(labels.known.sum()), alone


def _joined(names: list[str], mark: str) -> str | None:
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


_YAML = (".yaml", ".yml")
_EXAMPLE = '{"space": ["orbit", "nasa"], "sport": {"game": 2, "team": 1}}'
_HINT = "python -m pip install pyyaml, or give a .json file"


def read_seeds(name: str, encoding: str) -> dict[str, Any]:
    """Return the words, or words and strengths, of every topic."""
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected seeds such as {_EXAMPLE}")
    with reporting(path), open_text(path, encoding) as file:
        text = file.read()
    content = (_of_yaml if path.suffix.lower() in _YAML else _of_json)(text, path)
    if not isinstance(content, dict) or not all(map(_are_seeds, content.values())):
        raise UsageError(f"{path} holds no seeds; expected words by topic, such as {_EXAMPLE}")
    return {str(topic): seeds for topic, seeds in content.items()}


def _require_different(names: Iterable[str], path: Path) -> None:
    """Raise UsageError for a name that a mapping has twice, of which readers take the last."""
    for name, count in Counter(map(nfc, names)).items():
        if count > 1:
            raise UsageError(f"{path} has {short(name)} twice in one mapping; merge the two")


def _of_json(text: str, path: Path) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _require_different((name for name, _ in pairs), path)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=mapping)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON ({error}); expected {_EXAMPLE}") from error


def _of_yaml(text: str, path: Path) -> Any:
    with require_package("PyYAML", _HINT):
        import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _require_different((str(key.value) for key, _ in node.value), path)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # of a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{path} is no YAML ({' '.join(str(error).split())})") from error


def _are_seeds(given: Any) -> bool:
    if isinstance(given, Mapping):
        strengths = given.values()
        return all(isinstance(word, str) for word in given) and all(map(_is_number, strengths))
    return isinstance(given, list) and all(isinstance(word, str) for word in given)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
