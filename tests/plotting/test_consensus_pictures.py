"""Pictures of what many starts agree on."""

import numpy as np
import pytest
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import plotting

pytest.importorskip("matplotlib", reason="needs ssnmf-fast[plot]")


@pytest.fixture(scope="module")
def found():
    X = np.random.default_rng(0).poisson(np.kron(np.eye(3), np.full((15, 6), 8)) + 0.3)
    given = {"n_starts": 10, "random_state": 0}
    return [sf.consensus(X, rank, **given) for rank in (4, 2, 3)]


@pytest.mark.slow
def test_a_clustergram_is_dark_along_the_diagonal(found):
    drawn = found[2].plot()
    side, middle, stability, densities = drawn.axes
    distances = np.asarray(middle.images[0].get_array())
    assert distances.shape == (30, 30)
    inside = np.kron(np.eye(3), np.ones((10, 10))) > 0
    assert distances[inside].max() < 0.3 < distances[~inside].min()
    assert [text.get_text() for text in side.texts] == ["0", "1", "2"]
    widths = [bar.get_width() for bar in stability.patches]
    np.testing.assert_allclose(widths, found[2].stability)
    assert sum(bar.get_height() for bar in densities.patches) == 30
    drawn.canvas.draw()


def test_one_component_is_drawn(found):
    X = np.random.default_rng(0).random((8, 5))
    sf.consensus(X, 1, n_starts=2, random_state=0).plot(title="one").canvas.draw()


def test_a_consensus_matrix_has_blocks(found):
    drawn = plotting.consensus_matrix(found[2])
    cells = np.asarray(drawn.axes[0].images[0].get_array())
    expected = np.kron(np.eye(3), np.ones((15, 15)))
    assert np.abs(cells - expected).max() < 0.2
    assert drawn.axes[0].get_title().startswith("cophenetic correlation")
    drawn.canvas.draw()


def test_stability_stands_against_the_rank(found):
    drawn = plotting.stability_by_rank(found)
    (stability,), (error,) = (axes.lines for axes in drawn.axes)
    assert stability.get_xdata().tolist() == error.get_xdata().tolist() == [2, 3, 4]
    assert stability.get_ydata().tolist() == [found[k].silhouette for k in (1, 2, 0)]
    assert error.get_ydata().tolist() == [found[k].error for k in (1, 2, 0)]
    drawn.canvas.draw()


def test_other_things_are_refused(found):
    for draw in (plotting.clustergram, plotting.consensus_matrix, plotting.stability_by_rank):
        refused("must be a Consensus", draw, 3, error=TypeError)
    with pytest.raises(TypeError, match="consensuses must be a Consensus"):
        plotting.stability_by_rank([found[0], None])
    refused("consensuses is empty", plotting.stability_by_rank, [])
