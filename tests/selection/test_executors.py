"""A consensus on executors: the bits of that without, errors, tasks that are cancelled."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from consensus_data import found, planted, same

import ssnmf_fast as sf


def spawning(n_workers):
    return ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, spawning])
def test_an_executor_does_not_change_a_bit(pool, tmp_path):
    X = sp.csr_array(planted()[0])
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    on_disk = sf.io.open_csr(tmp_path / "X.npz")
    weighted = {"X_weights": sf.weights.outer(rows=np.linspace(1, 2, X.shape[0])), "n_starts": 3}
    with pool(2) as executor:
        assert same(found(X, executor=executor), found(X))
        assert same(found(X, executor=executor, **weighted), found(X, **weighted))
        assert same(found(on_disk, executor=executor), found(on_disk))
        given = {"executor": executor, "folder": tmp_path, "n_threads": 2}
        assert same(found(X, n_starts=4, **given), found(X, n_starts=4))
        assert same(found(X, **given), found(X))  # it fits those that are missing


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_cancels_what_waits(error, monkeypatch):
    ran = []

    def fail(self, seed):
        ran.append(seed)
        raise error("in a task")

    monkeypatch.setattr(sf.selection._consensus.StartTask, "run", fail)
    with ThreadPoolExecutor(1) as executor, pytest.raises(error, match="in a task"):
        found(planted(n=20)[0], n_starts=1000, executor=executor)
    assert len(ran) < 1000


def test_executors_are_checked():
    with pytest.raises(TypeError, match=r"executor must be a concurrent\.futures\.Executor; got s"):
        found(np.ones((6, 5)), executor="processes")
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="n_jobs must be None"):
        found(np.ones((6, 5)), executor=executor, n_jobs=2)
