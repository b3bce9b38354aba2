"""Labels that predictions add: of samples that the readout, and their neighbors, are sure of."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from .._common.arrays import Array
from .._data.threads import one_blas_thread
from ._training_labels import TrainingLabels

PSEUDO_WEIGHT = 0.1  # of a predicted label beside 1 for a given one
# Share of the samples predicted to be of a class whose label is taken as known, for few labels and
# from so many a class on: more labels predict better.
_CONFIDENT, _MORE_CONFIDENT, _MORE_LABELS = 0.5, 0.8, 4
_NEIGHBORS, _SPREADING_STEPS, _SPREADING_TOLERANCE = 20, 1000, 1e-2
_MOST_SPREAD = 3000  # samples in the graph of neighbors


@one_blas_thread()
def with_neighbors(chance: Array, scores: Array | None, labels: TrainingLabels, seed: int) -> Array:
    """Return the mean of probabilities, (n, k), and of what the nearest neighbors say.

    Labels spread over the graph of nearest neighbors in the leading directions (Zhou et al. 2004);
    of many samples only some take part, and the others keep their probabilities.
    """
    known = labels.known
    if scores is None or len(known) < 2:
        return chance
    rng = np.random.default_rng(seed)
    others = rng.permutation(np.flatnonzero(~known))[: max(0, _MOST_SPREAD - int(known.sum()))]
    rows = np.sort(np.concatenate([np.flatnonzero(known), others]))
    codes = np.where(known, labels.codes, -1)[rows]
    machine = LabelSpreading(
        kernel="knn",
        n_neighbors=min(_NEIGHBORS, len(rows) - 1),
        max_iter=_SPREADING_STEPS,
        tol=_SPREADING_TOLERANCE,
    )
    machine.fit(scores[rows], codes)
    spread = np.zeros((len(rows), chance.shape[1]))
    spread[:, machine.classes_] = machine.label_distributions_
    blended = np.array(chance)
    blended[rows] = (chance[rows] + spread) / 2
    return blended


def with_predictions(labels: TrainingLabels, chance: Array) -> TrainingLabels:
    """Return labels to which the surer ones of the predictions of each class are added."""
    predicted, sureness = chance.argmax(axis=1), chance.max(axis=1)
    members, entry_weights = labels.members.copy(), labels.entry_weights.copy()
    known = labels.known
    enough = known.sum() >= _MORE_LABELS * members.shape[1]
    share = _MORE_CONFIDENT if enough else _CONFIDENT
    unit = entry_weights[known].max(axis=1).mean() if known.any() else 1.0
    for c in range(members.shape[1]):
        rows = np.flatnonzero((predicted == c) & ~known)
        surest = rows[np.argsort(-sureness[rows], kind="stable")]
        chosen = surest[: math.ceil(share * len(rows))]
        members[chosen] = 0
        members[chosen, c] = 1
        entry_weights[chosen] = PSEUDO_WEIGHT * unit
    return replace(labels, members=members, entry_weights=entry_weights)
