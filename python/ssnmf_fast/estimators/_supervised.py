"""What classifier and regressor share: parameters, and predictions S B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import Saved
from ._batches import BatchLearner


class SupervisedBase(BatchLearner):
    """A factorisation X ~ S A, Y ~ S B, of which B predicts the targets Y."""

    _saved: ClassVar = {**BatchLearner._saved, "label_components_": Saved("rk")}
    _model_parameters = (
        *BatchLearner._model_parameters,
        "supervision",
        "supervision_weight",
    )

    def __init__(
        self,
        *,
        n_components: int | str = 10,
        reconstruction: str = "frobenius",
        supervision: str = "frobenius",
        supervision_weight: float | str = 1.0,
        solver: str = "auto",
        init: Any = "random",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
        readout: str = "refit",
        forget_factor: float = 0.8,
    ) -> None:
        self.n_components = n_components
        self.reconstruction = reconstruction
        self.supervision = supervision
        self.supervision_weight = supervision_weight
        self.solver = solver
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose
        self.readout = readout
        self.forget_factor = forget_factor

    def _scores(self, X: Any) -> Array:
        """Return S B, (n, k), with B as the readout says."""
        check_is_fitted(self)
        S = self._represent(self._checked(X, reset=False), None)
        B = getattr(self, "refitted_label_components_", self.label_components_)
        return np.asarray(S @ B.astype(S.dtype, copy=False))
