"""What a command found, as JSON and as a page (which needs the extra `plot`)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.optional import require_package
from .._config import config
from .._topics import Topic, Topics, real_terms
from .._version import __version__
from ..plotting import objective_curve
from ..plotting._maps import darkest_share
from ..plotting._style import figure
from .evaluation import ClassScore, Confusion, Measure, format_score
from .shares import ClassShare

__all__ = ["Example", "Picture", "Summary", "png", "read"]

Names = Sequence[str]
Table = tuple[str, str, Names, Sequence[Sequence[Any]]]  # title, note, heads, and rows
_VERSIONS = "ssnmf_fast", "python", "numpy", "scipy", "level in use", "threads"
_SCORES = (
    "On samples whose labels were hidden. Precision: share of right ones among those predicted as "
    "the class. Recall: share of its samples that are found. F: harmonic mean of both. -: none."
)
_MOST_CLASSES = 100  # with more, cells are too small to read, and pages too large
_MOST_CONFUSED = (8, 30)  # pairs listed below a table of all, and instead of it
# Pixels: width of a table, of names of rows, and of a cell; of a letter in a name and in a cell.
_WIDTH, _NAMES, _CELL = 996, (40, 230), (11, 64)
_LETTER, _DIGIT = 8.3, 6.6


@dataclass(frozen=True)
class Example:
    """A sample that a topic explains well: the share of the topic, the label, and the content."""

    sample: int
    share: float
    label: str = ""
    text: str = ""
    image: Any = None  # numbers by row
    id: str = ""  # if the data have ids


class Picture(NamedTuple):
    """A picture, on the page if it has a title; `draw` makes the figure."""

    title: str
    caption: str
    file: str
    draw: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Summary:
    """What a command found, for programs and for the page, which leaves out what is empty."""

    title: str
    lead: str
    facts: Mapping[str, Any]
    settings: Mapping[str, Any]  # given by the user, if there are others
    numbers: Mapping[str, Any] = field(default_factory=dict)  # for programs
    other_settings: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)  # facts that few readers need
    objective: Sequence[tuple[int, float]] = ()
    topics: Topics = field(default_factory=Topics)
    terms: str = "terms"  # what topics consist of
    shares_note: str = ""
    class_counts: Sequence[int] = ()
    examples: Sequence[Sequence[Example]] = ()
    parts: Sequence[Any] = ()  # topics as images
    codes: Sequence[ClassShare] = ()
    steps: Sequence[tuple[str, Names]] = ()  # what to do next, and its commands
    class_scores: Sequence[ClassScore] = ()
    confusion: Confusion | None = None  # for single labels
    judged: tuple[str, str] = ("", "")  # which predictions are judged, and how
    measures: Sequence[Measure] = ()
    warnings: Sequence[str] = ()
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    tree: str = ""
    machine: Mapping[str, Any] = field(default_factory=lambda: {k: config()[k] for k in _VERSIONS})

    @property
    def leading(self) -> list[list[tuple[Any, float]]]:
        """The main classes of every topic, without classes that are never predicted rightly."""
        wrong = {one.name for one in self.class_scores if not one.f > 0}
        return [[pair for pair in topic.leading if pair[0] not in wrong] for topic in self.topics]

    @property
    def scores(self) -> list[Measure]:
        """The measures that are drawn: accuracies, or else micro F, first that of the model."""
        drawn = ("accuracy", "micro_f")
        return [one for one in self.measures if one.interval and one.key.endswith(drawn)]

    def content(self) -> str:
        """Return what the page shows, as JSON, from which :func:`read` makes the page again."""
        pictures = [one._replace(draw=None) for one in self.pictures]
        shown = asdict(replace(self, numbers={}, pictures=pictures))
        return json.dumps(shown, ensure_ascii=False, default=lambda values: values.tolist())

    def html(self, images: Mapping[str, bytes | None]) -> str:
        """Return the page; raise MissingPackageError if matplotlib or jinja2 is not installed.

        `images` are the pictures that could be drawn, as PNG by file.
        """
        with require_package("jinja2"):
            from jinja2 import Environment, PackageLoader, StrictUndefined
        environment = Environment(
            loader=PackageLoader("ssnmf_fast.report", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(
            # 12 %, 0.3 %, or 0 % for next to nothing.
            percent=lambda share: f"{100 * share:.{int(0.0005 <= share < 0.00995)}f} %",
            uri=_uri,
            pixels=_pixels,
            real_terms=real_terms,
        )
        curve = figure(7.0, 2.8)
        if self.objective:
            objective_curve(self.objective, ax=curve.add_subplot())
        topics = self.topics
        page: str = environment.get_template("report.html.j2").render(
            summary=self,
            topics=topics,
            order=sorted(range(len(topics)), key=lambda k: -(topics[k].size or 0.0)),
            classes=len(topics[0].shares) if topics else 0,
            shares=share_table(self),
            confusion_table=confusion_table(self.confusion),
            results=_results(self),
            curve=png(curve) if self.objective else None,
            images=images,
            widest=max((max(one.share, one.high) for one in self.codes), default=1.0),
            version=__version__,
        )
        return page


def read(text: str) -> Summary:
    """Return what :meth:`Summary.content` wrote; raise an error for another text."""
    found = json.loads(text)
    found["topics"] = Topics([Topic(**one) for one in found["topics"]])
    found["examples"] = [[Example(**one) for one in some] for some in found["examples"]]
    found["measures"] = [Measure(**one) for one in found["measures"]]
    found["pictures"] = [Picture(*one) for one in found["pictures"]]
    found["codes"] = [ClassShare(*one) for one in found["codes"]]
    found["class_scores"] = [ClassScore(*one) for one in found["class_scores"]]
    if found["confusion"] is not None:
        classes, counts = found["confusion"]
        found["confusion"] = Confusion(classes, np.array(counts))
    return Summary(**found)


def _results(summary: Summary) -> list[Table]:
    tables, scores = list[Table](), summary.class_scores
    if scores:
        rows = [[one[0], str(one[4]), *map(format_score, one[1:4])] for one in scores]
        heads = ["Class", "samples", "precision", "recall", "F"]
        tables.append(("Precision and recall by class", _SCORES, heads, rows))
    if pairs := most_confused(summary.confusion):
        heads = ["Class", "predicted as", "samples", "of the class"]
        tables.append(("Most often confused", "", heads, pairs))
    if summary.measures:
        rows = [[one.name, one.text, one.meaning] for one in summary.measures]
        note = "Quality of the fit, and the meaning of each value."
        tables.append(("Measures", note, ("", "value", "meaning"), rows))
    return tables


def png(drawn: Any, dpi: int = 150) -> bytes:
    stream = io.BytesIO()
    drawn.savefig(stream, format="png", dpi=dpi, facecolor="white")
    return stream.getvalue()


def _uri(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


def _pixels(image: Any) -> str:
    """Return the address of an image, pixel by pixel; larger numbers are darker."""
    with require_package("matplotlib"):
        from matplotlib.image import imsave
    stream, values = io.BytesIO(), np.nan_to_num(image)
    most = max(float(values.max()), 1e-12)
    imsave(stream, values, cmap="gray_r", vmin=0, vmax=most, format="png")
    return _uri(stream.getvalue())


class Cell(NamedTuple):
    """A number on a background from white, 0, to dark, 1; `about` is a full description."""

    ground: float
    text: str
    about: str


class Heat:
    """A table of shares: titles and names of rows and columns, and sizes in pixels."""

    def __init__(
        self, down: str, across: str, classes: Names, names: Names, cells: list[list[Cell]]
    ) -> None:
        self.down, self.across, self.cells = down, across, cells
        self.classes, self.names = classes, names
        self.room = int(np.clip(_LETTER * max(map(len, [down, *names])) + 12, *_NAMES))
        wide = _LETTER * max(map(len, classes)) + 8  # enough for horizontal names
        self.width = max(_CELL[1], int(wide) + 1)
        if self.width * len(classes) > _WIDTH - self.room:
            self.width = int(np.clip((_WIDTH - self.room) / len(classes), *_CELL))
        digits = max(len(cell.text) for row in cells for cell in row)
        self.numbers = _DIGIT * digits <= self.width - 1  # whether they fit in cells
        self.upright = wide > self.width  # whether names of columns are vertical


def share_table(summary: Summary) -> Heat | None:
    """Return the table of topics and classes; topics without names are sorted by class."""
    topics = summary.topics
    if not topics or not 0 < len(topics[0].shares) <= _MOST_CLASSES:
        return None
    classes = [str(label) for label, _ in topics[0].shares]
    values = [[float(share) for _, share in topic.shares] for topic in topics]
    order = list(range(len(topics)))
    if not topics[0].name:
        order.sort(key=lambda k: (int(np.argmax(values[k])), -max(values[k])))
    darkest = darkest_share(np.asarray(values), None)
    heads, names = classes, []
    if summary.class_counts:
        heads = [f"{name} ({n})" for name, n in zip(classes, summary.class_counts, strict=True)]
    for topic in (topics[k] for k in order):
        words = ", ".join(topic.terms[:3]) if not summary.parts else ""
        names.append(topic.name or (f"{topic.topic}: {words}" if words else f"topic {topic.topic}"))
    cells = [
        [
            Cell(v / darkest, f"{100 * v:.0f}" if v >= 0.005 else "", f"{name} in {row}: {v:.1%}")
            for name, v in zip(classes, values[k], strict=True)
        ]
        for k, row in zip(order, names, strict=True)
    ]
    return Heat("topic", "class", heads, names, cells)


def confusion_table(table: Confusion | None) -> Heat | None:
    """Return the table of true and predicted classes; None if there are none, or too many."""
    if table is None or len(table.classes) > _MOST_CLASSES:
        return None
    names, cells = table.classes, []
    for true, counts in zip(names, table.counts.tolist(), strict=True):
        n = sum(counts)
        about = [f"{k} of {n} of {true} predicted as " for k in counts]
        rows = zip(counts, about, names, strict=True)
        cells.append([Cell(k / max(n, 1), str(k or ""), text + guess) for k, text, guess in rows])
    return Heat("true class", "predicted class", names, names, cells)


def most_confused(table: Confusion | None) -> list[tuple[str, str, int, str]]:
    """Return the true and wrong classes that are confused most often, with counts and shares."""
    if table is None or len(table.classes) < 3:
        return []
    wrong = table.counts.copy()
    np.fill_diagonal(wrong, 0)
    most = _MOST_CONFUSED[len(table.classes) > _MOST_CLASSES]
    pairs = sorted(np.argwhere(wrong).tolist(), key=lambda pair: -wrong[pair[0], pair[1]])[:most]
    shares = wrong / np.maximum(table.counts.sum(axis=1, keepdims=True), 1)
    return [
        (table.classes[i], table.classes[j], int(wrong[i, j]), f"{shares[i, j]:.0%}")
        for i, j in pairs
    ]
