"""The plot of one case: how far above the best loss, against time."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from common import Point

# Okabe and Ito's colors, told apart by the color-blind too: one for each package.
COLORS = {
    "ssnmf_fast": "#000000",
    "scikit-learn": "#0072B2",
    "ssnmf": "#D55E00",
    "tsnmf": "#CC79A7",
    "nmf-torch": "#009E73",
    "torchnmf": "#E69F00",
    "gensim": "#56B4E9",
}
# Line and marker tell the method, whatever the package; "" is our default.
COORDINATE, MULTIPLICATIVE, OTHER = "-o", "--s", ":^"
METHODS = {"": COORDINATE, "CD": COORDINATE, "HALS": COORDINATE, "MU": MULTIPLICATIVE}
# The best is at zero, which a logarithmic axis has no place for; a solver that fails is far off.
FLOOR, CEILING = 1e-5, 1.0


def plot(
    traces: dict[str, list[Point]],
    best: float,
    title: str,
    within: tuple[float, ...],
    path: Path,
) -> None:
    """Draw every trace, with a line at each share of `within`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    for share in within:
        axes.axhline(share, color="0.5", linewidth=1, zorder=0)
        at_right = axes.get_yaxis_transform()
        axes.text(1.01, share, f"{share * 100:g} %", transform=at_right, va="center", color="0.3")
    for label, points in traces.items():
        package, _, method = label.partition(" ")
        finite = [p for p in points if isfinite(p.loss)]
        axes.plot(
            [p.seconds for p in finite],
            [min(max(p.loss / best - 1, FLOOR), CEILING) for p in finite],
            METHODS.get(method, OTHER),
            color=COLORS[package],
            linewidth=2.5 if package == "ssnmf_fast" else 1.5,
            markersize=4,
            label=label if finite else f"{label} (fails: NaN)",
        )
    axes.set(xscale="log", yscale="log", title=title, xlabel="seconds, set-up included")
    axes.set_ylabel(f"loss / best loss - 1 (drawn between {FLOOR:g} and {CEILING:g})")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=130)
