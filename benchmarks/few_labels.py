"""How good are predictions from few labels?  `FewLabelsClassifier()`, compared with scikit-learn.

    python benchmarks/few_labels.py --out few_labels

Shares of 0.5 to 100 % of the training samples are labeled, or 2 to 64 of each class, five random
splits and draws each; only these labels are used for any choice.  Results are appended to
DIR/results.jsonl, line by line: started again, the script goes on where it was.  Tables go to
standard output, the picture to DIR/few_labels.png.
"""

from __future__ import annotations

import json
import time
import warnings
from collections import defaultdict
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    Array,
    load_average,
    markdown,
    measure_missing,
    new_parser,
    read_records,
    say,
)
from labeled_sets import (
    ALL_SETS,
    CLOSE_SETS,
    IMAGE_SETS,
    SEVERAL_SETS,
    TEXT_SETS,
    labeled,
    split,
)

AMOUNTS = (0.005, 0.01, 0.05, 0.2, 1.0, 2, 4, 8, 16, 32, 64)  # shares, and numbers for each class
OURS = "FewLabelsClassifier()"
SINGLE_SETS = (*TEXT_SETS, *CLOSE_SETS, *IMAGE_SETS)
KEY = ("amount", "draw", "data", "who")
Key = tuple[float, int, str, str]
last_split = lru_cache(1)(split)


