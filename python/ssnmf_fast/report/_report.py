"""The page: figures, bars, heat maps and pictures in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._common.optional import require_package
from .._config import config
from .._version import __version__
from ._cards import topic_cards
from ._content import Report
from ._pictures import data_uri, objective_picture
from ._tables import confusion_table, most_confused, share_table


def write_report(path: Path, report: Report) -> None:
    """Write the page; raise MissingPackageError if matplotlib or jinja2 is not installed."""
    with require_package("jinja2"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    environment = Environment(
        loader=PackageLoader("ssnmf_fast.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        report=report,
        accuracies=_accuracies(report),
        topics=topic_cards(report),
        classes=len(report.topics[0].shares) if report.topics else 0,
        shares=share_table(report),
        confusion=confusion_table(report.confusion),
        confused=most_confused(report.confusion),
        curve=data_uri(objective_picture(report.objective)),
        last_objective=f"{report.objective[-1][1]:.6g}",
        machine=config(),
        version=__version__,
    )
    path.write_text(page, encoding="utf-8")


def _accuracies(report: Report) -> list[tuple[str, float, tuple[float, float] | None]]:
    """Return names, scores and intervals, None where there is none."""
    pairs = list(report.accuracies)
    if not pairs and report.confusion is not None:
        pairs = [("this model", report.confusion.accuracy)]
    intervals: list[Any] = list(report.intervals) or [None] * len(pairs)
    return [(*pair, ends) for pair, ends in zip(pairs, intervals, strict=True)]
