"""Table 1 and the pictures (Figures 3, 6 and 7) of a run of vbnmf.py."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from common import markdown
from vbnmf_fits import PCA, SUPERVISED, UNSUPERVISED

Record = dict[str, Any]
METHODS = (PCA, UNSUPERVISED, SUPERVISED)
# Table 1: rank, then "min / mean / max" of micro and macro accuracy.
PAPER = {
    PCA: ("200", "0.6330", "0.6179"),
    UNSUPERVISED: ("40", "0.5190 / 0.5532 / 0.5796", "0.5033 / 0.5393 / 0.5655"),
    SUPERVISED: ("100", "0.6890 / 0.7141 / 0.7418", "0.6758 / 0.6997 / 0.7277"),
}


def by_setting(records: list[Record], method: str) -> dict[tuple[int, float], list[Record]]:
    """Return the fits of a method by rank and shape, over the random starts."""
    found: dict[tuple[int, float], list[Record]] = defaultdict(list)
    for record in records:
        if record["method"] == method:
            found[record["rank"], record["shape"]].append(record)
    return dict(sorted(found.items()))


def mean(records: list[Record], measure: str) -> float:
    return float(np.mean([record[measure] for record in records]))


def cell(records: list[Record], measure: str) -> str:
    """Return "min / mean / max" over the starts, one number if there is one start."""
    values = [record[measure] for record in records]
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{min(values):.4f} / {np.mean(values):.4f} / {max(values):.4f}"


def table_1(records: list[Record]) -> str:
    """Return Table 1: the setting of every method with the single best micro accuracy.

    That is the paper's choice, made on the test documents; so the next table has them all.
    """
    header = [
        "method",
        "rank",
        "shape",
        "starts",
        "micro",
        "macro",
        "paper: rank",
        "micro",
        "macro",
    ]
    rows = []
    for method in METHODS:
        settings = by_setting(records, method)
        if not settings:
            continue
        best = max(settings, key=lambda s: max(r["micro"] for r in settings[s]))
        fits = settings[best]
        shape = "" if method == PCA else f"{best[1]:g}"
        own = [method, str(best[0]), shape, str(len(fits)), cell(fits, "micro")]
        rows.append([*own, cell(fits, "macro"), *PAPER[method]])
    return markdown(header, rows)


def all_settings(records: list[Record]) -> str:
    """Return accuracies and sparsities of every setting."""
    header = ["method", "rank", "shape", "starts", "micro", "macro", "inter-label sparsity"]
    rows = []
    for method in METHODS:
        for (rank, shape), fits in by_setting(records, method).items():
            row = [method, str(rank), "" if method == PCA else f"{shape:g}", str(len(fits))]
            row += [cell(fits, "micro"), cell(fits, "macro")]
            row.append("" if method == PCA else f"{mean(fits, 'inter_label'):.3f}")
            rows.append(row)
    return markdown(header, rows)


def report(records: list[Record]) -> str:
    """Return the markdown summary."""
    parts = [
        "## Table 1",
        "Minimum / mean / maximum over random starts; every method at the setting of its best "
        "single fit, chosen on the test documents as in the paper. Shape: S_shape or rate_shape.",
        table_1(records),
        "All settings:",
        all_settings(records),
    ]
    return "\n\n".join(parts) + "\n"


def new_axes(columns: int) -> tuple[Any, Any]:
    """Return a figure and its axes, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 3.6), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def pictures(records: list[Record], folder: Path, stem: str) -> None:
    """Draw what the records suffice for."""
    if not by_setting(records, SUPERVISED):
        return
    figure_3(records, folder / f"{stem}-figure-3.png")
    figure_6(records, folder / f"{stem}-figure-6.png")
    figure_7(records, folder / f"{stem}-figure-7.png")


def curves(place: Any, records: list[Record], method: str, measure: str) -> None:
    """Draw the mean of a measure against the shape, a line for every rank; bars are the range."""
    settings = by_setting(records, method)
    for rank in sorted({rank for rank, _ in settings}):
        shapes = [shape for r, shape in settings if r == rank]
        values = [[record[measure] for record in settings[rank, s]] for s in shapes]
        middle = np.array([np.mean(v) for v in values])
        below = [m - min(v) for m, v in zip(middle, values, strict=True)]
        above = [max(v) - m for m, v in zip(middle, values, strict=True)]
        place.errorbar(shapes, middle, (below, above), marker=".", capsize=2, label=f"rank {rank}")
    place.set_xscale("log")
    place.set_title(method)
    if settings:
        place.legend()


def figure_3(records: list[Record], path: Path) -> None:
    """Micro accuracy against rate_shape."""
    figure, (place,) = new_axes(1)
    curves(place, records, SUPERVISED, "micro")
    place.set_xlabel("rate_shape")
    place.set_ylabel("micro accuracy")
    figure.savefig(path, dpi=130)


def figure_6(records: list[Record], path: Path) -> None:
    """Micro accuracy against inter-label sparsity, a point for every supervised fit."""
    figure, (place,) = new_axes(1)
    fits = [record for record in records if record["method"] == SUPERVISED]
    for rank in sorted({record["rank"] for record in fits}):
        chosen = [record for record in fits if record["rank"] == rank]
        sparsity = [record["inter_label"] for record in chosen]
        place.scatter(sparsity, [r["micro"] for r in chosen], s=14, label=f"rank {rank}")
    place.set_xlabel("inter-label sparsity")
    place.set_ylabel("micro accuracy")
    place.legend()
    figure.savefig(path, dpi=130)


def figure_7(records: list[Record], path: Path) -> None:
    """Inter-label sparsity against the shape that controls it, without and with labels."""
    figure, axes = new_axes(2)
    for place, method, name in zip(
        axes, (UNSUPERVISED, SUPERVISED), ("S_shape", "rate_shape"), strict=True
    ):
        curves(place, records, method, "inter_label")
        place.set_xlabel(name)
        place.set_ylabel("inter-label sparsity")
    figure.savefig(path, dpi=130)
