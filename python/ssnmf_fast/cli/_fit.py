"""``ssnmf-fast fit``, ``demo``, ``suggest`` and ``choose-rank``, which fit models to data."""

from __future__ import annotations

import math
import sys
import time
import warnings
from argparse import Namespace
from contextlib import closing
from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.text import nfc
from .._data.arrays import float_dtype
from .._data.times import choose_freq, cut, read_times
from .._solver.loop import ProgressBar
from .._topics import names_of
from ..estimators import BayesianNMF
from ..report import Summary
from ..report.evaluation import explain_no_estimate, values_of
from ..selection import RankChoice, choose_rank
from ._findings import CURVE, FILES, curve_of, print_summary, summarize, write_all
from ._labels import SAMPLE, columns_to_fill, label_columns, parse_labels, read_labels_of
from ._models import SEPARATOR, FittedModel, ModelType, Samples, check_labels, choose_model
from ._options import UsageError, changed, for_json, refuse, warn
from ._outputs import (
    METRICS_NAME,
    Columns,
    TableOutput,
    default_out,
    make_table,
    open_results,
    refuse_replacing,
)
from ._read import (
    Source,
    Table,
    find_source,
    keeping_warnings,
    read_matrix,
    read_table,
    read_values,
)
from ._text import find_ids, find_text_column, fit_vectorizer, read_texts

_OF_TEXTS = "float32"  # TF-IDF is not exact
_OF_TABLES = {
    *("text", "max_features", "min_df", "max_df", "stop_words", "ngram"),
    *("token_pattern", "keep_markup"),
}
_MOST_GROUPS = 100  # of --by; with more it is a column of ids or texts
_NOT_SETTINGS = {"run", "given", "config", "out", "terms", "json", "quiet", "debug", "safe_csv"}


def run(options: Namespace, samples: Samples | None = None) -> dict[str, Any]:
    """Read the data, fit a model, write all results, and print a summary."""
    (model, options), inputs = choose_model(options), [] if samples else list_inputs(options)
    if options.labels is None:
        refuse(options, ("unlabeled", "more_labels"), "is for labels; give --labels too")
    if not model.guided:
        refuse(options, ("by", "target_accuracy"), "is for codes; give --labels, or --seeds")
    with open_results(options, "fit", FILES, inputs) as out, keeping_warnings() as issued:
        samples = read_samples(options) if samples is None else samples
        check_labels(model, samples.labels, options)
        fit = train(model, samples, options)
        summary = summarize(fit, options, issued)
        write_all(fit, summary, out, options)
        choice = getattr(fit.model, "rank_choice_", None)
        if choice is not None and choice.high > 1:  # otherwise there is a warning
            print(f"{choice}; --rank sets it".replace(";", ",", 1))
        print_summary(fit, summary)
        return out.finish(summary)


def list_inputs(options: Namespace) -> list[str | None]:
    words = options.stop_words, *options.stop_words.split(",")
    names = (options.data, options.features, options.time, options.seeds)
    lists = options.labels, options.more_labels, options.by
    return [*names, *words, *(name for some in lists for name in some or ())]


def read_samples(options: Namespace) -> Samples:
    source = find_source(options)
    if source.is_table:
        return _read_text(read_table(source), options)
    refuse(options, ("id",), f"names a column of a table; {source} is a matrix")
    X = read_matrix(source)
    n, m = X.shape
    shape, terms = options.image_shape, None
    if shape is not None and (size := shape[0] * shape[1]) != m:
        raise UsageError(f"--image-shape {shape} has {size} pixels; the matrix has {m} columns")
    if options.features is not None:
        terms = read_values(options.features, source, m, f"features of {source}")
    return Samples(X=X, terms=terms, image_shape=shape, **_read_guides(options, source, n))


def _read_text(table: Table, options: Namespace) -> Samples:
    other_columns = *label_columns(table, options), options.time, *(options.by or ())
    candidates = [name for name in table.frame if name not in other_columns]
    table.refuse_numbers(candidates if options.text is None else [options.text])
    column = find_text_column(table, options.text, *other_columns)
    refuse(options, ("image_shape",), "is for a matrix of images; the data are a table")
    guides = _read_guides(options, table, len(table.frame))
    texts = read_texts(table, column, keep_markup=options.keep_markup)
    vectorizer, X = fit_vectorizer(texts, column, options)
    guides |= {"texts": texts, "ids": find_ids(table, options.id, column, *other_columns)}
    samples = Samples(X=X, terms=vectorizer.terms, vectorizer=vectorizer, **guides)
    samples.warn_of_reasons("nothing is learned from them; see --min-df and --stop-words")
    return samples


