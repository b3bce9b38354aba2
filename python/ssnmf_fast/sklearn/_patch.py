"""Replacement of scikit-learn's names in the running process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import sklearn.decomposition as decomposition

from ._nmf import NMF, MiniBatchNMF, non_negative_factorization

_OWN = {own.__name__: own for own in (NMF, MiniBatchNMF, non_negative_factorization)}
_THEIRS = {name: getattr(decomposition, name) for name in _OWN}
_lock = threading.RLock()


def _replace(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Replace objects in all imported modules, under any name."""
    by_id = {id(old[name]): new[name] for name in old}
    with _lock:
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "ssnmf_fast" or not isinstance(module, ModuleType):
                continue
            for key, value in list(vars(module).items()):
                if id(value) in by_id:
                    setattr(module, key, by_id[id(value)])


def patch() -> None:
    """Run the NMF of ``sklearn.decomposition`` on this engine from now on, in this process.

    ``NMF``, ``MiniBatchNMF`` and ``non_negative_factorization`` are replaced there and in all
    modules that have imported them.  Existing models, and classes derived from the old classes, do
    not change.  Calls that the engine does not support run on scikit-learn's code; the logger
    ``ssnmf_fast.sklearn`` issues a warning with the reason.

    Examples
    --------
    >>> import ssnmf_fast.sklearn
    >>> ssnmf_fast.sklearn.patch()
    >>> from sklearn.decomposition import NMF
    >>> NMF.__module__.startswith("ssnmf_fast")
    True
    >>> ssnmf_fast.sklearn.unpatch()
    """
    _replace(_THEIRS, _OWN)


def unpatch() -> None:
    """Restore the names that :func:`patch` replaced, also in modules imported since then."""
    _replace(_OWN, _THEIRS)


@contextmanager
def patched() -> Iterator[None]:
    """Run scikit-learn's NMF on this engine within the context; see :func:`patch`.

    Names that were replaced before stay replaced afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast.sklearn
    >>> import sklearn.decomposition
    >>> with ssnmf_fast.sklearn.patched():
    ...     model = sklearn.decomposition.NMF(2).fit(np.ones((4, 3)))
    """
    before = decomposition.NMF is NMF
    patch()
    try:
        yield
    finally:
        if not before:
            unpatch()
