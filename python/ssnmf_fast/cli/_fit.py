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
from ._outputs import Fitted, write_all
from ._parser import MODELS
from ._read import TABLES, clean_labels, kind, read_lines, read_matrix, read_table
from ._text import Vectorizer, fit_vectorizer, text_column, texts_of

Labels = npt.NDArray[np.object_]


@dataclass(frozen=True)
class _Data:
    X: Any
    labels: Labels | None
    terms: list[str] | None
    vectorizer: Vectorizer | None = None


def run(options: Any) -> None:
    """Run the subcommand."""
    reconstruction, supervision = _losses(options)
    folder = make_folder(options.out)
    path = Path(options.data)
    data = _read_text(path, options) if kind(path) in TABLES else _read_numbers(path, options)
    held_out = np.zeros(data.X.shape[0], dtype=bool)
    if supervision is not None:
        assert data.labels is not None
        held_out = hold_out(data.labels, options.test_size, options.seed)
    fitted = _train(data, held_out, (reconstruction, supervision), options)
    write_all(fitted, folder, data.vectorizer, options.terms)


def make_folder(name: str) -> Path:
    """Return the folder for the results, made if need be."""
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --out needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def hold_out(labels: Labels, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Choose labelled samples to hide, the same share of every class; each class keeps one."""
    chosen = np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng(seed)
    known = np.array([label is not None for label in labels])
    for name in np.unique(labels[known].astype(str)):
        members = rng.permutation(np.flatnonzero(known & (labels == name)))
        count = min(round(share * len(members)), len(members) - 1)
        chosen[members[:count]] = True
    return chosen


def _losses(options: Any) -> tuple[str, str | None]:
    """Return the losses of the data and, unless the model is plain NMF, of the labels."""
    model = options.model or ("dd" if options.labels else "nmf")
    reconstruction, supervision = MODELS[model]
    reconstruction = options.reconstruction or reconstruction
    if model == "nmf" and options.supervision:
        raise UsageError("--supervision needs --labels and another --model than nmf")
    if model != "nmf" and not options.labels:
        raise UsageError(f"--model {model} needs --labels; without labels use --model nmf")
    return str(reconstruction), options.supervision or supervision


def _read_text(path: Path, options: Any) -> _Data:
    table = read_table(path)
    column = text_column(table, options.text, options.labels)
    labels = None
    if options.labels in table.columns:
        labels = _as_labels(table.column(options.labels))
    elif options.labels is not None and Path(options.labels).is_file():
        labels = _labels_file(options.labels, len(table.rows))
    elif options.labels is not None:
        table.column(options.labels)
    vectorizer, X = fit_vectorizer(texts_of(table, column), column, options)
    return _Data(X, labels, vectorizer.terms, vectorizer)


def _read_numbers(path: Path, options: Any) -> _Data:
    X = read_matrix(path)
    labels = _labels_file(options.labels, X.shape[0]) if options.labels else None
    if options.features is None:
        return _Data(X, labels, None)
    terms = read_lines(Path(options.features))
    if len(terms) != X.shape[1]:
        raise UsageError(
            f"{options.features} has {len(terms)} lines; needed is one for each of the "
            f"{X.shape[1]} features of {path}"
        )
    return _Data(X, labels, terms)


def _labels_file(name: str, n_samples: int) -> Labels:
    lines = read_lines(Path(name))
    if len(lines) != n_samples:
        raise UsageError(
            f"{name} has {len(lines)} lines; needed is one for each of the {n_samples} samples, "
            "empty for an unlabelled one"
        )
    return _as_labels(lines)


def _as_labels(values: list[Any]) -> Labels:
    labels = np.array(clean_labels(values), dtype=object)
    if all(label is None for label in labels):
        raise UsageError("all labels are empty; give at least two classes, or use --model nmf")
    return labels


def _train(
    data: _Data,
    held_out: npt.NDArray[np.bool_],
    losses: tuple[str, str | None],
    options: Any,
) -> Fitted:
    from .. import NMF, SSNMFClassifier
    from .._progress import progress_bar

    reconstruction, supervision = losses
    shared = {
        "n_components": options.rank,
        "reconstruction": reconstruction,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "n_threads": options.threads,
    }
    begin = time.perf_counter()
    with progress_bar(options.max_iter) as bar:
        if supervision is None:
            model: Any = NMF(**shared, callback=bar).fit(data.X)
        else:
            assert data.labels is not None
            visible = data.labels.copy()
            visible[held_out] = None
            model = SSNMFClassifier(
                **shared,
                supervision=supervision,
                supervision_weight=options.supervision_weight,
                unlabelled=None,
                callback=bar,
            ).fit(data.X, visible)
    model.set_params(callback=None)
    seconds = time.perf_counter() - begin
    labels = data.labels if supervision is not None else None
    return Fitted(model, data.X, labels, held_out, data.terms, seconds, _settings(data, options))


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
