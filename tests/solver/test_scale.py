"""Data of any size, entries that no component can reach, and long sums."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from each import each
from problems import LOSSES, STORAGE, data

import ssnmf_fast as sf

SIZES = [
    *((np.float64, power) for power in (-900, -560, -60, 60, 200)),
    *((np.float32, power) for power in (-90, -68, -46)),
]


def scaled(X, power):
    if sp.issparse(X):
        return sp.csr_array((np.ldexp(X.data, power), X.indices, X.indptr), shape=X.shape)
    return np.ldexp(X, power)


@each("storage", STORAGE)
@each("loss", LOSSES)
@each("solver", ["auto", "mu"])
def test_nmf_of_data_of_any_size(loss, storage, solver):
    options = {"loss": loss, "n_components": 3, "max_iter": 20, "random_state": 0}
    for dtype, power in SIZES:
        X = data(np.random.default_rng(0), (20, 15), dtype, storage)
        fit = sf.factorize(X, solver=solver, **options)
        large = sf.factorize(scaled(X, power), solver=solver, **options)
        # The same bits, but for entries on their way to zero, which stop at the floor of a type.
        np.testing.assert_allclose(np.ldexp(large.S, -power // 2), fit.S, rtol=0, atol=1e-18)
        np.testing.assert_allclose(np.ldexp(large.A, -power // 2), fit.A, rtol=0, atol=1e-18)
        assert large.n_iter == fit.n_iter
        degree = 2 if loss == "frobenius" else 1
        values = [np.ldexp(value, degree * power) for _, value in fit.objective]
        np.testing.assert_allclose([value for _, value in large.objective], values, rtol=1e-13)
        again = sf.extend.objective(scaled(X, power), large.S, large.A, loss=loss)
        assert again == pytest.approx(values[-1], rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("supervision_loss", LOSSES)
def test_labels_beside_data_of_any_size(loss, supervision_loss):
    Y = np.eye(4)[np.arange(20) % 4]
    for dtype, power in SIZES:
        X = data(np.random.default_rng(0), (20, 15), dtype)
        common = {"n_components": 5, "loss": loss, "supervision_loss": supervision_loss}
        common |= {"max_iter": 20, "random_state": 0}
        fit = sf.factorize(X, Y, supervision_weight="balanced", **common)
        large = sf.factorize(scaled(X, power), Y, supervision_weight="balanced", **common)
        tolerance = 2e-3 if dtype == np.float32 else 1e-9
        model, expected = large.S @ np.ldexp(large.A, -power), fit.S @ fit.A
        np.testing.assert_allclose(model, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(large.S @ large.B, fit.S @ fit.B, rtol=tolerance, atol=tolerance)
        assert np.isfinite([value for _, value in large.objective]).all()
        degree = 2 if loss == "frobenius" else 1
        weight = np.ldexp(fit.supervision_weight, degree * power)
        assert large.supervision_weight == pytest.approx(weight, rel=1e-4)
        if weight > 0:
            given = sf.factorize(scaled(X, power), Y, supervision_weight=weight, **common)
            model = given.S @ np.ldexp(given.A, -power)
            np.testing.assert_allclose(model, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_and_callbacks_in_units_of_the_data(loss):
    rng = np.random.default_rng(0)
    X, S, A = rng.random((20, 15)), rng.random((20, 3)), rng.random((3, 15))
    seen = []

    def callback(state):
        seen.append((state.S.copy(), state.A.copy(), state.objective))

    options = {"loss": loss, "n_components": 3, "max_iter": 10}
    fit = sf.factorize(X, init=(S, A), **options)
    given = (S, np.ldexp(A, -600))
    large = sf.factorize(np.ldexp(X, -600), init=given, callback=callback, **options)
    np.testing.assert_allclose(large.S @ np.ldexp(large.A, 600), fit.S @ fit.A, rtol=1e-9)
    np.testing.assert_array_equal(seen[0][0], S)
    np.testing.assert_array_equal(seen[0][1], given[1])
    assert [value for *_, value in seen] == [value for _, value in large.objective]


def test_batches_of_data_of_extreme_size_are_refused():
    X = np.random.default_rng(0).random((20, 15))
    with pytest.raises(ValueError, match="multiply all batches by one constant"):
        sf.NMF(n_components=2).partial_fit(np.ldexp(X, -700))


class Unreachable:
    """Counts, with some samples that may have no topic."""

    def __init__(self, extra):
        rng = np.random.default_rng(0)
        self.X = rng.poisson(1.0, (220, 30)).astype(float)[: 200 + extra]
        self.init = rng.random((220, 4))[: 200 + extra], rng.random((4, 30))
        self.support = np.ones((200 + extra, 4))
        self.support[200:] = 0
        self.Y = np.zeros((200 + extra, 3))
        self.Y[np.arange(200), np.arange(200) % 3] = 1
        self.B = rng.random((4, 3))

    def fit(self, storage, balanced):
        X = sp.csr_array(self.X) if storage == "sparse" else self.X
        options = {"n_components": 4, "S_support": self.support, "tol": 1e-4}
        options |= {"loss": "kullback-leibler", "supervision_loss": "kullback-leibler"}
        if not balanced:
            return sf.factorize(X, init=self.init, **options)
        init = (*self.init, self.B)
        return sf.factorize(X, self.Y, supervision_weight="balanced", init=init, **options)


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("balanced", [False, True])
def test_entries_that_no_component_can_reach_stop_nothing(storage, balanced):
    expected = Unreachable(0).fit(storage, balanced)
    assert expected.n_iter >= 30
    for extra in (1, 20):
        fit = Unreachable(extra).fit(storage, balanced)
        assert fit.n_iter == expected.n_iter
        np.testing.assert_allclose(fit.A, expected.A, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(fit.S[:200], expected.S, rtol=1e-7, atol=1e-12)
        assert np.isfinite(fit.objective[-1][1])
        if balanced:
            assert fit.supervision_weight == pytest.approx(expected.supervision_weight, rel=1e-9)


def test_divergences_are_finite_and_not_negative():
    rng = np.random.default_rng(0)
    X = np.ldexp(rng.random((20, 15)), 80)
    S, A = np.zeros((20, 2)), np.zeros((2, 15))
    assert np.isfinite(sf.extend.objective(X, S, A, loss="kullback-leibler"))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        S, A = rng.random((30, 2)).astype(np.float32), rng.random((2, 40)).astype(np.float32)
        assert sf.extend.objective(S @ A, S, A, loss="kullback-leibler") >= 0


@pytest.mark.slow
@pytest.mark.compiled("the reference takes rows one by one")
def test_float32_data_of_rank_one_and_many_rows():
    rng = np.random.default_rng(0)
    u, v = rng.random((1_000_000, 1), dtype=np.float32), rng.random((1, 5), dtype=np.float32)
    X = u * v
    fit = sf.factorize(X, n_components=1, max_iter=20, tol=0, random_state=0)
    assert np.abs(fit.S @ fit.A - X).max() <= 1e-5
