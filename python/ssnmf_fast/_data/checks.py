"""Checks of named arguments: numbers, options, factors, vectors of weights, and ranks."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import short
from .._common.warn import warn_user
from .arrays import as_array, require_real
from .border import check_entries, check_matrix

_FEW = 10  # components, the default of the estimators
_NEVER_TOO_MUCH = 1 << 28  # bytes; the machine is not asked about less


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """Return `value` if it is one of the options, else raise ValueError that lists them."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}; got {short(value)}.")
    return value


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int of at least `minimum`, and at most `maximum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {short(value)} ({type(value).__name__}).")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}.")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{name} must be at most {maximum}; got {value}.")
    return int(value)


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a nonnegative integer, a numpy Generator or a RandomState; "
            f"got {short(random_state)}."
        ) from error


def check_observers(callback: Any, verbose: Any) -> None:
    """Raise TypeError unless a callback can be called and `verbose` is a number."""
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback must be a function of a state, or None; got {short(callback)} "
            f"({type(callback).__name__})."
        )
    if not isinstance(verbose, (numbers.Integral, np.bool_)):
        raise TypeError(f"verbose must be 0 or 1; got {short(verbose)} ({type(verbose).__name__}).")


def check_real(value: Any, name: str, *, allow_negative: bool = False) -> float:
    """Return `value` as a finite float, nonnegative unless any sign is allowed."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {short(value)} ({type(value).__name__}).")
    number = float(value)
    if not np.isfinite(number) or (number < 0 and not allow_negative):
        bound = "" if allow_negative else " and at least 0"
        raise ValueError(f"{name} must be finite{bound}; got {short(value)}.")
    return number


def check_shape(array: Any, shape: tuple[int, int], name: str, of: str) -> None:
    """Raise ValueError unless the shapes agree."""
    if tuple(array.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(array.shape)}; expected {shape}, {of}.")


def check_factor(
    factor: Any,
    name: str,
    shape: tuple[int, int],
    dtype: Any,
    of: str,
    *,
    limited: bool = True,
) -> Array:
    """Return a dense, finite, nonnegative factor of the given shape."""
    if sp.issparse(factor):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix. Use {name}.toarray().")
    array: Array = check_matrix(factor, name, dtype=dtype, allow_nan=False, limited=limited)
    check_shape(array, shape, name, of)
    return array


def check_vector(values: Any, name: str, length: int, dtype: Any, *, limited: bool = True) -> Array:
    """Return finite nonnegative weights of the given length; unless `limited`, of any size."""
    vector = as_array(values, name)
    require_real(vector.dtype, name)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}; expected ({length},).")
    with np.errstate(over="ignore"):  # infinity is refused
        vector = vector.astype(dtype)
    check_entries(vector, name, limited=limited)
    return vector


def check_support(
    support: Any, name: str, shape: tuple[int, int], dtype: Any, of: str = "samples x components"
) -> Array:
    """Return S_support or A_support as bool."""
    array = check_factor(support, name, shape, dtype, of)
    if not np.all((array == 0) | (array == 1)):
        value = array[(array != 0) & (array != 1)][0]
        raise ValueError(
            f"{name} holds {value:g}; expected 0 or 1, whether {name[0]} may be positive."
        )
    return array > 0


def available_memory() -> int | None:
    """Return how many bytes this process may still use, or None where that is not known."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = dict(line.split(":", 1) for line in lines)["MemAvailable"]
        found.append(int(kilobytes.split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        with suppress(AttributeError, OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # a group without a limit has "max"
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        found.append(most - int((group / "memory.current").read_text()))
    return min(found) if found else None


def require_memory(
    rank: int, shape: Sequence[int], dtype: Any, lengths: Sequence[int] | None = None
) -> None:
    """Raise ValueError if factors of a rank exceed the memory that is available.

    A fit holds at least the factors, with as many rows as the lengths of X sum to, the numerators
    of their updates, and an r x r matrix.  `lengths` are those of the factors in this process,
    where it does not hold all of them.
    """
    needed = dtype.itemsize * rank * (2 * sum(shape if lengths is None else lengths) + rank)
    available = available_memory() if needed > _NEVER_TOO_MUCH else None
    if available is not None and needed > available:
        raise ValueError(
            f"n_components={rank} needs at least {needed / 2**30:.1f} GiB of memory for X of shape "
            f"{tuple(shape)}, and {available / 2**30:.1f} GiB are available. Give fewer components."
        )


def warn_of_rank(rank: int, most: int, of: str) -> None:
    """Warn if a model without supervision has more components than describe any data exactly.

    Few components cost nothing: the default number is never warned of.
    """
    if rank > max(most, _FEW):
        warn_user(
            f"n_components={rank} is more than {of} = {most} of X: so many components reproduce X "
            "exactly, and more add nothing. Give fewer components.",
            UserWarning,
        )
