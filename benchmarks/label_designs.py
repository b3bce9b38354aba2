"""What do class shares that differ between labels and samples do to predictions and estimates?

Labels are a plain random sample ("random": classes may be missing), the same number of each class
("even"), or random with one class three times as often ("skewed").  `FewLabelsClassifier()` is
compared with itself without a shift (class_prior="labels") and with the true shares, and with
LinearSVC, on the unlabeled samples.
"""

from __future__ import annotations

import numpy as np
from common import Array
from few_labels import calibration_error
from labeled_sets import DESIGN_SETS, split
from records import Options, Question, Record, grouped, markdown
from sklearn.svm import LinearSVC

import ssnmf_fast as sf

AMOUNTS = [
    *(f"random {size}" for size in (100, 200, 400, 800)),
    *(f"even {size}" for size in (2, 8, 32)),
    "skewed 300",
]
OPTIONS = {"data": (list(DESIGN_SETS), "", DESIGN_SETS), "amounts": AMOUNTS, "draws": 2}
QUICK = {"data": ["digits"], "amounts": ["random 100", "even 8", "skewed 300"], "draws": 1}
RULES = ("estimated", "labels", "true shares")
_MOST_SAMPLES = 3000


def drawn(y: Array, amount: str, draw: int) -> Array:
    """Return which samples are labeled, (n,)."""
    design, size = amount.split()[0], int(amount.split()[1])
    rng = np.random.default_rng([draw, size])
    known, counts = np.zeros(len(y), dtype=bool), np.bincount(y)
    if design == "even":  # at most half of a class
        for c, count in enumerate(counts):
            known[rng.permutation(np.flatnonzero(y == c))[: min(size, max(1, count // 2))]] = True
        return known
    often = np.argsort(-counts)[1 + draw % 2] if design == "skewed" and len(counts) > 2 else -1
    chance = np.where(y == often, 3.0, 1.0)
    known[rng.choice(len(y), size, replace=False, p=chance / chance.sum())] = True
    return known


def measure(options: Options, amount: str, draw: int, data: str) -> Record:
    it = split(data, 0)
    rows = np.random.default_rng(draw).permutation(len(it.y))[:_MOST_SAMPLES]
    X, y = it.X[rows], it.y[rows]
    known = drawn(y, amount, draw)
    model = sf.FewLabelsClassifier(random_state=draw).fit(X, np.where(known, y, -1))
    found, truth = model.classes_, y[~known]
    shares = np.array([np.mean(truth == c) for c in found])
    of_labels = np.array([np.mean(y[known] == c) for c in found])
    chance = model.predict_proba(X[~known])

    def right(prior: Array) -> Array:
        moved = chance / np.maximum(model.class_prior_, 1e-4) * np.maximum(prior, 1e-4)
        return np.asarray(found[moved.argmax(axis=1)] == truth)

    rival = LinearSVC(random_state=0).fit(X[known], y[known]).predict(X[~known])
    priors = zip(RULES, (model.class_prior_, of_labels, shares), strict=True)
    return {
        "labels": int(known.sum()),
        **{rule: float(right(prior).mean()) for rule, prior in priors},
        "LinearSVC": float(np.mean(rival == truth)),
        "says": model.validation_accuracy_,
        "interval": list(model.validation_interval_),
        "moved": float(np.abs(model.class_prior_ - of_labels).max()),
        "calibration_error": calibration_error(chance.max(axis=1), right(model.class_prior_)),
    }


def row_of(records: list[Record]) -> list[str]:
    rules = [100 * np.mean([r[rule] for r in records]) for rule in (*RULES, "LinearSVC")]
    worst = 100 * min(r["estimated"] - r["labels"] for r in records)
    said = [r for r in records if np.isfinite(r["says"])]
    gaps = 100 * np.abs([r["says"] - r["estimated"] for r in said])
    held = [r["interval"][0] <= r["estimated"] <= r["interval"][1] for r in said]
    row = [str(len(records)), *(f"{value:.1f}" for value in rules), f"{worst:+.1f}"]
    if said:
        row += [f"{gaps.mean():.1f}", f"{gaps.max():.1f}", f"{100 * np.mean(held):.0f} %"]
    return row + [""] * (9 - len(row))


def report(records: list[Record], options: Options) -> str:
    header = ["cases", *RULES, "LinearSVC", "worst", "mean gap", "largest", "covered"]
    lines = []
    for names in (["design"], ["amount"], ["design", "data"]):
        groups = grouped([{**r, "design": r["amount"].split()[0]} for r in records], *names)
        rows = [
            [*(place if names[1:] else (place,)), *row_of(own)] for place, own in groups.items()
        ]
        lines += [markdown([*names, *header], rows), ""]
    lines.append('Accuracy in percent; worst: against "labels"; gap: of the estimated accuracy.')
    return "\n".join(lines)


QUESTION = Question("amount draw data", "amounts draws data", measure, report, threads=None)
