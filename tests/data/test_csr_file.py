"""Matrices on disk: the same fits as in memory, and clear errors for files that are none."""

import copy
import os
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from problems import LOSSES, data

import ssnmf_fast as sf

N, M = 300, 90


@pytest.fixture
def matrix():
    X = data(np.random.default_rng(0), (N, M), np.float64, density=0.1)
    X.data += 0.5
    return X


def saved(X, path, form):
    if form == "npz":
        sp.save_npz(path / "X.npz", X, compressed=False)
        return path / "X.npz"
    for name in ("indptr", "indices", "data"):
        np.save(path / f"{name}.npy", getattr(X, name))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["npz", "directory"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("memory", [1, 5000, 1 << 20])
def test_blocks_are_the_matrix(matrix, tmp_path, form, dtype, index, memory):
    X = matrix.astype(dtype)
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    file = sf.io.open_csr(saved(X, tmp_path, form), n_features=M, memory=memory)
    assert file.shape == X.shape
    assert file.nnz == X.nnz
    assert file.dtype == (np.float32 if dtype == np.float32 else np.float64)
    for _ in range(2):
        blocks = list(file.blocks())
        stacked = sp.vstack([block for _, block in blocks], format="csr")
        np.testing.assert_array_equal(stacked.toarray(), X.toarray())
    for rows, block in blocks:
        largest = block.nnz * (block.data.itemsize + block.indices.itemsize)
        assert rows.stop - rows.start == 1 or largest <= memory / 2
        assert block.indices.dtype == np.int32


@pytest.mark.parametrize("losses", [("frobenius",), *[(x, y) for x in LOSSES for y in LOSSES]])
@pytest.mark.parametrize("solver", ["auto", "mm"])
def test_fit_is_that_in_memory(matrix, tmp_path, losses, solver):
    Y = np.eye(3)[np.arange(N) % 3] if len(losses) == 2 else None
    options = {
        "n_components": 5,
        "loss": losses[0],
        "supervision_loss": losses[-1],
        "solver": solver,
        "init": "random",
        "random_state": 0,
        "max_iter": 20,
        "tol": 0,
    }
    file = sf.io.open_csr(saved(matrix, tmp_path, "npz"), memory=20_000)
    there = sf.factorize(file, Y, **options)
    here = sf.factorize(matrix, Y, **options)
    np.testing.assert_allclose(there.S, here.S, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(there.A, here.A, rtol=1e-8, atol=1e-12)
    assert there.objective[-1][1] == pytest.approx(here.objective[-1][1], rel=1e-10)
    S = sf.represent(file, here.A, loss=losses[0])
    np.testing.assert_allclose(S, sf.represent(matrix, here.A, loss=losses[0]), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("init", ["random", "random-acol"])
def test_threads_give_the_same_bits(matrix, tmp_path, loss, init):
    file = sf.io.open_csr(saved(matrix, tmp_path, "npz"), memory=20_000)
    options = {"n_components": 12, "random_state": 0, "max_iter": 5}
    fits = [
        sf.factorize(file, loss=loss, init=init, n_threads=threads, **options)
        for threads in (1, 2, 3, 5)
    ]
    assert len({(fit.S.tobytes(), fit.A.tobytes()) for fit in fits}) == 1


def test_estimators_take_a_file(matrix, tmp_path):
    file = sf.io.open_csr(saved(matrix, tmp_path, "npz"), memory=20_000)
    y = np.where(np.arange(N) % 2, np.arange(N) % 3, -1)
    # With "auto" and a small `tol`, data in memory alone take coordinate descent.
    options = {"solver": "mm", "init": "random", "random_state": 0, "max_iter": 20, "tol": 0}
    model = sf.SSNMFClassifier(n_components=4, readout="joint", **options)
    there = model.fit(file, y).predict(file)
    np.testing.assert_array_equal(there, model.fit(matrix, y).predict(matrix))
    narrow = sf.io.open_csr(saved(matrix[:, :-1], tmp_path, "npz"))
    refused("features", model.predict, narrow)


def test_what_needs_memory_says_so(matrix, tmp_path):
    """In one sentence, by one exception."""
    file = sf.io.open_csr(saved(matrix, tmp_path, "npz"))
    y, times = np.arange(N) % 2, np.arange(N).astype("datetime64[D]")
    weights = sf.weights.outer(np.ones(N), None)
    found = sf.NMF(2, max_iter=2, tol=0).fit(matrix)
    calls = {
        "X_weights": lambda: sf.factorize(file, n_components=2, X_weights=weights),
        "init='nndsvda'": lambda: sf.factorize(file, n_components=2, init="nndsvda"),
        "init='least-squares'": lambda: sf.factorize(file, n_components=2, init="least-squares"),
        "criterion 'held-out'": lambda: sf.choose_rank(file, [2]),
        "partial_fit": lambda: sf.NMF(2).partial_fit(file),
        "the splitting of topics": lambda: sf.trees.split_topic(found, 0, 2, file),
        "BayesianNMF": lambda: sf.BayesianNMF(2).fit(file),
        "SupervisedBayesianNMF": lambda: sf.papers.SupervisedBayesianNMF(2).fit(file, y),
        "MarginNMF": lambda: sf.papers.MarginNMF(2).fit(file, y),
        "ConstrainedNMF": lambda: sf.papers.ConstrainedNMF(2).fit(file, y),
        "SeededTopics": lambda: sf.SeededTopics({"a": [0]}).fit(file),
        "DynamicTopics": lambda: sf.DynamicTopics(2).fit(file, times),
        "this call": lambda: sf.complete(file),
    }
    for user, call in calls.items():
        with pytest.raises(TypeError) as raised:
            call()
        assert re.match(
            rf"\w+ is on disk, and {re.escape(user)}.* needs it in memory: load it as a "
            r"whole, or give some of its rows, for example \w+\.rows",
            str(raised.value),
        )
    with pytest.raises(TypeError, match="A is on disk, and this call needs it in memory"):
        sf.represent(matrix, file)


def broken(X, **arrays):
    """A copy of X whose arrays were replaced behind SciPy's back."""
    X = X.copy()
    for name, values in arrays.items():
        setattr(X, name, values)
    return X


def with_first(values, first):
    return np.concatenate([[first], values[1:]]).astype(values.dtype)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: {"indices": X.indices[::-1].copy()}, ValueError, "not sorted, or repeat"),
        (
            lambda X: {"indices": with_first(X.indices, -1)},
            ValueError,
            r"indices\[0\] is -?\d+; expected 0 to 89",
        ),
        (
            lambda X: {"indices": X.indices + M},
            ValueError,
            r"indices\[0\] is -?\d+; expected 0 to 89",
        ),
        (lambda X: {"indices": X.indices.astype(np.int16)}, TypeError, "expected int32 or int64"),
        (lambda X: {"indptr": X.indptr[::-1].copy()}, ValueError, "that rise from 0"),
        (lambda X: {"indptr": X.indptr + 1}, ValueError, "that rise from 0"),
        (lambda X: {"data": X.data[:-1]}, ValueError, "indices and .* values"),
        (lambda X: {"data": -X.data}, ValueError, "Negative values"),
        (lambda X: {"data": with_first(X.data, np.nan)}, ValueError, "contains NaN"),
        (lambda X: {"data": with_first(X.data, np.inf)}, ValueError, "contains infinity"),
        (lambda X: {"data": X.data.astype(complex)}, TypeError, "real numeric dtype"),
        (lambda X: {"data": X.data.reshape(-1, 1)}, ValueError, "expected one dimension"),
    ],
)
def test_files_that_are_no_matrix(matrix, tmp_path, change, error, message):
    saved(broken(matrix, **change(matrix)), tmp_path, "directory")
    refused(message, sf.io.open_csr, tmp_path, n_features=M, error=error)


