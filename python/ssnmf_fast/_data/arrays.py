"""Checks of arrays and sparse matrices from callers.

Results have no masks, real numbers in native byte order, and indices within the shape: SciPy,
scikit-learn and the kernels do not check the indices of a sparse matrix, and a wrong index reads
or writes outside of an array.  Every argument is checked here first.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._common.arrays import Array, Matrix, MatrixLike
from .._common.text import listed, short

MOST = np.iinfo(np.int32).max  # limit of the indices of the kernels
_CONVERT = "Convert numbers in texts, for example with pandas.to_numeric or astype(float)"
_OF_NUMBERS = {*"0123456789+-.,eE b'"}  # characters of a number as text or bytes
_COMPRESSED = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}

Parts = tuple[Array, Array, Array]  # values, rows and columns of entries


class OnDisk:
    """A matrix that stays on disk: not an array, but some functions take it."""

    dtype: np.dtype[Any]

    def as_type(self, dtype: npt.DTypeLike) -> OnDisk:
        raise NotImplementedError


DataLike: TypeAlias = MatrixLike | OnDisk


class Moments(NamedTuple):
    """What one pass finds out about numbers; only `missing` and `nonzero` count NaN."""

    least: float
    largest: float
    missing: int
    nonzero: int
    total: float
    squares: float


def plain_matrix(values: Array) -> Array:
    """Return numbers by their first mode, as the kernels take them."""
    values = np.atleast_1d(values)
    matrix = values.reshape(len(values), prod(values.shape[1:]))
    odd = not matrix.flags.aligned or any(step % matrix.itemsize for step in matrix.strides)
    return matrix.copy() if odd else matrix


def moments_of(values: Array, threads: int = 1) -> Moments:
    return Moments(*kernels.dense_moments(plain_matrix(values), threads))


def on_disk_error(user: str, name: str = "X") -> TypeError:
    how = f"load it as a whole, or give some of its rows, for example {name}.rows(slice(0, 10000))"
    return TypeError(f"{name} is on disk, and {user} needs it in memory: {how}.")


def refuse_on_disk(X: Matrix, user: str, name: str = "X") -> None:
    if isinstance(X, OnDisk):
        raise on_disk_error(user, name)


def as_array(
    values: Any, name: str, *, allow_nan: bool = False, allow_objects: bool = False
) -> Array:
    """Return an array, of any dtype and shape, without a mask."""
    refuse_annotated(values, name)
    refuse_on_disk(values, "this call", name)
    if hasattr(values, "to_dask_array"):
        how = f"{name}.compute(), or {name}.to_dask_array(lengths=True) with ssnmf_fast.dask"
        raise TypeError(f"{name} is a {type(values).__name__} of dask, not in memory: give {how}.")
    values = unmask(values, name, allow_nan=allow_nan)
    if not allow_objects and hasattr(values, "isna"):  # numbers of pandas, with NaN for pandas.NA
        kinds = values.dtypes if getattr(values, "ndim", 1) == 2 else [values.dtype]
        plain = [getattr(kind, "numpy_dtype", kind) for kind in kinds]
        if plain and all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in plain):
            dtype = np.result_type(*plain)
            if dtype.kind != "f" and np.any(values.isna()):
                dtype = np.dtype(np.float64)
            na = {"na_value": np.nan} if dtype.kind == "f" else {}
            values = values.to_numpy(dtype=dtype, **na)
    try:
        array = np.asarray(values)
    except ValueError as error:
        what = "rows of different lengths; give all rows the same number of values"
        raise ValueError(f"{name} has {what}.") from error
    if array.ndim == 0 and name == "X" and array.dtype.kind in "biuf":
        how = "Are its arguments in another order? The data are X"
        raise ValueError(f"X must be an array; got {short(values)}. {how}.")
    if array.ndim == 0 and array.dtype.kind in "OSU":
        how = f" Call {name}.collect() first." if hasattr(values, "collect") else ""
        raise TypeError(f"{name} must be an array; got {type(values).__name__}.{how}")
    frame = array.ndim == 2 and hasattr(values, "columns")
    if allow_objects or not (array.dtype == object or (frame and array.dtype.kind in "Mm")):
        return array
    try:
        if array.dtype != object:
            require_real(array.dtype, name)
        return _numbers_of(array, name)
    except TypeError as error:
        if not frame:
            raise
        pairs = zip(values.columns, array.T, strict=True)
        wrong = [label for label, column in pairs if not _are_numbers(column)]
        raise TypeError(
            f"{name} has columns that are not numbers: {listed(wrong)} "
            f"({str(error).partition(', not')[0]}). {_CONVERT}, encode others with scikit-learn's "
            f"OneHotEncoder, or leave them out: {name}.select_dtypes('number') in pandas."
        ) from error


def _are_numbers(values: Array) -> bool:
    try:
        return values.dtype == object and _numbers_of(values, "values") is not None
    except TypeError:
        return False


def is_sparse_frame(X: Any) -> bool:
    frame = getattr(X, "ndim", 0) == 2 and hasattr(X, "sparse")
    return frame and all(kind.fill_value == 0 for kind in X.dtypes)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT, pandas.NA or masked."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except ArithmeticError:  # a signaling NaN of the module decimal
        return True
    except (TypeError, ValueError):  # pandas.NA has no truth; arrays are refused later
        return not isinstance(value, np.ndarray)


def _numbers_of(objects: Array, name: str) -> Array:
    """Return objects that are numbers, or missing, as an array of numbers."""
    values = objects.ravel().tolist()
    with suppress(TypeError, ValueError, OverflowError):
        array = np.array(values)
        if array.dtype == object and not any(isinstance(value, (str, bytes)) for value in values):
            array = array.astype(np.float64)  # with None as NaN
        if array.dtype.kind in "biuf" and array.size == objects.size:
            return array.reshape(objects.shape)
    array = np.empty(objects.size)
    for k, value in enumerate(values):
        try:
            if isinstance(value, (str, bytes)):
                way = "it is text, which scikit-learn's TfidfVectorizer makes numeric"
                digits = set(str(value)) <= _OF_NUMBERS
                raise TypeError(f"it is text. {_CONVERT}" if digits else way)
            array[k] = np.nan if is_missing(value) else float(value)
        except OverflowError:  # an int beyond the range
            array[k] = np.inf
        except (TypeError, ValueError) as error:
            place = ", ".join(map(str, np.unravel_index(k, objects.shape)))
            why = f"{name}[{place}] is {short(value)}, not a number: {error}"
            raise TypeError(f"{why}. Give numbers, with NaN where one is missing.") from error
    return array.reshape(objects.shape)


def refuse_annotated(X: Matrix, name: str) -> None:
    """Raise TypeError for objects of anndata: NumPy would read them element by element."""
    kind = type(X).__name__
    if not type(X).__module__.startswith("anndata") or isinstance(X, np.ndarray):
        return
    way = f"on the AnnData, which reads files block by block, or give {name}.to_memory()."
    if kind == "AnnData":
        way = f"and related functions, or a matrix such as {name}.layers['counts'] or {name}.X."
    raise TypeError(
        f"{name} is an object of anndata ({kind}), not a matrix. Use ssnmf_fast.anndata.nmf {way}"
    )


def unmask(X: Matrix, name: str, *, allow_nan: bool) -> Any:
    """Return a masked array without its mask, with NaN for masked entries."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    if not allow_nan:
        why = "a masked array with masked entries, which cannot be missing here"
        raise ValueError(f"{name} is {why}. Fill them with numpy.ma.filled, or leave them out.")
    if X.dtype == object:
        return np.where(np.ma.getmaskarray(X), np.nan, X.data)
    return np.ma.filled(X.astype(float_dtype(X.dtype, name)), np.nan)


