"""Forms in which tensors are given, what is refused, and what is left as it was."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from helpers.tensors import coordinates, sparse_counts
from problems import LOSSES

import ssnmf_fast as sf


class Foreign:
    """What other packages' sparse tensors look like."""

    def __init__(self, X):
        self.coords, self.data, self.shape = coordinates(X)


def test_sparse_tensors_of_other_packages():
    X = sparse_counts((6, 5, 4))
    options = {"n_components": 2, "random_state": 0, "max_iter": 10}
    expected = sf.factorize_tensor(coordinates(X), **options).to_dense()
    places, values, shape = coordinates(X)
    shuffled = np.random.default_rng(0).permutation(len(values))
    halves = np.concatenate([places, places], axis=1), np.tile(values / 2, 2), shape
    others = [
        Foreign(X),
        (places[:, shuffled].astype(np.uint16), values[shuffled], list(shape)),
        (places.tolist(), values.tolist(), shape),
        halves,
    ]
    if hasattr(sp.coo_array(np.eye(2)), "coords"):
        others.append(SimpleNamespace(coords=tuple(places), data=values, shape=shape))
    for other in others:
        np.testing.assert_allclose(
            sf.factorize_tensor(other, **options).to_dense(), expected, rtol=1e-9
        )
    matrix = sp.random(20, 10, density=0.3, random_state=0)
    dense = sf.factorize_tensor(matrix.toarray(), **options)
    for form in (matrix.tocsr(), matrix.tocoo(), sp.csc_matrix(matrix)):
        fit = sf.factorize_tensor(form, **options)
        np.testing.assert_allclose(fit.to_dense(), dense.to_dense(), atol=1e-9)


def test_sparse_tensors_of_pyttb():
    X = sparse_counts((5, 4, 3))
    places, values, shape = coordinates(X)
    theirs = SimpleNamespace(subs=places.T, vals=values[:, None], shape=shape)
    fit = sf.factorize_tensor(theirs, n_components=2, random_state=0)
    expected = sf.factorize_tensor(coordinates(X), n_components=2, random_state=0)
    np.testing.assert_array_equal(fit.weights, expected.weights)


def test_arrays_of_xarray():
    """Their coordinates name the entries: they are no sparse tensors."""

    class DataArray:
        dims, coords = ("page", "country", "month"), {"page": np.arange(6)}

        def __init__(self, data):
            self.data, self.shape, self.dtype, self.ndim = data, data.shape, data.dtype, 3

        def __array__(self, dtype=None, copy=None):
            return np.array(self.data, dtype=dtype)

    X = np.random.default_rng(0).random((6, 5, 4))
    X[0, 0, 0] = np.nan
    named, plain = (
        sf.factorize_tensor(one, n_components=2, random_state=0) for one in (DataArray(X), X)
    )
    assert named.weights.tobytes() == plain.weights.tobytes()
    inside = DataArray(
        SimpleNamespace(coords=np.eye(3, dtype=int), data=np.ones(3), shape=(3,) * 3, dtype=float)
    )
    assert sf.factorize_tensor(inside, n_components=3, random_state=0).factors[0].shape == (3, 3)


LONG = np.unique(np.random.default_rng(0).integers(0, [9, 5, 4], (60, 3)), axis=0)


COUNTS = 1.0 + np.arange(len(LONG))[:, None] % 3


