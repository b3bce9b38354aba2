"""Scikit-learn's NMF on the engine: the same results, and names that are replaced and set back."""

import os
import pickle
import subprocess
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition as original
from helpers.each import each
from helpers.refused import refused
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


def kinds(name="NMF"):
    return getattr(engine, name), getattr(original, name)


def ends(kind, X, start, **parameters):
    """Return factors, and the number of iterations with the warnings, or the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = kind(**parameters, random_state=0)
            W = model.fit_transform(X, **{name: F.copy() for name, F in start.items()})
            factors = [W, model.components_, model.transform(X[:7])]
        except ValueError as error:
            return [], str(error)
    return factors, (model.n_iter_, sorted({str(one.message) for one in told}))


def ends_alike(name, X, start, within=1e-10, **parameters):
    (ours, count), (theirs, wanted) = (ends(k, X, start, **parameters) for k in kinds(name))
    assert count == wanted
    for found, right in zip(ours, theirs, strict=True):
        size = np.abs(right.astype(np.float64)).max()
        np.testing.assert_allclose(found, right, rtol=0, atol=within * size)


FIRST, SECOND = (np.random.default_rng(a).random((9, 2)) for a in (1, 2))
CUSTOM = {"n_components": 2, "init": "custom", "max_iter": 20}
# Where scikit-learn divides by 0, or rounding or a part of the model decides: data, start, settings
EDGES = {
    "exact start": (FIRST @ SECOND.T, (FIRST, SECOND.T), CUSTOM),
    "L1 without W": (data("dense")[:9, :9], (FIRST, SECOND.T), CUSTOM | {"alpha_W": 1}),
    "L2, zeros": (data("dense")[:9, :9], (FIRST, SECOND.T * [[1], [0]]), CUSTOM),
    "equal components": (data("dense")[:9, :9], (FIRST * 0 + 1, SECOND.T * 0 + 1), CUSTOM),
    "all zeros": (np.zeros((9, 21)), (), {"n_components": 2}),
    "small rows": (data("dense") / np.logspace(0, 12, 30)[:, None], (), {"n_components": 2}),
    "low tol": (data("dense", np.float32), (), {"n_components": 2, "tol": 1e-7}),
}


@each("name", [*EDGES])
@each("beta, solver", [(2, "cd"), (2, "mu"), (1, "mu"), (0.5, "mu"), (1.5, "mu"), (2.5, "mu")])
def test_edges_end_as_in_scikit_learn(name, beta, solver):
    X, start, settings = EDGES[name]
    settings = {"alpha_W": 0.003, "l1_ratio": float(name != "L2, zeros"), **settings}
    start = dict(zip("WH", start, strict=False))
    ends_alike("NMF", X, start, beta_loss=beta, solver=solver, **settings)


@pytest.mark.compiled("everything runs on scikit-learn's code")
@each("dtype, tol", [(np.float32, 3e-5), (np.float64, 1e-10)])
@each("exponent", [-140, -30, -17, -10, -7, 0, 4, 15, 30, 140])
def test_every_scale_ends_as_in_scikit_learn(exponent, dtype, tol, caplog):
    caplog.clear()
    if dtype == np.float32 and abs(exponent) > 30:
        return
    for a, (beta, solver) in enumerate([(2, "cd"), (2, "mu"), (1, "mu"), (0.5, "mu"), (3, "mu")]):
        X = (data(("dense", "sparse")[a % 2]) * 10.0**exponent).astype(dtype)
        settings = {"n_components": 3, "beta_loss": beta, "max_iter": 15}
        for init in ("random", "nndsvda", "nndsvdar"):
            ends_alike("NMF", X, {}, tol, solver=solver, init=init, **settings)
        ends_alike("MiniBatchNMF", X, {}, tol, batch_size=8, init="random", **settings)
    far = "the scale of X, of given factors or of penalties is not in the range" in caplog.text
    assert far or abs(exponent) < (15 if dtype == np.float32 else 140)
    assert exponent != 0 or not caplog.records


def test_given_factors_are_written_in_place():
    for solver in ("cd", "mu"):
        for kind in kinds():
            W, H = FIRST.copy(), np.asfortranarray(SECOND.T)
            model = kind(**CUSTOM, solver=solver)
            assert model.fit_transform(W @ H + 0.1, W=W, H=H) is W
            assert np.shares_memory(model.components_, H)
            assert not np.array_equal(W, FIRST)


def test_minibatches_of_other_dtypes_and_of_several_threads():
    X = data("dense")
    for dtype in (np.float32, np.float64):
        found = []
        for kind in kinds("MiniBatchNMF"):
            model = kind(3, random_state=0, max_iter=9).fit(X.astype(np.float32))
            W = model.transform(X[:5].astype(dtype))
            found.append((W, model.partial_fit(X[:9].astype(dtype)).components_))
        close(*found, tol=1e-4)
    model, wanted = engine.MiniBatchNMF(3, random_state=0, max_iter=3).fit(X), []
    before = sorted(vars(model))
    with ThreadPoolExecutor(8) as pool:
        wanted += pool.map(lambda _: model.transform(X[:3]), range(200))
    assert all(np.array_equal(one, wanted[0]) for one in wanted)
    assert sorted(vars(model)) == before


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


def test_auto_transforms_by_multiplicative_steps_of_large_beta():
    X = data("dense")
    found = [
        engine.NMF(3, solver=solver, beta_loss=3, random_state=0, tol=0, max_iter=20)
        for solver in ("auto", "mu")
    ]
    np.testing.assert_array_equal(*(model.fit(X).transform(X) for model in found))
    assert found[0].transform(X).any()


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
    refused("contains zeros", engine.NMF(2, solver="mu", beta_loss=0).fit, data("sparse"))
    assert [record.name for record in caplog.records] == 3 * ["ssnmf_fast.sklearn"]
    assert "beta_loss=-0.5 is negative" in caplog.text
    assert "not defined for zeros" in caplog.text
    refused("NaN", engine.NMF(2).fit, nan)
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
    refused("frobnicate", engine.non_negative_factorization, X, frobnicate=1, error=TypeError)


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
            assert original._nmf.NMF is THEIRS[0]  # for pickles of its models
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


def test_models_from_before_are_kept_and_explicit_imports_too():
    class Own(THEIRS[0]):
        pass

    user = sys.modules["a_user_of_ours"] = types.ModuleType("a_user_of_ours")
    exec("from ssnmf_fast.sklearn import NMF, MiniBatchNMF as Batches", vars(user))
    models = [kind(2, max_iter=2).fit(data("dense")) for kind in (*THEIRS[:2], Own)]
    try:
        with engine.patched():
            for model, name in zip(models, ("NMF", "MiniBatchNMF", "NMF"), strict=True):
                assert isinstance(model, getattr(original, name))
                assert issubclass(type(model), getattr(original, name))
                if type(model) is not Own:
                    again = pickle.loads(pickle.dumps(model))
                    assert type(again) is type(model)
            assert not isinstance(models[1], original.NMF)
            assert not isinstance(models[0], type("Derived", (engine.NMF,), {}))
        assert (user.NMF, user.Batches) == (engine.NMF, engine.MiniBatchNMF)
    finally:
        del sys.modules["a_user_of_ours"]


def test_blocks_of_threads_are_counted():
    first, second = engine.patched(), engine.patched()
    first.__enter__()
    ThreadPoolExecutor(1).submit(second.__enter__).result()
    first.__exit__(None, None, None)
    assert original.NMF is engine.NMF
    engine.patch()
    engine.unpatch()
    assert original.NMF is engine.NMF
    second.__exit__(None, None, None)
    assert original.NMF is THEIRS[0]


@pytest.mark.slow
def test_the_reason_names_the_variable_of_the_reference_kernels():
    code = (
        "import numpy as np, ssnmf_fast.sklearn as engine\n"
        "engine.NMF(1).fit(np.ones((3, 2)))\nprint(engine.call_counts())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SSNMF_FAST_ISA": "reference"},
    )
    assert run.stdout == "{'engine': 0, 'scikit-learn': 1}\n"
    assert "SSNMF_FAST_ISA=reference switches the compiled kernels off" in run.stderr


@pytest.mark.slow
def test_a_script_runs_with_the_names_replaced(tmp_path):
    (tmp_path / "neighbor.py").write_text("from sklearn.decomposition import NMF")
    (tmp_path / "script.py").write_text(
        "import sys\nfrom neighbor import NMF\n"
        "print(NMF.__module__[:19], sys.argv, __name__, __file__)"
    )
    command = [sys.executable, "-m", "ssnmf_fast.sklearn", "-v", "script.py", "--", "-a", "b"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    arguments = ["script.py", "--", "-a", "b"]
    assert run.stdout.splitlines() == [
        f"ssnmf_fast.sklearn. {arguments} __main__ {tmp_path / 'script.py'}"
    ]
    assert run.stderr == "ssnmf_fast: 0 factorizations on the engine, 0 not\n"
    command[4] = "other.py"
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 2
    assert f"can't open file '{tmp_path / 'other.py'}': No such file" in run.stderr
