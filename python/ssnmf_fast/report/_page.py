"""The page: figures, bars, heat maps, pictures and a card for every topic in one file."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.optional import require_package
from .._config import config
from .._topics import real_terms
from .._version import __version__
from ..plotting import objective_curve
from ..plotting._style import figure
from ._content import Report
from ._tables import confusion_table, most_confused, share_table


def render(report: Report) -> str:
    """Return the page; raise MissingPackageError if matplotlib or jinja2 is not installed."""
    with require_package("jinja2"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    environment = Environment(
        loader=PackageLoader("ssnmf_fast.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=_percent, uri=_uri, pixels=_pixels, real_terms=real_terms)
    curve = figure(7.0, 2.8)
    objective_curve(report.objective, ax=curve.add_subplot())
    confusion = report.confusion
    return environment.get_template("report.html.j2").render(
        report=report,
        topics=report.topics,
        classes=len(report.topics[0].shares) if report.topics else 0,
        shares=share_table(report),
        confusion=confusion,
        confusion_table=confusion_table(confusion),
        confused=most_confused(confusion),
        curve=png(curve),
        machine=config(),
        version=__version__,
    )


def png(drawn: Any, dpi: int = 150) -> bytes:
    """Return a figure as PNG."""
    stream = io.BytesIO()
    drawn.savefig(stream, format="png", dpi=dpi, facecolor="white")
    return stream.getvalue()


def _pixels(image: npt.NDArray[Any]) -> bytes:
    """Return an image as PNG, a pixel for a pixel; larger numbers are darker."""
    with require_package("matplotlib"):
        from matplotlib.image import imsave
    stream = io.BytesIO()
    most = max(float(np.nanmax(image)), 1e-12)
    imsave(stream, image, cmap="gray_r", vmin=0, vmax=most, format="png")
    return stream.getvalue()


def _uri(image: bytes) -> str:
    """Return a PNG as a data: URI, which contains the picture."""
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


def _percent(share: float) -> str:
    """Return a share as text: 12 %, 0.3 %, or 0 % for next to nothing."""
    if share >= 0.00995:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.1f} %" if share >= 0.0005 else "0 %"
