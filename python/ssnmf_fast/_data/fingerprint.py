"""Fingerprints: short texts that identify the data and other arguments of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend.dispatch import kernels
from .._backend.mixed_bits import fingerprint_of
from .._common.arrays import Matrix
from .arrays import kernel_parts, plain_matrix
from .border import check_matrix
from .csr_file import CsrFile
from .tensors import SparseTensor

_FLOATS = (np.float32, np.float64)
_PLAIN = (str, bool, int, float, np.generic)
_OF_TENSORS = ("coords", "data", "subs", "vals")  # in the classes of other packages
_LENGTH = 32  # of a fingerprint, in digits of four bits


def data_fingerprint(Z: Matrix, threads: int = 1) -> str:
    """Return the fingerprint of clean data: equal for equal numbers in any form of storage."""
    if isinstance(Z, CsrFile):
        sums = Z.fingerprint
    elif isinstance(Z, SparseTensor):
        rows, *others = Z.at.places
        columns = np.zeros(len(rows), dtype=np.int64)  # positions in the other modes, flattened
        for indices, length in zip(others, Z.shape[1:], strict=True):
            columns = columns * length + indices
        sums = fingerprint_of(rows, columns, Z.values)
    elif sp.issparse(Z):
        sums = kernels.sparse_fingerprint(*kernel_parts(Z), 0, threads)
    else:
        sums = kernels.dense_fingerprint(plain_matrix(Z), 0, threads)
    return "{}:{:016x}{:016x}".format("x".join(map(str, Z.shape)), *sums)


def input_fingerprint(value: Any, name: str) -> str:
    """Return the fingerprint of a named argument: equal for equal arrays and objects."""
    if value is None or isinstance(value, _PLAIN):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, Mapping):
        return _joined("mapping", {str(key): item for key, item in value.items()}, name)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value) if part.init}
        return _joined(type(value).__name__, parts, name)
    if sp.issparse(value):
        return data_fingerprint(check_matrix(value, name, allow_negative=True, limited=False))
    if not isinstance(value, (list, tuple, np.ndarray)):
        parts = {part: getattr(value, part) for part in _OF_TENSORS if hasattr(value, part)}
        if len(parts) > 1 and not hasattr(value, "__array_interface__"):
            return _joined("tensor", parts, name)
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return _joined("list", dict(enumerate(value)), name)
    if array.dtype.kind in "biuf" and array.ndim:
        return data_fingerprint(array if array.dtype in _FLOATS else array.astype(np.float64))
    if not array.ndim:
        return digest(repr(value))
    texts = array.astype(str) if array.dtype.kind == "M" else array
    contents: dict[Any, Any] = {"shape": array.shape, **dict(enumerate(texts.ravel().tolist()))}
    return _joined("list", contents, name)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_LENGTH]


def _joined(kind: str, parts: Mapping[Any, Any], name: str) -> str:
    texts = [f"{key}={input_fingerprint(part, name)}" for key, part in parts.items()]
    return digest("\n".join([kind, *sorted(texts)]))