def _read_guides(options: Namespace, data: Table | Source, n_samples: int) -> dict[str, Any]:
    """Return the labels, groups and times of the samples."""
    labels = read_labels_of(options, data, n_samples)
    groups = {name: _read_groups(name, data, n_samples) for name in options.by or ()}
    guides: dict[str, Any] = {"labels": labels, "groups": groups}
    if options.time is None:
        return guides
    values = read_values(options.time, data, n_samples)
    is_column = isinstance(data, Table) and options.time in data.frame
    try:
        if options.time_format is not None:
            form = options.time_format
            values = [text and datetime.strptime(str(text), form) for text in values]
        times = read_times(values, options.time if is_column else "date")
        freq = options.freq or choose_freq(times.values)
        # Fails now, not after the fit.
        slices = cut(times.values, freq, "dates", least=1 + (options.model == "dynamic"))
        guides["freq"] = freq
        if len(slices.starts) > 1:
            return guides | {"times": times}
        reason = f"all dates are in one slice ({freq}), which begins at {slices.starts[0]}"
        warn(f"{reason}: topics over time are left out")
        return guides
    except (TypeError, ValueError) as error:
        where = data if is_column else options.time
        raise UsageError(f"{where}: {str(error).rstrip('.')}") from error


def _read_groups(column: str, data: Table | Source, n_samples: int) -> list[str]:
    """Return the values of a column of --by, which must be few."""
    values = read_values(column, data, n_samples)
    groups = [str("" if value is None else nfc(value)).strip() or "(empty)" for value in values]
    if (count := len({*groups})) > _MOST_GROUPS:
        wrong = f"{count} different values, such as {groups[0]!r}; expected at most {_MOST_GROUPS}"
        raise UsageError(f"--by {column}: {wrong}, such as the regions or years of the samples")
    return groups


def train(model: ModelType, samples: Samples, options: Namespace) -> FittedModel:
    """Fit a model to data, perhaps with some labels held out."""
    held_out = np.zeros(samples.X.shape[0], dtype=bool)
    visible = y = None
    if model.guided and samples.labels is not None:
        held_out = samples.labels.hold_out(options.test_size, options.seed)
        visible = samples.labels.without(held_out)
        y = model.targets(visible)
    dtype = _OF_TEXTS if samples.vectorizer is not None else float_dtype(samples.X.dtype, "X").name
    values: dict[str, Any] = {"dtype": options.dtype or dtype, "freq": samples.freq or options.freq}
    values["labels"] = (
        options.labels if samples.labels is None else samples.labels.columns or options.labels
    )
    options = changed(options, **values)
    begin = time.perf_counter()
    label = "validation, then fit" if model.validates else "fit"  # the bar moves only in the fit
    with closing(ProgressBar(options.max_iter, label)) as bar, warnings.catch_warnings():
        for message in ("The cross-validated accuracy", "The number of unique classes is greater"):
            warnings.filterwarnings("ignore", message=message)  # reported differently
        estimator = model.build(options, visible, bar, samples.terms)
        chooses_rank = options.rank == "auto"  # longer than the fit: print progress of both
        if chooses_rank:
            estimator.set_params(callback=None, verbose=1)
        estimator.fit(samples.X, samples.times if model.dated else y)
    estimator.set_params(callback=None, **({"verbose": 0} if chooses_rank else {}))
    if model.name == "dynamic" and options.method == "auto" and not chooses_rank:
        print(estimator._reason(), file=sys.stderr)
    return FittedModel(
        **{field.name: getattr(samples, field.name) for field in fields(Samples)},
        model=estimator,
        held_out=held_out,
        guided=model.guided,
        target=options.target_accuracy,
        separator=options.label_separator or SEPARATOR,
        seconds=time.perf_counter() - begin,
        settings=_list_settings(estimator, samples, options),
    )


def _list_settings(estimator: Any, samples: Samples, options: Namespace) -> dict[str, str]:
    """Return for the report the options, the values set by the fit, and the seeds of topics."""
    left_out = _NOT_SETTINGS if samples.vectorizer is not None else _NOT_SETTINGS | _OF_TABLES
    settings = {"data size": samples.size} | {
        name.replace("_", " "): ", ".join(value) if isinstance(value, list) else str(value)
        for name, value in vars(options).items()
        if name not in left_out and value is not None
    }
    params = estimator.get_params()
    for name in ("supervision_weight", "rate_shape"):
        if params.get(name) in ("auto", "balanced"):
            value = getattr(estimator, f"{name}_")
            settings[f"{name.replace('_', ' ')}, set by the fit"] = f"{value:.6g}"
    if hasattr(estimator, "rank_choice_"):
        settings["rank, set by the fit"] = str(estimator.rank_choice_)
    if params.get("self_training") == "auto":
        rounds = int(estimator.self_training_)
        settings["self-training, set by the fit"] = f"{rounds} round{'s' * (rounds != 1)}"
    committee = getattr(estimator, "committee_", {})
    if len(committee) > 1:
        weights = ", ".join(f"{name} {member['weight']:.2g}" for name, member in committee.items())
        validated = (estimator.validation_folds_ >= 0).any()
        how = "found by validation" if validated else "not validated: too few labels"
        settings[f"weights of the classifiers, {how}"] = weights
    if hasattr(estimator, "seed_weights_"):
        names = names_of(samples.terms, estimator.n_features_in_)
        for topic, row in zip(estimator.topic_names_, estimator.seed_weights_, strict=True):
            seeds = ", ".join(names[i] for i in row.nonzero()[-1])
            settings[f"seeds of {topic}"] = seeds or "none, labels only"
        if estimator.unknown_seeds_:
            settings["seeds not found"] = ", ".join(estimator.unknown_seeds_)
    return settings


