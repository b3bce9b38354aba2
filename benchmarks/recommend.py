"""How good are lists of ten recommended items, compared with other packages and methods?

- "ML-100K, all": a random quarter of each user's ratings is hidden, all of it relevant; the methods
  see pairs alone; recall is hits over relevant items (the protocol of Microsoft's recommenders);
- "ML-100K, likes": a random fifth is hidden; ratings of 4 and 5 are relevant; recall divides by at
  most 10, as below; "ML-100K, time": the same for the last fifth of each user;
- "Last.fm": plays of artists with 5 listeners or more; "CiteULike": articles that 15 users or more
  keep; a random fifth is hidden, all of it relevant.

All items but those of the training compete.  Rivals learn from relevant pairs, item-kNN and EASE
also from values (ratings from 0 to 1, logarithms of plays); those not installed are left out.
"tuned" is the best of four settings on a hidden tenth of the training.  Seconds are those of the
last fit, the least of all splits; those of "auto" include its validation.  "folded in": a fifth of
the users was not in the fit.  `python -m pip install implicit irspack` installs the rivals.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from common import Array, data_file, panels, processor
from records import Options, Question, Record, grouped, markdown, say

import ssnmf_fast as sf
from ssnmf_fast.metrics import ranking

ALL, LIKES, TIME, MADE_UP = "ML-100K, all", "ML-100K, likes", "ML-100K, time", "made up"
SETS = (ALL, LIKES, TIME, "Last.fm", "CiteULike", MADE_UP)
FILES = {"Last.fm": ("lastfm2k", "plays", 5), "CiteULike": ("citeulike_a", "", 15)}
Block = Callable[[Array], Array]  # scores of all items for some users


def matrix(user: Array, item: Array, values: Array, some: Array) -> sp.csr_array:
    parts = values[some].astype(np.float32), (user[some], item[some])
    return sp.csr_array(parts, (user.max() + 1, item.max() + 1))


@cache
def pairs_of(name: str) -> tuple[tuple[Array, Array, Array], Array | None]:
    if name == MADE_UP:
        rng, user = np.random.default_rng(0), np.repeat(np.arange(150), 12)
        item = [rng.choice(np.arange(u % 4, 100, 4), 12, replace=False) for u in range(150)]
        return (user, np.concatenate(item), np.ones(1800)), None
    file, column, fewest = FILES.get(name, ("movielens100k", "rating", 1))
    with np.load(data_file(f"{file}.npz")) as data:
        user, item, times = data["user"], data["item"], data["timestamp"] if name == TIME else None
        values = data[column] if column and name != ALL else np.ones(len(user))
    kept = np.bincount(item)[item] >= fewest
    user, item = (np.unique(ids[kept], return_inverse=True)[1] for ids in (user, item))
    return (user, item, values[kept]), times


def hide(user: Array, seed: int, share: float, times: Array | None = None) -> Array:
    """Return whether a pair is hidden: a share of each user, at random or the last (at least 1)."""
    rng, count = np.random.default_rng(seed), np.bincount(user)
    draw = rng.random(len(user))
    drawn = np.round(share * count + 0.998 * rng.random(len(count)) - 0.499)
    order = np.lexsort((draw, user) if times is None else (draw, times, user))
    place = np.empty(len(user), int)
    place[order] = np.arange(len(user)) - (np.cumsum(count) - count)[user[order]]
    if times is not None:
        return np.asarray(place >= (count - np.maximum(1, np.floor(share * count)))[user])
    return np.asarray(place < drawn[user])


def graded(X: sp.csr_array) -> sp.csr_array:
    """Return ratings of 1 to 5 from 0 to 1, logarithms of counts over their mean of the user."""
    if X.data.max() == 5:
        return (X - (X > 0).astype(np.float32)) / 4
    Z = X.log1p()
    Z.data *= np.repeat(np.diff(Z.indptr) / np.maximum(Z.sum(axis=1), 1e-9), np.diff(Z.indptr))
    return Z


def implicit(kind: str, X: sp.csr_array, **options: Any) -> Block:
    from implicit.cpu import als, bpr
    from implicit.nearest_neighbours import CosineRecommender

    kinds = {"als": als.AlternatingLeastSquares, "bpr": bpr.BayesianPersonalizedRanking}
    model = kinds.get(kind, CosineRecommender)(num_threads=1, **options)
    model.fit(sp.csr_matrix(X), show_progress=False)
    if kind in kinds:
        return lambda users: model.user_factors[users] @ model.item_factors.T
    return lambda users: (X[users] @ model.similarity).toarray()


def ease(X: sp.csr_array, ridge: float = 500) -> Block:  # Steck 2019, with his for MovieLens
    P = scipy.linalg.inv((X.T @ X).toarray() + ridge * np.eye(X.shape[1], dtype=X.dtype))
    W = P / -np.diag(P)
    np.fill_diagonal(W, 0)
    return lambda users: X[users] @ W


def irspack(X: sp.csr_array, **options: Any) -> Block:
    from irspack import IALSRecommender

    with redirect_stdout(io.StringIO()):  # its bar of progress
        model = IALSRecommender(sp.csr_matrix(X), n_threads=1, **options).learn()
    return model.get_score  # type: ignore[no-any-return]


def settings(names: str, *rows: tuple[float, ...], **more: float) -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) | more for row in rows]


KNN = settings("K graded", (100, 0), (400, 0), (100, 1), (400, 1))
EASE = settings("ridge", (12,), (50,), (120,), (300,), graded=1)
ALS = settings("alpha regularization", (5, 30), (20, 10), (20, 30), (20, 100), factors=128)
RATES = (0.01, 0.01), (0.01, 0.05), (0.05, 0.01), (0.1, 0.01)
BPR = settings("learning_rate regularization", *RATES, factors=128)
WEIGHTS = (0.03, 0.005), (0.03, 0.03), (0.1, 0.02), (0.3, 0.01)
# Name -> how it is fitted, the package it needs, and the four settings that are tried.
RIVALS: dict[str, tuple[Callable[..., Block], str, list[dict[str, Any]]]] = {
    "popular items": (lambda X: lambda users: np.tile(X.sum(axis=0), (len(users), 1)), "numpy", []),
    "item-kNN": (partial(implicit, "cosine"), "implicit", KNN),
    "EASE": (ease, "numpy", EASE),
    "implicit ALS": (partial(implicit, "als", random_state=0), "implicit", ALS),
    "implicit BPR": (partial(implicit, "bpr", random_state=0), "implicit", BPR),
    "irspack iALS": (irspack, "irspack", settings("alpha0 reg", *WEIGHTS, n_components=128)),
}
AUTO = dict.fromkeys(("n_components", "unseen_weight", "ridge"), "auto")
OURS: dict[str, dict[str, Any]] = {
    "Recommender": {},
    "Recommender, auto": AUTO,
    "Recommender, auto, neighbors": AUTO | {"neighbors": "auto"},
    "Recommender, auto, nonnegative": AUTO | {"nonnegative": True},
}
FOLD_IN, FOLDED, TUNED = "fold-in", ("folded in", "fit to all"), ", tuned"
OPTIONS = {"sets": ([*SETS[:-1]], "", SETS), "seeds": (3, "splits, but one by time")}
QUICK = {"sets": [MADE_UP], "seeds": 1}


def cases(options: Options) -> Iterator[tuple[str, int, str]]:
    rivals = [name for name, (_, package, _) in RIVALS.items() if find_spec(package) is not None]
    tuned = [name + TUNED for name in rivals if RIVALS[name][2]]
    for name in options.sets:
        for seed in [0] if name == TIME else range(1000, 1000 + options.seeds):
            yield from ((name, seed, method) for method in (*rivals, *tuned, *OURS, FOLD_IN))


def rival(method: str, X: sp.csr_array, least: float, given: dict[str, Any]) -> tuple[Array, float]:
    """Return the ten best new items of all users (of equal scores the first), and seconds."""
    options = {key: value for key, value in given.items() if key != "graded"}
    used = graded(X) if given.get("graded") else (least <= X).astype(np.float32)
    begin = time.perf_counter()
    scores = RIVALS[method][0](used, **options)
    seconds, lists = time.perf_counter() - begin, []
    for users in np.array_split(np.arange(X.shape[0]), 5):
        block, known = np.array(scores(users), np.float32), X[users]
        block[np.repeat(np.arange(len(users)), np.diff(known.indptr)), known.indices] = -np.inf
        lists.append(np.argsort(-block, axis=1, kind="stable")[:, :10])
    return np.concatenate(lists), seconds


def best_setting(method: str, X: sp.csr_array, least: float) -> dict[str, Any]:
    pairs, several = (*X.nonzero(), X.data), RIVALS[method][2]
    hidden = hide(pairs[0], 1, 0.1)
    training, test = matrix(*pairs, ~hidden), matrix(*pairs, hidden) >= least
    lists = (rival(method, training, least, given)[0] for given in several)
    return several[int(np.argmax([ranking.ndcg(each, test) for each in lists]))]


def measure(options: Options, name: str, seed: int, method: str) -> Record:
    (pairs, times), least = pairs_of(name), 4 if name in (LIKES, TIME) else 1
    hidden = hide(pairs[0], seed, 0.25 if name == ALL else 0.2, times)
    X, test = matrix(*pairs, ~hidden), matrix(*pairs, hidden) >= least
    new = partial(sf.Recommender, random_state=0, n_threads=1)
    if method == FOLD_IN:
        order = np.random.default_rng(seed).permutation(X.shape[0])
        out, others = np.split(order, [len(order) // 5])
        both = new().fit(X[others]).recommend(X[out]), new().fit(X).recommend(out)
        found = [ranking.ndcg(each.items.astype(int), test[out]) for each in both]
        return dict(zip(FOLDED, found, strict=True))
    if method in OURS:
        begin = time.perf_counter()
        model = new(**OURS[method]).fit(X)
        seconds, lists = time.perf_counter() - begin, model.recommend().items.astype(int)
        given = {key: getattr(model, f"{key}_") for key in AUTO}
    else:
        plain = method.removesuffix(TUNED)
        given = best_setting(plain, X, least) if plain != method else {}
        lists, seconds = rival(plain, X, least, given)
    ndcg, recall = ranking.ndcg(lists, test), ranking.recall(lists, test, cap=name != ALL)
    say(f"{name} {seed}, {method}: nDCG {ndcg:.4f}, {seconds:.1f} s, {given}")
    measures = {"ndcg": ndcg, "precision": ranking.precision(lists, test), "recall": recall}
    return measures | {"seconds": seconds, "setting": given}


def report(records: list[Record], options: Options) -> str:
    def mean(own: list[Record], key: str) -> str:
        return f"{np.mean([r[key] for r in own]):.3f}"

    parts, measures = [f"{processor()}, one thread."], ("ndcg", "precision", "recall")
    for name, own in grouped([r for r in records if r["method"] != FOLD_IN], "data").items():
        rows = [
            [method, *(mean(r, key) for key in measures), f"{min(x['seconds'] for x in r):.2f}"]
            for method, r in grouped(own, "method").items()
        ]
        parts.append(markdown([name, "nDCG@10", *measures[1:], "seconds"], rows))
    folded = grouped([r for r in records if r["method"] == FOLD_IN], "data")
    rows = [[name, *(mean(own, key) for key in FOLDED)] for name, own in folded.items()]
    return "\n\n".join([*parts, markdown(["nDCG of a fifth of the users", *FOLDED], rows)])


def draw(records: list[Record], stem: Path) -> None:
    sets = grouped([r for r in records if r["method"] != FOLD_IN], "data")
    figure, axes = panels(2.2 * len(sets) + 2, 3.2, 1, len(sets))
    for axis, (name, own) in zip(axes[0], sets.items(), strict=True):
        found = grouped(own, "method")
        methods = [method for method in found if method + TUNED not in found][::-1]
        values = [np.mean([r["ndcg"] for r in found[method]]) for method in methods]
        bars = axis.barh(methods, values, color=["C0" if m in OURS else "0.7" for m in methods])
        axis.bar_label(bars, fmt="%.3f", fontsize=7, padding=1)
        axis.set(title=name, xlabel="nDCG@10", xlim=(0, 1.3 * max(values)))
        axis.tick_params("y", labelleft=axis is axes[0, 0], labelsize=8)
    figure.savefig(stem.with_suffix(".png"), dpi=110)


QUESTION = Question("data seed method", cases, measure, report, draw)
