"""Attributes of models as numeric arrays and text for JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import short
from .._data.arrays import read_csr

SCALARS = (str, bool, int, float, type(None))
_PARTS = ("data", "indices", "indptr")
_SEVERAL = ("arrays", "list of arrays")
_UNITS_OF_TIME = ("Y", "M", "D", "h", "s")


def packed(values: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return numeric arrays, and all else in a form for JSON.

    A sparse matrix, in CSR, is three arrays and its shape; several arrays are a list or a mapping
    by names or by numbers.
    """
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