def require_real(dtype: Any, name: str) -> None:
    if dtype.kind not in "biuf":
        how = f"expected a real numeric dtype. Convert it, for example with {name}.astype(float)"
        raise TypeError(f"{name} has dtype {dtype}; {how}.")


def float_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """Return the floating dtype to work in: float32 for float32, float64 for all others."""
    require_real(dtype, name)
    single = dtype.newbyteorder("=") == np.float32
    return np.dtype(np.float32 if single else np.float64)


def check_dtype(dtype: npt.DTypeLike | None, otherwise: npt.DTypeLike | None = None) -> Any:
    """Return the dtype to work in from an argument; `otherwise` if it is None."""
    if dtype is None:
        return otherwise
    for kind in map(np.dtype, ("float32", "float64")):
        if dtype is kind.type or (isinstance(dtype, (str, np.dtype)) and dtype == kind.name):
            return kind
    wrong = ValueError if isinstance(dtype, (str, type, np.dtype)) else TypeError
    raise wrong(f"dtype must be None, 'float32' or 'float64'; got {short(dtype)}.")


def to_native(array: Array, target: npt.DTypeLike | None = None) -> Array:
    """Return an aligned array in native byte order, of the `target` dtype."""
    if target is not None:
        with np.errstate(over="ignore"):
            return to_native(array).astype(target, copy=False)
    dtype = array.dtype.newbyteorder("=")
    return array.astype(np.float64 if dtype == np.float16 else dtype, copy=not array.flags.aligned)


