"""A self-contained HTML report of a fit (needs matplotlib and jinja2: the extra `plot`)."""

from __future__ import annotations

from ._judged import ClassScore, Judged, Measure
from ._page import Example, Picture, Report, confusion, png, render

__all__ = [
    "ClassScore",
    "Example",
    "Judged",
    "Measure",
    "Picture",
    "Report",
    "confusion",
    "png",
    "render",
]
