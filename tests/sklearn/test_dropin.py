"""Scikit-learn's NMF on the engine: the same results, and names that are replaced and set back."""

import pickle
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition as original
from each import each
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import ssnmf_fast.sklearn as engine

THEIRS = original.NMF, original.MiniBatchNMF, original.non_negative_factorization
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(kind, dtype=np.float64, shape=(30, 21)):
    X = np.random.default_rng(0).random(shape).astype(dtype)
    if kind == "positive":
        return X + dtype(0.1)
    X[X < 0.7] = 0
    return X if kind == "dense" else sp.csr_matrix(X)


def results(model, X):
    return model.fit_transform(X), model.components_, model.transform(X[:7])


def close(found, wanted, tol=1e-9):
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=tol, atol=tol)


# (weight of W, weight of H, share of L1): of both factors, of one alone, none
PENALTIES = [(0.0, "same", 0.0), (0.003, 0.0, 0.5), (0.0, 0.003, 0.5), (0.002, "same", 1.0)]


@pytest.mark.slow
@each("dtype", [np.float64, np.float32])
@each("kind", ["dense", "sparse", "positive"])
@each("beta", [2, 1, 0, 0.5, 1.5, 3])
def test_iterates_are_those_of_scikit_learn(beta, kind, dtype):
    if beta == 0 and kind != "positive":
        return
    X, tol = data(kind, dtype), 1e-9 if dtype == np.float64 else 2e-3
    for a, penalty in enumerate(PENALTIES):
        names = dict(zip(("alpha_W", "alpha_H", "l1_ratio"), penalty, strict=True))
        for solver in ("mu", "cd") if beta == 2 else ("mu",):
            common = {"solver": solver, "beta_loss": beta, "tol": 0, "max_iter": 7, **names}
            common |= {"init": ("random", "nndsvda")[a % 2], "random_state": a}
            common["shuffle"] = solver == "cd" and a < 2
            close(results(engine.NMF(3, **common), X), results(THEIRS[0](3, **common), X), tol)


@pytest.mark.slow
@each("beta", [2, 1, 0.5, 2.5])
@each("settings", [{}, {"fresh_restarts": True}, {"alpha_W": 0.01, "l1_ratio": 0.5}])
def test_minibatches_are_those_of_scikit_learn(settings, beta):
    X = data("sparse")
    common = {"beta_loss": beta, "max_iter": 4, "random_state": 0, "batch_size": 8, **settings}
    ours, theirs = engine.MiniBatchNMF(3, **common), THEIRS[1](3, **common)
    close(results(ours, X), results(theirs, X))
    for model in (ours, theirs):
        model.partial_fit(X[:9])
    close([ours.components_], [theirs.components_])
    assert ours.n_steps_ == theirs.n_steps_


@each("init", ["random", "nndsvd"])
@each("beta", [2, 1, 1.5])
def test_stops_where_scikit_learn_does(beta, init):
    for solver in ("cd", "mu") if beta == 2 else ("mu",):
        for kind in ("dense", "sparse"):
            common = {"solver": solver, "beta_loss": beta, "init": init, "random_state": 0}
            common |= {"tol": 1e-3, "max_iter": 500}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of zeros that stay
                ours = engine.NMF(3, **common).fit(data(kind))
                theirs = THEIRS[0](3, **common).fit(data(kind))
            assert ours.n_iter_ == theirs.n_iter_
            assert ours.reconstruction_err_ == pytest.approx(theirs.reconstruction_err_)


def objective(model, X, W, H):
    """Return the objective in the documentation of scikit-learn's NMF."""
    n, m = X.shape
    value = original._nmf._beta_divergence(X, W, H, model.beta_loss)
    alpha_H = model.alpha_W if model.alpha_H == "same" else model.alpha_H
    for F, alpha in ((W, m * model.alpha_W), (H, n * alpha_H)):
        share = model.l1_ratio
        value += alpha * (share * F.sum() + (1 - share) / 2 * (F**2).sum())
    return value


@pytest.mark.slow
@each("beta", [2, 1])
def test_auto_minimizes_the_same_objective(beta):
    X = data("sparse", shape=(60, 40))
    for alpha_W, alpha_H, share in [*PENALTIES, (0.002, 0.003, 0.2)]:
        names = {"alpha_W": alpha_W, "alpha_H": alpha_H, "l1_ratio": share, "beta_loss": beta}
        names |= {"tol": 1e-7, "max_iter": 2000, "random_state": 0}
        best = engine.NMF(3, solver="auto", **names)
        other = THEIRS[0](3, solver="mu", **names)
        values = [objective(best, X, m.fit_transform(X), m.components_) for m in (best, other)]
        assert values[0] < 1.001 * values[1]
        W = best.transform(X[:9])
        for scale in (0.99, 1.01):
            ends = [objective(best, X[:9], F, best.components_) for F in (W, scale * W)]
            assert ends[0] < ends[1]


def test_same_bits_for_any_number_of_threads():
    X = data("sparse", shape=(300, 200))
    for model in (engine.NMF(3, tol=0, max_iter=5), engine.NMF(3, solver="mu", beta_loss=1)):
        found = []
        for limit in (1, 3):
            with threadpool_limits(limit, "openmp"):
                found.append(model.set_params(random_state=0).fit_transform(X))
        np.testing.assert_array_equal(*found)


