"""Functions :func:`save` and :func:`load`: models as .npz files without pickle.

A file holds arrays, and under the name "header" a JSON text (bytes of UTF-8) with the name of the
class, its parameters, the attributes that are not numeric arrays, and the version of the format.
Loading creates classes of the registry only, sets attributes that the class lists only, and runs no
code from the file.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._factorize import Factorization
from ._io_checks import (
    COMPLETION_SHAPES,
    ESTIMATOR_SHAPES,
    FACTORIZATION_SHAPES,
    IMPUTER_SHAPES,
    check_numbers,
    check_parts,
)
from ._version import __version__
from .completion import Completion, CompletionState
from .completion._result import state_of

Array = npt.NDArray[Any]
Names = str | os.PathLike[str]

FORMAT = "ssnmf_fast model"
FORMAT_VERSION = 1

_FACTORIZATION = ("S", "A", "B", "objective", "n_iter", "converged", "supervision_weight")
_COMPLETION = (
    "left",
    "right",
    "offset",
    "singular_values",
    "rank",
    "scale",
    "gamma",
    "history",
    "n_iter",
    "converged",
    "lower",
)
_RESULTS: dict[Any, tuple[str, ...]] = {Factorization: _FACTORIZATION, Completion: _COMPLETION}
_UNSAVED = ("callback",)
# What a fitted estimator may lack: after partial_fit, without a readout, in files of version 0.1.
_OPTIONAL = (
    "feature_names_in_",
    "representation_",
    "refitted_label_components_",
    "class_prior_",
    "multilabel_",
    "classes_",
    "supervision_weight_",
    "self_training_",
    "readout_coef_",
    "readout_intercept_",
    "readout_directions_",
    "readout_row_scale_",
    "readout_slope_",
    "readout_offset_",
    "thresholds_",
    "class_shares_",
    "validation_scores_",
    "validation_accuracy_",
    "validation_interval_",
    "validation_folds_",
    "validation_proba_",
)
_ADDED = {"count_scale_": 1.0}  # attributes that older files lack, and what they were then
_SCALARS = (str, bool, int, float, type(None))

# Name of a class -> module that holds it.  An estimator lists what is kept in its class attribute
# `_fitted_attributes`.
REGISTRY = {
    "BayesianNMF": "estimators",
    "Completion": "completion",
    "ConstrainedNMF": "estimators",
    "Factorization": "_factorize",
    "LowRankImputer": "estimators",
    "MarginNMF": "estimators",
    "NMF": "estimators",
    "SSNMFClassifier": "estimators",
    "SSNMFRegressor": "estimators",
    "SupervisedBayesianNMF": "estimators",
    "TopicSupervisedNMF": "estimators",
}


def save(model: Any, path: Names) -> None:
    """Save a model to a file that is safe to share.

    Parameters
    ----------
    model : Factorization, Completion or fitted estimator
        What to save; the observed entries of a completion are left out.
    path : str or path-like
        The file, by custom with the ending .npz; it is replaced as a whole or not at all.

    Raises
    ------
    TypeError
        If the model is of another class, or its class labels are neither text nor numbers.
    ValueError
        If the estimator is not fitted.

    Notes
    -----
    Parameters that cannot be stored as text (a `callback`, an `init` of arrays, a `random_state`
    that is an object) are left out: the loaded model has the defaults in their place.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> model = sf.factorize(np.eye(4), n_components=2, random_state=0)
    >>> sf.save(model, "model.npz")
    >>> bool((sf.load("model.npz").A == model.A).all())
    True
    """
    name = type(model).__name__
    if name not in REGISTRY or type(model) is not _class(name):
        raise TypeError(
            f"A {name} cannot be saved; needed is one of {', '.join(REGISTRY)}, fitted."
        )
    values = {key: getattr(model, key) for key in _attributes(type(model)) if hasattr(model, key)}
    if type(model) not in _RESULTS and "components_" not in values:
        raise ValueError(f"This {name} is not fitted; call fit before save.")
    arrays, plain = _split(values)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ssnmf_fast": __version__,
        "class": name,
        "parameters": _parameters(model),
        "attributes": plain,
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    _write(Path(path), {**{f"array/{key}": a for key, a in arrays.items()}, "header": text})


def load(path: Names) -> Any:
    """Load a model that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    Factorization, Completion or estimator
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
    arrays = _read(path)
    try:
        header = json.loads(arrays.pop("header").tobytes().decode())
        if header["format"] != FORMAT:
            raise ValueError("another format")
        version = header["format_version"]
        name, parameters, values = (header[k] for k in ("class", "parameters", "attributes"))
        well_formed = isinstance(parameters, dict) and isinstance(values, dict)
        if not well_formed or not isinstance(version, int):
            raise ValueError("a header of another shape")
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise _damaged(path, "its header cannot be read") from error
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}; this version of ssnmf_fast reads up to "
            f"{FORMAT_VERSION}. Update ssnmf_fast."
        )
    if not isinstance(name, str) or name not in REGISTRY:
        raise _damaged(path, f"it holds a {name!r}, not one of {', '.join(REGISTRY)}")
    try:
        values = {key: _unpacked(value) for key, value in values.items()}
        values |= {key.removeprefix("array/"): array for key, array in arrays.items()}
        return _build(_class(name), parameters, values)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(path, f"its contents do not fit together: {error}") from error


