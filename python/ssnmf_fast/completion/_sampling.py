"""Random missing entries."""

from __future__ import annotations

import numpy as np

from .._common.arrays import Array
from .._data.csr import entry_rows
from .._linalg.operators import Pattern


class MissingEntries:
    """Draws patterns of entries that are not observed, for work by so many threads.

    `share` is the number of entries of a draw for every observed one; a draw takes all missing
    entries if there are fewer.
    """

    def __init__(self, observed: Pattern, share: float, n_threads: int) -> None:
        n, m = observed.shape
        self._shape = observed.shape
        self._n_threads = n_threads
        rows = entry_rows(observed.indptr)
        self._taken = rows * m + observed.indices
        self.count = n * m - len(self._taken)
        self._wanted = int(share * len(self._taken))
        self._whole: Pattern | None = None
        if self.count <= self._wanted:
            missing = np.ones(n * m, dtype=bool)
            missing[self._taken] = False
            self._whole = self._pattern(np.flatnonzero(missing))

    def draw(self, rng: np.random.Generator) -> Pattern:
        """Return distinct missing entries, uniformly at random, about as many as wanted."""
        if self._whole is not None:
            return self._whole
        n, m = self._shape
        # Some of the places are observed or drawn twice; more are drawn to make up for it.
        hits = self._wanted * (1 + len(self._taken) / self.count)
        places = np.sort(rng.integers(n * m, size=int(hits)))
        places = places[np.diff(places, prepend=-1) > 0]
        found = np.searchsorted(self._taken, places)
        found[found == len(self._taken)] = 0
        return self._pattern(places[self._taken[found] != places])

    def _pattern(self, places: Array) -> Pattern:
        n, m = self._shape
        rows, columns = np.divmod(places, m)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        counts = np.bincount(columns, minlength=m)
        return Pattern.from_counts(self._shape, indptr, columns, counts, self._n_threads)
