"""Forms of an array that no argument should trust, and those in which it may well arrive.

Damaged sparse matrices have parts that do not fit together.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse as sp

FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")


def _part(part, change):
    """Return what puts something else in the place of a part."""

    def damage(Z):
        setattr(Z, part, change(getattr(Z, part).copy()))

    return damage


def _put(part, place, value):
    def change(array):
        array[place] = value
        return array

    return _part(part, change)


def _cut(part):
    return _part(part, lambda array: array[:-2])


def coordinates(Z):
    return list(Z.coords) if hasattr(Z, "coords") else [Z.row, Z.col]


def set_coordinates(Z, pair):
    if hasattr(Z, "coords"):
        Z.coords = tuple(pair)
    else:  # SciPy before 1.13
        Z.row, Z.col = pair


def _coordinate(side, value):
    def change(Z):
        pair = coordinates(Z)
        pair[side] = pair[side].copy()
        pair[side][1] = value
        set_coordinates(Z, pair)

    return change


def _shape(Z):
    Z._shape = (Z.shape[0] // 2, Z.shape[1] // 2)


def _key(key):
    def change(Z):
        dict.__setitem__(getattr(Z, "_dict", Z), key, 1.0)

    return change


COMPRESSED = {
    "far": _put("indices", 3, 10**6),
    "near": _put("indices", 3, 12),
    "negative": _put("indices", 3, -1),
    "far below": _put("indices", 3, -(10**6)),
    "end": _put("indptr", -1, 10**6),
    "begin": _put("indptr", 0, 2),
    "below 0": _put("indptr", 0, -5),
    "falls": _put("indptr", 1, 10**6),
    "short indptr": _cut("indptr"),
    "short indices": _cut("indices"),
    "short data": _cut("data"),
    "real": _part("indices", lambda array: array.astype(float)),
    "shape": _shape,
}
DAMAGES = {
    "csr": COMPRESSED,
    "csc": COMPRESSED,
    "bsr": COMPRESSED,
    "coo": {
        "far": _coordinate(0, 10**6),
        "near": _coordinate(1, 12),
        "negative": _coordinate(0, -1),
        "short data": _cut("data"),
        "shape": _shape,
    },
    "lil": {
        "far": _put("rows", 2, [10**6]),
        "negative": _put("rows", 2, [-1]),
        "longer": _put("data", 2, [1.0] * 1000),
        "none": _put("rows", 2, None),
    },
    "dok": {"far": _key((10**6, 0)), "negative": _key((0, -3)), "short": _key((1,))},
    "dia": {"short": _cut("offsets"), "short data": _cut("data")},
}


def damaged(base, form, damage, is_array=True):
    """Return a dense matrix in a format, with a damage."""
    Z = getattr(sp, f"{form}_{'array' if is_array else 'matrix'}")(base)
    DAMAGES[form][damage](Z)
    return Z


def randomly_damaged(Z, chance):
    """Change a part of a matrix at random; say how."""
    names = ("data", "indptr", "indices", "offsets", "rows")
    part = str(chance.choice([name for name in names if hasattr(Z, name)] or ["_shape"]))
    how = str(chance.choice(["value", "longer", "shorter", "type", "shape", "order"]))
    extreme = [-1, -(2**31), 2**31 - 1, 10**6, 0, 7, 8, 11, 12, 13, int(chance.integers(-99, 99))]
    value = extreme[chance.integers(len(extreme))]
    kinds = [">i4", ">f8", np.int8, np.uint64, np.float32, np.int64, bool, complex, object]
    kind, first = kinds[chance.integers(len(kinds))], int(chance.integers(8))
    changes = {
        "value": lambda array: _put(part, first % len(array), value)(Z),
        "longer": lambda array: setattr(Z, part, np.concatenate([array, array[: 1 + first % 3]])),
        "shorter": lambda array: setattr(Z, part, array[: first * len(array) // 8]),
        "type": lambda array: setattr(Z, part, array.astype(kind)),
        "order": lambda array: setattr(Z, part, array[:: (-1, 2)[first % 2]]),
        "shape": lambda array: setattr(Z, "_shape", tuple(chance.integers(0, 20, 2).tolist())),
    }
    try:
        if Z.format == "coo" and how in ("value", "order"):
            _coordinate(first % 2, value)(Z)
        elif Z.format == "dok":
            _key((value, first - 3))(Z)
        elif Z.format == "lil" and how == "value":
            _put("rows", first % len(Z.rows), [value])(Z)
        else:
            changes[how](getattr(Z, part))
    except Exception as error:  # some parts cannot be set so
        return f"{part} {how} refused ({type(error).__name__})"
    return f"{part} {how}"


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


def backwards(B):
    return np.ascontiguousarray(B[::-1])[::-1]


def foreign(B):
    return B.astype(B.dtype.newbyteorder(">"))


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
    "backwards": backwards,
    "read-only": read_only,
    "big-endian": foreign,
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
}
DAMAGED = {
    f"{form} {damage}": lambda B, f=form, d=damage: damaged(B, f, d)
    for form in FORMATS
    for damage in DAMAGES[form]
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


ALIKE = frozenset(LEGAL)  # of which the result is that of the base
BROKEN = frozenset(DAMAGED)  # which are refused
EVERY = LEGAL | ODD | SPARSE | TENSORS | DAMAGED


@cache
def names(n_modes):
    """Return the names of the forms of a base with `n_modes` modes."""
    matrix = [*SPARSE, *DAMAGED] if n_modes == 2 else []
    return [*LEGAL, *ODD, *matrix, *(TENSORS if n_modes >= 2 else [])]


def made(name, B):
    """Return a form of a base; None if there is none of this one."""
    try:
        return (EVERY[name](B),)
    except (TypeError, ValueError, IndexError):
        return None
