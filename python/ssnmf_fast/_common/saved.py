"""Contents of files: a JSON header and arrays in .npz form, and values of annotated types.

Only expected parts are unpacked.
"""

from __future__ import annotations

import errno
import json
import math
import types
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import IO, Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import scipy.sparse as sp

from .arrays import Array

HEADER = "header"
_ZIP = b"PK"  # how .npz files begin
_OF_CONTENTS = (None, errno.EINVAL)  # such as an offset before the start of the file
_format = np.lib.format
_HEADERS = {(1, 0): _format.read_array_header_1_0, (2, 0): _format.read_array_header_2_0}


def header_array(header: object) -> Array:
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and dtype of an array in .npy format; raise ValueError or KeyError for others."""
    shape, _, dtype = _HEADERS[_format.read_magic(file)](file)
    return shape, dtype


class NpzReader:
    """An open file, of which arrays are read when they are taken; defects raise a ValueError."""

    def __init__(self, file: IO[bytes]) -> None:
        if file.read(len(_ZIP)) != _ZIP:
            raise ValueError("it is not an .npz file")
        file.seek(0)
        with _reading():
            self._archive = np.load(file, allow_pickle=False)
            self._names = [name.removesuffix(".npy") for name in self._archive.zip.namelist()]

    def header(self) -> Any:
        return json.loads(self.pop(HEADER).tobytes().decode())

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Return the existing arrays among `names`; refuse others."""
        arrays = {name: self.pop(name) for name in names if name in self}
        self.refuse_others()
        return arrays

    def refuse_others(self) -> None:
        if self._names:
            raise ValueError(f"it holds the unknown array {min(self._names)!r:.100}")

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def pop(self, name: str) -> Array:
        """Take out an array, after a check of its length in the directory of the file."""
        if self._names.count(name) > 1:
            raise ValueError("it holds an array twice")
        with _reading():
            place = self._archive.zip.getinfo(f"{name}.npy")
            with self._archive.zip.open(place) as stream:
                shape, dtype = npy_header(stream)
                if stream.tell() + math.prod(shape) * dtype.itemsize != place.file_size:
                    raise ValueError(f"{name} does not have {shape} numbers")
            array = np.asarray(self._archive[name])
        self._names.remove(name)
        return array


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # damaged bytes may raise any exception
        if isinstance(error, OSError) and error.errno not in _OF_CONTENTS:
            raise  # an error of the disk
        raise ValueError(f"it cannot be read as .npz ({error})") from error


