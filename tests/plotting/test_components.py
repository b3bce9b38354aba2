"""Components of tensors: which are drawn, in which order, and how each mode is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import plotting

pytest.importorskip("matplotlib")

SHAPE = (60, 50, 6)


@pytest.fixture
def model() -> Any:
    """Three components, of which the second is the largest."""
    rng = np.random.default_rng(0)
    factors = [rng.random((n, 3)) for n in SHAPE]
    factors = [F / F.sum(axis=0) for F in factors]
    factors[1][:, 2] = 0
    factors[1][[7, 3], 2] = [0.75, 0.25]
    return np.array([2.0, 5.0, 3.0]), factors


def rows(drawn: Any, n_modes: int = 3) -> list[list[Any]]:
    axes = drawn.axes
    return [axes[k : k + n_modes] for k in range(0, len(axes), n_modes)]


def test_rows_and_panels(model: Any) -> None:
    drawn = plotting.tensor_components(model)
    table = rows(drawn)
    assert [row[0].get_ylabel() for row in table] == [
        "component 1\n50%",
        "component 2\n30%",
        "component 0\n20%",
    ]
    assert [axes.get_title() for axes in table[0]] == ["mode 0", "mode 1", "mode 2"]
    _, factors = model
    np.testing.assert_array_equal(table[0][0].lines[0].get_ydata(), factors[0][:, 1])
    heights = [bar.get_height() for bar in table[2][2].patches]
    np.testing.assert_array_equal(heights, factors[2][:, 0])
    assert len({row[0].get_ylim() for row in table}) == 1  # one scale for a mode
    drawn.canvas.draw()


def test_few_components_and_largest_entries(model: Any) -> None:
    drawn = plotting.tensor_components(
        model,
        max_components=2,
        mode_names=["users", "pages", "days"],
        entry_names={-2: [f"page $ {k}" for k in range(50)]},
        n_terms=4,
        title="Visits",
    )
    table = rows(drawn)
    assert len(table) == 2
    assert [axes.get_title() for axes in table[0]] == ["users", "pages", "days"]
    assert drawn.get_supxlabel() == "the 2 largest of 3 components"
    assert drawn.get_suptitle() == "Visits"
    labels = [[label.get_text() for label in row[1].get_yticklabels()] for row in table]
    assert labels[1] == ["page $ 7", "page $ 3"]  # others are zero
    assert len(labels[0]) == 4
    assert table[1][1].get_ylim() == table[0][1].get_ylim() == (3.5, -0.5)
    drawn.canvas.draw()


@pytest.mark.slow
def test_kinds_and_names_below_bars(model: Any) -> None:
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    drawn = plotting.tensor_components(
        model, kinds={0: "bars", 1: "line", 2: "bars"}, entry_names={1: range(50), 2: days}
    )
    first, _, last = rows(drawn)
    assert len(first[0].patches) == 60
    assert len(first[1].lines[0].get_xdata()) == 50
    assert last[2].get_xticklabels()[0].get_text() == "Monday"
    assert [label.get_text() for label in last[1].get_xticklabels()][:2] == ["0", "5"]
    drawn.canvas.draw()
    largest = plotting.tensor_components(model, kinds={2: "largest"}, n_terms=2)
    assert len(rows(largest)[0][2].get_yticklabels()) == 2


def test_results_and_estimators() -> None:
    X = np.einsum("iq,jq,kq->ijk", *(np.random.default_rng(0).random((n, 2)) for n in (9, 8, 7)))
    fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    fitted = sf.NonnegativeCP(2, random_state=0).fit(X)
    shown = [
        [row[0].get_ylabel() for row in rows(plotting.tensor_components(one))]
        for one in (fit, fitted)
    ]
    assert shown[0] == shown[1]
    matrix = sf.factorize_tensor(X[0], n_components=1, random_state=0)
    assert len(plotting.tensor_components(matrix).axes) == 2


def test_small_and_empty_components() -> None:
    model = np.array([1.0, 1e-4, 0.0]), [np.ones((4, 3)), np.ones((3, 3)), np.ones((50, 3))]
    drawn = plotting.tensor_components(model, kinds={0: "largest"})
    assert [row[0].get_ylabel().split("\n")[1] for row in rows(drawn)] == [
        "100%",
        "below 1%",
        "below 1%",
    ]
    nothing = plotting.tensor_components([np.zeros((3, 1)), np.zeros((50, 1))])
    nothing.canvas.draw()


@each(
    ("changes", "error", "message"),
    [
        ({"result": np.ones(3)}, TypeError, "result is a ndarray"),
        ({"result": sf.NonnegativeCP(2)}, TypeError, "result is a NonnegativeCP"),
        ({"mode_names": ["a"]}, ValueError, "mode_names holds 1 names"),
        ({"entry_names": {1: ["a"]}}, ValueError, r"entry_names\[1\] holds 1 names"),
        ({"entry_names": ["a"]}, TypeError, "entry_names must be a mapping of modes"),
        ({"entry_names": {3: ["a"]}}, ValueError, "a mode of entry_names must be"),
        ({"kinds": {0: "heatmap"}}, ValueError, r"kinds\[0\] must be one of"),
        ({"max_components": 0}, ValueError, "max_components must be at least 1"),
        ({"n_terms": 0}, ValueError, "n_terms must be at least 1"),
    ],
)
def test_bad_arguments(
    model: Any, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    refused(message, plotting.tensor_components, error=error, **{"result": model} | changes)
