"""Choice of the kernels, and the storage of factors for them.

There is a compiled module for each instruction-set level, chosen at import.
``SSNMF_FAST_ISA`` sets the level: base, v3 (AVX2 and FMA), v4 (AVX-512), or reference (NumPy).
``SSNMF_FAST_THREADS`` sets the thread backend of the kernels: pool or openmp.
Rows of factors are aligned to cache lines, and the rank is padded with columns of zeros.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._common.locks import ForkLock
from .._common.text import short

if TYPE_CHECKING:
    from .._common.arrays import Array  # with SciPy, which `import ssnmf_fast` does without

_CACHE_LINE = 64
_PLACED = 1 << 22  # bytes
_ORDER = ("base", "v3", "v4")
LEVELS = (*_ORDER, "reference")


def available_levels() -> list[str]:
    """Return the levels that this build has and this processor can run, slowest first."""
    from .. import _cpu

    usable = {*_cpu.levels} & {*_cpu.built_levels}
    return [level for level in _ORDER if level in usable]


def _load(level: str) -> Any:
    module = "_backend.reference" if level == "reference" else f"_kernels_{level}"
    return importlib.import_module(f"ssnmf_fast.{module}")


def _choose() -> str:
    forced = os.environ.get("SSNMF_FAST_ISA", "").strip().lower()
    if forced == "reference":
        return forced
    available = available_levels()
    if not forced and available:
        return available[-1]
    if not forced:
        warnings.warn(
            "ssnmf_fast was built for another processor, and this one lacks its instructions: "
            "plain NumPy is used, which is many times slower. Install ssnmf_fast on this machine, "
            "or build it with SSNMF_FAST_LEVELS=all.",
            RuntimeWarning,
            stacklevel=2,
        )
        return "reference"
    if forced not in available:
        reason = (
            "this processor lacks it, or it was not built (SSNMF_FAST_LEVELS=all builds all)"
            if forced in _ORDER
            else "there is no such level"
        )
        raise ValueError(
            f"SSNMF_FAST_ISA={forced!r} cannot be used: {reason}. "
            f"Available here: {', '.join([*available, 'reference'])}; unset it to use the fastest."
        )
    return forced


level: str = _choose()  # of the process
_loaded = _load(level)
_in_use: ContextVar[Any] = ContextVar("_in_use", default=_loaded)
_open = 0  # contexts of `reference_kernels`, of all threads
_lock = ForkLock()


class _Kernels:
    """The kernels of the current context; those of the process are cached as attributes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_in_use.get(), name)


if TYPE_CHECKING:
    # Every module has the signatures of the reference.
    from . import reference as _reference

    kernels = _reference
else:
    kernels = _Kernels()
    vars(kernels).update(vars(_loaded))


def team_of(backend: object, name: str) -> Any:
    """Return the argument of the kernels for a thread backend."""
    if not isinstance(backend, str) or backend not in ("pool", "openmp"):
        raise ValueError(
            f"{name}={short(backend)} cannot be used; expected 'pool' or 'openmp'. The number of "
            "threads is set by n_threads, or by OMP_NUM_THREADS."
        )
    try:
        return None if backend == "pool" else importlib.import_module("ssnmf_fast._openmp").team
    except ImportError as error:
        raise ValueError(
            f"{name}='openmp' cannot be used: this installation has no OpenMP ({error})."
        ) from error


def set_thread_backend(backend: str) -> None:
    """Set the thread backend of the kernels for this process.

    It changes neither results nor the number of threads.  The environment variable
    ``SSNMF_FAST_THREADS`` sets it at the start of a process.

    Parameters
    ----------
    backend : {"pool", "openmp"}
        The thread pool of the library (default), or OpenMP, which every build for Linux has, for
        programs that use OpenMP to bind threads to cores or to monitor them.

    Raises
    ------
    ValueError
        If the backend is unknown, or this installation has no OpenMP.

    Notes
    -----
    OpenMP is slower while other programs use the cores: :doc:`Large data </guide/large>` has
    figures.  It has three more limits: a signal handler must not fork while a kernel runs (the
    child hangs), threads do not block the signals of the program, and the process ends if the
    system cannot start more threads.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.set_thread_backend("openmp")  # doctest: +SKIP
    >>> sf.set_thread_backend("pool")
    """
    _use_threads(backend, "backend")


def _use_threads(backend: object, name: str) -> None:
    team = team_of(backend, name)
    if level != "reference":
        _loaded.use_team(team)


_use_threads(
    os.environ.get("SSNMF_FAST_THREADS", "").strip().lower() or "pool", "SSNMF_FAST_THREADS"
)


def level_in_use() -> str:
    return level if _in_use.get() is _loaded else "reference"


@contextmanager
def reference_kernels() -> Iterator[None]:
    """Compute with plain NumPy within the context, to cross-check a result.

    The context applies to calls of this thread and the threads that they start; other threads use
    the compiled kernels.  Receipts have the level "reference".  Factors agree with those of the
    compiled kernels up to rounding, which long fits can amplify.  NumPy is many times slower: use
    small data and few iterations.

    Workers of a Dask cluster are other processes: set ``SSNMF_FAST_ISA=reference`` there.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 10))
    >>> fit = sf.factorize(X, n_components=3, random_state=0, max_iter=20)
    >>> with sf.reference_kernels():
    ...     other = sf.factorize(X, n_components=3, random_state=0, max_iter=20)
    >>> bool(np.allclose(fit.S @ fit.A, other.S @ other.A, rtol=1e-8))
    True
    """
    global _open
    token = _in_use.set(_load("reference"))
    with _lock:
        _open += 1
        vars(kernels).clear()
    try:
        yield
    finally:
        _in_use.reset(token)
        with _lock:
            _open -= 1
            if not _open:
                vars(kernels).update(vars(_loaded))


def aligned_zeros(shape: tuple[int, int], dtype: npt.DTypeLike) -> Array:
    """Return a C-contiguous array of zeros that starts at a cache line."""
    dtype = np.dtype(dtype)
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    buffer = np.zeros(n_bytes + _CACHE_LINE, dtype=np.uint8)
    offset = -buffer.__array_interface__["data"][0] % _CACHE_LINE
    return np.asarray(buffer[offset : offset + n_bytes].view(dtype).reshape(shape))


def padded_zeros(n_rows: int, rank: int, dtype: npt.DTypeLike, threads: int = 1) -> Array:
    """Return zeros, (n_rows, padded rank), in memory near the threads that process the rows."""
    columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
    result = aligned_zeros((n_rows, columns), dtype)
    if threads > 1 and result.nbytes >= _PLACED:  # the first write determines the place of a page
        kernels.add_row(np.zeros(columns, dtype), None, result, 1.0, False, threads)
    return result


def is_padded(factor: Array) -> bool:
    columns = kernels.padded_rank(factor.shape[1], factor.dtype.itemsize)
    aligned = factor.flags.c_contiguous and factor.ctypes.data % _CACHE_LINE == 0
    return bool(aligned and factor.shape[1] == columns)


def padded(factor: Array, dtype: npt.DTypeLike, threads: int = 1) -> Array:
    """Copy a factor (rows x rank) into padded storage."""
    result = padded_zeros(factor.shape[0], factor.shape[1], dtype, threads)
    result[:, : factor.shape[1]] = factor
    return result
