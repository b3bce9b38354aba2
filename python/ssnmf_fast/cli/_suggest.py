"""``ssnmf-fast suggest``: the samples that are worth labeling next, in a table to fill in."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.arrays import Array
from ..report import estimate_gain, explain_no_estimate
from ._findings import HARDER
from ._fit import list_inputs, read_data, train
from ._labels import SAMPLE, column_to_fill, warn_of_labels
from ._models import Fitted, check_labels, choose_model
from ._outputs import SEPARATOR, Rows, default_out, find_output, make_table, refuse_replacing
from ._read import UsageError

_PREDICTION, _PROBABILITY = "prediction", "probability"
_SCORES = ("accuracy", "micro_f", "macro_f")  # of the model, not of simple methods
_DIGITS = 3  # of a probability that a person reads


def run(options: Namespace) -> dict[str, Any]:
    """Run the subcommand; return how many samples are suggested, and what is known so far."""
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
            raise UsageError(
                f"the table to fill in has a column {name!r} of its own; give that of the data "
                "another name"
            )
    fitted = train(model, data, options)
    chosen = rest[fitted.model.suggest(data.X[rest], options.count)]
    separator = options.label_separator or SEPARATOR
    out.write(*_make_table(fitted, chosen, column, separator))
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
        print(
            *lines,
            f"{len(chosen)} samples to label are in {out}: fill in its column {column!r}, then run",
            f"`ssnmf-fast fit` or suggest with the same options and {more}",
            sep="\n",
        )
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


def _make_table(
    fitted: Fitted, chosen: Array, column: str, separator: str
) -> tuple[list[str], Rows]:
    """Return the table to fill in: the samples, what is predicted, and no label."""
    columns: dict[str, Sequence[Any]] = {}
    if fitted.texts is not None and fitted.vectorizer is not None:
        columns[fitted.vectorizer.column] = [fitted.texts[row] for row in chosen]
    proba, predicted = fitted.proba[chosen].round(_DIGITS), fitted.predicted[chosen]
    if predicted.ndim == 1:
        columns[_PREDICTION] = predicted.tolist()
        columns[_PROBABILITY] = proba.max(axis=1).tolist()
    else:  # several in one cell
        classes = np.array([str(name) for name in fitted.model.classes_])
        columns[_PREDICTION] = [separator.join(classes[row > 0]) for row in predicted]
        columns[_PROBABILITY] = [
            separator.join(f"{p:g}" for p in row[one > 0])
            for row, one in zip(proba, predicted, strict=True)
        ]
    columns[column] = [""] * len(chosen)
    ids = fitted.ids
    if ids is not None:
        ids = ids[0], [ids[1][row] for row in chosen]
    names, rows = make_table(ids, list(columns.items()))
    return names, ([row, *cells[1:]] for row, cells in zip(chosen.tolist(), rows, strict=True))
