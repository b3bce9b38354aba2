"""Sparse matrices whose parts do not fit together are refused, and every sound layout is taken.

`random_calls.doors` tries all damages, wherever a matrix is taken.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from random_calls.arguments import D
from random_calls.forms import (
    DAMAGES,
    FORMATS,
    backwards,
    coordinates,
    damaged,
    foreign,
    misaligned,
    read_only,
    set_coordinates,
    strided,
)

import ssnmf_fast as sf

FEW = {"n_components": 2, "max_iter": 5, "tol": 0, "random_state": 0, "n_threads": 1}


@each("is_array", [True, False])
@each(("form", "damage"), [(form, damage) for form in FORMATS for damage in DAMAGES[form]])
def test_message_says_what_is_wrong(form, damage, is_array):
    Z = damaged(D, form, damage, is_array)
    refused(r"X is not a valid sparse matrix: .*Build it again", sf.represent, Z, np.ones((2, 8)))


@each("name", ["X_weights", "y_weights"])
def test_the_message_names_weights(name):
    weights = sf.weights.observed(damaged(D, "coo", next(iter(DAMAGES["coo"])), True))
    refused(f"^{name} is not a valid sparse matrix", sf.factorize, D, D, **{name: weights}, **FEW)


@each("form", FORMATS)
@each("kind", ["array", "matrix"])
def test_sound_matrices_of_every_format_give_one_result(form, kind):
    Z = getattr(sp, f"{form}_{kind}")(D)
    expected = sf.factorize(sp.csr_array(D), **FEW)
    np.testing.assert_array_equal(sf.factorize(Z, **FEW).A, expected.A)
    np.testing.assert_array_equal(Z.toarray(), D)


LAYOUTS = [misaligned, strided, backwards, read_only, foreign, np.asfortranarray, np.ma.array]


@each("dtype", [np.float64, np.float32])
@each("layout", LAYOUTS)
def test_layouts_of_dense_arrays_are_alike(layout, dtype):
    X = D.astype(dtype)
    Z = layout(X)
    model = sf.NMF(**FEW)
    expected, A = sf.factorize(X, **FEW), np.ones((2, 8), dtype=dtype)
    for found in (sf.factorize(Z, **FEW), model.fit(Z)):
        components = found.components_ if found is model else found.A
        assert components.dtype == dtype
        np.testing.assert_allclose(components, expected.A, rtol=1e-4)
    np.testing.assert_allclose(sf.represent(Z, layout(A)), sf.represent(X, A), rtol=1e-4)
    np.testing.assert_allclose(model.transform(Z), sf.represent(X, model.components_), rtol=1e-4)
    weighted = sf.factorize(X, X_weights=layout(X), **FEW)
    np.testing.assert_allclose(weighted.A, sf.factorize(X, X_weights=X, **FEW).A, rtol=1e-4)
    S, A = np.ones((12, 2), dtype=dtype), np.ones((2, 8), dtype=dtype) + X[:2]
    started = sf.factorize(X, init=(layout(S), layout(A)), **FEW)
    np.testing.assert_allclose(started.A, sf.factorize(X, init=(S, A), **FEW).A, rtol=1e-4)
    np.testing.assert_array_equal(
        sf.complete(Z, observed=D < 0.9, n_components=1, random_state=0, n_threads=1).left.dtype,
        np.dtype(dtype),
    )
    assert np.isclose(sf.metrics.hoyer_sparsity(Z), sf.metrics.hoyer_sparsity(X))


@pytest.fixture(scope="module")
def completed():
    return sf.complete(sp.csr_array(D), n_components=1, random_state=0)


@pytest.mark.slow
@each("layout", [misaligned, strided, backwards, read_only, foreign])
@each("form", ["csr", "csc", "coo", "bsr"])
def test_layouts_of_sparse_parts_are_alike(layout, form, completed):
    X = sp.csr_array(D)
    Z = getattr(sp, f"{form}_array")(D)
    Z.data = layout(Z.data)
    if form == "coo":
        set_coordinates(Z, [layout(index) for index in coordinates(Z)])
    else:
        Z.indptr, Z.indices = layout(Z.indptr), layout(Z.indices)
    expected = sf.factorize(X, **FEW).A
    np.testing.assert_allclose(sf.factorize(Z, **FEW).A, expected)
    np.testing.assert_allclose(sf.NMF(**FEW).fit(Z).components_, expected)
    found = sf.complete(Z, n_components=1, random_state=0, n_threads=1)
    np.testing.assert_allclose(found.right, completed.right)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.longdouble, bool])
def test_other_numbers_become_float64(dtype):
    X = (D > 0).astype(dtype)
    expected = sf.factorize(X.astype(float), **FEW).A
    forms = [X] if dtype == np.float16 else [X, sp.csr_array(X)]  # SciPy has no sparse float16
    for Z in forms:
        np.testing.assert_allclose(sf.factorize(Z, **FEW).A, expected)
        np.testing.assert_allclose(sf.NMF(**FEW).fit(Z).components_, expected)


def test_masked_entries_are_missing_where_entries_may_be():
    hidden = np.zeros(D.shape, dtype=bool)
    hidden[3, 4] = hidden[7, 0] = True
    Z, X = np.ma.array(D, mask=hidden), np.where(hidden, np.nan, D)
    np.testing.assert_array_equal(sf.factorize(Z, **FEW).A, sf.factorize(X, **FEW).A)
    np.testing.assert_array_equal(sf.NMF(**FEW).fit(Z).components_, sf.factorize(X, **FEW).A)
    completed = [sf.complete(M, n_components=1, random_state=0, n_threads=1).right for M in (Z, X)]
    np.testing.assert_array_equal(*completed)
    filled = [sf.LowRankImputer(n_components=1, random_state=0).fit_transform(M) for M in (Z, X)]
    np.testing.assert_array_equal(*filled)
    labels = np.ma.array(np.arange(12) % 2 + 5, mask=hidden.any(axis=1))
    model = sf.papers.ConstrainedNMF(**FEW).fit(D, labels)
    assert model.n_labeled_ == 10
    assert model.classes_.tolist() == [5, 6]


@each(
    ("name", "call"),
    [
        ("X", lambda Z: sf.BayesianNMF(**FEW).fit(Z)),
        ("X", lambda Z: sf.papers.MarginNMF(**FEW).fit(Z, np.arange(12) % 2)),
        ("X_weights", lambda Z: sf.factorize(D, X_weights=Z, **FEW)),
        ("X_weights", lambda Z: sf.factorize(D, X_weights=sf.weights.observed(Z), **FEW)),
        ("X_weights", lambda Z: sf.factorize(D, X_weights=sf.weights.base(1, Z), **FEW)),
        ("rows", lambda Z: sf.weights.outer(rows=Z[:, 0])),
        ("A", lambda Z: sf.represent(D, Z[:2])),
        ("observed", lambda Z: sf.complete(D, observed=Z, n_components=1)),
        ("X", lambda Z: sf.metrics.topic_coherence(Z, D[:2])),
        ("S", lambda Z: sf.metrics.inter_label_sparsity(Z, np.arange(12) % 2)),
    ],
)
def test_masks_are_never_dropped(name, call):
    Z = np.ma.array(np.ones(D.shape), mask=False)
    Z[0, 0] = np.ma.masked
    refused(f"{name} is a masked array with masked entries", call, Z)


UNEVEN = [[1, 0, 2], [1, 0]] * 6


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("X", lambda: sf.factorize(UNEVEN, **FEW)),
        ("X", lambda: sf.NMF(**FEW).fit(UNEVEN)),
        ("y", lambda: sf.SSNMFRegressor().fit(D, UNEVEN)),
        ("y_weights", lambda: sf.factorize(D, np.ones((12, 2)), y_weights=UNEVEN, **FEW)),
        ("X_weights", lambda: sf.factorize(D, X_weights=UNEVEN, **FEW)),
        ("A", lambda: sf.represent(D, UNEVEN[:2])),
        ("M", lambda: sf.complete(UNEVEN, n_components=1)),
    ],
)
def test_rows_of_different_lengths_are_named(name, call):
    refused(f"^{name} has rows of different lengths", call)


@pytest.mark.parametrize("labels", [[["a"], ["a", "b"], []] * 4, [["a"], "b", None] * 4])
def test_lists_of_labels_are_named(labels):
    objects = np.empty(12, dtype=object)
    objects[:] = labels
    for model in (sf.SSNMFClassifier(), sf.papers.ConstrainedNMF(), sf.papers.MarginNMF()):
        for given in (labels, objects):
            refused(r"y holds lists of labels.*MultiLabelBinarizer", model.fit, D, given)


@pytest.mark.parametrize("n_threads", [2**31, 2**40, 2**70])
def test_too_many_threads_are_refused(n_threads):
    calls = [
        lambda: sf.factorize(D, **{**FEW, "n_threads": n_threads}),
        lambda: sf.NMF(**{**FEW, "n_threads": n_threads}).fit(D),
        lambda: sf.complete(D, n_components=1, n_threads=n_threads),
        lambda: sf.represent(D, D[:2], n_threads=n_threads),
    ]
    for call in calls:
        refused("n_threads must be at most 2147483647; got", call)
    assert sf.factorize(D, **{**FEW, "n_threads": 2**31 - 1}).n_iter == 5


def test_products_with_a_low_rank_plus_sparse_matrix():
    left, right = np.ones((12, 2)), np.ones((2, 8))
    X = sf.linalg.LowRankPlusSparse(sp.csr_array(D), left, right)
    dense = D + left @ right
    for k in (1, 3, 8):
        V, U = np.linspace(0, 1, 8 * k).reshape(8, k), np.linspace(0, 1, 12 * k).reshape(12, k)
        np.testing.assert_allclose(X.times(V), dense @ V)
        np.testing.assert_allclose(X.transposed_times(U), dense.T @ U)
    refused(r"V has shape \(12, 2\); expected \(8, 2\)", X.times, left)
    refused(r"U has shape \(8, 2\); expected \(12, 2\)", X.transposed_times, right.T)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_a_dictionary_may_be_larger_than_data(loss):
    X = np.array([[9e8, 0], [0, 1e-3]], dtype=np.float32)
    A = np.array([[3e9, 1]], dtype=np.float32)
    np.testing.assert_allclose(
        sf.represent(X, A, loss=loss), sf.represent(X.astype(float), A, loss=loss), rtol=1e-5
    )
