"""Functions :func:`factorize` and :func:`consensus` for data on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import dask.array as da
import numpy as np
import numpy.typing as npt
from distributed import Client

from .._common.arrays import Array, LossName, Matrix, MatrixLike, Seed, Solver
from .._common.docstrings import completing
from .._data.border import check_factor, check_integer, require_memory, warn_of_rank
from .._data.csr_file import CsrFile
from .._models.factorize import factorize as factorize_in_memory
from .._persist.io import save
from .._solver import starts
from .._solver.build import (
    check_weight,
    even_weight,
    factorization,
    features_term,
    pad_factors,
    view_factors,
)
from .._solver.known import Known, matrix_penalties
from .._solver.loop import FitLoop
from .._solver.losses import loss_named
from .._solver.penalties import NONE, PenaltiesLike
from .._solver.problem import UNOBSERVED
from .._solver.relations import Relation, value
from .._solver.result import Factorization, FitState
from .._solver.terms import Term
from ..selection import Consensus
from ..selection import consensus as consensus_in_memory
from ._cluster import cancel, check_client, keep_value, note_interrupts, result_of
from ._data import (
    MEMORY,
    Blocks,
    ByRows,
    FilePath,
    RowWeights,
    as_matrix,
    count_threads,
    load_blocks,
)
from ._fit import ClusterFit, ClusterProblem, begin, cluster_fit, pcg64_of
from ._rows import BlockPlan, copy_rows
from ._rows import losses as losses_of

Callback: TypeAlias = Callable[[FitState], object]


@completing(factorize_in_memory.__doc__ or "")
def factorize(
    X: Blocks,
    y: ByRows | None = None,
    *,
    n_components: int,
    loss: LossName | float = "frobenius",
    supervision_loss: LossName | float = "frobenius",
    supervision_weight: float | Literal["balanced"] = 1.0,
    X_weights: RowWeights = None,
    y_weights: RowWeights = None,
    solver: Solver = "auto",
    init: str | Sequence[ByRows | None] | Factorization = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Seed = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    S_support: ByRows | None = None,
    A_support: npt.ArrayLike | None = None,
    covariates: ByRows | None = None,
    fixed_components: npt.ArrayLike | None = None,
    feature_labels: MatrixLike | None = None,
    feature_weight: float | Literal["balanced"] = 1.0,
    penalties: PenaltiesLike = None,
    dtype: npt.DTypeLike | None = None,
    client: Client | None = None,
    checkpoint: FilePath | None = None,
    memory: int = MEMORY,
) -> Factorization:
    """Factorize X ~ S A and, jointly, Y ~ S B, with the rows of X and S on a Dask cluster.

    The model and its updates are those of :func:`ssnmf_fast.factorize`.  In every iteration each
    worker updates the rows of S of its blocks, and sends their statistics for A and B.  The caller
    adds these in a fixed order and updates A and B: the result has the same bits for any number of
    workers, and depends on the blocks of X only in the last digits.

    Parameters
    ----------
    X : dask.array.Array, shape (n, m), or list
        Nonnegative samples by features, cut by rows into NumPy arrays, SciPy sparse matrices or
        pydata/sparse arrays; or a list with a delayed object, a future or a path for each block.
        Paths are files for :func:`ssnmf_fast.io.open_csr`, which all workers must be able to open;
        they are read in every iteration.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`ssnmf_fast.factorize`.  Coordinate descent is used for Frobenius losses without
        weights or with ``weights.outer``; otherwise "hals" is "mm".  "auto" fills in missing
        entries as in memory if all blocks can, and is otherwise over-relaxed "mm".
    init : {"auto", "random", "least-squares", "random-acol"}, tuple, or Factorization
        Start, the same as in memory for the same `random_state` (an int, or a generator with
        PCG64), except for "least-squares" with weights of single entries.  A tuple holds S (a dask
        array or None), A and, optionally, B; a factorization, such as a checkpoint, holds A and B.
        Without S, its rows are computed from A and B.
    n_threads : int, optional
        Threads of each task; None means one, because a worker runs several tasks at a time.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``A``, ``B``) after every
        check; returning True stops the fit.  Its ``S`` is None.
    S_support, covariates : array_like, dask.array.Array, shape (n, any), or list, optional
        As in :func:`ssnmf_fast.factorize`.
    client : dask.distributed.Client, optional
        None means the current client.
    checkpoint : path, optional
        File to which A and B are saved at every check of the objective.
    memory : int
        Largest size in bytes of the rows of a file in memory at a time.

    Returns
    -------
    Factorization
        S is a dask array with the blocks of X; A and B are NumPy arrays.

    Raises
    ------
    RuntimeError
        If a task fails for another reason, or the scheduler no longer answers.

    Notes
    -----
    Arguments with a row for each sample may be cut into blocks as X is, and arrays of all rows are
    cut like X; weights may contain dask arrays, but are not for data in files.  Penalties between
    rows of S (a graph, smoothness over time) are not supported.

    If a worker is lost, another worker loads its blocks and computes their rows of S from A and B.
    The objective may then rise slightly, once.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> import ssnmf_fast.dask as sfd
    >>> X = da.random.default_rng(0).random((1000, 50), chunks=(250, 50))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     fit = sfd.factorize(X, n_components=5, random_state=0)
    ...     print(fit.S.shape, fit.S.numblocks)
    (1000, 5) (4, 1)
    """
    rank = check_integer(n_components, "n_components", 1)
    threads = count_threads(n_threads)
    check_integer(memory, "memory", 1)
    rng = pcg64_of(random_state)
    losses = loss_named(loss, "loss"), loss_named(supervision_loss, "supervision_loss")
    weight = check_weight(supervision_weight)
    of_features = check_weight(feature_weight, "feature_weight")
    given = _read_init(init, y is not None)
    observer = callback if checkpoint is None else partial(_save_state, checkpoint, callback)
    loop = FitLoop(solver, max_iter, tol, observer, verbose)
    parts = {"y": y, "X_weights": X_weights, "y_weights": y_weights, "support": S_support}
    parts |= {"covariates": covariates, "S": given and given[0]}
    data = load_blocks(check_client(client), X, threads, memory, dtype, **parts)
    require_memory(rank, data.shape, data.dtype, data.shape[1:])  # S stays on the workers
    fixed = {"fixed_components": fixed_components, "A_support": A_support}
    fixed["covariates"] = np.zeros((0, data.n_fixed))  # the rows are on the workers
    known = Known.of((0, data.n_columns), rank, data.dtype, **fixed)
    features = features_term(feature_labels, data, supervision_loss, threads)
    free = not known and S_support is None
    if free and given is None and data.n_labels is None and features is None:
        warn_of_rank(rank, min(data.shape), "min(n, m)")
    others = (data.n_labels, weight), (features.shape[1] if features else None, of_features)
    penalized = matrix_penalties(penalties, data.shape, rank, known, *others, in_memory=False)
    plan = BlockPlan(
        *(rank, losses, 1.0 if weight is None else weight, data.lengths, threads),
        penalties={name: each if name == "S" else NONE for name, each in penalized.items()},
    )
    with cluster_fit(data, plan) as fit:
        factors, scales = _start(fit, init if given is None else given, rng, known, features)
        zeros = {} if given is None else starts.zeros_that_stay(factors, rank)
        zeros |= {name: T & zeros.get(name, T) for name, T in known.moves(factors).items()}
        local = [] if features is None else [Relation(("A", "C"), features, of_features or 0.0)]
        balances = weight is None and data.n_labels is not None
        if balances or (local and of_features is None):
            problem = ClusterProblem(fit, factors, zeros)
            problem.scale_rows(scales)
            values, scales = problem.run_step(asks=(losses_of,)).sums["losses"], np.ones(rank)
            if balances:
                weight = fit.balance(values)
            if local and of_features is None:
                here = value([replace(local[0], coefficient=1.0)], factors)
                local = [replace(local[0], coefficient=even_weight(values[0], here))]
        problem = ClusterProblem(fit, factors, zeros, local, penalized)
        problem.scale_rows(scales)
        _clear_unobserved(fit, problem)
        view = view_factors(factors, rank)

        def current() -> dict[str, Any]:
            return {**view(), "S": None}  # S stays on the workers

        run = loop.run(problem, current)
        S = data.array(problem.read(copy_rows), rank, data.dtype)
        result = factorization(run, current, None if data.n_labels is None else weight)
        return replace(result, S=S, feature_weight=local[0].coefficient if local else None)


Given: TypeAlias = tuple[Any, Any, Any]  # S, A and B, or None for S and B


def _read_init(init: str | Sequence[Any] | Factorization, labels: bool) -> Given | None:
    """Return the factors of a given start; None for a name."""
    if isinstance(init, Factorization):
        return init.S if len(init.S) else None, init.A, init.B if labels else None
    if not isinstance(init, (tuple, list)):
        return None
    if not 2 <= len(init) <= 2 + labels:
        wanted = "(S, A) or (S, A, B)" if labels else "(S, A)"
        raise ValueError(f"init must hold {wanted}; got a sequence of {len(init)}.")
    return init[0], init[1], init[2] if len(init) > 2 else None


def _start(
    fit: ClusterFit, init: Any, rng: np.random.Generator, known: Known, features: Term | None
) -> tuple[dict[str, Array], Array]:
    """Start S on the workers; return the other factors, and factors for the components of S."""
    rank, data, B = fit.plan.rank, fit.data, None
    if isinstance(init, tuple):
        S, A, B = init
        wanted = (rank, data.n_columns), data.dtype, "components x features"
        A = check_factor(A, "init[1] (A)", *wanted)
        A, scales = known.restore("A", A.T).T, np.ones(rank)
        means = np.ones(rank) if S is None else fit.begin()[0]
    else:
        A, means, scales = begin(fit, init, rng, known)
    if data.n_labels is not None and B is not None:
        wanted = (rank, data.n_labels), data.dtype, "components x labels"
        B = check_factor(B, "init[2] (B)", *wanted)
    elif data.n_labels is not None:
        B = rng.random((rank, data.n_labels))
        B *= even_weight(fit.mean("Y"), float(means @ B.mean(axis=1)))
    C = None if features is None else starts.start_B(A.T, features, rng).astype(data.dtype)
    return pad_factors(np.zeros((0, rank), data.dtype), A, B, C), scales


def _clear_unobserved(fit: ClusterFit, problem: ClusterProblem) -> None:
    """Set the columns of A and B to 0 that no entry of the data reaches."""
    for title, name, data in (("X", "A", "X"), ("y", "B", "Y")):
        if (seen := fit.totals.get(f"{data} columns")) is not None:
            if not seen.any():
                raise ValueError(UNOBSERVED.format(title))
            problem.clear(name, (seen > 0) | (name == "A" and "C" in problem.factors))


def _save_state(path: FilePath, callback: Callback | None, state: FitState) -> object:
    """Write A and B to a file, and call the callback of the user."""
    A, B = (None if F is None else np.ascontiguousarray(F) for F in (state.A, state.B))
    assert A is not None
    objective = [(state.iteration, state.objective)]
    none = np.zeros((0, len(A)), dtype=A.dtype)
    save(Factorization(none, A, B, objective, state.iteration), path)
    return None if callback is None else callback(state)


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