def read_csr(X: Matrix, name: str) -> sp.csr_array:
    """Return a sparse matrix of any format as a CSR array that is safe for SciPy."""
    return inspect_csr(X, name)[0]


def inspect_csr(X: Matrix, name: str, n_threads: int = 1) -> tuple[sp.csr_array, int]:
    """Return a sparse matrix as :func:`read_csr` does, and the state of its rows."""
    matrix, state = inspect_sparse(X, name, n_threads)
    if matrix.format == "csr":
        return matrix, state
    csr = matrix.tocsr()
    return csr, kernels.inspect_csr(csr.indptr, csr.indices, csr.shape[1], n_threads)


def inspect_sparse(X: Any, name: str, n_threads: int = 1) -> tuple[Any, int]:
    """Return a csr, csc, bsr or coo array that is safe, and the state of a compressed one."""
    if len(X.shape) != 2:
        raise ValueError(f"{name} must have two dimensions; got shape {X.shape}.")
    if max(X.shape) > MOST:
        raise ValueError(f"{name} has shape {X.shape}; expected at most {MOST} rows and columns.")
    require_real(X.dtype, name)
    if X.format in _COMPRESSED:
        return _read_compressed(X, name, n_threads)
    data, *places = _read_lists(X, name) if X.format == "lil" else _read_coordinates(X, name)
    if not len(data) == len(places[0]) == len(places[1]):
        lengths = len(data), *map(len, places)
        _refuse(name, "it has {} values, {} rows and {} columns of entries".format(*lengths))
    for side, index in enumerate(places):
        if len(index) and (index.min() < 0 or index.max() >= X.shape[side]):
            _refuse(name, _outside(index, X.shape[side], f"coords[{side}]"))
    return sp.coo_array((data, tuple(places)), shape=X.shape, copy=False), UNSORTED


def _read_compressed(X: Any, name: str, n_threads: int) -> tuple[Any, int]:
    data = _numbers(X.data, name, 3 if X.format == "bsr" else 1)
    indptr, indices = _integers(X.indptr, name, "indptr"), _integers(X.indices, name, "indices")
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    lines, width = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        height, breadth = data.shape[1:]
        if 0 in (height, breadth) or lines % height or width % breadth:
            _refuse(name, f"blocks of {height} x {breadth} do not fill the shape {X.shape}")
        lines, width = lines // height, width // breadth
    if len(indptr) != lines + 1:
        _refuse(name, f"indptr has {len(indptr)} values; expected {lines + 1}")
    if len(data) != len(indices):
        _refuse(name, f"it has {len(data)} values, but {len(indices)} indices")
    state = kernels.inspect_csr(indptr, indices, width, n_threads)
    if state == UNSOUND:
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]) or indptr[-1] > len(indices):
            _refuse(name, f"indptr must rise from 0 to the number of indices, {len(indices)}")
        _refuse(name, _outside(indices, width, "indices"))
    used = int(indptr[-1])
    arrays = (data[:used], indices[:used], indptr)
    return _COMPRESSED[X.format](arrays, shape=X.shape, copy=False), state


def _outside(index: Array, size: int, part: str) -> str:
    place = int(np.flatnonzero((index < 0) | (index >= size))[0])
    return f"{part}[{place}] is {index[place]}; expected 0 to {size - 1}"


def _read_coordinates(X: Any, name: str) -> Parts:
    if X.format == "dia":
        data, offsets = _numbers(X.data, name, 2), _integers(X.offsets, name, "offsets")
        if len(data) != len(offsets) or len(np.unique(offsets)) < len(offsets):
            _refuse(name, f"its {len(offsets)} offsets are not those of {len(data)} diagonals")
    if X.format in ("dia", "dok"):
        try:
            X = X.tocoo()
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            _refuse(name, str(error))
    coordinates = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if len(coordinates) != 2:
        _refuse(name, f"it has {len(coordinates)} vectors of coordinates; expected 2")
    rows, columns = (_integers(index, name, "coords") for index in coordinates)
    return _numbers(X.data, name, 1), rows, columns


