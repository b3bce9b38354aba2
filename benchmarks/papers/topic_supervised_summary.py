"""What topic_supervised.py found: tables by rate, margins over the rivals, the paper's figures."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from common import markdown, mean_and_deviation
from topic_supervised_models import (
    LDA,
    METHODS,
    NMF,
    SCALES,
    SKLEARN_NMF,
    SUPERVISED,
    UNSUPERVISED,
    WHERE,
)

RIVALS = (NMF, SKLEARN_NMF, LDA)
TITLES = {"all": "all stories (as in the paper)", "unlabeled": "unlabeled stories only"}
SCORE, RESOLVED = 0, 1


class Results:
    """Records by method and rate."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._records: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            self._records[record["method"], record["rate"]].append(record)
        present = {record["method"] for record in records}
        self.methods = [method for method in METHODS if method in present]
        self.rates = sorted({record["rate"] for record in records})

    def of(self, method: str, rate: float) -> list[dict[str, Any]]:
        return self._records.get((method, rate), [])

    def values(
        self, method: str, rate: float, where: str, what: int = SCORE, scale: str = "rows"
    ) -> list[float]:
        return [record[where][scale][what] for record in self.of(method, rate)]


def by_rate(results: Results, where: str, what: int) -> str:
    """Return the table of one measure: methods x rates, mean (standard deviation)."""
    rows = []
    for method in results.methods:
        digits = 3 if what == SCORE else 1
        lists = [results.values(method, rate, where, what) for rate in results.rates]
        cells = [mean_and_deviation(values, digits=digits) if values else "" for values in lists]
        rows.append([method, str(max(map(len, lists))), *cells])
    return markdown(["method", "draws", *(f"{rate:g}" for rate in results.rates)], rows)


def margins(results: Results, where: str) -> str:
    """Return how many times the best rival's mean score each supervised method reaches.

    In parentheses: in how many draws the method lies above every rival's best draw.
    """
    rows = []
    for method in (m for m in results.methods if m in SUPERVISED):
        row = [method]
        for rate in results.rates:
            mine = results.values(method, rate, where)
            theirs = [values for r in RIVALS if (values := results.values(r, rate, where))]
            if not mine or not theirs:
                row.append("")
                continue
            ratio = np.mean(mine) / max(np.mean(values) for values in theirs)
            above = sum(value > max(map(max, theirs)) for value in mine)
            row.append(f"{ratio:.2f} ({above} of {len(mine)})")
        rows.append(row)
    return markdown(["times the best rival", *(f"{rate:g}" for rate in results.rates)], rows)


def scales(results: Results, rate: float) -> str:
    """Return how scores and resolved topics depend on the scale of S, at one rate."""
    header = ["method", *(f"{scale}, {where}" for where in WHERE for scale in SCALES)]
    rows = []
    for method in results.methods:
        row = [method]
        for where in WHERE:
            for scale in SCALES:
                score, resolved = (
                    results.values(method, rate, where, what, scale) for what in (SCORE, RESOLVED)
                )
                row.append(f"{np.mean(score):.3f} / {np.mean(resolved):.0f}" if score else "")
        rows.append(row)
    return markdown(header, rows)


def fits(results: Results) -> str:
    """Return what the fits took, and how well topics match the component of their own name."""
    header = ["method", "iterations, median", "seconds, median", "own name, all", "unlabeled"]
    rows = []
    for method in results.methods:
        records = [record for rate in results.rates for record in results.of(method, rate)]
        row = [method]
        row += [f"{np.median([record['iterations'] for record in records]):g}"]
        row += [f"{np.median([record['seconds'] for record in records]):.1f}"]
        for where in WHERE:
            own = [record[f"named, {where}"] for record in records if method in SUPERVISED]
            row.append(f"{np.mean(own):.3f}" if own else "")
        rows.append(row)
    return markdown(header, rows)


def report(results: Results, documents: int, topics: int) -> str:
    """Return the markdown summary."""
    parts = [f"# TS-NMF: {documents} stories, {topics} topics, by share of labeled stories"]
    for where in WHERE:
        parts += [f"## {TITLES[where].capitalize()}", "Similarity score:"]
        parts += [by_rate(results, where, SCORE), "Resolved topics (similarity above 0.1):"]
        parts += [by_rate(results, where, RESOLVED)]
        if set(RIVALS) & set(results.methods):
            parts += ["Similarity beside the best rival (draws above all of the rivals' draws):"]
            parts += [margins(results, where)]
    rate = min(results.rates, key=lambda rate: abs(rate - 0.2))
    parts += [f"## Scales of S, rate {rate:g} (score / resolved)", scales(results, rate)]
    parts += ["## Fits, all rates", fits(results), coverage(results)]
    return "\n\n".join(parts) + "\n"


def coverage(results: Results) -> str:
    """Return the mean share of topics with a labeled story, by rate."""
    cells = []
    for rate in results.rates:
        found = [record["coverage"] for m in results.methods for record in results.of(m, rate)]
        cells.append(f"{np.mean(found):.2f}")
    return markdown(["rate", *(f"{rate:g}" for rate in results.rates)], [["coverage", *cells]])


def picture(results: Results, path: Path) -> None:
    """Draw scores and resolved topics against the rate: the paper's Figures 2 to 4."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 7.5), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for column, where in enumerate(WHERE):
        for row, label in enumerate(("similarity score", "resolved topics")):
            for number, method in enumerate(results.methods):
                _curve(axes[row, column], results, method, where, row, f"C{number}")
            axes[row, column].set_ylim(0, 1.05 * axes[row, column].get_ylim()[1])
            axes[row, column].set_ylabel(label)
        axes[0, column].set_title(TITLES[where])
        axes[1, column].set_xlabel("share of stories with labels")
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=150)


def _curve(axis: Any, results: Results, method: str, where: str, what: int, color: str) -> None:
    """Draw the means of one method, and the range of its draws."""
    rates = [rate for rate in results.rates if results.of(method, rate)]
    lists = [results.values(method, rate, where, what) for rate in rates]
    style = "--" if method in UNSUPERVISED else "-"
    means = [float(np.mean(values)) for values in lists]
    axis.plot(rates, means, style, color=color, marker=".", label=method)
    axis.fill_between(
        rates, list(map(min, lists)), list(map(max, lists)), color=color, alpha=0.15, linewidth=0
    )
