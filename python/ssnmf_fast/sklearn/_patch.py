"""Replacement of scikit-learn's names in the running process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import sklearn.decomposition as decomposition

from .._common.locks import ForkLock
from ._nmf import NMF, MiniBatchNMF, non_negative_factorization

_OWN = {own.__name__: own for own in (NMF, MiniBatchNMF, non_negative_factorization)}
_THEIRS = {name: getattr(decomposition, name) for name in _OWN}
_lock = ForkLock()
_asked: set[object] = set()  # by patch() and open blocks, while the names are replaced
_imported: set[tuple[int, str]] = set()  # places that had the new objects before


def _places(objects: dict[str, Any]) -> Iterator[tuple[ModuleType, str, str]]:
    """Yield module, attribute and name of the objects that imported modules have."""
    by_id = {id(one): name for name, one in objects.items()}
    for name, module in list(sys.modules.items()):
        # Pickles of scikit-learn's models find their classes in the module that defines them.
        if name.split(".")[0] == "ssnmf_fast" or name == "sklearn.decomposition._nmf":
            continue
        if isinstance(module, ModuleType):
            for key, value in list(vars(module).items()):
                if id(value) in by_id:
                    yield module, key, by_id[id(value)]


def _ask(change: Callable[[object], None], who: object) -> None:
    """Add or discard who wants the names replaced, and replace or restore them."""
    with _lock:
        before = bool(_asked)
        change(who)
        if _asked:
            if not before:
                _imported.clear()
                _imported.update((id(module), key) for module, key, _ in _places(_OWN))
            for module, key, name in _places(_THEIRS):
                setattr(module, key, _OWN[name])
        elif before:
            for module, key, name in _places(_OWN):
                if (id(module), key) not in _imported:
                    setattr(module, key, _THEIRS[name])


def patch() -> None:
    """Run the NMF of ``sklearn.decomposition`` on this engine from now on, in this process.

    ``NMF``, ``MiniBatchNMF`` and ``non_negative_factorization`` are replaced there and in all
    modules that have imported them, but not in the private module that defines them.  Existing
    models, and classes derived from the old classes, do not change; ``isinstance`` and
    ``issubclass`` count them as the new classes.  Calls that the engine does not support run on
    scikit-learn's code; the logger ``ssnmf_fast.sklearn`` issues a warning with the reason.

    Examples
    --------
    >>> import ssnmf_fast.sklearn
    >>> ssnmf_fast.sklearn.patch()
    >>> from sklearn.decomposition import NMF
    >>> NMF.__module__.startswith("ssnmf_fast")
    True
    >>> ssnmf_fast.sklearn.unpatch()
    """
    _ask(_asked.add, patch)


def unpatch() -> None:
    """Restore the names that :func:`patch` replaced, also in modules imported since then.

    Open blocks of :func:`patched` keep them replaced until they end.
    """
    _ask(_asked.discard, patch)


@contextmanager
def patched() -> Iterator[None]:
    """Run scikit-learn's NMF on this engine within the context; see :func:`patch`.

    The last of several open blocks, of all threads, restores the names, unless :func:`patch` was
    called.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast.sklearn
    >>> import sklearn.decomposition
    >>> with ssnmf_fast.sklearn.patched():
    ...     model = sklearn.decomposition.NMF(2).fit(np.ones((4, 3)))
    """
    block = object()
    _ask(_asked.add, block)
    try:
        yield
    finally:
        _ask(_asked.discard, block)