def test_paths_that_are_no_matrix(matrix, tmp_path):
    refused(r"no.npz does not exist", sf.io.open_csr, tmp_path / "no.npz", error=FileNotFoundError)
    refused("no array 'indptr'", sf.io.open_csr, tmp_path, error=FileNotFoundError)
    saved(matrix, tmp_path, "directory")
    refused("give n_features", sf.io.open_csr, tmp_path)
    refused("memory must be at least 1", sf.io.open_csr, tmp_path, n_features=M, memory=0)
    sp.save_npz(tmp_path / "small.npz", matrix, compressed=True)
    refused("is compressed", sf.io.open_csr, tmp_path / "small.npz")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    refused("has no array 'indptr'", sf.io.open_csr, tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("text")
    refused("neither a directory", sf.io.open_csr, tmp_path / "text.npz")
    (tmp_path / "data.npy").write_text("text")
    refused(r"not hold an array in .npy", sf.io.open_csr, tmp_path, n_features=M)


def test_a_file_that_shrinks_is_noticed(matrix, tmp_path):
    file = sf.io.open_csr(saved(matrix, tmp_path, "directory"), n_features=M, memory=20_000)
    with (tmp_path / "data.npy").open("r+b") as stream:
        stream.truncate(2000)
    refused("has changed since it was opened", sf.factorize, file, n_components=2)


def rewritten(path, change):
    """Change a stored array in place, and leave size and time of the file as they were."""
    before = path.stat()
    array = np.load(path)
    change(array)
    with path.open("r+b") as stream:
        np.save(stream, array)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("indices", 10**6, r"indices\[\d+\] is 1000000; expected 0 to 89"),
        ("indices", M, r"indices\[\d+\] is 90; expected 0 to 89"),
        ("indices", -1, r"indices\[\d+\] is -1; expected 0 to 89"),
        ("indices", 0, "are not sorted, or repeat"),
        ("data", np.nan, "X contains NaN"),
        ("data", -1.0, "Negative values"),
        ("data", np.inf, "X contains infinity"),
    ],
)
def test_a_file_that_changes_during_a_fit_stops_it(matrix, tmp_path, loss, part, value, message):
    file = sf.io.open_csr(saved(matrix, tmp_path, "directory"), n_features=M, memory=9000)

    def change(array):
        array[1000:1003] = value

    def callback(state):
        rewritten(tmp_path / f"{part}.npy", change)

    with pytest.raises(ValueError, match=message):
        sf.factorize(file, n_components=3, loss=loss, callback=callback, init="random")