def as_declared(value: object, kind: Any, name: str) -> Any:
    """Convert a value to an annotated type, or raise a ValueError that names the difference."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    named = getattr(origin or kind, "__value__", None)  # by a `type` statement, as NDArray may be
    if named is not None:
        return as_declared(value, named[arguments] if arguments else named, name)
    if origin is Annotated:
        return as_declared(value, arguments[1], name)
    if origin in (Union, types.UnionType):
        errors = []
        for argument in arguments:
            try:
                return as_declared(value, argument, name)
            except ValueError as error:
                errors.append(error)
        raise errors[0]
    if is_dataclass(kind):
        hints, names = get_type_hints(kind, include_extras=True), [f.name for f in fields(kind)]
        needed = frozenset(names if isinstance(value, dict) else ())
        if isinstance(value, list) and len(value) <= len(names):  # of the first fields
            value = dict(zip(names, value, strict=False))
        make: Any = kind
        entries = _entries(value, {field: hints[field] for field in names}, needed, name)
        try:
            return make(**entries)
        except TypeError as error:  # a field is missing
            raise ValueError(f"{name} lacks fields of a {make.__name__}: {error}") from error
    if is_typeddict(kind):
        return _entries(value, get_type_hints(kind), kind.__required_keys__, name)
    plain: Any = origin or kind
    if plain is np.ndarray and isinstance(value, list):
        return np.array(value, dtype=np.float64)
    form: Any = {tuple: list, float: (float, int), None: type(None)}.get(plain, plain)
    if not isinstance(value, form) or (form in ((float, int), int) and isinstance(value, bool)):
        expected = {list: "a list", dict: "a mapping", None: "null"}.get(plain, plain.__name__)
        raise ValueError(f"{name} is {value!r:.50}; expected {expected}")
    if plain in (dict, Mapping) and arguments:
        return {key: as_declared(v, arguments[1], f"{name}[{key!r}]") for key, v in value.items()}
    if plain in (list, tuple) and arguments:
        single = plain is list or arguments[-1] is Ellipsis
        if not single and len(arguments) != len(value):
            raise ValueError(f"{name} has {len(value)} values; expected {len(arguments)}")
        kinds = [arguments[0]] * len(value) if single else arguments
        triples = zip(value, kinds, range(len(value)), strict=True)
        return plain(as_declared(v, argument, f"{name}[{k}]") for v, argument, k in triples)
    return value


def _entries(value: object, kinds: dict[str, Any], needed: frozenset[str], name: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {value!r:.50}; expected a mapping")
    strange, missing = value.keys() - kinds.keys(), needed - value.keys()
    if strange or missing:
        raise ValueError(f"{name} lacks {sorted(missing)}, or has the unknown {sorted(strange)}")
    return {key: as_declared(v, kinds[key], f"{name}[{key!r}]") for key, v in value.items()}


@dataclass(frozen=True)
class Saved:
    """An attribute of a model that :func:`ssnmf_fast.save` keeps."""

    # A letter for each axis of an array: equal letters, equal sizes; "?": any; "": count or flag.
    axes: str | None = None
    # Values of an array: nonnegative (""; if one-dimensional, of any kind), "nonnegative",
    # "finite", "positive" (and finite), "real" (also NaN), "<m" or "-1<m" (indices of axis m, from
    # 0 or -1), "counts" (integers from 0), "times" (datetime64) or "text".
    values: str = ""
    optional: bool = False  # whether a fitted model may lack it
    container: type[list[Any] | dict[Any, Any]] | None = None  # of such arrays
    kind: Any = None  # annotation of an attribute made of text and numbers
    part: str = ""  # the field of the result of a fit that an estimator has as this attribute

    @property
    def of_numbers(self) -> bool:
        matrix = self.axes is not None and len(self.axes) == 2 and not self.values
        return matrix or self.values in ("nonnegative", "finite", "positive")

    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        if self.kind is not None:
            as_declared(value, self.kind, name)
            return
        if self.container is not None:
            if not isinstance(value, self.container):
                kind = "mapping" if self.container is dict else "list"
                raise ValueError(f"{name} is not a {kind} of matrices")
            for part, array in value.items() if isinstance(value, dict) else enumerate(value):
                replace(self, container=None).check(f"{name}[{part!r}]", array, sizes)
            return
        if self.axes == "":
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is not a count")
            return
        if self.axes is None:
            if self.values:
                as_declared(value, float, name)
        else:
            array = isinstance(value, np.ndarray) or sp.issparse(value)
            if not array or value.ndim != len(self.axes):
                raise ValueError(f"{name} is not an array of {len(self.axes)} dimensions")
            for axis, size in zip(self.axes, value.shape, strict=True):
                if axis != "?" and sizes.setdefault(axis, size) != size:
                    raise ValueError(f"{name} of shape {value.shape} does not match other arrays")
        low, indexed, axis = self.values.partition("<")
        whole = indexed or self.values == "counts"
        letter = "i" if whole else {"text": "U", "times": "M", "real": "f"}.get(self.values)
        if letter and (value.dtype.kind != letter or (letter == "M" and np.isnat(value).any())):
            raise ValueError(f"{name} does not hold {'integers' if whole else self.values}")
        if whole and value.size:
            least, end = int(low) if indexed and low else 0, sizes.get(axis, math.inf)
            if value.min() < least or value.max() >= end:
                raise ValueError(f"{name} holds integers outside {least} ... {end - 1}")
        if not self.of_numbers:
            return
        entries = np.asarray(value.data if sp.issparse(value) else value)
        if self.axes and entries.dtype.kind != "f":
            raise ValueError(f"{name} does not hold real numbers")
        entries = entries.astype(np.float64, copy=False)
        low = {"finite": -math.inf, "positive": np.nextafter(0.0, 1.0)}.get(self.values, 0.0)
        if not (np.isfinite(entries).all() and np.all(entries >= low)):
            raise ValueError(f"{name} does not hold {self.values or 'nonnegative'} numbers")

    def restored(self, value: object) -> Any:
        return value if self.kind is None or value is None else as_declared(value, self.kind, "")


class SavedModels(Saved):
    """A list of fitted estimators that can be saved, or None in place of one."""

    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        if not isinstance(value, list) or all(model is None for model in value):
            raise ValueError(f"{name} is not a list of estimators")
        if len({model.n_features_in_ for model in value if model is not None}) > 1:
            raise ValueError(f"{name} have different numbers of features")


Table = Mapping[str, Saved]


def arrays_of(value: object) -> Any:
    if hasattr(value, "arrays"):
        return value.arrays()
    return value.plain() if hasattr(value, "plain") else value


COUNT, NUMBER, POSITIVE = Saved(""), Saved(kind=float), Saved(values="positive")
STREAM = Saved("??", container=dict, optional=True)  # statistics of batches or slices
LOSS = Saved(kind=str | float)
_DICTIONARIES = ("A", "right", "components_", "factors", "factors_", "components")


def check_parts(values: dict[str, Any], table: Table) -> None:
    sizes: dict[str, int] = {}
    if "n_features_in_" in values:
        sizes["m"] = values["n_features_in_"]
    # Indices come last, when the sizes of their axes are known.
    for name, saved in sorted(table.items(), key=lambda item: "<" in item[1].values):
        if name in values and not (values[name] is None and saved.optional):
            saved.check(name, values[name], sizes)
    if "r" in sizes and values.get("n_components_", sizes["r"]) != sizes["r"]:
        raise ValueError("n_components_ does not match other arrays")
    dictionary = next((name for name in _DICTIONARIES if name in table), None)
    if dictionary is None:
        return
    factors = values[dictionary]
    matrices = factors if isinstance(factors, list) else [factors]
    if not matrices or not all(math.prod(matrix.shape) for matrix in matrices):
        raise ValueError("the dictionary is empty")
