"""RankChoice: rules, notes, table and picture; the criteria that hide nothing."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest
from helpers.refused import refused
from planted_ranks import RANK, amounts, counts

import ssnmf_fast as sf
from ssnmf_fast import plotting

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def choice(means: Any, spread: float = 0.0, rule: str = "near-best") -> sf.results.RankChoice:
    """Return a choice with scores around some means, whose standard error is about `spread`."""
    around = np.array([-1.0, 0.0, 1.0]) * spread * np.sqrt(3)
    scores = np.asarray(means)[:, None] + around
    return sf.results.RankChoice.by_rule(tuple(range(1, len(means) + 1)), scores, "held-out", rule)


def test_rules() -> None:
    means = [9.0, 1.3, 1.0, 2.0]
    assert choice(means, 0.1).rank == 3
    assert choice(means, 0.5).rank == 2
    assert choice(means, 0.5, "best").rank == 3
    assert choice(means, 0.1).standard_errors == pytest.approx(0.1)


def test_one_split_has_no_standard_error() -> None:
    found = sf.results.RankChoice.by_rule((1, 2), np.array([[2.0], [1.0]]), "held-out", "near-best")
    assert found.rank == 2
    assert np.isnan(found.standard_errors).all()


def test_notes() -> None:
    assert choice([3.0, 1.0, 2.0, 4.0]).notes == []
    assert "largest rank tried, 3: try larger ones" in repr(choice([3.0, 2.0, 1.0]))
    near = choice([3.0, 2.1, 2.0], 0.5)
    assert near.rank == 2
    assert "tried, 3, and 2 is within one standard error of it: try larger" in repr(near)
    some = sf.results.RankChoice.by_rule(
        (5, 6, 7), np.array([[1.0], [2.0], [3.0]]), "held-out", "near-best"
    )
    assert "smallest one tried: try some below 5" in repr(some)
    assert choice([1.0, 2.0, 3.0]).notes == []  # none is below 1
    assert choice([2.0]).notes == []
    rng = np.random.default_rng(0)
    scores = rng.random((6, 5))
    flat = sf.results.RankChoice.by_rule(tuple(range(2, 8)), scores, "held-out", "near-best")
    assert any("The curve is flat" in note for note in flat.notes)


def test_scores_are_printed() -> None:
    lines = repr(choice([9.0, 1.3, 1.0, 2.0], 0.1)).split("\n")
    assert lines[1:] == [
        "  held-out error:",
        *(f"     {rank}: {mean} +- 0.1" for rank, mean in enumerate((9, 1.3, 1, 2), start=1)),
    ]
    scores = np.array([[3.0], [2.0]])
    assert "1: 3\n" in repr(sf.results.RankChoice.by_rule((1, 2), scores, "bound", "best"))


def test_table() -> None:
    found = choice([3.0, 1.0, 2.0])
    frame = found.to_frame()
    assert list(frame.columns[:4]) == ["rank", "mean", "standard_error", "pruned"]
    assert frame["split_2"].tolist() == [3.0, 1.0, 2.0]
    assert frame["rank"].tolist() == [1, 2, 3]


def test_table_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is missing: python -m pip install"):
        choice([3.0, 1.0, 2.0]).to_frame()


def test_picture() -> None:
    pytest.importorskip("matplotlib")
    (axes,) = choice([3.0, 1.0, 2.0]).plot().axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("components", "held-out error")
    assert axes.get_yscale() == "linear"
    assert [text.get_text() for text in axes.texts] == ["rank 2"]
    (axes,) = plotting.rank_curve(choice([300.0, 1.0, 2.0]), title="T").axes
    assert axes.get_yscale() == "log"
    assert axes.get_title() == "T"
    refused("choice must be a RankChoice", plotting.rank_curve, [1, 2], error=TypeError)


def test_picture_of_a_range() -> None:
    pytest.importorskip("matplotlib")
    scores = np.array([[-3.0], [-1.0], [-1.1]])
    found = sf.results.RankChoice(2, (1, 2, 3), scores, "words", "words", low=2, high=3)
    (axes,) = found.plot().axes
    (shaded,) = axes.patches
    box = shaded.get_extents().transformed(axes.transData.inverted())
    assert (box.x0, box.x1) == pytest.approx((2, 3))
    assert [text.get_text() for text in axes.texts] == ["rank 2"]


class TestBound:
    def test_the_best_model_is_kept(self) -> None:
        X = counts()
        model = sf.BayesianNMF(S_shape="auto", random_state=1)
        found = sf.choose_rank(X, [2, RANK, 8], criterion="bound", estimator=model, n_starts=2)
        assert found.rank == found.best_model.n_components == RANK
        assert found.scores.shape == (3, 2)
        assert found.means.max() == found.scores[1].max() == found.best_model.lower_bound_
        assert found.label == "bound of the log evidence"
        assert not hasattr(model, "components_")
        again = sf.choose_rank(X, [RANK], criterion="bound", estimator=model, n_starts=2)
        assert np.array_equal(again.scores[0], found.scores[1])
        with pytest.raises(dataclasses.FrozenInstanceError):
            found.rank = 1

    def test_labels(self) -> None:
        X, y = counts(), np.arange(60) % 2
        model = sf.papers.SupervisedBayesianNMF(tol=0, max_iter=20, random_state=0)
        given = {"criterion": "bound", "estimator": model, "n_starts": 1}
        found = sf.choose_rank(X, range(1, 4), y=y, **given)
        assert isinstance(found.best_model, sf.papers.SupervisedBayesianNMF)
        refused("requires y", sf.choose_rank, X, [2], **given)

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"estimator": sf.NMF()}, TypeError, "needs a BayesianNMF or Supervised"),
            ({"estimator": sf.BayesianNMF(init=(0, 0))}, ValueError, "init holds arrays"),
            ({"loss": "frobenius"}, ValueError, "loss and estimator are both given"),
            ({"X_weights": np.ones((60, 40))}, ValueError, "X_weights and estimator are both"),
        ],
    )
    def test_bad_arguments(
        self, changes: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        refused(message, sf.choose_rank, counts(), [2], criterion="bound", error=error, **changes)


class TestStability:
    def test_the_last_stable_rank(self) -> None:
        given = {"criterion": "stability", "n_starts": 8, "random_state": 0}
        found = sf.choose_rank(counts(), range(2, 6), loss="kullback-leibler", **given)
        assert found.rank == RANK
        assert found.scores.shape == (4, 1)
        assert found.larger_is_better
        rows = found.to_rows()
        assert all(0 <= row["weakest"] <= row["mean"] <= 1 for row in rows)
        assert rows[RANK - 2]["weakest"] > 0.9 > rows[-1]["weakest"]
        assert rows[RANK - 2]["spread"] < 0.1 < rows[-1]["spread"]

    @pytest.mark.parametrize(
        ("weakest", "spread", "expected"),
        [
            ([0.998, 0.995, 0.996, 0.42, 0.7], 0.15, 4),  # none across a valley that is less stable
            ([0.999, 0.4, 0.998, 0.3, 0.2], 0.15, 4),  # a coarse structure is stable too
            ([0.95, 0.8, 0.6, 0.4, 0.2], 0.01, 2),
            ([0.95, 0.8, 0.6, 0.4, 0.2], 0.2, 3),
            ([0.999, 0.996, 0.995, 0.98, 0.99], 1e-4, 6),  # all agree: rounding decides nothing
            ([0.3, 0.2, 0.2, 0.2, 0.2], 0.25, 2),  # starts disagree
            ([-0.1, -0.2, -0.3, -0.1, -0.2], 0.3, 5),
            ([0.0, 0.0, 0.0, 0.0, 0.0], 0.0, 6),
            ([0.99], 0.0, 2),
        ],
    )
    def test_rule(self, weakest: list[float], spread: float, expected: int) -> None:
        low = np.array(weakest)[:, None]
        scores, ranks = low / 10 + 0.9, tuple(range(2, 2 + len(low)))  # means hide the weakest
        measures = {"spread": np.full(low.shape, spread), "weakest": low}
        make = sf.results.RankChoice.by_rule
        found = make(ranks, scores, "stability", "near-best", measures=measures)
        assert found.rank == expected
        assert make(ranks, scores, "stability", "best").rank == ranks[int(low.argmax())]
        gaps = make(
            tuple(5 * r for r in ranks), scores, "stability", "near-best", measures=measures
        )
        assert gaps.rank == 5 * expected

    def test_tensors_take_the_score_for_the_weakest(self) -> None:
        scores, measures = np.array([[1.0], [0.9], [0.5]]), {"spread": np.full((3, 1), 0.15)}
        rule = "stability", "near-best"
        assert sf.results.RankChoice.by_rule((2, 3, 4), scores, *rule, measures=measures).rank == 3

    def test_one_start(self) -> None:
        with pytest.raises(ValueError, match="ranks and n_starts of at least 2; got 2 and 1"):
            sf.choose_rank(amounts(), [2], criterion="stability", n_starts=1)
