"""Sphinx configuration; `python docs/build.py FOLDER` builds the site."""

from __future__ import annotations

import html
import inspect
import json
import re
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes

import ssnmf_fast

sys.path.insert(0, str(Path(__file__).parent))

_PACKAGE = Path(ssnmf_fast.__file__).parents[1]

project = "ssnmf_fast"
author = "The ssnmf_fast contributors"
copyright = author
version = release = ssnmf_fast.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
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
# A parameter a line, with its default, where one line is not enough.
python_maximum_signature_line_length = 79
python_trailing_comma_in_multi_line_signatures = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "capture_repr": (),
    "image_scrapers": ("matplotlib", "gallery_pictures"),
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    # Which examples use what; pages of the reference list them.
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("ssnmf_fast",),
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "subsection_order": [
        f"../examples/gallery/{name}"
        for name in ("topics", "labels", "missing", "choosing", "solvers")
    ],
    "within_subsection_order": "gallery_pictures.order_of_learning",
    "thumbnail_size": (480, 340),
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


def _escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep the initial of an author from being the number of a list: "H. Steck"."""
    lines[:] = [re.sub(r"^(\s*\.\. \[\S+\] \w)\. ", r"\1\\. ", line) for line in lines]


def _keep_numbers(app: Any, doctree: nodes.document) -> None:
    """Mark what a browser would break: 1e-5, 20 %, 178 x 13, 72 MB, 2/class, 2004-12."""
    units = r"e-\d+| %| m?s\b| [MG]B\b|/class|(?:-\d\d)+|(?: x [\d,]*\d)+"
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.paragraph | nodes.strong | nodes.emphasis):
            continue
        parts = re.split(rf"([\d.,]*\d(?:{units}))", text.astext())
        marked = [nodes.inline("", part, classes=["number"]) for part in parts]
        marked[::2] = map(nodes.Text, parts[::2])
        if len(parts) > 1:
            text.parent.replace(text, [node for node in marked if node.astext()])


def _hide_foreign(*given: Any) -> tuple[str | None, str | None]:
    """Leave out the names of other packages, which are only taken to be refused."""
    *_, signature, result = given
    return signature and re.sub(r", \*\*foreign\b[^,)]*", "", signature), result


def _break_names(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let long names break between their words, for phones: non_negative_|factorization."""
    long = re.compile(r'class="pre">[^<]{25,}|<(?:h\d|dt)>[^<]*\w{16}[^<]*')
    within = re.compile(r"(?<=[A-Za-z0-9)][._/(=])(?=\w{5})")
    if body := context.get("body"):
        context["body"] = long.sub(lambda name: within.sub("<wbr>", name[0]), body)


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of the source of an object in this version."""
    thing: Any = sys.modules[info["module"]]
    for part in info["fullname"].split("."):
        thing = getattr(thing, part, None)
    thing = inspect.unwrap(getattr(thing, "fget", thing))
    try:
        path = Path(inspect.getsourcefile(thing) or "").relative_to(_PACKAGE)
        lines, first = inspect.getsourcelines(thing)
    except (OSError, TypeError, ValueError):  # data, and what scikit-learn defines
        return None
    place = f"python/{path.as_posix()}#L{first}-L{first + len(lines) - 1}"
    return f"{html_theme_options['github_url']}/blob/v{release}/{place}"


def _describe(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give search engines the first paragraph of a page."""
    first = tree and tree.next_node(nodes.paragraph)
    if first:
        text = html.escape(textwrap.shorten(first.astext(), 160, placeholder=" ..."))
        context["metatags"] += f'<meta name="description" content="{text}">'


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _keep_numbers)
    app.connect("autodoc-process-signature", _hide_foreign)
    app.connect("autodoc-process-docstring", _shorten, priority=400)
    app.connect("autodoc-process-docstring", _escape, priority=900)  # after numpydoc
    app.connect("html-page-context", _describe)
    app.connect("html-page-context", _break_names)
