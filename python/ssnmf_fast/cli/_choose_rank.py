"""``ssnmf-fast choose-rank``: the number of topics, with its curve as a table and a report."""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import scipy.sparse as sp

from ..estimators import BayesianNMF
from ..report import Picture, Report, png, render
from ..selection import RankChoice, choose_rank
from ._fit import inputs_of, read_data, with_settings_of_fit
from ._predictions import Results, default_out, results_folder, write_csv
from ._read import UsageError

_ENDING = "-ranks"
_TABLE, _PICTURE, _METRICS, _REPORT = "ranks.csv", "ranks.png", "metrics.json", "report.html"
_FILES = {
    _TABLE: "scores of every rank, in all splits",
    _PICTURE: "the same as a picture",
    _METRICS: "the choice and its settings",
    _REPORT: "all of it on one page: open this first",
}
# Options that a criterion makes no use of.
_UNUSED = {"stability": {"splits", "held_out", "only_nonzeros"}}
_UNUSED["bound"] = {*_UNUSED["stability"], "rule"}
# Options, and the parameters that they set.
_PARAMETERS = {
    "criterion": "criterion",
    "loss": "loss",
    "rule": "rule",
    "splits": "n_splits",
    "starts": "n_starts",
    "held_out": "validation_fraction",
    "max_iter": "max_iter",
    "tol": "tol",
    "seed": "random_state",
    "threads": "n_threads",
}


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand; return the choice, its scores and settings, and where they are."""
    given = {parameter: getattr(options, name) for name, parameter in _PARAMETERS.items()}
    if options.criterion == "bound":
        _refuse_what_bound_has_not(options)
        own = {name: given.pop(name) for name in ("max_iter", "tol")}
        given["estimator"] = BayesianNMF(**{k: v for k, v in own.items() if v is not None})
    settings = with_settings_of_fit(options)
    inputs = inputs_of(settings)
    with results_folder(options.out or default_out(options.data, _ENDING), _FILES, inputs) as out:
        data = read_data(settings)
        begin = time.perf_counter()
        choice = choose_rank(
            data.X,
            options.ranks,
            mask_zeros=not options.only_nonzeros,
            verbose=sys.stderr.isatty(),
            **given,
        )
        seconds = time.perf_counter() - begin
        content = _write(choice, data.X, seconds, out, options)
    _print(choice)
    out.show()
    return {**content, "out": str(out.folder), "files": sorted(out.names)}


def _refuse_what_bound_has_not(options: Any) -> None:
    if options.loss is not None:
        raise UsageError(
            "--criterion bound has no --loss: its model takes the data as counts; leave --loss out"
        )


def _write(
    choice: RankChoice, X: Any, seconds: float, out: Results, options: Any
) -> dict[str, Any]:
    """Write every file; return the choice as it is in JSON."""
    rows = [_without_nan(row) for row in choice.to_rows()]
    write_csv(out.path(_TABLE), [*rows[0]], ([*row.values()] for row in rows), safe=False)
    picture = out.written(_PICTURE, lambda: png(choice.plot()))
    settings = [
        (name.replace("_", " "), str(getattr(options, name)))
        for name in ("data", "ranks", "only_nonzeros", *_PARAMETERS)
        if getattr(options, name) is not None and name not in _UNUSED.get(choice.criterion, ())
    ]
    content = {
        "rank": choice.rank,
        "criterion": choice.criterion,
        "rule": choice.rule,
        "notes": choice.notes,
        "ranks": rows,
        "seconds": round(seconds, 3),
        "settings": dict(settings),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    out.path(_METRICS).write_text(text, encoding="utf-8")
    out.written(_REPORT, lambda: render(_report(choice, X, seconds, picture, settings)).encode())
    return content


def _report(
    choice: RankChoice,
    X: Any,
    seconds: float,
    picture: bytes | None,
    settings: list[tuple[str, str]],
) -> Report:
    n, m = X.shape
    size = f"{n} samples x {m} features" + (f", {X.nnz} nonzeros" if sp.issparse(X) else "")
    what = f"The {choice.label} of every number of topics"
    if choice.criterion == "bound":
        what += ": the largest of all starts; points are single starts"
    elif choice.scores.shape[1] > 1:
        what += ": means of the splits, with one standard error; points are single splits"
    better = "Larger" if choice.larger_is_better else "Smaller"
    caption = f"{what}. {better} is better."
    return Report(
        title="Number of topics",
        lead=f"{choice.rank} topics, of {len(choice.ranks)} numbers tried; {size}.",
        facts=[
            ("topics", str(choice.rank)),
            ("tried", f"{choice.ranks[0]} to {choice.ranks[-1]}"),
            ("criterion", choice.criterion),
            ("time", f"{seconds:.1f} s"),
        ],
        settings=settings,
        remarks=choice.notes,
        pictures=[Picture("Curve", caption, picture)],
    )


def _print(choice: RankChoice) -> None:
    """Print the choice, and the mean scores of all ranks."""
    print(f"{choice.rank} topics")
    for note in choice.notes:
        print(note)
    print(f"\nTopics  {choice.label}")
    for row in choice.to_rows():
        error = row["standard_error"]
        spread = "" if math.isnan(error) else f" +- {error:.2g}"
        mark = "  <" if row["rank"] == choice.rank else ""
        left = "  (pruned)" if row["pruned"] else ""
        print(f"{row['rank']:>6}  {row['mean']:.6g}{spread}{left}{mark}")


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for files, where nothing stands for NaN."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in row.items()
    }
