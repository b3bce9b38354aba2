"""How many labels does `FewLabelsClassifier.suggest` save, compared with labeling at random?

The first labels are one of each class, or ten at random; then ten more are added again and again,
up to 100: those that the classifier suggests of the unlabeled training samples, or random ones.
Ten random splits and draws each, the same for both.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
from common import Array
from labeled_sets import IMAGE_SETS, TEXT_SETS, split
from records import Options, Question, Record, grouped, markdown

import ssnmf_fast as sf

SETS = ("5 newsgroups", "BBC", "Reuters 10")
FIRST = ("one per class", "ten at random")
WHO = ("suggested", "random")
BATCH = 10
SHOWN = (20, 40, 60, 80, 100)  # labels; random ones are measured with so many only
OPTIONS = {
    "data": (list(SETS), "", (*TEXT_SETS, *IMAGE_SETS)),
    "first": (list(FIRST), "", FIRST),
    "draws": 10,
    "most": (100, "labels"),
}
QUICK = {"data": ["digits"], "draws": 1, "most": 30}


def first_rows(y: Array, first: str, draw: int) -> Array:
    """Return the samples that are labeled first; ten at random are of two classes at least."""
    order = np.random.default_rng([draw, 1]).permutation(len(y))
    if first == "one per class":
        return np.concatenate([order[np.flatnonzero(y[order] == c)[:1]] for c in np.unique(y)])
    other = np.flatnonzero(y[order] != y[order[0]])[0]
    return order[:BATCH] if other < BATCH else order[[*range(BATCH - 1), other]]


def measure(options: Options, draw: int, data: str, first: str, who: str) -> Record:
    it = split(data, draw)
    rows, curve, seconds = first_rows(it.y, first, draw), [], 0.0
    rest = np.setdiff1d(np.arange(len(it.y)), rows)
    rest = np.random.default_rng([draw, 2]).permutation(rest)
    while True:
        if who == "suggested" or len(rows) in SHOWN:
            y = np.full(len(it.y), np.nan)
            y[rows] = it.y[rows]
            model = sf.FewLabelsClassifier(random_state=draw).fit(it.X, y)
            accuracy = float(np.mean(model.predict(it.X_test) == it.y_test))
            expected, interval = model.validation_accuracy_, list(model.validation_interval_)
            curve.append([len(rows), accuracy, expected, *interval])
        if len(rows) >= options.most:
            break
        count = BATCH - len(rows) % BATCH
        chosen = np.arange(count)
        if who == "suggested":
            begin = time.perf_counter()
            chosen = model.suggest(it.X[rest], count)
            seconds = max(seconds, time.perf_counter() - begin)
        rows, rest = np.concatenate([rows, rest[chosen]]), np.delete(rest, chosen)
    return {"curve": curve, "seconds": seconds}


def mean_curve(records: list[Record], *cell: str) -> dict[int, float]:
    """Return the mean accuracy in percent for each number of labels, of one data set and way."""
    curves = [r["curve"] for r in records if (r["data"], r["first"], r["who"]) == cell]
    if not curves:
        return {}
    numbers = [int(point[0]) for point in curves[0]]
    values = 100 * np.mean([[point[1] for point in curve] for curve in curves], axis=0)
    return dict(zip(numbers, values.tolist(), strict=True))


def needed(curve: dict[int, float], accuracy: float) -> str:
    return next((str(n) for n, value in curve.items() if value >= accuracy), "more")


def report(records: list[Record], options: Options) -> str:
    rows = []
    names = list(grouped(records, "data"))
    for name, first in product(names, FIRST):
        curves = {who: mean_curve(records, name, first, who) for who in WHO}
        if not all(curves.values()):
            continue
        last = list(curves["random"].values())[-1]
        for who, curve in curves.items():
            shown = [f"{curve[n]:.1f}" if n in curve else "" for n in SHOWN]
            rows.append([name, first, who, *shown, needed(curve, last)])
    header = ["data", "first labels", "then", *(f"{n} labels" for n in SHOWN), "needed"]
    lines = ["Test accuracy in percent, and the labels needed for what all random ones reach:", ""]
    lines += [markdown(header, rows), ""]
    for who in WHO:
        points = [point for r in records if r["who"] == who for point in r["curve"]]
        points = [point for point in points if np.isfinite(point[2])]
        if not points:
            continue
        gap = 100 * np.mean([point[2] - point[1] for point in points])
        inside = np.mean([point[3] <= point[1] <= point[4] for point in points])
        lines.append(
            f"- {who} labels: validation less true accuracy {gap:+.1f} points on average; the "
            f"interval holds it in {inside:.0%} of {len(points)} fits."
        )
    lines.append(f"- longest suggestion: {max(record['seconds'] for record in records):.2f} s")
    return "\n".join(lines)


def cases(options: Options) -> Any:
    return product(range(options.draws), options.data, options.first, WHO)


QUESTION = Question("draw data first who", cases, measure, report, threads=None)
