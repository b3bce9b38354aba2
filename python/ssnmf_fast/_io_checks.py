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
COMPLETION_SHAPES: Shapes = {
    "left": ("n", "c"),
    "right": ("c", "m"),
    "singular_values": ("r",),
    "rank": (),
    "n_iter": (),
    "converged": (),
}
IMPUTER_SHAPES: Shapes = {
    "components_": ("r", "m"),
    "ridge_": ("r",),
    "centers_": ("m",),
    "scales_": ("m",),
    "feature_names_in_": ("m",),
    "rank_": (),
    "n_iter_": (),
    "n_features_in_": (),
}
ESTIMATOR_SHAPES: Shapes = {
    "components_": ("r", "m"),
    "representation_": ("n", "r"),
    "label_components_": ("r", "k"),
    "refitted_label_components_": ("r", "k"),
    "class_shares_": ("r", "k"),
    "readout_coef_": ("k", "p"),
    "readout_intercept_": ("k",),
    "readout_directions_": ("d", "m"),
    "readout_slope_": ("k",),
    "readout_offset_": ("k",),
    "thresholds_": ("k",),
    "self_training_": (),
    "classes_": ("k",),
    "class_prior_": ("k",),
    "class_representation_": ("k", "r"),
    "topic_names_": ("t",),
    "feature_names_in_": ("m",),
    "n_features_in_": (),
    "n_iter_": (),
    "n_targets_": (),
    "multilabel_": (),
    "n_labelled_": (),
    "n_directions_": (),
    "components_rate_": ("r",),
    "representation_rates_": ("g", "r"),
    "representation_groups_": ("n",),
    "label_rates_": ("r", "k"),
}
# What Bayesian models have besides: rates of gamma distributions, and numbers.
_RATES = ("components_rate_", "representation_rates_", "label_rates_")
_POSITIVE = (
    *("a_A_", "b_A_", "a_S_", "b_S_", "a_lambda_", "b_lambda_"),
    *("new_sample_rate_", "count_scale_"),
)


def check_parts(values: dict[str, Any], shapes: Shapes) -> None:
    """Raise ValueError unless the shapes agree and factors are finite, for NMF nonnegative."""
    signed = shapes is COMPLETION_SHAPES or shapes is IMPUTER_SHAPES
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
        either = signed or key.startswith("readout_")
        if len(axes) == 2 and not (value.dtype.kind == "f" and _sound(value, either)):
            kind = "finite" if signed else "nonnegative"
            raise ValueError(f"{key} holds other than {kind} numbers")
    dictionary = next(name for name in ("A", "right", "components_") if name in shapes)
    if not math.prod(values[dictionary].shape):
        raise ValueError("the dictionary is empty")
    if "components_rate_" in values:
        _check_posteriors(values)
    if "readout_coef_" in values:
        _check_readout(values, sizes)


def _check_posteriors(values: dict[str, Any]) -> None:
    """Raise ValueError unless all rates and hyperparameters are positive and groups have rates."""
    check_numbers(values, ("lower_bound_", *(name for name in _POSITIVE if name in values)))
    numbers = [np.asarray(values[name]) for name in (*_RATES, *_POSITIVE) if name in values]
    if not all(np.all((number > 0) & np.isfinite(number)) for number in numbers):
        raise ValueError("a rate or a hyperparameter is not positive")
    groups = values["representation_groups_"]
    if groups.dtype.kind != "i" or not np.all(
        (groups >= 0) & (groups < len(values["representation_rates_"]))
    ):
        raise ValueError("representation_groups_ are no rows of representation_rates_")


def _check_readout(values: dict[str, Any], sizes: dict[str, int]) -> None:
    """Raise ValueError unless the parts of a readout are there and fit together."""
    parts = ("directions", "intercept", "slope", "offset", "row_scale")
    needed = [f"readout_{name}_" for name in parts]
    needed += ["thresholds_", "classes_", "class_prior_", "multilabel_"]
    missing = [name for name in needed if name not in values]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    check_numbers(values, ("readout_row_scale_",))
    for name in ("intercept", "slope", "offset", "row_scale"):
        _check_finite(values, f"readout_{name}_")
    for name in ("thresholds_", "class_prior_"):
        _check_finite(values, name)
    whole = sizes["d"] + sizes["m"] if sizes["d"] else 0
    if sizes["p"] != sizes["r"] + whole:
        raise ValueError(f"readout_coef_ has {sizes['p']} columns, which other arrays contradict")


def _check_finite(values: dict[str, Any], name: str) -> None:
    if not np.all(np.isfinite(np.asarray(values[name], dtype=np.float64))):
        raise ValueError(f"{name} holds other than finite numbers")


def check_numbers(values: dict[str, Any], names: tuple[str, ...]) -> None:
    """Raise ValueError unless these are real numbers."""
    for name in names:
        if isinstance(values[name], bool) or not isinstance(values[name], (int, float)):
            raise ValueError(f"{name} is no number")


def _sound(factor: Any, signed: bool) -> bool:
    return bool(np.all(np.isfinite(factor)) if signed else np.all(factor >= 0))
