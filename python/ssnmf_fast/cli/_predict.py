"""``ssnmf-fast predict``: labels or topics of new data, ratings of new pairs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..completion import Completion
from ._errors import UsageError
from ._fitted import weights_model
from ._folder import refuse_replacing
from ._outputs import METRICS_NAME, MODEL_NAME, separator_of
from ._predict_ratings import write_predicted_ratings
from ._predictions import Ids, output, predicts_labels, write_new_predictions
from ._read import read_matrix, read_table
from ._source import Source, source
from ._text import (
    FILE_NAME,
    Vectorizer,
    ids_of,
    load_vectorizer,
    texts_of,
    warn_of_empty,
)


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand."""
    from .. import load

    out = output(options.out, options.out_format, options.safe_csv)
    data = source(options)
    path = Path(options.model)
    if path.is_dir():
        path = path / MODEL_NAME
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected a folder of `ssnmf-fast fit` or complete")
    stored = path.parent / FILE_NAME
    if out.path is not None:
        refuse_replacing(out.path, (path, data.path, stored, path.parent / METRICS_NAME))
    model = load(path)
    if isinstance(model, Completion):
        return write_predicted_ratings(out, model, path, data, options)
    for name in ("user", "item"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} belongs to a model of `ssnmf-fast complete`; not {path}")
    if not hasattr(model, "topics"):  # as all have that represent samples by components
        raise UsageError(f"{path} holds a {type(model).__name__}; expected a model with topics")
    model.set_params(n_threads=options.threads)
    model = weights_model(model)
    X, ids = _read(data, stored, options)
    count = write_new_predictions(out, model, X, ids, separator_of(path.parent))
    if out.path is not None:
        labels = predicts_labels(model)
        what = "predictions" if labels else "samples with the weights of their topics"
        print(f"{count} {what} are in {out}")
    return {"model": type(model).__name__, "samples": count, "out": str(out)}


def _read(data: Source, stored: Path, options: Any) -> tuple[Any, Ids | None]:
    if not data.is_table:
        for name in ("id", "text"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} names a column of a table; {data} is a matrix")
        return _matrix(data), None
    if not stored.is_file():
        raise UsageError(
            f"{stored} is missing, so the model was fitted to a matrix; {data} is a table of texts"
        )
    vectorizer: Vectorizer = load_vectorizer(stored)
    table = read_table(data)
    column = options.text or vectorizer.column
    X = vectorizer.transform(texts_of(table, column))
    warn_of_empty(X, "they all get the same prediction, which says nothing of them")
    return X, ids_of(table, options.id, column)


def _matrix(data: Source) -> Any:
    X = read_matrix(data)
    if not sp.issparse(X) and X.dtype.kind == "f":
        unknown = np.flatnonzero(np.isnan(X).all(axis=1))
        if len(unknown):
            warnings.warn(
                f"{len(unknown)} of {len(X)} samples have no value but NaN (the first is sample "
                f"{unknown[0]}): their predictions say nothing of them",
                stacklevel=2,
            )
    return X
