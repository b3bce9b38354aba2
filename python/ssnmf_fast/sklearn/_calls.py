"""Counts of the calls that run on the engine and on scikit-learn's code."""

from __future__ import annotations

import logging
from collections import Counter

from .._common.locks import ForkLock

_counts = Counter({"engine": 0, "scikit-learn": 0})
_lock = ForkLock()


def call_counts() -> dict[str, int]:
    """Return the numbers of calls in this process that ran on the engine and on scikit-learn.

    Each fit, each transform and each batch of ``partial_fit`` is counted.

    Returns
    -------
    dict
        With the keys "engine" and "scikit-learn".

    Examples
    --------
    >>> import ssnmf_fast.sklearn
    >>> sorted(ssnmf_fast.sklearn.call_counts())
    ['engine', 'scikit-learn']
    """
    with _lock:
        return dict(_counts)


def on_engine(name: str, reason: str | None) -> bool:
    """Count a call, and log the reason, if any, why it runs on scikit-learn's code."""
    with _lock:
        _counts["scikit-learn" if reason else "engine"] += 1
    if reason:
        logger = logging.getLogger("ssnmf_fast.sklearn")
        logger.warning("%s runs on scikit-learn's own code: %s", name, reason)
    return not reason
