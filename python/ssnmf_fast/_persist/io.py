"""Saving and loading of models: attributes as numeric arrays and text for JSON, and back."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import scipy.sparse as sp

from .._common import saved
from .._common.arrays import Array
from .._common.replacement import Replacement
from .._common.saved import COUNT, HEADER, NpzReader, Saved, Table
from .._common.text import short
from .._data.arrays import check_dtype, read_csr
from .._models.factorize import Factorization, TensorFactorization
from .._solver.losses import name_of
from .._version import __version__
from ..completion._result import Completion

Arrays = NpzReader | dict[str, Array]
SCALARS = (str, bool, int, float, type(None))
_PARTS = ("data", "indices", "indptr")
_SEVERAL = ("arrays", "list of arrays")
_MODELS = "models"
_UNITS_OF_TIME = ("Y", "M", "D", "h", "s", "us")


def packed(values: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return numeric arrays (also parts of sparse matrices), and the rest in a form for JSON."""
    arrays: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    for key, value in values.items():
        parts = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(value, list) and any(map(_is_estimator, value)):
            models = [(None, {}) if model is None else _taken_apart(model) for model in value]
            for i, (_, own) in enumerate(models):
                arrays |= {f"{key}/{i}/{name}": array for name, array in own.items()}
            plain[key] = {"kind": _MODELS, "values": [described for described, _ in models]}
        elif _is_numeric(value):
            arrays[key] = value
        elif sp.issparse(value):
            arrays |= {f"{key}/{part}": getattr(value, part) for part in _PARTS}
            plain[key] = {"kind": "csr", "values": list(value.shape)}
        elif isinstance(parts, dict) and parts and all(map(_is_numeric, parts.values())):
            arrays |= {f"{key}/{part}": array for part, array in parts.items()}
            plain[key] = {"kind": _SEVERAL[isinstance(value, list)], "values": list(parts)}
        else:
            plain[key] = _packed(value, key)
    return arrays, plain


def _is_numeric(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _packed(value: object, key: str) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "M":
        return {"kind": np.datetime_data(value.dtype)[0], "values": value.astype(str).tolist()}
    if isinstance(value, np.ndarray):
        labels = [_packed(entry, key) for entry in value.tolist()]
        return {"kind": "O" if value.dtype.kind == "O" else "U", "values": labels}
    if isinstance(value, np.generic):
        value = value.item()
    if is_dataclass(value):
        return [_packed(getattr(value, field.name), key) for field in fields(value)]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"kind": "dict", "values": {name: _packed(v, key) for name, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_packed(entry, key) for entry in value]
    if isinstance(value, SCALARS):
        return value
    what = f"{key} holds {short(value)} ({type(value).__name__}), which cannot be saved"
    raise TypeError(f"{what}; expected text or numbers. Fit again with labels or ids of text.")


def unpacked(plain: dict[str, Any], arrays: Arrays, table: Table, at: str = "") -> dict[str, Any]:
    """Return attributes as before :func:`packed`; their arrays, named `at` ..., are taken out."""
    alone = [key for key in table if key not in plain and at + key in arrays]
    values: dict[str, Any] = {key: arrays.pop(at + key) for key in alone}
    for key, value in plain.items():
        kind = value["kind"] if isinstance(value, dict) else None
        if kind == _MODELS:
            values[key] = [
                model and _put_together(model, arrays, f"{at}{key}/{i}/")
                for i, model in enumerate(value["values"])
            ]
        elif kind == "csr":
            parts = tuple(arrays.pop(f"{at}{key}/{part}") for part in _PARTS)
            if any(part.dtype.kind != "i" for part in parts[1:]):
                raise ValueError(f"{key} does not hold integer indices")
            values[key] = read_csr(sp.csr_array(parts, shape=tuple(value["values"])), key)
        elif kind in _SEVERAL:
            several = {part: arrays.pop(f"{at}{key}/{part}") for part in value["values"]}
            values[key] = several if kind == _SEVERAL[0] else list(several.values())
        else:
            values[key] = _unpacked(value)
    return values


def _unpacked(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    entries = value["values"]
    if value["kind"] == "dict":
        return {name: _unpacked(entry) for name, entry in entries.items()}
    if not isinstance(entries, list) or not all(isinstance(entry, SCALARS) for entry in entries):
        raise ValueError("labels are neither text nor numbers")
    if value["kind"] in _UNITS_OF_TIME:
        return np.array(entries, dtype=f"datetime64[{value['kind']}]")
    return np.array(entries, dtype=object if value["kind"] == "O" else str)


Names = str | os.PathLike[str]
FORMAT = "ssnmf_fast model"
FORMAT_VERSION = 1
_ARRAY = "array/"

# Arrays; other attributes are as their class declares, see :func:`_table`.
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
        "weights": Saved("r", "nonnegative"),
        "label_components": Saved("r?", container=dict),
        "n_iter": COUNT,
    },
    Completion: {
        "left": Saved("nc", "finite"),
        "right": Saved("cm", "finite"),
        "singular_values": Saved("r", "nonnegative"),
        **dict.fromkeys(("n_components", "n_iter"), COUNT),
        "row_ids": Saved("n", optional=True),
        "column_ids": Saved("m", optional=True),
        "observed": Saved("nm", "finite", optional=True),
        "iterate": Saved("nm", "finite", optional=True),
    },
}
_FITTED = ("components_", "factors_", "classifiers_")
_OF_THE_COMMAND = "model.npz"
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def save(model: object, path: Names) -> None:
    """Save a model to a file that is safe to share.

    Parameters
    ----------
    model : Factorization, TensorFactorization, Completion, Consensus, TopicsOverTime or estimator
        The model; all of its attributes are saved.
    path : str or path-like
        The file, usually with the ending .npz; it is replaced as a whole or not at all.

    Raises
    ------
    TypeError
        If the model has another class, or its class labels are neither text nor numbers.
    ValueError
        If the estimator is not fitted, or its attributes are inconsistent.

    Notes
    -----
    Parameters other than text and numbers (a `callback`, an `init` of arrays, a `random_state` that
    is an object) are not saved: the loaded model has their defaults.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> model = sf.factorize(np.eye(4), n_components=2, random_state=0)
    >>> sf.save(model, "model.npz")
    >>> bool((sf.load("model.npz").A == model.A).all())
    True
    """
    save_with_notes(model, path, {})


