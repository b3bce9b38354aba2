"""``ssnmf-fast complete``: ratings or a matrix with holes in, a model and predictions out."""

from __future__ import annotations

import csv
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import ssnmf_fast

from .._common.arrays import Array
from .._common.warn import UNINFORMED, quietly
from .._data.arrays import drop_entries, entry_rows
from .._solver.loop import ProgressBar
from ..completion._complete import counts, empty_lines, is_long, only_value, read_observed
from ..completion._matrix_irls import MAX_ITER
from ..completion._methods import METHODS
from ..completion._noisy import Biases, ranks
from ..completion._result import Completion
from ..plotting import singular_values
from ..report import png
from ._outputs import (
    MODEL_NAME,
    Results,
    default_out,
    new_files,
    refuse_replacing,
    results_folder,
    write_csv,
)
from ._ratings import DUPLICATES, ROLES, Ratings, read_ratings
from ._read import Source, UsageError, find_source, load_matrix, warn


@dataclass(frozen=True)
class Task:
    """The observed entries (with sorted rows), what they are, and how to complete them."""

    matrix: sp.csr_array
    things: str
    options: Namespace
    noisy: bool  # with shrinkage, and means of rows and of columns

    @property
    def density(self) -> float:
        n, m = self.matrix.shape
        return float(self.matrix.nnz / (n * m))

    def check(self) -> None:
        """Raise UsageError for options that do not go together or with the data."""
        method, rank = METHODS[self.options.method], self.options.rank
        n, m = self.matrix.shape
        if rank is not None and rank > min(n, m):
            raise UsageError(f"--rank {rank} is too large for {n} x {m} entries")
        if self.noisy and not (method.by_levels or self.options.method == "auto"):
            raise UsageError(f"--method {self.options.method} fits exactly; add --exact")
        if rank is not None and not method.takes_rank:
            name = self.options.method
            raise UsageError(f"--method {name} determines the rank; leave --rank out")

    def fit(self, matrix: sp.csr_array, rank: int | None, gamma: float | None) -> Completion:
        options = self.options
        if self.noisy:
            chosen = rank is not None and gamma is not None
            candidates = 0 if chosen else len(ranks(options.rank, self.matrix.shape))
            observer: ProgressBar = _FitsBar(candidates + 1, "fit" if chosen else "choose")
        else:
            default = MAX_ITER if options.method == "auto" else None
            observer = ProgressBar(options.max_iter or default, "fit", "change")
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


class _FitsBar(ProgressBar):
    """Show how many of at most `total` fits are done, and where the current one is."""

    def __init__(self, total: int, label: str) -> None:
        super().__init__(total, label)
        self._total, self._iteration = total, 0
        if self._bar is not None:
            self._bar.unit = "fit"

    def __call__(self, state: Any) -> bool:
        if self._bar is not None:  # a state whose iteration is no later is of the next fit
            if state.iteration <= self._iteration and self._bar.n < self._total - 1:
                self._bar.update(1)
            self._iteration = state.iteration
            self._bar.set_postfix_str(
                f"rank {state.n_components}, gamma {state.gamma:.2g}, iteration {state.iteration}"
            )
        return False


def evaluate(task: Task) -> tuple[Completion, dict[str, Any]]:
    """Fit with some entries held out, and predict these; then fit all entries, and print both."""
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
        predicted = {
            "model": completion.predict(rows, columns),
            "row and column means": Biases(kept).at(rows, columns),  # shrunken if of few entries
            "overall mean": kept.data.mean(),
        }
        for name, values in predicted.items():
            gap = np.asarray(values, dtype=np.float64) - matrix.data[held]
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


MATRIX_ENDINGS = (".npy", ".npz", ".csv")
LARGEST_DENSE = 2e8  # entries, above which the factors are written instead (1.6 GB of float64)

_REPORT, _PREDICTIONS, _BEST = "report.json", "predictions.csv", "recommendations.csv"
_USERS, _ITEMS, _PICTURE = "users.csv", "items.csv", "singular_values.png"
_DEFAULT_TOP = 10
_BLOCK_ENTRIES = 4_000_000  # predictions held at a time (32 MB of float64)
_LONG = "A table of user, item and rating is read from a .csv, .tsv or .jsonl file"
_NOT_KEPT: dict[str, Any] = {"observed": None, "iterate": None}  # of models in files


