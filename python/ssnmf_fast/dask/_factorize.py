"""Function :func:`factorize` for data on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from distributed import Client

from .._common.arrays import Array
from .._data.border import check_factor, check_integer, require_memory, warn_of_rank
from .._persist.io import save
from .._solver.build import (
    check_weight,
    even_weight,
    factorization,
    features_term,
    pad_factors,
    view_factors,
)
from .._solver.known import Known, check_penalties
from .._solver.loop import FitLoop
from .._solver.losses import loss_named
from .._solver.penalties import NONE, Penalties, require_scale
from .._solver.relations import Relation, value
from .._solver.result import Factorization, FitState
from .._solver.starts import start_B as start_of_labels
from .._solver.starts import zeros_that_stay
from .._solver.terms import Term
from ._block import Plan, copy_of_rows
from ._block import losses as losses_of
from ._cluster import check_client
from ._data import MEMORY, Data, count_threads, load
from ._fit import ClusterFit, ClusterProblem, begin, pcg64_of, start_B, without_S


def factorize(
    X: Any,
    Y: Any = None,
    *,
    n_components: int,
    loss: str | float = "frobenius",
    supervision_loss: str | float = "frobenius",
    supervision_weight: float | Literal["balanced"] = 1.0,
    X_weights: Any = None,
    Y_weights: Any = None,
    solver: str = "auto",
    init: Any = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    S_support: Any = None,
    A_support: Any = None,
    covariates: Any = None,
    fixed_components: Any = None,
    feature_labels: Any = None,
    feature_weight: float | Literal["balanced"] = 1.0,
    penalties: Any = None,
    dtype: Any = None,
    client: Client | None = None,
    checkpoint: str | Path | None = None,
    memory: int = MEMORY,
) -> Factorization:
    """Factorize X ~ S A and, jointly, Y ~ S B, with the rows of X and S on a Dask cluster.

    The model and its updates are those of :func:`ssnmf_fast.factorize`.  In every iteration each
    worker updates the rows of S that belong to its blocks, and sends their statistics for A and B;
    these sums are added in a fixed order, and A and B are updated by the caller.  So the result
    depends on how X is cut into blocks, in the last digits, but not on the number of workers.

    Parameters
    ----------
    X : dask.array.Array, shape (n, m), or list
        Samples by features, nonnegative, cut by rows into chunks of NumPy arrays, SciPy sparse
        matrices or pydata/sparse arrays; or a list with a delayed object, a future or a path for
        each block of rows.  A path is that of a file as :func:`ssnmf_fast.io.open_csr` takes, which
        the workers open and read in every iteration: it must be there for all of them.
    Y : array_like, scipy.sparse, dask.array.Array, shape (n, k), or list, optional
        Supervision.  Arrays of all rows are cut as X is.
    n_components, loss, supervision_loss, supervision_weight, max_iter, tol, random_state, verbose
        As in :func:`ssnmf_fast.factorize`.
    X_weights, Y_weights : None, array, or from :mod:`ssnmf_fast.weights`
        Weights of the loss of every entry; arrays within may be dask arrays.  Data in files take
        none.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`ssnmf_fast.factorize`, but that coordinate descent is used only where all rows
        share one curvature: for Frobenius losses without weights or with ``weights.outer``.
        Elsewhere "hals" is "mm", and "auto" over-relaxed "mm".
    init : {"auto", "random", "least-squares", "random-acol"}, tuple, or Factorization
        Start, the same as in memory for the same `random_state` (an int, or a generator with
        PCG64), but for "least-squares" with weights of single entries.  A tuple holds S, which may
        be a dask array or None, A and, optionally, B.  A factorization, as
        :func:`ssnmf_fast.load` gives from a checkpoint, gives A and B.  Without S, the rows are
        solved for.
    n_threads : int, optional
        Threads of each task; None takes one, since a worker runs several tasks at a time.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``A``, ``B``) after every
        check; returning True stops the fit.  Its ``S`` is None.
    S_support, covariates : array_like, dask.array.Array, shape (n, any), or list, optional
        As in :func:`ssnmf_fast.factorize`.
    A_support, fixed_components, feature_labels, feature_weight, penalties, dtype
        As in :func:`ssnmf_fast.factorize`, but that S takes no penalty between its rows (a graph,
        smoothness over time).
    client : dask.distributed.Client, optional
        None takes the one in use.
    checkpoint : path, optional
        File to which A and B are written at every check of the objective, as
        :func:`ssnmf_fast.save` does.
    memory : int
        Bytes that the rows of one file in memory at a time may take.

    Returns
    -------
    Factorization
        S is a dask array, cut as X is; A and B are NumPy arrays.

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the block, the argument and how to mend it.
    RuntimeError
        If a task fails otherwise, or the scheduler no longer answers.

    Notes
    -----
    When a worker is lost, its blocks are loaded again by another one, and their rows of S are
    solved for, given A and B.  The objective may then rise once, by little.

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
    given = _read_init(init, Y is not None)
    seen = callback if checkpoint is None else _save_to(checkpoint, callback)
    loop = FitLoop(solver, max_iter, tol, seen, verbose)
    client = check_client(client)
    parts = {"Y": Y, "X_weights": X_weights, "Y_weights": Y_weights, "support": S_support}
    parts["covariates"] = covariates
    parts |= {"S": None if given is None else given[0], "dtype": dtype}
    data = load(client, X, threads, memory, **parts)
    require_memory(rank, data.shape, data.dtype, data.shape[1:])  # S stays with the workers
    A_known = {"A_support": A_support, "fixed_components": fixed_components}
    covariates = np.zeros((0, data.n_fixed))  # its rows are elsewhere
    known = Known.of((0, data.n_columns), rank, data.dtype, **A_known, covariates=covariates)
    features = features_term(feature_labels, data, supervision_loss, threads)
    free = not known and S_support is None
    if free and given is None and data.n_labels is None and features is None:
        warn_of_rank(rank, min(data.shape), "min(n, m)")
    penalized = _penalties(penalties, data, features, rank)
    if known.n_given < rank:
        pairs = [("S", "A")]
        pairs += [("S", "B")] if data.n_labels is not None and weight != 0 else []
        pairs += [("A", "C")] if features is not None and of_features != 0 else []
        require_scale(penalized, pairs)
    plan = Plan(rank, losses, 1.0 if weight is None else weight, data.lengths, threads)
    elsewhere = () if features is None else (features.gram,)
    in_blocks = {name: each if name == "S" else NONE for name, each in penalized.items()}
    plan = replace(plan, penalties=in_blocks, elsewhere=elsewhere)
    with ClusterFit(data, plan) as fit:
        if given is None:
            A, means, scales = begin(fit, init, rng, known)
            B = None
        else:
            A, B, means = _begin_with(fit, given)
            A, scales = known.restore("A", A.T).T, np.ones(rank)
        if B is None and data.n_labels is not None:
            B = start_B(fit, means, rng)
        C = None if features is None else start_of_labels(A.T, features, rng).astype(data.dtype)
        factors = pad_factors(np.zeros((0, rank), data.dtype), A, B, C)
        zeros = {} if given is None else zeros_that_stay(factors, rank)
        moves = known.moves(factors)
        zeros |= {name: T & zeros.get(name, T) for name, T in moves.items()}
        local = [] if features is None else [Relation(("A", "C"), features, of_features or 0.0)]
        balances = weight is None and data.n_labels is not None
        if balances or (local and of_features is None):
            problem = ClusterProblem(fit, factors, zeros)
            problem.scale_rows(scales)
            found, scales = problem.order(asks=(losses_of,)).sums["losses"], np.ones(rank)
            if balances:
                weight = fit.balance(found)
            if local and of_features is None:
                here = value([replace(local[0], coefficient=1.0)], factors)
                local = [replace(local[0], coefficient=even_weight(found[0], here))]
        problem = ClusterProblem(fit, factors, zeros, local, penalized)
        problem.scale_rows(scales)
        current = without_S(view_factors(factors, rank))
        run = loop.run(loop.steps(problem), current, unreached=problem.unreached())
        S = data.array(problem.read(copy_of_rows), rank, data.dtype)
        result = factorization(run, current, None if data.n_labels is None else weight)
        return replace(result, S=S, feature_weight=local[0].coefficient if local else None)


