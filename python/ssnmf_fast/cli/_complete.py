"""``ssnmf-fast complete``, which predicts missing ratings or entries of a matrix."""

from __future__ import annotations

import math
import re
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import ssnmf_fast

from .._common.arrays import Array
from .._common.optional import COMMAND_HINT, require_package
from .._common.text import nfc
from .._common.warn import UNINFORMED, quietly
from .._data.arrays import drop_entries, entry_rows, is_missing
from .._data.threads import resolve_threads
from .._recommend.lists import best_items
from .._solver.loop import ProgressBar
from ..completion._complete import counts, is_long, read_observed, uninformed
from ..completion._matrix_irls import MAX_ITER
from ..completion._methods import METHODS
from ..completion._noisy import Biases, ranks
from ..completion._result import Completion
from ..plotting import singular_values
from ..report import Picture, Summary
from ._options import UsageError, refuse, warn
from ._outputs import MODEL_NAME, default_out, new_files, open_results, refuse_replacing
from ._read import MATRIX_HINT, Source, delimiter_hint, find_source, load_matrix, read_parts

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("user", "item", "rating")
_ENDINGS = (".npy", ".npz", ".csv")
_LARGEST_DENSE = 2e8  # entries, above which the factors are written instead (1.6 GB of float64)
_REPORT, _PREDICTIONS, _BEST = "report.json", "predictions.csv", "highest_predictions.csv"
_USERS, _ITEMS, _PICTURE = "users.csv", "items.csv", "singular_values.png"
_SHOWN, _LISTED = 5, 10  # users on the page, and ratings and predictions of each
_TIMES = {"date", "time", "timestamp"}  # columns that hold no value
_LONG = "A table of user, item and rating is read from a .csv, .tsv or .jsonl file"
_NOT_KEPT: dict[str, Any] = {"observed": None, "iterate": None}  # in saved models


def run(options: Namespace) -> dict[str, Any]:
    if options.exact and options.noisy:
        raise UsageError("--noisy is not allowed with --exact")
    source = find_source(options)
    return (_complete_ratings if source.is_table else _complete_matrix)(source, options)


