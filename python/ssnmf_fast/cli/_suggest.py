"""Whether more labels would help: what a fit to half of them predicts, beside a fit to most."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._common.arrays import Array
from ..report import Judged
from ._fit import inputs_of, read_data, train, with_settings_of_fit
from ._fitted import Data, Fitted
from ._labels import SampleLabels, warn_of_labels
from ._models import check_labels, choose_model
from ._more_labels import column_of_labels
from ._outputs import HARDER, SEPARATOR
from ._predictions import (
    SAMPLE,
    Output,
    Rows,
    default_out,
    output_of,
    refuse_replacing,
    table_of_samples,
)
from ._quality import judge, not_known
from ._read import UsageError

_LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Learning:
    """Mean scores of labels that were hidden: with half of the labels, and by validation.

    The score of a sample is 1 for the right class, else 0; of several labels it is their F.
    """

    half: float
    full: float
    error: float  # standard error of the difference

    @property
    def helps(self) -> bool:
        """Whether the second half of the labels has gained a point, and more than by chance."""
        return self.full - self.half > max(self.error, _LEAST_GAIN)

    @property
    def text(self) -> str:
        """What this says of more labels, in a line."""
        verdict = "more labels help" if self.helps else "more labels may help little"
        return f"{verdict}: {self.half:.1%} with half of the labels, {self.full:.1%} with most"

    def content(self) -> dict[str, Any]:
        """Return the same for JSON."""
        return {"score_half": self.half, "score": self.full, "more_labels_help": self.helps}


def learning_of(fitted: Fitted, judged: Judged | None) -> Learning | None:
    """Fit to each half of the labels, and predict the other; None without a validation."""
    if judged is None or not judged.by_validation:
        return None
    labels = fitted.labels
    assert labels is not None
    hidden, half = fitted.model.validation_folds_ >= 0, _halves(labels)
    guessed = np.zeros_like(judged.truth)
    for number in (0, 1):
        y = labels.single_or_indicators()
        y[half != number] = np.nan if labels.several else None
        rows = hidden & (half == 1 - number)
        with warnings.catch_warnings():  # of convergence, of what validation finds
            warnings.simplefilter("ignore")
            model = clone(fitted.model).fit(fitted.X, y)
        guessed[rows[hidden]] = Fitted(X=fitted.X[rows], model=model).predicted
    by_half, by_all = (_scores(judged.truth, one) for one in (guessed, judged.guessed))
    error = float((by_all - by_half).std() / np.sqrt(len(by_all)))
    return Learning(float(by_half.mean()), float(by_all.mean()), error)


def _halves(labels: SampleLabels) -> Array:
    """Return in which half a label is, -1 for none; each has half of every class."""
    half = np.full(len(labels.each), -1)
    order = np.random.default_rng(0).permutation(np.flatnonzero(labels.known))
    if not labels.several:
        order = order[np.argsort(labels.single()[order].astype(str), kind="stable")]
    half[order] = np.arange(len(order)) % 2
    return half


def _scores(truth: Array, guessed: Array) -> Array:
    """Return the score of every sample."""
    if truth.ndim == 1:
        return np.asarray(truth == guessed, dtype=np.float64)
    counts = (truth + guessed).sum(axis=1)
    return np.asarray(2 * (truth * guessed).sum(axis=1) / np.maximum(counts, 1))


_ENDING = "-to-label.csv"
_PREDICTION, _PROBABILITY = "prediction", "probability"
_SCORES = ("accuracy", "micro_f", "macro_f")  # of the model, not of those beside it
_DIGITS = 3  # of a probability that a person reads


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand; return how many samples are suggested, and what is known so far."""
    if not options.labels:
        raise UsageError("suggest needs --labels, the column with the labels that there are")
    options = with_settings_of_fit(options)
    options.out = options.out or default_out(options.data, _ENDING)
    out = output_of(options)
    if out.path is not None:
        refuse_replacing(out.path, inputs_of(options))
        if out.path.exists():
            raise UsageError(f"--out: {out} exists, and may hold labels; name another file")
    model = choose_model(options)
    model.complete_options(options)
    data = read_data(options)
    assert data.labels is not None
    warn_of_labels(data.labels, options.labels, options.label_separator)
    check_labels(model, data.labels, options.rank)
    rest = np.setdiff1d(np.flatnonzero(~data.labels.known), [*data.labels.passed_over])
    if not len(rest):
        raise UsageError("every sample has a label or was suggested before; none is left")
    _refuse_own_names(data, options)
    fitted = train(model, data, options)
    chosen = rest[fitted.model.suggest(data.X[rest], options.count)]
    out.write(*_table(fitted, chosen, options))
    judged = None if out.path is None else judge(fitted)  # there is no place to tell it
    learning = learning_of(fitted, judged)
    scores = [] if judged is None else [one for one in judged.measures() if one.key in _SCORES]
    if out.path is not None:
        lines = [f"{one.name}: {one.text}" for one in scores] or [not_known(fitted)]
        lines += [HARDER] if options.more_labels and scores else []
        lines += [] if learning is None else [learning.text]
        print("\n".join([*lines, *_what_next(len(chosen), out, options)]))
    return {
        "out": str(out),
        "suggested": len(chosen),
        "labeled": int(data.labels.known.sum()),
        "measures": {one.key: one.value for one in scores},
        "intervals": {one.key: list(one.interval) for one in scores if one.interval},
        **({} if learning is None else learning.content()),
    }


