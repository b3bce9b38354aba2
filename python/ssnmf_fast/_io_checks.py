"""Checks of what a model file holds, before a model is made of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Shapes = dict[str, tuple[str, ...]]

# Axes by letter: equal letters must have equal sizes.  () stands for a count or a flag.
FACTORIZATION_SHAPES: Shapes = {
    "S": ("n", "r"),
    "A": ("r", "m"),
    "B": ("r", "k"),
    "n_iter": (),
    "converged": (),
}
ESTIMATOR_SHAPES: Shapes = {
    "components_": ("r", "m"),
    "representation_": ("n", "r"),
    "label_components_": ("r", "k"),
    "classes_": ("k",),
    "class_prior_": ("k",),
    "feature_names_in_": ("m",),
    "n_features_in_": (),
    "n_iter_": (),
    "n_targets_": (),
    "multilabel_": (),
    "n_labelled_": (),
}


def check_parts(values: dict[str, Any], shapes: Shapes) -> None:
    """Raise ValueError unless the shapes agree with each other and the factors are nonnegative."""
    sizes: dict[str, int] = {}
    if "n_features_in_" in values:
        sizes["m"] = values["n_features_in_"]
    for key, axes in shapes.items():
        value = values.get(key)
        if value is None:
            continue
        if not axes:
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{key} is no count")
            continue
        if not isinstance(value, np.ndarray) or value.ndim != len(axes):
            raise ValueError(f"{key} is no array of {len(axes)} dimensions")
        for axis, size in zip(axes, value.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"{key} has shape {value.shape}, which other arrays contradict")
        if len(axes) == 2 and not (value.dtype.kind == "f" and np.all(value >= 0)):
            raise ValueError(f"{key} holds other than nonnegative numbers")
    if not math.prod(values["A" if "A" in shapes else "components_"].shape):
        raise ValueError("the dictionary is empty")
