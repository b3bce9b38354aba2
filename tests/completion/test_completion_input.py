"""What a completion takes: forms of the data, options and parameters, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from completion_problems import METHODS
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ssnmf_fast as sf
from ssnmf_fast.completion import (
    IRLS,
    SIRLS,
    MatrixIRLS,
    StructuredIRLS,
    StructuredNNM,
    StructuredSIRLS,
)


def forms(M, holes):
    observed = ~np.isnan(holes)
    rows, columns = np.nonzero(observed)
    filled = np.where(observed, M, 7.0)
    order = np.random.default_rng(0).permutation(len(rows))
    values = M[rows, columns]
    stored = sp.coo_array((values, (rows, columns)), shape=M.shape)
    yield "NaN", holes, {}
    yield "Fortran", np.asfortranarray(holes), {}
    yield "mask", filled, {"observed": observed}
    yield "sparse mask", filled, {"observed": sp.csc_array(observed)}
    yield "sparse", stored, {}
    yield "csr", stored.tocsr(), {}
    yield "csc", stored.tocsc(), {}
    yield "sparse and mask", sp.csr_array(M), {"observed": observed}
    yield "triplets", (rows[order], columns[order], values[order]), {"shape": M.shape}


def test_forms_of_the_data_agree(easy):
    M, holes = easy
    results = {}
    for name, data, options in forms(M, holes):
        fit = sf.complete(data, n_components=3, random_state=0, max_iter=5, **options)
        results[name] = fit.to_dense()
        assert fit.observed.nnz == np.count_nonzero(~np.isnan(holes))  # explicit zeros count
    for name, result in results.items():
        np.testing.assert_array_equal(result, results["NaN"], err_msg=name)


def test_input_is_not_modified(easy):
    M, holes = easy
    for name, data, options in forms(M, holes):
        if isinstance(data, tuple):
            before = [part.copy() for part in data]
            sf.complete(data, n_components=2, max_iter=2, **options)
            assert all(np.array_equal(a, b) for a, b in zip(data, before, strict=True)), name
        elif sp.issparse(data):
            before = data.copy()
            sf.complete(data, n_components=2, max_iter=2, **options)
            assert (data != before).nnz == 0, name


BAD = [
    ({"M": np.full((3, 3), np.nan)}, ValueError, "no observed entry"),
    ({"M": np.ones(3)}, ValueError, "two dimensions"),
    ({"M": np.array([[1.0, np.inf]])}, ValueError, "infinity"),
    ({"M": np.ones((2, 2), complex)}, TypeError, "complex"),
    ({"observed": np.ones((2, 3), bool)}, ValueError, r"observed has shape \(2, 3\)"),
    ({"observed": np.full((4, 3), 0.5)}, TypeError, "mask"),
    ({"shape": (4, 3)}, ValueError, "shape belongs to"),
    ({"n_components": 4}, ValueError, "n_components must be at most"),
    ({"n_components": 0}, ValueError, "n_components must be at least 1"),
    ({"method": "als"}, ValueError, "method must be one of"),
    ({"gamma_min": 0}, ValueError, "above 0"),
    ({"gamma_min": "best"}, ValueError, "gamma_min must be"),
    ({"gamma_min": "validate", "method": "structured-irls"}, ValueError, "needs method"),
    ({"method": SIRLS}, TypeError, "method must be a name or an object"),
    ({"gamma_min": 0.1, "method": MatrixIRLS()}, ValueError, "MatrixIRLS, for exact data"),
    (
        {"gamma_min": 0.1, "init": (np.ones((4, 1)), np.ones((1, 3)))},
        ValueError,
        "does not use init",
    ),
    ({"biases": True}, ValueError, "biases=True needs gamma_min"),
    ({"biases": 1}, TypeError, "biases must be True or False"),
    ({"nonnegative": "yes"}, TypeError, "nonnegative must be True or False"),
    ({"fill_value": np.nan}, ValueError, "fill_value must be"),
    ({"fill_value": "0"}, TypeError, "fill_value must be"),
    ({"fill_value": 1e200}, ValueError, "fill_value must be at most 1e.90"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    ({"tol": -1}, ValueError, "tol must be"),
    ({"random_state": "x"}, ValueError, "random_state must be"),
    ({"init": 3}, TypeError, "init must be"),
    ({"init": (["a"], ["b"])}, TypeError, r"init\[0\] has dtype"),
    ({"init": (np.ones((4, 1)) * 1j, np.ones((1, 3)))}, TypeError, r"init\[0\] has dtype"),
    ({"init": (np.ones((4, 1)), sp.eye(3))}, TypeError, r"init\[1\] must be an array"),
    ({"init": (np.ones((4, 1)), np.ones((2, 3)))}, ValueError, "init has factors"),
    ({"init": (np.ones((5, 1)), np.ones((1, 3)))}, ValueError, "init is a 5 x 3 matrix"),
    ({"init": (np.full((4, 1), np.nan), np.ones((1, 3)))}, ValueError, "NaN or infinity"),
    ({"M": ([0], [0])}, ValueError, "a tuple of 2"),
    ({"M": ([0, 1], [0], [1.0])}, ValueError, "vectors of one length"),
    ({"M": ([0.5], [0], [1.0])}, TypeError, "rows of M must be integers"),
    ({"M": (["ann"], ["x"], [1.0])}, TypeError, "a DataFrame and columns="),
    ({"M": [["ann", "x", 1.0]]}, TypeError, "M.* is 'ann', not a number.*rows, columns, values"),
    ({"M": np.array([["ann", 1.0]], object)}, TypeError, r"M\[0, 0\] is 'ann', not a number"),
    ({"M": np.array([[10**400, None]], object)}, ValueError, "infinity"),
    ({"M": "ratings.csv"}, TypeError, "M must be an array; got str.*user, item and rating"),
    ({"M": ([-1], [0], [1.0])}, ValueError, "rows of M must be at least 0"),
    ({"M": (np.array([2**63], np.uint64), [0], [1.0])}, ValueError, "rows of M must be below"),
    ({"M": ([3], [0], [1.0]), "shape": (2, 2)}, ValueError, "beyond shape"),
    ({"M": ([0], [0], [1.0]), "shape": 2}, ValueError, "shape must be"),
    ({"M": ([0], [0], ["a"])}, TypeError, "real numbers"),
    ({"M": ([0], [0], [1.0]), "observed": np.ones((1, 1))}, ValueError, "observed must be None"),
    ({"M": ([2, 1, 2], [1, 0, 1], [1.0, 2, 3])}, ValueError, r"\[2, 1\] more than once"),
]


@each(("changes", "kind", "message"), BAD)
def test_bad_input(changes, kind, message):
    arguments = {"M": np.ones((4, 3)), **changes}
    refused(message, sf.complete, arguments.pop("M"), error=kind, **arguments)


CHANGED = [
    MatrixIRLS(sparsity=0.3),
    SIRLS(p=0.5),
    IRLS(p=0.5),
    *(StructuredSIRLS(**{name: 0.5}) for name in ("p", "q", "sparsity", "sparsity_decay")),
    *(StructuredIRLS(**{name: 0.5}) for name in ("p", "q", "sparsity")),
    StructuredNNM(sparsity=0.3),
    StructuredNNM(missing_norm="l2"),
]


@pytest.mark.parametrize("method", CHANGED, ids=repr)
def test_a_parameter_changes_the_result(easy, method):
    _, holes = easy
    options = {"random_state": 0, "max_iter": 25, "tol": 0.0}
    changed = sf.complete(holes, method=method, **options).to_dense()
    assert not np.array_equal(
        changed, sf.complete(holes, method=type(method)(), **options).to_dense()
    )


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        (IRLS, {"p": 1.5}, "p must be at most 1"),
        (StructuredIRLS, {"q": -1}, "q must be"),
        (MatrixIRLS, {"sparsity": -1.0}, "sparsity must be"),
        (StructuredSIRLS, {"sparsity_decay": 2}, "sparsity_decay must be at most 1"),
        (StructuredNNM, {"missing_norm": "l0"}, "missing_norm must be one of"),
    ],
)
def test_bad_parameters_of_methods(method, parameters, message):
    refused(message, method, **parameters)


@pytest.mark.slow
@each("method", METHODS)
@each(
    ("name", "value"),
    [("n_components", 1), ("gamma_min", 0.1), ("init", (np.ones((40, 1)), np.ones((1, 30))))],
)
def test_an_option_changes_the_result_or_is_refused(easy, method, name, value):
    _, holes = easy
    options = {"method": method, "random_state": 0, "max_iter": 25, "tol": 0.0}
    if method in ("nnm", "structured-nnm"):
        refused(f"does not use {name}", sf.complete, holes, **options, **{name: value})
        return
    changed = sf.complete(holes, **options, **{name: value}).to_dense()
    assert not np.array_equal(changed, sf.complete(holes, **options).to_dense())


def test_what_has_no_missing_entry_or_is_a_long_table_is_warned_of():
    places = np.indices((10, 5)).reshape(2, -1)
    ratings = (places[0] + 2 * places[1]) % 5 + 1.0
    table = np.column_stack([places[0] + 1, places[1] + 101, ratings])
    triplets, matrix = (*places, ratings), ratings.reshape(10, 5)
    for full in (table, table.tolist(), sp.csr_array(table), matrix, triplets):
        with pytest.warns(UserWarning, match="M has no missing entry") as caught:
            sf.complete(full, n_components=2)
        assert ("user, item and rating" in str(caught[0].message)) == (full is not triplets)
    table[::7, 2] = np.nan  # ratings to be predicted
    with pytest.warns(UserWarning, match="first two of the three columns.*user, item and rating"):
        sf.complete(table, n_components=2)
    quiet = np.where(np.arange(50) % 7 == 0, np.nan, ratings).reshape(10, 5)
    for holes in (quiet, table * 0.5, tuple(part[1:] for part in triplets)):
        sf.complete(holes, n_components=2)


def test_repeated_entries_are_named():
    repeated = sp.csr_array(([1.0, 2, 3], [0, 2, 2], [0, 1, 3]), shape=(2, 3))
    for data in (repeated, sp.coo_array(([1.0, 2], ([1, 1], [2, 2])), shape=(2, 3))):
        refused(r"\[1, 2\] more than once", sf.complete, data)
    with pytest.raises(ValueError, match=r"M\[0, 1\] is NaN, but observed"):
        sf.complete(np.array([[1.0, np.nan]]), observed=np.ones((1, 2), bool))


EXPONENTS = st.sampled_from([0.0, 0.5, 1.0])


@pytest.mark.slow
@settings(max_examples=examples(150, in_numpy=20))
@given(
    data=hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=7),
        elements=st.one_of(
            st.just(np.nan),
            st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
            # Powers of two: hypothesis wants what float32 holds exactly.
            st.sampled_from([0.0, 1.0, 2.0**-123, 2.0**-100, -(2.0**100), np.inf]),
        ),
    ),
    method=st.one_of(
        st.sampled_from(METHODS),
        st.builds(StructuredSIRLS, p=EXPONENTS, q=EXPONENTS),
        st.builds(StructuredIRLS, p=EXPONENTS, q=EXPONENTS),
        st.builds(IRLS, p=EXPONENTS),
    ),
    rank=st.sampled_from([None, 1, 2, 5]),
    noisy=st.booleans(),
    fill_value=st.sampled_from([0.0, -2.0]),
    nonnegative=st.sampled_from([None, True, False]),
)
@pytest.mark.filterwarnings("ignore:M has no (observed|missing) entry")
@pytest.mark.filterwarnings("ignore:The first two of the three columns")
@pytest.mark.filterwarnings("ignore:All .* observed entries")
def test_fuzz(data, method, rank, noisy, fill_value, nonnegative):
    """Any input gives a finite completion or a clear error."""
    options = {"gamma_min": "validate", "biases": fill_value == 0} if noisy else {}
    if not isinstance(method, str) or method in METHODS[:5]:
        options["n_components"] = rank
    try:
        parameters = {"method": method, "fill_value": fill_value, "max_iter": 8, "random_state": 0}
        fit = sf.complete(data, nonnegative=nonnegative, **parameters, **options)
    except ValueError:
        return
    assert np.isfinite(fit.to_dense()).all()
    assert np.isfinite(fit.singular_values).all()
