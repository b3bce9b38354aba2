"""choose_rank of tensors: planted ranks, weights, same bits, what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.tensors import coordinates
from planted_tensors import RANK, SHAPE, amounts, counts

import ssnmf_fast as sf

F, KL = "frobenius", "kullback-leibler"
QUICK: dict[str, Any] = {"n_starts": 1, "n_threads": 1, "random_state": 0}
SPLITS: dict[str, Any] = {"held-out": {"n_splits": 3}}  # which other criteria do not have
DATA = {F: amounts, KL: counts}
FORMS = {"dense": np.asarray, "sparse": coordinates}
CRITERIA = ("held-out", "corcondia", "stability")


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("loss", DATA)
def test_planted_ranks_of_dense_and_sparse_tensors(criterion: str, loss: str) -> None:
    X = DATA[loss]()
    given = QUICK | {"n_starts": 6 if criterion == "stability" else 2, "max_iter": 200}
    given |= SPLITS.get(criterion, {})
    dense, sparse = (
        sf.choose_rank(form(X), range(1, 5), criterion=criterion, loss=loss, **given)
        for form in FORMS.values()
    )
    assert dense.rank == sparse.rank == RANK
    assert dense.ranks == (1, 2, 3, 4)
    assert dense.scores.shape == (4, 3 if criterion == "held-out" else 1)
    assert dense.criterion == criterion
    assert dense.larger_is_better == (criterion != "held-out")
    assert [*dense.measures] == ["spread"] * (criterion == "stability")
    np.testing.assert_allclose(dense.means[:RANK], sparse.means[:RANK], rtol=0.01)


def test_the_score_of_core_consistency_is_that_of_the_best_fit() -> None:
    X = amounts()
    given = {"n_threads": 1, "random_state": 0, "n_starts": 3}
    found = sf.choose_rank(X, [1, 4], criterion="corcondia", **given)
    settings = {"max_iter": 500, "tol": 1e-6, "n_components": 4}
    seeds = np.random.default_rng(0).integers(2**31 - 1, size=3).tolist()
    fits = [sf.factorize_tensor(X, random_state=seed, **settings) for seed in seeds]
    best = min(fits, key=lambda fit: fit.objective[-1][1])
    assert found.scores[1, 0] == pytest.approx(sf.metrics.core_consistency(best, X))
    assert found.scores[0, 0] == pytest.approx(100, abs=1e-3)
    assert found.label == "core consistency (%)"
    assert found.rank == (4 if found.scores[1, 0] >= 90 else 1)


def test_coordinates_in_other_forms() -> None:
    X = counts()
    coords, values, shape = coordinates(X)
    given = QUICK | {"loss": KL, "n_splits": 1, "n_starts": 1, "max_iter": 20}
    forms = (coords, values, shape), SimpleNamespace(coords=coords, data=values, shape=shape)
    found = [sf.choose_rank(form, [2], **given).scores for form in forms]
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.slow
def test_two_modes_by_coordinates_are_a_matrix() -> None:
    X = counts()[0]
    given = {"loss": KL, "n_threads": 1, "random_state": 0, "n_splits": 4}
    tensor = sf.choose_rank(coordinates(X), [1, 2], **given)
    matrix = sf.choose_rank(X, [1, 2], **given)
    model = sf.NonnegativeCP(loss=KL, max_iter=500, tol=1e-5)
    estimated = sf.choose_rank(sp.csr_array(X), [1, 2], estimator=model, **given | {"loss": None})
    np.testing.assert_allclose(tensor.means, matrix.means, rtol=0.3)
    np.testing.assert_allclose(estimated.scores, tensor.scores, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
def test_same_bits(criterion: str) -> None:
    X = coordinates(counts())
    given = {"criterion": criterion, "loss": KL, "n_starts": 2, "random_state": 3, "max_iter": 30}
    given |= SPLITS.get(criterion, {})
    found = [
        sf.choose_rank(X, [2, 4], n_jobs=jobs, n_threads=threads, **given).scores
        for jobs, threads in ((1, 1), (2, 2), (4, 3))
    ]
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def weighed(hidden: Any, kind: str) -> Any:
    ones = np.where(hidden, 0.0, 2.0)
    ways = {
        "array": lambda: ones,
        "observed": lambda: sf.weights.observed(coordinates(ones)),
        "missing": lambda: sf.weights.missing(coordinates(hidden.astype(float))),
        "vectors": lambda: [None, np.where(hidden[0, :, 0], 0.0, 2.0), None],
    }
    return ways[kind]()


@pytest.mark.slow
@each("form", FORMS)
@each("kind", ["array", "observed", "missing", "vectors", "nan"])
def test_entries_without_weight_have_no_say(form: str, kind: str) -> None:
    if form == "sparse" and kind in ("vectors", "nan"):
        pytest.skip("not of sparse tensors")
    X = amounts()
    hidden = np.random.default_rng(9).random(SHAPE) < 0.1
    if kind == "vectors":
        hidden = np.zeros(SHAPE, dtype=bool) | (np.arange(SHAPE[1]) % 6 == 0)[:, None]
    given = None if kind == "nan" else weighed(hidden, kind)
    values = (np.nan,) if kind == "nan" else (1e4, 7.0)
    found = [
        sf.choose_rank(
            FORMS[form](np.where(hidden, value, X)),
            range(2, 5),
            X_weights=given,
            max_iter=100,
            **QUICK | SPLITS["held-out"],
        )
        for value in values
    ]
    assert all(choice.rank == RANK for choice in found)
    np.testing.assert_allclose(found[0].scores, found[-1].scores, rtol=1e-6)


@pytest.mark.slow
def test_weights_count_in_the_errors() -> None:
    X = amounts()
    X[:, 6:] *= 10
    half = [None, np.where(np.arange(SHAPE[1]) < 6, 1.0, 0.0), None]
    weighted = sf.choose_rank(X, [RANK], X_weights=half, **QUICK | SPLITS["held-out"]).means[0]
    alone = sf.choose_rank(X[:, :6], [RANK], **QUICK | SPLITS["held-out"]).means[0]
    assert weighted == pytest.approx(alone, rel=0.3)
    assert sf.choose_rank(X, [RANK], **QUICK | SPLITS["held-out"]).means[0] > 5 * alone


def test_without_zeros() -> None:
    X = counts()
    given = QUICK | {"loss": KL, "max_iter": 50}
    found = []
    for form in FORMS.values():
        found.append(sf.choose_rank(form(X), [2], mask_zeros=False, **given).means[0])
        assert found[-1] > 1.2 * sf.choose_rank(form(X), [2], **given).means[0]
    assert found[0] == pytest.approx(found[1], rel=0.3)


@pytest.mark.slow
def test_estimators() -> None:
    X = amounts()
    model = sf.NonnegativeCP(max_iter=500, tol=1e-6, random_state=0)
    for criterion in CRITERIA:
        given = QUICK | {"n_starts": 2} | SPLITS.get(criterion, {})
        plain = sf.choose_rank(X, [2, 3], criterion=criterion, **given)
        own = given | {"random_state": None, "estimator": model}
        found = sf.choose_rank(X, [2, 3], criterion=criterion, **own)
        np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-6)
    assert not hasattr(model, "factors_")


@pytest.mark.parametrize("loss", DATA)
def test_starts_that_are_compared_differ(loss: str) -> None:
    given = QUICK | {"criterion": "stability", "n_starts": 3}
    model = sf.NonnegativeCP(loss=loss, max_iter=1, tol=0)
    found = sf.choose_rank(DATA[loss](), [3], estimator=model, **given)
    plain = sf.choose_rank(DATA[loss](), [3], loss=loss, max_iter=1, tol=0, **given)
    assert found.scores[0, 0] == pytest.approx(plain.scores[0, 0])
    assert found.scores[0, 0] < 0.999
    assert model.init == "auto"


def test_the_input_stays() -> None:
    X = counts()
    X[0, 0, 0] = np.nan
    before = X.copy()
    for criterion in CRITERIA:
        sf.choose_rank(X, [2], criterion=criterion, max_iter=3, **QUICK | {"n_starts": 2})
    np.testing.assert_array_equal(X, before)


@pytest.mark.slow
def test_single_precision_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    X = amounts().astype(np.float32)
    for criterion in CRITERIA:
        given = QUICK | {"n_starts": 2, "verbose": 1} | SPLITS.get(criterion, {})
        found = sf.choose_rank(X, [2, RANK], criterion=criterion, **given)
        assert found.rank == RANK
    shown = capsys.readouterr().err
    assert all(name in shown for name in ("error", "core consistency", "agreement"))


def test_table_and_picture() -> None:
    found = sf.choose_rank(amounts(), [1, 2], criterion="corcondia", max_iter=20, **QUICK)
    assert [*found.to_rows()[0]] == ["rank", "mean", "standard_error", "pruned"]
    pytest.importorskip("matplotlib")
    (axes,) = found.plot().axes
    assert axes.get_ylabel() == "core consistency (%)"


HUGE = (np.zeros((5, 1), int), [1.0], (2**31 - 1,) * 5)


@each(
    ("changes", "error", "message"),
    [
        ({"criterion": "bound"}, ValueError, "'bound' is not available for tensors"),
        ({"y": [0, 1]}, ValueError, "y is not supported for tensors"),
        ({"estimator": sf.NMF()}, TypeError, "NonnegativeCP as estimator; got NMF"),
        ({"estimator": sf.NonnegativeCP(), "loss": KL}, ValueError, "loss and estimator are both"),
        ({"X": -np.ones((3, 3, 3))}, ValueError, "Negative values"),
        ({"X": HUGE}, ValueError, "more places than an integer can count"),
        ({"X_weights": np.ones((3, 3))}, ValueError, "X_weights has shape"),
        ({"X_weights": [None]}, ValueError, "X_weights has 1 vectors"),
        ({"validation_fraction": 1e-9}, ValueError, "No entry with positive weight"),
        ({"criterion": "corcondia", "X_weights": np.ones(SHAPE)}, ValueError, "not take X_weights"),
        ({"criterion": "stability", "n_starts": 1}, ValueError, "n_starts of at least 2; got 1"),
        (
            {"criterion": "stability", "n_starts": 2, "estimator": sf.NonnegativeCP(init="svd")},
            ValueError,
            "needs different starts",
        ),
        (
            {"X": np.ones((3, 3)), "criterion": "corcondia"},
            ValueError,
            "only available for tensors",
        ),
        (
            {"X": coordinates(counts()), "X_weights": [None, np.ones(SHAPE[1]), None]},
            ValueError,
            "cannot be combined with held-out entries",
        ),
    ],
)
def test_bad_arguments(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sf.choose_rank(**{"X": np.ones(SHAPE), "ranks": [2], **QUICK} | changes)
