"""Topics over time: which cells and curves are drawn, in which order, under which dates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast import plotting

pytest.importorskip("matplotlib")
from helpers.refused import refused
from matplotlib.dates import date2num

PREVALENCE = np.array([[0.0, 2.0, 1.0], [0.0, 4.0, 1.0], [0.0, 0.0, 0.0], [3.0, 1.0, 1.0]])
EARLY, EVEN, LATE = "1: c, d", "2: e, f", "0: a, b"


@pytest.fixture
def model() -> sf.DynamicTopics:
    """Three topics in four months, of which the third has no documents."""
    X = np.kron(np.eye(3), [[2.0, 1.0]])
    times = np.array(["2020-01", "2020-02", "2020-04"], dtype="datetime64[M]")
    fitted = sf.DynamicTopics(3, random_state=0).fit(X, times)
    fitted.components_ = X / 3
    fitted.prevalence_ = PREVALENCE
    return fitted


def cells(drawn: Any) -> Any:
    return drawn.axes[0].collections[0].get_array().reshape(len(names(drawn)), -1)


def names(drawn: Any) -> list[str]:
    return [label.get_text() for label in drawn.axes[0].get_yticklabels()]


def test_heat_map(model: Any) -> None:
    drawn = plotting.topics_over_time(model, list("abcdef"))
    axes, bar = drawn.axes
    assert names(drawn) == [EVEN, EARLY, LATE]  # by their peaks
    grid = cells(drawn)
    np.testing.assert_allclose(grid[1].filled(-1), [0.5, 1, -1, 0.25])
    np.testing.assert_allclose(grid[2].filled(-1), [0, 0, -1, 1])
    assert bar.get_ylabel() == "prevalence, relative\nto the topic's peak"
    assert axes.get_ylim() == (2.5, -0.5)  # the first row is on top
    first, last = date2num(np.array(["2020-01-01", "2020-05-01"], dtype="datetime64[D]"))
    assert axes.get_xlim() == (first, last)
    drawn.canvas.draw()
    dates = [label.get_text() for label in axes.get_xticklabels()]
    assert any("Feb" in text or "2020" in text for text in dates)


@pytest.mark.parametrize(
    ("share", "wanted"), [("slice", [2 / 3, 4 / 5, 1 / 5]), ("largest", [0.5, 1, 0.25])]
)
def test_shares(model: Any, share: Any, wanted: list[float]) -> None:
    drawn = plotting.topics_over_time(model, share=share)
    np.testing.assert_allclose(cells(drawn)[1].compressed(), wanted)


def test_order_and_choice(model: Any) -> None:
    drawn = plotting.topics_over_time(model, list("abcdef"), sort=False)
    assert names(drawn) == [LATE, EARLY, EVEN]
    drawn = plotting.topics_over_time(model, list("abcdef"), topics=[0, 1], n_terms=1)
    assert names(drawn) == ["1: c", "0: a"]


def test_lines(model: Any) -> None:
    drawn = plotting.topics_over_time(model, list("abcdef"), kind="lines", title="Months")
    (axes,) = drawn.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [EVEN, EARLY, LATE]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [2, 4, np.nan, 1])
    assert axes.get_ylabel() == "prevalence in a mean document"
    assert axes.get_title() == "Months"
    assert axes.get_ylim()[0] == 0


def test_long_names_and_many_slices(model: Any) -> None:
    days = np.datetime64("2020-01-01") + np.arange(400)
    fitted = sf.DynamicTopics(2, freq="day", random_state=0).fit(
        np.eye(2)[np.arange(400) % 2], days
    )
    drawn = plotting.topics_over_time(fitted, ["$cost" * 20, "_hidden"], n_terms=2)
    assert max(map(len, names(drawn))) <= 60
    drawn.canvas.draw()
    lines = plotting.topics_over_time(fitted, kind="lines").axes[0].lines
    assert {line.get_marker() for line in lines} == {""}


def test_errors(model: Any) -> None:
    for wrong in ({"kind": "bars"}, {"share": "topic"}, {"topics": [3]}, {"topics": []}):
        refused(next(iter(wrong)), plotting.topics_over_time, model, **wrong)
    refused("feature_names holds 1 names", plotting.topics_over_time, model, ["a"])
    for other in (sf.DynamicTopics(2), np.eye(2), sf.NMF(n_components=1).fit(np.ones((2, 2)))):
        refused("must be a fitted DynamicTopics", plotting.topics_over_time, other, error=TypeError)