def save_with_notes(model: Any, path: Names, notes: dict[str, Any]) -> None:
    """Save a model with notes, which `load` ignores."""
    if hasattr(model, "in_memory"):  # an estimator whose data are on a cluster
        model = model.in_memory()
    if isinstance(model, (str, os.PathLike)):
        raise TypeError(f"model is {model!r:.100}, a path; write save(model, path).")
    described, arrays = _taken_apart(model)
    try:
        _put_together(json.loads(json.dumps(described)), dict(arrays))
    except _MISFITS as error:
        name = type(model).__name__
        raise ValueError(f"This {name} cannot be saved, as load would fail: {error}.") from error
    formats = {"format": FORMAT, "format_version": FORMAT_VERSION, "ssnmf_fast": __version__}
    header = formats | described | ({"notes": notes} if notes else {})
    stored: dict[str, Any] = {f"{_ARRAY}{key}": array for key, array in arrays.items()}
    stored[HEADER] = saved.header_array(header)
    with Replacement() as files, files.path(Path(path)).open("wb") as file:
        np.savez_compressed(file, **stored)  # all are numeric: nothing is pickled


def read_notes(path: Path) -> dict[str, Any]:
    """Return what was noted in the file of a model that can be loaded."""
    with path.open("rb") as file:
        notes = NpzReader(file).header().get("notes", {})
    return notes if isinstance(notes, dict) else {}


