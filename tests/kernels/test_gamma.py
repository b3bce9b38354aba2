"""The kernels of variational Bayes agree with SciPy's special functions and with the reference."""

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from kernel_calls import calls
from scipy.special import gammaln, psi

DTYPES = [np.float32, np.float64]


class Posterior:
    """Arguments of the kernels for a random factor of which `rank` columns are no padding."""

    def __init__(self, kernels, rows, rank, dtype, n_groups, seed=0):
        rng = np.random.default_rng(seed)
        columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
        self.rank = rank
        self.F, self.P, self.E = (np.zeros((rows, columns), dtype) for _ in range(3))
        self.F[:, :rank] = rng.gamma(0.1, 1, (rows, rank)) + 1e-30
        self.P[:, :rank] = rng.gamma(0.3, 5, (rows, rank))
        self.E[:] = 7  # padding is written, not trusted
        self.rates = np.zeros((max(n_groups, 1), columns))
        self.rates[:, :rank] = rng.gamma(2, 3, (len(self.rates), rank)) + 1e-3
        self.groups = rng.integers(n_groups, size=rows).astype(np.int32) if n_groups else None

    def update(self, kernels, shape=0.3, logs=True, n_threads=2):
        F, E = self.F.copy(), self.E.copy()
        arguments = (F, self.P, shape, self.rates, self.groups, E, self.rank, logs, n_threads)
        return F, E, kernels.gamma_update(*arguments)


