"""Draw how many times faster an iteration is, from the first table of docs/evidence/speed.md.

python benchmarks/run.py draw_speed
"""

from __future__ import annotations

import re
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from common import ROOT
from records import Options

ROW = re.compile(
    r"^\| ([^|]+) \| (\d+) \| [^|]+ \| ([^|]+) \| [^|]+ \| ([\d. /]+) \|$", re.MULTILINE
)


OPTIONS: dict[str, Any] = {}


def main(options: Options) -> None:
    page = (ROOT / "docs" / "evidence" / "speed.md").read_text(encoding="utf-8")
    rows = ROW.findall(page)
    names = [f"{model}, rank {rank}" for model, rank, _, _ in rows][::-1]
    # Of two ratios the smaller: a process that keeps freed memory.
    ratios = [float(ratio.split("/")[0]) for *_, ratio in rows][::-1]
    peers = [peer.strip() for _, _, peer, _ in rows][::-1]
    colors = ["#1f77b4" if peer.startswith("ssnmf") else "#ff7f0e" for peer in peers]
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    bars = axes.barh(names, ratios, color=colors)
    axes.bar_label(bars, [f"{r:g}x {p}" for r, p in zip(ratios, peers, strict=True)], padding=3)
    axes.set(xscale="log", xlim=(1, 20000), xlabel="times faster than the other package")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs" / "images" / "speed.png", dpi=110)
