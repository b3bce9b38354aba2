"""Function :func:`factorize_tensor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._backend.layout import padded
from .._common.random import generator
from .._data.checks import check_integer, check_matrix, check_option, check_real
from .._data.tensors import SparseTensor, check_tensor
from .._data.threads import resolve_threads
from .._solver.beta_divergences import loss_named
from .._solver.loop import FitLoop, steps_of
from .._solver.problem import Problem
from .._solver.relations import Relation
from .._solver.starts import start_B, zeros_that_stay
from .._solver.state import State
from .._solver.tensor_result import TensorFactorization, normalised
from .._solver.tensor_starts import mode_names, start_tensor
from .._solver.tensor_terms import Tensor, tensor_term
from .._solver.units import Units, exponent_of
from .._solver.weights import build_term

LOSSES = ("frobenius", "kullback-leibler")


def factorize_tensor(
    X: Any,
    *,
    n_components: int,
    loss: str = "frobenius",
    weights: Any = None,
    labels: Mapping[int, Any] | None = None,
    supervision: str = "frobenius",
    supervision_weight: float = 1.0,
    solver: str = "auto",
    init: Any = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[State], Any] | None = None,
    verbose: int = 0,
) -> TensorFactorization:
    """Decompose a nonnegative tensor into a sum of few products of nonnegative vectors.

    The nonnegative CP decomposition (NCPD): minimises ``sum W .* d(X, M)`` over the model
    ``M[i, j, ..] = sum_q F_0[i, q] F_1[j, q] ..`` with a nonnegative factor F_k for each mode, for
    squared errors [1]_ or, for counts, the Kullback-Leibler divergence [2]_.  For two modes it is
    the factorisation of a matrix, as by :func:`factorize`.

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
    loss : {"frobenius", "kullback-leibler"}
        Squared error, or the I-divergence.
    weights : optional
        Nonnegative weights of the loss of every entry: ``weights.observed(pattern)`` or
        ``weights.missing(pattern)`` with a tensor (in any of the forms of X), a sequence with a
        vector for each mode whose product is the weight (None stands for ones), or a dense tensor.
    labels : mapping of int to array_like, optional
        Supervision: for some modes a nonnegative matrix Y (n_k x number of labels), which is
        approximated by the factor of the mode, ``Y ~ F_k B_k``.  For example classes of documents
        or seed terms of topics.  NaN = unlabelled.
    supervision : {"frobenius", "kullback-leibler"}
        Loss of the labels.
    supervision_weight : float
        Weight of the losses of labels, at least 0.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`factorize`: "auto" is coordinate descent with momentum for squared errors
        without labels, with weights by modes or none; over-relaxed multiplicative updates for the
        Kullback-Leibler loss.  No rule raises the objective.
    init : {"auto", "random", "least-squares", "svd"} or sequence of arrays
        Start; a sequence holds a factor (n_k x r) for each mode, whose zeros stay.
        "least-squares" squares a short fit of squared errors to the square roots of X; "svd" takes
        the leading left singular vectors of every unfolding, their larger part of one sign.
        "auto" is "random" for "frobenius", "least-squares" for "kullback-leibler".
    max_iter : int
        Largest number of iterations, at least 0.
    tol : float
        Stop when the objective falls by less than `tol` times its first value per iteration
        (checked every 10 iterations); 0 never stops early.
    random_state : None, int, Generator or RandomState
        Seed of the start.
    n_threads : int, optional
        Number of threads; it does not change the result.  None takes what the machine grants.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``F0``, ``F1``, .. up to the
        sizes of their columns) after every check; returning True stops the fit.
    verbose : int
        1 shows progress on standard error: a bar on a terminal, lines elsewhere.

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
    rank = check_integer(n_components, "n_components", 1)
    check_option(loss, "loss", LOSSES)
    check_option(supervision, "supervision", LOSSES)
    loop = FitLoop.checked(solver, max_iter, tol, callback, verbose)
    threads = resolve_threads(n_threads)
    rng = generator(random_state)
    X, exponent = in_units(check_tensor(X, "X"))
    term = tensor_term(X, weights, loss_named(loss, "loss"), threads)
    names = mode_names(len(X.shape))
    dtype = X.dtype

    related, label_factors = _labelled(labels, X, dtype, supervision, threads)
    weight = check_real(supervision_weight, "supervision_weight")
    units = Units.of(
        exponent, 0, (term.loss, loss_named(supervision, "supervision")), bool(related)
    )
    units = units.weighing(weight) if related else units
    of_data, of_labels = units.coefficients(weight) if related else (1.0, 1.0)
    relations = [Relation(names, term, of_data)]
    relations += [Relation(pair, labelled, of_labels) for pair, labelled in related]

    if not isinstance(init, str):
        init = _given_in_units(init, exponent)
    start = start_tensor(init, X, weights, term, rank, rng)
    factors = {name: padded(F, dtype) for name, F in zip(names, start, strict=True)}
    for name, (mode, Y) in label_factors.items():
        factors[name] = padded(start_B(start[mode], Y, rng).T, dtype)
    kept = {} if isinstance(init, str) else zeros_that_stay(factors, rank)
    problem = Problem(factors, relations, kept)

    found = {name: F[:, :rank] for name, F in factors.items()}
    steps = steps_of(problem, loop.solver)
    run = loop.run(steps, lambda: found, units=units, unreached=problem.unreached())
    columns, sizes_of_all, sizes, order = normalised(
        [found[name] for name in names], loss == "kullback-leibler"
    )
    components = {
        mode: np.ascontiguousarray((found[name] * sizes[mode])[:, order].T)
        for name, (mode, _) in label_factors.items()
    }
    total = np.ldexp(sizes_of_all, exponent)
    return TensorFactorization(columns, total, components, run.objective, run.n_iter, run.converged)


