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
from ._solver.terms import Loss, Term, register, registry
from ._solver.weights import WeightsLike


def register_loss(loss: Loss) -> Loss:
    """Register a loss, so that public functions accept its name.

    Parameters
    ----------
    loss : Loss
        An instance of a subclass of :class:`Loss` with a unique name.  It replaces a loss that was
        registered with this name before.

    Returns
    -------
    Loss
        The same object.

    Raises
    ------
    TypeError
        If it is not an instance of such a class, or its name is not text.
    ValueError
        If it has the name of a loss of this package, or if P and N are not those of the gradient of
        `value` for a small matrix.

    Examples
    --------
    Squared errors plus a Kullback-Leibler divergence.  P and N are the negative and positive parts
    of the derivative, here ``X @ G + (X / Z) @ G`` and ``Z @ G + ones @ G`` for the model ``Z = F @
    G.T``: passes over the data with Z to the powers 0, -1, 1 and 0, which include the weights.

    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> from ssnmf_fast import extend
    >>> class Elastic(extend.Loss):
    ...     name = "elastic"
    ...     exponents = (1.0, -1.0)  # N t - P / t: the slope of a bound
    ...
    ...     def P(self, entries, F, G, to):
    ...         entries.power(0, F, G, to)
    ...         more = extend.Target(to.out, to.scale, accumulate=True)
    ...         entries.power(-1, F, G, more)
    ...
    ...     def N(self, form, F, G, to):
    ...         form.power(1, F, G, to)
    ...         more = extend.Target(to.out, to.scale, accumulate=True)
    ...         form.power(0, F, G, more)
    ...
    ...     def constant(self, z, w):
    ...         w = np.ones(z.shape) if w is None else w
    ...         wz = np.where(w * z > 0, w * z, 0)
    ...         logs = wz * np.log(np.where(wz > 0, w, 1))
    ...         below = np.sum(wz * np.where(wz > 0, z, 0)) / 2
    ...         return float(below - np.sum(logs))
    ...
    ...     def value(self, term, F, G):
    ...         ZG, XG, sums = (np.empty_like(F) for _ in range(3))
    ...         term.form.power(1, F, G, extend.Target(ZG))
    ...         term.form.power(0, F, G, extend.Target(sums))
    ...         term.entries.power(0, F, G, extend.Target(XG))
    ...         squares = float(np.sum(F * ZG) / 2 - np.sum(F * XG))
    ...         kl = term.entries.sum("kl_loss", F, G) + float(np.sum(F * sums))
    ...         return term.constant + squares + kl
    >>> loss = extend.register_loss(Elastic())
    >>> X = np.random.default_rng(0).poisson(2.0, (20, 10)).astype(float)
    >>> fit = sf.factorize(X, n_components=3, loss="elastic", random_state=0)
    >>> Z = fit.S @ fit.A
    >>> logs = np.where(X > 0, X * np.log(np.where(X > 0, X, 1) / Z), 0)
    >>> wanted = np.sum((X - Z) ** 2 / 2 + logs - X + Z)
    >>> bool(np.isclose(fit.objective[-1][1], wanted))
    True
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be an instance of extend.Loss; got {loss!r:.100}.")
    name = getattr(loss, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a loss must be text, such as 'elastic'; got {name!r:.100}.")
    known = registry.get(name)
    if known is not None and type(known).__module__.startswith(f"{__package__}."):
        raise ValueError(f"{name!r} is a loss of ssnmf_fast; give the new loss another name.")
    _check_gradient(loss)
    return register(loss)


def _check_gradient(loss: Loss, h: float = 1e-4) -> None:
    """Raise ValueError if slope (N - P) is not the gradient of the value, for a small matrix."""
    rng = np.random.default_rng(0)
    X, W, *pair = (rng.uniform(0.5, 2, shape) for shape in ((4, 3), (4, 3), (4, 2), (3, 2)))
    F, G = (padded(factor, np.float64) for factor in pair)
    P, N = np.zeros_like(F), np.zeros_like(F)
    for weights in (None, W):
        term = build_term(X, weights, loss, "X", 1)
        term.P(F, G, Target(P))
        term.N(F, G, Target(N))
        for place, _ in np.ndenumerate(pair[0]):
            step = np.zeros_like(F)
            step[place] = h
            slope = (term.value(F + step, G) - term.value(F - step, G)) / (2 * h)
            given = loss.slope * (N - P)[place]
            if not abs(slope - given) <= 1e-3 * abs(loss.slope) * (P + N)[place]:  # NaN too
                raise ValueError(
                    f"the loss {loss.name!r} is not consistent: its value has the slope "
                    f"{slope:.6g} in entry {place} of a small factor, but slope * (N - P) is "
                    f"{given:.6g}. Check its value, P, N (or powers) and slope, also with weights."
                )


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
