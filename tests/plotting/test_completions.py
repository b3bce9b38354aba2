"""Pictures of completions: what is drawn, where, and how it is labeled."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast import plotting

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

RATES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def state(iteration: int, change: float, residual: float) -> SimpleNamespace:
    return SimpleNamespace(iteration=iteration, change=change, residual=residual)


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
        with pytest.raises(ValueError, match=message):
            plotting.singular_values(values, rank=rank)


class TestConvergence:
    def test_completion_and_history(self) -> None:
        M = np.outer(np.arange(1.0, 9.0), np.arange(1.0, 7.0))
        M[::3, ::2] = np.nan
        fit = sf.complete(M, n_components=1, random_state=0)
        for given in (fit, fit.history):
            (axes,) = plotting.convergence(given).axes
            assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "relative length")
            assert axes.get_yscale() == "log"
            change, residual = axes.lines
            wanted = [(s.iteration, s.change) for s in fit.history if s.change > 0]
            np.testing.assert_array_equal(change.get_xydata(), wanted)
            assert (change.get_linestyle(), residual.get_linestyle()) == ("-", "--")
            labels = [text.get_text() for text in axes.get_legend().get_texts()]
            assert labels == ["change", "residual at observed entries"]

    def test_several(self) -> None:
        first, second = [state(1, 0.1, 0.2), state(2, 0.01, 0.1)], [state(10, 0.0, 0.5)]
        drawn = Figure()
        axes = drawn.add_subplot()
        named = {"first": SimpleNamespace(history=first), "second": second}
        assert plotting.convergence(named, ax=axes) is drawn
        labels = [line.get_label() for line in axes.lines]
        assert labels == [
            "first: change",
            "first: residual at observed entries",
            "second: residual at observed entries",  # a change of 0 is not recorded
        ]
        colors = [line.get_color() for line in axes.lines]
        assert colors[0] == colors[1] != colors[2]

    @pytest.mark.filterwarnings("error")
    def test_nothing_above_zero(self, tmp_path: Path) -> None:
        drawn = plotting.convergence([state(1, 0.0, 0.0)])
        assert not drawn.axes[0].lines
        assert drawn_bytes(drawn, tmp_path / "empty.png")

    def test_errors_in_arguments(self) -> None:
        for empty in ([], {}, {"a": []}):
            with pytest.raises(ValueError, match="no history"):
                plotting.convergence(empty)
        for wrong in (3, "text", [1.0, 2.0], {"a": 1}):
            with pytest.raises(TypeError, match="expected a Completion"):
                plotting.convergence(wrong)