def ours(data: Any, known: Array, draw: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the accuracy (or F scores) of the classifier, its interval and its seconds."""
    import ssnmf_fast as sf

    y = data.y.astype(float)
    y[~known] = np.nan
    begin = time.perf_counter()
    model = sf.FewLabelsClassifier(random_state=draw, **parameters).fit(data.X, y)
    seconds = time.perf_counter() - begin
    record: dict[str, Any] = {
        "seconds": seconds,
        "n_components": len(model.components_),
        "self_training": model.self_training_,
        "scores": model.validation_scores_,
    }
    predicted = model.predict(data.X_test)
    record |= {"expected": model.validation_accuracy_, "interval": list(model.validation_interval_)}
    if data.several:
        whole = float((predicted == data.y_test).all(axis=1).mean())
        return {**record, **f_scores(data.y_test, predicted), "all_right": whole}
    right = np.asarray(predicted == data.y_test)
    probability = model.predict_proba(data.X_test)
    chance = probability[np.arange(len(right)), data.y_test]
    return {
        **record,
        "accuracy": float(right.mean()),
        "log_loss": float(-np.log(chance).mean()),
        "calibration_error": calibration_error(probability.max(axis=1), right),
    }


def calibration_error(sureness: Array, right: Array, bins: int = 15) -> float:
    """Return the expected calibration error: how far sureness is from accuracy, by bins of it."""
    places = np.minimum((bins * sureness).astype(int), bins - 1)
    gaps = np.bincount(places, weights=sureness - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(right))


def f_scores(truth: Array, guess: Array) -> dict[str, float]:
    """Return micro and macro F."""
    from sklearn.metrics import f1_score

    kinds = ("micro", "macro")
    return {k: float(f1_score(truth, guess, average=k, zero_division=0)) for k in kinds}


def rivals_of(data: Any, known: Array, draw: int) -> list[dict[str, Any]]:
    """Return the accuracy (or F scores) of the methods of scikit-learn."""
    import rivals

    if data.several:
        found = rivals.run_several(data, known)
        return [{"method": name, **f_scores(data.y_test, guess)} for name, guess in found.items()]
    found = rivals.run(data, known, draw)
    return [{"method": name, "accuracy": accuracy} for name, accuracy in found.items()]


def measure(parameters: dict[str, Any], task: Key) -> dict[str, Any]:
    """Return the results of ours or of the rivals on a data set with some labels."""
    amount, draw, name, who = task
    data = last_split(name, draw)
    known = labeled(data.y, amount, draw)
    if who == "ours":
        found = [{"method": OURS, **ours(data, known, draw, parameters)}]
    else:
        found = rivals_of(data, known, draw)
    return dict(zip(KEY, task, strict=True)) | {"labels": int(known.sum()), "results": found}


def key(record: dict[str, Any]) -> Key:
    amount, draw, name, who = (record[part] for part in KEY)
    return amount, draw, name, who


def amount_name(amount: float) -> str:
    """Return an amount of labels in words."""
    return f"{100 * amount:g} %" if amount <= 1 else f"{amount:g} a class"


def means(records: list[dict[str, Any]], measure: str) -> dict[tuple[str, float], dict[str, float]]:
    """Return the mean of a measure for each data set and amount, by method."""
    values: Any = defaultdict(lambda: defaultdict(list))
    for record in records:
        if measure in record:
            values[record["data"], record["amount"]][record["method"]].append(record[measure])
    return {
        cell: {method: 100 * float(np.mean(v)) for method, v in by.items()}
        for cell, by in values.items()
    }


def table(cells: dict[tuple[str, float], dict[str, float]], sets: tuple[str, ...]) -> str:
    """Return a table with one row for each data set and amount, the best of a row in bold."""
    methods = [OURS, *dict.fromkeys(m for by in cells.values() for m in by if m != OURS)]
    rows = []
    for name, amount in product(sets, AMOUNTS):
        by = {m: f"{value:.1f}" for m, value in cells.get((name, amount), {}).items()}
        if by:
            best = f"{max(cells[name, amount].values()):.1f}"
            texts = [f"**{by[m]}**" if by.get(m) == best else by.get(m, "") for m in methods]
            rows.append([name, amount_name(amount), *texts])
    return markdown(["data", "labeled", *methods], rows)


def summary(records: list[dict[str, Any]]) -> list[str]:
    """Return the mean over the text sets by amount, and what the intervals are worth."""
    cells = means(records, "accuracy")
    lines = ["", "Mean over the text sets:", ""]
    pooled: dict[tuple[str, float], dict[str, float]] = {}
    for amount in AMOUNTS:
        rows = [cells[name, amount] for name in TEXT_SETS if (name, amount) in cells]
        if not rows:
            continue
        common = [m for m in rows[0] if all(m in row for row in rows)]
        pooled["mean", amount] = {m: float(np.mean([row[m] for row in rows])) for m in common}
    lines += [table(pooled, ("mean",))]
    worst = [
        (by[OURS] - max(v for m, v in by.items() if m != OURS), *cell)
        for cell, by in cells.items()
        if OURS in by and len(by) > 1
    ]
    lines += ["", "Cells farthest below the best rival:"]
    lines += [f"- {name}, {amount_name(a)}: {gap:+.1f}" for gap, name, a in sorted(worst)[:6]]
    given = [r for r in records if "interval" in r and np.isfinite(r["expected"])]
    if given:
        true = [r.get("accuracy", r.get("all_right")) for r in given]
        held = [r["interval"][0] <= t <= r["interval"][1] for r, t in zip(given, true, strict=True)]
        gap = np.mean([r["expected"] - t for r, t in zip(given, true, strict=True)])
        lines += [
            "",
            f"Intervals hold the test accuracy in {np.mean(held):.0%} of {len(held)} runs;",
        ]
        lines += [f"expected less true accuracy: {100 * gap:+.1f} points on average."]
    errors = [r["calibration_error"] for r in records if "calibration_error" in r]
    if errors:
        lines += ["", f"Expected calibration error: {np.mean(errors):.3f} on average."]
    return lines


def report(records: list[dict[str, Any]]) -> str:
    """Return all tables."""
    cells = means(records, "accuracy")
    lines = ["Accuracy in percent:", "", table(cells, SINGLE_SETS)]
    lines += summary(records)
    for kind in ("micro", "macro"):
        scores = means(records, kind)
        if scores:
            lines += ["", f"Several labels, {kind} F in percent:", "", table(scores, SEVERAL_SETS)]
    return "\n".join(lines)


def picture(records: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy against the share of labels, one panel for each data set."""
    from matplotlib.figure import Figure

    cells = means(records, "accuracy")
    sets = [n for n in SINGLE_SETS if any(cell[0] == n for cell in cells)]
    if not sets:
        return
    columns = min(3, len(sets))
    rows = -(-len(sets) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel()[len(sets) :]:
        axis.axis("off")
    methods = [OURS, *dict.fromkeys(m for by in cells.values() for m in by if m != OURS)]
    for axis, name in zip(axes.ravel(), sets, strict=False):
        for place, method in enumerate(methods):
            points = [
                (100 * amount, cells[name, amount][method])
                for amount in AMOUNTS
                if amount <= 1 and method in cells.get((name, amount), {})
            ]
            style: dict[str, Any] = {"markersize": 3, "linewidth": 1.0, "color": f"C{place}"}
            if method == OURS:
                style = {"markersize": 5, "linewidth": 2.4, "color": "black", "zorder": 3}
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", label=method, **style)
        axis.set_xscale("log")
        axis.set_xticks([0.5, 1, 5, 20, 100], ["0.5", "1", "5", "20", "100"])
        axis.minorticks_off()
        axis.set_title(name)
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("labeled samples, %")
    for row in axes:
        row[0].set_ylabel("test accuracy, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> None:
    """Run the script."""
    parser = new_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("few_labels"), help="default: %(default)s")
    parser.add_argument("--data", nargs="+", choices=ALL_SETS, default=list(ALL_SETS))
    parser.add_argument("--amounts", nargs="+", type=float, default=list(AMOUNTS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--who", nargs="+", choices=("ours", "rivals"), default=["ours", "rivals"])
    parser.add_argument(
        "--parameters",
        type=json.loads,
        default={},
        help="of the classifier, as JSON (default: none)",
    )
    parser.add_argument("--only-report", action="store_true", help="measure nothing more")
    parser.add_argument("--quick", action="store_true", help="digits, two shares")
    options = parser.parse_args(arguments)
    if options.quick:
        options.data, options.amounts = ["digits"], [0.02, 1.0]
    warnings.simplefilter("ignore")  # of convergence, of classes with one member
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.jsonl"
    if not options.only_report:
        say(f"load of the last minute: {load_average()}")
        # All data with few labels first.
        tasks = product(options.amounts, range(options.draws), options.data, options.who)
        measure_missing(tasks, key, partial(measure, options.parameters), path)
    records = [
        {"data": record["data"], "amount": record["amount"], **result}
        for record in read_records(path)
        for result in record["results"]
    ]
    print(report(records))
    picture(records, options.out / "few_labels.png")


if __name__ == "__main__":
    main()
