"""A completion that knows the ids of its rows and columns, and bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from completion_problems import structured

import ssnmf_fast as sf

USERS = np.array([f"u{k}" for k in range(30)][::-1])
ITEMS = np.array([f"film {k}" for k in range(20)])


@pytest.fixture(scope="module")
def holes():
    return structured(30, 20, 3, 0.5, 0.8)[1]


def named(holes, **options):
    fit = sf.complete(holes, rank=3, random_state=0, **options)
    return replace(fit, row_ids=USERS, column_ids=ITEMS)


BIASED = {"gamma_min": "validate", "biases": True}


@pytest.mark.parametrize("options", [{}, BIASED])
def test_ids_are_positions(holes, options, tmp_path):
    fit = named(holes, **options)
    sf.save(fit, tmp_path / "fit.npz")
    for model in (fit, sf.load(tmp_path / "fit.npz")):
        expected = model.predict([29, 3], [2, 19])
        np.testing.assert_array_equal(model.predict(USERS[[29, 3]], ITEMS[[2, 19]]), expected)
        objects = np.array(["u0", USERS[3]], object)
        np.testing.assert_array_equal(model.predict(objects, [2, 19]), expected)
        np.testing.assert_array_equal(model.row_ids, USERS)
        np.testing.assert_array_equal(model.column_ids, ITEMS)


def test_unknown_ids(holes):
    """They get what is known of the other side."""
    fit = named(holes, **BIASED)
    with pytest.warns(UserWarning, match="1 of 2 rows are not in the model .*'zoe'") as caught:
        found = fit.predict(["zoe", "u0"], ITEMS[[5, 5]])
    assert caught[0].filename == __file__
    expected = [fit.offset + fit.right[-1, 5], fit.predict([29], [5])[0]]
    np.testing.assert_allclose(found, expected)
    with pytest.warns(UserWarning, match="1 of 1 columns are not in the model"):
        found = fit.predict(["u0"], ["new"])
    np.testing.assert_allclose(found, fit.offset + fit.left[29, -2])
    with pytest.warns(UserWarning, match="not in the model"):
        np.testing.assert_allclose(fit.predict(["zoe"], ["new"]), fit.offset)
    exact = named(holes)
    with pytest.warns(UserWarning, match="not in the model"):
        found = exact.predict(["zoe"], ["film 5"])
    np.testing.assert_allclose(found, exact.left.mean(axis=0) @ exact.right[:, 5])


def test_what_are_no_ids(holes):
    fit = named(holes)
    with pytest.raises(TypeError, match="rows must be integers, or text for ids"):
        fit.predict([1.5], [0])
    with pytest.raises(TypeError, match="columns must be integers, or text for ids"):
        fit.predict([1], np.array(["film 1", None], object))
    with pytest.raises(ValueError, match="rows and columns must have one shape"):
        fit.predict([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="rows has rows of different lengths"):
        fit.predict([[0], [1, 2]], [0])
    with pytest.raises(IndexError, match="rows must be from 0 to 29; got -1"):
        fit.predict([-1], [0])
    with pytest.raises(TypeError, match="rows must be integers; got dtype <U2"):
        replace(fit, row_ids=None).predict(["u1"], [0])


def test_bounds(holes, tmp_path):
    fit = replace(named(holes), lower=0.1, upper=0.2)
    sf.save(fit, tmp_path / "fit.npz")
    for model in (fit, sf.load(tmp_path / "fit.npz")):
        dense = model.to_dense()
        assert (dense.min(), dense.max()) == (0.1, 0.2)
        rows, columns = np.indices(dense.shape)
        np.testing.assert_allclose(model.predict(rows, columns), dense)
