"""Small and empty input, and losses that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ssnmf_fast as sf
from ssnmf_fast import extend


def test_empty_dok_matrix() -> None:
    fit = sf.factorize(sp.dok_array((4, 3)), n_components=1, random_state=0)
    assert not (fit.S @ fit.A).any()


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", "itakura-saito", 1.5])
def test_no_rows_to_represent(loss: Any) -> None:
    assert sf.represent(np.ones((0, 3)), np.ones((2, 3)), loss=loss).shape == (0, 2)


def test_one_class() -> None:
    X = np.random.default_rng(0).random((10, 4))
    model = sf.TopicSupervisedNMF(random_state=0).fit(X, ["a"] * 10)
    assert model.decision_function(X).shape == (10,)
    assert (model.predict(X) == "a").all()


@pytest.mark.parametrize("weight", ["x", [1.0], [-1.0] * 10, [np.nan] * 10])
def test_weights_of_a_score(weight: Any) -> None:
    X, y = np.random.default_rng(0).random((10, 4)), np.arange(10) % 2
    model = sf.papers.ConstrainedNMF(n_components=2, random_state=0).fit(X, y)
    with pytest.raises((ValueError, TypeError), match="sample_weight"):
        model.score(X, y, sample_weight=weight)


def test_labels_of_bytes() -> None:
    X, y = np.random.default_rng(0).random((10, 4)), np.array([b"a", b"b"] * 5)
    with pytest.raises(TypeError, match=r"y holds bytes; .* Give y\.astype\(str\)"):
        sf.papers.ConstrainedNMF(n_components=2).fit(X, y)
    model = sf.papers.ConstrainedNMF(n_components=2, random_state=0).fit(X, np.arange(10) % 2)
    with pytest.raises(TypeError, match="y holds bytes"):
        model.score(X, y)


class Own(extend.Loss):
    name: Any = "own"
    result: Any = float("nan")

    def P(self, entries: Any, F: Any, G: Any, to: Any) -> None:
        entries.power(0, F, G, to)

    def N(self, form: Any, F: Any, G: Any, to: Any) -> None:
        form.power(1, F, G, to)

    def value(self, term: Any, F: Any, G: Any) -> Any:
        return self.result


@pytest.mark.parametrize("loss", [None, "frobenius", Own])
def test_losses_that_are_none(loss: Any) -> None:
    with pytest.raises(TypeError, match=r"an instance of extend\.Loss"):
        extend.register_loss(loss)


@pytest.mark.parametrize("name", [None, 3, ""])
def test_names_of_losses(name: Any) -> None:
    loss = Own()
    loss.name = name
    with pytest.raises(TypeError, match="the name of a loss must be text"):
        extend.register_loss(loss)


@pytest.mark.parametrize("name", ["frobenius", "kullback-leibler", "itakura-saito"])
def test_losses_of_the_package_stay(name: str) -> None:
    loss = Own()
    loss.name = name
    with pytest.raises(ValueError, match="is a loss of ssnmf_fast"):
        extend.register_loss(loss)
    assert sf.extend.objective([[1, 2]], [[1]], [[1, 2]]) == 0


@pytest.mark.parametrize("result", [float("nan"), None, "x"])
def test_values_of_losses(result: Any) -> None:
    loss = Own()
    loss.result = result
    with pytest.raises(ValueError, match="the loss 'own' has the value"):
        extend.fit([extend.relation("a", "b", np.ones((3, 2)), loss=loss)], n_components=1)


@pytest.mark.parametrize("relations", [[], [None]])
def test_no_relations(relations: Any) -> None:
    with pytest.raises(ValueError, match="relations must be a sequence of at least one"):
        extend.fit(relations, n_components=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda **given: sf.factorize(np.ones((4, 3)), n_components=1, **given),
        lambda **given: sf.complete(np.ones((4, 3)), n_components=1, **given),
        lambda **given: sf.factorize_tensor(np.ones((4, 3, 2)), n_components=1, **given),
        lambda **given: sf.BayesianNMF(n_components=1, **given).fit(np.ones((4, 3))),
    ],
)
def test_observers_of_a_fit(call: Any) -> None:
    with pytest.raises(TypeError, match="callback must be a function of a state, or None; got 3"):
        call(callback=3)
    with pytest.raises(TypeError, match="verbose must be 0 or 1; got 'x'"):
        call(verbose="x")


def test_a_score_beyond_numbers_is_refused() -> None:
    X = np.random.default_rng(0).random((20, 5))
    model = sf.SSNMFRegressor(n_components=2, random_state=0, tol=0, max_iter=5).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"The score would hold NaN or infinity.*Bring y nearer"):
        model.score(X, np.full(20, 1e300))
