"""Samples that are worth labeling next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import ssnmf_fast as sf

QUICK = {"n_components": 3, "supervision_weight": 1.0, "random_state": 0, "max_iter": 30}


def texts(seed: int = 0, n: int = 120) -> tuple[Any, Any]:
    """Return counts of words of three classes, of which ten samples each are labeled."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    rates = np.full((3, 30), 0.05)
    for k in range(3):
        rates[k, 10 * k : 10 * k + 10] = 0.8
    X = rng.poisson(rates[classes]).astype(np.float64)
    X[:, 0] += 1
    return X, np.where(np.arange(n) < 30, classes, -1)


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any]:
    X, y = texts()
    return sf.SSNMFClassifier(**QUICK).fit(X, y), X[30:]


class TestWhich:
    def test_unsure_samples_first(self, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        X = X.copy()
        mixed = [4, 17, 52]
        for row, (a, b) in zip(mixed, [(0, 1), (1, 2), (0, 2)], strict=True):
            X[row] = 0
            X[row, [*range(10 * a, 10 * a + 10), *range(10 * b, 10 * b + 10)]] = 1
        assert set(model.suggest(X, 6)) >= set(mixed)

    def test_no_copies_before_others(self, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        first = model.suggest(X, 1)[0]
        copied = np.vstack([X[first], X, X[first]])
        chosen = model.suggest(copied, 60).tolist()
        assert chosen[0] == 0  # of equal ones the first
        assert not {first + 1, len(X) + 1} & set(chosen)

    def test_samples_without_data_come_last(self, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        X = X[:20].copy()
        X[[3, 11]] = 0
        chosen = model.suggest(X, 20)
        assert chosen[-2:].tolist() == [3, 11]
        assert sorted(chosen) == list(range(20))
        assert model.suggest(np.zeros_like(X), 3).tolist() == [0, 1, 2]

    def test_the_first_ones_do_not_depend_on_how_many(self, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        many = model.suggest(X, 40)
        assert many.dtype.kind == "i"
        assert len(set(many)) == 40
        assert model.suggest(X, 7).tolist() == many[:7].tolist()
        assert sorted(model.suggest(X, 1000)) == list(range(len(X)))

    @pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, np.asarray])
    def test_forms_and_threads(self, form: Any, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        wanted = model.suggest(X).tolist()
        given = form(X)
        for threads in (1, 2):
            model.set_params(n_threads=threads)
            assert model.suggest(given).tolist() == wanted
        np.testing.assert_array_equal(given.toarray() if sp.issparse(given) else given, X)


class TestModels:
    def test_several_labels(self) -> None:
        X, y = texts()
        Y = np.eye(3)[y]
        Y[y < 0] = np.nan
        model = sf.SSNMFClassifier(**QUICK).fit(X, Y)
        X = X[30:]
        X[50:, :] = 0
        X[50:, 5:15] = np.random.default_rng(1).poisson(1.0, (40, 10))  # of two classes, or none
        chosen = model.suggest(X, 12)
        assert len(set(chosen)) == 12
        assert chosen[0] >= 50

    @pytest.mark.parametrize(
        "readout", [pytest.param("committee", marks=pytest.mark.slow), "logistic", "refit", "joint"]
    )
    def test_readouts(self, readout: str) -> None:
        X, y = texts()
        model: Any = sf.FewLabelsClassifier(random_state=0, max_iter=30)
        if readout != "committee":
            model = sf.SSNMFClassifier(**QUICK, readout=readout)
        model.fit(X, y)
        assert len(set(model.suggest(X[30:], 15))) == 15

    def test_guided_models(self) -> None:
        X, y = texts()
        model = sf.TopicSupervisedNMF(random_state=0).fit(X, y)
        assert len(set(model.suggest(X[30:], 15))) == 15

    def test_weights_and_missing_entries(self, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        W = np.ones_like(X)
        W[:, 5:9] = 0
        X = X.copy()
        hidden = model.suggest(X, 10, X_weights=W).tolist()
        X[:, 5:9] = 100  # which nobody sees
        assert model.suggest(X, 10, X_weights=W).tolist() == hidden
        X[:, 5:9] = np.nan
        assert len(set(model.suggest(X, 10))) == 10

    def test_data_on_disk(self, fitted: tuple[Any, Any], tmp_path: Path) -> None:
        model, X = fitted
        sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
        chosen = model.suggest(sf.io.open_csr(tmp_path / "X.npz"), 10)
        assert len(set(chosen)) == 10


class TestParts:
    def test_the_covering_is_that_of_plain_search(self, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        W = sf.weights.outer(rows=np.ones(len(X)))  # with weights, points are topic proportions
        first, second = np.sort(model.predict_proba(X, X_weights=W), axis=1)[:, :-3:-1].T
        unsure = np.round(1 - (first - second), 9)
        points = np.sqrt(model.topic_proportions(X, X_weights=W))
        similar = np.round(np.maximum(points @ points.T, 0), 9) ** 4
        taken, wanted = np.zeros(len(X)), []
        for _ in range(25):
            gains = np.maximum(similar - taken, 0) @ unsure
            gains[wanted] = -1
            wanted.append(int(gains.argmax()))
            taken = np.maximum(taken, similar[wanted[-1]])
        assert model.suggest(X, 25, X_weights=W).tolist() == wanted

    @pytest.mark.parametrize("n", [5, 40])
    def test_of_many_samples_some_are_looked_at(self, n: int, fitted: tuple[Any, Any]) -> None:
        model, X = fitted
        X = np.vstack([np.tile(X, (130, 1)), np.zeros((3, X.shape[1]))])
        looked = np.arange(10_000) * (len(X) - 3) // 10_000  # evenly spaced, with data
        chosen = model.suggest(X, n)
        assert len(set(chosen)) == n
        assert chosen.tolist() == looked[model.suggest(X[looked], n)].tolist()


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None])
def test_a_bad_number(n: Any, fitted: tuple[Any, Any]) -> None:
    refused("n must be", fitted[0].suggest, fitted[1], n, error=(ValueError, TypeError))


def test_bad_data(fitted: tuple[Any, Any]) -> None:
    model, X = fitted
    refused("30 features", model.suggest, X[:, :5])
    with pytest.raises(NotFittedError):
        sf.FewLabelsClassifier().suggest(X)


@pytest.mark.slow
def test_suggested_samples_are_predicted_wrong_more_often_than_others() -> None:
    X, y = load_digits(return_X_y=True)
    labeled = np.random.default_rng(0).permutation(len(y))[:60]
    known = np.full(len(y), -1)
    known[labeled] = y[labeled]
    model = sf.FewLabelsClassifier(random_state=0).fit(X, known)
    X, y = X[known < 0], y[known < 0]
    wrong = model.predict(X) != y
    assert wrong[model.suggest(X, 40)].mean() > 2 * wrong.mean()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_one_class(form):
    """All samples are equally unsure; other methods work, too."""
    X, y = form(np.random.default_rng(0).random((12, 8))), np.array(["a"] * 5 + [None] * 7)
    model = sf.TopicSupervisedNMF(random_state=0).fit(X, y)
    assert sorted(model.suggest(X, 12)) == list(range(12))
    assert set(model.predict(X)) == {"a"}
    for name in ("predict_proba", "decision_function", "transform"):
        assert np.isfinite(getattr(model, name)(X)).all()
    assert np.isfinite(model.explain(X).totals).all()