def _complete_ratings(source: Source, options: Namespace) -> dict[str, Any]:
    if Path(options.out or "").suffix.lower() in _ENDINGS:
        raise UsageError(f"--out {options.out}: expected a folder; {source} is a table of ratings")
    begin, top = time.perf_counter(), options.top or 10
    names, users, items, matrix, empty, n_merged = _read_ratings(source, options)
    task = _CompletionTask(matrix, source, options, noisy=not options.exact)
    about = {
        _BEST: f"the {top} highest predictions for every user, among unrated items",
        _PREDICTIONS: f"the {len(empty)} empty ratings of the table",
        _REPORT: "sizes, choices, errors and times",
        MODEL_NAME: "the model, for `ssnmf-fast predict` and ssnmf_fast.load",
        _USERS: "position of every user in the model",
        _ITEMS: "position of every item in the model",
        _PICTURE: "how fast the singular values of the model fall",
    }
    with open_results(options, "complete", about, [source.path]) as out:
        n, m = matrix.shape
        print("Completion of ratings\n")
        print(f"  data      {source}: {matrix.nnz} ratings of {m} items by {n} users")
        if n_merged:
            print(f"            {n_merged} repeated pairs, merged with these")
        if len(empty):
            print(f"            {len(empty)} empty ratings, to be predicted")
        roles = ", ".join(f"{role} {name!r}" for role, name in names.items())
        print(f"  columns   {roles}; {task.density:.2%} of the pairs are rated", flush=True)
        completion, fit_numbers = task.evaluate()
        by_user, by_item = np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=m)
        best, values = _highest(completion, matrix, top, options.threads)
        places = np.argwhere(best >= 0).tolist()
        rows = ((users[u], k + 1, items[best[u, k]], values[u, k].item()) for u, k in places)
        out.write_csv(_BEST, ("user", "rank", "item", "predicted rating"), rows)
        ids: dict[str, Any] = {"row_ids": np.array(users), "column_ids": np.array(items)}
        ssnmf_fast.save(replace(completion, **ids, **_NOT_KEPT), out.path(MODEL_NAME))
        by_role = (_USERS, "user", users, by_user), (_ITEMS, "item", items, by_item)
        for file, role, keys, n_ratings in by_role:
            table = zip(range(len(keys)), keys, n_ratings.tolist(), strict=True)
            out.write_csv(file, ("place", role, "ratings"), table)
        if len(empty):
            pairs = zip(empty.tolist(), completion.predict(*empty.T).tolist(), strict=True)
            predictions = ((users[u], items[i], value) for (u, i), value in pairs)
            out.write_csv(_PREDICTIONS, ("user", "item", "predicted rating"), predictions)
        examples = []
        # Shown are users with about the number of ratings that is listed.
        for u in np.argsort(np.abs(by_user - _LISTED), kind="stable")[:_SHOWN]:
            ratings, ranks_shown = matrix[[u]], np.flatnonzero(best[u, :_LISTED] >= 0)
            liked = np.argsort(-ratings.data, kind="stable")[:_LISTED]
            rated = ", ".join(f"{items[ratings.indices[k]]} ({ratings.data[k]:g})" for k in liked)
            predicted = ", ".join(f"{items[best[u, k]]} ({values[u, k]:.3g})" for k in ranks_shown)
            examples.append((users[u], rated, predicted))
        sizes = {"users": n, "items": m, "ratings": int(matrix.nnz), "merged": n_merged}
        numbers = {**sizes, "empty": len(empty), "columns": names, **fit_numbers}
        numbers["seconds"]["all"] = time.perf_counter() - begin
        picture = Picture("", "", _PICTURE, partial(singular_values, completion.singular_values))
        return out.finish(_summarize(numbers, examples, task.remarks, picture))


def _summarize(
    numbers: dict[str, Any], examples: list[Any], remarks: list[str], picture: Picture
) -> Summary:
    """Return what was found: errors, then predictions for some users."""
    errors, tables = numbers["errors"], list[Any]()
    facts = {f"RMSE of the {name}": f"{one['RMSE']:.3g}" for name, one in errors.items()}
    if errors:
        note = f"Predictions of {numbers['held_out']} ratings that were hidden from a first fit."
        rows = [(name, f"{one['RMSE']:.4g}", f"{one['MAE']:.4g}") for name, one in errors.items()]
        tables.append(("Errors", note, ("", "RMSE", "mean absolute error"), rows))
    heads = ("User", "Ratings (at most ten, highest first)", "Highest predictions")
    note = f"All are in {_BEST}. For recommendations, use ssnmf-fast recommend."
    tables.append(("Examples", note, heads, examples))
    settings = ("density", "method", "rank", "gamma", "clip", "seed", "iterations")
    sizes = ("users", "items", "ratings", "empty", "merged")
    return Summary(
        title="Ratings",
        lead="{ratings} ratings of {items} items by {users} users.".format(**numbers),
        facts=facts | {name: numbers[name] for name in sizes if numbers[name]},
        settings={name: numbers[name] for name in settings if numbers[name] is not None},
        numbers=numbers,
        tables=tables,
        remarks=remarks,
        pictures=[picture],
    )


