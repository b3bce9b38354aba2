"""SSNMFRegressor: real targets."""

import numpy as np
import pytest
from helpers.refused import refused
from sklearn.datasets import load_digits

import ssnmf_fast as sf


def make_ink():
    """Digits with the ink of their upper and lower half as targets."""
    X, _ = load_digits(return_X_y=True)
    X = X[:300] / 16
    return X, np.column_stack([X[:, :32].sum(axis=1), X[:, 32:].sum(axis=1)])


INK = X, y = make_ink()


FEW = {"n_components": 10, "supervision_weight": 0.1, "tol": 0, "max_iter": 100, "random_state": 0}


def _model(**parameters):
    return sf.SSNMFRegressor(**(FEW | parameters))


def test_learns_from_half_of_the_targets():
    hidden = np.where(np.arange(300)[:, None] % 2 == 0, np.nan, y)
    model = _model().fit(X, hidden)
    assert model.score(X[::2], y[::2]) > 0.75
    assert model.score(X, hidden) == pytest.approx(model.score(X[1::2], y[1::2]))


def test_shape_of_the_prediction_follows_the_targets():
    assert _model().fit(X, y).predict(X).shape == (300, 2)
    assert _model().fit(X, y[:, :1]).predict(X).shape == (300, 1)
    flat = _model().fit(X, y[:, 0])
    assert flat.predict(X).shape == (300,)
    assert flat.predict(X.astype(np.float32)).dtype == np.float32
    assert _model().fit(X.astype(np.float32), y[:, 0]).label_components_.dtype == np.float32
    assert flat.topics()[0].shares == ()


def test_single_missing_targets():
    hidden = y.copy()
    hidden[::3, 0] = np.nan
    weights = np.where(np.isnan(hidden), 0.0, 1.0)
    above = y - np.nanmin(hidden, axis=0)
    fit = sf.factorize(X, np.maximum(above, 0), y_weights=weights, init="random", **FEW)
    np.testing.assert_allclose(_model().fit(X, hidden).components_, fit.A, rtol=1e-6, atol=1e-9)


def test_label_weights_are_those_of_the_targets():
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    outer = sf.weights.outer(rows=weights)
    above = y - y.min(axis=0)
    fit = sf.factorize(X, above, y_weights=outer, init="random", **FEW)
    model = _model().fit(X, y, label_weight=weights)
    np.testing.assert_array_equal(model.components_, fit.A)
    for wrong, message in (
        (weights[:5], r"shape \(5,\)"),
        (-weights, "negative"),
        (0 * weights, "zero"),
    ):
        refused(message, model.fit, X, y, label_weight=wrong)
    online = _model(readout="joint").partial_fit(X, y, label_weight=weights * 0)
    again = _model(readout="joint").partial_fit(X, np.full_like(y, np.nan))
    np.testing.assert_array_equal(online.components_, again.components_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y * np.nan, "no labeled sample"),
        (lambda y: y + np.inf, "infinity"),
        (lambda y: y.astype(str).tolist()[:-1], "inconsistent"),
        (lambda y: [["a", "b"]] * 300, "must hold numbers"),
        (lambda y: None, "requires y to be passed"),
    ],
)
def test_bad_targets_are_refused(change, message):
    refused(message, _model().fit, X, change(y))


@pytest.mark.parametrize("offset", [-3.0, 300.0, 1e6])
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_nothing_depends_on_an_offset_of_the_targets(offset, loss, tmp_path):
    X, y = INK
    y = np.where(np.arange(600).reshape(300, 2) % 7 == 0, np.nan, y)
    y[5] = np.nan
    y[8] = -50.0  # of weight 0: no target
    weights = np.random.default_rng(0).uniform(0.5, 2, 300)
    weights[8] = 0
    shifts = np.array([offset, -2 * offset])
    options = {"max_iter": 20, "supervision_loss": loss, "supervision_weight": "balanced"}

    def fitted(y):
        return _model(**options).fit(X, y, sample_weight=weights)

    def learned(y):
        model = _model(readout="joint", supervision_loss=loss)
        order = np.argsort(-np.nan_to_num(y[:, 0], nan=-np.inf))  # the smallest targets come last
        for part in np.array_split(order, 4):
            model.partial_fit(X[part], y[part], sample_weight=weights[part])
        return model

    for make in (fitted, learned):
        plain, moved = make(y), make(y + shifts)
        np.testing.assert_allclose(moved.offset_, plain.offset_ + shifts)
        np.testing.assert_allclose(moved.components_, plain.components_, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(moved.predict(X), plain.predict(X) + shifts, atol=1e-3)
        assert moved.score(X, y + shifts) == pytest.approx(plain.score(X, y), abs=1e-4)
    model = fitted(y + shifts)
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert sf.verify(loaded, X, y + shifts, sample_weight=weights)


def test_batches_with_ever_smaller_targets():
    rng = np.random.default_rng(0)
    X = rng.random((450, 4)) @ rng.random((4, 12))
    y = X @ rng.random(12)
    model = sf.SSNMFRegressor(6, random_state=0)
    for part in np.array_split(np.argsort(-y), 9):
        model.partial_fit(X[part], y[part])
    assert model.score(X, y) > 0.7
