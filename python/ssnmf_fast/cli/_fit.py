"""``ssnmf-fast fit``: data in, model, tables and report out."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._common.arrays import Array
from ._errors import UsageError
from ._fitted import Fitted
from ._folder import Results, results_folder
from ._learning_curve import learning_curve
from ._models import MODELS, Model, check_labels, chosen
from ._outputs import FILES, METRICS_NAME, write_all
from ._predictions import Ids
from ._read import read_lines, read_matrix, read_table
from ._sample_labels import SampleLabels, read_labels, warn_of_labels
from ._source import Source, source
from ._text import Vectorizer, fit_vectorizer, ids_of, read_texts, text_column
from ._times import times_of_file, times_of_table


@dataclass(frozen=True)
class Data:
    """What a model is fitted to."""

    X: Any
    labels: SampleLabels | None
    terms: list[str] | None
    vectorizer: Vectorizer | None = None
    texts: list[str] | None = None
    ids: Ids | None = None
    times: Array | None = None


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand."""
    model = chosen(options)
    model.settle(options)
    if options.unlabeled and options.labels is None:
        raise UsageError("--unlabeled is for labels; give --labels too")
    with results_folder(options.out, FILES, _inputs(options)) as results:
        given = source(options)
        data = (_read_text if given.is_table else _read_numbers)(given, options)
        fit_data(model, data, results, options)
        return _summary(results.folder)


def fit_data(model: Model, data: Data, results: Results, options: Any) -> None:
    """Fit a model and write all results."""
    if data.labels is not None:
        warn_of_labels(data.labels, options.labels, options.label_separator)
        check_labels(model, data.labels)
        _warn_of_few_topics(model, data.labels, options)
    fitted = _train(model, data, options)
    curve = learning_curve(model, fitted, options) if options.learning_curve else None
    write_all(model, fitted, results, data.vectorizer, options, curve)


def _inputs(options: Any) -> list[str | None]:
    """Return all that may be a file to read."""
    words = options.stop_words.removeprefix("english,")
    return [options.data, options.labels, options.features, options.time, words]


def _summary(folder: Path) -> dict[str, Any]:
    """Return sizes and measures, where the results are, and which files."""
    sizes = json.loads((folder / METRICS_NAME).read_text(encoding="utf-8"))
    return {**sizes, "out": str(folder), "files": sorted(p.name for p in folder.iterdir())}


def _warn_of_few_topics(model: Model, labels: SampleLabels, options: Any) -> None:
    if model.targets is None or model.names_topics or options.rank is None:
        return
    if options.rank >= len(labels.names):
        return
    warnings.warn(
        f"--rank {options.rank} is below the number of classes, {len(labels.names)}: so few topics "
        "cannot stand for all of them",
        stacklevel=2,
    )


def _read_text(given: Source, options: Any) -> Data:
    table = read_table(given)
    column = text_column(table, options.text, options.labels, options.time)
    if options.image_shape is not None:
        raise UsageError("--image-shape belongs to a matrix of images; the data are a table")
    labels = None
    if options.labels in table.columns:
        labels = _labels(table.column(options.labels, lists=True), options)
    elif options.labels is not None and Path(options.labels).is_file():
        labels = _labels_file(options, len(table.rows))
    elif options.labels is not None:
        table.column(options.labels)
    times = times_of_table(table, options)
    texts = read_texts(table, column, options)
    vectorizer, X = fit_vectorizer(texts, column, options)
    ids = ids_of(table, options.id, column, options.labels, options.time)
    return Data(X, labels, vectorizer.terms, vectorizer, texts, ids, times)


def _read_numbers(given: Source, options: Any) -> Data:
    if options.id is not None:
        raise UsageError(f"--id names a column of a table; {given} is a matrix")
    X = read_matrix(given)
    labels = _labels_file(options, X.shape[0]) if options.labels else None
    _check_image_shape(options.image_shape, X.shape[1])
    times = times_of_file(options, X.shape[0])
    if options.features is None:
        return Data(X, labels, None, times=times)
    terms = read_lines(Path(options.features), options.encoding)
    if len(terms) != X.shape[1]:
        raise UsageError(
            f"{options.features} has {len(terms)} lines; expected one for each of the "
            f"{X.shape[1]} features of {given}"
        )
    return Data(X, labels, terms, times=times)


def _check_image_shape(shape: Any, n_features: int) -> None:
    if shape is not None and shape[0] * shape[1] != n_features:
        raise UsageError(
            f"--image-shape {shape} is of {shape[0] * shape[1]} pixels; the matrix has "
            f"{n_features} columns"
        )


def _labels_file(options: Any, n_samples: int) -> SampleLabels:
    lines = read_lines(Path(options.labels), options.encoding)
    if len(lines) != n_samples:
        raise UsageError(
            f"{options.labels} has {len(lines)} lines; expected one for each of the {n_samples} "
            "samples, empty for an unlabeled one"
        )
    return _labels(lines, options)


