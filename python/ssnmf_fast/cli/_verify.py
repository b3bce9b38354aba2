"""``ssnmf-fast verify``: is a model what its receipt says of it and of these data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .._persist.texts import VECTORIZER_NAME
from ._fit import read_labels_of
from ._models import MODELS
from ._outputs import METRICS_NAME
from ._predict import model_file
from ._read import MATRIX_HINT, Source, UsageError, read_matrix, read_table, source
from ._text import load_vectorizer, read_texts


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand; return whether it is, and what differs."""
    from .. import load, verify

    data = source(options)
    path = model_file(options.model)
    X, rows = _samples(data, path.parent / VECTORIZER_NAME, options)
    y = _targets(rows, X.shape[0], _settings(path.parent), options)
    found = verify(load(path), X, y, n_threads=options.threads)
    print(found)
    return {
        "ok": found.ok,
        "differences": found.differences,
        "values": [list(row) for row in found.table],
    }


def _settings(folder: Path) -> dict[str, Any]:
    """Return what `fit` has written of its model and its options, if there is something."""
    try:
        content = json.loads((folder / METRICS_NAME).read_text(encoding="utf-8"))
        return {"model": content["model"], **content["settings"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # a model of another origin
        return {}


def _samples(data: Source, stored: Path, options: Any) -> tuple[Any, Any]:
    """Return the data as `fit` read them, and what holds their labels."""
    if not data.is_table:
        return read_matrix(data), data
    if not stored.is_file():
        raise UsageError(
            f"{stored} is missing, so the model was fitted to a matrix; {data} is a table. "
            f"Give a matrix: {MATRIX_HINT}"
        )
    vectorizer, table = load_vectorizer(stored), read_table(data)
    texts = read_texts(table, options.text or vectorizer.column, keep_markup=vectorizer.keep_markup)
    return vectorizer.transform(texts), table


def _targets(rows: Any, n_samples: int, settings: dict[str, Any], options: Any) -> Any:
    """Return the labels that the fit saw, as its model takes them."""
    if options.labels is None:
        return None
    name = str(settings.get("model"))
    if name not in MODELS:
        raise UsageError(
            "--labels needs the folder of `ssnmf-fast fit`, which tells how it read them; "
            f"{METRICS_NAME} is missing there, or is of another command"
        )
    targets = MODELS[name].targets
    if targets is None:
        return None
    labels = read_labels_of(options, rows, n_samples)
    assert labels is not None
    share = float(settings.get("test size", 0.0))
    return targets(labels.without(labels.hold_out(share, int(settings.get("seed", 0)))))
