"""Checks of named arguments: numbers, options, factors, vectors of weights, and ranks."""

from __future__ import annotations

import numbers
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from .._common.arrays import Array, Matrix, Seed
from .._common.text import listed, short
from .._common.warn import warn_user
from . import arrays
from .arrays import DataLike, OnDisk, as_array, check_dtype, is_sparse_frame, require_real

Shape: TypeAlias = tuple[int, int]

# Abstract classes take long to tell their instances.
_INTEGRAL, _REAL = (int, numbers.Integral), (float, int, numbers.Real)
_FEW = 10  # components, the default of the estimators
_NEVER_TOO_MUCH = 1 << 28  # bytes; less is not compared with the available memory


def check_option(value: object, name: str, options: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in options:
        names = ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {names}; got {short(value)}.")
    return value


def check_integer(value: object, name: str, minimum: int, maximum: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, _INTEGRAL):
        how = " Is it in the place of X?" * (getattr(value, "ndim", 0) > 1)
        got = f"{short(value)} ({type(value).__name__})"
        raise TypeError(f"{name} must be an integer; got {got}.{how}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}.")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{name} must be at most {maximum}; got {value}.")
    return int(value)


def check_random_state(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a nonnegative integer, a numpy Generator or a RandomState; "
            f"got {short(random_state)}."
        ) from error


def check_observers(callback: object, verbose: object) -> None:
    if callback is not None and not callable(callback):
        got = f"{short(callback)} ({type(callback).__name__})"
        raise TypeError(f"callback must be a function of a state, or None; got {got}.")
    if not isinstance(verbose, (numbers.Integral, np.bool_)):
        raise TypeError(f"verbose must be 0 or 1; got {short(verbose)} ({type(verbose).__name__}).")


def check_real(
    value: object, name: str, *, allow_negative: bool = False, maximum: float | None = None
) -> float:
    """Return `value` as a finite float, nonnegative unless any sign is allowed."""
    if isinstance(value, bool) or not isinstance(value, _REAL):
        raise TypeError(f"{name} must be a number; got {short(value)} ({type(value).__name__}).")
    number = float(value)
    if not isfinite(number) or (number < 0 and not allow_negative):
        bound = "" if allow_negative else " and at least 0"
        raise ValueError(f"{name} must be finite{bound}; got {short(value)}.")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}; got {short(value)}.")
    return number


def check_share(value: object, name: str, *, below: bool = True) -> float:
    """Return `value` as a float above 0 and below 1, or at most 1."""
    share = check_real(value, name)
    if not 0 < share <= 1 or (below and share == 1):
        least = "below" if below else "at most"
        raise ValueError(f"{name} must be above 0 and {least} 1; got {short(value)}.")
    return share


def check_shape(array: Matrix, shape: Shape, name: str, of: str) -> None:
    if tuple(array.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(array.shape)}; expected {shape}, {of}.")


def check_factor(
    factor: ArrayLike, name: str, shape: Shape, dtype: DTypeLike, of: str, *, limited: bool = True
) -> Array:
    if sp.issparse(factor):
        raise TypeError(f"{name} must be a dense array; got a sparse matrix. Use {name}.toarray().")
    array: Array = check_matrix(factor, name, dtype=dtype, allow_nan=False, limited=limited)
    check_shape(array, shape, name, of)
    return array


def check_numbers(values: ArrayLike, name: str, dtype: DTypeLike, **checks: Any) -> Array:
    """Return an array of finite numbers, nonnegative unless `checks` allow others."""
    array = as_array(values, name)
    require_real(array.dtype, name)
    with np.errstate(over="ignore"):  # infinity is refused
        array = array.astype(dtype)
    check_entries(array, name, **checks)
    return array


def check_vector(
    values: ArrayLike, name: str, length: int, dtype: DTypeLike, *, limited: bool = True
) -> Array:
    """Return finite nonnegative weights of a given length, which may be huge unless `limited`."""
    vector = check_numbers(values, name, dtype, limited=limited)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}; expected ({length},).")
    return vector


def check_support(
    support: ArrayLike, name: str, shape: Shape, dtype: DTypeLike, of: str = "samples x components"
) -> Array:
    array = check_factor(support, name, shape, dtype, of)
    others = array[(array != 0) & (array != 1)]
    if others.size:
        expected = f"expected 0 or 1, whether {name[0]} may be positive"
        raise ValueError(f"{name} holds {others[0]:g}; {expected}.")
    return array > 0