@pytest.mark.parametrize("columns", [[0, 1, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("form", [np.asarray, np.float32, pd.DataFrame])
def test_a_table_with_one_entry_per_line_is_not_taken_for_a_tensor(columns, form):
    table = form(np.hstack([LONG, COUNTS])[:, columns])
    for call in (
        lambda: sf.factorize_tensor(table, n_components=2, max_iter=2),
        lambda: sf.NonnegativeCP(2, max_iter=1000).fit(table),
        lambda: sf.choose_rank(table, [1], estimator=sf.NonnegativeCP(1)),
    ):
        with pytest.warns(UserWarning, match="one entry per line.*coords, values, shape"):
            call()


def test_coordinates_with_one_entry_per_line():
    parts = {"n_components": 2, "random_state": 0, "max_iter": 3}
    right = sf.factorize_tensor((LONG.T, COUNTS.ravel(), (9, 5, 4)), **parts)
    for coords, values in ((LONG, COUNTS), (LONG.T, COUNTS), (LONG.tolist(), COUNTS.tolist())):
        found = sf.factorize_tensor((coords, values, (9, 5, 4)), **parts)
        np.testing.assert_array_equal(found.factors[0], right.factors[0])
    refused("without a shape", sf.factorize_tensor, (LONG, COUNTS), **parts)


@pytest.mark.slow
@pytest.mark.compiled("the reference takes rows one by one")
def test_huge_modes_need_no_memory_of_their_size():
    """Nothing has as many places as the tensor, whose places no integer can count."""
    rng = np.random.default_rng(0)
    shape = (200_000, 90_000, 80_000, 70_000)
    coords = np.array([rng.integers(n, size=500) for n in shape])
    coords[:, 1] = coords[:, 0]
    for loss in LOSSES:
        fit = sf.factorize_tensor(
            (coords, np.ones(500), shape), n_components=1, loss=loss, max_iter=2, random_state=0
        )
        assert np.isfinite(fit.objective[-1][1])
        assert fit.predict(coords[:, :3]).shape == (3,)
    refused("use predict", fit.to_dense)


def test_inputs_stay_as_they_are():
    X = sparse_counts((6, 5, 4))
    places, values, shape = coordinates(X)
    places = places[:, ::-1].copy()
    values = values[::-1].copy()
    start = [np.ones((n, 2)) for n in shape]
    before = [A.copy() for A in (X, places, values, *start)]
    for A in (X, places, values, *start):
        A.flags.writeable = False
    for data in (X, (places, values, shape)):
        for weights in (None, sf.weights.missing(X > 2), sf.weights.observed(X > 0)):
            sf.factorize_tensor(data, n_components=2, X_weights=weights, init=start, max_iter=2)
    for A, B in zip((X, places, values, *start), before, strict=True):
        assert np.array_equal(A, B)


GOOD = np.array([[0, 1], [1, 0], [2, 1]]), np.array([1.0, 2.0]), (2, 2, 3)


def tensor(coords=GOOD[0], values=GOOD[1], shape=GOOD[2]):
    return coords, values, shape


@each(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "two modes or more"),
        (-np.ones((2, 2, 2)), ValueError, r"X\[0, 0, 0\] = -1"),
        (np.full((2, 2), np.inf), ValueError, "infinity"),
        (np.ones((2, 0, 3)), ValueError, "lengths from 1"),
        (np.array([["a"]]), TypeError, "dtype"),
        (np.ones((2, 2), dtype=complex), TypeError, "dtype"),
        (tensor(values=np.array([1.0, -2.0])), ValueError, r"first is X\[1, 0, 1\] = -2"),
        (tensor(values=np.array([np.nan, 2.0])), ValueError, r"NaN at \[0, 1, 2\]"),
        (tensor(values=np.array([np.inf, 2.0])), ValueError, r"infinity at \[0, 1, 2\]"),
        (tensor(values=np.array([1e200, 2.0])), ValueError, "multiply X by 1e-200"),
        (tensor(values=np.array(["1", "2"])), TypeError, "dtype"),
        (tensor(coords=GOOD[0] - 1), ValueError, "entry 0 of X"),
        (tensor(coords=GOOD[0] + 1), ValueError, "entry 1 of X .* mode 0 has indices"),
        (tensor(coords=GOOD[0] * 0.5), TypeError, "coordinates of dtype float64"),
        (tensor(coords=GOOD[0][:2]), ValueError, "expected \\(3, number of entries\\)"),
        (tensor(coords=GOOD[0][:, :1]), ValueError, "number of entries"),
        (tensor(shape=(2, 2)), ValueError, "expected \\(2, number of entries\\)"),
        (tensor(shape=(2, 2, 0)), ValueError, "lengths from 1"),
        (tensor(shape=(2, 2, 2**31)), ValueError, "lengths from 1"),
        (tensor(shape=(2.0, 2, 3)), ValueError, "shape of two or more integers"),
        (tensor(shape=(2,)), ValueError, "shape of two or more integers"),
        (tensor()[:2], ValueError, r"without a shape; give \(coords, values, shape\)"),
        (object(), TypeError, "X must be an array; got object"),
    ],
)
def test_data_that_are_no_tensor(X, error, message):
    refused(message, sf.factorize_tensor, X, n_components=2, error=error)


@each(
    ("options", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"loss": "squares"}, ValueError, "loss must be one of 'frobenius'"),
        ({"loss": 2.5}, ValueError, "a number from 0 to 2; got 2.5"),
        ({"supervision_loss": "squares"}, ValueError, "supervision_loss must be one of"),
        ({"solver": "fast"}, ValueError, "solver must be one of"),
        ({"init": "nndsvda"}, ValueError, "init must be one of"),
        ({"init": [np.ones((2, 2))]}, ValueError, "init has 1 factors; expected 3"),
        ({"init": [np.ones((3, 2))] * 3}, ValueError, r"init\[0\] has shape \(3, 2\)"),
        ({"X_weights": [None]}, ValueError, "X_weights has 1 vectors, but X has 3 modes"),
        ({"X_weights": [np.ones(3), None, None]}, ValueError, r"X_weights\[0\]"),
        ({"X_weights": np.ones((2, 2))}, ValueError, r"X_weights has shape \(2, 2\)"),
        ({"X_weights": np.full((2, 2, 3), np.nan)}, ValueError, "NaN"),
        ({"X_weights": GOOD}, TypeError, "is ambiguous"),
        ({"X_weights": sf.weights.observed(np.ones((2, 2)))}, ValueError, "that of X"),
        ({"y": np.ones((2, 1))}, TypeError, "y must be a mapping"),
        ({"y": {3: np.ones((2, 1))}}, ValueError, "a mode of y must be at most 2"),
        ({"y": {0: np.ones((3, 1))}}, ValueError, "expected 2 rows"),
        ({"y": {0: -np.ones((2, 1))}}, ValueError, r"Negative values .* y\[0\]"),
        ({"y": {0: np.ones((2, 1))}, "supervision_weight": -1}, ValueError, "at least 0"),
    ],
)
def test_options_that_are_refused(options, error, message):
    for X in (GOOD, np.ones((2, 2, 3))):
        if options.get("X_weights") is GOOD and not isinstance(X, tuple):
            continue
        refused(message, sf.factorize_tensor, X, error=error, **{"n_components": 2, **options})


def test_masked_entries_of_coordinates_are_refused():
    places, values, shape = coordinates(sparse_counts((5, 4, 3)))
    first = np.arange(len(values)) == 0
    masked = [
        ("values", (places, np.ma.array(values, mask=first), shape)),
        ("coordinates", (np.ma.array(places, mask=[first] * 3), values, shape)),
    ]
    for name, X in masked:
        with pytest.raises(ValueError, match=f"the {name} of X is a masked array with masked"):
            sf.factorize_tensor(X, n_components=2)
    matrix = sp.coo_array(np.eye(3))
    matrix.data = np.ma.array(matrix.data, mask=[1, 0, 0])
    for call in (sf.factorize_tensor, sf.factorize):
        refused("the values of X is a masked array", call, matrix, n_components=2)


def test_places_out_of_range_are_refused():
    fit = sf.factorize_tensor(np.ones((2, 2, 3)), n_components=1)
    for coords, message in (
        (np.array([[0], [0]]), "a row of integers for each"),
        (np.array([[0.5], [0], [0]]), "a row of integers"),
        (np.array([[0], [2], [0]]), "indices from 2 to 2 in mode 1"),
    ):
        refused(message, fit.predict, coords)
