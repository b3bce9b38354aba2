"""Fit of a completion, and its error at held-out entries beside that of plain means."""

from __future__ import annotations

import csv
import json
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import ssnmf_fast

from .. import save
from .._common.warn import UNINFORMED, quietly
from .._data.arrays import drop_entries, entry_rows
from .._solver.loop import ProgressBar
from ..completion._matrix_irls import MAX_ITER
from ..completion._methods import METHODS
from ..completion._noisy import Biases, ranks
from ..completion._read import counts, empty_lines, is_long, only_value, read_observed
from ..completion._result import Completion
from ..report import png
from ._outputs import MODEL_NAME
from ._predict import recommendations
from ._predictions import (
    Results,
    default_out,
    new_files,
    refuse_replacing,
    results_folder,
    write_csv,
)
from ._ratings import DUPLICATES, ROLES, Ratings, read_ratings
from ._read import Source, UsageError, load_matrix, source


@dataclass(frozen=True)
class Task:
    """The observed entries (with sorted rows), what they are, and how to complete them."""

    matrix: sp.csr_array
    things: str
    options: Any
    noisy: bool  # with shrinkage, and means of rows and of columns

    @property
    def density(self) -> float:
        """Share of the entries that are observed."""
        n, m = self.matrix.shape
        return float(self.matrix.nnz / (n * m))

    def check(self) -> None:
        """Raise UsageError for options that do not go together or with the data."""
        method = METHODS[self.options.method]
        n, m = self.matrix.shape
        if self.options.rank is not None and self.options.rank > min(n, m):
            raise UsageError(f"--rank {self.options.rank} is too large for {n} x {m} entries")
        if self.noisy and not (method.by_levels or self.options.method == "auto"):
            raise UsageError(f"--method {self.options.method} fits exactly; add --exact")
        if self.options.rank is not None and not method.takes_rank:
            raise UsageError(
                f"--method {self.options.method} determines the rank; leave --rank out"
            )

    def fit(self, matrix: sp.csr_array, rank: int | None, gamma: float | None) -> Completion:
        """Complete; None leaves the choice to validation, or for exact fits to the library."""
        options, observer = self.options, self._progress(rank is not None and gamma is not None)
        with observer:
            completion: Completion = quietly(
                UNINFORMED,
                ssnmf_fast.complete,
                matrix,
                method=options.method,
                n_components=rank,
                gamma_min=("validate" if gamma is None else gamma) if self.noisy else None,
                biases=self.noisy,
                max_iter=options.max_iter,
                random_state=options.seed,
                n_threads=options.threads,
                callback=observer,
            )
        if not options.clip:
            return completion
        return replace(completion, lower=float(matrix.data.min()), upper=float(matrix.data.max()))

    def _progress(self, chosen: bool) -> Any:
        """Return a callback of a fit; `chosen` tells whether rank and gamma are given."""
        if self.noisy:
            candidates = 0 if chosen else len(ranks(self.options.rank, self.matrix.shape))
            return _FitsBar(candidates + 1, "fit" if chosen else "choose")
        default = MAX_ITER if self.options.method == "auto" else None
        return ProgressBar(self.options.max_iter or default, "fit", "change")


def evaluate(task: Task) -> tuple[Completion, dict[str, Any]]:
    """Fit with some entries held out, and predict these; then fit all entries, and print both.

    Rank and gamma that the first fit chose by validation are those of the second.  Return this, and
    choices, errors and times for a report.
    """
    options, rank, gamma = task.options, task.options.rank, None
    errors: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    count, share = task.matrix.nnz, options.test_size
    held = np.zeros(count, dtype=bool)
    held[np.random.default_rng(options.seed).permutation(count)[: round(share * count)]] = True
    if held.all():
        raise UsageError(f"--test-size {share:g} leaves no entry to fit; there are {count}")
    if task.noisy:
        sought = "rank and shrinkage" if rank is None else "shrinkage"
        print(f"  choice    {sought}: by the error at a tenth of the {task.things}", flush=True)
    begin = time.perf_counter()
    if held.any():
        matrix, kept = task.matrix, drop_entries(task.matrix, held)
        rows, columns = entry_rows(matrix.indptr)[held], matrix.indices[held]
        completion = task.fit(kept, rank, None)
        seconds["evaluation"] = time.perf_counter() - begin
        biases = Biases(kept)
        predicted = {
            "model": completion.predict(rows, columns),
            "row and column means": biases.at(rows, columns),  # drawn to zero if of few entries
            "overall mean": kept.data.mean(),
        }
        for name, guess in predicted.items():
            gap = np.asarray(guess, dtype=np.float64) - matrix.data[held]
            root = np.sqrt(np.mean(gap**2))
            errors[name] = {"RMSE": float(root), "MAE": float(np.mean(np.abs(gap)))}
        if task.noisy:
            rank, gamma = max(1, completion.n_components), completion.gamma
        begin = time.perf_counter()
    completion = task.fit(task.matrix, rank, gamma)
    seconds["fit"] = time.perf_counter() - begin
    chosen = f"rank {completion.n_components}"
    if task.noisy:
        chosen += f", gamma {completion.gamma:.3g}"
    print(f"  fit       {chosen}, {completion.n_iter} iterations in {seconds['fit']:.2f} s")
    if not completion.converged:
        print("            stopped before the change fell below the tolerance; see --max-iter")
    if errors:
        print(f"\nError at {held.sum()} {task.things} held out from a first fit")
        print(f"  {'RMSE':>11}{'MAE':>11}")
    for name, error in errors.items():
        print(f"  {error['RMSE']:11.4g}{error['MAE']:11.4g}  {name}")
    return completion, {
        "density": task.density,
        "method": options.method,
        "noisy": task.noisy,
        "rank": completion.n_components,
        "gamma": completion.gamma,
        "iterations": completion.n_iter,
        "converged": completion.converged,
        "seed": options.seed,
        "clip": [completion.lower, completion.upper] if options.clip else None,
        "held_out": int(held.sum()),
        "errors": errors,
        "seconds": seconds,
    }


