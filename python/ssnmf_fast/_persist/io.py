"""Attributes of models as numeric arrays and text for JSON, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.replacement import Replacement
from .._common.saved import (
    COUNT,
    HEADER,
    NpzReader,
    Saved,
    Table,
    arrays_of,
    check_parts,
    header_array,
)
from .._common.text import short
from .._data.arrays import check_dtype, read_csr
from .._models.factorize import Factorization, TensorFactorization
from .._version import __version__
from ..completion._result import Completion

SCALARS = (str, bool, int, float, type(None))
_PARTS = ("data", "indices", "indptr")
_SEVERAL = ("arrays", "list of arrays")
_UNITS_OF_TIME = ("Y", "M", "D", "h", "s")


def packed(values: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return numeric arrays, and all else in a form for JSON; sparse matrices are their parts."""
    arrays, plain = {}, {}
    for key, value in values.items():
        parts = dict(enumerate(value)) if isinstance(value, list) else value
        if _is_numeric(value):
            arrays[key] = value
        elif sp.issparse(value):
            arrays |= {f"{key}/{part}": getattr(value, part) for part in _PARTS}
            plain[key] = {"kind": "csr", "values": list(value.shape)}
        elif isinstance(parts, dict) and parts and all(map(_is_numeric, parts.values())):
            arrays |= {f"{key}/{part}": array for part, array in parts.items()}
            kind = "list of arrays" if isinstance(value, list) else "arrays"
            plain[key] = {"kind": kind, "values": list(parts)}
        else:
            plain[key] = _packed(value, key)
    return arrays, plain


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _packed(value: Any, key: str) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "M":
        return {"kind": np.datetime_data(value.dtype)[0], "values": value.astype(str).tolist()}
    if isinstance(value, np.ndarray):
        labels = [_packed(entry, key) for entry in value.tolist()]
        return {"kind": "O" if value.dtype.kind == "O" else "U", "values": labels}
    if isinstance(value, np.generic):
        value = value.item()
    if is_dataclass(value):
        return [_packed(getattr(value, one.name), key) for one in fields(value)]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"kind": "dict", "values": {name: _packed(v, key) for name, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_packed(entry, key) for entry in value]
    if isinstance(value, SCALARS):
        return value
    raise TypeError(
        f"{key} holds {short(value)} ({type(value).__name__}), which cannot be saved; expected "
        "text or numbers. Convert the class labels to str and fit again."
    )


def names_of_arrays(plain: dict[str, Any], attributes: Iterable[str]) -> set[str]:
    """Return the names of all arrays that some attributes may have, of which `plain` tells."""
    found = set()
    for key in attributes:
        value = plain.get(key)
        if isinstance(value, dict) and value["kind"] in ("csr", *_SEVERAL):
            parts = _PARTS if value["kind"] == "csr" else value["values"]
            found |= {f"{key}/{part}" for part in parts}
        else:
            found.add(key)
    return found


