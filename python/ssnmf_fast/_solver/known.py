"""Known parts of S and A: supports, and fixed components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypedDict

import numpy as np

from .._common.arrays import Array, Factors, bits_of, mask_of
from .._common.text import short
from .._data.border import check_factor, check_support
from .._data.tensors import check_mode
from .penalties import L1, L2, NONE, Orthogonal, Penalties, Penalty, require_scale
from .plan import RELAXATION
from .problem import Problem
from .relations import Relation
from .terms import Term


@dataclass(frozen=True)
class Known:
    """Supports and fixed columns of S and the stored A (by rows), and the number of the latter."""

    support: Factors = field(default_factory=dict)
    fixed: Mapping[str, tuple[slice, Array]] = field(default_factory=dict)
    n_given: int = 0

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        rank: int,
        dtype: Any,
        *,
        S_support: Any = None,
        A_support: Any = None,
        covariates: Any = None,
        fixed_components: Any = None,
    ) -> Known:
        """Check the user's input: fixed components are the first, covariates the last columns."""
        (n, m), support, fixed = shape, {}, {}
        if S_support is not None:
            support["S"] = check_support(S_support, "S_support", (n, rank), dtype)
        if A_support is not None:
            of = "components x features"
            support["A"] = check_support(A_support, "A_support", (rank, m), dtype, of).T
        counts = []
        for axis, name in enumerate(("fixed_components", "covariates")):
            given = (fixed_components, covariates)[axis]
            size = (0, 0) if given is None else np.shape(given)
            if len(size) != 2:
                raise ValueError(f"{name} has shape {size}; expected two dimensions.")
            counts.append(int(size[axis]))
        first, last = counts
        if first + last > rank:
            raise ValueError(
                f"fixed_components has {first} rows and covariates has {last} columns, but "
                f"n_components is {rank}; expected at least one component for each of them."
            )
        if first:
            wanted = "fixed_components", (first, m), dtype, "fixed components x features"
            fixed["A"] = slice(0, first), check_factor(fixed_components, *wanted).T
        if last:
            wanted = "covariates", (n, last), dtype, "samples x fixed components"
            fixed["S"] = slice(rank - last, rank), check_factor(covariates, *wanted)
        return cls(support, fixed, first + last)

    def __bool__(self) -> bool:
        return bool(self.support or self.fixed)

    def within(self, name: str, F: Array) -> Array:
        """Return a factor restricted to its support, with the same mean."""
        T = self.support.get(name)
        return F if T is None else np.asarray(F * T * (T.size / max(1.0, float(T.sum()))))

    def restore(self, name: str, F: Array) -> Array:
        if name in self.support:
            F = F * self.support[name]
        if name in self.fixed:
            columns, values = self.fixed[name]
            F = F.copy()
            F[:, columns] = values
        return F

    def levels(self, means: Factors, mean: float) -> dict[str, Array]:
        """Return factors that give all components the same share of the mean of S A."""
        found = {name: np.ones(len(each)) for name, each in means.items()}
        here, there = means.values()
        for name, (columns, _) in self.fixed.items():
            (other,) = (each for each in means if each != name)
            product, wanted = (here * there)[columns], mean / len(here)
            np.divide(wanted, product, out=found[other][columns], where=product > 0)
        return found

    def roots(self) -> Known:
        """Return the known parts for the square roots of the data."""
        fixed = {name: (columns, np.sqrt(F)) for name, (columns, F) in self.fixed.items()}
        return Known(self.support, fixed)

    def moves(self, factors: Factors) -> dict[str, Array]:
        """Return where stored factors move in the fit, as bits."""
        found = {}
        for name in sorted({*self.support, *self.fixed}):
            moves = np.ones(factors[name].shape, dtype=bool)
            if name in self.support:
                moves[:, : self.support[name].shape[1]] = self.support[name]
            if name in self.fixed:
                moves[:, self.fixed[name][0]] = False
            found[name] = bits_of(moves)
        return found


