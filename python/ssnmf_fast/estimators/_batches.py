"""Learning from batches: what `partial_fit` of several estimators shares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._common.arrays import Array
from .._common.saved import Saved
from .._common.warn import warn_user
from .._data.checks import check_option
from .._labels import ClassLabels, Indicators, Targets, is_indicator
from .._models.online import Online, learn_batch
from .._models.represent import represent
from ._base import FactorizationBase, Self
from ._classifier_training import check_threshold, refuse_unused
from ._conventions import require
from ._predicting import ReadoutPredictions
from ._readout import READOUT_ATTRIBUTES, ComponentReadout, Readout
from ._training_data import TrainingLabels, as_outer, label_weights

_READOUTS_OF_FITS = ("readout_", "refitted_label_components_")


class BatchLearner(FactorizationBase):
    """A factorization that may learn from one batch of samples after the other."""

    forget_factor: float

    def _learn_batch(
        self, X: Any, targets: Targets | None, X_weights: Any, sample_weight: Any, **replaced: Any
    ) -> None:
        """Learn from a checked batch, and set the attributes; some parameters may be replaced."""
        Y, Y_weights = None, None
        if targets is not None:
            Y = targets.matrix(X.dtype)
            Y_weights = as_outer(label_weights(sample_weight, targets.labeled))
        online = getattr(self, "_online", None)
        first = online is None
        if first and hasattr(self, "components_"):
            online = Online.resume(self.components_, getattr(self, "label_components_", None))
        online = learn_batch(
            online,
            X,
            Y,
            X_weights=X_weights,
            Y_weights=Y_weights,
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
        for name in ("representation_", "refitted_label_components_"):
            self.__dict__.pop(name, None)

    def _batch(self, X: Any) -> Any:
        """Return a batch, checked; the first one sets the number of features."""
        return self._checked(X, reset=not hasattr(self, "components_"))


class SupervisedBase(BatchLearner):
    """A factorization X ~ S A, Y ~ S B, of which B predicts the targets Y."""

    _saved: ClassVar = {**BatchLearner._saved, "label_components_": Saved("rk")}
    _readouts: ClassVar[tuple[str, ...]] = ("auto", "refit", "joint")
    _auto_readout: ClassVar = "refit"

    readout: str

    def fit(
        self: Self, X: Any, y: Any = None, *, X_weights: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn dictionary and predictions from samples and the labels of some of them.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Labels or targets, as the class describes them; unlabeled samples are allowed.
        sample_weight : array_like, shape (n,), optional
            Nonnegative weights of the labels; one with weight 0 counts as no label.  Weights of
            the samples in the loss of X are ``X_weights=weights.outer(rows=...)``.

        Warns
        -----
        UserWarning
            If the whole interval of the expected accuracy lies below the accuracy of always
            predicting the largest class.
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights=X_weights, sample_weight=sample_weight)
        return self

    def _chosen_readout(self) -> str:
        """Return the readout that a fit to all samples has."""
        check_option(self.readout, "readout", self._readouts)
        return self._auto_readout if self.readout == "auto" else self.readout

    def _require_joint(self) -> None:
        """Refuse another readout than "joint", and warn if that of an earlier fit is left."""
        readout = check_option(self.readout, "readout", self._readouts)
        if readout not in ("auto", "joint"):
            raise ValueError(
                f"readout={readout!r} is fitted to all labeled samples at once, and partial_fit "
                "cannot update it. Set readout='joint' to learn from batches, or fit all samples."
            )
        if readout == "auto" and any(hasattr(self, name) for name in _READOUTS_OF_FITS):
            warn_user(
                "The readout of the fit cannot be updated by batches: from now on the model "
                "predicts by 'joint'. Set readout='joint' before fit to have it throughout.",
                UserWarning,
            )

    def _refit_components(self, S: Array, labels: TrainingLabels) -> None:
        """Set the B that minimizes sum L .* d(Y, S B), where S does not know the labels."""
        rows = labels.known
        weights = labels.entry_weights[rows]
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


class ClassBatches(ReadoutPredictions, SupervisedBase):
    """A classifier by any readout, that may learn from batches."""

    threshold: float | str
    readout: str

    _saved: ClassVar = {**SupervisedBase._saved, **READOUT_ATTRIBUTES}

    def _fitted_readout(self) -> Readout:
        return getattr(self, "readout_", None) or ComponentReadout(self._components_in_use())

    def _limits(self, readout: Readout) -> Array | None:
        given = check_threshold(self.threshold) if self.multilabel_ else None
        return super()._limits(readout) if given is None else np.full(len(self.classes_), given)

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
        y : array_like, shape (n,) or (n, k)
            Their labels; all of them may be unlabeled.
        classes : array_like, optional
            All classes that any batch will hold; needed in the first call, unless y is an indicator
            matrix.
        sample_weight : array_like, shape (n,), optional
            Nonnegative weights of the labels.

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
        targets: ClassLabels | Indicators = (
            Indicators(y, n_labels=len(known))
            if several
            else ClassLabels(y, self.unlabeled, known_classes=known)
        )
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