def _penalties(given: Any, data: Data, features: Term | None, rank: int) -> dict[str, Penalties]:
    """Return the penalties of the factors, those of S without any between its rows."""
    rows = {"S": data.shape[0], "A": data.n_columns}
    rows |= {} if data.n_labels is None else {"B": data.n_labels}
    rows |= {} if features is None else {"C": features.shape[1]}
    found = check_penalties(given, rows, data.shape, rank)
    if not all(penalty.by_rows for penalty in found.get("S", NONE).listed):
        raise ValueError(
            "S has a penalty between samples, and their rows are on different workers; leave it "
            "out, or fit in memory."
        )
    return found


def _read_init(init: Any, labels: bool) -> tuple[Any, Any, Any] | None:
    """Return S, A and B of a start that is given; S and B may be None."""
    if isinstance(init, Factorization):
        S = init.S if len(init.S) else None
        return S, init.A, init.B if labels else None
    if not isinstance(init, (tuple, list)):
        return None
    if not 2 <= len(init) <= 2 + labels:
        wanted = "(S, A) or (S, A, B)" if labels else "(S, A)"
        raise ValueError(f"init must hold {wanted}; got a sequence of {len(init)}.")
    return init[0], init[1], init[2] if len(init) > 2 else None


def _begin_with(fit: ClusterFit, given: tuple[Any, Any, Any]) -> tuple[Array, Array | None, Array]:
    """Return A and B of a start that is given, and the means of S, which is set on the workers."""
    data, rank = fit.data, fit.plan.rank
    shape = rank, data.n_columns
    A = check_factor(given[1], "init[1] (A)", shape, data.dtype, "components x features")
    means = np.ones(rank) if given[0] is None else fit.begin()[0]
    if data.n_labels is None or given[2] is None:
        return A, None, means
    shape = rank, data.n_labels
    B = check_factor(given[2], "init[2] (B)", shape, data.dtype, "components x labels")
    return A, B, means


def _save_to(
    path: str | Path, callback: Callable[[FitState], Any] | None
) -> Callable[[FitState], Any]:
    """Return a callback that writes A and B to a file, and calls the user's."""

    def save_state(state: FitState) -> Any:
        A, B = (None if F is None else np.ascontiguousarray(F) for F in (state.A, state.B))
        assert A is not None
        objective = [(state.iteration, state.objective)]
        none = np.zeros((0, len(A)), dtype=A.dtype)
        save(Factorization(none, A, B, objective, state.iteration), path)
        return None if callback is None else callback(state)

    return save_state
