"""Classifiers of the levels of a tree of labels: what is saved of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.saved import Saved
from ._few_labels import FewLabelsClassifier
from ._readout import SavedReadout

_PLAIN = {
    "components_": Saved("rm"),
    "class_shares_": Saved("rk"),
    "class_prior_": Saved("k", "finite"),
}
_READOUT = "readout_"


class Levels(list[Any]):
    """A fitted classifier for each level, or None."""

    def arrays(self) -> dict[str, Array]:
        """Return what predicts: arrays under "level/name" and "level/readout_/name"."""
        found: dict[str, Array] = {}
        for level, model in enumerate(self):
            if model is not None:
                parts = {name: getattr(model, name) for name in _PLAIN}
                of_readout = getattr(model, _READOUT).arrays()
                parts |= {f"{_READOUT}/{name}": part for name, part in of_readout.items()}
                found |= {f"{level}/{name}": np.asarray(part) for name, part in parts.items()}
        return found


class SavedLevels(Saved):
    """A :class:`Levels`, saved as its arrays."""

    @property
    def of_numbers(self) -> bool:
        return True

    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """Raise ValueError unless the parts are there and fit together."""
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no mapping of arrays")
        for level, parts in _by_level(value).items():
            if parts.keys() != {*_PLAIN, _READOUT}:
                raise ValueError(f"{name} has not the parts {[*_PLAIN, _READOUT]} of level {level}")
            own = {"m": sizes["m"]} if "m" in sizes else {}
            for part, saved in {**_PLAIN, _READOUT: SavedReadout()}.items():
                saved.check(f"{name}[{level}].{part}", parts[part], own)

    def restored(self, value: Any) -> Levels:
        """Return the classifiers of checked arrays; the model gives them names and parameters."""
        by_level = _by_level(value)
        found = Levels([None] * (max(by_level) + 1))
        for level, parts in by_level.items():
            model = FewLabelsClassifier(unlabeled=None)
            for name in _PLAIN:
                setattr(model, name, parts[name])
            model.readout_ = SavedReadout().restored(parts[_READOUT])
            model.n_features_in_ = model.components_.shape[1]
            model.multilabel_ = False
            found[level] = model
        return found


def _by_level(arrays: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the parts of every level: arrays, and those of the readout."""
    found: dict[int, dict[str, Any]] = {}
    for key, array in arrays.items():
        level, _, name = key.partition("/")
        parts = found.setdefault(int(level), {})
        group, _, inner = name.partition("/")
        if inner:
            parts.setdefault(group, {})[inner] = array
        else:
            parts[name] = array
    return found
