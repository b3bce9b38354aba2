"""Function :func:`factorize_tensor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._data.checks import check_integer, check_random_state, check_real, require_memory
from .._data.fingerprint import data_fingerprint
from .._data.tensor_checks import check_mode
from .._data.threads import resolve_threads
from .._solver.beta_divergences import loss_named
from .._solver.known import penalties_of_factor
from .._solver.loop import FitLoop, steps_of
from .._solver.optimality import Optimality
from .._solver.penalties import Penalty
from .._solver.problem import Problem
from .._solver.receipt import fingerprints
from .._solver.result import FitState, TensorFactorization, normalized
from .._solver.starts import start_B, zeros_that_stay
from .._solver.tensor_starts import mode_names, start_tensor
from .._solver.units import scaled
from .receipts import receipt_of
from .tensor_receipts import parts_of_tensor
from .tensor_terms import terms_of_tensor


def factorize_tensor(
    X: Any,
    *,
    n_components: int,
    loss: str | float = "frobenius",
    X_weights: Any = None,
    labels: Mapping[int, Any] | None = None,
    supervision_loss: str | float = "frobenius",
    supervision_weight: float = 1.0,
    solver: str = "auto",
    init: Any = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    penalties: Any = None,
) -> TensorFactorization:
    """Decompose a nonnegative tensor into a sum of few products of nonnegative vectors.

    The nonnegative CP decomposition (NCPD): minimizes ``sum W .* d(X, M)`` over the model
    ``M[i, j, ..] = sum_q F_0[i, q] F_1[j, q] ..`` with a nonnegative factor F_k for each mode, for
    squared errors [1]_, for counts the Kullback-Leibler divergence [2]_, or any other loss.  For
    two modes it is the factorization of a matrix, as by :func:`factorize`.

    Parameters
    ----------
    X : array_like, or sparse
        Nonnegative tensor of N >= 2 modes, for example terms x documents x months.  Dense:
        an array, in which NaN means missing.  Sparse: ``(coords, values, shape)`` with integer
        coordinates of shape (N, number of entries), or an object with the attributes `coords`,
        `data` and `shape`, such as ``sparse.COO`` and ``scipy.sparse.coo_array``; entries at the
        same place are added up, and nothing of the size of the dense tensor is made.  float32 and
        float64 are kept; integers become float64.
    n_components : int
        Number r of components, at least 1.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, as in :func:`factorize`: squared error, the I-divergence, the Itakura-Saito
        divergence, the beta-divergence of a number from 0 to 2, or a registered loss.  Numbers
        other than 1 and 2 pass over all places of the tensor, unless only some are observed.
    X_weights : optional
        Nonnegative weights of the loss of every entry: ``weights.observed(pattern)`` or
        ``weights.missing(pattern)`` with a tensor (in any of the forms of X), a sequence with a
        vector for each mode whose product is the weight (None stands for ones), or a dense tensor.
    labels : mapping of int to array_like, optional
        Supervision: for some modes a nonnegative matrix Y (n_k x number of labels), which is
        approximated by the factor of the mode, ``Y ~ F_k B_k``.  For example classes of documents
        or seed terms of topics.  NaN = unlabeled.
    supervision_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of the labels; the same choices.
    supervision_weight : float
        Weight of the losses of labels, at least 0.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`factorize`: "auto" is coordinate descent with momentum for squared errors
        without labels, with weights by modes or none; over-relaxed multiplicative updates for all
        other losses.  No rule raises the objective.
    init : {"auto", "random", "least-squares", "svd"}, TensorFactorization or sequence of arrays
        Start.  A result continues from where it ended; so does ``(weights, factors)``, as of
        TensorLy.  A sequence holds a factor (n_k x r) for each mode.  Zeros of given factors stay.
        "least-squares" squares a short fit of squared errors to the square roots of X; "svd" takes
        the leading left singular vectors of every unfolding, their larger part of one sign.
        "auto" is "least-squares" for "kullback-leibler", "random" for all other losses.
    max_iter, tol, random_state, n_threads, verbose
        As in :func:`factorize`.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``F0``, ``F1``, .. up to the
        sizes of their columns) after every check; returning True stops the fit.
    penalties : optional
        Penalties of the factors of all modes, or a mapping from modes to them, such as
        ``{0: L2(1e-3), 1: L2(1e-3), 2: [L2(1e-3), Temporal(0.1)]}``; see
        :mod:`ssnmf_fast.penalties`.  One of a mode is multiplied by the product of the other
        lengths.  Every mode needs one, since components have no scale of their own.

    Returns
    -------
    TensorFactorization

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the argument and how to mend it.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, eq. 4.1.
    .. [2] E. C. Chi, T. G. Kolda, "On tensors, sparsity, and nonnegative factorizations", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk", rng.random((6, 2)), rng.random((5, 2)), rng.random((4, 2)))
    >>> fit = sf.factorize_tensor(X, n_components=2, random_state=0)
    >>> [F.shape for F in fit.factors]
    [(6, 2), (5, 2), (4, 2)]
    >>> coords, values = np.nonzero(X > 0.5), X[X > 0.5]
    >>> sparse = sf.factorize_tensor((coords, values, X.shape), n_components=2, random_state=0)
    """
    inputs = {"X_weights": X_weights, "labels": labels, "penalties": penalties}
    settings = {"loss": loss, "supervision_loss": supervision_loss, "solver": solver, "init": init}
    settings |= {"supervision_weight": supervision_weight, "n_components": n_components}
    settings |= {"max_iter": max_iter, "tol": tol, "random_state": random_state}
    rank = check_integer(n_components, "n_components", 1)
    divergence = loss_named(loss, "loss")
    of_Y = loss_named(supervision_loss, "supervision_loss")
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    threads = resolve_threads(n_threads)
    rng = check_random_state(random_state)
    weight = check_real(supervision_weight, "supervision_weight")
    given = terms_of_tensor(X, X_weights, labels, (divergence, of_Y), weight, threads)
    X, units, relations = given.X, given.units, given.relations
    names, term, dtype = relations[0].names, relations[0].term, X.dtype
    require_memory(rank, X.shape, dtype)

    start = start_tensor(init, X, X_weights, term, rank, rng, units.x)
    factors = {name: padded(F, dtype) for name, F in zip(names, start, strict=True)}
    factors |= {
        f"B{k}": padded(start_B(start[k], Y, rng).T, dtype) for k, Y in given.labels.items()
    }
    kept = {} if isinstance(init, str) else zeros_that_stay(factors, rank)
    penalized = _penalties(penalties, X.shape)
    if penalized:
        units.require_trivial("penalties")
    problem = Problem(factors, relations, kept, penalties=penalized)
    if kept and problem.unreached() > 0:
        raise ValueError(
            "init has zeros, which stay, where X or labels are positive: the Kullback-Leibler "
            "divergence is infinite there. Add a small constant to its factors."
        )

    found = {name: F[:, :rank] for name, F in factors.items()}
    steps = steps_of(problem, loop.solver)
    seen = Optimality(problem, stay=kept)
    unreached = problem.unreached()
    run = loop.run(steps, lambda: found, units=units, unreached=unreached, optimality=seen)
    columns, sizes_of_all, sizes, order = normalized([found[name] for name in names], divergence)
    components = {
        k: np.ascontiguousarray((found[f"B{k}"] * sizes[k])[:, order].T) for k in given.labels
    }
    total = np.ldexp(sizes_of_all, units.x)
    result = TensorFactorization(
        columns, total, components, run.objective, run.n_iter, run.converged
    )
    settings["zeros_stay"] = ",".join(sorted(kept))
    receipt = receipt_of(
        run,
        parts_of_tensor(result),
        threads,
        data=data_fingerprint(scaled(X, units.x), threads),
        inputs=fingerprints(inputs),
        settings=settings,
        dtype=X.dtype,
        residuals=run.residuals,
    )
    return replace(result, receipt=receipt)


def _penalties(given: Any, shape: tuple[int, ...]) -> dict[str, tuple[Penalty, ...]]:
    """Return the penalties of the factors by name, each times the entries that its rows meet."""
    modes = range(len(shape))
    given = {} if given is None else given
    by_mode = given if isinstance(given, Mapping) else dict.fromkeys(modes, given)
    by_mode = {check_mode(k, "a mode of penalties", len(shape)): one for k, one in by_mode.items()}
    names, size = mode_names(len(shape)), prod(shape)
    found = {}
    for mode, each in by_mode.items():
        meets = size // max(shape[mode], 1)
        listed = penalties_of_factor(each, f"mode {mode}", shape[mode], meets)
        if listed:
            found[names[mode]] = listed
    if found and len(found) < len(shape):
        free = next(mode for mode in modes if names[mode] not in found)
        raise ValueError(
            f"penalties has none of mode {free}, whose factor can grow while others shrink; give "
            f"it one, too, for example {{{free}: penalties.L2(1e-3)}}."
        )
    return found


__all__ = ["TensorFactorization", "factorize_tensor"]
