"""Draw the pictures of guides: run the code of a page, and keep what it saves and the page shows.

    python docs/draw_guides.py choosing cells

A picture of a page that its code saves under the same name is renewed, and so are pictures of
tables.  Needs Pillow.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

GUIDES = Path(__file__).resolve().parent / "guide"
IMAGES = GUIDES.parent / "images"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"!\[[^]]*\]\(\.\./images/(\w+\.png)\)")
# Pictures of tables: the column, and where its bars begin (on a logarithmic axis, if not at 0).
TABLES = {"unchanged_speed.png": ("times faster", 1.0), "recipes_seconds.png": ("seconds", 0.0)}


def draw_table(page: str, column: str, begin: float) -> Figure:
    """Draw a bar for each row of a table, under the words of its first column."""
    table = re.search(rf"^\|[^\n]*\| {column} \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert table
    head, marks, *rows = (
        [cell.strip() for cell in line.replace("`", "").split("|")[1:-1]]
        for line in table[0].split("\n")[:-2]
    )
    place, words = head.index(column), next(k for k, mark in enumerate(marks) if ":" in mark)
    names, values, before = [], [], [""] * words
    for row in rows:
        own = [new or old for new, old in zip(row, before, strict=False)]
        if own[0] != before[0]:
            names, values = [*names, own[0]], [*values, ""]
        names, values, before = [*names, ": ".join(own[1:])], [*values, row[place]], own
    figure = Figure(figsize=(5.2, 0.5 + 0.22 * len(names)), layout="constrained")
    axes = figure.add_subplot(xlabel=column, ylim=(len(names) - 0.4, -0.6))
    lengths = [float(value or begin) - begin for value in values]
    bars = axes.barh(range(len(names)), lengths, 0.7, begin, color="#2b6cb0")
    axes.bar_label(bars, values, padding=3, fontsize=9)
    axes.margins(x=0.12)
    if begin:
        axes.set(xscale="log", xticks=[0.5, 1, 2, 5, 10, 20, 50])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.axvline(begin, color="#2b6cb0", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(left=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for label, value in zip(axes.get_yticklabels(), values, strict=True):
        label.set_fontweight("normal" if value else "bold")
    return figure


def draw(name: str) -> list[str]:
    """Run the blocks of a guide in an empty folder, and return the pictures that were renewed."""
    page, here, names = (GUIDES / f"{name}.md").read_text("utf-8"), Path.cwd(), {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for data in Path(os.environ.get("SSNMF_FAST_DATA", "absent")).glob("*"):
            Path(folder, data.name).symlink_to(data)
        try:
            for block in BLOCK.findall(page):
                exec(block, names)
        finally:
            os.chdir(here)
        for one in TABLES.keys() & set(SHOWN.findall(page)):
            draw_table(page, *TABLES[one]).savefig(Path(folder, one), dpi=150)
        drawn = [one for one in sorted(set(SHOWN.findall(page))) if Path(folder, one).exists()]
        for one in drawn:
            picture = Image.open(Path(folder, one)).convert("RGB")
            picture.quantize(128).save(IMAGES / one, optimize=True)
    return drawn


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("guides", nargs="+", help="names of pages of docs/guide, without .md")
    sys.path.append(str(GUIDES.parents[1] / "examples" / "downstream" / "src"))
    for name in parser.parse_args().guides:
        print(name, *draw(name))


if __name__ == "__main__":
    main()
