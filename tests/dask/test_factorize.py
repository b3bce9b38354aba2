"""Fits on a cluster: the same as in memory, the same for any number of workers, lost workers."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
sfd = pytest.importorskip("ssnmf_fast.dask")

N, M, K, RANK = 300, 60, 4, 5
CUTS = (0, 90, 180, 260, 300)
LOSSES = ("frobenius", "kullback-leibler")


def counts(seed=0, dtype=np.float64):
    X = sp.random(N, M, density=0.15, random_state=seed, format="csr")
    X.data = np.ceil(5 * X.data)
    return sp.csr_array(X.astype(dtype))


def pieces(X):
    """Blocks of rows, made again by Dask where they are lost."""
    return [dask.delayed(X[begin:end]) for begin, end in itertools.pairwise(CUTS)]


def labels(seed=0):
    rng = np.random.default_rng(seed)
    return np.eye(K)[rng.integers(K, size=N)]


def arguments(**further):
    return {"n_components": RANK, "random_state": 0, "max_iter": 10, "tol": 0} | further


def check_equal(fit, expected, tolerance=1e-10):
    values = [np.array([value for _, value in each.objective]) for each in (fit, expected)]
    np.testing.assert_allclose(*values, rtol=tolerance)
    for name in ("S", "A", "B"):
        found, wanted = getattr(fit, name), getattr(expected, name)
        if wanted is None:
            assert found is None
            continue
        error = np.linalg.norm(np.asarray(found) - wanted)
        assert error <= tolerance * np.linalg.norm(wanted), name


@pytest.mark.parametrize("supervision_loss", [None, *LOSSES])
@pytest.mark.parametrize("loss", LOSSES)
def test_models_equal_those_in_memory(client, loss, supervision_loss):
    X, further = counts(), {"loss": loss}
    Y = None
    if supervision_loss is not None:
        Y, further["supervision_loss"] = labels(), supervision_loss
    fit = sfd.factorize(pieces(X), Y, **arguments(**further))
    check_equal(fit, sf.factorize(X, Y, **arguments(**further)))
    assert fit.S.chunks == ((90, 90, 80, 40), (RANK,))


def observed_share():
    pattern = sp.random(N, M, density=0.4, random_state=1, format="csr") + counts()
    return sp.csr_array(pattern != 0)


WEIGHTS = {
    "outer": lambda: sf.weights.outer(np.linspace(0.5, 2, N), np.linspace(1, 3, M)),
    "observed": lambda: sf.weights.observed(observed_share()),
    "missing": lambda: sf.weights.missing(sp.random(N, M, 0.1, random_state=2, format="csr")),
    "base": lambda: sf.weights.base(0.3, observed_share()),
    "entries": lambda: np.random.default_rng(0).random((N, M)),
}


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_cut_with_the_rows(client, kind, loss):
    # Coordinate descent with listed weights, of "least-squares" too, is for data in memory only.
    further = arguments(
        loss=loss,
        X_weights=WEIGHTS[kind](),
        solver="auto" if kind == "outer" else "mm",
        init="random",
    )
    X, Y = counts(), labels()
    y_weights = sf.weights.outer(rows=(np.arange(N) % 3 == 0).astype(float))
    fit = sfd.factorize(pieces(X), Y, y_weights=y_weights, **further)
    check_equal(fit, sf.factorize(X, Y, y_weights=y_weights, **further))


@pytest.mark.parametrize("init", ["random", "random-acol", "least-squares"])
def test_starts_equal_those_in_memory(client, init):
    X = counts()
    support = np.random.default_rng(3).random((N, RANK)) < 0.7
    further = arguments(init=init, S_support=support, loss="kullback-leibler", max_iter=5)
    fit = sfd.factorize(pieces(X), **further)
    check_equal(fit, sf.factorize(X, **further))
    assert not (np.asarray(fit.S) > 0)[~support].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_balanced_supervision_weighs_as_in_memory(client, loss):
    X, Y = counts(), labels()
    further = arguments(
        loss=loss, supervision_weight="balanced", supervision_loss="kullback-leibler"
    )
    fit, expected = sfd.factorize(pieces(X), Y, **further), sf.factorize(X, Y, **further)
    assert fit.supervision_weight == pytest.approx(expected.supervision_weight, rel=1e-12)
    check_equal(fit, expected)


def test_dense_arrays_with_missing_entries(client):
    X = np.random.default_rng(0).random((N, M))
    X[X < 0.1] = np.nan
    chunks = (tuple(np.diff(CUTS)), M)
    fit = sfd.factorize(da.from_array(X, chunks=chunks), **arguments())
    check_equal(fit, sf.factorize(X, **arguments()))


def test_float32_stays_float32(client):
    X = counts(dtype=np.float32)
    fit = sfd.factorize(pieces(X), **arguments())
    assert fit.A.dtype == np.float32
    assert fit.S.dtype == np.float32
    check_equal(fit, sf.factorize(X, **arguments()), 1e-3)


def test_given_start_and_its_zeros(client):
    rng = np.random.default_rng(0)
    S, A = rng.random((N, RANK)), rng.random((RANK, M))
    S[::3, 0] = A[1, ::2] = 0
    X = counts()
    fit = sfd.factorize(pieces(X), init=(da.from_array(S, chunks=(100, RANK)), A), **arguments())
    check_equal(fit, sf.factorize(X, init=(S, A), **arguments()))
    assert (np.asarray(fit.S)[::3, 0] == 0).all()


def test_files_that_the_workers_open(client, tmp_path):
    X, paths = counts(), []
    for number, (begin, end) in enumerate(itertools.pairwise(CUTS)):
        paths.append(tmp_path / f"{number}.npz")
        sp.save_npz(paths[-1], X[begin:end], compressed=False)
    Y = labels()
    for loss in LOSSES:
        further = arguments(loss=loss, init="random")
        fit = sfd.factorize(paths, Y, memory=2000, **further)
        check_equal(fit, sf.factorize(X, Y, **further))


def test_column_cuts_are_mended_with_a_warning(client):
    X = np.random.default_rng(0).random((N, M))
    with pytest.warns(UserWarning, match="cut by columns"):
        fit = sfd.factorize(da.from_array(X, chunks=(150, 20)), **arguments())
    check_equal(fit, sf.factorize(X, **arguments()))


def test_chunks_of_unknown_length_and_without_rows(client):
    X, Y = np.random.default_rng(0).random((N, M)), labels()
    array = da.from_array(X, chunks=(100, M))
    array = array[da.from_array(np.arange(N) % 300 >= 100, chunks=100)]
    assert np.isnan(array.shape[0])
    fit = sfd.factorize(array, Y[100:], **arguments())
    check_equal(fit, sf.factorize(X[100:], Y[100:], **arguments()))
    assert fit.S.chunks[0] == (0, 100, 100)


def test_results_have_the_blocks_of_data_of_which_some_have_no_rows(threads):
    X = np.random.default_rng(0).poisson(2.0, (60, 8))
    array, rows = da.from_array(X).rechunk({0: (20, 0, 40)}), (20, 0, 40)
    for kind in (sfd.NMF, sfd.BayesianNMF):
        model = kind(2, max_iter=5, tol=0, random_state=0).fit(array)
        lazy = [each for each in vars(model).values() if isinstance(each, da.Array)]
        lazy.append(model.transform(array))
        if kind is sfd.NMF:
            lazy.append(model.transform(array, X_weights=sf.weights.outer(rows=np.ones(60))))
        lazy.append(model.transform([dask.delayed(X[:20]), dask.delayed(X[:0])]))
        for each in lazy[:-1]:
            assert each.chunks[0] == rows
            assert len(each.compute()) == 60
        assert lazy[-1].chunks[0] == rows[:2]


class Frame:
    """The part of a dask DataFrame that tells what it is; the real one needs pyarrow."""

    columns, iloc, index, ndim, shape = ["a"], None, None, 2, (np.nan, 1)
    to_dask_array = isna = None


def test_a_dask_frame_is_refused_with_the_way_out(threads):
    X = Frame()
    for call in (lambda: sfd.factorize(X, n_components=2), lambda: sfd.NMF(2).fit(X)):
        refused(r"to_dask_array\(lengths=True\)", call, error=TypeError)
    fitted = sf.NMF(2, random_state=0).fit(np.ones((8, 3)))
    for call in (sf.NMF(2).fit, fitted.transform, lambda Z: sf.factorize(Z, n_components=2)):
        refused(r"X\.compute\(\)", call, X, error=TypeError)


def test_any_number_of_workers_gives_the_same_bits():
    X, Y = counts(), labels()
    weights = sf.weights.outer(rows=(np.arange(N) % 3 == 0).astype(float))
    learned = dict.fromkeys(("S_shape", "S_mean", "A_shape", "A_mean"), "auto")
    fits = []
    for n_workers in (1, 2, 4):
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster, direct_to_workers=n_workers == 2) as client,
        ):
            for losses in itertools.product(LOSSES, (None, *LOSSES)):
                further = arguments(loss=losses[0], client=client, init="random", max_iter=5)
                given: tuple = ()
                if losses[1] is not None:
                    given = (Y,)
                    further |= {"supervision_loss": losses[1], "y_weights": weights}
                fit = sfd.factorize(pieces(X), *given, **further)
                fits.append((np.asarray(fit.S), fit.A, fit.B, fit.objective))
            model = sfd.BayesianNMF(**arguments(init="random", burn_in=3), **learned)
            S = client.compute(model.fit(pieces(X), client=client).representation_).result()
            fits.append((S, model.components_, model.components_rate_, model.objective_))
    for number, fit in enumerate(fits):
        for found, expected in zip(fit, fits[number % 7], strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("supervision_loss", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_worker_that_is_killed(client, kill_at, loss, supervision_loss):
    X, Y = counts(), labels() if supervision_loss else None
    further = arguments(loss=loss, max_iter=60)
    expected = sf.factorize(X, Y, **further)
    killer = kill_at(30)
    fit = sfd.factorize(pieces(X), Y, callback=killer, **further)
    assert killer.killed == 1
    values = np.array([value for _, value in fit.objective])
    assert values[-1] == pytest.approx(expected.objective[-1][1], rel=5e-3)  # another minimum
    rises = np.flatnonzero(np.diff(values) > 1e-12 * values[0])
    assert set(rises) <= {3}  # between iterations 30 and 40
    assert values[-1] < values[3]
    assert np.asarray(fit.S).shape == (N, RANK)


def test_data_that_cannot_be_made_again(client, kill_at):
    blocks = client.scatter([counts()[:150], counts()[150:]])
    with pytest.raises(RuntimeError, match="were lost, and Dask cannot recompute them"):
        sfd.factorize(blocks, callback=kill_at(10), **arguments(max_iter=100))


def failing(X):
    raise RuntimeError("no such table")


def test_errors_name_the_block(client):
    good, bad = counts()[:150], counts()[150:]
    with pytest.raises(RuntimeError, match="no such table"):
        sfd.factorize([dask.delayed(good), dask.delayed(failing)(bad)], **arguments())
    bad.data[0] = -1
    with pytest.raises(ValueError, match=r"block 1 \(rows 150 to 299\): Negative values in data"):
        sfd.factorize([dask.delayed(good), dask.delayed(bad)], **arguments())
    other = counts(dtype=np.float32)[150:]
    with pytest.raises(ValueError, match="in block 0 and float32 in block 1"):
        sfd.factorize([dask.delayed(good), dask.delayed(other)], **arguments())
    with pytest.raises(ValueError, match="columns; got 60 in block 0 and 59 in block 1"):
        sfd.factorize([dask.delayed(good), dask.delayed(good[:, 1:])], **arguments())


def test_clear_errors_for_bad_arguments(client):
    X = pieces(counts())
    refused(r"ssnmf_fast\.factorize", sfd.factorize, counts(), error=TypeError, **arguments())
    refused("empty list", sfd.factorize, [], **arguments())
    with pytest.raises(ValueError, match="y must have the rows of X; got 299 rows, but X has 300"):
        sfd.factorize(X, labels()[1:], **arguments())
    with pytest.raises(ValueError, match="y_weights are given without y"):
        sfd.factorize(X, y_weights=np.ones((N, K)), **arguments())
    refused(r"nndsvda.*not available", sfd.factorize, X, **arguments(init="nndsvda"))
    with pytest.raises(TypeError, match="client must be"):
        sfd.factorize(X, client="tcp://127.0.0.1:1", **arguments())
    with pytest.raises(ValueError, match=r"init\[1\] \(A\)"):
        sfd.factorize(X, init=(None, np.ones((RANK, M + 1))), **arguments())


def test_checkpoints_go_on(client, tmp_path):
    X, Y, path = counts(), labels(), tmp_path / "fit.npz"
    first = sfd.factorize(pieces(X), Y, checkpoint=path, **arguments(max_iter=30))
    kept = sf.load(path)
    np.testing.assert_array_equal(kept.A, first.A)
    np.testing.assert_array_equal(kept.B, first.B)
    second = sfd.factorize(pieces(X), Y, init=kept, **arguments())
    assert second.objective[0][1] <= first.objective[-1][1] * (1 + 1e-3)
    assert second.objective[-1][1] < first.objective[-1][1]


def test_callbacks_may_stop_and_bytes_are_logged(client, caplog):
    seen = []

    def stop(state):
        seen.append((state.iteration, state.S, state.A.shape))
        return state.iteration == 10

    with caplog.at_level("INFO", logger="ssnmf_fast.dask"):
        fit = sfd.factorize(pieces(counts()), callback=stop, **arguments(max_iter=100))
    assert seen == [(0, None, (RANK, M)), (10, None, (RANK, M))]
    assert fit.n_iter == 10
    assert any("MB moved" in record.message for record in caplog.records)


INTERRUPTED = """
import os, signal, threading, numpy as np, dask.array as da, ssnmf_fast.dask as sfd
from dask.distributed import Client, LocalCluster

