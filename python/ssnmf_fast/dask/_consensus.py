"""Function :func:`consensus` with every start on a worker of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import dask.array as da
from distributed import Client

from .._common.arrays import Matrix
from .._data.csr_file import CsrFile
from ..selection import Consensus
from ..selection import consensus as consensus_in_memory
from ._cluster import cancel, check_client, keep_value, note_interrupts, result_of
from ._data import as_matrix


def consensus(
    X: Matrix | CsrFile | da.Array,
    n_components: int,
    *,
    n_threads: int | None = None,
    client: Client | None = None,
    **options: Any,
) -> Consensus:
    """Factorize X from many random starts on a cluster and return their consensus.

    Each start is a task; starts of a lost worker are fitted again.  X, which must fit into the
    memory of a worker, is sent to the workers once, and not with every task as by
    :func:`ssnmf_fast.consensus` with the executor of a client.  The results have the same bits.

    Parameters
    ----------
    X : array_like, scipy.sparse, CsrFile or dask.array.Array, shape (n, m)
        Nonnegative samples by features.  A dask array is sent to the caller; all workers need
        access to a file.
    n_components : int
        Rank r, at least 1.
    n_threads : int, optional
        Threads of each task; None means one, because a worker runs several tasks at a time.
    client : dask.distributed.Client, optional
        None means the current client.
    **options
        Other arguments of :func:`ssnmf_fast.consensus` except `n_jobs` and `executor`:
        `n_starts`, `loss`, `folder` and so on.  The folder is on the machine of the caller; both
        functions can use it.

    Returns
    -------
    Consensus

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> import ssnmf_fast.dask as sfd
    >>> X = np.random.default_rng(0).poisson(1.0, (100, 30))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     found = sfd.consensus(X, 2, n_starts=4, random_state=0)
    >>> found.usage.shape
    (100, 2)
    """
    if taken := {"n_jobs", "executor"} & {*options}:
        names = ", ".join(sorted(taken))
        raise TypeError(f"consensus on a cluster has no argument {names}: each start is a task.")
    client = check_client(client)
    with note_interrupts():
        if isinstance(X, da.Array):
            X = result_of(client, client.compute(X))
        given = {"executor": ClusterExecutor(client), "n_threads": n_threads, **options}
        return consensus_in_memory(as_matrix(X), n_components, **given)


class ClusterExecutor(Executor):
    """The workers of a cluster; the scheduler keeps the first argument, which all tasks share."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def map(  # type: ignore[override]
        self, task: Callable[..., Any], shared: Sequence[Any], *each: Sequence[Any]
    ) -> Iterator[Any]:
        kept = [keep_value(self._client, shared[0])] * len(shared)
        futures = self._client.map(task, kept, *each, pure=False)
        try:
            for future in futures:
                yield result_of(self._client, future)
        finally:
            cancel(self._client, futures)