def check_penalties(
    given: object, rows: Mapping[str, int], shape: tuple[int, ...], rank: int
) -> dict[str, Penalties]:
    """Return the penalties by factor, multiplied by the number of entries that a row meets."""
    meets: dict[str, float] = {}
    if "S" in rows:
        meets = dict(zip("SABC", (shape[1], shape[0], shape[0], shape[1]), strict=True))
    for mode, n in enumerate(shape):
        meets |= {f"F{mode}": prod(shape) // max(n, 1), f"B{mode}": n}
    found: dict[str, Penalties] = {}
    given = {} if given is None else given
    for key, each in (given if isinstance(given, Mapping) else dict.fromkeys(rows, given)).items():
        name = key
        if isinstance(given, Mapping) and "S" not in rows and (key not in rows or key[0] == "F"):
            name = f"F{check_mode(key, 'a mode of penalties', len(shape))}"
        if name not in rows:
            raise ValueError(
                f"penalties has {short(name)}; expected {' or '.join(map(repr, rows))} of this fit."
            )
        title = f"mode {name[1:]}" if name[0] == "F" else name
        if listed := penalties_of_factor(each, title, rows[name], meets[name]):
            found[name] = Penalties(listed, rank)
    return found


def matrix_penalties(
    given: object,
    shape: tuple[int, int],
    rank: int,
    known: Known,
    *of_labels: tuple[int | None, float | None],
    in_memory: bool = True,
) -> dict[str, Penalties]:
    """Return the penalties of S, A, B, C; for B and C, give the number of labels and the weight."""
    rows, pairs = dict(zip("SA", shape, strict=True)), [("S", "A")]
    for near, far, (n_labels, weight) in zip("SA", "BC", of_labels, strict=True):
        if n_labels is not None:
            rows[far] = n_labels
            pairs += [] if weight == 0 else [(near, far)]
    checked = check_penalties(given, rows, shape, rank)
    if not in_memory and not all(each.by_rows for each in checked.get("S", NONE).listed):
        hint = "leave that of S out, or fit in memory."
        raise ValueError(f"penalties between samples are not supported on a cluster; {hint}")
    if known.n_given < rank:
        require_scale(checked, pairs)
    return checked


def penalties_of_rows(given: object, n_features: int) -> tuple[Penalty, ...]:
    """Return the penalties of S that are sums over samples."""
    listed = given.get("S", ()) if isinstance(given, Mapping) else given or ()
    active = penalties_of_factor(listed, "S", None, n_features)
    return tuple(penalty for penalty in active if penalty.by_rows)


_PLAIN: dict[str, type[Penalty]] = {kind.__name__: kind for kind in (L1, L2, Orthogonal)}


def plain_penalties(given: object) -> dict[str, Any]:
    """Return the penalties of `penalties_of_rows` by name: coefficients, or lists of others."""
    found: dict[str, Any] = {}
    for penalty in penalties_of_rows(given, 1):
        kind = type(penalty)
        if _PLAIN.get(kind.__name__) is kind:
            found[kind.__name__] = found.get(kind.__name__, 0.0) + penalty.coefficient
        else:
            found.setdefault(f"{kind.__module__}.{kind.__qualname__}", []).append(penalty)
    return found


class PlainPenalties(TypedDict, total=False):
    """Type of the result of :func:`plain_penalties`."""

    L1: float
    L2: float
    Orthogonal: float


def penalties_named(kept: Mapping[str, Any]) -> list[Penalty]:
    """Return the penalties from :func:`plain_penalties`."""
    lists = ([_PLAIN[name](one)] if name in _PLAIN else one for name, one in kept.items())
    return [penalty for each in lists for penalty in each]


def penalties_of_factor(
    given: object, name: str, n_rows: int | None, meets: float = 1.0
) -> tuple[Penalty, ...]:
    """Return the penalties of a factor with `n_rows` rows, times `meets` entries per row."""
    listed = (given,) if isinstance(given, Penalty) else given
    if not isinstance(listed, Sequence) or not all(isinstance(p, Penalty) for p in listed):
        raise TypeError(
            "penalties must be a penalty such as penalties.L1(0.1), a sequence of them, or a "
            f"mapping from factors to these; got {given!r:.100}."
        )
    active = tuple(penalty.times(meets) for penalty in listed if penalty.coefficient > 0)
    for penalty in active if n_rows is not None else ():
        penalty.check(n_rows, name)
    return active


_BETWEEN_CHECKS = 5
_FINEST = 1e-4


def solve_known_rows(
    term: Term, F: Array, G: Array, support: Factors, penalties: Penalties, tol: float, most: int
) -> int:
    """Minimize over the rows of F by steps of a fit; return the number of rows left unsolved."""
    factors, relations = {"S": F, "A": G}, [Relation(("S", "A"), term)]
    problem = Problem(factors, relations, support, penalties={"S": penalties})
    problem.clear_unobserved()
    moves = mask_of(support["S"], F.shape[1]) if "S" in support else np.ones(F.shape, dtype=bool)
    # Where rows do not descend, steps are over-relaxed, and too slow for a small `tol`.
    plan = replace(problem.plan("hals"), relaxation=RELAXATION)
    tol = max(tol, _FINEST) if plan.by_factor["S"] == "multiply" else tol
    majorizer = None
    unsolved = len(F)
    for _ in range(0, most, _BETWEEN_CHECKS):
        for _ in range(_BETWEEN_CHECKS):
            if majorizer is None or not majorizer.curved:  # for squares, P does not change
                majorizer = problem.majorizer("S", plan.by_factor["S"])
            last = problem.apply("S", majorizer, plan)
        unsolved = int(np.count_nonzero(_residuals(F, moves, *problem.pulls("S", last)[:2]) > tol))
        if not unsolved:
            break
    return unsolved


def _residuals(F: Array, moves: Array, up: Array, down: Array) -> Array:
    """Return the largest residual of each row, relative to its pull up or down."""
    tiny = np.finfo(F.dtype).tiny
    inside = np.max(F * np.abs(down - up), axis=1, where=moves, initial=0.0)
    inside /= np.maximum(np.sum(F * down, axis=1, where=moves), tiny)
    at_zero = np.max(up - down, axis=1, where=moves & (F == 0), initial=0.0)
    at_zero /= np.maximum(np.max(up, axis=1, where=moves, initial=0.0), tiny)
    residuals: Array = np.maximum(inside, at_zero)
    return residuals