def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X = da.random.RandomState(0).random_sample((400, 50), chunks=(100, 50))

        def interrupt(state):
            if state.iteration == 10:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

        try:
            sfd.factorize(X, n_components=3, max_iter=10**6, tol=0, callback=interrupt)
        except KeyboardInterrupt:
            print("interrupted")
        print("usable", sfd.factorize(X, n_components=3, max_iter=3).n_iter)

if __name__ == "__main__":
    main()
"""


def test_interrupts_leave_the_cluster_usable(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    run = [sys.executable, str(script)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["interrupted", "usable", "3"], done.stderr


class InterruptedDestructor:
    """As a future whose deletion is interrupted: Python drops what a destructor raises."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_a_destructor_is_not_lost(client):
    iterations = []

    def interrupt(state):
        iterations.append(state.iteration)
        if state.iteration == 10:
            InterruptedDestructor()

    handler = signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            sfd.factorize(pieces(counts()), **arguments(max_iter=50, tol=0, callback=interrupt))
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert iterations[-1] == 10
    assert sfd.factorize(pieces(counts()), **arguments(max_iter=3)).n_iter == 3


def test_a_scheduler_that_is_lost(tmp_path):
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [*run, *options, "--scheduler-file", str(file)], stderr=subprocess.DEVNULL
    )
    begin = time.monotonic()
    while not file.exists() and time.monotonic() < begin + 60:
        time.sleep(0.1)
    run = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
    worker = subprocess.Popen([*run, "--no-dashboard", "--no-nanny"], stderr=subprocess.DEVNULL)
    path = tmp_path / "fit.npz"

    def kill(state):
        if state.iteration == 20:
            scheduler.kill()
            scheduler.wait()

    try:
        with (
            distributed.Client(scheduler_file=str(file)) as other,
            pytest.raises(sfd.SchedulerLostError, match="no longer answers"),
        ):
            sfd.factorize(
                pieces(counts()),
                **arguments(max_iter=100, client=other, checkpoint=path, callback=kill),
            )
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert sf.load(path).n_iter == 20


