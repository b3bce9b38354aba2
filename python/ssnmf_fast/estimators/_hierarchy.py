"""Trees of labels: what is part of what, and what a label says about every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.text import as_first_given, nfc, short
from .._labels import ClassLabels, is_missing

Path = tuple[Any, ...]  # labels from the top to one of them


@dataclass(frozen=True)
class Hierarchy:
    """A tree of labels, (n_nodes,), and the number of the parent of each, -1 at the top.

    A label without parts belongs to all levels below its own too.
    """

    nodes: Array
    parents: Array

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Hierarchy:
        """Return the tree of some paths; ValueError for text beside numbers."""
        paths = list(paths)
        name = as_first_given(label for path in paths for label in path)
        paths = [tuple(name[label] for label in path) for path in paths]
        prefixes = {path[:end] for path in paths for end in range(1, len(path) + 1)}
        try:
            ordered = sorted(prefixes, key=lambda path: (len(path), path))
        except TypeError as error:
            raise ValueError(
                "Labels are text and numbers, which have no order; use one kind for all levels."
            ) from error
        place = {path: k for k, path in enumerate(ordered)}
        parents = [place[path[:-1]] if len(path) > 1 else -1 for path in ordered]
        return cls(np.array([path[-1] for path in ordered]), np.array(parents, dtype=np.int64))

    @cached_property
    def paths(self) -> list[list[int]]:
        """The numbers of the nodes from the top to each."""
        found: list[list[int]] = []
        for node, parent in enumerate(self.parents.tolist()):
            found.append([*(found[parent] if parent >= 0 else []), node])
        return found

    @property
    def depth(self) -> int:
        """Number of levels."""
        return max(map(len, self.paths))

    def labels(self, given: Iterable[Any], level: int) -> list[Any]:
        """Return what labels are at a level, None where that is not known."""
        listed = self.nodes.tolist()
        place = {nfc(label): node for node, label in enumerate(listed)}
        found = []
        for label in given:
            if nfc(label) not in place:
                raise ValueError(f"y holds {short(label)}, which is none of the labels of the fit.")
            node = self.at(place[nfc(label)], level)
            found.append(None if node < 0 else listed[node])
        return found

    def at(self, node: int, level: int) -> int:
        """Return what a node is at a level: -1 where its parts are, but not which of them."""
        path = self.paths[node]
        if level < len(path):
            return path[level]
        return -1 if node in self.parents else node

    def level(self, level: int) -> Array:
        """Return the numbers of the nodes of a level, in the order of their labels."""
        found = {self.at(node, level) for node in range(len(self.nodes))} - {-1}
        return np.array(sorted(found, key=lambda node: self.nodes[node]))

    def members(self, level: int) -> Array:
        """Return which nodes of the last level a level's have, (last, level) of 0 and 1."""
        last = [self.at(node, level) for node in self.level(self.depth - 1).tolist()]
        return np.asarray(np.array(last)[:, None] == self.level(level), dtype=np.float64)


def paths_of(labels: ClassLabels, parents: Any, separator: str | None) -> list[Path]:
    """Return the path of every labeled sample: by its parents, or of the parts of its text."""
    if parents is not None:
        if not isinstance(parents, Mapping):
            raise TypeError(
                "parents must be a mapping of labels to what they are part of, such as "
                f"{{'wheat': 'grain'}}; got {type(parents).__name__}."
            )
        above = {nfc(part): whole for part, whole in parents.items() if not is_missing(whole)}
        return [_climbed(label, above) for label in labels.known.tolist()]
    if separator is None:
        return [(label,) for label in labels.known.tolist()]
    if not isinstance(separator, str) or not separator:
        raise TypeError(
            f"separator must be text that is not empty, or None; got {short(separator)}."
        )
    return [_cut(label, separator) for label in labels.known.tolist()]


def _climbed(label: Any, parents: Mapping[Any, Any]) -> Path:
    path = [label]
    while nfc(path[-1]) in parents:
        path.append(parents[nfc(path[-1])])
        if nfc(path[-1]) in map(nfc, path[:-1]):
            raise ValueError(f"parents has a circle: {short(path[-1])} is part of itself.")
    return tuple(reversed(path))


def _cut(label: Any, separator: str) -> Path:
    if not isinstance(label, str):
        return (label,)
    parts = label.split(separator)
    if not all(parts):
        raise ValueError(
            f"The label {short(label)} has an empty part beside {separator!r}. Give another "
            "separator, or separator=None if labels have no parts."
        )
    return tuple(separator.join(parts[:end]) for end in range(1, len(parts) + 1))
