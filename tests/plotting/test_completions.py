"""Pictures of completions: what is drawn, where, and how it is labeled."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast import plotting

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.colors import LogNorm, to_rgba  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

RATES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def errors() -> np.ndarray:
    return 10 ** (-6 * np.outer(RATES, RATES))


def state(iteration: int, change: float, residual: float) -> SimpleNamespace:
    return SimpleNamespace(iteration=iteration, change=change, residual=residual)


def drawn_bytes(drawn: Figure, path: Path) -> bytes:
    drawn.savefig(path)
    return path.read_bytes()


class TestRecoveryGrid:
    def test_diagonal_and_ticks_are_those_of_the_rates(self) -> None:
        axes = plotting.recovery_grid(np.ones((2, 3)), [0.2, 0.4, 0.6], [0.3, 0.9]).axes[0]
        np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0.3, 0.3], [0.6, 0.6]])
        np.testing.assert_allclose(axes.get_xticks(), [0.2, 0.4, 0.6])
        np.testing.assert_allclose(axes.get_yticks(), [0.3, 0.9])

    @pytest.mark.parametrize(
        ("kind", "label"),
        [("error", "error"), ("ratio", "ratio of errors"), ("binned", "ratio of errors")],
    )
    def test_color_bar_says_what_it_is(self, kind: str, label: str) -> None:
        drawn = plotting.recovery_grid(errors(), RATES, RATES, kind=kind)
        assert drawn.axes[1].get_ylabel() == label

    def test_errors(self, tmp_path: Path) -> None:
        values = errors()
        values[0, 1] = np.nan
        drawn = plotting.recovery_grid(values, RATES, RATES, title="sIRLS")
        assert isinstance(drawn, Figure)
        axes, bar = drawn.axes
        assert axes.get_title() == "sIRLS"
        assert axes.get_xlabel() == "sampling rate of zeros"
        assert axes.get_ylabel() == "sampling rate of nonzeros"
        assert axes.xaxis.label.get_color() == axes.title.get_color() != "black"
        np.testing.assert_allclose(axes.get_xlim(), (0, 1), atol=1e-12)
        np.testing.assert_allclose(axes.get_ylim(), (0, 1), atol=1e-12)
        (cells,) = axes.collections
        shown = cells.get_array()
        assert shown.mask[0, 1]
        assert shown.mask.sum() == 1
        np.testing.assert_allclose(shown.compressed(), values[~np.isnan(values)])
        assert isinstance(cells.norm, LogNorm)
        assert cells.norm.vmin == pytest.approx(np.nanmin(values))
        assert bar.get_yticklabels()[-1].get_text() == "$10^{-1}$"
        (diagonal,) = axes.lines
        np.testing.assert_allclose(diagonal.get_xdata(), diagonal.get_ydata())
        assert drawn_bytes(drawn, tmp_path / "grid.png").startswith(b"\x89PNG")

    def test_row_of_values_is_a_rate_of_nonzeros(self) -> None:
        values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        drawn = plotting.recovery_grid(values, [0.2, 0.4, 0.6], [0.5, 0.9])
        axes = drawn.axes[0]
        np.testing.assert_allclose(axes.get_xlim(), (0.1, 0.7))
        np.testing.assert_allclose(axes.get_ylim(), (0.3, 1.1))
        corners = axes.collections[0].get_coordinates()
        np.testing.assert_allclose(corners[0, :, 0], [0.1, 0.3, 0.5, 0.7])
        np.testing.assert_allclose(corners[:, 0, 1], [0.3, 0.7, 1.1])

    @pytest.mark.parametrize(
        ("largest", "end"), [(1.0, 2.0), (1.9, 2.0), (4.0, 5.0), (7.0, 10.0), (50.0, 100.0)]
    )
    def test_ratios_are_centered_at_one(self, largest: float, end: float) -> None:
        values = np.array([[1.0, 0.0], [largest, 1 / largest]])
        cells = plotting.recovery_grid(values, [0.2, 0.4], [0.2, 0.4], kind="ratio").axes[0]
        norm = cells.collections[0].norm
        assert (norm.vmin, norm.vmax) == pytest.approx((1 / end, end))
        assert norm(1.0) == pytest.approx(0.5)
        assert cells.collections[0].get_array()[0, 1] == pytest.approx(1 / end)  # of ratio 0

    def test_binned(self) -> None:
        values = np.array([[0.999, 1.0], [np.inf, np.nan]])
        drawn = plotting.recovery_grid(values, [0.2, 0.4], [0.2, 0.4], kind="binned")
        cells = drawn.axes[0].collections[0]
        drawn.draw_without_rendering()
        colors = cells.get_facecolor().reshape(2, 2, 4)
        assert tuple(colors[0, 0]) == to_rgba("white")
        assert tuple(colors[0, 1]) == tuple(colors[1, 0]) == to_rgba("black")
        assert tuple(colors[1, 1]) not in (to_rgba("white"), to_rgba("black"))
        labels = [label.get_text() for label in drawn.axes[1].get_yticklabels()]
        assert labels == ["below 1", "1 or more"]

    def test_limits_and_axes(self) -> None:
        drawn = Figure()
        axes = drawn.add_subplot()
        answer = plotting.recovery_grid(errors(), RATES, RATES, limits=(1e-9, 1.0), ax=axes)
        assert answer is drawn
        assert axes.collections[0].norm.vmin == 1e-9

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("value", [0.0, 1.0, np.nan, np.inf, 1e-16])
    @pytest.mark.parametrize("kind", ["error", "ratio", "binned"])
    def test_one_cell(self, kind: str, value: float, tmp_path: Path) -> None:
        drawn = plotting.recovery_grid([[value]], [0.5], [0.5], kind=kind)
        assert drawn_bytes(drawn, tmp_path / "one.png")

    @pytest.mark.parametrize(
        ("values", "zeros", "nonzeros", "more", "message"),
        [
            (np.ones((2, 3)), [0.1, 0.2], [0.1, 0.2, 0.3], {}, r"\(2, 3\); expected \(3, 2\)"),
            (np.ones(3), [0.1], [0.1, 0.2, 0.3], {}, r"shape \(3,\)"),
            (-np.ones((1, 1)), [0.1], [0.1], {}, "at least 0"),
            (np.ones((1, 1)), [[0.1]], [0.1], {}, "zero_rates must be a vector"),
            (np.ones((1, 0)), [], [0.1], {}, "zero_rates must be a vector"),
            (np.ones((2, 1)), [0.1], [0.2, 0.1], {}, "nonzero_rates .* ascending"),
            (np.ones((1, 1)), [1.1], [0.1], {}, "zero_rates must be from 0 to 1"),
            (np.ones((1, 1)), [0.1], [0.1], {"kind": "log"}, "kind must be one of 'error'"),
            (np.ones((1, 1)), [0.1], [0.1], {"limits": (1, 1)}, "limits must be"),
        ],
    )
    def test_errors_in_arguments(
        self, values: object, zeros: object, nonzeros: object, more: dict, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            plotting.recovery_grid(values, zeros, nonzeros, **more)


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
        fit = sf.complete(M, rank=1, random_state=0)
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
