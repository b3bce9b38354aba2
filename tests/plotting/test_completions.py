"""Singular values: what is drawn, where, and how it is labeled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.refused import refused

from ssnmf_fast import plotting

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402


def drawn_bytes(drawn: Figure, path: Path) -> bytes:
    drawn.savefig(path)
    return path.read_bytes()


class TestSingularValues:
    def test_rank_is_marked(self) -> None:
        values = [10.0, 5.0, 1e-4, 1e-5, 0.0]
        drawn = plotting.singular_values(values, rank=2)
        (axes,) = drawn.axes
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("number", "singular value")
        assert axes.get_yscale() == "log"
        kept, dropped, mark = axes.lines
        assert kept.get_color() != dropped.get_color()
        np.testing.assert_array_equal(kept.get_xydata(), [[1, 10], [2, 5]])
        np.testing.assert_array_equal(dropped.get_xydata(), [[3, 1e-4], [4, 1e-5]])
        assert mark.get_xdata()[0] == 2.5
        assert [text.get_text() for text in axes.texts] == ["rank 2"]
        assert axes.get_xlim()[0] < 1
        assert axes.get_xlim()[1] > 5

    def test_without_rank_and_into_axes(self) -> None:
        drawn = Figure()
        axes = drawn.add_subplot()
        assert plotting.singular_values(np.array([3.0, 2.5]), ax=axes) is drawn
        assert len(axes.lines) == 1
        assert not axes.texts

    @pytest.mark.slow
    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("values", [[0.0], [1.0], [0.0, 0.0], [3.0, 3.0], [1e-300, 0.0]])
    def test_edges(self, values: list[float], tmp_path: Path) -> None:
        drawn = plotting.singular_values(values, rank=len(values))
        assert drawn_bytes(drawn, tmp_path / "values.png")

    @pytest.mark.parametrize(
        ("values", "rank", "message"),
        [
            (np.ones((2, 2)), None, r"shape \(2, 2\)"),
            ([], None, "not empty"),
            ([1.0, np.nan], None, "contains NaN"),
            ([1.0, -1.0], None, "Negative values"),
            ([1.0], 2, "rank must be from 1 to 1"),
            ([1.0], 0, "rank must be from 1 to 1"),
        ],
    )
    def test_errors_in_arguments(self, values: object, rank: int | None, message: str) -> None:
        refused(message, plotting.singular_values, values, rank=rank)