def _complete_matrix(source: Source, options: Namespace) -> dict[str, Any]:
    path, out = source.path, Path(options.out or default_out(options.data, "-completed.npz"))
    assert path is not None  # standard input is a table
    of_ratings = f"is for a table of ratings; {path} is a matrix"
    refuse(options, (*ROLES, "duplicates", "top"), of_ratings)
    refuse(options, ("safe_csv",), f"is for names of users and items; {path} is a matrix")
    ending = out.suffix.lower()
    if out.is_dir() or ending not in _ENDINGS:
        endings = ", ".join(_ENDINGS)
        raise UsageError(f"--out {out}: expected a file ({endings}), as {path} is a matrix")
    refuse_replacing(out, [path])
    entries = read_observed(load_matrix(source), None, None, options.threads or 1)
    n, m = entries.shape
    if entries.nnz == n * m:
        missing = "NaN in a dense matrix, and entries that are not stored in a sparse one"
        raise UsageError(f"{path} has no missing entry; these are {missing}. {_LONG}")
    if is_long(entries):
        warn(f"the first two columns of {path} look like ids. {_LONG}")
    large = n * m > _LARGEST_DENSE
    if large and ending != ".npz":
        size = f"{n} x {m} entries are too many to write"
        raise UsageError(f"{size}; give --out the ending .npz to write its factors")
    task = _CompletionTask(entries, source, options, noisy=options.noisy)
    report = f"The completed matrix is in {out}; observed entries are unchanged"
    with new_files(out.parent) as files:
        print("Completion of a matrix\n")
        print(f"  data      {path}: {n} x {m}, {entries.nnz} entries observed, {task.density:.2%}")
        completion, fit_numbers = task.evaluate()
        if large:
            reader = "ssnmf_fast.load(...).predict(rows, columns) reads them"
            report = f"The factors are in {out}; {reader}"
            ssnmf_fast.save(replace(completion, **_NOT_KEPT), files.path(out))
        else:
            dense = completion.to_dense(keep_observed=True)
            with files.path(out).open("wb") as file:  # as NumPy would add an ending to .NPY
                if ending == ".csv":  # in full precision
                    np.savetxt(file, dense, "%s", delimiter=",", newline="\r\n")
                elif ending == ".npy":
                    np.save(file, dense)
                else:
                    np.savez(file, X=dense)
    print(f"\n{report}")
    sizes = {"rows": n, "columns": m, "observed": int(entries.nnz)}
    return {**sizes, **fit_numbers, "out": str(out)}


def _highest(
    completion: Completion, rated: sp.csr_array, top: int, threads: int | None
) -> tuple[Array, Array]:
    """Return unrated items of each user with the highest predictions, best first, and these."""
    shape, left, right = rated.shape, completion.left, completion.right
    most = min(top, shape[1]), rated, None, resolve_threads(threads)
    items, values = best_items(lambda rows: left[rows] @ right, shape, *most)
    return items, np.clip(values + completion.offset, completion.lower, completion.upper)


