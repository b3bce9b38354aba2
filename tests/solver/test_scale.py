"""Data of extreme sizes, entries that no component can reach, and long sums."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from problems import LOSSES, STORAGE, data

import ssnmf_fast as sf


def scaled(X, power):
    if sp.issparse(X):
        return sp.csr_array((np.ldexp(X.data, power), X.indices, X.indptr), shape=X.shape)
    return np.ldexp(X, power)


FAR = [(np.float64, 2.0**-53), (np.float64, 2.0**51), (np.float32, 2.0**-33), (np.float32, 1e9)]


def fits_of(X, Y):
    """Calls that take data, by name."""
    fitted = sf.NMF(2, random_state=0, max_iter=2, tol=0).fit(np.ones((20, 15)))
    return {
        "factorize": lambda: sf.factorize(X, n_components=2),
        "several starts": lambda: sf.factorize(X, n_components=2, n_starts=2),
        "labels": lambda: sf.factorize(X, Y, n_components=2),
        "penalties": lambda: sf.factorize(X, n_components=2, penalties=sf.penalties.L2(1.0)),
        "represent": lambda: sf.represent(X, np.ones((2, 15))),
        "objective": lambda: sf.extend.objective(X, np.ones((20, 2)), np.ones((2, 15))),
        "tensor": lambda: sf.factorize_tensor(X.reshape(5, 4, 15), n_components=2),
        "fit": lambda: sf.NMF(2).fit(X),
        "transform": lambda: fitted.transform(X),
        "batches": lambda: sf.NMF(2).partial_fit(X),
    }


@each(("dtype", "size"), FAR)
@each("form", [np.asarray, sp.csr_array])
def test_data_far_from_1_are_refused(form, dtype, size):
    """With the constant to multiply by."""
    X, Y = (2 * size * np.ones((20, 15))).astype(dtype), np.eye(4)[np.arange(20) % 4]
    for name, call in fits_of(form(X), Y).items():
        if name == "tensor" and form is not np.asarray:
            continue
        with pytest.raises(ValueError, match=r"too far from 1 .*; multiply X by 1e") as error:
            call()
        constant = float(str(error.value).rsplit(" ", 1)[1].rstrip("."))
        assert 0.1 < constant * X.max() < 10


def test_labels_far_from_1_are_refused():
    X, Y = np.ones((20, 15)), np.eye(4)[np.arange(20) % 4]
    with pytest.raises(ValueError, match=r"y has a largest entry of 1e\+20.*multiply y by 1e-20\."):
        sf.factorize(X, 1e20 * Y, n_components=2)


def test_files_far_from_1_are_refused(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(np.full((4, 3), 1e-20)), compressed=False)
    with pytest.raises(ValueError, match=r"X has a largest entry of 1e-20.*multiply X by 1e20\."):
        sf.io.open_csr(tmp_path / "X.npz")


@each("solver", ["auto", "mu"])
@each("loss", LOSSES)
@each("storage", STORAGE)
def test_powers_of_two_change_no_digit(loss, storage, solver):
    options = {"loss": loss, "n_components": 3, "max_iter": 20, "random_state": 0}
    for dtype, power in ((np.float64, -48), (np.float64, 48), (np.float32, -28), (np.float32, 28)):
        X = data(np.random.default_rng(0), (20, 15), dtype, storage) / 8
        fit = sf.factorize(X, solver=solver, **options)
        large = sf.factorize(scaled(X, power), solver=solver, **options)
        rounding = {"rtol": 0, "atol": 1e-18 if dtype == np.float64 else 1e-9}
        np.testing.assert_allclose(np.ldexp(large.S, -power // 2), fit.S, **rounding)
        np.testing.assert_allclose(np.ldexp(large.A, -power // 2), fit.A, **rounding)
        assert large.n_iter == fit.n_iter


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
    X = np.ldexp(rng.random((20, 15)), 45)
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
