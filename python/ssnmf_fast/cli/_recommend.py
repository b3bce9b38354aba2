"""``ssnmf-fast recommend``: pairs of users and items in, a model and lists of items out."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import Recommender, save
from .._common.arrays import Array
from .._common.text import nfc
from .._recommend.pairs import places_of
from .._recommend.results import Recommendations
from .._topics import Topics, real_terms
from ..plotting._style import figure, label_axes
from ..report import Picture, Report, Rows, png, render
from ._complete import read_pairs
from ._findings import shorten
from ._outputs import METRICS_NAME, MODEL_NAME, Output, Results, default_out, results_folder
from ._read import Source, UsageError, find_source, read_lines, warn

_LISTS, _TOPICS, _PICTURE = "recommendations.csv", "topics.csv", "validation.png"
_REPORT = "report.html"
_FILES = {
    _LISTS: "the best items for every user",
    MODEL_NAME: "the model, for `ssnmf-fast predict` of new users and ssnmf_fast.load",
    _TOPICS: "the items of every topic",
    METRICS_NAME: "sizes, settings, validation and time",
    _PICTURE: "the validation as a picture",
    _REPORT: "all of it on one page: open this first",
}
_COLUMNS = ("user", "item", "score", "rank")  # of lists
_MEANINGS = {
    "graded": "ratings from {:g} to {:g}, of which low ones mean that an item was not liked",
    "counts": "counts from {:g} to {:g}",
    "ones": "no values: all pairs count the same",
}
_VALIDATION = "nDCG@10 at a hidden tenth of every user's pairs"
_NEIGHBORS = "half of a score by similar items, which the validation leaves out"
_USERS_SHOWN, _ITEMS_SHOWN, _LONGEST = 5, 10, 60


def run(options: Namespace) -> dict[str, Any]:
    begin, source = time.perf_counter(), find_source(options)
    if not source.is_table:
        how = "ssnmf_fast.Recommender().fit takes a matrix"
        raise UsageError(f"{source} is a matrix; expected a table of users and items ({how})")
    asked, path = _read_users(options)
    columns = {role: getattr(options, role) for role in ("user", "item", "value")}
    names, users, items, pairs = read_pairs(source, columns)
    known = set(users)
    unknown = [user for user in asked or () if user not in known]
    if asked and len(unknown) == len(asked):
        raise UsageError(f"--users: {unknown[0]!r} is no user of {source}, nor is any other")
    folder, inputs = options.out or default_out(options.data), [source.path, path]
    with results_folder(folder, _FILES, inputs, options.safe_csv) as out:
        print("Recommendations\n")
        print(f"  data      {source}: {len(pairs)} pairs of {len(users)} users, {len(items)} items")
        print("  columns   " + ", ".join(f"{role} {name!r}" for role, name in names.items()))
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
        values = pairs["value"].to_numpy() if "value" in pairs else None
        (user_ids, row), (item_ids, column) = _sort_ids(users), _sort_ids(items)
        model.fit(row[pairs["user"]], column[pairs["item"]], values)
        model.user_ids_, model.item_ids_ = user_ids, item_ids
        used = {
            "values": model.values_,
            "rank": model.n_components_,
            "unseen weight": model.unseen_weight_,
            "ridge": model.ridge_,
            "neighbors": hasattr(model, "item_weights_"),
            "nonnegative": options.nonnegative,
            "seed": options.seed,
        }
        n_pairs = model.pairs_.nnz
        content: dict[str, Any] = {
            "users": len(users),
            "items": len(items),
            "pairs": n_pairs,
            "merged": len(pairs) - n_pairs,
            "columns": names,
            "settings": used,
            "validation": [asdict(trial) for trial in model.validation_],
        }
        _print_fit(model, content)
        if unknown:
            of = f"{len(unknown)} of --users are not in {source}, such as {unknown[0]!r}"
            warn(f"{of}: they get the most popular items")
        lists = model.recommend(asked, options.n)
        out.write_csv(_LISTS, _COLUMNS, _rows_of(lists))
        save(model, out.path(MODEL_NAME))
        content |= {"lists": len(lists.users), "unknown_users": len(unknown)}
        content["seconds"] = round(time.perf_counter() - begin, 3)
        out.write_json(METRICS_NAME, content)
        _write_report(model, lists, content, out)
    return {**content, **out.show()}


def recommend_to_new(
    out: Output, model: Recommender, path: Path, data: Source, options: Namespace
) -> dict[str, Any]:
    """Write lists for users that have the pairs of a table, whoever the users of the fit are."""
    columns = {role: getattr(options, role) for role in ("user", "item", "value")}
    _, users, items, pairs = read_pairs(data, columns)
    model.set_params(n_threads=options.threads)
    model.item_ids_ = model.item_ids_.astype(str)  # as tables have them
    known = places_of(items, model.item_ids_) >= 0
    if not known.any():
        wrong = f"no item of {data} is in {path} (the first is {items[0]!r})"
        raise UsageError(f"{wrong}; name their column with --item")
    histories: dict[str, dict[str, float]] = {user: {} for user in users}
    values = pairs["value"] if "value" in pairs else [np.nan] * len(pairs)
    for user, item, value in zip(pairs["user"], pairs["item"], values, strict=True):
        histories[users[user]][items[item]] = value
    lists = model.recommend(histories, options.n or _ITEMS_SHOWN)
    counted = {"unknown items": int((~known).sum()), "popular": int(lists.popular.sum())}
    if not known.all():
        ignored = f"{counted['unknown items']} of {len(items)} items of {data} are ignored"
        lost = counted["popular"]
        more = f", and {lost} of {len(users)} users, who have no others, get popular items"
        warn(f"{ignored}, as {path} does not know them{more if lost else ''}")
    out.write(_COLUMNS, _rows_of(lists))
    if out.path is not None:
        print(f"Lists of items for {len(users)} users are in {out}")
    return {"model": "Recommender", "users": len(users), **counted, "out": str(out)}


def _read_users(options: Namespace) -> tuple[list[str] | None, Path | None]:
    """Return the users to make lists for, None for all, and the file that names them."""
    given, path = options.users, None
    if given is not None and len(given) == 1 and Path(given[0]).is_file():
        path = Path(given[0])
        given = [line for line in read_lines(path, options.encoding) if line]
    if given is not None and not given:
        raise UsageError(f"--users: {path or 'the list'} names no user")
    return given and [*dict.fromkeys(map(nfc, given))], path


def _sort_ids(ids: list[str]) -> tuple[Array, Array]:
    """Return ids in the order in which pandas would have them, and the new place of each."""
    numbers = all(one.isdecimal() for one in ids)
    order = sorted(range(len(ids)), key=lambda k: (int(ids[k]) if numbers else 0, ids[k]))
    places = np.empty(len(ids), dtype=np.int64)
    places[order] = np.arange(len(ids))
    return np.array(ids)[order], places


def _rows_of(lists: Recommendations) -> Iterator[tuple[str, str, float, int]]:
    for user, items, scores in zip(lists.users, lists.items, lists.scores.tolist(), strict=True):
        for rank, (item, score) in enumerate(zip(items, scores, strict=True), start=1):
            if item is not None:
                yield user, item, score, rank


def _trials(content: dict[str, Any]) -> list[tuple[str, float]]:
    """Return what was validated, and its nDCG; the chosen one has a mark."""
    rows, used = [], content["settings"]
    for one in content["validation"]:
        name, rank = one["name"], one["n_components"]
        if rank is not None:
            setting = rank, one["unseen_weight"], one["ridge"]
            chosen = setting == (used["rank"], used["unseen weight"], used["ridge"])
            name = "rank {}, unseen weight {:g}, ridge {:g}".format(*setting)
            name += " (chosen)" * chosen
        rows.append((name, one["ndcg"]))
    return rows


def _print_fit(model: Recommender, content: dict[str, Any]) -> None:
    used = content["settings"]
    if content["merged"]:
        how = "with their mean" if "value" in content["columns"] else "and counted"
        print(f"            {content['merged']} more of the same pairs, merged {how}")
    print(
        f"  values    {_MEANINGS[model.values_].format(*model.scale_)} (--values {model.values_})"
    )
    setting = f"unseen weight {used['unseen weight']:g}, ridge {used['ridge']:g}"
    print(f"  model     rank {used['rank']}, {setting}")
    if used["neighbors"]:
        print(f"            and {_NEIGHBORS}")
    trials = _trials(content)
    print(f"\n{_VALIDATION}" if trials else "\nNot validated: there are too few pairs")
    for name, ndcg in trials:
        print(f"  {ndcg:7.4f}  {name}")


def _write_report(
    model: Recommender, lists: Recommendations, content: dict[str, Any], out: Results
) -> None:
    facts = {name: str(content[name]) for name in ("users", "items", "pairs")}
    trials, tables, pictures, warnings = _trials(content), [], [], []
    if trials:
        note = f"{_VALIDATION}; 1 is best"
        rows = [(name, f"{ndcg:.4f}") for name, ndcg in trials]
        tables.append(Rows("Validation in numbers", f"{note}.", ("Lists by", "nDCG@10"), rows))
        drawn = out.write(_PICTURE, lambda: _draw(trials))
        pictures.append(Picture("Validation", f"{note}.", drawn))
        best, popular = max(ndcg for _, ndcg in trials[:-1]), trials[-1][1]
        facts |= {"nDCG@10": f"{best:.3f}", "of popular items": f"{popular:.3f}"}
        if popular >= best:
            warnings.append("popular items are better: the pairs tell too little about users")
    topics = model.topics() if model.nonnegative else Topics()
    if topics:
        terms = ((t.topic, k, *pair) for t in topics for k, pair in enumerate(real_terms(t), 1))
        out.write_csv(_TOPICS, ("topic", "rank", "item", "weight"), terms)
    # Users of about as many items as can be shown.
    places = places_of(lists.users, model.user_ids_)
    counts = np.diff(model.pairs_.indptr)
    order = np.argsort(np.abs(counts[places] - _ITEMS_SHOWN), kind="stable")
    examples = []
    for k in [k for k in order if places[k] >= 0][:_USERS_SHOWN]:
        own = model.pairs_[[places[k]]]
        liked = model.item_ids_[own.indices[np.argsort(-own.data, kind="stable")]]
        best_items = [item for item in lists.items[k] if item is not None]
        examples.append((lists.users[k], _list(liked), _list(best_items)))
    heads = ("User", "Own items, best liked first", "Recommended, best first")
    tables.append(Rows("Examples", f"Lists are in {_LISTS}.", heads, examples))
    values = _MEANINGS[model.values_].format(*model.scale_)
    report = Report(
        title="Recommendations",
        lead=f"{facts['pairs']} pairs of users and items. Values: {values}.",
        facts=[*facts.items()],
        settings=[(name, str(value)) for name, value in content["settings"].items()],
        topics=topics,
        terms="items",
        warnings=warnings,
        remarks=[f"to the scores is added {_NEIGHBORS}"]
        if content["settings"]["neighbors"]
        else [],
        tables=tables,
        pictures=pictures,
    )
    out.write(_REPORT, lambda: render(report).encode())


def _list(items: Any) -> str:
    more = len(items) - _ITEMS_SHOWN
    names = ", ".join(shorten(item, _LONGEST) for item in items[:_ITEMS_SHOWN])
    return names + f" and {more} more" * (more > 0)


def _draw(trials: list[tuple[str, float]]) -> bytes:
    drawn = figure(7.0, 0.6 + 0.35 * len(trials))
    axes = drawn.add_subplot()
    names, values = zip(*reversed(trials), strict=True)
    axes.barh(names, values, color=["#9fb3c8", *["#2b6cb0"] * (len(names) - 1)])
    label_axes(axes, "nDCG@10", "")
    return png(drawn)
