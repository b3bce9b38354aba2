"""``n_components="auto"``: the number of topics of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone
from test_words import shuffled, texts

import ssnmf_fast as sf

X = texts(3, n=200)
ESTIMATORS = [sf.NMF, sf.BayesianNMF]


def fitted(estimator: Any, **more: Any) -> Any:
    return estimator("auto", random_state=0, **more).fit(X)


@each("estimator", ESTIMATORS)
def test_the_choice_is_that_of_choose_rank(estimator: Any, tmp_path: Path) -> None:
    model = fitted(estimator)
    choice = sf.choose_rank(X, criterion="words", random_state=0)
    np.testing.assert_array_equal(model.rank_choice_.scores, choice.scores)
    assert model.n_components_ == model.rank_choice_.rank == choice.rank == 3
    again = estimator(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_, again.components_)
    assert model.get_params()["n_components"] == "auto"
    assert clone(model).n_components == "auto"
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert (loaded.n_components, loaded.n_components_) == ("auto", 3)
    assert str(loaded.rank_choice_) == str(model.rank_choice_)
    for name, value in model.rank_choice_.plain().items():
        assert loaded.rank_choice_.plain()[name] == value
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert not hasattr(model.set_params(n_components=2).fit(X), "rank_choice_")


@each("estimator", ESTIMATORS)
def test_no_topics(estimator: Any) -> None:
    with pytest.warns(UserWarning, match=r"No topics found: .* One is fitted\."):
        model = estimator("auto", random_state=0).fit(shuffled(X))
    assert model.n_components_ == model.rank_choice_.high == 1


def test_threads_and_weights() -> None:
    expected = fitted(sf.NMF, n_threads=1).rank_choice_.scores
    np.testing.assert_array_equal(fitted(sf.NMF, n_threads=3).rank_choice_.scores, expected)
    model = sf.NMF("auto", loss="kullback-leibler", random_state=0).fit(X.astype(np.float32) * 0.5)
    np.testing.assert_array_equal(model.rank_choice_.scores, expected)


def test_batches() -> None:
    refused("partial_fit cannot choose n_components='auto'", sf.NMF("auto").partial_fit, X)
    model = fitted(sf.NMF).partial_fit(X[:100]).partial_fit(X[100:])
    assert model.n_components_ == 3
    assert model.n_iter_ == 2


@pytest.mark.filterwarnings("ignore:Of the .* topics, .* (resemble|lie)")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_dated_texts_go_on(tmp_path: Path) -> None:
    times = np.datetime64("2020-01") + np.arange(200) // 20
    model = sf.DynamicTopics("auto", random_state=0, max_iter=20).fit(X[:160], times[:160])
    of_three = sf.DynamicTopics(3, random_state=0, max_iter=20).fit(X[:160], times[:160])
    assert model.intervals(X[:160], times[:160], n_fits=2) == of_three.intervals(
        X[:160], times[:160], n_fits=2
    )
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    for one in (of_three, model, loaded):
        one.partial_fit(X[160:], times[160:])
        assert one.slice_sizes_.sum() == 200
        np.testing.assert_array_equal(one.components_, of_three.components_)
    refused("n_components must stay 3", model.set_params(n_components=4).partial_fit, X, times)


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (sf.NMF("auto"), X.toarray(), r"sparse matrix; got ndarray.*choose_rank\(X, ranks\)"),
        (sf.BayesianNMF("auto"), X.toarray(), r"sparse matrix; .*choose_rank\(X, ranks\)"),
        (sf.NMF("auto"), sp.csr_array((3, 4)), "no entry above 0"),
        (sf.NMF("auto", fixed_components=np.ones((1, 120))), X, "fixed_components has a row"),
        (sf.NMF("auto", A_support=np.ones((2, 120))), X, "A_support has a row.*cannot be .auto."),
        (sf.NMF("auto", init=(np.ones((200, 2)), np.ones((2, 120)))), X, "init has a row"),
    ],
)
def test_what_is_refused(model: Any, data: Any, message: str) -> None:
    refused(message, model.fit, data)
    assert not hasattr(model, "rank_choice_")


@each("number", ["many", 0, 2.5, None])
def test_other_numbers(number: Any) -> None:
    refused("n_components must be", sf.NMF(number).fit, X, error=(ValueError, TypeError))