class _FitsBar(ProgressBar):
    """Show on standard error how many of the planned fits are done, and where the current one is.

    There are at most `total` fits: the search for a rank may end early.
    """

    def __init__(self, total: int, label: str) -> None:
        super().__init__(total, label)
        self._total, self._iteration = total, 0
        if self._bar is not None:
            self._bar.unit = "fit"

    def __call__(self, state: Any) -> bool:
        """Show the state; one whose iteration is no later belongs to the next fit."""
        if self._bar is not None:
            if state.iteration <= self._iteration and self._bar.n < self._total - 1:
                self._bar.update(1)
            self._iteration = state.iteration
            self._bar.set_postfix_str(
                f"rank {state.n_components}, gamma {state.gamma:.2g}, iteration {state.iteration}"
            )
        return False


MATRIX_ENDINGS = (".npy", ".npz", ".csv")
LARGEST_DENSE = 2e8  # entries, above which the factors are written instead (1.6 GB of float64)

_REPORT, _PREDICTIONS, _BEST = "report.json", "predictions.csv", "recommendations.csv"
_USERS, _ITEMS, _PICTURE = "users.csv", "items.csv", "singular_values.png"
_DEFAULT_TOP = 10
_LONG = "A table of user, item and rating is read from a .csv, .tsv or .jsonl file"
_NOT_KEPT: dict[str, Any] = {"observed": None, "iterate": None}  # of models in files


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand."""
    given = source(options)
    if options.out is None:
        options.out = default_out(options.data, *() if given.is_table else ("-completed.npz",))
    return (_complete_ratings if given.is_table else _complete_matrix)(given, options)


def _complete_ratings(given: Source, options: Any) -> dict[str, Any]:
    if Path(options.out).suffix.lower() in MATRIX_ENDINGS:
        raise UsageError(
            f"--out {options.out}: expected a folder, as {given} is a table of ratings"
        )
    begin = time.perf_counter()
    columns = [options.user, options.item, options.rating]
    ratings = read_ratings(given, columns, options.duplicates or DUPLICATES[0])
    task = Task(ratings.matrix, "ratings", options, noisy=not options.exact)
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
    with results_folder(options.out, about, [given.path]) as out:
        n, m = ratings.matrix.shape
        print("Completion of ratings\n")
        print(f"  data      {given}: {ratings.matrix.nnz} ratings of {m} items by {n} users")
        if ratings.n_merged:
            print(f"            {ratings.n_merged} more of the same pairs, merged with these")
        if len(ratings.empty):
            print(f"            {len(ratings.empty)} empty ratings, to be predicted")
        roles = ", ".join(f"{role} {name!r}" for role, name in ratings.names.items())
        print(f"  columns   {roles}; {task.density:.2%} of the pairs are rated", flush=True)
        _warn(task, given, ("user", "item"))
        completion, summary = evaluate(task)
        _write_ratings(out, task, ratings, completion, top)
        report = {
            "users": n,
            "items": m,
            "ratings": int(ratings.matrix.nnz),
            "merged": ratings.n_merged,
            "empty": len(ratings.empty),
            "columns": ratings.names,
            **summary,
        }
        report["seconds"]["all"] = time.perf_counter() - begin
        text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
        out.path(_REPORT).write_text(text, encoding="utf-8")
    out.show()
    return {**report, "out": str(out.folder), "files": out.names}


def _warn(task: Task, given: Source, names: tuple[str, str]) -> None:
    """Warn of users and items, or rows and columns, of which nothing is known."""
    one, filled = "entry", "0"
    if names == ROLES[:2]:
        one, filled = "rating", "0 (without --exact, they are means)"
    if task.noisy:
        filled = f"the overall mean plus the bias of the {' or the '.join(names)} that is known"
    empty, value = empty_lines(task.matrix), only_value(task.matrix)
    if any(empty):
        lines = counts(*empty, names)
        warnings.warn(
            f"{given} has no {one} for {lines}; predictions for them are {filled}", stacklevel=2
        )
    if value is not None:
        warnings.warn(
            f"all {task.matrix.nnz} {task.things} are {value:g}, so that all predictions are, and "
            "the errors mean nothing. If they stand for what users did, such as clicks (implicit "
            "feedback), what they did not do is 0, not missing: fit NMF to the whole matrix, as "
            "in docs/guide/completion.md",
            stacklevel=2,
        )


def _write_ratings(out: Results, task: Task, ratings: Ratings, completion: Any, top: int) -> None:
    """Write the model and the tables."""
    from ..plotting import singular_values

    def write(file: str, heads: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        write_csv(out.path(file), heads, rows, safe=task.options.safe_csv)

    users, items, matrix = ratings.users, ratings.items, ratings.matrix
    best = recommendations(completion, matrix, top)
    heads = ("user", "rank", "item", "predicted rating")
    write(_BEST, heads, ((users[u], rank, items[i], value) for u, rank, i, value in best))
    ids = {"row_ids": np.array(users), "column_ids": np.array(items)}
    save(replace(completion, **ids, **_NOT_KEPT), out.path(MODEL_NAME))
    # How many ratings each has; one of 0 counts as well.
    by_user = np.diff(matrix.indptr).tolist()
    by_item = np.bincount(matrix.indices, minlength=len(items)).tolist()
    places = range(len(users)), range(len(items))
    write(_USERS, ("place", "user", "ratings"), zip(places[0], users, by_user, strict=True))
    write(_ITEMS, ("place", "item", "ratings"), zip(places[1], items, by_item, strict=True))
    if len(ratings.empty):
        write(_PREDICTIONS, ("user", "item", "predicted rating"), _predicted(completion, ratings))
    out.written(_PICTURE, lambda: png(singular_values(completion.singular_values)))


def _predicted(completion: Any, ratings: Ratings) -> Iterator[tuple[str, str, float]]:
    """Yield user, item and prediction of the empty ratings, in the order of the table."""
    values = completion.predict(ratings.empty[:, 0], ratings.empty[:, 1])
    for (user, item), value in zip(ratings.empty.tolist(), values.tolist(), strict=True):
        yield ratings.users[user], ratings.items[item], value


def _complete_matrix(given: Source, options: Any) -> dict[str, Any]:
    path = given.path
    assert path is not None  # standard input is a table
    for name in (*ROLES, "duplicates", "top"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} belongs to a table of ratings; {path} is a matrix")
    if options.safe_csv:
        raise UsageError(f"--safe-csv is for names of users and items; {path} is a matrix")
    out = Path(options.out)
    if out.is_dir() or out.suffix.lower() not in MATRIX_ENDINGS:
        endings = ", ".join(MATRIX_ENDINGS)
        raise UsageError(f"--out {out}: expected a file ({endings}), as {path} is a matrix")
    refuse_replacing(out, [path])
    entries = read_observed(load_matrix(given), None, None, options.threads or 1)
    n, m = entries.shape
    if entries.nnz == n * m:
        raise UsageError(
            f"{path} has no missing entry; these are NaN in a dense matrix, and those that are not "
            f"stored in a sparse one. {_LONG}"
        )
    if is_long(entries):
        warnings.warn(f"the first two columns of {path} look like ids. {_LONG}", stacklevel=2)
    large = n * m > LARGEST_DENSE
    if large and out.suffix.lower() != ".npz":
        raise UsageError(
            f"the completed matrix has {n} x {m} entries, too many to write; give --out the ending "
            ".npz, for its factors"
        )
    task = Task(entries, "entries", options, noisy=options.noisy)
    task.check()
    with new_files(out.parent) as files:
        print("Completion of a matrix\n")
        print(f"  data      {path}: {n} x {m}, {entries.nnz} entries observed, {task.density:.2%}")
        _warn(task, given, ("row", "column"))
        completion, summary = evaluate(task)
        if large:
            save(replace(completion, **_NOT_KEPT), files.path(out))
        else:
            _write_dense(files.path(out), completion.to_dense(keep_observed=True))
    if large:
        print(f"\nThe factors are in {out}; ssnmf_fast.load(...).predict(rows, columns) reads them")
    else:
        print(f"\nThe completed matrix is in {out}; observed entries are as they were")
    sizes = {"rows": n, "columns": m, "observed": int(entries.nnz)}
    return {**sizes, **summary, "out": str(out)}


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
