"""Curves of objectives and of completions: what is drawn, and how it is labeled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import plotting

pytest.importorskip("matplotlib")


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
            refused("nothing to draw", plotting.objective_curve, empty)
        refused("fits must be a Factorization", plotting.objective_curve, 3, error=TypeError)
        with pytest.raises(ValueError, match=r"objective contains NaN at \[1, 1\]"):
            plotting.objective_curve([(0, 1.0), (1, np.nan)])
        refused(r"expected \(k, 2\)", plotting.objective_curve, [1.0, 2.0])


def ranks(means: list[float]) -> Any:
    scores = np.array(means)[:, None]
    found = sf.results.RankChoice(2, tuple(range(1, len(means) + 1)), scores, "bound", "best")
    return plotting.rank_curve(found), means


def values(sigma: list[float], rank: int) -> Any:
    return plotting.singular_values(sigma, rank=rank), sigma


@pytest.mark.parametrize(
    ("drawn", "heights"),
    [
        ranks([-9.0, -1.0, -1.1, -1.2, -1.3]),
        ranks([9.0, 1.0, 1.1, 1.2, 1.3]),
        values([5.0, 4.9, 4.8, 4.7, 1e-3], 4),
        values([5.0, 4.9, 4.8, 4.7, 1e-3], 1),
        values([5.0, 4.0, *[1e-8] * 8], 2),
        values([10.0**-k for k in range(9)], 7),
    ],
)
def test_the_label_of_a_rank_is_not_on_the_curve(drawn: Any, heights: list[float]) -> None:
    (axes,) = drawn.axes
    drawn.canvas.draw()
    box = axes.texts[0].get_window_extent()
    places = np.column_stack([np.arange(1, len(heights) + 1), heights])
    across = np.linspace(box.x0, box.x1)
    curve = np.interp(across, *axes.transData.transform(places).T)
    assert not ((box.y0 <= curve) & (curve <= box.y1)).any()
