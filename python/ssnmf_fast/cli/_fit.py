"""``ssnmf-fast fit``: data in, model, tables and report out."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._data.arrays import float_dtype
from .._data.times import Times, read_times
from .._topics import names_of
from ._fitted import Data, Fitted
from ._labels import SampleLabels, read_labels, warn_of_labels
from ._models import Model, check_labels, choose_model
from ._more_labels import with_more_labels
from ._outputs import FILES, print_report, write_all
from ._predictions import default_out, results_folder
from ._read import Source, Table, UsageError, read_matrix, read_table, read_values, source
from ._text import fit_vectorizer, ids_of, read_texts, text_column

_OF_TEXTS = "float32"  # whose weights are no exact numbers


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand; return sizes and measures, where the results are, and which files."""
    model = choose_model(options)
    model.complete_options(options)
    for name in ("unlabeled", "more_labels"):
        if getattr(options, name) and options.labels is None:
            raise UsageError(f"--{name.replace('_', '-')} is for labels; give --labels too")
    options.out = options.out or default_out(options.data)
    return _fit(model, lambda: read_data(options), inputs_of(options), options)


def inputs_of(options: Any) -> list[str | None]:
    """Return the files that are read, None for those that are not given."""
    words = options.stop_words.removeprefix("english,")
    given = [options.data, options.labels, options.features, options.time, words]
    given.append(getattr(options, "seeds", None))
    return [*given, *(options.more_labels or ())]


def with_settings_of_fit(options: Any) -> Any:
    """Return the options of another subcommand, with those of `fit` at their defaults."""
    from ._parser import build_parser

    settings = build_parser().parse_args(["fit", "data"])
    return argparse.Namespace(**(vars(settings) | vars(options)))


def read_data(options: Any) -> Data:
    """Read samples, and what is known of them."""
    given = source(options)
    return (_read_text if given.is_table else _read_numbers)(given, options)


def _fit(
    model: Model, read: Callable[[], Data], inputs: Sequence[str | None], options: Any
) -> dict[str, Any]:
    """Read data, fit a model, write all results, and print a summary."""
    with results_folder(options.out, FILES, inputs) as out:
        data = read()
        if data.labels is not None:
            warn_of_labels(data.labels, options.labels, options.label_separator)
            check_labels(model, data.labels, options.rank)
        fitted = train(model, data, options)
        report, content = write_all(model, fitted, out, options)
    print_report(fitted, report)
    out.show()
    return {**content, "out": str(out.folder), "files": sorted(out.names)}


def _read_text(given: Source, options: Any) -> Data:
    table = read_table(given)
    others = [name for name in table.columns if name not in (options.labels, options.time)]
    table.refuse_numbers(others if options.text is None else [options.text])
    column = text_column(table, options.text, options.labels, options.time)
    if options.image_shape is not None:
        raise UsageError("--image-shape belongs to a matrix of images; the data are a table")
    labels = read_labels_of(options, table, len(table.rows))
    times = _times(options, table, len(table.rows))
    texts = read_texts(table, column, keep_markup=options.keep_markup)
    vectorizer, X = fit_vectorizer(texts, column, options)
    ids = ids_of(table, options.id, column, options.labels, options.time)
    return Data(
        X=X,
        labels=labels,
        terms=vectorizer.terms,
        vectorizer=vectorizer,
        texts=texts,
        ids=ids,
        times=times,
    )


def _read_numbers(given: Source, options: Any) -> Data:
    if options.id is not None:
        raise UsageError(f"--id names a column of a table; {given} is a matrix")
    X = read_matrix(given)
    labels = read_labels_of(options, given, X.shape[0])
    shape = options.image_shape
    if shape is not None and shape[0] * shape[1] != X.shape[1]:
        raise UsageError(
            f"--image-shape {shape} is of {shape[0] * shape[1]} pixels; the matrix has "
            f"{X.shape[1]} columns"
        )
    times = _times(options, given, X.shape[0])
    terms = None
    if options.features is not None:
        terms = read_values(options.features, given, X.shape[1], f"features of {given}")
    return Data(X=X, labels=labels, terms=terms, times=times, image_shape=shape)


def read_labels_of(options: Any, data: Table | Source, n_samples: int) -> SampleLabels | None:
    """Return the labels that the options name, of a table or of a file beside a matrix."""
    if not options.labels:
        return None
    things = "samples, empty for an unlabeled one"
    values = read_values(options.labels, data, n_samples, things, lists=True)
    passed_over: set[int] = set()
    if options.more_labels:
        values, passed_over = with_more_labels(values, data, options)
    labels = read_labels(values, options.label_separator, options.unlabeled or ())
    return replace(labels, passed_over=frozenset(passed_over))


