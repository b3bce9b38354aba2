"""Completion of data of any size, and of data that say nothing; what `complete` reads."""

import numpy as np
import pytest
from completion_problems import structured
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast.completion import StructuredSIRLS

FITS = {
    "auto": {"n_components": 3},
    "irls": {"n_components": 3, "method": "irls"},
    "structured-irls": {"n_components": 3, "method": "structured-irls", "max_iter": 20},
    "nnm": {"method": "nnm", "max_iter": 50},
    "noisy": {"n_components": 3, "gamma_min": "validate"},
    "biases": {"n_components": 3, "gamma_min": "validate", "biases": True},
    "fill_value": {"n_components": 3, "fill_value": 0.5},
}


def small(options, scale):
    given = options.get("fill_value")
    return options if given is None else {**options, "fill_value": given * scale}


@pytest.mark.slow
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
@pytest.mark.parametrize("exponent", [-1029, -660])
def test_small_data(fit, exponent):
    """A power of two changes no bit of the fit; only subnormal results are rounded."""
    _, holes = structured(30, 20, 3, 0.5, 0.8)
    scale = 2.0**exponent
    expected = sf.complete(holes, random_state=0, **fit)
    found = sf.complete(holes * scale, random_state=0, **small(fit, scale))
    tolerance = 1e-3 if exponent < -1000 else 1e-9
    dense = expected.to_dense()
    np.testing.assert_allclose(
        found.to_dense() / scale, dense, rtol=tolerance, atol=tolerance * np.abs(dense).max()
    )
    assert found.scale / scale == pytest.approx(expected.scale, rel=tolerance)
    np.testing.assert_array_equal(found.observed.data, (holes * scale)[~np.isnan(holes)])
    if expected.iterate is not None:
        np.testing.assert_allclose(found.iterate / scale, expected.iterate, atol=tolerance)
    rows, columns = np.nonzero(~np.isnan(holes))
    np.testing.assert_array_equal(
        found.predict(rows, columns), found.predict(rows, columns).clip(found.lower, np.inf)
    )


def test_callbacks_see_small_data():
    _, holes = structured(30, 20, 3, 0.5, 0.8)
    seen = []
    fit = sf.complete(holes * 1e-200, n_components=3, random_state=0, callback=seen.append)
    np.testing.assert_allclose(seen[-1].left @ seen[-1].right, fit.to_dense(), atol=1e-206)


@pytest.mark.slow
@each("dtype", [np.float32, np.float64])
@each("method", ["auto", "sirls", "structured-sirls", "irls", "structured-irls"])
def test_start_of_another_size(dtype, method):
    _, holes = structured(30, 20, 3, 0.5, 0.8)
    holes = holes.astype(dtype) * dtype(1e-30 if dtype == np.float32 else 1e-200)
    start = np.ones((30, 2)), np.ones((2, 20))
    with pytest.raises(ValueError, match=r"init is more than .* times as large as M"):
        sf.complete(holes, init=start, method=method, n_components=2)
    fit = sf.complete(holes, method=method, n_components=2, random_state=0)
    again = sf.complete(holes, method=method, n_components=2, init=fit, random_state=0)
    assert np.isfinite(again.to_dense()).all()
    huge = tuple(factor * 1e200 for factor in start)
    if dtype == np.float64:
        with pytest.raises(ValueError, match="product is too large"):
            sf.complete(holes, init=huge, method=method, n_components=2)


@pytest.mark.parametrize("q", [0.0, 1.0])
def test_steps_of_any_size_stay_finite(q):
    _, holes = structured(30, 20, 3, 0.5, 0.8)
    method = StructuredSIRLS(sparsity=1e300, q=q)
    fit = sf.complete(holes.astype(np.float32), method=method, n_components=1, max_iter=50)
    assert np.isfinite(fit.to_dense()).all()


@pytest.mark.slow
def test_large_data():
    _, holes = structured(30, 20, 3, 0.5, 0.8)
    for options in FITS.values():
        fit = sf.complete(holes * 1e80, random_state=0, **small(options, 1e80))
        assert np.isfinite(fit.to_dense()).all()


@pytest.mark.parametrize("biases", [True, False])
def test_what_empty_rows_and_columns_get(biases):
    """It is what the warning states."""
    _, holes = structured(30, 20, 3, 0.5, 0.8)
    holes[4] = holes[:, [7, 9]] = np.nan
    options = {"gamma_min": "validate", "biases": biases, "random_state": 0}
    how = "the mean of M plus the bias" if biases else "fill_value = 0"
    with pytest.warns(UserWarning, match=f"in 1 row and 2 columns; .* completed by {how}"):
        fit = sf.complete(holes, **options)
    dense = fit.to_dense()
    if not biases:
        assert not dense[4].any()
        np.testing.assert_allclose(dense[:, [7, 9]], 0, atol=1e-12)
        return
    np.testing.assert_allclose(dense[4], fit.offset + fit.right[-1], atol=1e-12)
    np.testing.assert_allclose(dense[:, 7], fit.offset + fit.left[:, -2], atol=1e-12)


def test_equal_entries():
    """Such as 1 for every click, beside which nothing is known."""
    likes = np.where(np.random.default_rng(0).random((9, 8)) < 0.5, 1.0, np.nan)
    for options in ({}, {"gamma_min": "validate", "biases": True}):
        with pytest.warns(
            UserWarning, match="observed entries of M are 1: .* ssnmf_fast.Recommender"
        ):
            fit = sf.complete(likes, random_state=0, **options)
        np.testing.assert_allclose(fit.to_dense(), 1.0, rtol=1e-6)


def test_tables_with_missing_numbers():
    """Nullable columns of pandas, and None, are NaN."""
    pandas = pytest.importorskip("pandas")
    _, holes = structured(8, 6, 2, 0.6, 0.9)
    holes[0] = np.arange(6.0)
    expected = sf.complete(holes, n_components=2, random_state=0).to_dense()
    frame = pandas.DataFrame(holes)
    for form in (
        frame,
        frame.astype("Float64"),
        np.where(np.isnan(holes), None, holes),
        np.where(np.isnan(holes), None, holes).tolist(),
    ):
        fit = sf.complete(form, n_components=2, random_state=0)
        np.testing.assert_array_equal(fit.to_dense(), expected)
    table = pandas.DataFrame({"user": ["ann"], "item": ["x"], "rating": [4.0]})
    refused(r"'user', 'item'.*'ann'.*user, item and rating", sf.complete, table, error=TypeError)
