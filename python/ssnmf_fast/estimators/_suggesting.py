"""Which samples to label next: those that stand for many of which predictions are unsure."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._topics import topic_shares
from ._readout import LogisticReadout
from ._views import Tables, filled, row_sums, view_of

_LOOKED_AT = 10_000  # samples of a larger X, unless more are asked for
_CANDIDATES = 2000  # of these the most uncertain, unless more are asked for
_DIGITS = 9
_SHARPNESS = 4  # power of a similarity: a label tells of what is near


def suggest(model: Any, X: Any, X_weights: Any, n: int, tables: Tables) -> Array:
    """Return the rows of checked X that are worth labeling, best first, at most `n`.

    Rows without data come last.  The tables are those of side information.
    """
    known, most = np.flatnonzero(row_sums(X) > 0), max(_LOOKED_AT, n)
    if len(known) > most and _in_memory(X, X_weights):
        rows = known[np.arange(most) * len(known) // most]  # evenly spaced
        part = {name: table[rows] for name, table in tables.items()}
        return np.asarray(rows[suggest(model, X[rows], None, n, part)])
    readout = model._fitted_readout()
    scores = readout.scores(model, X, X_weights, tables)[known]
    unsure = uncertainty(readout.proba(scores, model.multilabel_), model.multilabel_)
    chosen = np.sort(np.argsort(-unsure, kind="stable")[: max(_CANDIDATES, n)])
    points = _points(model, readout, X, X_weights, known[chosen])
    found = known[chosen[_covering(points, unsure[chosen], n)]]
    empty = np.delete(np.arange(X.shape[0]), known)
    return np.concatenate([found, empty[: n - len(found)]])


def uncertainty(chances: Array, several: bool) -> Array:
    """Return from 0 to 1 how unsure predictions are, (n,).

    Of classes: 1 less the difference of the two largest probabilities.  Of several labels: the mean
    entropy of each, in bits.
    """
    if several:
        return np.asarray((entr(chances) + entr(1 - chances)).mean(axis=1) / np.log(2))
    second, first = np.partition(chances, -2, axis=1)[:, -2:].T
    return np.asarray(1 - (first - second))


def _in_memory(X: Any, X_weights: Any) -> bool:
    """Whether rows of X may be chosen as those of an array."""
    return X_weights is None and not isinstance(X, CsrFile)


def _points(model: Any, readout: Any, X: Any, X_weights: Any, rows: Array) -> Array:
    """Return points of length 1 for some samples.

    They are scores along the leading directions or, where only topics are seen, the Hellinger
    coordinates of topic shares.
    """
    directions = readout.directions if isinstance(readout, LogisticReadout) else None
    if directions is None or not _in_memory(X, X_weights):
        shares = topic_shares(model._represent(X, X_weights), model.components_)
        return np.asarray(np.sqrt(shares[rows]))
    return view_of(filled(X[rows]), directions).scores


@one_blas_thread()
def _covering(points: Array, unsure: Array, n: int) -> list[int]:
    """Choose points near to as much uncertainty as possible, at most `n`; of equals the first.

    A chosen point takes the share of the uncertainty of every other that is their similarity, as
    far as those before it have not.  So it is unsure itself or stands for many that are, and is no
    copy of an earlier one.  What a point takes only falls, and is found again only where it counts.
    """
    # Without the last digits, in which copies differ by where they stand.
    similar = np.round(np.maximum(points @ points.T, 0), _DIGITS) ** _SHARPNESS
    unsure = np.round(unsure, _DIGITS)
    taken, gains, chosen = np.zeros(len(points)), similar @ unsure, []
    for _ in range(min(n, len(points))):
        fresh = -1
        while (best := int(gains.argmax())) != fresh:
            gains[best] = np.maximum(similar[best] - taken, 0) @ unsure
            fresh = best
        chosen.append(best)
        gains[best] = -np.inf
        taken = np.maximum(taken, similar[best])
    return chosen
