"""Seeds of topics: features with strengths, and features that a topic may not have."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import listed, nfc, short
from .._common.warn import warn_user
from .._data.border import check_integer, check_real, check_vector
from .._topics import names_of


class Vocabulary:
    """Features by name or by number; names that are not among them are noted."""

    def __init__(self, feature_names: Any, n_features: int) -> None:
        self.n_features = n_features
        self.unknown: list[str] = []
        self._positions: dict[str, int] | None = None
        if feature_names is not None:
            names = names_of(feature_names, n_features)
            # Of two spellings of one name the first; a name as it is written comes before both.
            pairs = [(name, i) for i, name in enumerate(names)]
            self._positions = {nfc(name): i for name, i in reversed(pairs)} | dict(pairs)

    def position(self, feature: Any, where: str) -> int | None:
        """Return the number of a feature; None for a name that is not among them."""
        if isinstance(feature, numbers.Integral):
            return check_integer(feature, f"every number in {where}", 0, self.n_features - 1)
        if not isinstance(feature, str):
            raise TypeError(
                f"{where} holds {short(feature)} ({type(feature).__name__}); expected names of "
                "features, or their numbers."
            )
        if self._positions is None:
            raise ValueError(
                f"{where} holds the name {short(feature)}, and X has no names of features. Give "
                "feature_names, such as those of a vectorizer, or numbers of columns."
            )
        found = self._positions.get(feature, self._positions.get(nfc(feature)))
        if found is None:
            self.unknown.append(feature)
        return found

    def warn_of_unknown(self, where: str) -> None:
        """Warn of the names that were asked for and are not among the features."""
        if not self.unknown:
            return
        warn_user(
            f"{where} names features that X does not have, which are left out: "
            f"{listed(self.unknown)}. Check the spelling, and what the vectorizer makes of words.",
            UserWarning,
        )


@dataclass(frozen=True)
class Seeds:
    """What is known of k topics: `strengths` and `allowed` are (k, m)."""

    names: list[Any]
    strengths: sp.csr_array  # rows sum to 1, or are 0 for a topic without seeds
    allowed: Array  # bool
    unknown: list[str]

    @classmethod
    def read(cls, seeds: Any, forbidden: Any, feature_names: Any, n_features: int) -> Seeds:
        """Check what the user gave, and warn of unknown names."""
        seeds, forbidden = _checked(seeds, "seeds"), _checked(forbidden, "forbidden")
        forbidden = {nfc(name): features for name, features in forbidden.items()}
        strange = [name for name in forbidden if name not in set(map(nfc, seeds))]
        if strange:
            raise ValueError(
                f"forbidden names the topic {short(strange[0])}, which is not one of the topics of "
                f"seeds: {listed(list(seeds))}."
            )
        vocabulary = Vocabulary(feature_names, n_features)
        rows = [_strengths(given, name, vocabulary) for name, given in seeds.items()]
        unknown = list(vocabulary.unknown)
        vocabulary.warn_of_unknown("seeds")
        vocabulary.unknown.clear()
        allowed = np.ones((len(rows), n_features), dtype=bool)
        for k, name in enumerate(seeds):
            where = f"forbidden[{short(name)}]"
            for feature in _listed(forbidden.get(nfc(name), ()), where):
                position = vocabulary.position(feature, where)
                if position is None:
                    continue
                if isinstance(seeds[name], np.ndarray):  # of an earlier model, which had it
                    rows[k].pop(position, None)
                elif position in rows[k]:
                    raise ValueError(
                        f"{short(feature)} is a seed of the topic {short(name)} and forbidden in "
                        "it. Take it out of seeds or of forbidden."
                    )
                allowed[k, position] = False
        vocabulary.warn_of_unknown("forbidden")
        return cls(list(seeds), _matrix(rows, n_features), allowed, unknown)


def _checked(given: Any, name: str) -> Mapping[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name} must be a dict of topics, such as {{'space': ['orbit', 'nasa']}}; got "
            f"{short(given)} ({type(given).__name__})."
        )
    twice = [one for one, count in Counter(map(nfc, given)).items() if count > 1]
    if twice:
        raise ValueError(f"{name} has the topic {short(twice[0])} twice. Merge the two.")
    return given


def _listed(given: Any, where: str) -> list[Any]:
    """Return features of a list."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(
            f"{where} must be a list of features; got {short(given)}. Put it into a list."
        )
    return np.asarray(given).tolist() if isinstance(given, np.ndarray) else list(given)


def _strengths(given: Any, name: Any, vocabulary: Vocabulary) -> dict[int, float]:
    """Return the strength of every seed of a topic, by the number of the feature."""
    where = f"seeds[{short(name)}]"
    if isinstance(given, np.ndarray) and given.dtype.kind == "f":  # a row of an earlier model
        row = check_vector(given, where, vocabulary.n_features, np.float64)
        return dict(enumerate(row.tolist()))
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = given.items()
    else:
        pairs = ((feature, 1.0) for feature in _listed(given, where))
    found: dict[int, float] = {}
    for feature, strength in pairs:
        position = vocabulary.position(feature, where)
        number = check_real(strength, f"{where}[{short(feature)}]")
        if number == 0:
            raise ValueError(
                f"{where}[{short(feature)}] is 0; a strength is above 0. Leave the feature out, or "
                "put it into forbidden."
            )
        if position is not None:
            if isinstance(given, Mapping) and found.get(position, number) != number:
                raise ValueError(
                    f"{where} gives {short(feature)} the strengths {found[position]:g} and "
                    f"{number:g}. Leave one out."
                )
            found[position] = number
    return found


def _matrix(rows: list[dict[int, float]], n_features: int) -> sp.csr_array:
    """Return strengths, each row divided by its sum: long lists count as much as short ones."""
    matrix = sp.lil_array((len(rows), n_features))
    for k, row in enumerate(rows):
        total = sum(row.values())
        for position, strength in row.items():
            if strength > 0:
                matrix[k, position] = strength / total
    return sp.csr_array(matrix)
