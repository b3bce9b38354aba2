"""How good are predictions from few labels?  `FewLabelsClassifier()`, compared with scikit-learn.

Shares of 0.5 to 100 % of the training samples are labeled, or 2 to 64 of each class, five random
splits and draws each; only these labels are used for any choice.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, panels, timed
from labeled_sets import ALL_SETS, CLOSE_SETS, IMAGE_SETS, SEVERAL_SETS, TEXT_SETS, labeled, split
from records import Options, Question, Record, grouped, markdown
from sklearn.metrics import f1_score

import ssnmf_fast as sf

AMOUNTS = [0.005, 0.01, 0.05, 0.2, 1.0, 2, 4, 8, 16, 32, 64]  # shares, and numbers for each class
OURS = "FewLabelsClassifier()"
SINGLE_SETS = (*TEXT_SETS, *CLOSE_SETS, *IMAGE_SETS)
OPTIONS = {
    "data": (list(ALL_SETS), "", ALL_SETS),
    "amounts": AMOUNTS,
    "draws": 5,
    "who": (["ours", "rivals"], "", ("ours", "rivals")),
    "parameters": (json.loads, "of the classifier, as JSON (default: none)"),
}
QUICK = {"data": ["digits"], "amounts": [0.02, 1.0]}


def ours(data: Any, known: Array, draw: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the accuracy (or F scores) of the classifier, its interval and its seconds."""
    y = data.y.astype(float)
    y[~known] = np.nan
    model, seconds = timed(sf.FewLabelsClassifier(random_state=draw, **parameters).fit, data.X, y)
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
    kinds = ("micro", "macro")
    return {k: float(f1_score(truth, guess, average=k, zero_division=0)) for k in kinds}


def measure(options: Options, amount: float, draw: int, data: str, who: str) -> Record:
    import rivals

    it = split(data, draw)
    known = labeled(it.y, amount, draw)
    if who == "ours":
        found = [{"method": OURS, **ours(it, known, draw, options.parameters or {})}]
    elif it.several:
        guesses = rivals.run_several(it, known)
        found = [{"method": m, **f_scores(it.y_test, guess)} for m, guess in guesses.items()]
    else:
        accuracies = rivals.run(it, known, draw)
        found = [{"method": m, "accuracy": accuracy} for m, accuracy in accuracies.items()]
    return {"labels": int(known.sum()), "results": found}


def amount_name(amount: float) -> str:
    return f"{100 * amount:g} %" if amount <= 1 else f"{amount:g}/class"


Cells = dict[tuple[str, float], dict[str, float]]


def means(records: list[Record], measure: str) -> Cells:
    """Return the mean of a measure in percent for each data set and amount, by method."""
    with_it = [record for record in records if measure in record]
    return {
        place: {
            m: 100 * np.mean([r[measure] for r in rs]) for m, rs in grouped(own, "method").items()
        }
        for place, own in grouped(with_it, "data", "amount").items()
    }


def methods_of(cells: Cells) -> list[str]:
    return [OURS, *dict.fromkeys(m for by in cells.values() for m in by if m != OURS)]


def table(cells: Cells, sets: tuple[str, ...]) -> str:
    methods = methods_of(cells)
    rows = []
    for name, amount in product(sets, sorted({amount for _, amount in cells})):
        by = {m: f"{value:.1f}" for m, value in cells.get((name, amount), {}).items()}
        if by:
            best = f"{max(cells[name, amount].values()):.1f}"
            texts = [f"**{by[m]}**" if by.get(m) == best else by.get(m, "") for m in methods]
            rows.append([name, amount_name(amount), *texts])
    return markdown(["data", "labeled", *methods], rows)


def summary(records: list[Record]) -> list[str]:
    """Return the mean over the text sets by amount, and what the intervals are worth."""
    cells = means(records, "accuracy")
    lines = ["", "Mean over the text sets:", ""]
    pooled: Cells = {}
    for amount in sorted({amount for _, amount in cells}):
        rows = [cells[name, amount] for name in TEXT_SETS if (name, amount) in cells]
        common = [m for row in rows[:1] for m in row if all(m in other for other in rows)]
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
        inside = f"{np.mean(held):.0%} of {len(held)} runs"
        lines += ["", f"Intervals hold the test accuracy in {inside};"]
        lines += [f"expected less true accuracy: {100 * gap:+.1f} points on average."]
    errors = [r["calibration_error"] for r in records if "calibration_error" in r]
    if errors:
        lines += ["", f"Expected calibration error: {np.mean(errors):.3f} on average."]
    return lines


def results_of(records: list[Record]) -> list[Record]:
    names = ("data", "amount")
    return [{n: r[n] for n in names} | result for r in records for result in r["results"]]


def report(records: list[Record], options: Options) -> str:
    records = results_of(records)
    cells = means(records, "accuracy")
    lines = ["Accuracy in percent:", "", table(cells, SINGLE_SETS)]
    lines += summary(records)
    for kind in ("micro", "macro"):
        scores = means(records, kind)
        if scores:
            lines += ["", f"Several labels, {kind} F in percent:", "", table(scores, SEVERAL_SETS)]
    return "\n".join(lines)


def draw_curves(records: list[Record], stem: Path) -> None:
    cells = means(results_of(records), "accuracy")
    sets = [n for n in SINGLE_SETS if any(cell[0] == n for cell in cells)]
    if not sets:
        return
    columns = min(2, len(sets))  # on a phone, too, one can read them
    rows = -(-len(sets) // columns)
    figure, axes = panels(2.9 * columns, 2.3 * rows, rows, columns)
    for axis in axes.ravel()[len(sets) :]:
        axis.axis("off")
    methods = methods_of(cells)
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
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(stem.with_suffix(".png"))


QUESTION = Question(
    "amount draw data who", "amounts draws data who", measure, report, draw_curves, threads=None
)
