"""Labels that are hardly meant: one class in two spellings, no label, and several labels."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from .._common.text import nfc, short
from .._common.warn import LABELS, is_quiet, warn_user
from .._data.arrays import is_missing

_MEAN_MISSING = frozenset(  # as keys
    {"", "-", "--", "---", "?", "??", "<na>", "#n/a", "#na", "n/a", "n.a", "na", "nan", "-nan"}
    | {"nat", "none", "null", "nil", "\\n", "-1", "undefined", "missing", "unknown", "unlabeled"}
    | {"unlabelled", "not available", "no label"}  # codespell:ignore unlabelled
)
_PLAIN = {"Zs": " ", "Pd": "-", "Cf": "", "Cc": " "}  # by category
_VARIANT = re.compile("[\ufe00-\ufe0f]")
_LIST = re.compile(r"\s*(?:\[\s*['\"].*['\"]\s*\]|\{\s*['\"].*\})\s*", re.DOTALL)
_BRACKETS = {"[": "]", "(": ")", "{": "}", "<": ">"}
_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.0*|,0{1,2})?")
_CODE = re.compile(r"0|-?(?:9+|8{2,})|9+8")  # of "not coded" in tables
_OF_MOST = "which looks like a missing label, as most samples have it"
# Labels are joined by marks if some part is in other labels, too, or all parts are.
_MARKS = dict.fromkeys((";", "|", ",", "#", "\n", "\t", "\uff0c", "\uff1b", "\u3001"), any)
_MARKS |= dict.fromkeys(("+", "&"), all)  # "/" marks levels of a tree
_SHOWN = 3
_ADVICE = {
    "spelling": "If they are one class, give all of its samples the same label.",
    "missing": "If it is one, pass unlabeled={word}, or None in its place; if it is a class, "
    "unlabeled=None.",
    "list": "Give lists of labels to sklearn.preprocessing.MultiLabelBinarizer.",
    "joined": "If several labels are meant, give lists to sklearn's MultiLabelBinarizer.",
}


def label_key(label: object) -> str:
    """Return what is equal for all spellings of one label.

    Programs change case, blanks, invisible characters, dashes, leading zeros, and decimals.
    """
    text = unicodedata.normalize("NFKC", str(label)).casefold().replace("\u2212", "-")
    if not (text.isascii() and text.isprintable()):
        kinds = ((unicodedata.category(char), char) for char in _VARIANT.sub("", text))
        text = "".join(_PLAIN.get(kind, char) for kind, char in kinds)
    text = " ".join(text.split()).rstrip(".")
    number = _NUMBER.fullmatch(text)
    return number[1].strip("+") + number[2] if number else text


def means_missing(text: str) -> bool:
    """Return whether a text stands for "no value", such as "n/a" or "-"."""
    plain = label_key(text)
    bare = plain[1:-1] if _BRACKETS.get(plain[:1]) == plain[-1:] else plain
    return bare in _MEAN_MISSING or (bare != plain and bare in ("blank", "empty"))


def doubts(
    counts: Mapping[Any, int], earlier: Iterable[Any] = ()
) -> Iterator[tuple[str, str, Any]]:
    """Yield the kind, the sentence and the word or mark of doubts about labels.

    `counts` has the number of samples of each label, and `earlier` holds labels of a fit or marker.
    """
    alike: dict[str, list[Any]] = {}
    for label in dict.fromkeys([*counts, *earlier]):
        alike.setdefault(label_key(label), []).append(label)
    new = counts.keys() - set(earlier)
    groups = [group for group in alike.values() if len(group) > 1 and not new.isdisjoint(group)]
    if groups:
        shown = "; ".join(
            " and ".join(f"{label!r:.100}{_samples(counts.get(label, 0))}" for label in group)
            for group in groups[:_SHOWN]
        )
        more = f"; and {len(groups) - _SHOWN} more" * (len(groups) > _SHOWN)
        yield "spelling", f"classes that differ only in spelling: {shown}{more}", None
    texts = [label for label in counts if isinstance(label, str)]
    for text in texts:
        if means_missing(text):
            wrong = f"the class {short(text)}, which looks like a missing label"
            yield "missing", wrong, text
    total = sum(counts.values())
    for label, count in counts.items():
        key = label_key(label) if 2 * count > total else ""
        if _CODE.fullmatch(key) and (len(alike) > 2 or len(key) > 1):  # 0 and 1 are classes
            adjacent = not alike.keys().isdisjoint((f"{int(key) - 1}", f"{int(key) + 1}"))
            if isinstance(label, str) or not adjacent:  # consecutive integers are classes
                yield "missing", f"the class {short(label)}, {_OF_MOST}", label
    lists = [text for text in texts if parse_list(text) is not None or _LIST.fullmatch(text)]
    if lists:
        yield "list", f"the class {short(lists[0])}, which looks like a list of labels", None
    written = "\0".join(texts)
    for mark, enough in _MARKS.items() if not lists else ():
        if mark not in written:
            continue
        words = (text for text in texts if not _NUMBER.fullmatch(text))  # such as 1,0
        labels = {text: {part.strip() for part in text.split(mark)} - {""} for text in words}
        times = Counter(chain.from_iterable(labels.values()))
        several = ((text, parts) for text, parts in labels.items() if len(parts) > 1)
        joined = [text for text, parts in several if enough(times[part] > 1 for part in parts)]
        if joined:
            of_all = f"{len(joined)} of {len(counts)} classes that contain {mark!r}"
            yield "joined", f"{of_all}, such as {short(joined[0])}", mark
            break


def _samples(count: float) -> str:
    return f" ({count:g} sample{'s' * (count != 1)})" * (count > 0)


def parse_list(text: str) -> list[Any] | None:
    """Return the values of a list in JSON or Python, such as '["a", "b"]'; None for other texts."""
    plain = text.strip()
    if plain[:1] not in ("[", "(") or plain[-1:] not in ("]", ")"):
        return None
    joins = re.search(r"'\s+'|\"\s+\"", plain)  # ['a' 'b'], of NumPy, would be ['ab']
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            values = parse(plain)
            if isinstance(values, (list, tuple)) and (parse is json.loads or not joins):
                scalars = all(v is None or isinstance(v, (str, int, float)) for v in values)
                return list(values) if scalars else None
    return None


def warn_of_doubts(
    labels: Iterable[Any] | Mapping[Any, int],
    name: str,
    marker: object = "auto",
    earlier: Iterable[Any] = (),
    *,
    several: bool = False,
) -> None:
    """Warn about labels that are hardly meant; `marker` is `unlabeled`.

    Each warning is issued for the first label of its kind.
    """
    is_label = isinstance(marker, str) and marker != "auto"
    settled = {"missing"} if is_label or is_missing(marker) else set()
    settled |= {"joined"} if several else set()
    earlier = [*earlier, *[nfc(marker)] * is_label]
    for kind, wrong, word in doubts(Counter(labels), earlier):
        if kind in settled or is_quiet(LABELS):
            continue
        settled.add(kind)
        warn_user(f"{name} has {wrong}. {_ADVICE[kind].format(word=short(word))}", UserWarning)
