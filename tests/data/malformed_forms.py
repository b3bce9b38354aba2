"""Forms of an array that no argument should trust, and those in which it may well arrive."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from broken_matrices import damaged

DAMAGED = [
    *((form, damage) for form in ("csr", "csc") for damage in ("falls", "far", "below 0", "end")),
    *((form, damage) for form in ("csr", "bsr") for damage in ("short data", "short indptr")),
    *(("coo", damage) for damage in ("far", "negative", "short data")),
    *((form, "far") for form in ("lil", "dok")),
    ("dia", "short"),
]


def misaligned(B):
    buffer = np.zeros(B.nbytes + 1, dtype=np.uint8)
    copy = buffer[1:].view(B.dtype).reshape(B.shape)
    copy[...] = B
    return copy


def strided(B):
    wide = np.zeros((*B.shape[:-1], 2 * B.shape[-1]), dtype=B.dtype)
    wide[..., ::2] = B
    return wide[..., ::2]


def read_only(B):
    copy = B.copy()
    copy.flags.writeable = False
    return copy


def framed(change=lambda table: table):
    """Return what makes a frame or a series of pandas of a base, as far as it is installed."""

    def made(B):
        try:
            import pandas
        except ImportError:
            return B
        if B.ndim > 2:
            raise TypeError
        table = pandas.DataFrame(B) if B.ndim == 2 else pandas.Series(B)
        try:
            return change(table.copy())
        except (ImportError, NameError):  # without pyarrow, which some versions of pandas miss so
            return table

    return made


LEGAL = {
    "frame": framed(),
    "nullable frame": framed(lambda table: table.convert_dtypes()),
    "frame of objects": framed(lambda table: table.astype(object)),
    "categorical frame": framed(lambda table: table.astype("category")),
    "frame of pyarrow": framed(lambda table: table.convert_dtypes(dtype_backend="pyarrow")),
    "objects": lambda B: B.astype(object),
    "strided": strided,
    "misaligned": misaligned,
    "backwards": lambda B: np.ascontiguousarray(B[::-1])[::-1],
    "read-only": read_only,
    "big-endian": lambda B: B.astype(B.dtype.newbyteorder(">")),
    "Fortran": np.asfortranarray,
    "without a mask": np.ma.array,
    "list": lambda B: B.tolist(),
}


def _with(value, dtype=None):
    def change(B):
        array = B.astype(dtype or np.result_type(B, np.float64))
        array[(0,) * B.ndim] = value
        return array

    return change


def _ragged(B):
    rows = B.tolist()
    return [*rows[:-1], [*rows[-1], 1.0] if isinstance(rows[-1], list) else [1.0]]


ODD = {
    "None": _with(None, object),
    "text": lambda B: B.astype(str),
    "bytes": lambda B: B.astype(bytes),
    "complex": _with(1j, complex),
    "NaN": _with(np.nan),
    "all NaN": lambda B: np.full(B.shape, np.nan),
    "infinity": _with(np.inf),
    "negative": _with(-2.5),
    "huge": _with(1e300),
    "tiny": lambda B: B * 1e-320,
    "longdouble": _with(np.longdouble("1e4000"), np.longdouble),
    "int64": _with(np.iinfo(np.int64).min, np.int64),
    "uint64": _with(np.iinfo(np.uint64).max, np.uint64),
    "float16": lambda B: B.astype(np.float16),
    "bool": lambda B: B.astype(bool),
    "scalar": lambda B: 1.0,
    "0-d": lambda B: np.array(1.0),
    "word": lambda B: "x",
    "object": lambda B: object(),
    "mapping": lambda B: {0: 1},
    "set": lambda B: {0, 1},
    "generator": lambda B: (row for row in B),
    "a dimension more": lambda B: B[None],
    "a dimension less": lambda B: B[0],
    "no rows": lambda B: B[:0],
    "empty": lambda B: np.empty((0,) * B.ndim),
    "empty list": lambda B: [],
    "shorter": lambda B: B[:-1],
    "longer": lambda B: np.concatenate([B, B[:1]]),
    "ragged": _ragged,
    "masked": lambda B: np.ma.array(B, mask=np.arange(B.size).reshape(B.shape) == 0),
    "dates": lambda B: np.zeros(B.shape, dtype="datetime64[D]"),
    "durations": lambda B: np.zeros(B.shape, dtype="timedelta64[s]"),
    "records": lambda B: np.zeros(B.shape, dtype=[("a", float)]),
    "zeros": np.zeros_like,
}


def _stored(value, dtype=float):
    def change(B):
        Z = sp.csr_array(B)
        Z.data = Z.data.astype(dtype)
        Z.data[:1] = value
        return Z

    return change


SPARSE = {
    "csr": sp.csr_array,
    "complex csr": _stored(1j, complex),
    "csr with NaN": _stored(np.nan),
    "csr with a negative entry": _stored(-2.5),
    "csr of objects": _stored(1, object),
    "masked coo": lambda B: _masked(sp.coo_array(B)),
    "empty dok": lambda B: sp.dok_array(B.shape),
    "csr without rows": lambda B: sp.csr_array((0, B.shape[1])),
    **{
        f"{form} {damage}": lambda B, f=form, d=damage: damaged(B, f, d) for form, damage in DAMAGED
    },
}


def _masked(Z):
    Z.data = np.ma.array(Z.data, mask=np.arange(Z.nnz) == 0)
    return Z


def _triples(change):
    def made(B):
        coords, values = np.array(np.nonzero(B)), B[np.nonzero(B)]
        return change(coords, values, B.shape)

    return made


TENSORS = {
    "coordinates": _triples(lambda c, v, s: (c, v, s)),
    "coordinates far away": _triples(lambda c, v, s: (c + 10**6, v, s)),
    "coordinates below 0": _triples(lambda c, v, s: (c - 1, v, s)),
    "few coordinates": _triples(lambda c, v, s: (c[:, :-1], v, s)),
    "coordinates of few modes": _triples(lambda c, v, s: (c[:-1], v, s)),
    "real coordinates": _triples(lambda c, v, s: (c + 0.5, v, s)),
    "masked coordinates": _triples(lambda c, v, s: (np.ma.array(c, mask=c == 0), v, s)),
    "masked values": _triples(lambda c, v, s: (c, np.ma.array(v, mask=v == v[0]), s)),
    "complex values": _triples(lambda c, v, s: (c, v + 1j, s)),
    "coordinates as text": _triples(lambda c, v, s: (c.astype(str), v, s)),
    "values as text": _triples(lambda c, v, s: (c, v.astype(str), s)),
    "no shape": _triples(lambda c, v, s: (c, v)),
    "another shape": _triples(lambda c, v, s: (c, v, (*s[:-1], s[-1] + 1))),
    "shape below 0": _triples(lambda c, v, s: (c, v, (*s[:-1], -1))),
    "shape of few modes": _triples(lambda c, v, s: (c, v, s[:-1])),
    "huge shape": _triples(lambda c, v, s: (c, v, (*s[:-1], 2**40))),
    "real shape": _triples(lambda c, v, s: (c, v, tuple(map(float, s)))),
    "shape as text": _triples(lambda c, v, s: (c, v, tuple(map(str, s)))),
    "shape of Nones": _triples(lambda c, v, s: (c, v, (None,) * len(s))),
}


def forms(B):
    """Return every form of a base by name."""
    every = LEGAL | ODD
    if B.ndim == 2:
        every |= SPARSE
    if B.ndim >= 2:
        every |= TENSORS
    return every


def made(name, B):
    """Return a form of a base; None if there is none of this one."""
    try:
        return (forms(B)[name](B),)
    except (TypeError, ValueError, IndexError):
        return None
