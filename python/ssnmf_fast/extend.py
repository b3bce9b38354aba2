"""New losses and models on the same engine, for code outside of this package.

A *loss* is an object of a class derived from :class:`Loss`; :func:`register_loss` makes its name
known to all functions and estimators.  A *model* is a list of relations: in each, a data matrix is
approximated by the product of some factors; :func:`fit` fits them together.  :func:`objective`
evaluates the objective of :func:`ssnmf_fast.factorize` at given factors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._backend.dispatch import padded
from ._common.arrays import Array, LossName, Seed, Solver
from ._data import border
from ._data.arrays import DataLike
from ._data.border import check_data, check_factor, check_integer, check_random_state, check_real
from ._data.entries import Entries, Target
from ._data.threads import resolve_threads
from ._data.weight_forms import WeightForm
from ._models.represent import objective
from ._solver.build import build_term
from ._solver.known import penalties_of_factor
from ._solver.loop import FitLoop
from ._solver.losses import loss_named
from ._solver.penalties import Penalties, require_scale
from ._solver.problem import problem_kind
from ._solver.relations import Relation
from ._solver.result import FitState
from ._solver.terms import Loss, Term, register_loss
from ._solver.weights import WeightsLike


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of :func:`fit`; the factors, by name, have one row per object."""

    factors: dict[str, Array]
    objective: list[tuple[int, float]]
    n_iter: int
    converged: bool


def relation(
    rows: str,
    columns: str,
    X: DataLike,
    *,
    loss: LossName | float | Loss = "frobenius",
    weights: WeightsLike = None,
    coefficient: float = 1.0,
    n_threads: int | None = None,
) -> Relation:
    """Return a relation: X (n x m) is approximated by ``F @ G.T``.

    Parameters
    ----------
    rows, columns : str
        Names of the factors F (n x r) and G (m x r).
    X : array_like or scipy.sparse, shape (n, m)
        Nonnegative data.
    loss, weights
        As `loss` and `X_weights` of :func:`ssnmf_fast.factorize`.
    coefficient : float
        Weight of this loss in the sum over all relations.
    n_threads : int, optional
        Number of threads.
    """
    threads = resolve_threads(n_threads)
    weights = border.by_name(X, X_weights=weights)["X_weights"]
    term = build_term(check_data(X, threads), weights, loss_named(loss, "loss"), "X", threads)
    return Relation((rows, columns), term, check_real(coefficient, "coefficient"))


def _by_factor(given: Any, argument: str, factors: Collection[str]) -> Mapping[str, Any]:
    """Return a given mapping from names of factors; None becomes an empty one."""
    if not isinstance(given, Mapping | None):
        expected = f"a mapping from names of factors, {sorted(factors)}"
        raise TypeError(f"{argument} must be {expected}; got {given!r:.100}.")
    if unknown := [name for name in given or {} if name not in factors]:
        raise ValueError(f"{argument} has {unknown}; expected names of factors, {sorted(factors)}.")
    return given or {}


def fit(
    relations: Sequence[Relation],
    *,
    n_components: int,
    solver: Solver = "auto",
    init: Mapping[str, Any] | None = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Seed = None,
    callback: Callable[[FitState], Any] | None = None,
    verbose: int = 0,
    penalties: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit nonnegative factors to several relations, to minimize the sum of their weighted losses.

    The factor of the rows of the first relation is updated last in every iteration.  Factors that
    are not in `init` start at random; the other parameters are those of
    :func:`ssnmf_fast.factorize`, except that `penalties` do not grow with the size of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from ssnmf_fast import extend
    >>> texts, images = np.eye(4) + 1, np.ones((4, 3))
    >>> model = [
    ...     extend.relation("samples", "terms", texts),
    ...     extend.relation("samples", "pixels", images, loss="kullback-leibler"),
    ... ]
    >>> factors = extend.fit(model, n_components=2).factors
    >>> {name: F.shape for name, F in factors.items()}
    {'samples': (4, 2), 'terms': (4, 2), 'pixels': (3, 2)}
    """
    rank = check_integer(n_components, "n_components", 1)
    loop = FitLoop(solver, max_iter, tol, callback, verbose)
    relations = list(relations)
    if not relations or not all(isinstance(one, Relation) for one in relations):
        expected = "a sequence of at least one extend.relation(...)"
        raise ValueError(f"relations must be {expected}; got {relations!r:.100}.")
    if not any(r.coefficient > 0 for r in relations):
        raise ValueError("the coefficients of all relations are 0; give one of them above 0.")
    rng = check_random_state(random_state)
    sizes: dict[str, tuple[int, float]] = {}
    for r in relations:
        level = (r.term.mean() / rank) ** (1 / len(r.names))
        for position, name in enumerate(r.names):
            n_rows = r.term.view(position).shape[0]
            if sizes.setdefault(name, (n_rows, level))[0] != n_rows:
                rows = f"{sizes[name][0]} rows in one relation and {n_rows} in another"
                raise ValueError(f"factor {name!r} has {rows}; the numbers must be equal.")
    dtypes = {r.term.entries.csr_rows(slice(0, 1))[2].dtype for r in relations}
    if len(dtypes) > 1:
        raise TypeError("the data of all relations must have one dtype, float32 or float64.")
    (dtype,) = dtypes
    given, starts = _by_factor(penalties, "penalties", sizes), _by_factor(init, "init", sizes)
    factors = {}
    for name, (n, level) in sizes.items():
        if name in starts:
            of = "rows x components"
            start = check_factor(starts[name], f"init[{name!r}]", (n, rank), dtype, of)
        else:
            start = 2 * level * rng.random((n, rank))
        factors[name] = padded(start, dtype)
    penalized = {
        name: Penalties(listed, rank)
        for name, one in given.items()
        if (listed := penalties_of_factor(one, name, len(factors[name])))
    }
    require_scale(penalized, [r.names for r in relations if r.coefficient > 0])
    problem = problem_kind(relations)(factors, relations, penalties=penalized)
    problem.clear_unobserved(lambda last: f"the relation with {last!r}")

    def shown() -> dict[str, Array]:
        return {name: F[:, :rank] for name, F in factors.items()}

    run = loop.run(problem, shown)
    copies = {name: np.ascontiguousarray(F) for name, F in shown().items()}
    return Fit(copies, run.objective, run.n_iter, run.converged)


__all__ = [
    "Entries",
    "Fit",
    "Loss",
    "Relation",
    "Target",
    "Term",
    "WeightForm",
    "fit",
    "objective",
    "register_loss",
    "relation",
]


def __dir__() -> list[str]:
    return __all__