def _times(options: Any, data: Table | Source, n_samples: int) -> Times | None:
    if options.time is None:
        return None
    values = read_values(options.time, data, n_samples)
    name, where = "date", options.time
    if isinstance(data, Table) and options.time in data.columns:
        name, where = options.time, data.source
    try:
        return read_times(values, name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {str(error).rstrip('.')}") from error


def train(model: Model, data: Data, options: Any) -> Fitted:
    """Fit a model to data, of whose labels some may be held out."""
    from .._solver.loop import ProgressBar

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
        for known in ("By validation the accuracy", "The number of unique classes is greater"):
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
        settings=[
            *_settings(data, options),
            *_found(estimator),
            *_seeds_of(estimator, data.terms),
        ],
    )


def _found(estimator: Any) -> list[tuple[str, str]]:
    """Return what the fit set itself, for the report."""
    params, found = estimator.get_params(), {}
    for name in ("supervision_weight", "rate_shape"):
        if params.get(name) in ("auto", "balanced"):
            found[name.replace("_", " ")] = f"{getattr(estimator, f'{name}_'):.6g}"
    if params.get("self_training") == "auto":
        rank, k = len(estimator.components_), len(estimator.classes_)
        found["rank"] = f"{rank} ({rank // k} for each class)"
        rounds = int(estimator.self_training_)
        found["self-training"] = f"{rounds} round" + ("s" if rounds != 1 else "")
    pairs = [(f"{name}, set by the fit", value) for name, value in found.items()]
    committee = getattr(estimator, "committee_", {})
    if len(committee) > 1:
        weights = ", ".join(f"{name} {one['weight']:.2g}" for name, one in committee.items())
        validated = (estimator.validation_folds_ >= 0).any()
        how = "found by validation" if validated else "not validated, as labels are few"
        pairs.append((f"weights of the classifiers, {how}", weights))
    return pairs


def _seeds_of(estimator: Any, terms: list[str] | None) -> list[tuple[str, str]]:
    """Return the seeds of every topic, for the report, and those that were not found."""
    if not hasattr(estimator, "seed_weights_"):
        return []
    names = names_of(terms, estimator.n_features_in_)
    rows = [", ".join(names[i] for i in row.nonzero()[-1]) for row in estimator.seed_weights_]
    pairs = zip(estimator.topic_names_, rows, strict=True)
    found = [(f"seeds of {name}", row or "none, labels only") for name, row in pairs]
    unknown = ", ".join(estimator.unknown_seeds_)
    return [*found, ("seeds not found", unknown)] if unknown else found


def _settings(data: Data, options: Any) -> list[tuple[str, str]]:
    """Return what the run was given, for the report."""
    n, m = data.X.shape
    size = f"{n} samples x {m} features"
    if sp.issparse(data.X):
        size += f", {data.X.nnz} nonzeros"
    left_out = {"run", "out", "terms", "json", "quiet", "debug", "safe_csv"}
    if data.vectorizer is None:
        left_out |= {"text", "max_features", "min_df", "max_df", "stop_words"}
        left_out |= {"ngram", "token_pattern", "keep_markup"}
    return [("data size", size)] + [
        (name.replace("_", " "), ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in vars(options).items()
        if name not in left_out and value is not None
    ]


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
    given += ["--model", "ssnmf", "--supervision-weight", "inf"]
    given += ["--rank", str(rank), "--test-size", str(_HIDDEN_LABELS)]
    given += ["--image-shape", "{}x{}".format(*shape), "--seed", str(options.seed)]
    settings = build_parser().parse_args(given)
    settings.threads = options.threads
    model = choose_model(settings)
    model.complete_options(settings)
    X = bunch.data / bunch.data.max()
    X[np.random.default_rng(options.seed).random(X.shape) < _HIDDEN_PIXELS] = np.nan
    labels = read_labels(bunch.target.tolist(), None)
    data = Data(X=X, labels=labels, image_shape=settings.image_shape)
    print("Semi-supervised NMF of handwritten digits\n")
    print(f"  data    scikit-learn's digits: {len(X)} images of {shape[0]} x {shape[1]} pixels")
    print(f"  hidden  {_HIDDEN_PIXELS:.0%} of the pixels, {_HIDDEN_LABELS:.0%} of the labels\n")
    _fit(model, lambda: data, [], settings)
    print("\nFor your own data: ssnmf-fast fit --help")
