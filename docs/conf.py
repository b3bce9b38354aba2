"""Sphinx configuration; `python docs/build.py FOLDER` builds the site."""

from __future__ import annotations

import html
import json
import re
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes

from ssnmf_fast import __version__ as release

sys.path.insert(0, str(Path(__file__).parent))

project = "ssnmf_fast"
author = "The ssnmf_fast contributors"
copyright = author
version = release
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "README.md"]
nitpicky = False
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

templates_path = ["_templates"]
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "capture_repr": (),
    "image_scrapers": ("matplotlib", "gallery_pictures"),
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "ssnmf_fast"
# MathJax is a file of the site: formulas are set without a network too.
_mathjax: Any = find_spec("sphinx-mathjax-offline")
mathjax_path = "tex-svg.js"
html_static_path = ["_static", str(Path(_mathjax.origin).parent / "static/mathjax" / mathjax_path)]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_search_scorer = str(Path(__file__).parent / "search_scorer.js")
# One page of each section is enough on the left; one version needs no switcher.
_switcher = Path(__file__).parent / "_static" / "switcher.json"
_switchers = ["version-switcher"] * (len(json.loads(_switcher.read_text("utf-8"))) > 1)
html_theme_options: dict[str, Any] = {
    "logo": {"text": "ssnmf_fast"},
    "github_url": "https://github.com/ssnmf-fast/ssnmf-fast",
    "header_links_before_dropdown": 6,
    "navbar_end": [*_switchers, "theme-switcher", "navbar-icon-links"],
    "navbar_align": "left",
    "show_toc_level": 2,
    "show_prev_next": True,
    "switcher": {
        "json_url": "https://ssnmf-fast.readthedocs.io/en/latest/_static/switcher.json",
        "version_match": release,
    },
    "check_switcher": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "changelog": [], "citation": []}

# What estimators inherit from scikit-learn is described there, with links that lead nowhere here.
_INHERITED = re.compile(
    r"^(get_metadata_routing|set_\w+_request|set_output|get_params|set_params)$"
)


def _skip(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    return True if _INHERITED.match(name) else None


def _shorten(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep the first paragraph of what scikit-learn writes about what has its names."""
    if re.match(r"ssnmf_fast\.sklearn\.(NMF|MiniBatchNMF|non_negative_factorization)\b", name):
        del lines[lines.index("") if "" in lines else len(lines) :]
        lines += ["", "Arguments, attributes and results are those that scikit-learn documents."]


def _describe(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give search engines the first paragraph of a page."""
    first = tree and tree.next_node(nodes.paragraph)
    if first:
        text = html.escape(textwrap.shorten(first.astext(), 160, placeholder=" ..."))
        context["metatags"] += f'<meta name="description" content="{text}">'


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _shorten, priority=400)
    app.connect("html-page-context", _describe)