class _CompletionTask:
    """Observed entries (with sorted rows), their source, and how to complete them."""

    def __init__(
        self, matrix: sp.csr_array, source: Source, options: Namespace, noisy: bool
    ) -> None:
        self.matrix, self.options = matrix, options
        self.remarks: list[str] = []
        self.noisy = noisy  # with shrinkage, and means of rows and of columns
        self.things = "ratings" if source.is_table else "entries"
        n, m = matrix.shape
        self.density = float(matrix.nnz / (n * m))
        name, rank = options.method, options.rank
        if rank is not None and rank > min(n, m):
            raise UsageError(f"--rank {rank} is too large for {n} x {m} entries")
        if noisy and not (METHODS[name].by_levels or name == "auto"):
            raise UsageError(f"--method {name} fits exactly; add --exact")
        if rank is not None and not METHODS[name].takes_rank:
            raise UsageError(f"--method {name} determines the rank; leave --rank out")
        names, thing, guess = ("row", "column"), "entry", "0"
        if source.is_table:
            names, thing = ("user", "item"), "rating"
            guess = "0 (without --exact: means)"
        if noisy:
            guess = f"the overall mean plus the bias of the {' or the '.join(names)} that is known"
        empty, value = uninformed(matrix)
        if any(empty):
            lines = counts(*empty, names)
            warn(f"{source} has no {thing} for {lines}; predictions for them are {guess}")
        if value is not None:
            warn(
                f"all {matrix.nnz} {self.things} are {value:g}, and so are all predictions: the "
                "errors are meaningless. For actions of users, such as clicks (implicit feedback), "
                "use ssnmf_fast.Recommender"
            )

    def _fit(self, matrix: sp.csr_array, rank: int | None, gamma: float | None) -> Completion:
        options = self.options
        if self.noisy:
            is_chosen = rank is not None and gamma is not None
            candidates = 0 if is_chosen else len(ranks(options.rank, matrix.shape))
            observer: ProgressBar = _FitsBar(candidates + 1, "fit" if is_chosen else "choose")
        else:
            default = MAX_ITER if options.method == "auto" else None
            observer = ProgressBar(options.max_iter or default, "fit", "change")
        with closing(observer):
            completion: Completion = quietly(
                UNINFORMED,
                ssnmf_fast.complete,
                matrix,
                method=options.method,
                n_components=rank,
                gamma_min=("validate" if gamma is None else gamma) if self.noisy else None,
                biases=self.noisy,
                clip=options.clip,
                max_iter=options.max_iter,
                random_state=options.seed,
                n_threads=options.threads,
                callback=observer,
            )
        return completion

    def evaluate(self) -> tuple[Completion, dict[str, Any]]:
        """Fit with some entries held out, and predict these; then fit all; print both results."""
        options, matrix, gamma = self.options, self.matrix, None
        rank, count, share = options.rank, matrix.nnz, options.test_size
        errors: dict[str, dict[str, float]] = {}
        seconds: dict[str, float] = {}
        mask = np.zeros(count, dtype=bool)
        mask[np.random.default_rng(options.seed).permutation(count)[: round(share * count)]] = True
        if mask.all():
            raise UsageError(f"--test-size {share:g} leaves no entry to fit; there are {count}")
        if self.noisy:
            sought = "rank and shrinkage" if rank is None else "shrinkage"
            print(f"  choice    {sought}: by the error on a tenth of the {self.things}", flush=True)
        begin = time.perf_counter()
        if mask.any():
            observed = drop_entries(matrix, mask)
            rows, columns = entry_rows(matrix.indptr)[mask], matrix.indices[mask]
            completion = self._fit(observed, rank, None)
            seconds["evaluation"] = time.perf_counter() - begin
            for name, values in {
                "model": completion.predict(rows, columns),
                "row and column means": Biases(observed).at(rows, columns),  # of few: shrunken
                "overall mean": observed.data.mean(),
            }.items():
                gap = np.asarray(values, dtype=np.float64) - matrix.data[mask]
                rmse = float(np.sqrt(np.mean(gap**2)))
                errors[name] = {"RMSE": rmse, "MAE": float(np.mean(np.abs(gap)))}
            if self.noisy:
                rank, gamma = max(1, completion.n_components), completion.gamma
            begin = time.perf_counter()
        completion = self._fit(matrix, rank, gamma)
        seconds["fit"] = time.perf_counter() - begin
        chosen = f"rank {completion.n_components}"
        chosen += f", gamma {completion.gamma:.3g}" if self.noisy else ""
        print(f"  fit       {chosen}, {completion.n_iter} iterations in {seconds['fit']:.2f} s")
        if self.noisy and options.rank is None:
            candidates = ranks(None, matrix.shape)
            if candidates[-1] == completion.n_components < min(matrix.shape):
                text = ", ".join(map(str, candidates))
                self.remarks.append(f"the rank is the largest of those tried, {text}; see --rank")
        if not completion.converged:
            self.remarks.append("stopped before the change was below the tolerance; see --max-iter")
        for remark in self.remarks:
            print(f"            {remark}")
        if errors:
            print(f"\nError on {mask.sum()} {self.things} held out from a first fit")
            print(f"  {'RMSE':>11}{'MAE':>11}")
        for name, error in errors.items():
            print(f"  {error['RMSE']:11.4g}{error['MAE']:11.4g}  {name}")
        clip = [completion.lower, completion.upper] if completion.upper < math.inf else None
        summary = {"density": self.density, "method": options.method, "noisy": self.noisy}
        summary |= {"rank": completion.n_components, "gamma": completion.gamma}
        summary |= {"iterations": completion.n_iter, "converged": completion.converged}
        summary |= {"seed": options.seed, "clip": clip, "held_out": int(mask.sum())}
        return completion, {**summary, "errors": errors, "seconds": seconds}


