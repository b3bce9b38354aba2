"""Draw how many times faster an iteration is, and write the first table of docs/evidence/speed.md.

Both come from the table in docs/evidence/benchmarks.md: run this after `write_page`.
"""

from __future__ import annotations

import re
from typing import Any

from common import ROOT, panels
from records import Options, grouped, tabulate

DOCS = ROOT / "docs"
ROW = re.compile(
    r"^\| (?P<model>NMF|\([FD],[FD]\)) ?(?P<loss>[a-z-]*), rank (?P<rank>\d+) *"
    r"\| (?P<peer>[\w -]+?)(?:, freed memory \w+)? *"
    r"\| (?P<ours>[^|]+?) *\| (?P<theirs>[^|]+?) *\| (?P<ratio>[\d.]+) *\|$",
    re.MULTILINE,
)
LETTER = {"frobenius": "NMF, F", "kullback-leibler": "NMF, D"}
OPTIONS: dict[str, Any] = {}


def main(options: Options) -> None:
    page = (DOCS / "evidence" / "benchmarks.md").read_text(encoding="utf-8")
    found = [m.groupdict() for m in ROW.finditer(page)]
    rows = []
    for (model, loss, rank, peer), runs in grouped(found, "model", "loss", "rank", "peer").items():
        row = {"model": LETTER.get(loss, f"SSNMF {model}"), "rank": rank, "peer": peer}
        for name in ("ours", "theirs", "ratio"):
            row[name] = " / ".join(dict.fromkeys(run[name] for run in runs))
        row["least"] = min(float(run["ratio"]) for run in runs)
        rows.append(row)
    rows.sort(key=lambda row: (row["peer"] != "ssnmf", -row["least"]))
    columns = {"model": "{model}", "rank": "{rank}", "ssnmf_fast": "{ours}"}
    more = {"compared with": "{peer}", "theirs": "{theirs}", "times faster": "{ratio}"}
    speed = DOCS / "evidence" / "speed.md"
    text = speed.read_text(encoding="utf-8")
    table = tabulate(rows, **columns, **more)
    speed.write_text(re.sub(r"(?:^\|.*\n)+", f"{table}\n", text, count=1, flags=re.MULTILINE))

    figure, ((axes,),) = panels(5.2, 3.6)
    names = [f"{row['model']}, rank {row['rank']}" for row in rows]
    for peer, color in (("ssnmf", "#0072B2"), ("scikit-learn MU", "#E69F00")):
        chosen = [k for k, row in enumerate(rows) if row["peer"] == peer]
        least = [rows[k]["least"] for k in chosen]
        bars = axes.barh(chosen, least, color=color, label=f"than {peer}")
        axes.bar_label(bars, [f"{value:g}" for value in least], padding=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlim=(1, 8000), xlabel="times faster, one iteration")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(DOCS / "images" / "speed.png", dpi=150)
