"""What a run of nmf_alpha.py says: scores by rank and rate, differences, curves, basis images."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, markdown, mean_and_deviation
from nmf_alpha_methods import (
    ALPHA,
    METHODS,
    RAW,
    WEIGHTS,
    Case,
    classify,
    mapped,
    margin_model,
)

Record = dict[str, Any]
TITLES = {
    "mnist": "MNIST, fours against nines: accuracy, %",
    "news": "20 Newsgroups: accuracy, %",
    "aviation": "Aviation reports: mean of macro and micro F-measure, x 100",
}


def tests(records: list[Record], **wanted: Any) -> dict[int, float]:
    """Return the test score of every split."""
    return {
        record["split"]: record["test"]
        for record in records
        if all(record[name] == value for name, value in wanted.items())
    }


def values(records: list[Record], name: str) -> list[Any]:
    """Return the values that occur; ranks without the 0 of raw inputs."""
    found = {record[name] for record in records}
    return sorted(found - {0} if name == "rank" else found)


def scores(records: list[Record]) -> str:
    """Return mean (standard deviation) over the splits for every method, rate and rank."""
    ranks = values(records, "rank") or [0]
    methods = [m for m in METHODS if m in values(records, "method")]
    rows = []
    for rate in values(records, "rate"):
        for method in methods:
            row = [f"{rate:.0%}", method]
            for rank in ranks:
                found = tests(records, rate=rate, method=method, rank=0 if method == RAW else rank)
                row.append(mean_and_deviation(list(found.values()), 100) if found else "")
            rows.append(row)
    return markdown(["labeled", "method", *(f"rank {rank}" for rank in ranks)], rows)


def differences(records: list[Record]) -> str:
    """Return how far NMF-alpha is above others, on the same splits, and in how many of them."""
    ranks = values(records, "rank")
    rows = []
    for rate in values(records, "rate"):
        for method in METHODS:
            row = [f"{rate:.0%}", method]
            for rank in ranks:
                ours = tests(records, rate=rate, method=ALPHA, rank=rank)
                other = 0 if method == RAW else rank
                theirs = tests(records, rate=rate, method=method, rank=other)
                above = [ours[number] - theirs[number] for number in ours if number in theirs]
                wins = sum(difference > 0 for difference in above)
                row.append(f"{100 * np.mean(above):+.2f}, {wins} of {len(above)}" if above else "")
            if method != ALPHA and any(row[2:]):
                rows.append(row)
    return markdown(["labeled", "NMF-alpha above", *(f"rank {rank}" for rank in ranks)], rows)


def weights(records: list[Record], method: str) -> str:
    """Return the mean test score of every weight, and in how many splits it was chosen."""
    ours = [record for record in records if record["method"] == method]
    rows = []
    for rate in values(ours, "rate"):
        for rank in values(ours, "rank"):
            here = [r for r in ours if r["rate"] == rate and r["rank"] == rank]
            if not here:
                continue
            times = Counter(record["weight"] for record in here)
            row = [f"{rate:.0%}", str(rank)]
            for place, weight in enumerate(WEIGHTS[method]):
                score = np.mean([record["grid"][place]["test"] for record in here])
                row.append(f"{100 * score:.2f} ({times[weight]})")
            rows.append(row)
    return markdown(["labeled", "rank", *(f"{weight:g}" for weight in WEIGHTS[method])], rows)


def report(name: str, records: list[Record], updates: int) -> str:
    """Return the markdown summary of one data set."""
    splits = len(values(records, "split"))
    parts = [
        f"## {TITLES[name]}",
        f"Mean (standard deviation) of the test scores of {splits} splits, {updates} updates.",
        scores(records),
    ]
    methods = values(records, "method")
    if ALPHA in methods and len(methods) > 1:
        parts += ["Mean difference, and splits in which NMF-alpha is better:"]
        parts += [differences(records)]
    for method in [m for m in WEIGHTS if m in methods]:
        parts += [f"{method} by weight (1: as large in total as the data), and how often chosen:"]
        parts += [weights(records, method)]
    return "\n\n".join(parts) + "\n"


def curves(name: str, records: list[Record], path: Path) -> None:
    """Draw the scores over the rank, a panel for each rate of labels, as in Figure 3."""
    from matplotlib.figure import Figure

    rates, ranks = values(records, "rate"), values(records, "rank")
    figure = Figure(figsize=(3.6 * len(rates) + 1, 3.6), layout="constrained")
    for axes, rate in zip(figure.subplots(1, len(rates), squeeze=False)[0], rates, strict=True):
        for method in [m for m in METHODS if m in values(records, "method")]:
            curve(axes, records, rate, method, ranks)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ranks, [str(rank) for rank in ranks])
        axes.set_title(f"{rate:.0%} labeled")
        axes.set_xlabel("rank")
    figure.axes[0].set_ylabel(TITLES[name].rpartition(": ")[2])
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right", fontsize=8)
    figure.suptitle(TITLES[name].partition(":")[0])
    figure.savefig(path, dpi=150)


def curve(axes: Any, records: list[Record], rate: float, method: str, ranks: list[int]) -> None:
    """Draw one method's mean scores: a line across for raw inputs, which have no rank."""
    means = []
    for rank in [0] if method == RAW else ranks:
        found = list(tests(records, rate=rate, method=method, rank=rank).values())
        means.append(100 * np.mean(found) if found else np.nan)
    if method == RAW:
        axes.axhline(means[0], color="black", linestyle=":", label=RAW)
        return
    style = {"linewidth": 2.5, "zorder": 3} if method == ALPHA else {"linewidth": 1.2}
    axes.plot(ranks, means, marker="o", label=method, **style)


def basis_images(case: Case, rank: int, path: Path) -> None:
    """Draw the components without, with the best and with a very large supervision (Figure 2)."""
    from matplotlib.figure import Figure

    fits = {}
    for weight in (0.0, *WEIGHTS[ALPHA]):
        model = margin_model(case, rank, weight)
        fits[weight] = model.components_, classify(case, mapped(case, model), is_raw=False)
    best = max(WEIGHTS[ALPHA][:-1], key=lambda weight: fits[weight][1]["validation"])
    names = {0.0: "no supervision", best: "best weight", WEIGHTS[ALPHA][-1]: "very large weight"}
    figure = Figure(figsize=(10.8, 3.9), layout="constrained")
    figure.get_layout_engine().set(wspace=0.08)
    for axes, (weight, title) in zip(figure.subplots(1, 3), names.items(), strict=True):
        components, reached = fits[weight]
        axes.imshow(mosaic(components), cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(f"{title} ({weight:g}): {reached['test']:.2%}", fontsize=10)
        axes.set_axis_off()
    labeled = len(case.labeled)
    figure.suptitle(f"{rank} components, {labeled} of {case.X.shape[0]} images labeled")
    figure.savefig(path, dpi=150)


def mosaic(components: Array) -> Array:
    """Return the components as square images beside each other, each scaled to a largest 1."""
    side = round(components.shape[1] ** 0.5)
    columns = int(np.ceil(len(components) ** 0.5))
    rows = -(-len(components) // columns)
    tiles = np.zeros((rows, columns, side + 1, side + 1))
    highest = np.maximum(components.max(axis=1, keepdims=True), 1e-30)
    images = (components / highest).reshape(-1, side, side)
    for number, image in enumerate(images):
        tiles[number // columns, number % columns, :side, :side] = image
    return tiles.transpose(0, 2, 1, 3).reshape(rows * (side + 1), -1)
