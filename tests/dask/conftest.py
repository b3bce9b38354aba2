"""A cluster of two worker processes for all tests of this folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

dask = pytest.importorskip("dask", reason="needs ssnmf-fast[dask]")
distributed = pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")

# A worker is forked from a server that has imported everything: it takes a tenth of the time.
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
# Nobody looks at the profile that every worker takes of itself every ten milliseconds.
dask.config.set({"distributed.worker.profile.enabled": False})
distributed.utils.get_mp_context().set_forkserver_preload(
    ["distributed", "distributed.http.worker", "ssnmf_fast.dask"]
)


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="package")
def cluster_of_threads() -> Iterator[Any]:
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        yield cluster


@pytest.fixture
def threads(cluster_of_threads: Any) -> Iterator[Any]:
    """A client of workers in this process: an iteration takes a third of the time.

    The rows that workers keep are then within reach of all of them.  That each finds its own is
    seen in the tests with `client`, of every model and of every kind of data.
    """
    with distributed.Client(cluster_of_threads) as client:
        yield client


class Killer:
    """A callback that kills a worker process."""

    def __init__(self, client: Any, iteration: int) -> None:
        self.client, self.iteration, self.killed = client, iteration, 0

    def __call__(self, state: Any) -> None:
        assert state.S is None
        assert state.A.ndim == 2
        if state.iteration == self.iteration:
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)
            self.killed += 1


@pytest.fixture
def kill_at(client: Any) -> Any:
    """Return what makes a callback that kills a worker at an iteration."""
    return partial(Killer, client)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