def unpacked(plain: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the attributes that :func:`packed` took apart; ValueError if they do not fit."""
    arrays = dict(arrays)
    values = {}
    for key, value in plain.items():
        if isinstance(value, dict) and value["kind"] == "csr":
            parts = tuple(arrays.pop(f"{key}/{part}") for part in _PARTS)
            values[key] = read_csr(sp.csr_array(parts, shape=tuple(value["values"])), key)
        elif isinstance(value, dict) and value["kind"] in _SEVERAL:
            several = {part: arrays.pop(f"{key}/{part}") for part in value["values"]}
            listed = value["kind"] == "list of arrays"
            values[key] = list(several.values()) if listed else several
        else:
            values[key] = _unpacked(value)
    return values | arrays


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    entries = value["values"]
    if value["kind"] == "dict":
        return {name: _unpacked(entry) for name, entry in entries.items()}
    if not isinstance(entries, list) or not all(isinstance(one, SCALARS) for one in entries):
        raise ValueError("labels are neither text nor numbers")
    if value["kind"] in _UNITS_OF_TIME:
        return np.array(entries, dtype=f"datetime64[{value['kind']}]")
    return np.array(entries, dtype=object if value["kind"] == "O" else str)


Names = str | os.PathLike[str]

FORMAT = "ssnmf_fast model"
FORMAT_VERSION = 1
_ARRAY = "array/"
_OF_HEADER = ("class", "parameters", "attributes")

# What is not an array is what the class declares; see :func:`_table`.
_RESULTS: dict[Any, Table] = {
    Factorization: {
        "S": Saved("nr"),
        "A": Saved("rm"),
        "B": Saved("rk", optional=True),
        "C": Saved("rg", optional=True),
        "n_iter": COUNT,
    },
    TensorFactorization: {
        "factors": Saved("?r", container=list),
        "weights": Saved("r", "finite"),
        "label_components": Saved("r?", container=dict),
        "n_iter": COUNT,
    },
    Completion: {
        "left": Saved("nc", "finite"),
        "right": Saved("cm", "finite"),
        "singular_values": Saved("r"),
        **dict.fromkeys(("n_components", "n_iter"), COUNT),
        "row_ids": Saved("n", optional=True),
        "column_ids": Saved("m", optional=True),
        "observed": Saved("nm", "finite", optional=True),
        "iterate": Saved("nm", "finite", optional=True),
    },
}
_FITTED = ("components_", "factors_")
_OF_THE_COMMAND = "model.npz"
# Names in the golden files, until these are written again.
_FORMER = {"rank": "n_components", "rank_": "n_components_"}
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def save(model: Any, path: Names) -> None:
    """Save a model to a file that is safe to share.

    Parameters
    ----------
    model : Factorization, TensorFactorization, Completion, Consensus or fitted estimator
        What to save, with all of its attributes.
    path : str or path-like
        The file, usually with the ending .npz; it is replaced as a whole or not at all.

    Raises
    ------
    TypeError
        If the model is of another class, or its class labels are neither text nor numbers.
    ValueError
        If the estimator is not fitted, or attributes were replaced by others that do not fit.

    Notes
    -----
    Parameters that cannot be stored as text (a `callback`, an `init` of arrays, a `random_state`
    that is an object) are not saved: the loaded model has their default values.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> model = sf.factorize(np.eye(4), n_components=2, random_state=0)
    >>> sf.save(model, "model.npz")
    >>> bool((sf.load("model.npz").A == model.A).all())
    True
    """
    if hasattr(model, "in_memory"):  # an estimator whose data are on a cluster
        model = model.in_memory()
    if isinstance(model, (str, os.PathLike)):
        raise TypeError(f"model is {model!r:.100}, a path; write save(model, path).")
    kind, name = type(model), type(model).__name__
    if _class_of(name) is not kind:
        raise TypeError(f"A {name} cannot be saved; expected one of {_names()}, fitted.")
    values = {key: arrays_of(getattr(model, key)) for key in _table(kind) if hasattr(model, key)}
    if _is_estimator(kind) and not any(name in values for name in _FITTED):
        raise ValueError(f"This {name} is not fitted; call fit before save.")
    arrays, plain = packed(values)
    parameters = _parameters(model)
    try:
        _build(kind, parameters, unpacked(json.loads(json.dumps(plain)), arrays))
    except _MISFITS as error:
        raise ValueError(f"This {name} cannot be saved, nothing could load it: {error}.") from error
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ssnmf_fast": __version__,
        "class": name,
        "parameters": parameters,
        "attributes": plain,
    }
    stored: dict[str, Any] = {f"{_ARRAY}{key}": array for key, array in arrays.items()}
    stored[HEADER] = header_array(header)
    with Replacement() as files, files.path(Path(path)).open("wb") as file:
        np.savez_compressed(file, **stored)  # all are numeric: nothing is pickled


def load(path: Names) -> Any:
    """Load a model that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file, or a folder of the command ``ssnmf-fast fit``, whose model.npz is read.

    Returns
    -------
    Factorization, TensorFactorization, Completion, Consensus or estimator
        Of the class that was saved, ready for use.

    Raises
    ------
    ValueError
        If the file is damaged, of another kind or made by a newer version.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> sf.save(sf.NMF(n_components=2, random_state=0).fit(np.eye(4)), "model.npz")
    >>> sf.load("model.npz").transform(np.eye(4)).shape
    (4, 2)
    """
    path = Path(path)
    if path.is_dir():  # of the command
        path = path / _OF_THE_COMMAND
    with path.open("rb") as file:
        try:
            archive = NpzReader(file)
            header = archive.header()
            version = _version_of(header)
        except _MISFITS as error:
            raise _damaged(path, f"its header cannot be read: {error}") from error
        if version > FORMAT_VERSION:
            raise ValueError(
                f"{path} has format version {version}; this version of ssnmf_fast reads up to "
                f"{FORMAT_VERSION}. Update ssnmf_fast."
            )
        kind, *named = (header[name] for name in _OF_HEADER)
        parameters, plain = ({_FORMER.get(k, k): v for k, v in one.items()} for one in named)
        kind = _class_of(kind)
        if kind is None:
            raise _damaged(path, f"it holds a {header['class']!r:.100}, not one of {_names()}")
        try:
            names = names_of_arrays(plain, _table(kind))
            arrays = archive.arrays({f"{_ARRAY}{name}" for name in names})
            arrays = {name.removeprefix(_ARRAY): array for name, array in arrays.items()}
            return _build(kind, parameters, unpacked(plain, arrays))
        except _MISFITS as error:
            raise _damaged(path, f"its contents do not fit together: {error}") from error


def _version_of(header: Any) -> int:
    """Return the version of the format, of a header that is well formed."""
    if header["format"] != FORMAT:
        raise ValueError("another format")
    version, (_, *mappings) = header["format_version"], [header[name] for name in _OF_HEADER]
    if not all(isinstance(one, dict) for one in mappings) or not isinstance(version, int):
        raise ValueError("another shape")
    return version


def _declaring() -> dict[str, Any]:
    """Return the classes that declare what is saved of them, by name: estimators, and others."""
    from .. import estimators, selection  # which import scikit-learn

    parts = (estimators, selection)
    every = {name: getattr(part, name) for part in parts for name in part.__all__}
    return {name: one for name, one in every.items() if hasattr(one, "_saved")}


def _is_estimator(kind: Any) -> bool:
    return hasattr(kind, "get_params")


def _class_of(name: Any) -> Any:
    """Return the class of a name, of those that can be saved, or None."""
    result = next((kind for kind in _RESULTS if kind.__name__ == name), None)
    return result or (_declaring().get(name) if isinstance(name, str) else None)


def _names() -> str:
    return ", ".join(sorted([*(kind.__name__ for kind in _RESULTS), *_declaring()]))


@cache
def _table(kind: Any) -> Table:
    """Return what is kept of a class: all fields of a result, as it declares them."""
    declared: Table = _RESULTS.get(kind) or kind._saved
    if _is_estimator(kind):
        return declared
    kinds = get_type_hints(kind)
    return {one.name: declared.get(one.name, Saved(kind=kinds[one.name])) for one in fields(kind)}


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(
        f"{path} is damaged, or is no model that ssnmf_fast.save wrote: {why}. "
        "Save the model again."
    )


def _parameters(model: Any) -> dict[str, Any]:
    if not _is_estimator(model):
        return {}
    given = model.get_params(deep=False)
    if given.get("dtype") is not None:
        given["dtype"] = check_dtype(given["dtype"]).name
    plain = {key: one.item() if isinstance(one, np.generic) else one for key, one in given.items()}
    return {key: value for key, value in plain.items() if isinstance(value, SCALARS)}


def _build(kind: Any, parameters: dict[str, Any], values: dict[str, Any]) -> Any:
    table = _table(kind)
    unknown = set(values) - set(table)
    if unknown:
        raise ValueError(f"unknown entries {sorted(unknown)}")
    check_parts(values, table)
    if not _is_estimator(kind):
        return kind(**{name: table[name].restored(value) for name, value in values.items()})
    if not all(isinstance(value, SCALARS) for value in parameters.values()):
        raise ValueError("parameters are neither text nor numbers")
    given = {key for key, value in values.items() if value is not None}
    missing = {key for key, one in table.items() if not one.optional or key in values} - given
    if missing:
        raise ValueError(f"{sorted(missing)} is missing")
    model = kind(**parameters)
    for key, value in values.items():
        setattr(model, key, table[key].restored(value))
    if hasattr(model, "_check_loaded"):
        model._check_loaded()
    return model
