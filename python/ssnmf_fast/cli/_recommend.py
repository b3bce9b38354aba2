"""``ssnmf-fast recommend``, which lists items for users, from pairs of users and items."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import Recommender, save
from .._common.arrays import Array
from .._common.text import nfc, shorten
from .._recommend.lists import COLUMNS, Recommendations, rows_of
from .._recommend.pairs import places_of
from .._topics import Topics
from ..plotting._style import figure, label_axes
from ..report import Picture, Summary
from ._complete import read_pairs
from ._options import UsageError, warn
from ._outputs import METRICS_NAME, MODEL_NAME, TableOutput, open_results
from ._read import Source, find_source, read_lines

_LISTS, _PICTURE = "recommendations.csv", "validation.png"
_FILES = {
    _LISTS: "the best items for every user",
    MODEL_NAME: "the model, for `ssnmf-fast predict` of new users and ssnmf_fast.load",
    METRICS_NAME: "sizes, settings, validation and time",
    _PICTURE: "the validation as a picture",
}
_MEANINGS = {
    "graded": "ratings from {:g} to {:g}; low ratings mean that an item was not liked",
    "counts": "counts from {:g} to {:g}",
    "ones": "no values: all pairs count the same",
}
_VALIDATION = "nDCG@10 on a hidden tenth of the pairs of each user"
_NEIGHBORS = "half of each score from similar items (not part of the validation)"
_SETTINGS = ("values", "n_components", "unseen_weight", "ridge")
_USERS_SHOWN, _ITEMS_SHOWN, _LONGEST = 5, 10, 60


def run(options: Namespace) -> dict[str, Any]:
    begin, source = time.perf_counter(), find_source(options)
    users_asked, path = _read_users(options)
    names, users, items, pairs = read_pairs(source, options, "value")
    with open_results(options, "recommend", _FILES, [source.path, path]) as out:
        print("Recommendations\n")
        print(f"  data      {source}: {len(pairs)} pairs of {len(users)} users, {len(items)} items")
        print(f"  columns   {', '.join(f'{k} {v!r}' for k, v in names.items())}", flush=True)
        model = Recommender(
            options.rank,
            values=options.values,
            nonnegative=options.nonnegative,
            unseen_weight="auto",
            ridge="auto",
            neighbors=False if options.neighbors is False else "auto",
            random_state=options.seed,
            n_threads=options.threads,
        )
        (user_ids, row), (item_ids, column) = _sort_ids(users), _sort_ids(items)
        model.fit(row[pairs["user"]], column[pairs["item"]], pairs.get("value"))
        model.user_ids_, model.item_ids_ = user_ids, item_ids
        if merged := len(pairs) - model.pairs_.nnz:
            print(f"            {merged} repeated pairs, merged with these")
        meaning = _MEANINGS[model.values_].format(*model.scale_)
        print(f"  values    {meaning} (--values {model.values_})")
        print(f"  model     {_name(model.n_components_, model.unseen_weight_, model.ridge_)}")
        if neighbors := hasattr(model, "item_weights_"):
            print(f"            and {_NEIGHBORS}")
        trials = _list_trials(model)
        print(f"\n{_VALIDATION}" if trials else "\nNot validated: there are too few pairs")
        for name, ndcg in trials:
            print(f"  {ndcg:7.4f}  {name}")
        lists = model.recommend(users_asked, options.n)
        unknown = int((places_of(lists.users, user_ids) < 0).sum())
        if unknown:
            warn(f"{unknown} of --users are not in {source}: they get the most popular items")
        _warn_of_dislikes(int(lists.popular.sum()) - unknown, len(lists.users))
        out.write_csv(_LISTS, COLUMNS, rows_of(lists))
        save(model, out.path(MODEL_NAME))
        settings = {name: getattr(model, f"{name}_") for name in _SETTINGS}
        settings |= {"neighbors": neighbors, "nonnegative": options.nonnegative}
        numbers: dict[str, Any] = {"users": len(users), "items": len(items)}
        numbers |= {"pairs": int(model.pairs_.nnz), "merged": merged, "columns": names}
        numbers |= {"validation": [*map(asdict, model.validation_)], "settings": settings}
        numbers |= {"lists": len(lists.users), "unknown_users": unknown, "seed": options.seed}
        numbers["seconds"] = round(time.perf_counter() - begin, 3)
        return out.finish(_summarize(model, lists, meaning, numbers))


def recommend_to_new(
    out: TableOutput, model: Recommender, path: Path, data: Source, options: Namespace
) -> dict[str, Any]:
    """Write lists for new users, from the pairs of a table."""
    _, users, items, pairs = read_pairs(data, options, "value")
    model.set_params(n_threads=options.threads)
    model.item_ids_ = model.item_ids_.astype(str)  # as tables have them
    is_known = places_of(items, model.item_ids_) >= 0
    if not is_known.any():
        wrong = f"no item of {data} is in {path} (the first is {items[0]!r})"
        raise UsageError(f"{wrong}; name their column with --item")
    unknown = len(items) - int(is_known.sum())
    n_without = len(users) - pairs["user"][is_known[pairs["item"]]].nunique()
    has_values = "value" in pairs  # by the mean of repeated pairs, which else are counted
    if has_values:
        pairs = pairs.groupby(["user", "item"], sort=False, as_index=False)["value"].mean()
    histories: dict[str, Any] = {user: {} if has_values else [] for user in users}
    for user, item, *value in pairs.itertuples(index=False):
        history = histories[users[user]]
        history.update({items[item]: value[0]}) if has_values else history.append(items[item])
    lists = model.recommend(histories, options.n or _ITEMS_SHOWN)
    popular = int(lists.popular.sum())
    if unknown:
        reason = f"{unknown} of {len(items)} items of {data} are not in {path}, and are ignored"
        warn(f"{reason}; {n_without} of {len(users)} users have no others, and get popular items")
    _warn_of_dislikes(popular - n_without, len(users))
    out.write(COLUMNS, rows_of(lists))
    if out.path is not None:
        print(f"Lists of items for {len(users)} users are in {out}")
    counts = {"users": len(users), "unknown items": unknown, "popular": popular}
    return {"model": "Recommender", **counts, "out": str(out)}


def _warn_of_dislikes(count: int, users: int) -> None:
    if count:
        warn(f"{count} of {users} users like none of their items, and get popular items")


def _read_users(options: Namespace) -> tuple[list[str] | None, Path | None]:
    """Return the users who get lists (None for all), and the file that names them."""
    names, path = options.users, None
    if names is not None and len(names) == 1 and os.path.isfile(names[0]):  # of any length
        path = Path(names[0])
        names = [line for line in read_lines(path, options.encoding) if line]
    return names and [*dict.fromkeys(map(nfc, names))], path


def _sort_ids(ids: list[str]) -> tuple[Array, Array]:
    """Return ids in the order of pandas, and the new position of each."""
    keys, width = list[Any](ids), max(map(len, ids))
    if all(text.isdecimal() for text in ids):
        keys = [*map(int, ids)] if width < 19 else [text.zfill(width) for text in ids]
    order = np.argsort(keys, kind="stable")
    return np.array(ids)[order], np.argsort(order)


def _name(rank: int, unseen_weight: float, ridge: float) -> str:
    return f"rank {rank}, unseen weight {unseen_weight:g}, ridge {ridge:g}"


def _list_trials(model: Recommender) -> list[tuple[str, float]]:
    """Return the validated settings with their nDCG; popular items are last."""
    chosen_name = _name(model.n_components_, model.unseen_weight_, model.ridge_)
    trials = []
    for trial in model.validation_:
        setting: Any = trial.n_components, trial.unseen_weight, trial.ridge
        name = trial.name if trial.ridge is None else _name(*setting)
        trials.append((f"{name} (chosen)" if name == chosen_name else name, trial.ndcg))
    return trials


def _summarize(
    model: Recommender, lists: Recommendations, meaning: str, numbers: dict[str, Any]
) -> Summary:
    facts = {name: numbers[name] for name in ("users", "items")}
    tables, rows, pictures, warnings = list[Any](), list[Any](), list[Picture](), []
    if trials := _list_trials(model):
        rows = [(name, f"{ndcg:.4f}") for name, ndcg in trials]
        tables.append(("Validation in numbers", f"{_VALIDATION}.", ("Lists by", "nDCG@10"), rows))
        caption = f"{_VALIDATION}; 1 is best."
        pictures.append(Picture("Validation", caption, _PICTURE, partial(_draw, trials)))
        best, popular = max(ndcg for _, ndcg in trials[:-1]), trials[-1][1]
        facts |= {"nDCG@10": f"{best:.3f}", "of popular items": f"{popular:.3f}"}
        warnings += ["popular items are better: the data are too few"] * (popular >= best)
    places, counts = places_of(lists.users, model.user_ids_), np.diff(model.pairs_.indptr)
    order = np.argsort(np.abs(counts[places] - _ITEMS_SHOWN), kind="stable")  # all can be shown
    rows = []
    for k in order[places[order] >= 0][:_USERS_SHOWN]:
        row = model.pairs_[[places[k]]]
        liked = model.item_ids_[row.indices[np.argsort(-row.data, kind="stable")]]
        rows.append((lists.users[k], _list(liked), _list(lists.items[k])))
    heads = ("User", "Items (at most ten, best liked first)", "Recommended, best first")
    tables.append(("Examples", f"All lists are in {_LISTS}.", heads, rows))
    return Summary(
        title="Recommendations",
        lead=f"{numbers['pairs']} pairs. Values: {meaning}.",
        facts=facts,
        settings={name.replace("_", " "): value for name, value in numbers["settings"].items()},
        numbers=numbers,
        topics=model.topics() if model.nonnegative else Topics(),
        terms="items",
        warnings=warnings,
        tables=tables,
        pictures=pictures,
    )


def _list(items: Array) -> str:
    return ", ".join(shorten(item, _LONGEST) for item in items[:_ITEMS_SHOWN] if item is not None)


def _draw(trials: list[tuple[str, float]]) -> Any:
    picture = figure(7.0, 0.6 + 0.35 * len(trials))
    axes, (names, values) = picture.add_subplot(), zip(*reversed(trials), strict=True)
    axes.barh(names, values, color=["#9fb3c8", *["#2b6cb0"] * (len(names) - 1)])
    label_axes(axes, "nDCG@10", "")
    return picture
