"""What :mod:`few_labels` compares with: classifiers of scikit-learn, tuned by validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array
from labeled_sets import Split
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

_ONE_FOLD = 400  # labeled samples from which on one part of them is held out
_MOST_HELD_OUT = 1000
_DIRECTIONS = {True: 100, False: 50}  # of the SVD, for sparse and dense data

Predict = Callable[[Array], Array]  # indicators of what may be seen -> predictions for all samples


def folds_of(y: Array, known: Array, draw: int) -> Array | None:
    """Return in which fold a label is hidden, (n,), -1 for never; None for too few labels."""
    rows = np.random.default_rng(draw).permutation(np.flatnonzero(known))
    if len(rows) < 3 * (len(np.unique(y[known])) if y.ndim == 1 else y.shape[1]):
        return None
    if y.ndim == 1:
        rows = rows[np.argsort(y[rows], kind="stable")]
        rows = rows[np.bincount(y[rows])[y[rows]] > 1]
    folds = np.full(len(y), -1)
    numbers = np.arange(len(rows)) % (4 if len(rows) < 60 else 3)
    if len(rows) >= _ONE_FOLD:
        every = max(3, -(-len(rows) // _MOST_HELD_OUT))
        numbers = np.where(np.arange(len(rows)) % every == 0, 0, -1)
    folds[rows] = numbers
    return folds


def _tuned(
    fit: Callable[[Array, Any], Callable[[Any], Array]],
    options: list[Any],
    y: Array,
    known: Array,
    folds: Array | None,
    rows: Callable[[Array], Any],
) -> Callable[[Any], Array]:
    """Fit with the option that is best on the folds, the first one without folds."""
    best = options[0]
    if folds is not None and len(options) > 1:
        right = []
        for option in options:
            count = 0
            for fold in range(folds.max() + 1):
                hidden = folds == fold
                guess = fit(known & ~hidden, option)(rows(hidden))
                count += int(np.sum(guess == y[hidden]))
            right.append(count)
        best = options[int(np.argmax(right))]
    return fit(known, best)


def run(split: Split, known: Array, draw: int) -> dict[str, float]:
    X, y = split.X, split.y
    sparse = sp.issparse(X)
    folds = folds_of(y, known, draw)
    svd = TruncatedSVD(_DIRECTIONS[sparse], random_state=draw).fit(X)
    scores = [svd.transform(part) for part in (X, split.X_test)]
    if sparse:
        scores = [normalize(part) for part in scores]
    wide, narrow = (X, split.X_test), (scores[0], scores[1])

    def regression(C: float) -> Any:
        return LogisticRegression(C=C, tol=1e-3, max_iter=500)

    def score(make: Callable[[Any], Any], data: tuple[Any, Any], options: list[Any]) -> float:
        marks = isinstance(make(options[0]), (SelfTrainingClassifier, LabelSpreading))

        def fit(seen: Array, option: Any) -> Callable[[Any], Array]:
            given = (data[0], np.where(seen, y, -1)) if marks else (data[0][seen], y[seen])
            machine = make(option).fit(*given)
            return lambda rows: np.asarray(machine.predict(rows))

        predict = _tuned(fit, options, y, known, folds, lambda rows: data[0][rows])
        return float(np.mean(predict(data[1]) == split.y_test))

    found = {
        "LinearSVC": score(lambda C: LinearSVC(C=C), wide, [1, 0.1, 0.3, 3]),
        "LogisticRegression": score(regression, wide, [10, 1, 100]),
        "SVD + LR": score(regression, narrow, [10, 1, 100]),
    }
    if sparse:
        smoothings = [0.3, 0.03, 0.1, 1]
        found["ComplementNB"] = score(lambda a: ComplementNB(alpha=a), wide, smoothings)
    if not known.all():
        found["SelfTraining"] = score(
            lambda least: SelfTrainingClassifier(regression(10), threshold=least, max_iter=5),
            wide,
            [0.75, 0.5],
        )
        found["LabelSpreading"] = score(
            lambda k: LabelSpreading(kernel="knn", n_neighbors=k, max_iter=100), narrow, [20, 7, 50]
        )
    return found


def run_several(split: Split, known: Array) -> dict[str, Array]:
    """Return the indicators that balanced logistic regression predicts, for several labels."""
    guess = np.zeros_like(split.y_test)
    for label in range(split.y.shape[1]):
        truth = split.y[known, label]
        if truth.min() == truth.max():
            guess[:, label] = truth[0]
            continue
        machine = LogisticRegression(class_weight="balanced", max_iter=1000)
        guess[:, label] = machine.fit(split.X[known], truth).predict(split.X_test)
    return {"balanced LR": guess}
