"""Scorers of scikit-learn for targets of which only some samples are labeled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from .._common.arrays import MatrixLike
from .._labels import ClassLabels, Indicators, is_indicator


def labeled_scorer(
    scoring: str | Callable[..., float] = "accuracy", *, unlabeled: object = "auto"
) -> Callable[..., float]:
    """Return a scorer that leaves out unlabeled samples, for tools of scikit-learn.

    A metric such as F takes -1 in `y`, which marks unlabeled samples, as a class of its own, and
    every prediction for such a sample as an error.  The `score` method of the estimators leaves
    these samples out; this function makes scorers of other metrics do so.

    Parameters
    ----------
    scoring : str or callable
        A scorer, as in :func:`sklearn.metrics.get_scorer`: "f1_macro", "neg_log_loss", or what
        :func:`sklearn.metrics.make_scorer` returns.
    unlabeled : "auto", None or a label
        What marks an unlabeled sample, as in :class:`ssnmf_fast.SSNMFClassifier`.  Rows of an
        indicator matrix that are not fully labeled (NaN or -1) are left out.

    Returns
    -------
    callable
        With the signature ``scorer(estimator, X, y)``, for `scoring` in
        :func:`sklearn.model_selection.cross_val_score` or
        :class:`sklearn.model_selection.GridSearchCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> y = np.where(np.arange(len(y)) % 4 < 3, -1, y)  # three of four are unlabeled
    >>> model = sf.SSNMFClassifier(random_state=0)
    >>> scores = cross_val_score(model, X, y, cv=2, scoring=sf.metrics.labeled_scorer("f1_macro"))
    >>> bool(scores.min() > 0.9)
    True
    """
    from sklearn.metrics import get_scorer

    return partial(_score_labeled, scorer=get_scorer(scoring), unlabeled=unlabeled)


def _score_labeled(
    estimator: object,
    X: MatrixLike,
    y: npt.ArrayLike,
    *,
    scorer: Callable[..., float],
    unlabeled: object,
) -> float:
    from sklearn.utils import _safe_indexing

    if is_indicator(y):
        indicators = Indicators(y)
        labeled, truth = indicators.complete, indicators.known
    else:
        labels = ClassLabels(y, unlabeled, getattr(estimator, "classes_", None))
        labeled, truth = labels.labeled, labels.known
    if not labeled.any():
        raise ValueError("y has no labeled sample to score; give at least one.")
    return float(scorer(estimator, _safe_indexing(X, np.flatnonzero(labeled)), truth))
