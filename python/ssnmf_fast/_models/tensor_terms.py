"""The relations of a tensor and of labels of its modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._data.border import check_matrix
from .._data.tensors import Tensor, check_mode, check_tensor
from .._solver.losses import Loss
from .._solver.relations import Relation
from .._solver.starts import mode_names
from .._solver.terms import Term
from .._solver.units import Units, exponent_of, scaled
from .._solver.weights import build_tensor_term, build_term


@dataclass(frozen=True)
class TensorTerms:
    """A clean tensor in its units, and its relations with the factors F0, F1, .. and B0, B1, ..."""

    X: Tensor
    units: Units
    relations: list[Relation]
    labels: dict[int, Term]  # by mode


def terms_of_tensor(
    X: Any,
    X_weights: Any,
    labels: Mapping[int, Any] | None,
    losses: tuple[Loss, Loss],
    weight: float,
    threads: int,
    dtype: Any = None,
) -> TensorTerms:
    """Check a tensor, its weights and labels, and return what they are to be near to."""
    X = check_tensor(X, "X", dtype)
    exponent = exponent_of(X, "X")
    X = scaled(X, -exponent)
    term = build_tensor_term(X, X_weights, losses[0], threads)
    names = mode_names(len(X.shape))
    labeled = _labeled(labels, X, losses[1], threads)
    units = Units.of(exponent, 0, losses, bool(labeled))
    units = units.weighing(weight) if labeled else units
    of_data, of_labels = units.coefficients(weight) if labeled else (1.0, 1.0)
    relations = [Relation(names, term, of_data)]
    relations += [Relation((names[k], f"B{k}"), Y, of_labels) for k, Y in labeled.items()]
    return TensorTerms(X, units, relations, labeled)


def _labeled(
    labels: Mapping[int, Any] | None, X: Tensor, loss: Loss, threads: int
) -> dict[int, Term]:
    """Return the terms of labels by mode."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        raise TypeError(
            f"labels must be a mapping of modes to matrices, such as {{0: Y}}; got "
            f"{type(labels).__name__}."
        )
    found: dict[int, Term] = {}
    for mode, given in labels.items():
        mode = check_mode(mode, "a mode of labels", len(X.shape))
        if mode in found:
            raise ValueError(f"labels has mode {mode} twice, counted from the first and the last.")
        Y = check_matrix(given, f"labels[{mode}]", dtype=X.dtype)
        if Y.shape[0] != X.shape[mode] or Y.shape[1] == 0:
            raise ValueError(
                f"labels[{mode}] has shape {Y.shape}; expected {X.shape[mode]} rows, one for each "
                f"index of mode {mode}, and at least one column."
            )
        found[mode] = build_term(Y, None, loss, "Y", threads)
    return found