def _refuse_own_names(data: Data, options: Any) -> None:
    text = None if data.vectorizer is None else data.vectorizer.column
    for name in (text, column_of_labels(options.labels)):
        if name in (SAMPLE, _PREDICTION, _PROBABILITY):
            raise UsageError(
                f"the table to fill in has a column {name!r} of its own; give that of the data "
                "another name"
            )


def _table(fitted: Fitted, chosen: Array, options: Any) -> tuple[list[str], Rows]:
    """Return the table to fill in: the samples, what is predicted, and no label."""
    columns: dict[str, Sequence[Any]] = {}
    separator = options.label_separator or SEPARATOR
    if fitted.texts is not None and fitted.vectorizer is not None:
        columns[fitted.vectorizer.column] = [fitted.texts[row] for row in chosen]
    columns[_PREDICTION], columns[_PROBABILITY] = _predictions(fitted, chosen, separator)
    columns[column_of_labels(options.labels)] = [""] * len(chosen)
    ids = fitted.ids
    if ids is not None:
        ids = ids[0], [ids[1][row] for row in chosen]
    names, rows = table_of_samples(ids, list(columns.items()))
    return names, ([row, *cells[1:]] for row, cells in zip(chosen.tolist(), rows, strict=True))


def _predictions(fitted: Fitted, chosen: Array, separator: str) -> tuple[list[str], list[Any]]:
    """Return predicted labels and their probabilities; several in one cell, where there are."""
    chances, found = fitted.chances[chosen].round(_DIGITS), fitted.predicted[chosen]
    if found.ndim == 1:
        return found.tolist(), chances.max(axis=1).tolist()
    names = np.array([str(name) for name in fitted.model.classes_])
    labels = [separator.join(names[row > 0]) for row in found]
    pairs = zip(chances, found, strict=True)
    return labels, [separator.join(f"{p:g}" for p in row[one > 0]) for row, one in pairs]


def _what_next(count: int, out: Output, options: Any) -> list[str]:
    """Return what to do with the table."""
    column = column_of_labels(options.labels)
    more = " ".join(f"--more-labels {name}" for name in [*(options.more_labels or ()), out])
    return [
        f"{count} samples to label are in {out}: fill in its column {column!r}, then call",
        f"`ssnmf-fast fit` or suggest with the same options and {more}",
    ]