class _FitsBar(ProgressBar):
    """Show how many of at most `max_iter` fits are done, and the state of the current fit."""

    _iteration = 0

    def __call__(self, state: Any) -> bool:
        if self._bar is not None:  # an iteration that is not later begins the next fit
            if state.iteration <= self._iteration and self._bar.n < self._bar.total - 1:
                self._bar.update(1)
            self._iteration = state.iteration
            place = f"rank {state.n_components}, gamma {state.gamma:.2g}"
            self._bar.set_postfix_str(f"{place}, iteration {state.iteration}")
        return False


def _read_ratings(
    source: Source, options: Namespace
) -> tuple[dict[str, str], list[str], list[str], sp.csr_array, Array, int]:
    """Return columns by role, users, items, ratings, pairs without one, and the number merged."""
    duplicates = options.duplicates or "error"
    names, users, items, table = read_pairs(source, options, "rating")
    rated = table[table["rating"].notna()]
    if not len(rated):
        raise UsageError(f"{source} has no ratings")
    kept = rated
    repeats = rated[rated.duplicated(["user", "item"])]
    if len(repeats) and duplicates == "error":
        user, item, rating = repeats.iloc[0]
        earlier = rated[(rated["user"] == user) & (rated["item"] == item)].iloc[0]["rating"]
        number = f" ({len(repeats)} such repeats in all)" if len(repeats) > 1 else ""
        pair = f"user {users[int(user)]!r} has more than one rating of item {items[int(item)]!r}"
        mend = "keep one for each pair, or give --duplicates mean, first or last"
        raise UsageError(f"{source}: {pair}: {earlier:g} and {rating:g}{number}; {mend}")
    if len(repeats):
        kept = rated.groupby(["user", "item"], sort=False)["rating"].agg(duplicates).reset_index()
    places = kept["user"].to_numpy(), kept["item"].to_numpy()
    matrix = sp.coo_array((kept["rating"].to_numpy(), places), (len(users), len(items))).tocsr()
    empty = table.loc[table["rating"].isna(), ["user", "item"]].to_numpy()
    return names, users, items, matrix, empty, len(rated) - len(kept)


def read_pairs(
    source: Source, options: Namespace, third: str | None = None
) -> tuple[dict[str, str], list[str], list[str], pd.DataFrame]:
    """Return columns by role, users, items, and pairs; only ratings may be empty (NaN)."""
    if not source.is_table:
        raise UsageError(f"{source} is a matrix; expected a table of users and items")
    with require_package("pandas", COMMAND_HINT):
        import pandas as pd

    columns = {role: getattr(options, role) for role in ("user", "item", third) if role}
    ids: dict[str, dict[str, int]] = {"user": {}, "item": {}}
    parts, names = [], dict[str, str]()
    for table in read_parts(source):
        names = names or choose_columns(source, [*table.frame], columns)
        frame = table.frame.reindex(columns=[*names.values()])
        part = frame.set_axis([*names], axis="columns")
        for role, codes in ids.items():
            cells = replace(table, frame=frame).column(names[role])
            texts = ["" if cell is None else str(cell) for cell in cells]
            places, values = pd.factorize(np.array(texts, dtype=object))
            ids_of_role = [nfc(text.strip()) for text in values]
            if "" in ids_of_role:
                line = frame.index[places == ids_of_role.index("")][0]
                raise UsageError(f"{source}, line {line}: no value in column {names[role]!r}")
            numbers = [codes.setdefault(name, len(codes)) for name in ids_of_role]
            part[role] = np.array(numbers, dtype=np.int32)[places]
        parts.append(part)
        if third not in names:
            continue
        cells, may_be_empty = part[third], third == "rating"
        part[third] = cells.map(_parse).astype(np.float64)
        for line, cell in cells[~np.isfinite(part[third])].items():
            if may_be_empty and (is_missing(cell) or not str(cell).strip()):
                continue
            wrong = f"the {third} in column {names[third]!r} is {cell!r}, not a number"
            mend = "leave it empty to predict it" if may_be_empty else "correct it"
            mend = f"{mend}, or name the columns with {_list_options(columns)}"
            if re.fullmatch(r"\s*[-+]?\d*,\d+\s*", str(cell)):
                mend = "numbers need a decimal point, such as 2.5 for 2,5"
            raise UsageError(f"{source}, line {line}: {wrong}; {mend}")
    if not names:
        contents = "ratings" if third == "rating" else "pairs of users and items"
        raise UsageError(f"{source} has no {contents}")
    return names, [*ids["user"]], [*ids["item"]], pd.concat(parts)


