"""Which labels are hidden in turn, to be predicted by what was fitted to the others."""

from __future__ import annotations

import numpy as np

from .._common.arrays import Array
from ._training_data import TrainingLabels

LEAST_PER_CLASS = 3  # labeled samples of a class on average, for validation
_FOUR_FOLDS, _ONE_FOLD = 60, 400  # four folds below so many labels, one from so many on
_MOST_VALIDATED = 1000


def folds_of(labels: TrainingLabels, seed: int) -> Array:
    """Return the fold in which each label is hidden, (n,): -1 for never, as for few labels."""
    rows = np.flatnonzero(labels.known)
    counts = labels.counts
    occurring = counts[counts > 0]
    folds = np.full(len(labels.members), -1)
    if len(rows) < LEAST_PER_CLASS * max(len(occurring), 2):
        return folds
    rows = np.random.default_rng(seed).permutation(rows)
    if labels.several:
        order = rows
    else:  # a class is spread over the folds, and its only sample never hidden
        order = rows[np.argsort(labels.codes[rows], kind="stable")]
        order = order[counts[labels.codes[order]] > 1]
    if len(order) < 2 * LEAST_PER_CLASS:
        return folds
    numbers = np.arange(len(order)) % (4 if len(order) < _FOUR_FOLDS else 3)
    if len(order) >= _ONE_FOLD:  # one fit is enough then
        every = max(3, -(-len(order) // _MOST_VALIDATED))
        numbers = np.where(np.arange(len(order)) % every == 0, 0, -1)
    folds[order] = numbers
    return folds