def _class(name: str) -> Any:
    return getattr(importlib.import_module(f".{REGISTRY[name]}", __package__), name)


def _attributes(kind: Any) -> tuple[str, ...]:
    return _RESULTS[kind] if kind in _RESULTS else tuple(kind._fitted_attributes)


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(
        f"{path} is damaged, or is no model that ssnmf_fast.save wrote: {why}. "
        "Save the model again."
    )


# ------------------------------------------------------------------------------------- packing


def _parameters(model: Any) -> dict[str, Any]:
    if type(model) in _RESULTS:
        return {}
    result = {}
    for key, value in model.get_params(deep=False).items():
        value = value.item() if isinstance(value, np.generic) else value
        if key not in _UNSAVED and isinstance(value, _SCALARS):
            result[key] = value
    return result


def _split(values: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return numeric arrays, and all else in a form for JSON."""
    arrays, plain = {}, {}
    for key, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            arrays[key] = value
        else:
            plain[key] = _packed(value, key)
    return arrays, plain


def _packed(value: Any, key: str) -> Any:
    if isinstance(value, np.ndarray):
        labels = [_packed(entry, key) for entry in value.tolist()]
        return {"kind": "O" if value.dtype.kind == "O" else "U", "values": labels}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, CompletionState):
        return [value.iteration, value.change, value.residual, value.gamma, value.rank]
    if isinstance(value, dict):
        return {"kind": "dict", "values": {str(name): _packed(v, key) for name, v in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_packed(entry, key) for entry in value]
    if isinstance(value, _SCALARS):
        return value
    raise TypeError(
        f"{key} holds {value!r} ({type(value).__name__}), which cannot be saved; needed is text or "
        "numbers. Convert the class labels to str and fit again."
    )


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        labels = value["values"]
        if value["kind"] == "dict":
            if not all(isinstance(entry, _SCALARS) for entry in labels.values()):
                raise ValueError("scores are not numbers")
            return dict(labels)
        if not isinstance(labels, list) or not all(isinstance(v, _SCALARS) for v in labels):
            raise ValueError("labels are neither text nor numbers")
        return np.array(labels, dtype=object if value["kind"] == "O" else str)
    return value


# -------------------------------------------------------------------------------------- files


def _write(path: Path, arrays: dict[str, Array]) -> None:
    """Write to a file beside the target, then rename it: never half a model."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _read(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:  # what the system refuses stays an OSError
        return _arrays_of(file, path)


def _arrays_of(file: Any, path: Path) -> dict[str, Array]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (
        AttributeError,  # a plain .npy file: an array is no archive
        EOFError,
        KeyError,
        MemoryError,
        NotImplementedError,
        OSError,  # a damaged directory names a place before the begin of the file
        RuntimeError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise _damaged(path, f"it cannot be read as .npz ({error})") from error


# ------------------------------------------------------------------------------------ building


def _build(kind: Any, parameters: dict[str, Any], values: dict[str, Any]) -> Any:
    unknown = set(values) - set(_attributes(kind))
    if unknown:
        raise ValueError(f"unknown entries {sorted(unknown)}")
    if kind is Completion:
        check_parts(values, COMPLETION_SHAPES)
        check_numbers(values, ("offset", "scale", "gamma", "lower"))
        states = [state_of(parts) for parts in values.pop("history")]
        return Completion(history=states, **values)
    for name in ("objective", "objective_"):
        if name in _attributes(kind):
            values[name] = [(int(iteration), float(value)) for iteration, value in values[name]]
    if kind is Factorization:
        check_parts(values, FACTORIZATION_SHAPES)
        return Factorization(**values)
    if not all(isinstance(value, _SCALARS) for value in parameters.values()):
        raise ValueError("parameters are neither text nor numbers")
    check_parts(values, IMPUTER_SHAPES if "ridge_" in _attributes(kind) else ESTIMATOR_SHAPES)
    values = {key: _ADDED[key] for key in _ADDED if key in _attributes(kind)} | values
    missing = set(_attributes(kind)) - set(values) - set(_OPTIONAL)
    if missing:
        raise ValueError(f"{sorted(missing)} is missing")
    model = kind(**parameters)
    for key, value in values.items():
        setattr(model, key, value)
    return model
