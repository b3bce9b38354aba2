"""Learning from batches: what `partial_fit` of several estimators shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._common.arrays import Array
from .._common.saved import Saved
from .._common.text import short
from .._common.warn import warn_user
from .._data.border import check_option
from .._labels import ClassLabels, Targets, is_indicator
from .._models.online import Online, learn_batch
from .._models.represent import represent
from ._base import FactorizationBase, Self
from ._conventions import require
from ._training_data import (
    TrainingLabels,
    as_outer,
    checked_weight,
    label_weights,
    with_sample_weight,
)


class BatchLearner(FactorizationBase):
    """A factorization that may learn from one batch of samples after the other."""

    def _learn_batch(
        self,
        X: Any,
        targets: Targets | None,
        X_weights: Any,
        label_weight: Any = None,
        sample_weight: Any = None,
        **replaced: Any,
    ) -> None:
        """Learn from a checked batch, and set the attributes; some parameters may be replaced."""
        Y, Y_weights = None, None
        if targets is not None:
            Y = targets.matrix(X.dtype)
            Y_weights = as_outer(label_weights(label_weight, sample_weight, targets.labeled))
        sample_weight = checked_weight(sample_weight, X.shape[0])
        online = getattr(self, "_online", None)
        first = online is None
        if first and hasattr(self, "components_"):
            online = Online.resume(self.components_, getattr(self, "label_components_", None))
        online = learn_batch(
            online,
            X,
            Y,
            X_weights=with_sample_weight(X, X_weights, sample_weight),
            Y_weights=Y_weights,
            sample_weight=sample_weight,
            **self._arguments(learn_batch) | replaced,
        )
        self._online = online
        self.components_ = online.array("A")
        if Y is not None:
            self.label_components_ = online.array("B")
        self.n_iter_ = online.n_steps
        earlier = [] if first else self.objective_
        # A new list: copies of the model share the old one.
        self.objective_ = [*earlier, (online.n_steps, online.mean_loss)]
        for name in ("representation_", "refitted_label_components_", "receipt_"):
            self.__dict__.pop(name, None)

    def _batch(self, X: Any) -> Any:
        """Return a batch, checked; the first one sets the number of features."""
        return self._checked(X, reset=not hasattr(self, "components_"))


class SupervisedBase(BatchLearner):
    """A factorization X ~ S A, Y ~ S B, of which B predicts the targets Y."""

    _saved: ClassVar = {"label_components_": Saved("rk")}
    _readouts: ClassVar[tuple[str, ...]] = ("auto", "refit", "joint")

    # Returns the targets of a batch, and parameters for it that differ from those of the model.
    _batch_targets: Callable[..., tuple[Targets, dict[str, Any]]]
    _keep_targets: Callable[..., None]

    def fit(
        self: Self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        label_weight: Any = None,
    ) -> Self:
        """Learn dictionary and predictions from samples and the labels of some of them.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Labels or targets, as the class describes them; unlabeled samples are allowed.
        """
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, **weights)
        return self

    def _learn_targets(
        self, X: Any, y: Any, X_weights: Any, label_weight: Any, sample_weight: Any, *known: Any
    ) -> None:
        if check_option(self.readout, "readout", self._readouts) == "refit":
            raise ValueError(
                "readout='refit' is fitted to all labeled samples at once, and partial_fit cannot "
                "update it. Set readout='joint' to learn from batches, or fit all samples."
            )
        if hasattr(self, "readout_") or hasattr(self, "refitted_label_components_"):
            warn_user(
                "The readout of the fit cannot be updated by batches: from now on the model "
                "predicts by 'joint'. Set readout='joint' before fit to have it throughout.",
                UserWarning,
            )
        X = self._batch(X)
        require(self, X, y)
        targets, replaced = self._batch_targets(y, *known)
        self._learn_batch(X, targets, X_weights, label_weight, sample_weight, **replaced)
        self._keep_targets(targets, label_weight, sample_weight)

    def partial_fit(
        self: Self,
        X: Any,
        y: Any,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        label_weight: Any = None,
    ) -> Self:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Their labels or targets; all of them may be unlabeled.
        Returns
        -------
        self
            The attributes are set as by :meth:`NMF.partial_fit`; predictions are by "joint".

        Raises
        ------
        ValueError
            As :meth:`fit`, and if `readout` is "refit".

        Warns
        -----
        UserWarning
            If an earlier :meth:`fit` had another readout than "joint", which is discarded.
        """
        self._learn_targets(X, y, X_weights, label_weight, sample_weight)
        return self

    def _refit_components(self, S: Array, labels: TrainingLabels) -> None:
        """Set the B that minimizes sum L .* d(Y, S B), where S does not know the labels."""
        rows = labels.known
        weights = labels.entry_weights[rows] * labels.weight[rows, None]
        B = represent(
            np.ascontiguousarray(labels.members[rows].T, dtype=S.dtype),
            np.ascontiguousarray(S[rows].T),
            loss=self.supervision_loss,
            X_weights=None if (weights == 1).all() else np.ascontiguousarray(weights.T),
        )
        self.refitted_label_components_ = np.ascontiguousarray(B.T)

    def _components_in_use(self) -> Array:
        """Return the B of the readout "refit" or "joint"."""
        return getattr(self, "refitted_label_components_", self.label_components_)


def batch_classes(model: Any, y: Any, classes: Any) -> tuple[bool, Array]:
    """Return whether there are several labels per sample, and the classes."""
    if hasattr(model, "classes_"):
        known = model.classes_
        if classes is not None and not np.array_equal(_different(classes, known), known):
            raise ValueError(
                f"classes={short(classes)} differ from those of the first call, "
                f"{short(known.tolist())}; leave them out, or start anew."
            )
        return model.multilabel_, model.classes_
    if is_indicator(y):
        return True, np.arange(np.shape(y)[1])
    if classes is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: all classes that any batch "
            "will hold."
        )
    classes = _different(classes)
    if len(classes) < 2:
        raise ValueError(f"classes holds {classes.tolist()}; expected two classes or more.")
    return False, classes


def _different(classes: Any, known: Array | None = None) -> Array:
    """Return the different classes, sorted."""
    return np.unique(ClassLabels(classes, None, known, "classes").known)
