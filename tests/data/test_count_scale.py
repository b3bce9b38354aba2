"""The factor that makes counts of data."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from hypothesis import given
from hypothesis import strategies as st

import ssnmf_fast as sf

pytestmark = pytest.mark.filterwarnings("ignore:.*components:UserWarning")


def find_count_scale(X):
    model = sf.BayesianNMF(n_components=1, max_iter=0, init="random", random_state=0)
    return model.fit(X).count_scale_


@each("dtype", [np.float32, np.float64])
@each("factor", [1.0, 3.0, 1e6])
def test_counts_times_an_integer_are_counts(dtype, factor):
    counts = np.random.default_rng(0).geometric(0.4, size=(50, 40)) - 1
    X = (factor * counts).astype(dtype)
    assert find_count_scale(X) == pytest.approx(1 / factor, rel=1e-6)
    assert find_count_scale(sp.csr_array(X)) == find_count_scale(X)
    np.testing.assert_allclose(find_count_scale(X) * X, counts, rtol=1e-5)


@each("dtype", [np.float32, np.float64])
@each("factor", [1e-6, 0.1, 1 / 3, 1.0, np.pi, 1e6])
def test_the_median_of_measured_values_is_two_counts(dtype, factor):
    X = np.random.default_rng(0).exponential(size=(50, 40))
    X[X < 0.5] = 0
    X = (factor * X).astype(dtype)
    scale = find_count_scale(X)
    assert np.median(scale * X[X > 0]) == pytest.approx(2, rel=1e-6)
    assert find_count_scale(sp.csr_array(X)) == scale


@each(
    ("values", "step"),
    [
        ([2, 3, 5], 1),
        ([20, 33, 47, 255], 1),
        ([2, 4, 8], 2),
        ([3, 10**9], 1),
        ([3, 2**49], 1),
        ([0.5, 1.5, 4], None),
        (np.arange(20, 256) / 255, None),
        ([5e-324, 1], None),
    ],
)
def test_steps(values, step):
    X = np.array([values], dtype=float)
    expected = np.median(X) / 2 if step is None else step
    assert 1 / find_count_scale(X) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=30))
def test_integers_are_counts_up_to_a_common_factor(values):
    X = np.array([values], dtype=float)
    assert find_count_scale(X) == 1 / np.gcd.reduce(values)


def test_empty_and_tiny_data():
    assert find_count_scale(np.zeros((3, 2))) == 1
    assert find_count_scale(sp.csr_array((3, 2))) == 1
    refused("too small to be scaled to counts", find_count_scale, np.array([[5e-324, 5e-324, 1.0]]))