def in_units(X: Tensor) -> tuple[Tensor, int]:
    """Return a tensor divided by a power of two, so that it has entries of ordinary size."""
    values = X.values if isinstance(X, SparseTensor) else X
    exponent = exponent_of(values, "X")
    if exponent == 0:
        return X, 0
    values = np.ldexp(values, -exponent)
    return X.with_values(values) if isinstance(X, SparseTensor) else values, exponent


def _given_in_units(init: Any, exponent: int) -> Any:
    if exponent == 0 or not isinstance(init, (tuple, list)) or len(init) == 0:
        return init
    return [np.ldexp(np.asarray(init[0], dtype=np.float64), -exponent), *init[1:]]


def _labelled(
    labels: Mapping[int, Any] | None, X: Tensor, dtype: Any, supervision: str, threads: int
) -> tuple[list[tuple[tuple[str, str], Any]], dict[str, tuple[int, Any]]]:
    """Return the names and terms of labels, and for the factor of each its mode and its term."""
    if labels is None:
        return [], {}
    if not isinstance(labels, Mapping):
        raise TypeError(
            f"labels must be a mapping of modes to matrices, such as {{0: Y}}; got "
            f"{type(labels).__name__}."
        )
    related, factors = [], {}
    names = mode_names(len(X.shape))
    for mode, given in labels.items():
        mode = check_integer(mode, "a mode of labels", 0, len(names) - 1)
        Y = check_matrix(given, f"labels[{mode}]", dtype=dtype)
        if Y.shape[0] != X.shape[mode] or Y.shape[1] == 0:
            raise ValueError(
                f"labels[{mode}] has shape {Y.shape}; expected {X.shape[mode]} rows, one for each "
                f"index of mode {mode}, and at least one column."
            )
        term = build_term(Y, None, loss_named(supervision, "supervision"), "Y", threads)
        related.append(((names[mode], f"B{mode}"), term))
        factors[f"B{mode}"] = mode, term
    return related, factors


__all__ = ["TensorFactorization", "factorize_tensor"]
