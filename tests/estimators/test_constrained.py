"""ConstrainedNMF: labeled samples of a class share one row."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.refused import refused

import ssnmf_fast as sf

X, y = digits(300)


def _model(**parameters):
    defaults = {"n_components": 8, "random_state": 0, "tol": 0, "max_iter": 30}
    return sf.papers.ConstrainedNMF(**(defaults | parameters))


def test_samples_of_a_class_share_a_row():
    hidden = np.where(np.arange(300) % 3 == 0, -1, y)
    model = _model().fit(X, hidden)
    assert model.n_labeled_ == 200
    assert np.array_equal(model.classes_, np.arange(10))
    S = model.representation_
    assert np.array_equal(S[hidden >= 0], model.class_representation_[hidden[hidden >= 0]])
    assert len(np.unique(S[hidden < 0], axis=0)) == 100


def test_labels_may_be_text():
    names = np.array([None if i % 2 else f"class {v}" for i, v in enumerate(y)], dtype=object)
    numbers = np.where(np.arange(300) % 2, -1, y)
    by_name, by_number = _model().fit(X, names), _model().fit(X, numbers)
    assert np.array_equal(by_name.components_, by_number.components_)
    assert np.array_equal(
        by_name.predict(X), np.char.add("class ", by_number.predict(X).astype(str))
    )


def test_missing_entries_do_not_count():
    rng = np.random.default_rng(0)
    absent = rng.random(X.shape) < 0.2
    one, other = np.where(absent, np.nan, X), np.where(absent, 0.3, X)
    model = _model().fit(one, y)
    masked = _model().fit(other, y, X_weights=(~absent).astype(float))
    np.testing.assert_allclose(model.components_, masked.components_, rtol=1e-9, atol=1e-12)
    assert np.isfinite(model.objective_[-1][1])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_common_weight_is_that_of_arrays(form):
    extra = np.where(X > 0.5, 2.0, 0) + (np.random.default_rng(0).random(X.shape) < 0.1)
    weights = sf.weights.base(0.3, sp.csr_array(extra))
    weighted = _model(solver="mm").fit(form(X), y, X_weights=weights)
    whole = _model(solver="mm").fit(X, y, X_weights=0.3 + extra)
    np.testing.assert_allclose(weighted.components_, whole.components_, rtol=1e-9, atol=1e-12)
    assert weighted.objective_[-1][1] == pytest.approx(whole.objective_[-1][1], rel=1e-10)


def test_bad_input_is_refused(tmp_path):
    refused("y has one class only", _model().fit, X, np.zeros(300))
    with pytest.raises(ValueError, match=r"init\[0\] \(S\) has shape"):
        _model(init=(np.ones((3, 8)), np.ones((8, 64)))).fit(X, y)
    refused("loss must be one of", _model(loss="other").fit, X, y)
    with pytest.raises(ValueError, match="NaN in a dense X"):
        _model().fit(X, y, X_weights=sf.weights.missing(sp.csr_array(X.shape)))
    refused("requires y", _model().fit, X, None)
