"""``ssnmf-fast fit``: data in, model, tables and report out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._errors import UsageError
from ._fitted import Fitted
from ._labels import SampleLabels, read_labels
from ._models import Model, check_labels, chosen
from ._outputs import write_all
from ._read import TABLES, kind, read_lines, read_matrix, read_table
from ._text import Vectorizer, fit_vectorizer, text_column, texts_of


@dataclass(frozen=True)
class _Data:
    X: Any
    labels: SampleLabels | None
    terms: list[str] | None
    vectorizer: Vectorizer | None = None


def run(options: Any) -> None:
    """Run the subcommand."""
    model = chosen(options)
    model.settle(options)
    folder = make_folder(options.out)
    path = Path(options.data)
    if kind(path) in TABLES:
        data = _read_text(path, options, model.counts)
    else:
        data = _read_numbers(path, options)
    if data.labels is not None:
        check_labels(model, data.labels)
    write_all(model, _train(model, data, options), folder, data.vectorizer, options)


def make_folder(name: str) -> Path:
    """Return the folder for the results, made if need be."""
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --out needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _read_text(path: Path, options: Any, as_counts: bool) -> _Data:
    table = read_table(path)
    column = text_column(table, options.text, options.labels)
    labels = None
    if options.labels in table.columns:
        labels = read_labels(table.column(options.labels), options.label_separator)
    elif options.labels is not None and Path(options.labels).is_file():
        labels = _labels_file(options, len(table.rows))
    elif options.labels is not None:
        table.column(options.labels)
    vectorizer, X = fit_vectorizer(texts_of(table, column), column, options, as_counts)
    return _Data(X, labels, vectorizer.terms, vectorizer)


def _read_numbers(path: Path, options: Any) -> _Data:
    X = read_matrix(path)
    labels = _labels_file(options, X.shape[0]) if options.labels else None
    if options.features is None:
        return _Data(X, labels, None)
    terms = read_lines(Path(options.features))
    if len(terms) != X.shape[1]:
        raise UsageError(
            f"{options.features} has {len(terms)} lines; needed is one for each of the "
            f"{X.shape[1]} features of {path}"
        )
    return _Data(X, labels, terms)


def _labels_file(options: Any, n_samples: int) -> SampleLabels:
    lines = read_lines(Path(options.labels))
    if len(lines) != n_samples:
        raise UsageError(
            f"{options.labels} has {len(lines)} lines; needed is one for each of the {n_samples} "
            "samples, empty for an unlabelled one"
        )
    return read_labels(lines, options.label_separator)


def _train(model: Model, data: _Data, options: Any) -> Fitted:
    from .._progress import progress_bar

    held_out: npt.NDArray[np.bool_] = np.zeros(data.X.shape[0], dtype=bool)
    visible: SampleLabels | None = None
    if model.targets is not None:
        assert data.labels is not None
        held_out = data.labels.hold_out(options.test_size, options.seed)
        visible = data.labels.without(held_out)
    begin = time.perf_counter()
    with progress_bar(options.max_iter) as bar:
        estimator = model.build(options, visible, bar)
        if model.targets is None or visible is None:
            estimator.fit(data.X)
        else:
            estimator.fit(data.X, model.targets(visible))
    estimator.set_params(callback=None)
    return Fitted(
        estimator,
        data.X,
        data.labels,
        held_out,
        data.terms,
        seconds=time.perf_counter() - begin,
        settings=_settings(data, options),
        is_text=data.vectorizer is not None,
        guided=model.targets is not None,
    )


def _settings(data: _Data, options: Any) -> list[tuple[str, str]]:
    """Return what the run was given, for the report."""
    n, m = data.X.shape
    size = f"{n} samples x {m} features"
    if sp.issparse(data.X):
        size += f", {data.X.nnz} nonzeros"
    left_out = {"run", "out", "terms"}
    if data.vectorizer is None:
        left_out |= {"text", "max_features", "min_df", "max_df", "stop_words"}
    given = {k: v for k, v in vars(options).items() if k not in left_out and v is not None}
    pairs = [("data size", size)]
    return pairs + [(name.replace("_", " "), str(value)) for name, value in given.items()]
