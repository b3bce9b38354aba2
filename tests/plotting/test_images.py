"""Components as images: which are drawn, where, and which are framed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.refused import refused

from ssnmf_fast import plotting

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

B = np.array([[0.0, 3.0], [2.0, 0.0], [0.0, 0.0], [1.0, 3.0]])


def texts(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


class TestImageGrid:
    def framed(self, drawn: Figure) -> list[bool]:
        frames = drawn.axes[0].patches
        return [frame.get_linewidth() > 1 for frame in frames]

    def test_images_and_names(self) -> None:
        drawn = plotting.image_grid(B * 7, (2, 1), names=["p", "q", "r", "s"], columns=2)
        (axes,) = drawn.axes
        assert len(axes.images) == 4
        np.testing.assert_allclose(axes.images[3].get_array(), [[1 / 3], [1]])  # its own scale
        assert texts(axes.texts) == ["p", "q", "r", "s"]
        corners = [frame.get_xy() for frame in axes.patches]
        assert corners[0][0] == corners[2][0]
        assert corners[0][1] < corners[2][1]
        assert not any(self.framed(drawn))

    def test_fewest_components_are_framed(self) -> None:
        weights = [1.0, 5.0, 0.0, 4.0]
        for coverage, wanted in ((0.5, [1]), (0.9, [1, 3]), (1.0, [0, 1, 3]), (0.0, [])):
            drawn = plotting.image_grid(np.eye(4), (2, 2), weights=weights, coverage=coverage)
            assert np.flatnonzero(self.framed(drawn)).tolist() == wanted
        assert texts(drawn.axes[0].texts) == ["reconstruction:\n0 of 4 framed"]
        np.testing.assert_allclose(drawn.axes[0].images[4].get_array(), [[0.2, 1], [0, 0.8]])

    def test_zeros(self) -> None:
        drawn = plotting.image_grid(
            np.zeros((2, 4)), (2, 2), weights=[0.0, 0.0], sample=np.zeros(4)
        )
        assert len(drawn.axes[0].images) == 4
        assert not any(self.framed(drawn))

    @pytest.mark.parametrize(
        ("shape", "more", "error", "message"),
        [
            ((2, 2), {}, ValueError, r"shape is \(2, 2\), that is 4 pixels; components have 2"),
            (2, {}, TypeError, "shape must be a pair"),
            ((1, 2), {"weights": [1.0]}, ValueError, r"weights has shape \(1,\); expected \(4,\)"),
            ((1, 2), {"weights": [1, 2, np.nan, 4]}, ValueError, r"weights contains NaN at \[2\]"),
            ((1, 2), {"sample": [1, 2]}, ValueError, "sample needs weights"),
            ((1, 2), {"names": ["p"]}, ValueError, "names holds 1 names"),
            ((1, 2), {"coverage": 1.5}, ValueError, "coverage must be at most 1"),
        ],
    )
    def test_errors(self, shape: Any, more: dict, error: type, message: str) -> None:
        refused(message, plotting.image_grid, B, shape, error=error, **more)