def _read_lists(X: Any, name: str) -> Parts:
    """Read the format lil: a list of columns and a list of values for every row."""
    try:
        lengths, of_values = ([len(row) for row in part] for part in (X.rows, X.data))
        columns, data = np.array([*chain(*X.rows)]), np.array([*chain(*X.data)], dtype=X.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        _refuse(name, f"rows or data are not lists of numbers ({error})")
    if len(lengths) != X.shape[0] or lengths != of_values:
        _refuse(name, f"rows and data are not {X.shape[0]} lists of the same lengths")
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    return _numbers(data, name, 1), rows, _integers(columns, name, "rows")


def _numbers(values: npt.ArrayLike, name: str, dimensions: int) -> Array:
    array = as_array(values, f"the values of {name}")
    require_real(array.dtype, name)
    if array.ndim != dimensions:
        _refuse(name, f"data has {array.ndim} dimensions; expected {dimensions}")
    return np.ascontiguousarray(to_native(array))


def _integers(values: npt.ArrayLike, name: str, part: str) -> Array:
    """Return indices as int32, or int64 where they may need it."""
    array = as_array(values, f"the indices of {name}")
    if array.dtype.kind not in "iu" and array.size:
        _refuse(name, f"{part} has dtype {array.dtype}; expected integers")
    if array.ndim != 1:
        _refuse(name, f"{part} has {array.ndim} dimensions; expected 1")
    small = np.can_cast(array.dtype, np.int32) or not array.size
    return np.ascontiguousarray(to_native(array), dtype=np.int32 if small else np.int64)


def _refuse(name: str, why: str) -> NoReturn:
    raise ValueError(
        f"{name} is not a valid sparse matrix: {why}. Build it again from rows, columns and values."
    )


# States of the rows of a matrix; the first two have no duplicates, the last has wrong indices.
SORTED, UNSORTED, DUPLICATES, UNSOUND = range(4)


def kernel_parts(matrix: sp.csr_array) -> tuple[Array, Array, Array]:
    """Return indptr (int64), indices (int32) and values for the kernels."""
    indices = matrix.indices.astype(np.int32, copy=False)
    return matrix.indptr.astype(np.int64, copy=False), indices, matrix.data


def transpose(matrix: sp.csr_array, n_threads: int) -> sp.csr_array:
    n_rows, n_columns = matrix.shape
    indptr = np.empty(n_columns + 1, dtype=np.int64)
    indices = np.empty(matrix.nnz, dtype=np.int32)
    values = np.empty(matrix.nnz, dtype=matrix.dtype)
    kernels.transpose(*kernel_parts(matrix), indptr, indices, values, n_threads)
    return sp.csr_array((values, indices, indptr), shape=(n_columns, n_rows), copy=False)


def with_values(Z: sp.csr_array, values: Array) -> sp.csr_array:
    return sp.csr_array((values, Z.indices, Z.indptr), shape=Z.shape, copy=False)


def scale_rows(matrix: sp.csr_array, factors: Array) -> sp.csr_array:
    return with_values(matrix, matrix.data * np.repeat(factors, np.diff(matrix.indptr)))


def sample(Z: Any, pattern: sp.csr_array) -> sp.csr_array:
    """Return the values of Z, sparse or dense, at the stored entries of a pattern."""
    if sp.issparse(Z) and not Z.has_sorted_indices:
        Z = Z.sorted_indices()  # SciPy would search through the rows
    values = Z[entry_rows(pattern.indptr), pattern.indices]
    values = values.toarray() if sp.issparse(values) else np.asarray(values)  # sparse where empty
    return with_values(pattern, values.ravel())


def entry_rows(indptr: Array) -> Array:
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def column_ranges(counts: Array, n_ranges: int) -> Array:
    """Cut columns with these numbers of entries into ranges with similar numbers of entries."""
    before = np.concatenate([[0], np.cumsum(counts + 1)])
    bounds = np.searchsorted(before, np.linspace(0, before[-1], n_ranges + 1))
    bounds[0], bounds[-1] = 0, len(counts)
    return bounds.astype(np.int64)


def list_entries(array: Array, present: Array) -> sp.csr_array:
    """Return the entries of a dense array where `present` is true; zeros are stored, too."""
    return with_values(sp.csr_array(present), array[present])


def drop_entries(matrix: sp.csr_array, dropped: Array) -> sp.csr_array:
    mask = ~dropped
    indptr = np.concatenate([[0], np.cumsum(mask)])[matrix.indptr].astype(matrix.indptr.dtype)
    return sp.csr_array((matrix.data[mask], matrix.indices[mask], indptr), shape=matrix.shape)
