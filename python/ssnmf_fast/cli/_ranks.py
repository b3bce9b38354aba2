"""``ssnmf-fast choose-rank``: the number of topics, with its curve as a table and a report."""

from __future__ import annotations

import math
import sys
import time
from argparse import Namespace
from typing import Any

import scipy.sparse as sp

from ..estimators import BayesianNMF
from ..report import Picture, Report, png, render
from ..selection import RankChoice, choose_rank
from ._fit import list_inputs, read_data
from ._outputs import METRICS_NAME, Results, default_out, results_folder
from ._read import UsageError

_TABLE, _PICTURE, _REPORT = "ranks.csv", "ranks.png", "report.html"
_FILES = {
    _TABLE: "scores of every rank, in all splits",
    _PICTURE: "the same as a picture",
    METRICS_NAME: "the choice and its settings",
    _REPORT: "all of it on one page: open this first",
}
# Options that a criterion does not use.
_UNUSED = {"stability": {"splits", "validation_fraction", "only_nonzeros"}}
_UNUSED["bound"] = {*_UNUSED["stability"], "rule"}
# Options, and the parameters that they set, some of other names.
_OPTIONS = (
    *("criterion", "loss", "rule", "splits", "starts", "validation_fraction"),
    *("max_iter", "tol", "seed"),
)
_RENAMED = {"splits": "n_splits", "starts": "n_starts", "seed": "random_state"}
_PARAMETERS = {name: _RENAMED.get(name, name) for name in _OPTIONS} | {"threads": "n_threads"}


def run(options: Namespace) -> dict[str, Any]:
    params = {parameter: getattr(options, name) for name, parameter in _PARAMETERS.items()}
    if options.criterion == "bound":
        if options.loss is not None:
            raise UsageError("--loss is not used by --criterion bound, whose model is of counts")
        stops = {name: params.pop(name) for name in ("max_iter", "tol")}
        params["estimator"] = BayesianNMF(**{k: v for k, v in stops.items() if v is not None})
    folder = options.out or default_out(options.data, "-ranks")
    with results_folder(folder, _FILES, list_inputs(options)) as out:
        X = read_data(options).X
        begin = time.perf_counter()
        choice = choose_rank(
            X,
            options.ranks,
            mask_zeros=not options.only_nonzeros,
            verbose=sys.stderr.isatty(),
            **params,
        )
        content = _write(choice, X, time.perf_counter() - begin, out, options)
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
    return {**content, **out.show()}


def _write(
    choice: RankChoice, X: Any, seconds: float, out: Results, options: Namespace
) -> dict[str, Any]:
    rows = [
        {name: None if value != value else value for name, value in row.items()}  # NaN
        for row in choice.to_rows()
    ]
    out.write_csv(_TABLE, [*rows[0]], ([*row.values()] for row in rows))
    picture = out.write(_PICTURE, lambda: png(choice.plot()))
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
    out.write_json(METRICS_NAME, content)
    size = "{} samples x {} features".format(*X.shape)
    size += f", {X.nnz} nonzeros" if sp.issparse(X) else ""
    what = f"The {choice.label} of every number of topics"
    if choice.criterion == "bound":
        what += ": the largest of all starts; points are single starts"
    elif choice.scores.shape[1] > 1:
        what += ": means of the splits, with one standard error; points are single splits"
    better = "Larger" if choice.larger_is_better else "Smaller"
    report = Report(
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
        pictures=[Picture("Curve", f"{what}. {better} is better.", picture)],
    )
    out.write(_REPORT, lambda: render(report).encode())
    return content
