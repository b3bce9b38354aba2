"""Dual coefficients of linear support vector machines: which samples hold up the margins.

The machines are scikit-learn's (LIBLINEAR) with the squared hinge loss, whose dual coefficients
follow from the primal solution: w = sum_i alpha_i y_i x_i with
alpha_i = 2 C max(0, 1 - y_i f(x_i)), f the decision function.  The primal problem is solved, by
Newton steps: LIBLINEAR's solver of the dual draws from one random generator for all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from .._common.arrays import Array
from .._labels import ClassLabels, Indicators

Task = tuple[Array, Array]  # rows on the positive side, rows on the negative one


def root_mean_square_length(X: Any, rows: Array) -> float:
    """Return what to divide some rows by for a mean squared length of 1, or 1 for rows of zeros."""
    samples = X[rows]
    values = np.asarray(samples.data if sp.issparse(samples) else samples, dtype=np.float64)
    exponent = int(np.frexp(values.max(initial=0.0))[1])
    values = np.ldexp(values, -exponent)  # so that no square leaves the range
    total = float(np.sum(values**2))
    return float(np.ldexp(np.sqrt(total / len(rows)), exponent)) if total > 0 else 1.0


def dual_coefficients(
    X: Any, targets: ClassLabels | Indicators, C: float, length: float = 1.0
) -> sp.csr_array:
    """Return alpha, (n, 2 p): the positive sides of p machines, then their negative sides (eq. 17).

    Classes: one machine for two, else one for every pair.  Multiple labels: one for each label that
    some of the labeled samples have and some have not; where there is none, ValueError.  The
    machines see the samples divided by `length`.
    """
    tasks = list(_labels(targets) if isinstance(targets, Indicators) else _pairs(targets))
    if not tasks:
        raise ValueError(
            "y has no label that some labeled samples have and others have not; label some "
            "samples of both kinds."
        )
    rows, columns, values = [], [], []
    for machine, (positive, negative) in enumerate(tasks):
        for side, chosen, alpha in _sides(X, positive, negative, C, length):
            rows.append(chosen)
            columns.append(np.full(len(chosen), machine + side * len(tasks)))
            values.append(alpha)
    place = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.concatenate(values), place), shape=(X.shape[0], 2 * len(tasks)))


def _pairs(targets: ClassLabels) -> Iterator[Task]:
    labeled = np.flatnonzero(targets.labeled)
    members = [labeled[targets.codes == k] for k in range(len(targets.classes))]
    for first, second in combinations(range(len(members)), 2):
        yield members[second], members[first]


def _labels(targets: Indicators) -> Iterator[Task]:
    complete = np.flatnonzero(targets.complete)
    for has in (targets.known != 0).T:
        if has.any() and not has.all():
            yield complete[has], complete[~has]


def _divided(samples: Any, length: float) -> Any:
    """Samples over a length, float64.  (SciPy multiplies by the inverse, which may overflow.)

    LIBLINEAR takes 32-bit indices only, whatever SciPy has chosen.
    """
    if sp.issparse(samples):
        values = samples.data.astype(np.float64) / length
        places = (part.astype(np.int32) for part in (samples.indices, samples.indptr))
        return sp.csr_array((values, *places), shape=samples.shape)
    return np.ascontiguousarray(samples.astype(np.float64) / length)


def _sides(
    X: Any, positive: Array, negative: Array, C: float, length: float
) -> Iterator[tuple[int, Array, Array]]:
    """Yield (0 or 1, rows, coefficients > 0) for the two sides of one machine."""
    rows = np.concatenate([positive, negative])
    sign = np.repeat([1, -1], [len(positive), len(negative)])
    samples = _divided(X[rows], length)
    machine = LinearSVC(C=C, loss="squared_hinge", dual=False, max_iter=5000)
    scores = machine.fit(samples, sign).decision_function(samples)
    alpha = 2 * C * np.maximum(0, 1 - sign * scores)
    for side, on_side in enumerate((sign > 0, sign < 0)):
        chosen = on_side & (alpha > 0)
        yield side, rows[chosen], alpha[chosen]
