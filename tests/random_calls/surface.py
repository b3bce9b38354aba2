"""Random calls at the surface for :mod:`random_calls`: names, ids, labels, dates, files, commands.

Each call is made twice in two spellings that mean the same, or compared with plain NumPy, pandas or
scikit-learn.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import NMF
from sklearn.metrics import get_scorer

import ssnmf_fast as sf
from random_calls import problems as draw
from ssnmf_fast import cli, extend
from ssnmf_fast.sklearn import NMF as OurNMF

Array = draw.Array
ONE: dict[str, Any] = {"max_iter": 5, "random_state": 0}
WORDS = np.array(["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibex", "jay", "koi"])


def _call(name: str, arguments: dict[str, Any], both: Callable[..., list[str]]) -> draw.Call:
    """Return a call whose `both` gives what differs between two ways that mean the same."""
    return draw.Call(
        name,
        arguments,
        lambda given, n_threads: {"differences": both(**given, n_threads=n_threads)},
        lambda results: list(results["differences"]),
    )


def _differ(what: str, first: Any, second: Any, slack: float = 0.0) -> list[str]:
    a, b = np.asarray(first), np.asarray(second)
    if a.shape == b.shape and (
        np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f")
        if slack == 0
        else np.allclose(
            a, b, slack, slack * np.abs(np.nan_to_num(a)).max(initial=0), equal_nan=True
        )
    ):
        return []
    return [f"{what}: {a.ravel()[:6]} and {b.ravel()[:6]}"]


def _counts(rng: Any, n: int, m: int, dtype: Any = np.float64) -> Array:
    return (rng.poisson(rng.gamma(0.4, 1.0, (n, m))) + np.eye(n, m)).astype(dtype)


def class_columns(rng: Any) -> draw.Call:
    """Classes are sorted, and probabilities are in their order, whatever the order of names."""
    n, k = int(rng.integers(16, 40)), int(rng.integers(2, 5))
    X, names = _counts(rng, n, 12), rng.permutation(WORDS)[:k].tolist()
    y = np.array(names)[np.r_[np.arange(k), np.arange(k), rng.integers(0, k, n - 2 * k)]]
    makers: list[Callable[[int], Any]] = [
        lambda t: sf.SeededTopics({c: [i] for i, c in enumerate(names)}, **ONE, n_threads=t).fit(X),
        lambda t: sf.TopicSupervisedNMF(topic_names=names, **ONE, n_threads=t).fit(X, y),
        lambda t: sf.SSNMFClassifier(k, **ONE, n_threads=t).fit(X, y),
        lambda t: sf.papers.ConstrainedNMF(k + 2, **ONE, n_threads=t).fit(X, y),
    ]
    make = makers[rng.integers(len(makers))]

    def both(n_threads: int) -> list[str]:
        model = make(n_threads)
        found = _differ("classes_", model.classes_, sorted(names))
        chance = pd.DataFrame(model.predict_proba(X), columns=model.classes_)
        found += _differ("predict", model.predict(X), chance.idxmax(axis=1))
        true = np.array([chance.loc[i, c] for i, c in enumerate(y)]).clip(np.finfo(float).eps)
        if np.abs(chance.sum(axis=1) - 1).max() < 1e-9:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                score = get_scorer("neg_log_loss")(model, X, y)
            found += _differ("log loss", score, np.log(true.clip(max=1 - 1e-16)).mean(), 1e-6)
        return found

    return _call("columns of classes", {}, both)


def streams(rng: Any) -> draw.Call:
    """A model that is saved between batches goes on as one that is not."""
    X, y = _counts(rng, 24, 10, draw.floats(rng)), rng.random((24, 2))
    kind = int(rng.integers(4))
    cut = int(rng.integers(6, 18))

    def both(n_threads: int) -> list[str]:
        options = {**ONE, "n_threads": n_threads}
        model: Any = [
            lambda: sf.NMF(3, **options),
            lambda: sf.SSNMFRegressor(3, **options),
            lambda: sf.SSNMFClassifier(3, **options),
            lambda: sf.DynamicTopics(3, **options),
        ][kind]()
        batches = [
            [rows, *([y[part]] if kind == 1 else [y[part, 0] > 0.5] if kind == 2 else [])]
            for part in (slice(0, cut), slice(cut, None))
            for rows in [X[part]]
        ]
        if kind == 3:
            batches[0].append(np.arange(cut) // 4 + 2000)
            batches[1].append(np.arange(cut, 24) // 4 + 2000)
        more = {"classes": [False, True]} if kind == 2 else {}
        model.partial_fit(*batches[0], **more)
        with tempfile.TemporaryDirectory() as folder:
            sf.save(model, Path(folder) / "model.npz")
            loaded = sf.load(Path(folder) / "model.npz")
        for each in (model, loaded):
            each.partial_fit(*batches[1])
        return _differ("components_", model.components_, loaded.components_)

    return _call("stream in a file", {}, both)


def weightless(rng: Any) -> draw.Call:
    """What lies under a weight of 0 is not read, by whatever start and model."""
    X = _counts(rng, 14, 9, draw.floats(rng)) + 0.5
    W = (rng.random(X.shape) < 0.7) | np.eye(*X.shape, dtype=bool)
    W[:, 0] = True
    other = np.where(W, X, X * rng.choice([0.0, 7.0, 100.0])).astype(X.dtype)
    init = str(rng.choice(["auto", "random", "random-acol", "least-squares", "nndsvda"]))
    loss = str(rng.choice(draw.LOSSES))
    make = [lambda: sf.weights.observed(W.astype(X.dtype)), lambda: W.astype(X.dtype)]
    form = make[rng.integers(2)]

    def both(n_threads: int) -> list[str]:
        fits = [
            sf.factorize(
                data,
                n_components=3,
                X_weights=form(),
                init=init,
                loss=loss,
                **ONE,
                n_threads=n_threads,
            )
            for data in (X, other)
        ]
        found = _differ("A", fits[0].A, fits[1].A) + _differ("S", fits[0].S, fits[1].S)
        rows = [
            sf.represent(data, fits[0].A, X_weights=form(), loss=loss, n_threads=n_threads)
            for data in (X, other)
        ]
        return found + _differ("represent", *rows)

    return _call("weights of 0", {}, both)


def coefficients(rng: Any) -> draw.Call:
    """A coefficient multiplies the objective, and changes no factor."""
    X, c = _counts(rng, 15, 8), float(10.0 ** rng.uniform(-3, 3))
    loss = rng.choice([*draw.LOSSES, "itakura-saito"])
    X = X + (loss == "itakura-saito")

    def both(n_threads: int) -> list[str]:
        fits = [
            extend.fit(
                [extend.relation("S", "A", X, loss=str(loss), coefficient=each)],
                n_components=3,
                tol=0.0,
                **ONE,
            )
            for each in (1.0, c)
        ]
        values = [np.array([value for _, value in fit.objective]) for fit in fits]
        return _differ("objective", values[0] * c, values[1], 1e-6)

    return _call("coefficient", {}, both)


def by_name(rng: Any) -> draw.Call:
    """Columns of a second table are found by their names."""
    n, m = int(rng.integers(8, 20)), int(rng.integers(4, 9))
    X, names = _counts(rng, n, m), rng.permutation(WORDS)[:m]
    order = rng.permutation(m)
    frame, A = pd.DataFrame(X, columns=names), rng.random((2, m)) + 0.1
    table = pd.DataFrame(A, columns=names).iloc[:, order]
    support = pd.DataFrame((A > 0.3) | (A.max(axis=0) == A), columns=names)
    C = rng.random((n, 3))
    covariates = pd.DataFrame(C, columns=["a", "b", "c"])
    kind = int(rng.integers(4))

    def both(n_threads: int) -> list[str]:
        one = {**ONE, "n_threads": n_threads}
        if kind == 0:
            ways = [sf.represent(frame, a, n_threads=n_threads) for a in (table, A)]
        elif kind == 1:
            ways = [
                sf.factorize(frame, n_components=3, fixed_components=a, **one).A for a in (table, A)
            ]
        elif kind == 2:
            ways = [
                sf.NMF(2, A_support=a, **one).fit(frame).components_
                for a in (support.iloc[:, order], support.to_numpy())
            ]
        else:
            model = sf.NMF(4, **one).fit(X, covariates=covariates)
            ways = [model.transform(X, covariates=covariates[list(c)]) for c in ("abc", "cab")]
        return _differ("by name", np.asarray(ways[0]), np.asarray(ways[1]))

    return _call("names of a second table", {}, both)


def unobserved(rng: Any) -> draw.Call:
    """A row or column without data gets no loadings of the start; all of it is refused."""
    X = _counts(rng, 12, 7, draw.floats(rng)) + 0.1
    i, j = int(rng.integers(12)), int(rng.integers(7))
    whole = bool(rng.random() < 0.3)
    if whole:
        X[:] = np.nan
    elif rng.random() < 0.5:
        X[i] = np.nan
    else:
        X[:, j] = np.nan
    loss = str(rng.choice(draw.LOSSES))
    estimator = bool(rng.random() < 0.5)

    def both(data: Array, n_threads: int) -> list[str]:
        if estimator:
            model = sf.NMF(2, loss=loss, **ONE, n_threads=n_threads).fit(data)
            S, A = model.representation_, model.components_
        else:
            fit = sf.factorize(data, n_components=2, loss=loss, **ONE, n_threads=n_threads)
            S, A = fit.S, fit.A
        empty = np.concatenate([S[np.isnan(data).all(axis=1)], A.T[np.isnan(data).all(axis=0)]])
        return [] if not np.nan_to_num(empty).any() else [f"loadings of nothing: {empty}"]

    call = _call("nothing observed", {"data": X}, both)
    call.illegal = "data" if whole else ""
    return call


IDS: list[Callable[[Array], Any]] = [
    lambda k: k.tolist(),
    lambda k: [f"u{i}" for i in k],
    lambda k: [10**18 + int(i) for i in k],
    lambda k: [2**63 + int(i) for i in k],
    lambda k: np.datetime64("2020-01-01", "D") + k,
    lambda k: pd.Series(pd.array(k, dtype="Int64")),
    lambda k: pd.Series([f"u{i}" for i in k], dtype="string"),
    lambda k: pd.Series([f"u{i}" for i in k], dtype="category"),
]


def recommendations(rng: Any) -> draw.Call:
    """Users of the fit, given again as new ones, get their lists; ids come back as they were."""
    n, users, items = int(rng.integers(60, 150)), int(rng.integers(5, 12)), int(rng.integers(6, 12))
    u, i = rng.integers(0, users, n), rng.integers(0, items, n)
    form = IDS[rng.integers(len(IDS))]
    style = int(rng.integers(3))
    v = [None, rng.integers(1, 6, n).astype(float), rng.integers(0, 2, n).astype(float)][style]
    if v is not None:
        v[u == 0] = v.min()

    def both(n_threads: int) -> list[str]:
        given = [form(u), form(i), *([] if v is None else [v])]
        model = sf.Recommender(3, max_iter=4, random_state=0, n_threads=n_threads).fit(*given)
        known = list(dict.fromkeys(list(form(u))))
        lists = model.recommend(known, 4)
        table = pd.DataFrame({"u": list(given[0]), "i": list(given[1])})
        table["v"] = 1.0 if v is None else v
        counted = {
            str(name): [*map(float, own.groupby("i", sort=False).size())]
            for name, own in table.groupby("u", sort=False)
        }
        repeated = {str(k): own.i.tolist() for k, own in table.groupby("u", sort=False)}
        once = {
            name: dict(zip(dict.fromkeys(own), counted[name], strict=True))
            for name, own in repeated.items()
        }
        found = _differ("users", len(set(model.user_ids_)), len(set(u.tolist())))
        if v is None:
            again = [model.recommend(each, 4).scores for each in (repeated, once)]
            found += _differ("histories", *again)
        if v is not None and np.ptp(v) and 0 in u:
            disliking = list(dict.fromkeys(u.tolist())).index(0)
            if not lists.popular[disliking] and not np.nan_to_num(lists.scores[disliking]).any():
                found.append("a user who liked nothing has a list of zeros")
        unknown = set(lists.items.ravel().tolist()) - {None} - set(pd.Series(form(i)).tolist())
        found += [f"unknown items {unknown}"] * bool(unknown)
        return found

    return _call("Recommender", {}, both)


def drop_in(rng: Any) -> draw.Call:
    """The drop-in ends as scikit-learn does, at every scale and dtype."""
    dtype = draw.floats(rng)
    scale = 10.0 ** rng.choice([0, 0, -17, 15, -25, 25] + [-140, 140] * (dtype == np.float64))
    X = ((_counts(rng, 15, 8) + 0.1) * scale).astype(dtype)
    options: dict[str, Any] = {"solver": str(rng.choice(["cd", "mu"]))}
    if options["solver"] == "mu":
        options["beta_loss"] = [2, 1, 0, 1.5][rng.integers(4)]
    options |= {
        "init": str(rng.choice(["random", "nndsvda"])),
        "max_iter": int(rng.integers(1, 15)),
    }
    options |= {"tol": 0, "random_state": 0, "alpha_W": float(rng.choice([0.0, 0.0, 0.01]))}

    def both(n_threads: int) -> list[str]:
        fits = []
        for kind in (OurNMF, NMF):
            model = kind(3, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                W = model.fit_transform(X)
            fits.append(
                (W.astype(float) / scale**0.5, model.components_ / scale**0.5, model.n_iter_)
            )
        slack = 1e-7 if dtype == np.float64 else 1e-2
        ends = [W @ H for W, H, _ in fits]
        return _differ("W H", ends[1], ends[0], slack) + _differ("n_iter_", fits[0][2], fits[1][2])

    return _call("drop-in", {}, both)


FORMATS = [
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%Y-%m-%d %H:%M:%S+00",
    "%Y%m%dT%H%M%SZ",
    "%Y%m%d",
    "%Y-%m-%dT%H:%M:%S.%f",
]


def dates(rng: Any) -> draw.Call:
    """Dates as text are those of NumPy, with any sign of the year."""
    n = 24
    X = _counts(rng, n, 8)
    days = np.datetime64("2003-05-01", "s") + rng.integers(0, 200 * 86400, n)
    form = FORMATS[rng.integers(len(FORMATS))]
    texts = pd.to_datetime(days).strftime(form).tolist()
    if "%H" not in form:
        days = days.astype("datetime64[D]")
    if rng.random() < 0.3:
        days = np.datetime64("-0044-03-15") + rng.integers(0, 900, n)
        texts = [f"-{int(str(day)[1:-6]):04d}{str(day)[-6:]}" for day in days]

    def both(n_threads: int) -> list[str]:
        model = sf.NMF(2, **ONE, n_threads=n_threads).fit(X)
        tables = [sf.topics_over_time(model, X, times, freq="month") for times in (days, texts)]
        found = _differ("slices", *[table.slices for table in tables])
        return found + _differ("prevalence", *[table.prevalence for table in tables])

    return _call(f"dates as {form}", {}, both)


SPELLINGS: list[Callable[[str], str]] = [
    str.upper,
    str.title,
    lambda name: f"{name} ",
    lambda name: f"\u00a0{name}",
    lambda name: f"{name[:1]}\u200b{name[1:]}",
    lambda name: f"\ufeff{name}",
]


def spellings(rng: Any) -> draw.Call:
    """Classes that agree but for their spelling are named by a warning; others are not."""
    X, k = _counts(rng, 24, 8), int(rng.integers(2, 4))
    names = rng.permutation(WORDS)[:k].tolist()
    y = [names[i % k] for i in range(24)]
    odd = bool(rng.random() < 0.6)
    if odd:
        change = SPELLINGS[rng.integers(len(SPELLINGS))]
        for i in range(0, 24, 2 * k):
            y[i] = change(y[i])

    def both(n_threads: int) -> list[str]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = sf.SSNMFClassifier(3, **ONE, n_threads=n_threads).fit(X, y)
        told_of = [str(each.message) for each in told if names[0] in str(each.message)]
        found = _differ("classes_", model.classes_, sorted(set(y)))
        if bool(told_of) != odd:
            found.append(
                f"{sorted(set(y))} gave the warnings {[str(each.message) for each in told]}"
            )
        return found

    return _call("spellings of labels", {}, both)


def _run(*order: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main([*order])
    return status, out.getvalue(), err.getvalue()


MARKS = ("", '"', "'", '""', ",", "\t", " \u00e9", "(", "=")


def command(rng: Any) -> draw.Call:
    """No row of a table vanishes, ids come back, and no file of others is replaced."""
    n, kind = int(rng.integers(16, 30)), str(rng.choice(["csv", "tsv", "jsonl"]))
    texts = [
        f"{MARKS[rng.integers(len(MARKS))]}{' '.join(rng.permutation(WORDS)[:5])}" for _ in range(n)
    ]
    first = int(rng.choice([1, 10**3, 10**18]))
    ids = [first + 7 * i for i in range(n)]
    labels = [["x", "y"][i % 2] if i < 12 else "" for i in range(n)]
    quoted, strange = bool(rng.random() < 0.8), bool(rng.random() < 0.2)

    def write(path: Path) -> None:
        rows = list(zip(ids, texts, labels, strict=True))
        if kind == "jsonl":
            lines = [json.dumps({"id": a, "text": b, "label": c}) for a, b, c in rows]
        elif quoted or any(mark in text for text in texts for mark in ",\t"):
            frame = pd.DataFrame(rows, columns=["id", "text", "label"])
            lines = [frame.to_csv(index=False, sep=",\t"[kind == "tsv"]).rstrip("\n")]
        else:
            sep = ",\t"[kind == "tsv"]
            lines = [sep.join(map(str, row)) for row in [("id", "text", "label"), *rows]]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def both(n_threads: int) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            data, out = folder / f"data.{kind}", folder / "out"
            write(data)
            if strange:
                out.mkdir()
                (out / "predictions.csv").write_text("mine")
            more = ["--rank", "2", "--model", "ssnmf", "--max-iter", "3", "--labels", "label"]
            status, _, err = _run("fit", str(data), "--out", str(out), *more)
            if strange:
                kept = (out / "predictions.csv").read_text() == "mine" and status == 2
                return [] if kept else [f"a file of others: status {status}"]
            if status:
                refused = not quoted and "line" in err
                return [] if refused else [f"status {status}: {err}"]
            table = pd.read_csv(out / "predictions.csv", dtype=str)
            found = _differ("ids", table["id"], [str(each) for each in ids])
            status, _, err = _run("predict", str(out), str(data), "--out", str(folder / "p.csv"))
            if status:
                return [*found, f"predict: status {status}: {err}"]
            again = pd.read_csv(folder / "p.csv", dtype=str)
            return found + _differ("ids of predict", again["id"], [str(each) for each in ids])

    return _call(f"command on .{kind}", {}, both)


SURFACE = [
    *itertools.chain.from_iterable(
        [each] * 3
        for each in (class_columns, streams, weightless, coefficients, by_name, unobserved)
    ),
    *[recommendations] * 3,
    *[drop_in] * 3,
    *[dates] * 2,
    *[spellings] * 2,
    command,
]