@pytest.mark.parametrize("index", [2**32 + 5, -(2**31) - 1])
def test_indices_beyond_int32_are_not_cut(matrix, tmp_path, index):
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indices[-1] = index
    with pytest.raises(ValueError, match=f"holds the index {index}; expected 0 to 2147483647"):
        sf.io.open_csr(saved(matrix, tmp_path, "directory"), n_features=M)


def test_a_file_written_during_a_fit_stops_it(matrix, tmp_path):
    path = saved(matrix, tmp_path, "npz")
    file = sf.io.open_csr(path, memory=9000)

    def callback(state):
        sp.save_npz(path, 2 * matrix, compressed=False)

    refused("has changed since it was opened", sf.NMF(n_components=3, callback=callback).fit, file)


def test_shape_of_a_file_must_be_two_integers(matrix, tmp_path):
    path = saved(matrix, tmp_path, "directory")
    for shape in ([N], [N, M, 1], [N + 0.5, M]):
        np.save(tmp_path / "shape.npy", shape)
        refused("expected two integers", sf.io.open_csr, path)


@pytest.mark.parametrize("form", ["npz", "directory"])
def test_relative_paths_and_pickles(matrix, tmp_path, monkeypatch, form):
    """The folder may change after opening, and pickles hold the path, not the data."""
    monkeypatch.chdir(tmp_path)
    path = saved(matrix, tmp_path, form).relative_to(tmp_path)
    file = sf.io.open_csr(path, n_features=M)
    expected = sf.factorize(matrix, n_components=2, random_state=0, max_iter=2, tol=0)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    copied = pickle.dumps(file)
    assert len(copied) < matrix.data.nbytes / 2
    for one in (file, copy.deepcopy(file), pickle.loads(copied), file.as_type("float32")):
        fit = sf.factorize(one, n_components=2, random_state=0, max_iter=2, tol=0)
        np.testing.assert_allclose(fit.A, expected.A, rtol=1e-3)
