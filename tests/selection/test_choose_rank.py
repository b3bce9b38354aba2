"""choose_rank: planted ranks, weights, labels, same bits, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from planted_ranks import RANK, absent, amounts, counts, weighed

import ssnmf_fast as sf

KL = "kullback-leibler"
QUICK: dict[str, Any] = {"n_starts": 1, "n_splits": 3, "n_threads": 1, "random_state": 0}
DATA = {"frobenius": amounts, KL: counts}


@pytest.mark.slow
@each("loss", DATA)
@each("form", [np.array, sp.csr_array])
def test_planted_ranks(loss: str, form: Any) -> None:
    X = form(DATA[loss]())
    choice = sf.choose_rank(X, range(1, 6), loss=loss, **QUICK)
    assert choice.rank == RANK
    assert choice.ranks == (1, 2, 3, 4, 5)
    assert choice.scores.shape == (5, 3)
    assert ("perplexity" in choice.measures) == (loss == KL)
    assert choice.best_model is None
    assert choice.notes == []


def test_sparse_data_are_dense_data() -> None:
    found = [
        sf.choose_rank(form(amounts()), [2, RANK], **QUICK).scores
        for form in (np.array, sp.csr_array)
    ]
    np.testing.assert_allclose(*found, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["held-out", "stability"])
def test_same_bits(criterion: str) -> None:
    X = counts()
    given = {"criterion": criterion, "loss": KL, "n_starts": 2, "random_state": 3}
    given |= {"n_splits": 2} if criterion == "held-out" else {}
    found = [
        sf.choose_rank(X, [2, 4], n_jobs=jobs, n_threads=threads, **given).scores
        for jobs, threads in ((1, 1), (2, 2), (4, 3))
    ]
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


@pytest.mark.slow
@each("form", [np.array, sp.csr_array])
@each("kind", ["array", "observed", "missing", "rows", "columns", "nan"])
def test_entries_without_weight_are_ignored(form: Any, kind: str) -> None:
    X = amounts()
    hidden = absent(X.shape)
    if kind == "rows":
        hidden = np.repeat([[True], [False]], [5, 55], axis=0) | np.zeros(X.shape, dtype=bool)
        given = sf.weights.outer(rows=np.where(hidden[:, 0], 0.0, 2.0))
    elif kind == "columns":
        hidden = np.arange(40) % 8 == np.zeros(X.shape)
        given = sf.weights.outer(columns=np.where(hidden[0], 0.0, 2.0))
    else:
        given = weighed(hidden).get(kind)
    values = (np.nan,) if kind == "nan" else (1e4, 7.0)
    if kind == "nan" and form is sp.csr_array:
        pytest.skip("NaN is for dense data")
    found = [
        sf.choose_rank(
            form(np.where(hidden, value, X)), range(2, 5), X_weights=given, max_iter=60, **QUICK
        )
        for value in values
    ]
    assert all(choice.rank == RANK for choice in found)
    assert found[0].scores.tobytes() == found[-1].scores.tobytes()


def test_weights_count_in_the_errors() -> None:
    X = amounts()
    columns = np.where(np.arange(40) < 20, 1.0, 0.0)
    half = sf.choose_rank(X, [2], X_weights=sf.weights.outer(columns=columns), **QUICK)
    alone = sf.choose_rank(X[:, :20], [2], **QUICK)
    assert half.means[0] == pytest.approx(alone.means[0], rel=0.3)


def test_without_zeros() -> None:
    X = counts() * (np.random.default_rng(1).random((60, 40)) < 0.7)
    for form in (np.array, sp.csr_array):
        found = sf.choose_rank(form(X), [1], mask_zeros=False, loss=KL, **QUICK)
        whole = sf.choose_rank(form(X), [1], loss=KL, **QUICK)
        assert found.means[0] != whole.means[0]


def test_pruned_ranks_are_not_chosen() -> None:
    X = amounts()
    given = QUICK | {"n_splits": 5, "max_iter": 60}
    found = sf.choose_rank(X, range(1, 6), **given)
    assert found.pruned[:2].all()
    assert not found.pruned[RANK - 1]
    assert np.isnan(found.scores[0]).tolist() == [False] * 3 + [True] * 2
    assert found.rank == RANK


class TestEstimators:
    @pytest.mark.slow
    def test_nmf(self) -> None:
        X = amounts()
        model = sf.NMF(tol=1e-6, max_iter=500, random_state=0, n_threads=1)
        given = QUICK | {"random_state": None}
        found = sf.choose_rank(X, [2, RANK, 4], estimator=model, **given)
        plain = sf.choose_rank(X, [2, RANK, 4], **QUICK)
        assert found.rank == RANK
        np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-6)
        assert not hasattr(model, "components_")

    def test_classes(self) -> None:
        X = counts()
        model = sf.SSNMFClassifier(supervision_weight=1.0, init="labels", tol=1e-3)
        y = np.where(np.arange(60) < 30, "a", "b")
        X[:30, :10] += 9
        found = sf.choose_rank(X, [2, 3], y=y, estimator=model, **QUICK)
        assert found.measures["label_score"].shape == (2, 3)
        assert found.measures["label_score"].mean() > 0.8
        assert "label_score" in found.to_rows()[0]

    def test_targets(self) -> None:
        X = amounts()
        model = sf.SSNMFRegressor(tol=1e-3)
        found = sf.choose_rank(X, [3], y=X[:, :5].sum(axis=1), estimator=model, **QUICK)
        assert 0.5 < found.measures["label_score"].mean() <= 1

    def test_a_callback_is_kept(self) -> None:
        seen = []
        model = sf.NMF(callback=lambda state: seen.append(state.iteration))
        sf.choose_rank(amounts(), [2], estimator=model, **QUICK)
        assert seen


def test_the_input_stays() -> None:
    X = counts()
    X[0, 0] = np.nan
    before = X.copy()
    sf.choose_rank(X, [2], **QUICK)
    np.testing.assert_array_equal(X, before)


def test_single_precision() -> None:
    X = amounts().astype(np.float32)
    assert sf.choose_rank(X, range(2, 5), **QUICK).rank == RANK


def test_ranks_are_sorted() -> None:
    assert sf.choose_rank(amounts(), [3, 2, 3], **QUICK).ranks == (2, 3)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    sf.choose_rank(amounts(), [2], verbose=1, **QUICK)
    assert "choose_rank: fit 1/3, error" in capsys.readouterr().err


@each(
    ("changes", "error", "message"),
    [
        ({"criterion": "elbow"}, ValueError, "criterion must be one of"),
        ({"rule": "knee"}, ValueError, "rule must be one of"),
        ({"ranks": []}, ValueError, "ranks is empty"),
        ({"ranks": range(2, 10**8)}, ValueError, "ranks holds more than 1000 ranks"),
        ({"ranks": 3}, TypeError, "ranks must be a sequence of integers"),
        ({"ranks": "3"}, TypeError, "ranks must be a sequence of integers"),
        ({"ranks": [3, 0]}, ValueError, "every rank in ranks must be at least 1"),
        ({"ranks": [2.5]}, TypeError, "every rank in ranks must be an integer"),
        ({"n_starts": 0}, ValueError, "n_starts must be at least 1"),
        ({"n_splits": 0}, ValueError, "n_splits must be at least 1"),
        ({"validation_fraction": 0}, ValueError, "validation_fraction must be above 0 and below 1"),
        ({"validation_fraction": 1e-9}, ValueError, "No entry with positive weight"),
        ({"loss": "hinge"}, ValueError, "loss must be one of"),
        ({"max_iter": -1}, ValueError, "max_iter must be at least 0"),
        ({"tol": -1.0}, ValueError, "tol must be finite and at least 0"),
        ({"y": [0, 1]}, ValueError, "y needs an estimator"),
        ({"estimator": sf.NMF(), "loss": KL}, ValueError, "loss and estimator are both given"),
        ({"estimator": sf.NMF(), "tol": 0}, ValueError, "tol and estimator are both given"),
        ({"estimator": sf.BayesianNMF()}, TypeError, "estimator must be one of ssnmf_fast"),
        ({"estimator": 3}, TypeError, "estimator must be one of ssnmf_fast"),
        ({"estimator": sf.NMF(init=(0, 0))}, ValueError, "estimator.init holds arrays"),
        ({"criterion": "stability", "estimator": sf.NMF()}, ValueError, "not take an estimator"),
        ({"criterion": "corcondia"}, ValueError, "only available for tensors"),
        ({"criterion": "stability", "ranks": [1, 2]}, ValueError, "ranks and n_starts of at least"),
        ({"X": np.ones((0, 3))}, ValueError, "expected at least one sample"),
        ({"X": -np.ones((5, 4))}, ValueError, "Negative values"),
        ({"X_weights": np.ones((3, 3))}, ValueError, "X_weights has shape"),
        ({"X_weights": sp.csr_array((30, 20))}, TypeError, "is ambiguous"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"X": np.ones((30, 20)), "ranks": [2], **QUICK}
    if "criterion" in changes:
        del given["n_splits"]
    refused(message, sf.choose_rank, error=error, **given | changes)


UNUSED = {  # arguments that a criterion does not use
    "words": {"y": [0], "estimator": sf.NMF(), "X_weights": np.ones((30, 20)), "loss": KL}
    | {"n_starts": 1, "mask_zeros": False, "rule": "best", "max_iter": 1, "tol": 9},
    **{
        criterion: {"n_splits": 3, "validation_fraction": 0.2, "mask_zeros": False}
        for criterion in ("bound", "stability", "corcondia")
    },
}


@each(("criterion", "name"), [(kind, name) for kind, given in UNUSED.items() for name in given])
def test_arguments_that_a_criterion_does_not_use_are_refused(criterion: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{criterion}' does not take {name}; leave it out"):
        sf.choose_rank(
            np.ones((30, 20)), [2], criterion=criterion, **{name: UNUSED[criterion][name]}
        )


def test_one_split_has_no_standard_error() -> None:
    found = sf.choose_rank(amounts(), [2, 3], **QUICK | {"n_splits": 1})
    assert any("One split has no standard error" in note for note in found.notes)


def test_rows_of_sparse_data_have_no_weights_in_estimators() -> None:
    given = sf.weights.outer(rows=np.ones(60))
    with pytest.raises(ValueError, match="which estimators do not support"):
        sf.choose_rank(sp.csr_array(amounts()), [2], estimator=sf.NMF(), X_weights=given, **QUICK)


def test_files(tmp_path: Any) -> None:
    X = sp.csr_array(counts())
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz")
    refused("X is on disk", sf.choose_rank, file, [2], error=TypeError)
    given = {"criterion": "stability", "random_state": 0, "n_starts": 4, "loss": KL}
    found, expected = (sf.choose_rank(data, [2, 3, 5], **given) for data in (file, X))
    np.testing.assert_allclose(found.scores, expected.scores, atol=0.05)