def _list_options(columns: Mapping[str, Any]) -> str:
    *first, last = (f"--{role}" for role in columns)
    return f"{', '.join(first)} and {last}"


def choose_columns(
    source: Source, columns: list[str], chosen: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the columns of user, item and rating: as chosen, by name, or by position."""
    header, hint = ", ".join(columns), delimiter_hint(source, columns)
    wrong = f"the first line, {source.delimiter.join(columns)}, looks like a rating or a pair"
    wrong = f"{wrong}; it must name the columns; {MATRIX_HINT}"
    headless = any(math.isfinite(_parse(name)) for name in re.split("::|[;\t|,]", header))
    hint = f"{hint}; {wrong}" if headless else hint
    for name in chosen.values():
        if name is not None and name not in columns:
            raise UsageError(f"{source} has no column {name!r}; its columns are: {header}{hint}")
    options = _list_options(chosen)
    # Names such as user, userId and user_id.
    exact = {name.strip().lower(): name for name in reversed(columns)}
    as_id = {re.sub("[ _-]?id$", "", name): column for name, column in exact.items()}
    if chosen.get("value", "") is None:  # there may be none
        chosen = {**chosen, "value": exact.get("value", exact.get("rating"))}
        if not chosen["value"] and (len(columns) != len(ROLES) or _TIMES & exact.keys()):
            del chosen["value"]
    roles = [*chosen]
    needed = "users and items" if len(roles) == 2 else f"users, items and {roles[-1]}s"
    if len(columns) < len(roles):
        raise UsageError(f"{source} has the columns {header}; expected those of {needed}{hint}")
    names = [name or exact.get(role) or as_id.get(role) or "" for role, name in chosen.items()]
    missing = [place for place, name in enumerate(names) if not name]
    if len(missing) == 1 and len(columns) == len(roles):
        names[missing[0]] = next(name for name in columns if name not in names)
    elif len(missing) == 1 or len(columns) <= len(ROLES):
        for place in missing:
            names[place] = columns[place]
    name_them = f"name their columns with {options}, among: {header}"
    if math.isfinite(_parse(names[-1])) or (missing and headless):
        raise UsageError(f"{source}: {wrong}")
    if len({*names} - {""}) < len(roles):
        raise UsageError(f"{source}: cannot tell {needed} apart; {name_them}; {MATRIX_HINT}")
    if len(missing) > 1:
        choice = ", ".join(f"{role} {name!r}" for role, name in zip(roles, names, strict=True))
        warn(f"{source}: columns are chosen by position: {choice}; if that is wrong, {name_them}")
    return dict(zip(roles, names, strict=True))


def _parse(cell: Any) -> float:
    """Return the number in a cell, or NaN."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan
