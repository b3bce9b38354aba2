"""Predictions for samples whose labels were hidden, beside those of simple methods."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from ._fitted import Fitted
from ._sample_labels import SampleLabels

MODEL, SVC, LARGEST, REGRESSION = "model", "LinearSVC", "largest class", "logistic regression"
_MOST_ENTRIES = 10_000_000  # of the training samples; LinearSVC takes minutes for more


@dataclass(frozen=True)
class Judged:
    """Predictions for samples whose labels were hidden from whoever predicts them.

    `truth` and each of `guesses` hold names (h,) or, for several labels, 0 and 1 (h, k).  The
    guesses of the model come first.  `by_validation` means that the labels were hidden in turn, by
    the fit itself, rather than from all of the fit.
    """

    truth: Array
    guesses: dict[str, Array]
    classes: list[str]
    by_validation: bool
    labeled: int = 0  # labeled samples, of which validation hides some

    @property
    def where(self) -> str:
        """On which samples the predictions are."""
        count = len(self.truth)
        if not self.by_validation:
            return f"on {count} held-out samples"
        share = f"{count} of {self.labeled}" if self.labeled > count else f"{count}"
        return f"by validation on {share} labeled samples"

    @property
    def several(self) -> bool:
        """Whether a sample may have several labels."""
        return self.truth.ndim == 2

    @property
    def trained(self) -> bool:
        """Whether there are guesses of a simple method that learns."""
        return SVC in self.guesses or REGRESSION in self.guesses


def judged(fitted: Fitted) -> Judged | None:
    """Return the predictions of a fit and of simple methods trained on the same labels.

    Those for the held-out samples, if there are any, else those of the validation within the fit;
    None without either.
    """
    if fitted.labels is None or not fitted.guided or not hasattr(fitted.model, "predict_proba"):
        return None
    several = bool(getattr(fitted.model, "multilabel_", False))
    if fitted.held_out.any():
        folds = np.where(fitted.held_out, 0, -1)
        guessed = fitted.predicted[fitted.held_out]
    else:
        folds = getattr(fitted.model, "validation_folds_", np.full(len(fitted.held_out), -1))
        if not (folds >= 0).any():
            return None
        guessed = _of_validation(fitted.model, folds >= 0, several)
    classes = [str(name) for name in fitted.model.classes_]
    labels = targets(fitted.labels, classes, several)
    others = simple_guesses(features(fitted), labels, fitted.labels.known, folds)
    truth = labels[folds >= 0]
    labeled = int(fitted.training.sum())
    return Judged(truth, {MODEL: guessed, **others}, classes, not fitted.held_out.any(), labeled)


def _of_validation(model: Any, rows: Array, several: bool) -> Array:
    chance = model.validation_proba_[rows]
    if several:
        return np.asarray(chance > model.readout_.thresholds, dtype=np.int64)
    return np.asarray(model.classes_[chance.argmax(axis=1)]).astype(str)


def targets(labels: SampleLabels, classes: list[str], several: bool) -> Array:
    """Return the labels of all samples as text ("" for none), or as 0 and 1."""
    if several:
        return labels.indicators(classes).astype(np.int64)
    return np.array([names[0] if names else "" for names in labels.each])


def features(fitted: Fitted) -> Any:
    """Return the data as LinearSVC takes them: without NaN, and of matrices the largest value 1."""
    X = fitted.X
    if fitted.is_text:
        return X
    if sp.issparse(X):
        return X / (float(X.max()) or 1.0)
    X = np.asarray(X, dtype=np.float64)
    if np.isnan(X).any():
        with warnings.catch_warnings():  # a column of NaN alone
            warnings.simplefilter("ignore")
            X = np.where(np.isnan(X), np.nan_to_num(np.nanmean(X, axis=0)), X)
    return X / (float(X.max()) or 1.0)


def simple_guesses(X: Any, labels: Array, known: Array, folds: Array) -> dict[str, Array]:
    """Predict each fold by methods that learn from the known labels outside of it.

    The labels are those of :func:`targets`; `folds` (n,) is the fold in which a label is hidden, -1
    for never.
    """
    several = labels.ndim == 2
    found: dict[str, Array] = {}
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        train = known & ~test
        if not several:
            names, counts = np.unique(labels[train], return_counts=True)
            guess = np.full(int(test.sum()), names[counts.argmax()])
            _keep(found, LARGEST, guess, folds, test)
        seen = X[np.flatnonzero(train)]
        if (seen.nnz if sp.issparse(seen) else seen.size) <= _MOST_ENTRIES:
            guess = _learned(seen, labels[train], X[np.flatnonzero(test)])
            _keep(found, REGRESSION if several else SVC, guess, folds, test)
    return {name: found[name] for name in (SVC, REGRESSION, LARGEST) if name in found}


def _keep(found: dict[str, Array], name: str, guess: Array, folds: Array, test: Array) -> None:
    """Put the guesses for a fold where they belong among those for all folds."""
    rows = test[folds >= 0]
    if name not in found:
        found[name] = np.zeros((len(rows), *guess.shape[1:]), dtype=guess.dtype)
    wide = np.promote_types(found[name].dtype, guess.dtype)  # longer names
    found[name] = found[name].astype(wide)
    found[name][rows] = guess


def _learned(X: Any, labels: Array, new: Any) -> Array:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    if labels.ndim == 1 and len(np.unique(labels)) == 1:
        return np.full(new.shape[0], labels[0])
    machine: Any = LinearSVC(random_state=0)
    if labels.ndim == 2:
        machine = OneVsRestClassifier(
            LogisticRegression(class_weight="balanced", solver="liblinear", random_state=0)
        )
    with warnings.catch_warnings():  # a label that all training samples have, or late convergence
        warnings.simplefilter("ignore")
        machine.fit(X, labels)
    return np.asarray(machine.predict(new))
