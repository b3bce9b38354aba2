"""A self-contained HTML report of a fit (needs matplotlib and jinja2: the extra `plot`)."""

from __future__ import annotations

from ._content import Confusion, Example, Measure, Picture, Report, confusion
from ._pictures import learning_picture
from ._report import write_report

__all__ = [
    "Confusion",
    "Example",
    "Measure",
    "Picture",
    "Report",
    "confusion",
    "learning_picture",
    "write_report",
]
