"""Small and empty input, and losses that are none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

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
    refused("sample_weight", model.score, X, y, sample_weight=weight, error=(ValueError, TypeError))


def test_labels_of_bytes() -> None:
    X, y = np.random.default_rng(0).random((10, 4)), np.array([b"a", b"b"] * 5)
    with pytest.raises(TypeError, match=r"y holds bytes; .* Give y\.astype\(str\)"):
        sf.papers.ConstrainedNMF(n_components=2).fit(X, y)
    model = sf.papers.ConstrainedNMF(n_components=2, random_state=0).fit(X, np.arange(10) % 2)
    refused("y holds bytes", model.score, X, y, error=TypeError)


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
    refused(r"an instance of extend\.Loss", extend.register_loss, loss, error=TypeError)


@pytest.mark.parametrize("name", [None, 3, ""])
def test_names_of_losses(name: Any) -> None:
    loss = Own()
    loss.name = name
    refused("the name of a loss must be text", extend.register_loss, loss, error=TypeError)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"'own' is not consistent: its value has the slope 0 "),
        ({"N": Own.P}, "slope 0 in entry"),
        ({"result": float("inf")}, "has the slope nan"),
        ({"result": "x"}, "the loss 'own' has the value"),
    ],
)
def test_a_loss_without_its_gradient_is_refused(changes: Any, message: str) -> None:
    loss = type("Wrong", (Own,), {"result": 0.0, **changes})()
    refused(message, extend.register_loss, loss)
    refused("must be one of", extend.relation, "a", "b", np.ones((3, 2)), loss="own")


class Squares(Own):
    name = "own squares"
    scale: Any = 0.5

    def value(self, term: Any, F: Any, G: Any) -> Any:
        P, N = np.empty_like(F), np.empty_like(F)
        self.P(term.entries, F, G, extend.Target(P))
        self.N(term.form, F, G, extend.Target(N))
        return self.scale * float(np.sum(F * N)) - 2 * self.scale * float(np.sum(F * P))


def test_a_loss_with_another_slope_is_refused() -> None:
    loss = Squares()
    assert extend.register_loss(loss) is loss
    loss = Squares()
    loss.scale = 1.0
    refused("Check its value, P, N", extend.register_loss, loss)
    loss.slope = 2.0
    assert extend.register_loss(loss) is loss


def test_a_loss_without_a_value_is_refused() -> None:
    loss = type("Nothing", (extend.Loss,), {"name": "nothing", "powers": (0, 1)})()
    refused("'nothing' has no method value", extend.register_loss, loss, error=NotImplementedError)


@pytest.mark.parametrize("name", ["frobenius", "kullback-leibler", "itakura-saito"])
def test_losses_of_the_package_stay(name: str) -> None:
    loss = Own()
    loss.name = name
    refused("is a loss of ssnmf_fast", extend.register_loss, loss)
    assert sf.extend.objective([[1, 2]], [[1]], [[1, 2]]) == 0


@pytest.mark.parametrize("result", [float("nan"), None, "x"])
def test_values_of_losses(result: Any) -> None:
    loss = Own()
    loss.result = result
    with pytest.raises(ValueError, match="the loss 'own' has the value"):
        extend.fit([extend.relation("a", "b", np.ones((3, 2)), loss=loss)], n_components=1)


@pytest.mark.parametrize("relations", [[], [None]])
def test_no_relations(relations: Any) -> None:
    refused("relations must be a sequence of at least one", extend.fit, relations, n_components=1)


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
    refused("verbose must be 0 or 1; got 'x'", call, verbose="x", error=TypeError)


def test_a_score_beyond_numbers_is_refused() -> None:
    X = np.random.default_rng(0).random((20, 5))
    model = sf.SSNMFRegressor(n_components=2, random_state=0, tol=0, max_iter=5).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"The score would hold NaN or infinity.*Bring y nearer"):
        model.score(X, np.full(20, 1e300))


def gaps(form: str, X: Any, seen: Any) -> tuple[Any, Any]:
    """Return data and weights with entries only where they are seen, in a form."""
    if form == "nan":
        return np.where(seen, X, np.nan), None
    if form == "dense":
        return X, seen * 1.0
    make = {"observed": sf.weights.observed, "missing": lambda kept: sf.weights.missing(~kept)}
    return sp.csr_array(X), make[form](seen)


@each("form", ["nan", "dense", "observed", "missing"])
@each("loss", ["frobenius", "kullback-leibler"])
@each("solver", ["auto", "hals"])
def test_what_no_entry_determines_is_zero(form: str, loss: Any, solver: Any) -> None:
    rng = np.random.default_rng(0)
    X, seen = rng.random((20, 8)) + 0.1, rng.random((20, 8)) < 0.8
    seen[[3, 7]] = seen[:, 5] = False
    Z, weights = gaps(form, X, seen)
    options: Any = {"n_components": 3, "loss": loss, "solver": solver, "X_weights": weights}
    y = np.eye(2)[np.arange(20) % 2]
    y[7] = np.nan
    for more in ({}, {"y": y}, {"fixed_components": X[:1]}, {"penalties": sf.penalties.L1(0.01)}):
        fit = sf.factorize(Z, **more, **options, random_state=1, max_iter=30, tol=1e-6)
        values = [value for _, value in fit.objective]
        assert max(np.diff(values)) <= 1e-9 * values[0]
        assert fit.S[3].any() == ("y" in more)
        assert not fit.S[7].any()
        assert not fit.A[int("fixed_components" in more) :, 5].any()
        assert fit.S[~np.isin(np.arange(20), [3, 7])].any(axis=1).all()
    smooth = {"S": [sf.penalties.Temporal(1.0), sf.penalties.L2(1e-3)], "A": sf.penalties.L2(1e-3)}
    assert sf.factorize(Z, **options, penalties=smooth, random_state=1).S[3].any()
    if (form, solver) == ("nan", "auto"):
        cube = Z.reshape(5, 4, 8)
        assert not sf.factorize_tensor(cube, n_components=2, loss=loss).factors[2][5].any()
    if (loss, solver) == ("frobenius", "auto"):
        given: Any = {"X_weights": weights, "loss": loss, "covariates": np.full((20, 1), 0.01)}
        np.testing.assert_array_equal(sf.represent(Z, X[:3], tol=0.1, **given)[7], [0, 0, 0.01])


HOLES, Y = np.full((12, 6), np.nan), np.arange(12) % 2


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("X", lambda: sf.factorize(HOLES, n_components=2)),
        ("X", lambda: sf.factorize(np.ones((2, 3)), n_components=1, X_weights=np.zeros((2, 3)))),
        ("X", lambda: sf.NMF(2).fit(np.ones((2, 3)), X_weights=sf.weights.outer([0, 0]))),
        ("X", lambda: sf.NMF(2).fit(np.eye(3), X_weights=sf.weights.missing(np.ones((3, 3))))),
        ("X", lambda: sf.NMF(2).partial_fit(HOLES)),
        ("X", lambda: sf.NMF(2, init="random").fit(np.eye(6)).score(HOLES)),
        ("X", lambda: sf.SSNMFClassifier(2).fit(HOLES, Y)),
        ("X", lambda: sf.SSNMFClassifier(2).partial_fit(HOLES, Y, classes=[0, 1])),
        ("X", lambda: sf.SSNMFRegressor(2).fit(HOLES, Y * 1.0)),
        ("X", lambda: sf.TopicSupervisedNMF().fit(HOLES, Y)),
        ("X", lambda: sf.papers.ConstrainedNMF(2).fit(HOLES, Y)),
        ("X", lambda: sf.factorize_tensor(HOLES.reshape(4, 3, 6), n_components=2)),
        ("X", lambda: sf.NonnegativeCP(2).fit(HOLES.reshape(4, 3, 6))),
        ("y", lambda: sf.factorize(np.eye(3), np.full((3, 2), np.nan), n_components=2)),
        ("y[1]", lambda: sf.factorize_tensor(np.ones((2, 3)), n_components=1, y={1: HOLES[:3]})),
        ("'b'", lambda: extend.fit([extend.relation("a", "b", HOLES)], n_components=2)),
    ],
)
def test_data_without_an_observed_entry_are_refused(name: str, call: Any) -> None:
    refused(f"{re.escape(name)} has no observed entry", call)