def test_data_stay_as_they_are_in_every_form():
    X = data("sparse")
    order = np.argsort(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)) * 100 - X.indices)
    turned = sp.csr_matrix((X.data[order], X.indices[order], X.indptr), X.shape)  # unsorted rows
    for form in (X.tocsc(), X.toarray(order="F"), X.toarray()[::-1][::-1], turned):
        arrays = [getattr(form, name) for name in ("data", "indices") if sp.issparse(form)]
        before = [np.copy(array) for array in arrays or [form]]
        found = engine.NMF(3, random_state=0, tol=0, max_iter=5).fit_transform(form)
        engine.MiniBatchNMF(3, random_state=0, max_iter=2).fit(form)
        for array, copy in zip(arrays or [form], before, strict=True):
            np.testing.assert_array_equal(array, copy)
        wanted = THEIRS[0](3, random_state=0, tol=0, max_iter=5).fit_transform(form)
        close([found], [wanted])


def test_falls_back_with_a_reason(caplog):
    X = data("positive")
    nan = X.copy()
    nan[0, 0] = np.nan
    before = engine.call_counts()
    found = engine.NMF(2, solver="mu", beta_loss=-0.5, random_state=0).fit_transform(X)
    wanted = THEIRS[0](2, solver="mu", beta_loss=-0.5, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(found, wanted)
    engine.MiniBatchNMF(2, beta_loss=-0.5, random_state=0, max_iter=2).fit(X)
    with pytest.raises(ValueError, match="contains zeros"):
        engine.NMF(2, solver="mu", beta_loss=0).fit(data("sparse"))
    assert [record.name for record in caplog.records] == 3 * ["ssnmf_fast.sklearn"]
    assert "beta_loss=-0.5 is negative" in caplog.text
    assert "not defined for zeros" in caplog.text
    with pytest.raises(ValueError, match="NaN"):
        engine.NMF(2).fit(nan)
    after = engine.call_counts()
    assert after["scikit-learn"] - before["scikit-learn"] == 3
    engine.NMF(2).fit(X)
    assert engine.call_counts()["engine"] == after["engine"] + 1


def test_errors_and_warnings_are_those_of_scikit_learn():
    X = data("dense")
    for change in ({"tol": -1}, {"solver": "newton"}, {"beta_loss": 1}, {"n_components": 0}):
        errors = []
        for model in (engine.NMF(2), THEIRS[0](2)):
            with pytest.raises(ValueError, match="parameter") as caught:
                model.set_params(**change).fit(X)
            errors.append(str(caught.value).replace("'auto', ", "").replace(", 'auto'", ""))
        assert sorted(errors[0]) == sorted(errors[1])  # options in any order
    with pytest.warns(ConvergenceWarning, match="Maximum number of iterations 2 reached"):
        engine.NMF(2, max_iter=2).fit(X)
    W = engine.non_negative_factorization(X, n_components=2, random_state=0)[0]
    np.testing.assert_allclose(W, THEIRS[2](X, n_components=2, random_state=0)[0])
    with pytest.raises(TypeError, match="frobnicate"):
        engine.non_negative_factorization(X, frobnicate=1)


def test_is_an_estimator_of_scikit_learn():
    X = data("dense")
    model = clone(engine.NMF(2, random_state=0)).set_output(transform="pandas").fit(X)
    assert list(model.transform(X)) == ["nmf0", "nmf1"]
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is engine.NMF
    assert isinstance(again, THEIRS[0])
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_names_are_replaced_and_set_back():
    user = types.ModuleType("a_user_of_nmf")
    exec("from sklearn.decomposition import NMF as Topics, non_negative_factorization", vars(user))
    sys.modules["a_user_of_nmf"] = user
    ours = engine.NMF, engine.MiniBatchNMF, engine.non_negative_factorization
    try:
        with engine.patched():
            assert (original.NMF, original.MiniBatchNMF) == ours[:2]
            assert original._nmf.non_negative_factorization is ours[2]
            assert (user.Topics, user.non_negative_factorization) == ours[::2]
            with engine.patched():
                exec("from sklearn.decomposition import MiniBatchNMF", vars(user))
            assert user.Topics is engine.NMF
        assert (user.Topics, user.MiniBatchNMF, user.non_negative_factorization) == THEIRS
        assert 2 * THEIRS[:1] == (original.NMF, original._nmf.NMF)
        assert engine.NMF is ours[0]
        engine.unpatch()  # does nothing more
        assert original.NMF is THEIRS[0]
    finally:
        del sys.modules["a_user_of_nmf"]


@pytest.mark.slow
def test_a_script_runs_with_the_names_replaced(tmp_path):
    (tmp_path / "neighbor.py").write_text("from sklearn.decomposition import NMF")
    (tmp_path / "script.py").write_text(
        "import sys\nfrom neighbor import NMF\nprint(NMF.__module__[:19], sys.argv[1:], __name__)"
    )
    command = [
        sys.executable,
        "-m",
        "ssnmf_fast.sklearn",
        "-v",
        str(tmp_path / "script.py"),
        "-a",
        "b",
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path.parent)
    assert run.stdout.split("\n")[0] == "ssnmf_fast.sklearn. ['-a', 'b'] __main__"
    assert run.stderr == "ssnmf_fast: 0 factorizations on the engine, 0 not\n"
