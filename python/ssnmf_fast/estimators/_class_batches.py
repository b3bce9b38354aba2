"""Learning of a classifier from batches: its classes, and how often they occur."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from .._labels import ClassLabels, Indicators, is_indicator
from ._base import Self, require
from ._batches import SupervisedBase
from ._classifier_training import refuse_unused
from ._component_scores import ComponentScores


class ClassBatches(ComponentScores, SupervisedBase):
    """A classifier that may learn from one batch of samples after the other."""

    def partial_fit(
        self: Self,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X, X_weights
            As in :meth:`NMF.partial_fit`.
        y : array_like, shape (n,) or (n, k)
            Their labels; all of them may be unlabeled.
        classes : array_like, optional
            All classes that any batch will hold; needed in the first call, unless y is an indicator
            matrix.
        sample_weight
            As in :meth:`fit`.

        Returns
        -------
        self
            The attributes are set as by :meth:`NMF.partial_fit`; the readout is "joint".

        Raises
        ------
        ValueError
            As :meth:`fit`, and if `readout` is neither "auto" nor "joint".

        Warns
        -----
        UserWarning
            If `readout` is "auto" and an earlier :meth:`fit` had another one, which is left.

        Notes
        -----
        Nothing is chosen by validation: where "auto" is given, `n_components` is the number of
        classes, `supervision_weight` "balanced" and `init` "random".
        """
        self._require_joint()
        refuse_unused(self, "joint")
        X = self._batch(X)
        require(self, X, y)
        several, known = batch_classes(self, y, classes)
        targets: ClassLabels | Indicators
        if several:
            targets = Indicators(y, n_labels=len(known))
        else:
            targets = ClassLabels(y, self.unlabeled, known_classes=known)
        chosen = _without_validation(self, len(known))
        self._learn_batch(X, targets, X_weights, sample_weight, **chosen)
        self.multilabel_, self.classes_ = several, known
        self.class_prior_, self.n_labeled_ = running_prior(self, targets)
        self._drop_readout()
        return self


def batch_classes(model: Any, y: Any, classes: Any) -> tuple[bool, Array]:
    """Return whether there are several labels per sample, and the classes."""
    if hasattr(model, "classes_"):
        if classes is not None and not np.array_equal(np.unique(classes), model.classes_):
            raise ValueError(
                f"classes={classes!r} differ from those of the first call, "
                f"{model.classes_.tolist()}; leave them out, or start anew."
            )
        return model.multilabel_, model.classes_
    if is_indicator(y):
        return True, np.arange(np.shape(y)[1])
    if classes is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: all classes that any batch "
            "will hold."
        )
    classes = np.unique(classes)
    if len(classes) < 2:
        raise ValueError(f"classes holds {classes.tolist()}; expected two classes or more.")
    return False, classes


def running_prior(model: Any, targets: ClassLabels | Indicators) -> tuple[Array, int]:
    """Return the shares of the classes over all batches so far, and the number of labels."""
    n, before = int(targets.labeled.sum()), getattr(model, "n_labeled_", 0)
    n_classes = len(targets.classes)
    prior = model.class_prior_ if before else np.full(n_classes, 1 / n_classes)
    if n:
        prior = (before * prior + n * targets.prior()) / (before + n)
    return prior, before + n


def _without_validation(model: Any, n_classes: int) -> dict[str, Any]:
    """Return the parameters of batches that "auto" leaves open: nothing is chosen by validation."""
    chosen: dict[str, Any] = {}
    if model.n_components == "auto":
        chosen["n_components"] = n_classes
    if model.supervision_weight == "auto":
        chosen["supervision_weight"] = "balanced"
    if isinstance(model.init, str) and model.init in ("auto", "labels"):
        chosen["init"] = "random"
    return chosen
