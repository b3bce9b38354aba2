"""How the fit of a classifier is told again, for its receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .._labels import labels_of
from ._class_topics import targets_of
from ._conventions import require
from ._receipts import Restated, WithReceipt
from ._training_data import labels_for_training


class ToldByLabels(WithReceipt):
    """A classifier, whose labels are the Y of its factorization, or its supports."""

    unlabeled: Any
    self_training_: int
    _of_fit: ClassVar = ("X_weights", "sample_weight")
    _settings: ClassVar = ("loss", "supervision_loss", "solver", "max_iter", "tol")

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        """Tell the fit again; with supports it needs no labels, which are compared with y."""
        require(self, X, y)
        labels = labels_for_training(labels_of(y, self.unlabeled), given.get("sample_weight"))
        told = {"X_weights": given.get("X_weights")}
        others = {"y": labels.members, "sample_weight": labels.entry_weights}
        if self.receipt_.settings["supervision_weight"] is None:
            return Restated(X, told, others, untold=("S_support",))
        if self.self_training_:
            raise TypeError(
                f"this {type(self).__name__} cannot be verified: self-training (self_training_="
                f"{self.self_training_}) added labels to those of y, and they are not kept."
            )
        Y, Y_weights = targets_of(labels, X.dtype)
        return Restated(X, {**told, "Y": Y, "Y_weights": Y_weights}, others)