def run_demo(options: Namespace) -> None:
    from sklearn.datasets import load_digits

    bunch, hidden = load_digits(), 0.1
    X, (height, width) = bunch.data / bunch.data.max(), options.image_shape
    X[np.random.default_rng(options.seed).random(X.shape) < hidden] = np.nan
    labels = parse_labels(bunch.target.tolist(), None)
    print("Semi-supervised NMF of handwritten digits\n")
    print(f"  data    scikit-learn's digits: {len(X)} images of {height} x {width} pixels")
    print(f"  hidden  {hidden:.0%} of the pixels, {options.test_size:.0%} of the labels\n")
    run(options, Samples(X=X, labels=labels, image_shape=options.image_shape))
    print("\nFor your own data: ssnmf-fast fit --help")


_PREDICTION, _PROBABILITY = "prediction", "probability"
_SCORES = ("accuracy", "micro_f", "macro_f")  # of the model, not of simple methods
_DIGITS = 3  # of a probability that a person reads


def run_suggest(options: Namespace) -> dict[str, Any]:
    if not options.labels:
        raise UsageError("suggest needs --labels, the column with the known labels")
    name = options.out or default_out(options.data, "-to-label.csv")
    out = TableOutput(changed(options, out=name))
    if out.path is not None:
        refuse_replacing(out.path, list_inputs(options))
        if out.path.exists():
            raise UsageError(f"--out: {out} exists, and may hold labels; name another file")
    model, options = choose_model(options)
    samples = read_samples(options)
    labels = samples.labels
    assert labels is not None
    empty = columns_to_fill(labels.columns)
    check_labels(model, labels, options)
    codable = ~labels.known & (np.array(samples.reasons) == "")
    candidates = np.setdiff1d(np.flatnonzero(codable), [*labels.passed_over])
    if not len(candidates):
        raise UsageError("every sample has a label or no known word, or was suggested before")
    for name in (*empty, None if samples.vectorizer is None else samples.vectorizer.column):
        if name in (SAMPLE, _PREDICTION, _PROBABILITY):
            raise UsageError(f"the table to fill in already has a column {name!r}; rename yours")
    fit = train(model, samples, options)
    chosen = candidates[fit.model.suggest(samples.X[candidates], options.count)]
    _write_to_fill(out, fit, chosen, empty)
    # Standard output has only the table.
    evaluation = None if out.path is None else fit.evaluation
    measures = [] if evaluation is None else evaluation.measures()
    scores = [score for score in measures if score.key in _SCORES]
    if out.path is not None:
        lines = [f"{score.name}: {score.text}" for score in scores]
        if not scores:
            labeled = int(fit.training.sum())
            lines.append(explain_no_estimate(fit.model, labeled, len(labels.names)))
        tables = [*(options.more_labels or ()), out]
        arguments = " ".join(f"--more-labels {name}" for name in tables)
        print(*lines, sep="\n")
        columns = " or ".join(map(repr, empty))
        print(f"{len(chosen)} samples to label are in {out}: fill in its column {columns}, then")
        print(f"run `ssnmf-fast fit` or suggest with the same options and {arguments}")
    counts = {"suggested": len(chosen), "labeled": int(labels.known.sum())}
    return {"out": str(out), **counts, **values_of(scores)}