def load(path: Names) -> Any:
    """Load a model that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file, or a folder from ``ssnmf-fast fit`` with a model.npz.

    Returns
    -------
    Factorization, TensorFactorization, Completion, Consensus, TopicsOverTime or estimator
        The saved model, ready for use.

    Raises
    ------
    ValueError
        If the file is damaged, has another format or comes from a newer version.
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
    stage = "its header cannot be read"
    with path.open("rb") as file:
        try:
            archive = NpzReader(file)
            header = archive.header()
            kind, version = _class_of(header["class"]), header["format_version"]
            if header["format"] != FORMAT or not isinstance(version, int):
                raise ValueError("another format")
            if not all(isinstance(header[part], dict) for part in ("parameters", "attributes")):
                raise ValueError("another shape")
            if version <= FORMAT_VERSION:
                stage = "its contents do not fit together"
                if kind is None:
                    names = ", ".join(sorted(_classes()))
                    raise ValueError(f"it holds a {header['class']!r:.100}, not one of {names}")
                model = _put_together(header, archive, _ARRAY)
                archive.refuse_others()
                return model
        except _MISFITS as error:
            what = f"{path} is damaged, or was not written by ssnmf_fast.save"
            raise ValueError(f"{what}: {stage}: {error}. Save the model again.") from error
    limit = f"this version of ssnmf_fast reads up to {FORMAT_VERSION}. Update ssnmf_fast"
    raise ValueError(f"{path} has format version {version}; {limit}.")


def _taken_apart(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return class, parameters and attributes of a model in a form for JSON, and its arrays."""
    kind, name = type(model), type(model).__name__
    if _class_of(name) is not kind:
        names = ", ".join(sorted(_classes()))
        raise TypeError(f"A {name} cannot be saved; expected one of {names}, fitted.")
    own = [name for name in getattr(model, "sample_penalties_", ()) if "." in name]
    if own:
        raise TypeError(
            f"A {name} with the penalty {own[0]} cannot be saved: files hold no classes. Use the "
            "penalties of ssnmf_fast.penalties, or pickle the model."
        )
    keys = [key for key in _table(kind) if hasattr(model, key)]
    lost = [key for key in vars(model) if key[-1] == "_" and key[0] != "_" and key not in keys]
    if lost:
        raise TypeError(f"{lost[0]} of this {name} cannot be saved; delete the attribute first.")
    values = {key: saved.arrays_of(getattr(model, key)) for key in keys}
    if _is_estimator(kind) and not any(name in values for name in _FITTED):
        raise ValueError(f"This {name} is not fitted; call fit before save.")
    arrays, plain = packed(values)
    return {"class": name, "parameters": _parameters(model), "attributes": plain}, arrays


def _put_together(described: dict[str, Any], arrays: Arrays, at: str = "") -> Any:
    kind = _class_of(described["class"])
    table = _table(kind)
    unknown = set(described["attributes"]) - set(table)
    if unknown:
        raise ValueError(f"unknown entries {sorted(unknown)}")
    values = unpacked(described["attributes"], arrays, table, at)
    saved.check_parts(values, table)
    if not _is_estimator(kind):
        return kind(**{name: table[name].restored(value) for name, value in values.items()})
    present = {key for key, value in values.items() if value is not None}
    missing = {key for key, entry in table.items() if not entry.optional or key in values} - present
    if missing:
        raise ValueError(f"{sorted(missing)} is missing")
    model = _with_parameters(kind, described["parameters"])
    for key, value in values.items():
        setattr(model, key, table[key].restored(value))
    model._check_loaded()
    return model


def _classes() -> dict[str, Any]:
    """Return the classes that can be saved, by name: results, and those that declare `_saved`."""
    from .. import estimators, selection  # which import scikit-learn

    parts = (estimators, selection)
    every = {name: getattr(part, name) for part in parts for name in part.__all__}
    declaring = {name: kind for name, kind in every.items() if hasattr(kind, "_saved")}
    return declaring | {kind.__name__: kind for kind in _RESULTS}


def _class_of(name: object) -> Any:
    """Return the class with a name, if it can be saved, or None."""
    result = next((kind for kind in _RESULTS if kind.__name__ == name), None)
    return result or (_classes().get(name) if isinstance(name, str) else None)


def _is_estimator(kind: Any) -> bool:
    return hasattr(kind, "get_params")


@cache
def _table(kind: Any) -> Table:
    """Return the attributes that are saved for a class: all fields of a result."""
    declared: Table = _RESULTS.get(kind) or kind._saved
    if _is_estimator(kind):
        return declared
    kinds = get_type_hints(kind)
    return {f.name: declared.get(f.name, Saved(kind=kinds[f.name])) for f in fields(kind)}


def _parameters(model: Any) -> dict[str, Any]:
    if not _is_estimator(model):
        return {}
    parameters = model.get_params(deep=False)
    if parameters.get("dtype") is not None:
        parameters["dtype"] = check_dtype(parameters["dtype"]).name
    plain: dict[str, Any] = {}
    for key, value in ((key, name_of(value)) for key, value in parameters.items()):
        if _is_estimator(value) and _class_of(type(value).__name__) is type(value):
            plain[key] = {"class": type(value).__name__, "parameters": _parameters(value)}
        elif isinstance(value, (*SCALARS, np.generic)):
            plain[key] = value.item() if isinstance(value, np.generic) else value
    return plain


def _with_parameters(kind: Any, parameters: dict[str, Any]) -> Any:
    arguments = dict(parameters)
    for key, value in parameters.items():
        if isinstance(value, dict):
            arguments[key] = _with_parameters(_class_of(value["class"]), value["parameters"])
        elif not isinstance(value, SCALARS):
            raise ValueError("parameters are neither text nor numbers")
    return kind(**arguments)