def test_ranks_without_use_are_refused_or_warned_of(client):
    blocks = pieces(counts())
    with pytest.raises(ValueError, match=r"n_components=100000000 needs at least [\d.]+ GiB"):
        sfd.factorize(blocks, n_components=100_000_000)
    with pytest.warns(UserWarning, match=r"n_components=61 is more than min\(n, m\) = 60"):
        sfd.factorize(blocks, n_components=61, max_iter=1, tol=0, random_state=0)


def test_a_dtype_other_than_that_of_the_blocks(client, tmp_path):
    X = counts() / 3
    fit = sfd.factorize(pieces(X), dtype="float32", **arguments())
    narrow = X.astype(np.float32)
    same = sfd.factorize(pieces(narrow), **arguments())
    assert fit.A.dtype == fit.S.dtype == np.float32
    np.testing.assert_array_equal(fit.A, same.A)
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    stored = sfd.factorize([tmp_path / "X.npz"], dtype="float32", **arguments())
    assert stored.A.dtype == np.float32
    mixed = [*pieces(X)[:2], *pieces(narrow)[2:]]
    np.testing.assert_array_equal(sfd.factorize(mixed, dtype="float32", **arguments()).A, same.A)
    refused("dtype must be None", sfd.factorize, pieces(X), dtype="float16", **arguments())
