"""Components that are images, and the image that some of them make up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.text import short
from .._data.border import check_integer, check_real
from ._style import (
    ACCENT,
    FRAME,
    INK,
    add_title,
    axes_or_new,
    check_names,
    check_row,
    check_table,
    complete_docstring,
    fitted,
    inches,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.14  # between images, in their widths
_BESIDE = (2.2, 1.2)  # width of the reconstruction: in those of the components; inches, at least
_LINE = 0.16  # inches of a line of text
_PAGE = 8.0  # inches
_TEXT = 8.0  # points
_TINY = float(np.finfo(np.float64).tiny)


@complete_docstring
def image_grid(
    components: npt.ArrayLike,
    shape: tuple[int, int],
    *,
    names: Sequence[str] | None = None,
    weights: npt.ArrayLike | None = None,
    sample: npt.ArrayLike | None = None,
    coverage: float = 0.9,
    columns: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw components as images, and which of them make up a sample.

    As in [1]_, Figure 2: the components that make up a sample are framed, and the reconstruction is
    drawn on the left.

    Parameters
    ----------
    components : array_like, shape (r, height * width), >= 0
        Such as `components_`.  Each is drawn on its own scale; the larger, the darker.
    shape : (int, int)
        Height and width of the images, in pixels.
    names : sequence of str, length r, optional
        Text above each image.
    weights : array_like, shape (r,), >= 0, optional
        A row of the representation: the reconstruction, ``weights @ components``, is drawn to the
        left, and components of the largest share of it are framed.
    sample : array_like, shape (height * width,), >= 0, optional
        The sample itself, drawn above its reconstruction; needs `weights`.
    coverage : float, 0 to 1
        As few components are framed as make up this share of the reconstruction.
    columns : int, optional
        Images in a row, at least 1; by default about as many as rows, or somewhat more.

    Raises
    ------
    ValueError
        If numbers are negative or not finite, or arguments do not match.
    TypeError
        If an argument is not an array of real numbers.

    References
    ----------
    .. [1] Y. Cho, L. K. Saul, "Nonnegative matrix factorization for semi-supervised dimensionality
       reduction", Machine Learning, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from ssnmf_fast import plotting
    >>> drawn = plotting.image_grid(np.eye(4), (2, 2), weights=[3.0, 1.0, 0.0, 0.0], coverage=0.7)
    >>> len(drawn.axes[0].images)  # four components and a reconstruction
    5
    """
    table = check_table(components, "components", "(components, pixels)")
    height, width = _check_shape(shape, table.shape[1])
    share = check_real(coverage, "coverage")
    if share > 1:
        raise ValueError(f"coverage must be from 0 to 1; got {short(coverage)}.")
    parts = _parts(table, weights)
    if sample is not None and parts is None:
        raise ValueError("sample is given without weights; give its row of the representation.")
    beside = []
    if sample is not None:
        pixels = check_row(sample, "sample", table.shape[1], "one number for each pixel")
        beside.append(("sample", pixels))
    framed = np.zeros(len(table), dtype=bool)
    if parts is not None:
        framed = _largest(parts, share)
        caption = f"reconstruction:\n{framed.sum()} of {len(table)} framed"
        beside.append((caption, parts.sum(axis=0)))
    if names is not None:
        names = check_names(names, "names", len(table), "component")
    if columns is None:  # somewhat wider than high, with few places empty in the last row
        wanted = np.sqrt(1.6 * len(table) * height / width)
        near = range(int(np.ceil(0.7 * wanted)), int(1.25 * wanted) + 2)
        columns = min(near, key=lambda count: (-len(table) % count, abs(count - wanted)))
    columns = min(check_integer(columns, "columns", 1), len(table))
    # Lengths are in widths of the image of a component, `inch` is one of these in inches.
    tall, above = height / width, 0.0 if names is None else 0.28
    across, down = 1 + _GAP, tall + above + _GAP
    right, bottom = columns * across - _GAP, -(-len(table) // columns) * down - above - _GAP
    room, least = (_PAGE, 0.3) if ax is None else (inches(ax)[0], 0.05)
    inch = float(np.clip(room / (right + 2.8 * bool(beside)), least, 0.9))
    wide, line = max(_BESIDE[0], _BESIDE[1] / inch), _LINE / inch
    left = -(wide + 0.6) if beside else 0.0
    bottom = max(bottom, len(beside) * (tall * wide + 1.6 * line) + line) if beside else bottom
    size = max(inch * (right - left + 0.2), 2.2), inch * (bottom + above) + 0.4
    drawn, axes = axes_or_new(ax, *size)
    look: dict[str, Any] = {"ha": "center", "fontsize": _TEXT, "color": INK, "parse_math": False}
    for number, image in enumerate(table):
        x, y = number % columns * across, number // columns * down
        frame = max(1.6, 3 * inch) if framed[number] else 0.8
        _draw_image(axes, image.reshape(height, width), (x, y), 1.0, frame)
        if names is not None:
            name = fitted(names[number], 1.1 * inch, _TEXT)
            axes.text(x + 0.5, y - 0.06, name, va="bottom", **look)
    for number, (name, image) in enumerate(beside):
        y = number * (tall * wide + 1.6 * line)
        _draw_image(axes, image.reshape(height, width), (left, y), wide)
        axes.text(left + wide / 2, y + tall * wide + 0.3 * line, name, va="top", **look)
    axes.set(xlim=(left - 0.1, right + 0.1), ylim=(bottom + 0.1, -above - 0.1), aspect="equal")
    axes.set_axis_off()
    add_title(axes, title)
    return drawn


def _draw_image(
    axes: Axes, image: Array, corner: tuple[float, float], width: float, line: float = 0.8
) -> None:
    from matplotlib.patches import Rectangle

    left, top = corner
    height = width * image.shape[0] / image.shape[1]
    largest = float(image.max())
    axes.imshow(
        image / largest if largest > 0 else image,
        cmap="gray_r",
        vmin=0,
        vmax=1,
        extent=(left, left + width, top + height, top),
        interpolation="nearest",
    )
    color = FRAME if line < 1 else ACCENT
    axes.add_patch(
        Rectangle(corner, width, height, fill=False, edgecolor=color, linewidth=line, zorder=3)
    )


def _check_shape(shape: object, n_pixels: int) -> tuple[int, int]:
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise TypeError(f"shape must be a pair (height, width); got {short(shape)}.")
    height, width = (check_integer(side, "shape", 1) for side in shape)
    if height * width != n_pixels:
        raise ValueError(
            f"shape is {(height, width)}, of {height * width} pixels; components have {n_pixels}."
        )
    return height, width


def _parts(table: Array, weights: npt.ArrayLike | None) -> Array | None:
    """Return what every component adds to the sample, (r, pixels), scaled."""
    if weights is None:
        return None
    row = check_row(weights, "weights", len(table), "one number for each component")
    # By the largest numbers first: products cannot overflow.
    scaled = [values / max(float(values.max()), _TINY) for values in (table, row)]
    return np.asarray(scaled[0] * scaled[1][:, None])


def _largest(parts: Array, coverage: float) -> Array:
    """Mark as few components as make up this share of the whole."""
    totals = parts.sum(axis=1)
    order = np.argsort(-totals, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(totals[order])[:-1]])
    marked = np.zeros(len(parts), dtype=bool)
    # Rounding must not ask for one more.
    marked[order] = (before < coverage * totals.sum() * (1 - 1e-12)) & (totals[order] > 0)
    return marked
