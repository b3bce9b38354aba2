"""Workers that are lost or retired: no wait without end, and no rows lost by a retirement."""

import itertools
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
sfd = pytest.importorskip("ssnmf_fast.dask")
da = pytest.importorskip("dask.array")

from ssnmf_fast.dask import _cluster, _rows  # noqa: E402

N, M, RANK = 300, 60, 5
CUTS = (0, 90, 180, 260, 300)
NOWHERE = "tcp://127.0.0.1:1"


def counts():
    X = sp.random(N, M, density=0.15, random_state=0, format="csr")
    X.data = np.ceil(5 * X.data)
    return sp.csr_array(X)


def pieces():
    return [dask.delayed(counts()[begin:end]) for begin, end in itertools.pairwise(CUTS)]


def array():
    return da.from_array(counts().toarray(), chunks=(90, M))


def fitted(model, **further):
    options = {"n_components": RANK, "random_state": 0, "max_iter": 30, "tol": 0} | further
    if model == "bayesian":
        return sfd.BayesianNMF(**options).fit(array())
    if model == "classifier":
        y = np.arange(N) % 3
        return sfd.SSNMFClassifier(supervision_weight=1.0, **options).fit(array(), y)
    return sfd.factorize(pieces(), loss=model, **options)


class KilledWithResult:
    """In place of Client.gather: kills a worker that has the result, before it is gathered."""

    def __init__(self, monkeypatch, number):
        self.number, self.seen, self.killed = number, 0, []
        self.original = distributed.Client.gather
        kill = self

        def gather(client, futures, *given, **named):
            if isinstance(futures, distributed.Future):
                futures = [futures]
                return client.sync(kill.first, client, futures, *given, **named)
            return client.sync(kill.later, client, futures, *given, **named)

        monkeypatch.setattr(distributed.Client, "gather", gather)

    async def first(self, *given, **named):
        return (await self.later(*given, **named))[0]

    async def later(self, client, futures, *given, **named):
        self.seen += 1
        if self.seen == self.number:
            await distributed.wait(futures)
            (address, *_), *_ = (await client.who_has(futures)).values()
            pids = await client.run(os.getpid)
            self.killed.append(address)
            os.kill(pids[address], signal.SIGKILL)
            await _until_gone(client, address)
        return await self.original(client, futures, *given, asynchronous=True, **named)


async def _until_gone(client, address):
    import asyncio

    while address in await client.nthreads():
        await asyncio.sleep(0.01)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("model", "number"),
    [
        ("kullback-leibler", 2),
        ("kullback-leibler", 12),
        ("frobenius", 9),
        ("bayesian", 15),
        ("classifier", 40),
    ],
)
def test_worker_dies_between_result_and_gather(client, monkeypatch, model, number):
    killer = KilledWithResult(monkeypatch, number)
    fit = fitted(model)
    assert len(killer.killed) == 1
    assert np.isfinite(np.ravel(fit.objective if hasattr(fit, "objective") else 0)).all()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("model", ["kullback-leibler", "frobenius", "bayesian"])
