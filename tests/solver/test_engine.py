"""Losses and weights as objects: the names of losses, and weights without arrays as large as X."""

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from problems import LOSSES, data, dense_objective, filled

import ssnmf_fast as sf
from ssnmf_fast._solver import problem

PACKAGE = Path(sf.__file__).parent
X = np.random.default_rng(0).random((12, 8))
LABELS = np.arange(12) % 2


def peak(X, weights, loss, solver="auto"):
    """Largest number of bytes that a fit holds beside X."""
    tracemalloc.start()
    options = {"n_components": 4, "init": "random", "random_state": 0, "max_iter": 3}
    sf.factorize(X, loss=loss, X_weights=weights, solver=solver, **options)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.slow
@pytest.mark.compiled("takes long in NumPy; the arrays of the engine are the same")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("columns", [None, np.linspace(1, 3, 2000)])
def test_separable_weights_make_no_array_as_large_as_X(loss, columns):
    X = np.random.default_rng(0).random((2000, 2000))
    rows = np.linspace(0, 2, 2000)
    without, most = peak(X, None, loss), peak(X, sf.weights.outer(rows, columns), loss)
    assert most < without + 0.4 * X.nbytes


@pytest.mark.parametrize(
    ("weights", "rows"),
    [
        (None, (1, 1)),
        (sf.weights.outer(None, np.arange(8)), (1, 8)),
        (np.ones((12, 8)), (1, 1)),
        (np.full((12, 8), 2.0), (12, 8)),
    ],
)
def test_a_constant_pull_is_one_row(monkeypatch, weights, rows):
    """N of the divergence, for S and for A, where all of its rows are the same."""
    seen = {}
    majorizer = problem.Problem.majorizer

    def watched(self, name, *given):
        found = majorizer(self, name, *given)
        seen[name] = [len(N) for _, N in found.pairs.values()]
        return found

    monkeypatch.setattr(problem.Problem, "majorizer", watched)
    options = {"loss": "kullback-leibler", "init": "random", "random_state": 0}
    sf.factorize(X, n_components=3, X_weights=weights, max_iter=2, **options)
    assert seen == {"S": [rows[0]], "A": [rows[1]]}


@pytest.mark.slow
@each("share", [0.1, 0.8])
@each("loss", LOSSES)
@each("solver", ["auto", "hals"])
def test_separable_weights_of_data_with_holes(loss, share, solver):
    rng = np.random.default_rng(1)
    X = data(rng, (40, 30), np.float64, "dense")
    X[rng.random(X.shape) < share] = np.nan
    X[3], X[:, 5] = np.nan, np.nan
    a, b = rng.random(40), rng.random(30)
    a[:4] = 0
    W = np.where(np.isnan(X), 0, np.outer(a, b))
    options = {"loss": loss, "solver": solver, "random_state": 0, "tol": 0}
    fit = sf.factorize(X, n_components=3, X_weights=sf.weights.outer(a, b), **options)
    expected = dense_objective(filled(X), W, fit.S, fit.A, loss)
    assert fit.objective[-1][1] == pytest.approx(expected, rel=1e-9)
    assert max(np.diff([value for _, value in fit.objective])) <= 1e-9 * fit.objective[0][1]
    S = sf.represent(X, fit.A, loss=loss, X_weights=sf.weights.outer(a, b))
    T = sf.represent(filled(X), fit.A, loss=loss, X_weights=W)
    np.testing.assert_allclose(S @ fit.A, T @ fit.A, rtol=1e-4, atol=1e-6)


UNKNOWN = {
    "factorize": lambda: sf.factorize(X, n_components=2, loss="euclidean"),
    "represent": lambda: sf.represent(X, np.ones((2, 8)), loss="euclidean"),
    "objective": lambda: sf.extend.objective(X, X[:, :2], X[:2], loss="euclidean"),
    "ConstrainedNMF": lambda: sf.papers.ConstrainedNMF(loss="euclidean").fit(X, LABELS),
}


@pytest.mark.parametrize("function", UNKNOWN)
def test_an_unknown_loss_is_refused_with_the_list(function):
    message = r"must be one of 'frobenius', 'kullback-leibler'.*; got 'euclidean'"
    with pytest.raises(ValueError, match=message):
        UNKNOWN[function]()


def test_no_module_asks_for_the_name_of_a_loss_or_the_kind_of_weights():
    ladder = re.compile(
        r"""[!=]= *["'](frobenius|kullback-leibler)["']"""
        r"|isinstance\([^)]*(Separable|Listed|Complement|Outer|Observed|Missing|Entrywise)\b"
    )
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if ladder.search(path.read_text(encoding="utf-8"))
    ]
    assert not found
    assert len(list(PACKAGE.rglob("*.py"))) > 100  # the search finds the package


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_missing_rows_join_a_missing_pattern(storage):
    rng = np.random.default_rng(2)
    Y = data(rng, (20, 3), np.float64, storage)
    pattern = sp.csr_array((rng.random((20, 3)) < 0.2) * 1.0)
    rows = (np.arange(20) % 3 > 0) * 1.0
    joined = sf.weights.missing(pattern).with_rows(rows, "y_weights")
    expected = np.where((1 - pattern.toarray()) * rows[:, None] > 0, filled(Y), 0)
    np.testing.assert_array_equal(filled(joined.hide(Y)), expected)
    with pytest.raises(ValueError, match="cannot be combined with weights of samples"):
        sf.weights.missing(pattern).with_rows(2 * rows, "y_weights")


@pytest.mark.slow
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("solver", ["auto", "mm", "hals"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_file_is_read_once_in_every_iteration(tmp_path, monkeypatch, loss, solver, labels):
    rng = np.random.default_rng(3)
    X = data(rng, (200, 40), np.float64)
    Y = np.eye(3)[rng.integers(3, size=200)] if labels else None
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=2000)
    blocks, reads = sf.io.CsrFile.blocks, []
    monkeypatch.setattr(sf.io.CsrFile, "blocks", lambda self: (reads.append(1), blocks(self))[1])
    sums = {"loss": loss, "supervision_loss": loss, "solver": solver}
    options = {"n_components": 4, "init": "random", "random_state": 0, "tol": 0, **sums}
    in_memory = dict(options)
    if loss == "kullback-leibler" and solver == "hals" and not labels:
        in_memory["solver"] = "mm"  # coordinate descent reads the data anew for every factor

    def count(max_iter):
        reads.clear()
        fit = sf.factorize(file, Y, max_iter=max_iter, **options)
        here = sf.factorize(X, Y, max_iter=max_iter, **in_memory)
        np.testing.assert_allclose(fit.S, here.S, rtol=1e-8, atol=1e-12)
        return len(reads)

    assert count(9) - count(4) == 5
