"""What the models share that labels guide, and that predict by a readout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin

from ._base import FactorizationBase
from ._predicting import READOUT_ATTRIBUTES, ReadoutPredictions


class GuidedBase(ReadoutPredictions, ClassifierMixin, FactorizationBase):  # type: ignore[misc]
    """A dictionary whose learning labels guide; samples are represented over it without labels."""

    _saved: ClassVar = {**FactorizationBase._saved, **READOUT_ATTRIBUTES}

    def __init__(
        self,
        *,
        reconstruction: str,
        solver: str,
        init: Any,
        max_iter: int,
        tol: float,
        random_state: Any,
        n_threads: int | None,
        callback: Callable[[Any], Any] | None,
        verbose: int,
        readout: str | None,
    ) -> None:
        self.reconstruction = reconstruction
        self.solver = solver
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose
        self.readout = readout

    def __sklearn_tags__(self) -> Any:
        """Return the tags: y is required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags.poor_score = True
        return tags
