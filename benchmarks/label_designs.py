"""How good are predictions and their estimate, however the labels are drawn?

Labels are a plain random sample ("random": classes may be missing), the same number of each class
("even", at most half of a class), random with one class three times as often ("skewed"), or half
of them random and the others chosen by `suggest` ("suggest").  `FewLabelsClassifier()` and
classifiers of scikit-learn learn from them, and predict the other samples of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Array
from few_labels import OURS, calibration_error
from labeled_sets import DESIGN_SETS, split
from records import Options, Question, Record, grouped, markdown
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

import ssnmf_fast as sf
from ssnmf_fast.report.shares import shares_of_classes

NUMBERS = {"random": (100, 200, 400, 800), "even": (2, 8, 32), "skewed": (100, 200, 400, 800)}
NUMBERS["suggest"] = (200, 400)
AMOUNTS = [f"{design} {size}" for design, sizes in NUMBERS.items() for size in sizes]
OPTIONS = {"data": (list(DESIGN_SETS), "", DESIGN_SETS), "amounts": AMOUNTS, "draws": 2}
QUICK = {"data": ["digits"], "amounts": ["random 100", "even 8", "suggest 60"], "draws": 1}
RIVALS = {
    "LinearSVC": LinearSVC(random_state=0),
    "logistic regression": LogisticRegression(C=10, tol=1e-3, max_iter=500),
    "naive Bayes": ComplementNB(),
}
_MOST_SAMPLES = 3000


def drawn(X: Any, y: Array, amount: str, draw: int) -> Array:
    """Return which samples are labeled, (n,)."""
    design, size = amount.split()[0], int(amount.split()[1])
    rng = np.random.default_rng([draw, size])
    known, counts = np.zeros(len(y), dtype=bool), np.bincount(y)
    if design == "even":
        for c, count in enumerate(counts):
            known[rng.permutation(np.flatnonzero(y == c))[: min(size, max(1, count // 2))]] = True
        return known
    often = -1
    if design == "skewed":  # the second or third most frequent class
        often = np.argsort(-counts)[min(1 + draw % 2, len(counts) - 1)]
    chance = np.where(y == often, 3.0, 1.0)
    number = size // 2 if design == "suggest" else size
    known[rng.choice(len(y), number, replace=False, p=chance / chance.sum())] = True
    if design == "suggest":
        rest = np.flatnonzero(~known)
        known[rest[fitted(X, y, known, draw).suggest(X[rest], size - number)]] = True
    return known


def fitted(X: Any, y: Array, known: Array, draw: int) -> Any:
    return sf.FewLabelsClassifier(random_state=draw).fit(X, np.where(known, y, -1))


def measure(options: Options, amount: str, draw: int, data: str) -> Record:
    it = split(data, 0)
    rows = np.random.default_rng(draw).permutation(len(it.y))[:_MOST_SAMPLES]
    X, y = it.X[rows], it.y[rows]
    known = drawn(X, y, amount, draw)
    truth, model = y[~known], fitted(X, y, known, draw)
    chance = model.predict_proba(X)
    guess = model.classes_[chance.argmax(axis=1)]
    guesses = {OURS: guess[~known]}
    for name, machine in RIVALS.items():
        guesses[name] = machine.fit(X[known], y[known]).predict(X[~known])
    indicators = [one[:, None] == model.classes_ for one in (y, guess)]
    everything = np.ones(len(y), dtype=bool)
    shares = shares_of_classes(model, indicators[0], known, chance, indicators[1], everything)
    of_all = [np.mean(y == c) for c in model.classes_]
    return {
        "labels": int(known.sum()),
        "classes": len(np.unique(y)),
        "accuracy": {name: float(np.mean(one == truth)) for name, one in guesses.items()},
        "macro": {
            name: float(f1_score(truth, one, average="macro", labels=np.unique(truth)))
            for name, one in guesses.items()
        },
        "says": model.validation_accuracy_,
        "interval": list(model.validation_interval_),
        "calibration": calibration_error(chance[~known].max(axis=1), guesses[OURS] == truth),
        "shares held": [bool(s.low <= t <= s.high) for s, t in zip(shares, of_all, strict=True)],
    }


def row_of(records: list[Record]) -> list[str]:
    """Return what a table says about the draws of one cell, or of several cells."""
    cells = grouped(records, "data", "amount").values()
    pairs = {}  # ours and the best of the others, for each cell
    for kind in ("accuracy", "macro"):
        means = [{m: np.mean([r[kind][m] for r in own]) for m in own[0][kind]} for own in cells]
        best = [max(value for m, value in by.items() if m != OURS) for by in means]
        pairs[kind] = np.array([[by[OURS] for by in means], best])
    row = ["{:.1f} / {:.1f}".format(*100 * pair.mean(axis=1)) for pair in pairs.values()]
    row.insert(1, f"{100 * np.subtract(*pairs['accuracy']).min():+.1f}")
    said = [r for r in records if np.isfinite(r["says"])]
    true = [r["accuracy"][OURS] for r in said]
    off = [abs(r["says"] - t) for r, t in zip(said, true, strict=True)]
    held = [r["interval"][0] <= t <= r["interval"][1] for r, t in zip(said, true, strict=True)]
    row += [f"{100 * np.mean(off):.1f}", f"{100 * np.mean(held):.0f} %"] if said else ["", ""]
    row.append(f"{np.mean([r['calibration'] for r in records]):.3f}")
    shares = [one for r in said for one in r["shares held"]]
    row.append(f"{100 * np.mean(shares):.0f} %" if shares else "")
    return row


def report(records: list[Record], options: Options) -> str:
    ends = ["macro F", "off by", "covered", "ECE", "shares"]
    records = [{**r, "design": r["amount"].split()[0], "": "all"} for r in records]
    lines = []
    for name in ("amount", "design", ""):
        groups = grouped(records, name).items()
        rows = [[place, str(len(own)), *row_of(own)] for place, own in groups]
        lines += [markdown([name, "cases", "accuracy", "worst lead", *ends], rows), ""]
    cells = sorted(grouped(records, "data", "amount").items())
    rows = [[*place, str(own[0]["classes"]), *row_of(own)] for place, own in cells]
    lines += [markdown(["data", "labels", "classes", "accuracy", "lead", *ends], rows)]
    return "\n".join(lines)


QUESTION = Question("amount draw data", "amounts draws data", measure, report, threads=None)
