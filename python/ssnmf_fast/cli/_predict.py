"""``ssnmf-fast predict``: labels or topics of new data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ._errors import UsageError
from ._outputs import MODEL_NAME
from ._predictions import predicts_labels, write_new_predictions
from ._read import TABLES, kind, read_matrix, read_table
from ._text import FILE_NAME, load_vectorizer, texts_of


def run(options: Any) -> None:
    """Run the subcommand."""
    from .. import load

    path = Path(options.model)
    if path.is_dir():
        path = path / MODEL_NAME
    if not path.is_file():
        raise UsageError(f"{path}: no such file; needed is a folder of `ssnmf-fast fit`")
    model = load(path)
    if not hasattr(model, "topics"):  # as all have that represent samples by components
        raise UsageError(f"{path} holds a {type(model).__name__}; needed is a model with topics")
    model.set_params(n_threads=options.threads)
    if "features" in model.get_params():  # weights of the topics rather than what a machine needs
        model.set_params(features="representation")
    X = _read(Path(options.data), path.parent / FILE_NAME, options.text)
    count = write_new_predictions(Path(options.out), model, X)
    what = "predictions" if predicts_labels(model) else "samples with the weights of their topics"
    print(f"{count} {what} are in {options.out}")


def _read(data: Path, stored: Path, column: str | None) -> Any:
    if kind(data) not in TABLES:
        return read_matrix(data)
    if not stored.is_file():
        raise UsageError(
            f"{stored} is missing, so the model was fitted to a matrix; {data} is a table of texts"
        )
    vectorizer = load_vectorizer(stored)
    table = read_table(data)
    return vectorizer.transform(texts_of(table, column or vectorizer.column))