def _write_to_fill(out: TableOutput, fit: FittedModel, chosen: Array, empty: list[str]) -> None:
    """Write the table to fill in: samples, predictions, and empty columns of labels."""
    columns: Columns = []
    if fit.texts is not None and fit.vectorizer is not None:
        columns.append((fit.vectorizer.column, [fit.texts[row] for row in chosen]))
    proba = fit.proba[chosen].round(_DIGITS)
    columns.append((_PREDICTION, [fit.predictions[row] for row in chosen]))
    probabilities = proba.max(axis=1).tolist()
    if fit.predicted.ndim == 2:  # several in one cell
        probabilities = [
            fit.separator.join(f"{p:g}" for p in row[codes > 0])
            for row, codes in zip(proba, fit.predicted[chosen], strict=True)
        ]
    columns += [(_PROBABILITY, probabilities), *((name, [""] * len(chosen)) for name in empty)]
    ids = None if fit.ids is None else (fit.ids[0], [fit.ids[1][row] for row in chosen])
    names, rows = make_table(ids, columns)
    cells_of_samples = zip(chosen.tolist(), rows, strict=True)
    out.write(names, ([sample, *cells] for sample, (_, *cells) in cells_of_samples))


_TABLE = "ranks.csv"
_RANK_FILES = {
    _TABLE: "scores of every rank, in all splits",
    CURVE: "the same as a picture",
    METRICS_NAME: "the choice and its settings",
}
# Options that a criterion does not use, two of which always have a value, and parameters of all.
_UNUSED = {
    "words": ("loss", "starts", "only_nonzeros", "max_iter", "tol", "rule"),
    "bound": ("loss", "splits", "only_nonzeros", "validation_fraction", "rule"),
    "stability": ("splits", "only_nonzeros", "validation_fraction"),
}
_HAVE_DEFAULTS = ("rule", "validation_fraction")
_SAME = ("criterion", "loss", "rule", "validation_fraction", "max_iter", "tol")
_PARAMETERS = {**{name: name for name in _SAME}, "splits": "n_splits", "starts": "n_starts"}
_PARAMETERS |= {"seed": "random_state", "threads": "n_threads"}


def run_choose_rank(options: Namespace) -> dict[str, Any]:
    by_default = "words" if find_source(options).is_table else "held-out"
    criterion = options.criterion or by_default
    options = changed(options, criterion=criterion)
    unused = [name for name in _UNUSED.get(criterion, ()) if name not in _HAVE_DEFAULTS]
    advice = "leave it out, or compare by --criterion held-out"
    refuse(options, unused, f"is not used by --criterion {criterion}; {advice}")
    params = {parameter: getattr(options, name) for name, parameter in _PARAMETERS.items()}
    if criterion == "bound":
        stops = {name: params.pop(name) for name in ("max_iter", "tol")}
        params["estimator"] = BayesianNMF(**{k: v for k, v in stops.items() if v is not None})
    params |= {"mask_zeros": not options.only_nonzeros, "verbose": 1}
    files = open_results(options, "choose-rank", _RANK_FILES, list_inputs(options), "-ranks")
    with files as out, keeping_warnings() as issued:
        samples = read_samples(options)
        begin = time.perf_counter()
        ranks = options.ranks or (None if criterion == "words" else range(2, 21))
        choice = choose_rank(samples.X, ranks, **params)
        seconds = time.perf_counter() - begin
        rows = choice.to_rows()
        out.write_rows(_TABLE, for_json(rows))
        title = choice if criterion == "words" else f"{choice.rank} topics"
        print(title, *choice.notes, f"\nTopics  {choice.label}", sep="\n")
        for row in rows:
            error = row["standard_error"]
            spread = "" if math.isnan(error) else f" +- {error:.2g}"
            mark = "  (pruned)" * row["pruned"] + "  <" * (row["rank"] == choice.rank)
            print(f"{row['rank']:>6}  {row['mean']:.6g}{spread}{mark}")
        return out.finish(_summarize(choice, samples.size, seconds, issued, options))


def _summarize(
    choice: RankChoice, size: str, seconds: float, issued: list[str], options: Namespace
) -> Summary:
    settings = {"data": options.data, "ranks": ",".join(map(str, choice.ranks))} | {
        name.replace("_", " "): str(getattr(options, name))
        for name in ("only_nonzeros", *_PARAMETERS)
        if getattr(options, name) is not None and name not in _UNUSED.get(choice.criterion, ())
    }
    names = ("rank", "low", "high", "criterion", "rule", "notes")
    numbers = {name: value for name in names if (value := getattr(choice, name)) is not None}
    numbers |= {"warnings": [*issued], "ranks": choice.to_rows(), "settings": settings}
    numbers["seconds"] = round(seconds, 3)
    lead = f"{choice.rank} topics, of {len(choice.ranks)} numbers tried"
    facts = {"topics": choice.rank, "tried": f"{choice.ranks[0]} to {choice.ranks[-1]}"}
    return Summary(
        title="Number of topics",
        lead=f"{choice if choice.criterion == 'words' else lead}; {size}.",
        facts=facts | {"criterion": choice.criterion, "time": f"{seconds:.1f} s"},
        settings=settings,
        numbers=numbers,
        warnings=numbers["warnings"],
        remarks=choice.notes,
        pictures=[curve_of(choice)],
    )