def test_retired_worker_costs_nothing(model):
    """It goes while the fit does its next ten iterations, and the last ten are without it."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        retirements = []

        def retire(state):
            if state.iteration == 10:
                worker = min(client.nthreads())
                thread = threading.Thread(target=client.retire_workers, args=([worker],))
                retirements.append((worker, thread))
                thread.start()
            if state.iteration == 20:
                ((worker, thread),) = retirements
                thread.join()
                assert worker not in client.nthreads()

        expected = fitted(model)
        fit = fitted(model, callback=retire)
        assert len(retirements) == 1
        if model == "bayesian":
            np.testing.assert_array_equal(fit.components_, expected.components_)
        else:
            np.testing.assert_array_equal(fit.A, expected.A)
            assert fit.objective == expected.objective


def test_rows_go_with_their_block():
    key, rows = ("fit", 1), _rows.Rows(np.ones((3, 8)), np.zeros((3, 8)), number=4)
    block = _rows.Block(key, 0, [], np.ones(3), 3, RANK, float, None)
    block.keep(rows)
    buffers = []
    sent = pickle.dumps(block, protocol=5, buffer_callback=buffers.append)
    assert buffers == []  # into which a message would be cut: arrays may be misaligned there
    del block, rows  # as Dask does if the caller has gone
    assert key not in _rows.ROWS
    received = pickle.loads(sent)
    np.testing.assert_array_equal(received.support, np.ones(3))
    np.testing.assert_array_equal(received.rows.S, np.ones((3, 8)))
    assert received.rows.number == 4
    received.rows.number = 6
    older = pickle.loads(sent)  # than what is here
    assert older.rows is received.rows
    assert _rows.adapt(received, (0.0,), 1.0).rows is received.rows


def test_task_that_nobody_knows(client, monkeypatch):
    monkeypatch.setattr(_cluster, "IDLE_TIMEOUT", 2.0)
    future = distributed.Future("no-such-task", client)
    with pytest.raises(_cluster.WorkersLostError, match="no worker has worked on them"):
        _cluster.result_of(client, future)


def test_task_of_a_worker_that_is_gone(client):
    future = client.submit(abs, -1, workers=[NOWHERE], allow_other_workers=False, pure=False)
    refused(NOWHERE, _cluster.result_of, client, future, [NOWHERE], error=_cluster.WorkersLostError)


def test_task_that_no_worker_takes(client, monkeypatch, caplog):
    monkeypatch.setattr(_cluster, "GIVE_UP_AFTER", 3.0)
    monkeypatch.setattr(_cluster, "WARN_AFTER", 0.5)
    future = client.submit(abs, -1, resources={"gpu": 1}, pure=False)
    with pytest.raises(RuntimeError, match="No worker of the Dask cluster accepts a task"):
        _cluster.result_of(client, future)
    assert "No worker of the Dask cluster accepts a task" in caplog.text


def slow():
    import time

    time.sleep(3)
    return 1


def test_long_tasks_are_waited_for(client, monkeypatch):
    monkeypatch.setattr(_cluster, "IDLE_TIMEOUT", 1.5)
    monkeypatch.setattr(_cluster, "GIVE_UP_AFTER", 1.5)
    tasks = [client.submit(slow, pure=False) for _ in range(3)]
    assert _cluster.result_of(client, client.submit(sum, tasks)) == 3


def restarting(client):
    def restart(state):
        if state.iteration == 10:
            client.restart()

    return restart


@pytest.fixture
def clean_client():
    """distributed does not restart a cluster that still has tasks of workers that were killed."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_restart_is_named(clean_client):
    with pytest.raises(RuntimeError, match="was restarted"):
        fitted("frobenius", callback=restarting(clean_client))


def nothing():
    return None


def test_blocks_that_are_no_arrays(client):
    blocks = [dask.delayed(counts()), dask.delayed(nothing)()]
    refused(r"block 1.*NoneType", sfd.factorize, blocks, n_components=2, error=TypeError)
    refused(r"block 0.*NoneType", sfd.NMF(n_components=2).fit, blocks[::-1], error=TypeError)


def test_missing_file_is_named(client, tmp_path):
    path = tmp_path / "absent.npz"
    refused(r"block 0.*absent\.npz", sfd.factorize, [path], n_components=2, error=FileNotFoundError)


def test_rows_lost_before_a_step_that_moves_none(monkeypatch, tmp_path):
    """Rows that are recovered have no sums of an update, which the others still have."""
    rng, lost = np.random.default_rng(0), tmp_path / "lost"
    X = rng.random((N, 2)) @ rng.random((2, M))  # the sums of an update tell too little of its loss
    blocks = [dask.delayed(X[begin:end]) for begin, end in itertools.pairwise(CUTS)]

    def run_task(block, task, step, *factors):
        asks = getattr(step, "asks", ())  # the start is no step
        if block.key[1] == 1 and asks and not step.moves and step.number > 20:
            block.rows = None
            _rows.ROWS.pop(block.key, None)
            lost.touch()
        return original(block, task, step, *factors)

    original = _rows.run_task
    monkeypatch.setattr(_rows, "run_task", run_task)
    options = {"processes": False, "dashboard_address": ":0"}
    with distributed.Client(n_workers=1, threads_per_worker=1, **options):
        fit = sfd.factorize(blocks, n_components=2, random_state=0, max_iter=60, tol=0)
        assert lost.exists()
        np.testing.assert_allclose(np.asarray(fit.S) @ fit.A, X, rtol=0.01, atol=0.01)


def test_factors_are_sent_to_workers_with_rows_alone(client):
    """The loss of another worker would keep the scheduler waiting, and nobody would notice."""
    for place in client.nthreads():
        sent = _cluster.scatter(client, [np.ones(3), np.zeros(2)], [place, place])[place]
        assert {tuple(where) for where in client.who_has(sent).values()} == {(place,)}
    with pytest.raises(_cluster.WorkersLostError):
        _cluster.scatter(client, [np.ones(3)], [NOWHERE])


def test_fits_of_several_threads_leave_the_hook_of_the_process():
    hook, first = sys.unraisablehook, _cluster.note_interrupts()
    with ThreadPoolExecutor(1) as other:
        other.submit(first.__enter__).result()
        with _cluster.note_interrupts():
            other.submit(first.__exit__, None, None, None).result()
    assert sys.unraisablehook is hook
