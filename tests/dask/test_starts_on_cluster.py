"""A consensus on a cluster: the bits of that in memory, also when a worker is lost."""

import os
import signal
import threading
import time
from hashlib import sha256

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
sfd = pytest.importorskip("ssnmf_fast.dask")

GIVEN = {"n_starts": 8, "random_state": 0, "distance_threshold": 2.0, "tol": 1e-3}


def counts(n=200):
    X = sp.random(n, 60, density=0.15, random_state=0, format="csr")
    X.data = np.ceil(5 * X.data)
    return sp.csr_array(X)


def digest(consensus, path):
    sf.save(consensus, path)
    return sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("weights", [None, sf.weights.outer(rows=np.linspace(1, 2, 200))])
def test_a_file_of_it_is_that_of_one_in_memory(client, tmp_path, weights):
    X, given = counts(), {**GIVEN, "X_weights": weights}
    wanted = digest(sf.consensus(X, 3, n_threads=1, **given), tmp_path / "memory.npz")
    assert digest(sfd.consensus(X, 3, **given), tmp_path / "cluster.npz") == wanted
    assert digest(sf.consensus(X, 3, n_threads=8, **given), tmp_path / "threads.npz") == wanted
    given["executor"] = client.get_executor()
    assert digest(sf.consensus(X, 3, **given), tmp_path / "executor.npz") == wanted


@pytest.mark.parametrize("direct", [True, False])
def test_clients_of_every_kind(cluster_of_threads, direct):
    X, wanted = counts(), sf.consensus(counts(), 3, **GIVEN).usage

    def within():
        with distributed.worker_client() as client:  # sends to workers directly
            return sfd.consensus(X, 3, client=client, **GIVEN).usage

    with distributed.Client(cluster_of_threads, direct_to_workers=direct) as client:
        assert np.array_equal(sfd.consensus(X, 3, **GIVEN).usage, wanted)
        if direct:
            assert np.array_equal(client.submit(within).result(), wanted)


def test_a_dask_array_comes_to_the_caller(client, tmp_path):
    X = counts().toarray()
    found = sfd.consensus(da.from_array(X, chunks=(50, 60)), 3, **GIVEN)
    assert np.array_equal(found.usage, sf.consensus(X, 3, **GIVEN).usage)


def test_a_folder_serves_the_cluster_and_the_memory(client, tmp_path):
    X = counts()
    found = sfd.consensus(X, 3, folder=tmp_path, **GIVEN)
    written = [(path, path.stat().st_mtime_ns) for path in sorted(tmp_path.glob("*.npz"))]
    assert np.array_equal(sf.consensus(X, 3, folder=tmp_path, **GIVEN).usage, found.usage)
    assert written == [(path, path.stat().st_mtime_ns) for path in sorted(tmp_path.glob("*.npz"))]


def test_data_on_disk_are_read_by_the_workers(client, tmp_path):
    sp.save_npz(tmp_path / "X.npz", counts(), compressed=False)
    X = sf.io.open_csr(tmp_path / "X.npz")
    found = sfd.consensus(X, 3, **GIVEN)
    assert np.array_equal(found.usage, sf.consensus(X, 3, **GIVEN).usage)


def test_bad_arguments_are_those_of_the_caller(client):
    refused("loss must be", sfd.consensus, counts(), 3, loss="hinge", **GIVEN)
    refused("Negative values in data passed to X", sfd.consensus, -counts(), 3, **GIVEN)
    for name in ("executor", "n_jobs"):
        with pytest.raises(TypeError, match=f"consensus on a cluster has no argument {name}"):
            sfd.consensus(counts(), 3, **{name: None})


def test_starts_of_a_lost_worker_are_fitted_again(client, tmp_path):
    X, given = counts(2000), {**GIVEN, "n_starts": 20, "tol": 0, "max_iter": 200}
    process = next(iter(client.run(os.getpid).values()))

    def kill():
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("*.npz"))) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = sfd.consensus(X, 3, folder=tmp_path, **given)
    killer.join()
    assert process not in client.run(os.getpid).values()
    assert np.array_equal(found.usage, sf.consensus(X, 3, **given).usage)
