"""A self-contained HTML report of a fit (needs matplotlib and jinja2: the extra `plot`)."""

from __future__ import annotations

from ._pictures import parts_picture
from ._report import Confusion, Measure, Picture, Report, confusion, write_report

__all__ = [
    "Confusion",
    "Measure",
    "Picture",
    "Report",
    "confusion",
    "parts_picture",
    "write_report",
]
