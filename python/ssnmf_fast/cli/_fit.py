"""``ssnmf-fast fit``, ``demo``, and ``suggest``, which asks for the labels that help most."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.arrays import float_dtype
from .._data.times import Times, read_times
from .._solver.loop import ProgressBar
from .._topics import names_of
from ..report import estimate_gain, explain_no_estimate
from ._findings import FILES, HARDER, print_report, write_all
from ._labels import SAMPLE, column_to_fill, parse_labels, read_labels_of, warn_of_labels
from ._models import Data, Fitted, Model, check_labels, choose_model
from ._outputs import (
    SEPARATOR,
    Rows,
    default_out,
    find_output,
    make_table,
    refuse_replacing,
    results_folder,
)
from ._read import Source, Table, UsageError, find_source, read_matrix, read_table, read_values
from ._text import find_ids, find_text_column, fit_vectorizer, read_texts

_OF_TEXTS = "float32"  # whose weights are no exact numbers
_OF_TABLES = ("text", "max_features", "min_df", "max_df", "stop_words", "ngram")
_NOT_SETTINGS = {"run", "out", "terms", "json", "quiet", "debug", "safe_csv"}


def run(options: Namespace) -> dict[str, Any]:
    model = choose_model(options)
    model.complete_options(options)
    for name in ("unlabeled", "more_labels"):
        if getattr(options, name) and options.labels is None:
            raise UsageError(f"--{name.replace('_', '-')} is for labels; give --labels too")
    options.out = options.out or default_out(options.data)
    return _fit(model, options)


def list_inputs(options: Namespace) -> list[str | None]:
    words = options.stop_words.removeprefix("english,")
    names = (options.data, options.labels, options.features, options.time, words, options.seeds)
    return [*names, *(options.more_labels or ())]


def read_data(options: Namespace) -> Data:
    source = find_source(options)
    return (_read_text if source.is_table else _read_numbers)(source, options)


def _fit(model: Model, options: Namespace, data: Data | None = None) -> dict[str, Any]:
    """Read the data, fit a model, write all results, and print a summary."""
    inputs = list_inputs(options) if data is None else []
    with results_folder(options.out, FILES, inputs) as out:
        data = read_data(options) if data is None else data
        if data.labels is not None:
            warn_of_labels(data.labels, options.labels, options.label_separator)
            check_labels(model, data.labels, options.rank)
        fitted = train(model, data, options)
        report, content = write_all(model, fitted, out, options)
    print_report(fitted, report)
    out.show()
    return {**content, "out": str(out.folder), "files": sorted(out.names)}


def _read_text(source: Source, options: Namespace) -> Data:
    table = read_table(source)
    others = [name for name in table.frame if name not in (options.labels, options.time)]
    table.refuse_numbers(others if options.text is None else [options.text])
    column = find_text_column(table, options.text, options.labels, options.time)
    if options.image_shape is not None:
        raise UsageError("--image-shape is for a matrix of images; the data are a table")
    n_samples = len(table.frame)
    labels = read_labels_of(options, table, n_samples)
    times = _read_times(options, table, n_samples)
    texts = read_texts(table, column, keep_markup=options.keep_markup)
    vectorizer, X = fit_vectorizer(texts, column, options)
    ids = find_ids(table, options.id, column, options.labels, options.time)
    known: dict[str, Any] = {"labels": labels, "times": times, "ids": ids, "texts": texts}
    return Data(X=X, terms=vectorizer.terms, vectorizer=vectorizer, **known)


def _read_numbers(source: Source, options: Namespace) -> Data:
    if options.id is not None:
        raise UsageError(f"--id names a column of a table; {source} is a matrix")
    X = read_matrix(source)
    n, m = X.shape
    shape, terms = options.image_shape, None
    labels = read_labels_of(options, source, n)
    if shape is not None and (size := shape[0] * shape[1]) != m:
        raise UsageError(f"--image-shape {shape} has {size} pixels; the matrix has {m} columns")
    times = _read_times(options, source, n)
    if options.features is not None:
        terms = read_values(options.features, source, m, f"features of {source}")
    return Data(X=X, labels=labels, terms=terms, times=times, image_shape=shape)


def _read_times(options: Namespace, data: Table | Source, n_samples: int) -> Times | None:
    if options.time is None:
        return None
    values = read_values(options.time, data, n_samples)
    name, where = "date", options.time
    if isinstance(data, Table) and options.time in data.frame:
        name, where = options.time, data.source
    try:
        return read_times(values, name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {str(error).rstrip('.')}") from error


def train(model: Model, data: Data, options: Namespace) -> Fitted:
    """Fit a model to data, some of whose labels may be held out."""
    held_out = np.zeros(data.X.shape[0], dtype=bool)
    visible = y = None
    if model.targets is not None and data.labels is not None:
        held_out = data.labels.hold_out(options.test_size, options.seed)
        visible = data.labels.without(held_out)
        y = model.targets(visible)
    if options.dtype is None:
        texts = data.vectorizer is not None
        options.dtype = _OF_TEXTS if texts else float_dtype(data.X.dtype, "X").name
    begin = time.perf_counter()
    # The bar moves in the last fit only.
    label = "validation, then fit" if model.validates else "fit"
    with ProgressBar(options.max_iter, label) as bar, warnings.catch_warnings():
        for known in ("The cross-validated accuracy", "The number of unique classes is greater"):
            warnings.filterwarnings("ignore", message=known)  # reported in other words
        estimator = model.build(options, visible, bar, data.terms)
        estimator.fit(data.X, y if data.times is None else data.times)
    estimator.set_params(callback=None)
    return Fitted(
        **vars(data),
        model=estimator,
        held_out=held_out,
        guided=model.targets is not None,
        seconds=time.perf_counter() - begin,
        settings=[*_list_options(data, options), *_list_settings_of_fit(estimator, data.terms)],
    )


def _list_options(data: Data, options: Namespace) -> list[tuple[str, str]]:
    size = "{} samples x {} features".format(*data.X.shape)
    if sp.issparse(data.X):
        size += f", {data.X.nnz} nonzeros"
    left_out = _NOT_SETTINGS
    if data.vectorizer is None:
        left_out = left_out | {*_OF_TABLES, "token_pattern", "keep_markup"}
    return [("data size", size)] + [
        (name.replace("_", " "), ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in vars(options).items()
        if name not in left_out and value is not None
    ]


def _list_settings_of_fit(estimator: Any, terms: list[str] | None) -> list[tuple[str, str]]:
    """Return what the fit set itself, for the report, and the seeds of every topic."""
    params, settings = estimator.get_params(), {}
    for name in ("supervision_weight", "rate_shape"):
        if params.get(name) in ("auto", "balanced"):
            settings[name.replace("_", " ")] = f"{getattr(estimator, f'{name}_'):.6g}"
    if params.get("self_training") == "auto":
        rank, k = len(estimator.components_), len(estimator.classes_)
        settings["rank"] = f"{rank} ({rank // k} for each class)"
        rounds = int(estimator.self_training_)
        settings["self-training"] = f"{rounds} round" + ("s" if rounds != 1 else "")
    pairs = [(f"{name}, set by the fit", value) for name, value in settings.items()]
    committee = getattr(estimator, "committee_", {})
    if len(committee) > 1:
        weights = ", ".join(f"{name} {one['weight']:.2g}" for name, one in committee.items())
        validated = (estimator.validation_folds_ >= 0).any()
        how = "found by validation" if validated else "not validated, as labels are few"
        pairs.append((f"weights of the classifiers, {how}", weights))
    if hasattr(estimator, "seed_weights_"):
        names = names_of(terms, estimator.n_features_in_)
        for topic, row in zip(estimator.topic_names_, estimator.seed_weights_, strict=True):
            seeds = ", ".join(names[i] for i in row.nonzero()[-1])
            pairs.append((f"seeds of {topic}", seeds or "none, labels only"))
        if estimator.unknown_seeds_:
            pairs.append(("seeds not found", ", ".join(estimator.unknown_seeds_)))
    return pairs


_HIDDEN_PIXELS = 0.1


def run_demo(options: Namespace) -> None:
    from sklearn.datasets import load_digits

    model, bunch = choose_model(options), load_digits()
    model.complete_options(options)
    X, (height, width) = bunch.data / bunch.data.max(), options.image_shape
    X[np.random.default_rng(options.seed).random(X.shape) < _HIDDEN_PIXELS] = np.nan
    labels = parse_labels(bunch.target.tolist(), None)
    print("Semi-supervised NMF of handwritten digits\n")
    print(f"  data    scikit-learn's digits: {len(X)} images of {height} x {width} pixels")
    print(f"  hidden  {_HIDDEN_PIXELS:.0%} of the pixels, {options.test_size:.0%} of the labels\n")
    _fit(model, options, Data(X=X, labels=labels, image_shape=options.image_shape))
    print("\nFor your own data: ssnmf-fast fit --help")


_PREDICTION, _PROBABILITY = "prediction", "probability"
_SCORES = ("accuracy", "micro_f", "macro_f")  # of the model, not of simple methods
_DIGITS = 3  # of a probability that a person reads


def run_suggest(options: Namespace) -> dict[str, Any]:
    if not options.labels:
        raise UsageError("suggest needs --labels, the column with the labels that there are")
    options.out = options.out or default_out(options.data, "-to-label.csv")
    out, column = find_output(options), column_to_fill(options.labels)
    if out.path is not None:
        refuse_replacing(out.path, list_inputs(options))
        if out.path.exists():
            raise UsageError(f"--out: {out} exists, and may hold labels; name another file")
    model = choose_model(options)
    model.complete_options(options)
    data = read_data(options)
    labels = data.labels
    assert labels is not None
    warn_of_labels(labels, options.labels, options.label_separator)
    check_labels(model, labels, options.rank)
    rest = np.setdiff1d(np.flatnonzero(~labels.known), [*labels.passed_over])
    if not len(rest):
        raise UsageError("every sample has a label or was suggested before; none is left")
    for name in (column, None if data.vectorizer is None else data.vectorizer.column):
        if name in (SAMPLE, _PREDICTION, _PROBABILITY):
            raise UsageError(f"the table to fill in has a column {name!r} of its own; rename yours")
    fitted = train(model, data, options)
    chosen = rest[fitted.model.suggest(data.X[rest], options.count)]
    separator = options.label_separator or SEPARATOR
    out.write(*_make_table_to_fill(fitted, chosen, column, separator))
    # On standard output there is no place for more.
    evaluation, gain = None if out.path is None else fitted.evaluation, None
    if evaluation is not None and evaluation.by_validation:
        y = labels.single_or_indicators()
        gain = estimate_gain(fitted.model, data.X, y, labels.known, evaluation)
    measures = [] if evaluation is None else evaluation.measures()
    scores = [one for one in measures if one.key in _SCORES]
    if out.path is not None:
        lines = [f"{one.name}: {one.text}" for one in scores]
        if not scores:
            labeled = int(fitted.training.sum())
            lines.append(explain_no_estimate(fitted.model, labeled, len(labels.names)))
        elif options.more_labels:
            lines.append(HARDER)
        lines += [] if gain is None else [str(gain)]
        more = " ".join(f"--more-labels {name}" for name in [*(options.more_labels or ()), out])
        print(*lines, sep="\n")
        print(f"{len(chosen)} samples to label are in {out}: fill in its column {column!r}, then")
        print(f"run `ssnmf-fast fit` or suggest with the same options and {more}")
    summary = {
        "out": str(out),
        "suggested": len(chosen),
        "labeled": int(labels.known.sum()),
        "measures": {one.key: one.value for one in scores},
        "intervals": {one.key: list(one.interval) for one in scores if one.interval},
    }
    if gain is not None:
        summary |= {"score_half": gain.half, "score": gain.full, "more_labels_help": gain.helps}
    return summary


def _make_table_to_fill(
    fitted: Fitted, chosen: Array, column: str, separator: str
) -> tuple[list[str], Rows]:
    """Return the table to fill in: the samples, what is predicted, and no label."""
    columns: dict[str, Sequence[Any]] = {}
    if fitted.texts is not None and fitted.vectorizer is not None:
        columns[fitted.vectorizer.column] = [fitted.texts[row] for row in chosen]
    predictions, proba = fitted.name_predictions(separator), fitted.proba[chosen].round(_DIGITS)
    columns[_PREDICTION] = [predictions[row] for row in chosen]
    columns[_PROBABILITY] = proba.max(axis=1).tolist()
    if fitted.predicted.ndim == 2:  # several in one cell
        columns[_PROBABILITY] = [
            separator.join(f"{p:g}" for p in row[one > 0])
            for row, one in zip(proba, fitted.predicted[chosen], strict=True)
        ]
    columns[column] = [""] * len(chosen)
    ids = fitted.ids
    if ids is not None:
        ids = ids[0], [ids[1][row] for row in chosen]
    names, rows = make_table(ids, list(columns.items()))
    return names, ([row, *cells[1:]] for row, cells in zip(chosen.tolist(), rows, strict=True))
