"""Figures that `ssnmf_fast.plotting` returns, for sphinx-gallery: pyplot does not know of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

# Pages that come first in their sections; the others follow by name.
FIRST = ["parts_of_digits", "topics_with_names", "few_labels", "missing_entries"]
FIRST += ["number_of_topics", "number_of_components", "solvers"]


def order_of_learning(name: str) -> tuple[int, str]:
    """Return the sort key of a page in its section."""
    page = Path(name).stem.removeprefix("plot_")
    return (FIRST.index(page) if page in FIRST else len(FIRST), name)


def save_pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that a block has made, and return what shows them."""
    paths = []
    for thing in block_vars["example_globals"].values():
        by_pyplot = getattr(thing, "number", None) is not None
        if isinstance(thing, Figure) and not by_pyplot and not hasattr(thing, "_saved"):
            path = next(block_vars["image_path_iterator"])
            thing.savefig(path, dpi=100)
            thing._saved = True  # type: ignore[attr-defined]
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    return save_pictures
