"""How good are lists of ten recommended items, compared with other packages and methods?

- "ML-100K, all": a random quarter of each user's ratings is hidden, and all of it is relevant; the
  methods see pairs alone; recall is hits over relevant items (as Microsoft's recommenders do it);
- "ML-100K, likes": a random fifth is hidden; ratings of 4 and 5 are relevant; recall divides by at
  most 10, as in the sets below; "ML-100K, time": the same for the last fifth of each user;
- "Last.fm": plays of artists with 5 listeners or more; "CiteULike": articles that 15 users or more
  keep; a random fifth is hidden, and all of it is relevant.

Items of the training are left out of the lists, all others compete.  Rivals learn from relevant
pairs; item-kNN and EASE may also take values (ratings from 0 to 1, logarithms of plays).  "tuned"
is the best of four settings on a hidden tenth of the training, fitted again to all of it.  Seconds
are those of that fit; those of "auto" include its validation.  "fold-in" leaves a fifth of the
users out, recommends by their histories, and is compared for them with the fit to all.

Rivals that are not installed are left out: `python -m pip install implicit irspack`.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from common import Array, data_file, panels
from records import Options, Question, Record, grouped, markdown, say
from write_page import machine

import ssnmf_fast as sf
from ssnmf_fast.metrics import ranking

ALL, LIKES, TIME, MADE_UP = "ML-100K, all", "ML-100K, likes", "ML-100K, time", "made up"
SETS = (ALL, LIKES, TIME, "Last.fm", "CiteULike", MADE_UP)
FILES = {"Last.fm": ("lastfm2k", "plays", 5), "CiteULike": ("citeulike_a", "", 15)}
ALS = ((5, 30), (20, 10), (20, 30), (20, 100))
BPR = ((0.02, 0.01), (0.02, 0.05), (0.05, 0.003), (0.1, 0.01))
IRSPACK = ((0.03, 0.005), (0.03, 0.03), (0.1, 0.02), (0.3, 0.01))
Block = Callable[[Array], Array]  # scores of all items for some users


class Table(NamedTuple):
    """Pairs of users and items, with or without times; relevant ones are what lists should have."""

    user: Array
    item: Array
    values: Array
    relevant: Array
    times: Array | None

    def matrix(self, pairs: Array, values: Array | None = None) -> sp.csr_array:
        parts = (self.user[pairs], self.item[pairs])
        entries = np.ones(len(pairs), np.float32) if values is None else values[pairs]
        return sp.csr_array((entries, parts), (self.user.max() + 1, self.item.max() + 1))


class Task(NamedTuple):
    """The training pairs, and matrices of users and items: their values, and the test."""

    pairs: Array
    values: sp.csr_array
    likes: sp.csr_array  # relevant pairs
    graded: sp.csr_array  # all, from 0
    test: sp.csr_array


@cache
def table_of(name: str) -> Table:
    if name == MADE_UP:
        rng = np.random.default_rng(0)
        kinds = [np.arange(kind, 100, 4) for kind in range(4)]
        user = np.repeat(np.arange(150), 12)
        item = np.concatenate([rng.choice(kinds[u % 4], 12, replace=False) for u in range(150)])
        return Table(user, item, np.ones(1800, np.float32), np.ones(1800, bool), None)
    file, column, least = FILES.get(name, ("movielens100k", "rating", 1))
    with np.load(data_file(f"{file}.npz")) as data:
        user, item, times = data["user"], data["item"], data["timestamp"] if name == TIME else None
        values = data[column].astype(np.float32) if column else np.ones(len(user), np.float32)
    kept = np.bincount(item)[item] >= least
    user, item = (np.unique(ids[kept], return_inverse=True)[1] for ids in (user, item))
    relevant = values[kept] >= (4 if name in (LIKES, TIME) else 0)
    return Table(user, item, values[kept], relevant, times)


def hide(user: Array, seed: int, share: float, times: Array | None = None) -> Array:
    """Return whether a pair is hidden: a share of each user, at random or the last (at least 1)."""
    rng, count = np.random.default_rng(seed), np.bincount(user)
    draw = rng.random(len(user))
    order = np.lexsort((draw, user) if times is None else (draw, times, user))
    place = np.empty(len(user), int)
    place[order] = np.arange(len(user)) - (np.cumsum(count) - count)[user[order]]
    if times is not None:
        return np.asarray(place >= (count - np.maximum(1, np.floor(share * count)))[user])
    return np.asarray(
        place < np.round(share * count + 0.998 * rng.random(len(count)) - 0.499)[user]
    )


def task_of(name: str, pairs: Array, hidden: Array) -> Task:
    """Return the task of some pairs, of which others are hidden."""
    table = table_of(name)
    pairs, test = pairs[~hidden], pairs[hidden]
    values = table.matrix(pairs, None if name == ALL else table.values)
    graded, high = values.copy(), values.data.max()
    if high == 5:
        graded.data = (graded.data - 1) / 4
        graded.eliminate_zeros()
    elif high > 1:
        means = np.log1p(values).sum(axis=1) / np.maximum(np.diff(values.indptr), 1)
        graded.data = np.log1p(values.data) / np.repeat(means, np.diff(values.indptr))
    likes, relevant = pairs[table.relevant[pairs]], test[table.relevant[test]]
    return Task(pairs, values, table.matrix(likes), graded, table.matrix(relevant))


def ranked(task: Task, scores: Block) -> Array:
    """Return the ten best new items of all users; of equal scores the first."""
    found = []
    for users in np.array_split(np.arange(task.test.shape[0]), 5):
        block, known = np.array(scores(users), np.float32), task.values[users]
        block[np.repeat(np.arange(len(users)), np.diff(known.indptr)), known.indices] = -np.inf
        found.append(np.argsort(-block, axis=1, kind="stable")[:, :10])
    return np.concatenate(found)


def popular(task: Task) -> Block:
    counts = task.likes.sum(axis=0)
    return lambda users: np.tile(counts, (len(users), 1))


def item_knn(task: Task, graded: bool = False, **options: Any) -> Block:
    from implicit.nearest_neighbours import CosineRecommender

    X = sp.csr_matrix(task.graded if graded else task.likes)
    model = CosineRecommender(num_threads=1, **options)
    model.fit(X, show_progress=False)
    return lambda users: (X[users] @ model.similarity).toarray()


def ease(task: Task, graded: bool = False, ridge: float = 500) -> Block:  # as Steck's for MovieLens
    X = task.graded if graded else task.likes
    P = scipy.linalg.inv((X.T @ X + ridge * sp.eye_array(X.shape[1], dtype=X.dtype)).toarray())
    W = P / -np.diag(P)
    np.fill_diagonal(W, 0)
    return lambda users: X[users] @ W


def implicit(kind: str, task: Task, **options: Any) -> Block:
    from implicit.cpu import als, bpr

    make = als.AlternatingLeastSquares if kind == "ALS" else bpr.BayesianPersonalizedRanking
    model = make(num_threads=1, random_state=0, **options)
    model.fit(sp.csr_matrix(task.likes), show_progress=False)
    return lambda users: model.user_factors[users] @ model.item_factors.T


def irspack(task: Task, **options: Any) -> Block:
    from irspack import IALSRecommender

    with redirect_stdout(io.StringIO()):  # its bar of progress
        model = IALSRecommender(sp.csr_matrix(task.likes), n_threads=1, **options).learn()
    return model.get_score


def settings(names: str, *rows: tuple[float, ...]) -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


# Name -> how it is fitted, the package it needs, and the four settings that are tried.
RIVALS: dict[str, tuple[Callable[..., Block], str, list[dict[str, Any]]]] = {
    "popular items": (popular, "numpy", []),
    "item-kNN": (
        item_knn,
        "implicit",
        settings("K graded", (100, False), (400, False), (100, True), (400, True)),
    ),
    "EASE": (ease, "numpy", settings("ridge graded", *((r, True) for r in (12, 50, 120, 300)))),
    "implicit ALS": (
        partial(implicit, "ALS"),
        "implicit",
        settings("alpha regularization factors", *((a, r, 128) for a, r in ALS)),
    ),
    "implicit BPR": (
        partial(implicit, "BPR"),
        "implicit",
        settings("learning_rate regularization factors", *((a, r, 128) for a, r in BPR)),
    ),
    "irspack iALS": (
        irspack,
        "irspack",
        settings("alpha0 reg n_components", *((a, r, 128) for a, r in IRSPACK)),
    ),
}
AUTO = {"n_components": "auto", "unseen_weight": "auto", "ridge": "auto"}
OURS: dict[str, dict[str, Any]] = {
    "Recommender": {},
    "Recommender, auto": AUTO,
    "Recommender, auto, neighbors": AUTO | {"neighbors": "auto"},
    "Recommender, auto, nonnegative": AUTO | {"nonnegative": True},
}
FOLD_IN, TUNED = "fold-in", ", tuned"
OPTIONS = {"sets": ([*SETS[:-1]], "", SETS), "seeds": (3, "splits, but one by time")}
QUICK = {"sets": [MADE_UP], "seeds": 1}


def cases(options: Options) -> Iterator[tuple[str, int, str]]:
    rivals = [name for name, (_, package, _) in RIVALS.items() if find_spec(package) is not None]
    tuned = [name + TUNED for name in rivals if RIVALS[name][2]]
    for name in options.sets:
        for seed in [0] if name == TIME else range(1000, 1000 + options.seeds):
            yield from ((name, seed, method) for method in (*rivals, *tuned, *OURS))
            if name not in (ALL, TIME):
                yield name, seed, FOLD_IN


def fitted(X: sp.csr_array, **options: Any) -> sf.Recommender:
    return sf.Recommender(**options, random_state=0, n_threads=1).fit(X)


def lists_of(model: sf.Recommender, users: Any = None) -> Array:
    items = model.recommend(users).items
    return np.where(items == None, -1, items).astype(int)  # noqa: E711


def best_setting(method: str, name: str, task: Task) -> dict[str, Any]:
    fit, _, several = RIVALS[method]
    inner = task_of(name, task.pairs, hide(table_of(name).user[task.pairs], 1, 0.1))
    found = [ranking.ndcg(ranked(inner, fit(inner, **s)), inner.test) for s in several]
    return several[int(np.argmax(found))]


def measure(options: Options, name: str, seed: int, method: str) -> Record:
    table = table_of(name)
    hidden = hide(table.user, seed, 0.25 if name == ALL else 0.2, table.times)
    task = task_of(name, np.arange(len(hidden)), hidden)
    if method == FOLD_IN:
        out = np.random.default_rng(seed).permutation(task.test.shape[0])
        out, others = np.sort(out[: len(out) // 5]), np.sort(out[len(out) // 5 :])
        folded = lists_of(fitted(task.values[others]), task.values[out])
        refit = lists_of(fitted(task.values), out)
        both = (float(ranking.ndcg(lists, task.test[out])) for lists in (folded, refit))
        return dict(zip(("ndcg", "refit"), both, strict=True))
    rival, given = method.removesuffix(TUNED), OURS.get(method, {})
    if method.endswith(TUNED):
        given = best_setting(rival, name, task)
    begin = time.perf_counter()
    if method in OURS:
        model = fitted(task.values, **given)
        seconds, lists = time.perf_counter() - begin, lists_of(model)
        given = {key: getattr(model, f"{key}_") for key in AUTO}
    else:
        scores = RIVALS[rival][0](task, **given)
        seconds, lists = time.perf_counter() - begin, ranked(task, scores)
    measures = {
        "ndcg": ranking.ndcg(lists, task.test),
        "precision": ranking.precision(lists, task.test),
        "recall": ranking.recall(lists, task.test, cap=name != ALL),
    }
    say(f"{name} {seed}, {method}: nDCG {measures['ndcg']:.4f}, {seconds:.1f} s, {given}")
    return {key: float(x) for key, x in measures.items()} | {"seconds": seconds, "setting": given}


def mean(records: list[Record], key: str, digits: int = 3) -> str:
    return f"{np.mean([r[key] for r in records]):.{digits}f}"


def report(records: list[Record], options: Options) -> str:
    parts = [f"{machine()['processor']}, one thread."]
    for name, own in grouped(records, "data").items():
        splits = len({r["seed"] for r in own})
        rows = [
            [method, *(mean(r, key) for key in ("ndcg", "precision", "recall"))]
            + [mean(r, "seconds", 2)]
            for method, r in grouped(own, "method").items()
            if method != FOLD_IN
        ]
        header = [f"{name} ({splits})", "nDCG@10", "precision", "recall", "seconds"]
        parts.append(markdown(header, rows))
    folded = grouped([r for r in records if r["method"] == FOLD_IN], "data")
    rows = [[name, mean(own, "ndcg"), mean(own, "refit")] for name, own in folded.items()]
    return "\n\n".join([*parts, markdown(["nDCG@10 of a fifth", "folded in", "refit"], rows)])


def draw(records: list[Record], stem: Path) -> None:
    """Draw the nDCG of the tuned rivals and of ours."""
    sets = grouped(records, "data")
    figure, axes = panels(2.2 * len(sets) + 2, 3.2, 1, len(sets))
    shown = [RIVAL + TUNED * bool(tried) for RIVAL, (_, _, tried) in RIVALS.items()]
    for axis, (name, own) in zip(axes[0], sets.items(), strict=True):
        found = grouped(own, "method")
        methods = [method for method in (*shown, *OURS) if method in found][::-1]
        values = [float(mean(found[method], "ndcg", 6)) for method in methods]
        colors = ["C0" if method in OURS else "0.7" for method in methods]
        bars = axis.barh(range(len(methods)), values, color=colors)
        axis.bar_label(bars, fmt="%.3f", fontsize=7, padding=1)
        axis.set(title=name, xlabel="nDCG@10", xlim=(0, 1.25 * max(values)), yticks=[])
    axes[0, 0].set_yticks(range(len(methods)), methods, fontsize=8)
    figure.savefig(stem.with_suffix(".png"), dpi=110)


QUESTION = Question("data seed method", cases, measure, report, draw)