def available_memory() -> int | None:
    free = []
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        kilobytes = dict(line.split(":", 1) for line in lines)["MemAvailable"]
        free.append(int(kilobytes.split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        with suppress(AttributeError, OSError, ValueError):
            free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for group, *names, cached in (  # limit, use, and what of it is a cache of files
        ("memory", "max", "current", "inactive_file"),
        ("memory/memory", "limit_in_bytes", "usage_in_bytes", "total_inactive_file"),
    ):
        most, used, stat = (Path(f"/sys/fs/cgroup/{group}.{name}") for name in (*names, "stat"))
        with suppress(OSError, KeyError, ValueError):  # a group without a limit has "max"
            free.append(int(most.read_text()) - int(used.read_text()))
            counts = dict(line.split() for line in stat.read_text().splitlines())
            free[-1] += int(counts[cached])
    return min(free, default=None)


def require_memory(
    rank: int, shape: Sequence[int], dtype: Any, lengths: Any = None, n_fits: int = 1
) -> int:
    """Return how many fits have room for their factors and numerators; ValueError if none has."""
    needed = dtype.itemsize * rank * (2 * sum(shape if lengths is None else lengths) + rank)
    available = available_memory() if n_fits * needed > _NEVER_TOO_MUCH else None
    if available is None:
        return n_fits
    if needed > max(available, _NEVER_TOO_MUCH):
        raise ValueError(
            f"n_components={rank} needs at least {needed / 2**30:.1f} GiB of memory for X of shape "
            f"{tuple(shape)}, and {available / 2**30:.1f} GiB are available. Give fewer components."
        )
    return max(1, min(n_fits, available // int(needed)))


def warn_of_rank(rank: int, most: int, of: str) -> None:
    """Warn if fewer components describe any data exactly, unless there are few."""
    if rank > max(most, _FEW):
        why = f"n_components={rank} is more than {of} = {most} of X: {most} reproduce X exactly"
        warn_user(f"{why}, and more add nothing. Give fewer components.", UserWarning)


# Products of three factors with the data must not overflow.
LARGEST = {np.dtype(np.float32): 1e9, np.dtype(np.float64): 1e90}
# Binary orders of magnitude of the largest entry of data to fit; squares must not overflow.
_ORDINARY = {np.dtype(np.float32): 30, np.dtype(np.float64): 50}
HINT = "Bring data, weights, supervision_weight and init nearer to 1, or use float64 data."
SHIFT = "shift or clip them"


@dataclass(frozen=True, eq=False)
class CleanMatrix:
    """A checked matrix: functions that take it as X do not check it again."""

    matrix: Any


def check_matrix(
    X: Any, name: str, *, dtype: Any = None, allow_nan: bool = True, n_threads: int = 1, **rest: Any
) -> Any:
    """Return `X` as a float ndarray (2-D, any strides) or a CSR array with summed duplicates.

    Rows of a CSR array need not be sorted; `rest` is for :func:`check_entries`.  The result
    may share memory with `X` and must not be written to.
    """
    X = X.sparse.to_coo() if is_sparse_frame(X) else X
    if sp.issparse(X):
        csr, state = arrays.inspect_csr(X, name, n_threads)
        target = np.dtype(dtype) if dtype is not None else arrays.float_dtype(csr.dtype, name)
        matrix: Any = arrays.with_values(csr, arrays.to_native(csr.data, target))
        if state == arrays.DUPLICATES:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        allow_nan = False
    else:
        matrix = as_array(X, name, allow_nan=allow_nan)
        target = arrays.float_dtype(matrix.dtype, name)
        if matrix.ndim != 2:
            raise ValueError(
                f"{name} must have two dimensions (samples x features); got shape {matrix.shape}. "
                f"Use {name}.reshape(1, -1) for one sample, {name}.reshape(-1, 1) for one feature."
            )
        matrix = arrays.to_native(matrix, target if dtype is None else dtype)
        if any(stride % matrix.itemsize for stride in matrix.strides):
            matrix = np.ascontiguousarray(matrix)
    check_entries(matrix, name, allow_nan=allow_nan, n_threads=n_threads, **rest)
    return matrix


def check_data(X: DataLike | CleanMatrix, n_threads: int, dtype: Any = None) -> Any:
    dtype = check_dtype(dtype)
    clean = isinstance(X, (CleanMatrix, OnDisk))
    matrix: Any = X.matrix if isinstance(X, CleanMatrix) else X
    if clean and dtype in (None, matrix.dtype):
        return matrix
    if isinstance(matrix, OnDisk):
        return matrix.as_type(dtype)
    return check_matrix(matrix, "X", dtype=dtype, ordinary=True, n_threads=n_threads)


def check_entries(
    matrix: Any,
    name: str,
    *,
    allow_nan: bool = False,
    allow_negative: bool = False,
    limited: bool = True,
    ordinary: bool = False,
    remedy: str = SHIFT,
    n_threads: int = 1,
) -> None:
    """Refuse bad entries, and huge entries if `limited`; data to fit must be `ordinary`."""
    values: Array = matrix.data if sp.issparse(matrix) else getattr(matrix, "values", matrix)
    if not values.size:
        return
    low, high, missing, *_ = arrays.moments_of(values, n_threads)
    if missing and not allow_nan:
        raise ValueError(
            f"{name} contains NaN at {_position(matrix, np.isnan)}; it means missing only in "
            "dense X or y of a model (sparse: weights.observed or .missing). Fill it here."
        )
    if missing == values.size:
        return
    if not isfinite(low) or not isfinite(high):
        how = "Replace it by a finite number, or by NaN in a dense array if it is missing."
        raise ValueError(f"{name} contains infinity at {_position(matrix, np.isinf)}. {how}")
    if low < 0 and not allow_negative:
        first = f"{name}{_position(matrix, lambda entries: entries < 0)}"
        how = f"the first is {first}. Entries must be nonnegative; {remedy}."
        raise ValueError(f"Negative values in data passed to {name}: {how}")
    if ordinary:
        require_ordinary(high, values.dtype, name)
    if limited and max(high, -low) > LARGEST[values.dtype]:
        what = f"{name} contains {high if high > -low else low:.3g}, too large to work with"
        limit = f"{values.dtype} (limit {LARGEST[values.dtype]:.0e})"
        raise ValueError(f"{what} in {limit}. Divide the data by a constant.")


def require_ordinary(largest: float, dtype: np.dtype[Any], name: str) -> None:
    """Raise ValueError for data whose squares are too close to the limits of a dtype."""
    if largest > 0 and abs(int(np.frexp(largest)[1])) > _ORDINARY[dtype]:
        raise ValueError(
            f"{name} has a largest entry of {largest:.3g}, too far from 1 to work with in {dtype}; "
            f"multiply {name} by 1e{round(np.clip(-np.log10(float(largest)), -300, 300))}."
        )


def _position(matrix: Any, test: Callable[[Array], Array]) -> str:
    """Return the first entry, in row order, for which the test is true: "[i, j] = value"."""
    if sp.issparse(matrix):
        k = int(np.flatnonzero(test(matrix.data))[0])
        i = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        return f"[{i}, {matrix.indices[k]}] = {matrix.data[k]:g}"
    if hasattr(matrix, "at"):  # a sparse tensor
        k = int(np.flatnonzero(test(matrix.values))[0])
        return f"{matrix.at.places[:, k].tolist()} = {matrix.values[k]:g}"
    place = np.argwhere(test(matrix))[0].tolist()
    return f"{place} = {matrix[tuple(place)]:g}"


def readable(X: Any, name: str, allow_nan: bool = False, *, allow_sparse: bool = False) -> Any:
    """Return dense data for scikit-learn's checks: native numbers, in a frame if named."""
    if allow_sparse and is_sparse_frame(X):
        return X
    array = as_array(X, name, allow_nan=allow_nan)
    if array.dtype.kind in "SU":  # scikit-learn would read it as numbers
        require_real(array.dtype, name)
    array = arrays.to_native(array) if array.dtype.kind in "biuf" else array
    if array.ndim == 2 and type(X).__module__.split(".")[0] == "pandas":
        import pandas

        return pandas.DataFrame(array, columns=X.columns, copy=False)
    return X if hasattr(X, "__dataframe__") else array


Labels: TypeAlias = tuple[Any, ...]  # of the rows and columns of a frame; None without
# What the rows and columns of an argument belong to: samples (0), features (1) or others (None).
_SIDES: dict[str, tuple[int | None, int | None]] = {
    **dict.fromkeys(("A", "A_support", "fixed_components"), (None, 1)),
    **dict.fromkeys(("S", "S_support", "covariates", "init"), (0, None)),
    **dict.fromkeys(("X_weights", "observed"), (0, 1)),
    "feature_labels": (1, None),
}


def labels_of(table: Any) -> Labels:
    frame = hasattr(table, "iloc") or hasattr(table, "__dataframe__")
    return tuple(getattr(table, side, None) if frame else None for side in ("index", "columns"))


def by_name(X: Any, own: Labels | None = None, /, **tables: Any) -> dict[str, Any]:
    """Return tables with rows and columns in the order of the labels of X, if both have names."""
    labels = labels_of(X) if own is None else own
    for name, table in tables.items() if any(side is not None for side in labels) else ():
        sides = [None if side is None else labels[side] for side in _SIDES.get(name, ())]
        if name == "init" and isinstance(table, (tuple, list)) and len(table) > 1:
            tables[name] = (*by_name(X, labels, S=table[0], A=table[1]).values(), *table[2:])
        elif name == "side" and isinstance(table, Mapping):
            rows = labels[:1]
            tables[name] = {k: in_order(t, rows, f"side[{short(k)}]") for k, t in table.items()}
        elif hasattr(table, "by_name"):  # weights
            tables[name] = table.by_name(sides, name)
        else:
            tables[name] = in_order(table, sides, name)
    return tables


def in_order(table: Any, labels: Sequence[Any], name: str, of: str = "X") -> Any:
    """Return a table with rows and columns in the order of `labels`, if it has names itself."""
    for axis, (names, own) in enumerate(zip(labels, labels_of(table), strict=False)):
        if (order := order_of(names, own, name, axis, of)) is not None:
            table = getattr(table, "iloc", table)[(slice(None),) * axis + (order,)]
    return table


def order_of(labels: Any, own: Any, name: str, axis: int, of: str = "X") -> list[int] | None:
    """Return the places of wanted labels among those of an axis; None if no labels are names.

    Names are texts.  Numbers may mean positions, so that another order of them is refused.
    """
    labels, own = ([] if side is None else list(side) for side in (labels, own))
    if not (labels and own) or labels == own:
        return None
    what, places = ("rows", "columns")[axis], {label: place for place, label in enumerate(own)}
    if not all(isinstance(label, str) for label in chain(labels, own)):
        if len(labels) != len(own) or places.keys() != set(labels):
            return None
        how = f"sort them, or give {name}.to_numpy() if their order is that of {of}"
        raise ValueError(f"{name} has the labels of the {what} of {of} in another order; {how}.")
    for differences, problem in (
        (dict.fromkeys(labels).keys() - places.keys(), f"lacks {what} of {of}"),
        (places.keys() - set(labels), f"has {what} that {of} does not have"),
        ([label for label, n in Counter(own + labels).items() if n > 2], f"or {of} repeats {what}"),
    ):
        if differences:
            how = f"Names are matched; give an array to match {what} by position"
            raise ValueError(f"{name} {problem}: {listed(sorted(differences))}. {how}.")
    return [places[label] for label in labels]


def read_pattern(pattern: Any, name: str) -> sp.csr_array:
    if sp.issparse(pattern):
        return arrays.read_csr(pattern, name)
    dense = as_array(pattern, name)
    require_real(dense.dtype, name)
    if dense.ndim != 2:
        raise ValueError(f"{name} must have two dimensions; got shape {dense.shape}.")
    return sp.csr_array(arrays.to_native(dense))


def require_finite(results: Mapping[str, Any], hint: str = HINT) -> None:
    """Raise ValueError for the first number, array, list or mapping that is not finite."""
    for name, value in results.items():
        if isinstance(value, list | dict | Mapping):
            items = dict(enumerate(value)) if isinstance(value, list) else value
            require_finite({f"{name}[{key!r}]": item for key, item in items.items()}, hint)
            continue
        entries = value.data if sp.issparse(value) else value
        if isinstance(entries, np.ndarray) and entries.dtype.kind == "f" and entries.size:
            finite = isfinite(entries.min()) and isfinite(entries.max())  # no array of bools
        else:
            finite = not isinstance(entries, float) or isfinite(entries)
        if not finite:
            kind = f"{value.dtype}" if hasattr(value, "dtype") else "float64"
            what = f"NaN or infinity: numbers are outside of the range of {kind}"
            raise ValueError(f"{name} would hold {what}. {hint}")
