"""How many labels does `FewLabelsClassifier.suggest` save, beside labeling at random?

    python benchmarks/suggest.py --out suggest

The first labels are one of each class, or ten at random; then ten more are added again and again,
up to 100: those that the classifier suggests of the unlabeled training samples, or random ones.
Ten random splits and draws each, the same for both.  Results are appended to DIR/results.jsonl,
line by line: started again, the script goes on where it was.  Tables go to standard output, the
picture to DIR/suggest.png.
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, load_average, markdown, measure_missing, new_parser, read_records, say
from labeled_sets import IMAGE_SETS, TEXT_SETS, split

SETS = ("5 newsgroups", "BBC", "Reuters 10")
FIRST = ("one a class", "ten at random")
WHO = ("suggested", "random")
BATCH, MOST = 10, 100
SHOWN = (20, 40, 60, 80, 100)  # labels; random ones are measured with so many only
KEY = ("draw", "data", "first", "who")
Key = tuple[int, str, str, str]
last_split = lru_cache(1)(split)


def first_rows(y: Array, first: str, draw: int) -> Array:
    """Return the samples that are labeled first; ten at random are of two classes at least."""
    order = np.random.default_rng([draw, 1]).permutation(len(y))
    if first == "one a class":
        return np.concatenate([order[np.flatnonzero(y[order] == c)[:1]] for c in np.unique(y)])
    other = np.flatnonzero(y[order] != y[order[0]])[0]
    return order[:BATCH] if other < BATCH else order[[*range(BATCH - 1), other]]


def measure(most: int, task: Key) -> dict[str, Any]:
    """Return the accuracy for growing numbers of labels, and the seconds of a suggestion."""
    import ssnmf_fast as sf

    draw, name, first, who = task
    data = last_split(name, draw)
    rows, curve, seconds = first_rows(data.y, first, draw), [], 0.0
    rest = np.setdiff1d(np.arange(len(data.y)), rows)
    rest = np.random.default_rng([draw, 2]).permutation(rest)
    while True:
        if who == "suggested" or len(rows) in SHOWN:
            y = np.full(len(data.y), np.nan)
            y[rows] = data.y[rows]
            model = sf.FewLabelsClassifier(random_state=draw).fit(data.X, y)
            accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
            expected, interval = model.validation_accuracy_, list(model.validation_interval_)
            curve.append([len(rows), accuracy, expected, *interval])
        if len(rows) >= most:
            break
        count = BATCH - len(rows) % BATCH
        chosen = np.arange(count)
        if who == "suggested":
            begin = time.perf_counter()
            chosen = model.suggest(data.X[rest], count)
            seconds = max(seconds, time.perf_counter() - begin)
        rows, rest = np.concatenate([rows, rest[chosen]]), np.delete(rest, chosen)
    return dict(zip(KEY, task, strict=True)) | {"curve": curve, "seconds": seconds}


def key(record: dict[str, Any]) -> Key:
    draw, name, first, who = (record[part] for part in KEY)
    return draw, name, first, who


def mean_curve(records: list[dict[str, Any]], *cell: str) -> dict[int, float]:
    """Return the mean accuracy in percent for each number of labels, of one data set and way."""
    curves = [r["curve"] for r in records if tuple(r[part] for part in KEY[1:]) == cell]
    if not curves:
        return {}
    numbers = [int(point[0]) for point in curves[0]]
    values = 100 * np.mean([[point[1] for point in curve] for curve in curves], axis=0)
    return dict(zip(numbers, values.tolist(), strict=True))


def needed(curve: dict[int, float], accuracy: float) -> str:
    """Return with how many labels a mean accuracy is reached."""
    return next((str(n) for n, value in curve.items() if value >= accuracy), "more")


def report(records: list[dict[str, Any]]) -> str:
    """Return all tables."""
    rows = []
    names = list(dict.fromkeys(record["data"] for record in records))
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


def picture(records: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy against the number of labels, one panel for each data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(record["data"] for record in records))
    figure = Figure(figsize=(3.6 * len(names), 3.3), layout="constrained")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        for (place, who), (first, line) in product(
            enumerate(WHO), zip(FIRST, ("-", "--"), strict=True)
        ):
            curve = mean_curve(records, name, first, who)
            label = f"{who}, first {first}"
            axis.plot([*curve], [*curve.values()], line, color=f"C{place}", label=label)
        axis.set_title(name)
        axis.set_xlabel("labels")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> None:
    """Run the script."""
    parser = new_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("suggest"), help="default: %(default)s")
    known = (*TEXT_SETS, *IMAGE_SETS)
    parser.add_argument("--data", nargs="+", choices=known, default=list(SETS))
    parser.add_argument("--first", nargs="+", choices=FIRST, default=list(FIRST))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only-report", action="store_true", help="measure nothing more")
    parser.add_argument("--quick", action="store_true", help="digits, one draw, 30 labels")
    options = parser.parse_args(arguments)
    most = MOST
    if options.quick:
        options.data, options.draws, most = ["digits"], 1, 3 * BATCH
    warnings.simplefilter("ignore")  # of convergence, of classes with one member
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.jsonl"
    if not options.only_report:
        say(f"load of the last minute: {load_average()}")
        tasks = product(range(options.draws), options.data, options.first, WHO)
        measure_missing(tasks, key, lambda task: measure(most, task), path, "curves")
    records = read_records(path)
    print(report(records))
    picture(records, options.out / "suggest.png")


if __name__ == "__main__":
    main()