def _labels(values: Sequence[Any], options: Any) -> SampleLabels:
    return read_labels(values, options.label_separator, options.unlabeled or ())


def _train(model: Model, data: Data, options: Any) -> Fitted:
    from .._solver.progress import ProgressBar

    held_out: npt.NDArray[np.bool_] = np.zeros(data.X.shape[0], dtype=bool)
    visible: SampleLabels | None = None
    if model.targets is not None:
        assert data.labels is not None
        held_out = data.labels.hold_out(options.test_size, options.seed)
        visible = data.labels.without(held_out)
    begin = time.perf_counter()
    # The bar moves in the last fit only.
    label = "validation, then fit" if model.validates(options) else "fit"
    with ProgressBar(options.max_iter, label) as bar, warnings.catch_warnings():
        for known in ("By validation the accuracy", "The number of unique classes is greater"):
            warnings.filterwarnings("ignore", message=known)  # reported in other words
        estimator = model.build(options, visible, bar)
        y = None if model.targets is None or visible is None else model.targets(visible)
        if model.dated:
            estimator.fit(data.X, data.times)
        else:
            estimator.fit(data.X, y)
    estimator.set_params(callback=None)
    return Fitted(
        estimator,
        data.X,
        data.labels,
        held_out,
        data.terms,
        seconds=time.perf_counter() - begin,
        settings=[*_settings(data, options), *_choices(model, estimator, options)],
        is_text=data.vectorizer is not None,
        guided=model.targets is not None,
        texts=data.texts,
        image_shape=options.image_shape,
        ids=data.ids,
    )


def _choices(model: Model, estimator: Any, options: Any) -> list[tuple[str, str]]:
    """Return what the fit chose itself, for the report."""
    if not model.validates(options):
        return []
    rounds = int(estimator.self_training_)
    pairs = [
        ("rank", str(len(estimator.components_))),
        ("supervision weight", f"{estimator.supervision_weight_:.6g}"),
        ("self-training", f"{rounds} round" + ("s" if rounds != 1 else "")),
    ]
    by = "chosen by validation" if (estimator.validation_folds_ >= 0).any() else "chosen by rule"
    return [(f"{name}, {by}", value) for name, value in pairs]


def _settings(data: Data, options: Any) -> list[tuple[str, str]]:
    """Return what the run was given, for the report."""
    n, m = data.X.shape
    size = f"{n} samples x {m} features"
    if sp.issparse(data.X):
        size += f", {data.X.nnz} nonzeros"
    left_out = {"learning_curve", "run", "out", "terms", "json", "quiet", "debug", "safe_csv"}
    if data.vectorizer is None:
        left_out |= {"text", "max_features", "min_df", "max_df", "stop_words"}
        left_out |= {"ngram", "token_pattern", "keep_markup"}
    given = {k: v for k, v in vars(options).items() if k not in left_out and v is not None}
    pairs = [("data size", size)]
    return pairs + [(name.replace("_", " "), _shown(value)) for name, value in given.items()]


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


_HIDDEN_LABELS = 0.5
_HIDDEN_PIXELS = 0.1
_PARTS_PER_DIGIT = 5


def run_demo(options: Any) -> None:
    """Run ``ssnmf-fast demo``: `fit` on scikit-learn's digits, of which much is hidden."""
    from sklearn.datasets import load_digits

    from ._parser import build_parser

    bunch = load_digits()
    rank, shape = _PARTS_PER_DIGIT * len(bunch.target_names), bunch.images.shape[1:]
    given = ["fit", "digits", "--labels", "digits", "--out", options.out]
    given += ["--rank", str(rank), "--test-size", str(_HIDDEN_LABELS)]
    given += ["--image-shape", "{}x{}".format(*shape), "--seed", str(options.seed)]
    settings = build_parser().parse_args(given)
    settings.threads = options.threads
    model = MODELS["ssnmf"]
    model.settle(settings)
    X = bunch.data / bunch.data.max()
    X[np.random.default_rng(options.seed).random(X.shape) < _HIDDEN_PIXELS] = np.nan
    data = Data(X, read_labels(bunch.target.tolist(), None), None)
    print("Semi-supervised NMF of handwritten digits\n")
    print(f"  data    scikit-learn's digits: {len(X)} images of {shape[0]} x {shape[1]} pixels")
    print(f"  hidden  {_HIDDEN_PIXELS:.0%} of the pixels, {_HIDDEN_LABELS:.0%} of the labels\n")
    with results_folder(settings.out, FILES, []) as results:
        fit_data(model, data, results, settings)
    print("\nFor your own data: ssnmf-fast fit --help")
