"""``ssnmf-fast complete``: a table of ratings or a matrix with holes in, the missing values out."""

from __future__ import annotations

import csv
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._errors import UsageError
from ._evaluate import Task, Trial, evaluate, print_trial
from ._folder import Results, new_files, refuse_replacing, results_folder
from ._outputs import MODEL_NAME
from ._predict import recommendations
from ._predictions import write_csv
from ._ratings import DUPLICATES, ROLES, Ratings, read_ratings
from ._source import Source, load_matrix, source

MATRIX_ENDINGS = (".npy", ".npz", ".csv")
LARGEST_DENSE = 2e8  # entries, above which the factors are written instead (1.6 GB of float64)

_REPORT, _PREDICTIONS, _BEST = "report.json", "predictions.csv", "recommendations.csv"
_USERS, _ITEMS, _PICTURE = "users.csv", "items.csv", "singular_values.png"
_DEFAULT_TOP = 10


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand."""
    given = source(options)
    return _ratings(given, options) if given.is_table else _matrix(given, options)


def _ratings(given: Source, options: Any) -> dict[str, Any]:
    if Path(options.out).suffix.lower() in MATRIX_ENDINGS:
        raise UsageError(
            f"--out {options.out}: expected a folder, as {given} is a table of ratings"
        )
    begin = time.perf_counter()
    columns = [options.user, options.item, options.rating]
    ratings = read_ratings(given, columns, options.duplicates or DUPLICATES[0])
    size = (len(ratings.users), len(ratings.items))
    entries = sp.coo_array((ratings.values, (ratings.rows, ratings.columns)), shape=size)
    task = Task(entries.tocsr(), options, noisy=not options.exact, biases=not options.exact)
    task.check()
    top = options.top or _DEFAULT_TOP
    about = {
        _BEST: f"the best {top} items for every user that they have not rated",
        _PREDICTIONS: f"the {len(ratings.empty)} empty ratings of the table",
        _REPORT: "sizes, choices, errors and times",
        MODEL_NAME: "the model, for `ssnmf-fast predict` and ssnmf_fast.load",
        _USERS: "place of every user in the model",
        _ITEMS: "place of every item in the model",
        _PICTURE: "how fast the singular values of the model fall",
    }
    with results_folder(options.out, about, [given.path]) as results:
        _print_ratings(given, ratings, task)
        _warn(task, given, ("user", "item"))
        trial = _fitted(task, "ratings")
        _write_ratings(results, task, ratings, trial, top, begin)
    results.show()
    report = json.loads((results.folder / _REPORT).read_text(encoding="utf-8"))
    return {**report, "out": str(results.folder), "files": results.names}


def _print_ratings(given: Source, ratings: Ratings, task: Task) -> None:
    print("Completion of ratings\n")
    n, m = task.matrix.shape
    roles = ", ".join(f"{role} {name!r}" for role, name in zip(ROLES, ratings.names, strict=True))
    print(f"  data      {given}: {task.matrix.nnz} ratings of {m} items by {n} users")
    if ratings.n_merged:
        print(f"            {ratings.n_merged} more of the same pairs, merged with these")
    if len(ratings.empty):
        print(f"            {len(ratings.empty)} empty ratings, to be predicted")
    print(f"  columns   {roles}; {task.density:.2%} of the pairs are rated", flush=True)


def _warn(task: Task, given: Source, names: tuple[str, str]) -> None:
    """Warn of users and items, or rows and columns, of which nothing is known."""
    from ..completion._read import counts, empty_lines, only_value

    is_ratings = names[0] == "user"
    empty, value = empty_lines(task.matrix), only_value(task.matrix)
    if any(empty):
        what = "rating" if is_ratings else "entry"
        how = "0"
        if task.biases:
            how = "the overall mean plus the bias of the user or the item that is known"
        elif is_ratings:
            how = "0 (without --exact, they are means)"
        warnings.warn(
            f"{given} has no {what} for {counts(*empty, names)}; predictions for them are {how}",
            stacklevel=2,
        )
    if value is not None:
        what = "ratings" if is_ratings else "entries"
        warnings.warn(
            f"all {task.matrix.nnz} {what} are {value:g}, so that all predictions are, and the "
            "errors mean nothing. If they stand for what users did, such as clicks (implicit "
            "feedback), what they did not do is 0, not missing: fit NMF to the whole matrix, as "
            "in docs/completion.md",
            stacklevel=2,
        )


def _fitted(task: Task, things: str) -> Trial:
    """Fit with entries held out, then with all of them, and print the errors."""
    if task.noisy:
        sought = "rank and shrinkage" if task.options.rank is None else "shrinkage"
        print(f"  choice    {sought}: by the error at a tenth of the {things}", flush=True)
    trial = evaluate(task)
    print_trial(task, trial, things)
    return trial


def _write_ratings(
    out: Results, task: Task, ratings: Ratings, trial: Trial, top: int, begin: float
) -> None:
    """Write every file."""
    from .. import save
    from ..plotting import singular_values
    from ..report import png

    completion = trial.completion
    rows = (
        (ratings.users[user], rank, ratings.items[item], value)
        for user, rank, item, value in recommendations(completion, task.matrix, top)
    )
    safe = task.options.safe_csv
    write_csv(out.path(_BEST), ("user", "rank", "item", "predicted rating"), rows, safe=safe)
    users, items = np.array(ratings.users), np.array(ratings.items)
    save(replace(completion, row_ids=users, column_ids=items), out.path(MODEL_NAME))
    tables = ((_USERS, "user", ratings.users, 1), (_ITEMS, "item", ratings.items, 0))
    for file, name, ids, axis in tables:
        lines = zip(range(len(ids)), ids, _counts(task, axis).tolist(), strict=True)
        write_csv(out.path(file), ("place", name, "ratings"), lines, safe=safe)
    if len(ratings.empty):
        write_csv(
            out.path(_PREDICTIONS),
            ("user", "item", "predicted rating"),
            _predicted(completion, ratings),
            safe=safe,
        )
    out.written(_PICTURE, lambda: png(singular_values(completion.singular_values)))
    _write_report(out.path(_REPORT), task, ratings, trial, time.perf_counter() - begin)


def _write_report(path: Path, task: Task, ratings: Ratings, trial: Trial, seconds: float) -> None:
    """Write sizes, choices, errors and times as JSON."""
    report = {
        "users": len(ratings.users),
        "items": len(ratings.items),
        "ratings": int(task.matrix.nnz),
        "merged": ratings.n_merged,
        "empty": len(ratings.empty),
        "columns": dict(zip(ROLES, ratings.names, strict=True)),
        **trial.summary(task),
        "seconds": {**trial.seconds, "all": seconds},
    }
    text = json.dumps(report, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _predicted(completion: Any, ratings: Ratings) -> Iterator[tuple[str, str, float]]:
    """Yield user, item and prediction of the empty ratings, in the order of the table."""
    values = completion.predict(ratings.empty[:, 0], ratings.empty[:, 1])
    for (user, item), value in zip(ratings.empty.tolist(), values.tolist(), strict=True):
        yield ratings.users[user], ratings.items[item], value


def _counts(task: Task, axis: int) -> Any:
    """Ratings of every user (axis 1) or item (axis 0); one of 0 counts as well."""
    matrix = task.matrix
    if axis == 1:
        return np.diff(matrix.indptr)
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def _matrix(given: Source, options: Any) -> dict[str, Any]:
    from .. import save
    from ..completion._read import read_observed

    path = given.path
    assert path is not None  # standard input is a table
    _refuse_columns(path, options)
    out = _output_file(path, options.out)
    entries = read_observed(load_matrix(given), None, None, options.threads or 1)
    n, m = entries.shape
    if entries.nnz == n * m:
        raise UsageError(
            f"{path} has no missing entry; these are NaN in a dense matrix, and those that are not "
            "stored in a sparse one"
        )
    large = n * m > LARGEST_DENSE
    if large and out.suffix.lower() != ".npz":
        raise UsageError(
            f"the completed matrix has {n} x {m} entries, too many to write; give --out the ending "
            ".npz, for its factors"
        )
    task = Task(entries, options, noisy=options.noisy, biases=False)
    task.check()
    with new_files(out.parent) as files:
        print("Completion of a matrix\n")
        print(f"  data      {path}: {n} x {m}, {entries.nnz} entries observed, {task.density:.2%}")
        _warn(task, given, ("row", "column"))
        trial = _fitted(task, "entries")
        if large:
            save(trial.completion, files.path(out))
        else:
            _write_dense(files.path(out), trial.completion.to_dense(keep_observed=True))
    if large:
        print(f"\nThe factors are in {out}; ssnmf_fast.load(...).predict(rows, columns) reads them")
    else:
        print(f"\nThe completed matrix is in {out}; observed entries are as they were")
    sizes = {"rows": n, "columns": m, "observed": int(entries.nnz)}
    return {**sizes, **trial.summary(task), "seconds": trial.seconds, "out": str(out)}


def _refuse_columns(path: Path, options: Any) -> None:
    for name in (*ROLES, "duplicates", "top"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} belongs to a table of ratings; {path} is a matrix")
    if options.safe_csv:
        raise UsageError(f"--safe-csv is for names of users and items; {path} is a matrix")


def _output_file(path: Path, name: str) -> Path:
    out = Path(name)
    if out.is_dir() or out.suffix.lower() not in MATRIX_ENDINGS:
        endings = ", ".join(MATRIX_ENDINGS)
        raise UsageError(f"--out {out}: expected a file ({endings}), as {path} is a matrix")
    refuse_replacing(out, [path])
    return out


def _write_dense(path: Path, dense: Any) -> None:
    ending = path.suffix.lower()
    with path.open("wb") as file:  # NumPy would add a second ending to .NPY and .NPZ
        if ending == ".npy":
            np.save(file, dense)
            return
        if ending == ".npz":
            np.savez(file, X=dense)
            return
    with path.open("w", encoding="utf-8", newline="") as text:
        # Not write_csv: a value must come back as it was.
        csv.writer(text).writerows(row.tolist() for row in dense)
