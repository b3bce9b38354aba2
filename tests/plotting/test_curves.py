"""Curves of objectives and of scores: what is drawn, and how it is labeled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast import plotting

pytest.importorskip("matplotlib")

AXES = {"xlabel": "rank", "ylabel": "accuracy"}
SCORES = {"first": np.array([[0.5, 0.7], [0.8, 0.8]]), "_second": [0.4, 0.6]}


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


class TestObjectiveCurve:
    def test_of_fits(self) -> None:
        X = np.random.default_rng(0).random((9, 6))
        fit = sf.factorize(X, n_components=2, random_state=0)
        model = sf.NMF(n_components=2, random_state=0).fit(X)
        for given in (fit, model, fit.objective):
            (axes,) = plotting.objective_curve(given).axes
            np.testing.assert_allclose(axes.lines[0].get_xydata(), fit.objective)
            assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "objective")
            assert axes.get_legend() is None

    def test_several_and_scale(self) -> None:
        fits = {"_a": [(0, 100.0), (1, 1.0)], "b": SimpleNamespace(objective=[(0, 9.0)])}
        (axes,) = plotting.objective_curve(fits).axes
        assert axes.get_yscale() == "log"
        assert legend(axes) == ["_a", "b"]
        (axes,) = plotting.objective_curve([(0, -100.0), (1, -1.0)], label="lower bound").axes
        assert axes.get_yscale() == "linear"
        assert axes.get_ylabel() == "lower bound"

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_far_start_is_outside(self, sign: int) -> None:
        later = [(10, 12.0), (20, 11.0), (30, 10.5)]
        pairs = [(k, sign * value) for k, value in [(0, 90.0), *later]]
        (axes,) = plotting.objective_curve(pairs).axes
        low, high = sorted(sign * end for end in axes.get_ylim())
        assert 10 < low < 10.5
        assert 12 < high < 13
        assert axes.get_yscale() == "linear"
        (note,) = axes.texts
        assert note.get_text() == f"{90 * sign} at iteration 0"
        # All is drawn, though not all is seen; and a start that is near stays inside.
        np.testing.assert_allclose(axes.lines[0].get_xydata(), pairs)
        (axes,) = plotting.objective_curve([(0, 15.0), *later]).axes
        assert axes.get_ylim()[1] > 15
        assert not axes.texts

    def test_far_starts_of_several(self) -> None:
        fits = {"a": [(0, 1e6), (10, 90.0), (20, 80.0)], "b": [(0, 5e5), (10, 9.0), (20, 8.0)]}
        (axes,) = plotting.objective_curve(fits).axes
        assert axes.get_yscale() == "log"  # what is shown spans a factor above 10
        assert axes.get_ylim()[1] < 200
        assert [note.get_text() for note in axes.texts] == ["starts are outside"]
        (axes,) = plotting.objective_curve([(0, 9.0), (10, 1.0), (20, 1.0)]).axes
        assert axes.get_ylim()[1] > 9  # nothing would be left to see

    def test_iterations_are_whole_numbers(self) -> None:
        (axes,) = plotting.objective_curve([(0, 9.0), (10, 1.5), (12, 1.0)]).axes
        axes.figure.draw_without_rendering()
        assert all(float(tick).is_integer() for tick in axes.get_xticks())

    def test_errors(self) -> None:
        for empty in ({}, [], {"a": []}):
            with pytest.raises(ValueError, match="nothing to draw"):
                plotting.objective_curve(empty)
        with pytest.raises(TypeError, match="fits must be a Factorization"):
            plotting.objective_curve(3)
        with pytest.raises(ValueError, match=r"objective contains NaN at \[1, 1\]"):
            plotting.objective_curve([(0, 1.0), (1, np.nan)])
        with pytest.raises(ValueError, match=r"expected \(k, 2\)"):
            plotting.objective_curve([1.0, 2.0])


class TestScoreCurves:
    def test_the_legend_does_not_cover_baselines(self) -> None:
        drawn = plotting.score_curves(
            [1, 2], {"a": [0.5, 0.6]}, xlabel="x", ylabel="y", baselines={"b": 0.55}
        )
        drawn.draw_without_rendering()
        (axes,) = drawn.axes
        assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1

    def test_means_bars_and_baselines(self) -> None:
        drawn = plotting.score_curves([2, 10], SCORES, **AXES, baselines={"SVM": 0.75})
        (axes,) = drawn.axes
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("rank", "accuracy")
        np.testing.assert_allclose(axes.lines[0].get_xydata(), [[2, 0.6], [10, 0.8]])
        (bars,) = axes.collections
        spread = np.std([0.5, 0.7], ddof=1)
        np.testing.assert_allclose(bars.get_segments()[0][:, 1], [0.6 - spread, 0.6 + spread])
        assert legend(axes) == ["first", "_second", "SVM"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "10"]

    def test_all_of_the_bars_is_inside(self) -> None:
        scores = {"a": [[0.0, 100.0]], "b": [[40.0, 60.0]]}
        (axes,) = plotting.score_curves([1], scores, **AXES, interval="range").axes
        assert axes.get_ylim()[0] < 0
        assert axes.get_ylim()[1] > 100

    def test_band(self) -> None:
        drawn = plotting.score_curves([1, 2], SCORES, **AXES, interval="range", style="band")
        (band,) = drawn.axes[0].collections  # a single run has none
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (0.5, 0.8)
        bare = plotting.score_curves([1, 2], SCORES, **AXES, interval="none")
        assert not bare.axes[0].collections

    def test_logarithmic(self) -> None:
        (axes,) = plotting.score_curves([1, 10, 100], {"a": [1, 2, 3]}, **AXES, log_x=True).axes
        assert axes.get_xscale() == "log"
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "100"]

    def test_many_methods_differ_and_stand_beside(self) -> None:
        many = {f"method {k}": [k, k + 1] for k in range(12)}
        drawn = plotting.score_curves([1, 2], many, **AXES)
        (axes,) = drawn.axes
        looks = {(ln.get_color(), ln.get_marker(), ln.get_linestyle()) for ln in axes.lines}
        assert len(looks) == 12
        drawn.draw_without_rendering()
        assert axes.get_legend().get_window_extent().x0 > axes.get_window_extent().x1

    @pytest.mark.parametrize(
        ("x", "scores", "more", "error", "message"),
        [
            ([2, 1], {"a": [1, 2]}, {}, ValueError, "x must be an ascending vector"),
            ([0, 1], {"a": [1, 2]}, {"log_x": True}, ValueError, "x must be above 0"),
            ([1, 2], {"a": [1, np.nan]}, {}, ValueError, r"scores\['a'\] contains NaN at \[1\]"),
            ([1, 2], {"a": [1]}, {}, ValueError, r"scores\['a'\] has shape \(1,\)"),
            ([1, 2], {}, {}, ValueError, "scores is empty"),
            ([1, 2], [1, 2], {}, TypeError, "scores must be a dict"),
            ([1], {"a": [1]}, {"interval": "x"}, ValueError, "interval must be one of"),
            ([1], {"a": [1]}, {"style": "x"}, ValueError, "style must be one of"),
            ([1], {"a": [1]}, {"baselines": {"b": [1]}}, TypeError, "must be a number"),
        ],
    )
    def test_errors(self, x: Any, scores: Any, more: dict, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            plotting.score_curves(x, scores, **AXES, **more)
