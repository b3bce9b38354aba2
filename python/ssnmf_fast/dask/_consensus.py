"""Function :func:`consensus` with every start on a worker of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import dask.array as da
import scipy.sparse as sp
from distributed import Client, Future

from .._common.arrays import Array, Matrix
from .._data.border import CleanMatrix
from .._data.csr_file import CsrFile
from .._models.factorize import factorize
from ..selection import Consensus
from ..selection import consensus as consensus_in_memory
from ..selection._consensus import Recipe, Start, agreement, start_of
from ._cluster import cancel, check_client, note_interrupts, result_of, retry, scatter
from ._data import as_matrix, count_threads


def consensus(
    X: Matrix | CsrFile | da.Array,
    n_components: int,
    *,
    n_threads: int | None = None,
    client: Client | None = None,
    **options: Any,
) -> Consensus:
    """Factorize X from many random starts on a cluster, and return what they agree on.

    Every start is a task.  X, which must fit into the memory of a worker, is sent to the workers
    once.  The result has the same bits as that of :func:`ssnmf_fast.consensus`.

    Parameters
    ----------
    X : array_like, scipy.sparse, CsrFile or dask.array.Array, shape (n, m)
        Samples by features, nonnegative.  A dask array is sent to the caller; a file must be there
        for all workers.
    n_components : int
        Rank r, at least 1.
    n_threads : int, optional
        Threads of each task; None takes one, since a worker runs several tasks at a time.
    client : dask.distributed.Client, optional
        None takes the one in use.
    **options
        The other arguments of :func:`ssnmf_fast.consensus` except `n_jobs`: `n_starts`, `loss`,
        `folder` and so on.  The folder is one of the caller, and serves both functions.

    Returns
    -------
    Consensus

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As :func:`ssnmf_fast.consensus` and :func:`ssnmf_fast.dask.factorize`.

    Notes
    -----
    When a worker is lost, its starts are fitted again by others.

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
    if "n_jobs" in options:
        raise TypeError("consensus on a cluster has no argument n_jobs: each start is a task.")
    bound = signature(consensus_in_memory).bind(X, n_components, n_threads=n_threads, **options)
    bound.apply_defaults()
    settings = dict(bound.arguments)
    observed = settings["folder"], n_threads, settings["verbose"]
    for name in ("X", "n_jobs", "n_threads", "folder", "verbose"):
        del settings[name]
    recipe = Recipe(**settings)
    client = check_client(client)
    fits = partial(_fit_on_workers, client, count_threads(n_threads))
    with note_interrupts():
        if isinstance(X, da.Array):
            X = result_of(client, client.compute(X))
        return agreement(as_matrix(X), recipe, fits, *observed)


def _fit_on_workers(
    client: Client, threads: int, X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, rows: Array
) -> Iterator[Start]:
    """Give the starts in their order; all are begun at once."""
    shared = _Shared(X.matrix, rows, {**recipe.fitting, "n_threads": threads})
    started: dict[int, Future] = {}

    def begin(number: int) -> None:
        """Start what is not done; a lost worker may have had the data, which are sent again."""
        (sent,) = scatter(client, [shared], ())[""]
        for later in range(number, len(seeds)):
            started[later] = client.submit(_fit, sent, seeds[later], pure=False)

    def take(number: int) -> Start:
        start: Start = result_of(client, started[number])
        return start

    try:
        retry(client, partial(begin, 0))
        for number in range(len(seeds)):
            yield retry(client, partial(take, number), partial(begin, number))
            del started[number]
    finally:
        cancel(client, [*started.values()])


@dataclass(frozen=True)
class _Shared:
    """What all tasks take: clean data, the samples whose components are kept, the settings."""

    matrix: Matrix | CsrFile
    samples: Array
    arguments: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what came from the network, where arrays may be misaligned, once for each worker."""
        matrix = state["matrix"]
        if sp.issparse(matrix):
            parts = tuple(map(as_matrix, (matrix.data, matrix.indices, matrix.indptr)))
            matrix = sp.csr_array(parts, shape=matrix.shape, copy=False)
        vars(self).update(state, matrix=as_matrix(matrix), samples=as_matrix(state["samples"]))


def _fit(shared: _Shared, seed: int) -> Start:
    fit = factorize(CleanMatrix(shared.matrix), random_state=seed, **shared.arguments)
    return start_of(fit, shared.samples)
