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
    """Factorize X from many random starts on a cluster and return their consensus.

    Each start is a task; starts of a lost worker are fitted again.  X, which must fit into the
    memory of a worker, is sent to the workers once.  The result has the same bits as that of
    :func:`ssnmf_fast.consensus`.

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
        Other arguments of :func:`ssnmf_fast.consensus` except `n_jobs`: `n_starts`, `loss`,
        `folder` and so on.  The folder is on the machine of the caller; both functions can use it.

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
    if "n_jobs" in options:
        raise TypeError("consensus on a cluster has no argument n_jobs: each start is a task.")
    bound = signature(consensus_in_memory).bind(X, n_components, n_threads=n_threads, **options)
    bound.apply_defaults()
    given = bound.arguments
    others = ("X", "n_jobs", "n_threads", "folder", "verbose")
    recipe = Recipe(**{name: each for name, each in given.items() if name not in others})
    observed = given["folder"], n_threads, given["verbose"]
    client = check_client(client)
    fits = partial(_fit_on_workers, client, count_threads(n_threads))
    with note_interrupts():
        if isinstance(X, da.Array):
            X = result_of(client, client.compute(X))
        return agreement(as_matrix(X), recipe, fits, *observed)


def _fit_on_workers(
    client: Client, threads: int, X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, rows: Array
) -> Iterator[Start]:
    """Yield the starts in order; all tasks are submitted at once."""
    shared = _Shared(X.matrix, rows, {**recipe.fitting, "n_threads": threads})
    left, started = list(seeds), list[Future]()

    def begin() -> None:
        """Submit unfinished starts; send the data again, which a lost worker may have had."""
        (sent,) = scatter(client, [shared], ())[""]
        started[:] = client.map(_fit, [sent] * len(left), left, pure=False)

    try:
        retry(client, begin)
        while left:
            yield retry(client, lambda: result_of(client, started[0]), begin)
            del left[0], started[0]
    finally:
        cancel(client, started)


@dataclass(frozen=True)
class _Shared:
    """Shared input of all tasks: clean data, samples for `assignments`, settings."""

    matrix: Matrix | CsrFile
    samples: Array
    arguments: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from the network, where arrays may be misaligned, once per worker."""
        matrix = as_matrix(state["matrix"])
        if sp.issparse(matrix):
            parts = map(as_matrix, (matrix.data, matrix.indices, matrix.indptr))
            matrix.data, matrix.indices, matrix.indptr = parts
        vars(self).update(state, matrix=matrix, samples=as_matrix(state["samples"]))


def _fit(shared: _Shared, seed: int) -> Start:
    fit = factorize(CleanMatrix(shared.matrix), random_state=seed, **shared.arguments)
    return start_of(fit, shared.samples)
