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