@each("rank", [1, 7, 8, 13, 64, 100])
@each("dtype", DTYPES)
@each("n_groups", [0, 1, 5])
def test_kernels_equal_the_reference(kernels, reference, rank, dtype, n_groups):
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    for rows in (0, 1, 37, 700):
        a = Posterior(kernels, rows, rank, dtype, n_groups)
        F, E, logs = a.update(kernels)
        expected_F, expected_E, expected_logs = a.update(reference)
        np.testing.assert_allclose(F, expected_F, rtol=tolerance)
        np.testing.assert_allclose(E, expected_E, rtol=tolerance)
        assert logs == pytest.approx(expected_logs, rel=1e-12, abs=1e-12)
        assert a.update(kernels, logs=False)[2] == 0
        assert not F[:, rank:].any()
        assert not E[:, rank:].any()
        assert (F[:, :rank] >= kernels.tiny(dtype)).all()
        bound = [m.gamma_bound(E, 0.3, a.rates, a.groups, rank, 2) for m in (kernels, reference)]
        assert bound[0] == pytest.approx(bound[1], rel=1e-11, abs=1e-11)
        sums = np.ones((2, *a.rates.shape))
        for module, out in zip((kernels, reference), sums, strict=True):
            module.group_sums(E, a.groups, out, 2)
        np.testing.assert_allclose(sums[0], sums[1], rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_groups", [0, 9])
def test_threads_give_the_same_bits(kernels, dtype, n_groups):
    a = Posterior(kernels, 20_000, 13, dtype, n_groups)
    results = set()
    for n_threads in (1, 2, 3, 4):
        F, E, logs = a.update(kernels, n_threads=n_threads)
        bound = kernels.gamma_bound(E, 0.3, a.rates, a.groups, a.rank, n_threads)
        sums = np.ones_like(a.rates)
        kernels.group_sums(E, a.groups, sums, n_threads)
        results.add((F.tobytes(), E.tobytes(), sums.tobytes(), logs, bound))
    assert len(results) == 1


def _of_shapes(kernels, shapes, dtype):
    """The kernels' exp(psi(a)) and E = a, for rates 1, one row for each a."""
    F, P, E = (np.zeros((len(shapes), 8), dtype) for _ in range(3))
    F[:, 0], P[:, 0] = 1, shapes
    kernels.gamma_update(F, P, 0.0, np.ones((1, 8)), None, E, 1, False, 1)
    np.testing.assert_array_equal(E[:, 0], P[:, 0])
    return F[:, 0].astype(float), E


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential_of_digamma(kernels, dtype):
    """Where a is small, a rounding error of a itself is worth 1 / a of it."""
    shapes = np.logspace(-3, 12, 4001).astype(dtype)
    exact = np.exp(psi(shapes.astype(float)))
    given, _ = _of_shapes(kernels, shapes, dtype)
    floor = kernels.tiny(dtype)
    assert (given[exact < floor] == floor).all()
    usable = exact > floor
    error = np.abs(given / np.where(usable, exact, 1) - 1)[usable]
    tolerance = 1e-6 if dtype == np.float32 else 1e-13
    assert (error <= tolerance * np.maximum(1, 0.01 / shapes[usable])).all()


def test_digamma_at_known_values(kernels):
    """psi(1) = -gamma, psi(1/2) = -gamma - 2 log 2, psi(1/4) = -pi/2 - 3 log 2 - gamma."""
    known = -np.euler_gamma - np.array([0, 2 * np.log(2), np.pi / 2 + 3 * np.log(2)])
    given, _ = _of_shapes(kernels, np.array([1, 0.5, 0.25]), np.float64)
    np.testing.assert_allclose(given, np.exp(known), rtol=1e-14)


@pytest.mark.parametrize("prior_shape", [0.0, 0.01, 1.0, 30.0])
def test_gamma_bound_by_entry(kernels, prior_shape):
    shapes = np.logspace(-3, 8, 1001)
    _, E = _of_shapes(kernels, shapes, np.float64)
    for a, row in zip(shapes[::20], E[::20], strict=True):
        given = kernels.gamma_bound(row[None], prior_shape, np.ones((1, 8)), None, 1, 1)
        exact = (prior_shape - a) * psi(a) + a + gammaln(a)
        assert given == pytest.approx(exact, rel=1e-12, abs=1e-14 * max(1, a * np.log(a)))


def test_extreme_shapes_stay_finite(kernels):
    shapes = np.array([1e-300, 1e-30, 1e20, 1e50, 1e100])
    given, E = _of_shapes(kernels, shapes, np.float64)
    np.testing.assert_allclose(given[2:], shapes[2:], rtol=1e-15)
    assert (given[:2] == kernels.tiny(np.float64)).all()
    for shape in (1e-6, 1.0):
        assert np.isfinite(kernels.gamma_bound(E, shape, np.ones((1, 8)), None, 1, 1))


@each(
    ("changes", "error", "message"),
    [
        ({"E": np.ones((3, 8))}, ValueError, "E has a shape"),
        ({"P": np.ones((4, 8), np.float32)}, TypeError, "P has dtype float32"),
        ({"rates": np.zeros((1, 8))}, ValueError, "rates must be positive"),
        ({"rates": np.full((1, 8), np.nan)}, ValueError, "rates must be positive"),
        ({"rates": np.ones((1, 16))}, ValueError, "columns of rates"),
        ({"rates": np.ones((1, 8), np.float32)}, TypeError, "rates has dtype"),
        ({"groups": np.array([0, 1, 0, 0], np.int32)}, ValueError, "below 1"),
        ({"groups": np.array([0, -1, 0, 0], np.int32)}, ValueError, "at least 0"),
        ({"groups": np.zeros(4, int)}, TypeError, "groups has dtype int64"),
        ({"groups": np.zeros(3, np.int32)}, ValueError, "groups has length 3"),
        ({"rank": 9}, ValueError, "rank must be"),
        ({"prior_shape": -1.0}, ValueError, "prior_shape"),
        ({"prior_shape": np.nan}, ValueError, "prior_shape"),
    ],
)
def test_refused(kernels, changes, error, message):
    arguments = calls()["gamma_update"][1] | {"rates": np.ones((1, 8))}
    refused(message, kernels.gamma_update, **{**arguments, **changes}, error=error)