def run(options: Namespace) -> dict[str, Any]:
    source = find_source(options)
    if source.is_table:
        options.out = options.out or default_out(options.data)
        return _complete_ratings(source, options)
    options.out = options.out or default_out(options.data, "-completed.npz")
    return _complete_matrix(source, options)


def _complete_ratings(source: Source, options: Namespace) -> dict[str, Any]:
    if Path(options.out).suffix.lower() in MATRIX_ENDINGS:
        raise UsageError(f"--out {options.out}: expected a folder; {source} is a table of ratings")
    begin = time.perf_counter()
    columns = [options.user, options.item, options.rating]
    ratings = read_ratings(source, columns, options.duplicates or DUPLICATES[0])
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
    with results_folder(options.out, about, [source.path]) as out:
        n, m = ratings.matrix.shape
        print("Completion of ratings\n")
        print(f"  data      {source}: {ratings.matrix.nnz} ratings of {m} items by {n} users")
        if ratings.n_merged:
            print(f"            {ratings.n_merged} more of the same pairs, merged with these")
        if len(ratings.empty):
            print(f"            {len(ratings.empty)} empty ratings, to be predicted")
        roles = ", ".join(f"{role} {name!r}" for role, name in ratings.names.items())
        print(f"  columns   {roles}; {task.density:.2%} of the pairs are rated", flush=True)
        _warn(task, source, ("user", "item"))
        completion, summary = evaluate(task)
        _write_ratings(out, options.safe_csv, ratings, completion, top)
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
        out.write_json(_REPORT, report)
    out.show()
    return {**report, "out": str(out.folder), "files": out.names}


def _warn(task: Task, source: Source, names: tuple[str, str]) -> None:
    one, filled = "entry", "0"
    if names == ROLES[:2]:
        one, filled = "rating", "0 (without --exact, they are means)"
    if task.noisy:
        filled = f"the overall mean plus the bias of the {' or the '.join(names)} that is known"
    empty, value = empty_lines(task.matrix), only_value(task.matrix)
    if any(empty):
        lines = counts(*empty, names)
        warn(f"{source} has no {one} for {lines}; predictions for them are {filled}")
    if value is not None:
        warn(
            f"all {task.matrix.nnz} {task.things} are {value:g}, so that all predictions are, and "
            "the errors mean nothing. If they stand for what users did, such as clicks (implicit "
            "feedback), what they did not do is 0, not missing: fit NMF to the whole matrix, as "
            "in docs/guide/completion.md"
        )


def _write_ratings(
    out: Results, safe: bool, ratings: Ratings, completion: Completion, top: int
) -> None:
    def write(file: str, heads: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        write_csv(out.path(file), heads, rows, safe=safe)

    users, items, matrix = ratings.users, ratings.items, ratings.matrix
    best = _recommend(completion, matrix, top)
    heads = ("user", "rank", "item", "predicted rating")
    write(_BEST, heads, ((users[u], rank, items[i], value) for u, rank, i, value in best))
    ids: dict[str, Any] = {"row_ids": np.array(users), "column_ids": np.array(items)}
    ssnmf_fast.save(replace(completion, **ids, **_NOT_KEPT), out.path(MODEL_NAME))
    # How many ratings each has; one of 0 counts as well.
    by_user, by_item = np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=len(items))
    for file, name, names, n in (_USERS, "user", users, by_user), (_ITEMS, "item", items, by_item):
        rows = zip(range(len(names)), names, n.tolist(), strict=True)
        write(file, ("place", name, "ratings"), rows)
    if len(ratings.empty):
        pairs, values = ratings.empty.tolist(), completion.predict(*ratings.empty.T).tolist()
        rated = ((users[u], items[i], v) for (u, i), v in zip(pairs, values, strict=True))
        write(_PREDICTIONS, ("user", "item", "predicted rating"), rated)
    out.write(_PICTURE, lambda: png(singular_values(completion.singular_values)))


