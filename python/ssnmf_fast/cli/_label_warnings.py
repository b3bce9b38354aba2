"""Warnings of labels that are probably not what the user meant."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Iterator

from .._labels import missing_words
from ._sample_labels import SampleLabels

_FEW = 20  # labeled samples, of which each may well have a class of its own
_MOSTLY = 0.9
_SEPARATORS = (";", "|", ",")


def warn_of_labels(labels: SampleLabels, given: str, separator: str | None) -> None:
    """Warn of a wrong column, a separator that was not given, and texts that mean no label.

    `given` is the value of --labels.
    """
    for message in (*_unique(labels, given), *_joined(labels, separator), *_absent(labels)):
        warnings.warn(message, stacklevel=3)


def _unique(labels: SampleLabels, given: str) -> Iterator[str]:
    count, classes = int(labels.known.sum()), len(labels.names)
    if count >= _FEW and classes >= _MOSTLY * count:
        yield (
            f"the {count} labels in {given!r} are nearly all different ({classes} classes), as ids "
            "or numbers are; is it the column of the labels?"
        )


def _joined(labels: SampleLabels, separator: str | None) -> Iterator[str]:
    """Tell of a mark between parts, some of which occur in other labels too."""
    if separator is not None or labels.several:
        return
    for mark in _SEPARATORS:
        split = {name: {part.strip() for part in name.split(mark)} for name in labels.names}
        joined = [name for name, parts in split.items() if len(parts) > 1]
        occurs = Counter(part for parts in split.values() for part in parts)
        if any(part and occurs[part] > 1 for name in joined for part in split[name]):
            yield (
                f"{len(joined)} of the {len(split)} classes contain {mark!r}, such as "
                f"{joined[0]!r}; if they are several labels, give --label-separator {mark!r}"
            )
            return


def _absent(labels: SampleLabels) -> Iterator[str]:
    for name in missing_words(labels.names):
        count = sum(name in names for names in labels.each)
        yield (
            f"{count} samples are of the class {name!r}, which looks like a missing label; if it "
            f"is one, give --unlabeled {shlex.quote(name)}"
        )
