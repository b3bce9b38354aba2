"""Which calls ran on the engine, and which ones scikit-learn had to serve."""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

_logger = logging.getLogger("ssnmf_fast.sklearn")
_lock = threading.Lock()
_counts = [0, 0]


class CallCounts(NamedTuple):
    """Numbers of factorizations: by the kernels of this package, and by scikit-learn itself."""

    engine: int
    scikit_learn: int


def call_counts(reset: bool = False) -> CallCounts:
    """Return how many factorizations ran on the engine, and how many on scikit-learn's own code.

    Every fit and every transform counts, and so does every batch of `partial_fit`.

    Parameters
    ----------
    reset : bool
        Whether to count from 0 afterwards.

    Returns
    -------
    CallCounts
        A named tuple (engine, scikit_learn), of this process.

    Examples
    --------
    >>> import ssnmf_fast.sklearn
    >>> import numpy as np
    >>> _ = ssnmf_fast.sklearn.call_counts(reset=True)
    >>> X = np.random.default_rng(0).random((6, 4))
    >>> _ = ssnmf_fast.sklearn.NMF(2, tol=0.1).fit(X)
    >>> ssnmf_fast.sklearn.call_counts()
    CallCounts(engine=1, scikit_learn=0)
    """
    with _lock:
        counts = CallCounts(*_counts)
        if reset:
            _counts[:] = 0, 0
    return counts


def on_engine(name: str, reason: str | None) -> bool:
    """Count a call; log the reason, if there is one, why scikit-learn serves it."""
    with _lock:
        _counts[reason is not None] += 1
    if reason is not None:
        _logger.warning("%s runs on scikit-learn's own code: %s", name, reason)
    return reason is None