def _recommend(
    completion: Completion, rated: sp.csr_array, top: int
) -> Iterator[tuple[int, int, int, float]]:
    """Yield user, rank (from 1), item and predicted rating, user by user and best first."""
    n, m = rated.shape
    step, top = max(1, _BLOCK_ENTRIES // m), min(top, m)
    for first in range(0, n, step):
        # The least loss comes first.
        losses = -(completion.left[first : first + step] @ completion.right)
        indptr = rated.indptr[first : first + step + 1]
        losses[entry_rows(indptr), rated.indices[slice(*indptr[[0, -1]])]] = np.inf
        items = np.argpartition(losses, top - 1, axis=1)[:, :top]
        chosen = np.take_along_axis(losses, items, axis=1)
        order = np.lexsort((items, chosen), axis=1)  # of equal predictions the first item
        items = np.take_along_axis(items, order, axis=1)
        chosen = np.take_along_axis(chosen, order, axis=1)
        values = np.clip(completion.offset - chosen, completion.lower, completion.upper)
        for row, count in enumerate(np.isfinite(chosen).sum(axis=1)):
            pairs = zip(items[row, :count].tolist(), values[row, :count].tolist(), strict=True)
            for rank, (item, value) in enumerate(pairs, start=1):
                yield first + row, rank, item, value


def _complete_matrix(source: Source, options: Namespace) -> dict[str, Any]:
    path = source.path
    assert path is not None  # standard input is a table
    for name in (*ROLES, "duplicates", "top"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} is for a table of ratings; {path} is a matrix")
    if options.safe_csv:
        raise UsageError(f"--safe-csv is for names of users and items; {path} is a matrix")
    out = Path(options.out)
    if out.is_dir() or out.suffix.lower() not in MATRIX_ENDINGS:
        endings = ", ".join(MATRIX_ENDINGS)
        raise UsageError(f"--out {out}: expected a file ({endings}), as {path} is a matrix")
    refuse_replacing(out, [path])
    entries = read_observed(load_matrix(source), None, None, options.threads or 1)
    n, m = entries.shape
    if entries.nnz == n * m:
        raise UsageError(
            f"{path} has no missing entry; these are NaN in a dense matrix, and those that are not "
            f"stored in a sparse one. {_LONG}"
        )
    if is_long(entries):
        warn(f"the first two columns of {path} look like ids. {_LONG}")
    large = n * m > LARGEST_DENSE
    if large and out.suffix.lower() != ".npz":
        size = f"{n} x {m} entries are too many to write"
        raise UsageError(f"{size}; give --out the ending .npz, for its factors")
    task = Task(entries, "entries", options, noisy=options.noisy)
    task.check()
    with new_files(out.parent) as files:
        print("Completion of a matrix\n")
        print(f"  data      {path}: {n} x {m}, {entries.nnz} entries observed, {task.density:.2%}")
        _warn(task, source, ("row", "column"))
        completion, summary = evaluate(task)
        if large:
            ssnmf_fast.save(replace(completion, **_NOT_KEPT), files.path(out))
        else:
            _write_dense(files.path(out), completion.to_dense(keep_observed=True))
    factors = f"The factors are in {out}; ssnmf_fast.load(...).predict(rows, columns) reads them"
    whole = f"The completed matrix is in {out}; observed entries are as they were"
    print(f"\n{factors if large else whole}")
    sizes = {"rows": n, "columns": m, "observed": int(entries.nnz)}
    return {**sizes, **summary, "out": str(out)}


def _write_dense(path: Path, dense: Array) -> None:
    """Write in full precision, so that values come back as they were."""
    if path.suffix.lower() == ".csv":
        with path.open("w", encoding="utf-8", newline="") as text:
            csv.writer(text).writerows(row.tolist() for row in dense)
        return
    with path.open("wb") as file:  # NumPy would add a second ending to .NPY and .NPZ
        if path.suffix.lower() == ".npy":
            np.save(file, dense)
        else:
            np.savez(file, X=dense)
