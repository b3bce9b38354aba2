"""Function :func:`consensus` with every start on a worker of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

import scipy.sparse as sp
from distributed import Client

from .._common.arrays import Array
from .._data.border import CleanMatrix
from .._models.factorize import factorize
from ..selection import Consensus
from ..selection._consensus import agreement
from ..selection._starts import Recipe, Start, start_of
from ._block import as_matrix
from ._cluster import check_client, insist
from ._data import count_threads
from ._on_cluster import gather
from ._waiting import cancel, note_interrupts, result_of, scatter


def consensus(
    X: Any,
    n_components: int,
    *,
    n_starts: int = 100,
    loss: str | float = "frobenius",
    distance_threshold: float = 0.5,
    neighborhood_fraction: float = 0.3,
    X_weights: Any = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    init: str = "random",
    folder: str | PathLike[str] | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    client: Client | None = None,
) -> Consensus:
    """Factorize X from many random starts on a cluster, and return what they agree on.

    Every start is a task.  X, which must fit into the memory of a worker, is sent to the workers
    once.  The result has the same bits as that of :func:`ssnmf_fast.consensus`.

    Parameters
    ----------
    X : array_like, scipy.sparse, CsrFile or dask.array.Array, shape (n, m)
        Samples by features, nonnegative.  A dask array comes to the caller; a file must be there
        for all workers.
    n_components, n_starts, loss, distance_threshold, neighborhood_fraction, X_weights, max_iter, \
tol, init, random_state, verbose
        As in :func:`ssnmf_fast.consensus`.
    folder : path, optional
        Where the caller keeps the result of every start, as in :func:`ssnmf_fast.consensus`, which
        can go on with it too.
    n_threads : int, optional
        Threads of each task; None takes one, since a worker runs several tasks at a time.
    client : dask.distributed.Client, optional
        None takes the one in use.

    Returns
    -------
    Consensus

    Raises
    ------
    ValueError, TypeError
        As :func:`ssnmf_fast.consensus`.
    RuntimeError
        If a task fails otherwise, or the scheduler no longer answers.

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
    fitting = {"loss": loss, "X_weights": X_weights, "max_iter": max_iter, "tol": tol}
    given = n_components, n_starts, distance_threshold, neighborhood_fraction, init, random_state
    recipe = Recipe.checked(*given, fitting)
    client = check_client(client)
    fits = partial(_fit_on_workers, client, count_threads(n_threads))
    with note_interrupts():
        return agreement(as_matrix(gather(client, X)), recipe, fits, folder, n_threads, verbose)


def _fit_on_workers(
    client: Client,
    threads: int,
    X: CleanMatrix,
    seeds: Sequence[int],
    recipe: Recipe,
    samples: Array,
) -> Iterator[Start]:
    """Give the starts in their order; all are begun at once."""
    shared = _Shared(X.matrix, samples, {**recipe.fitting, "n_threads": threads})
    started: dict[int, Any] = {}

    def begin(number: int) -> None:
        """Start what is not done; a lost worker may have had the data, which are sent again."""
        (sent,) = scatter(client, [shared], ())[""]
        for later in range(number, len(seeds)):
            started[later] = client.submit(_fit, sent, seeds[later], pure=False)

    def take(number: int) -> Start:
        found: Start = result_of(client, started[number])
        return found

    try:
        insist(client, partial(begin, 0))
        for number in range(len(seeds)):
            yield insist(client, partial(take, number), partial(begin, number))
            del started[number]
    finally:
        cancel(client, [*started.values()])


@dataclass(frozen=True)
class _Shared:
    """What all tasks take: clean data, the samples whose components are kept, the settings."""

    matrix: Any
    samples: Array
    arguments: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.matrix, self.samples, self.arguments)


def _received(matrix: Any, samples: Array, arguments: dict[str, Any]) -> _Shared:
    """Return what came from the network, where arrays may be misaligned, once for each worker."""
    if sp.issparse(matrix):
        parts = tuple(map(as_matrix, (matrix.data, matrix.indices, matrix.indptr)))
        matrix = sp.csr_array(parts, shape=matrix.shape, copy=False)
    return _Shared(as_matrix(matrix), as_matrix(samples), arguments)


def _fit(shared: _Shared, seed: int) -> Start:
    fit = factorize(CleanMatrix(shared.matrix), random_state=seed, **shared.arguments)
    return start_of(fit, shared.samples)
