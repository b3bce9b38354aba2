"""Penalties of factors: their values, and bounds for the updates of a factor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Factors
from .._common.docstrings import complete
from .._data.arrays import entry_rows
from .._data.border import check_matrix, check_real, in_order, labels_of
from .._data.entries import row_slices
from .majorizer import Bound

Self = TypeVar("Self", bound="Penalty")


@dataclass(frozen=True)
class Penalty(ABC):
    """A penalty, times a coefficient, of a factor F with a column for each component.

    Parameters
    ----------
    coefficient : float
        At least 0.
    """

    coefficient: float

    bounds_scale = False  # whether it grows without limit with every entry
    linear = False  # whether it is a multiple of the sum of the entries
    by_rows = True  # whether it is a sum over rows

    def __init_subclass__(cls) -> None:
        if cls.__doc__:
            names = "coefficient", *cls.__annotations__
            cls.__doc__ = complete(cls.__doc__, [Penalty.__doc__], names)

    def __post_init__(self) -> None:
        check_real(self.coefficient, "coefficient")

    def times(self: Self, number: float) -> Self:
        """Return a multiple of the penalty."""
        other = copy(self)  # a subclass may have a constructor of its own
        object.__setattr__(other, "coefficient", self.coefficient * number)
        return other

    def check(self, n_rows: int, name: str) -> None:  # noqa: B027 -- most suit any factor
        """Raise ValueError for a factor with a different number of rows than the penalty."""

    @abstractmethod
    def value(self, F: Array) -> float:
        """Return its value in the objective."""

    @abstractmethod
    def bound(self, F: Array) -> Bound:
        """Return the bound that an update of F minimizes instead."""


@dataclass(frozen=True)
class L1(Penalty):
    """Sum of the entries; makes the factor sparse."""

    bounds_scale = True
    linear = True

    def value(self, F: Array) -> float:
        return self.coefficient * float(F.sum(dtype=np.float64))

    def bound(self, F: Array) -> Bound:
        return Bound(linear=self.coefficient)


@dataclass(frozen=True)
class L2(Penalty):
    """Sum of the squares of the entries; keeps entries small."""

    bounds_scale = True

    def value(self, F: Array) -> float:
        return self.coefficient * float(np.einsum("ij,ij->", F, F, dtype=np.float64))

    def bound(self, F: Array) -> Bound:
        return Bound(gram=self.coefficient * np.eye(F.shape[1]))


@dataclass(frozen=True)
class Orthogonal(Penalty):
    """Sum of the products of different components; rows belong to few components.

    It is the sum of the off-diagonal entries of F^T F.  It does not bound the scale: add L1 or L2.
    """

    def value(self, F: Array) -> float:
        products = np.zeros((F.shape[1], F.shape[1]))
        for rows in row_slices(len(F)):
            part = F[rows].astype(np.float64, copy=False)
            products += part.T @ part
        # Pair by pair: the square of the sum minus squares would cancel.
        np.fill_diagonal(products, 0)
        return self.coefficient * float(products.sum())

    def bound(self, F: Array) -> Bound:
        return Bound(gram=self.coefficient * (1 - np.eye(F.shape[1])))


VANISHING: set[type[Penalty]] = {L1, L2, Orthogonal}  # at 0, in rows without data

_EDGES_AT_ONCE = 1 << 16


class _Differences(Penalty):
    """Weighted squared differences between rows that are neighbors in a graph."""

    by_rows = False

    @abstractmethod
    def _graph(self, n_rows: int) -> sp.csr_array: ...

    def value(self, F: Array) -> float:
        W, F = self._graph(len(F)), np.ascontiguousarray(F)
        rows, total = entry_rows(W.indptr), 0.0
        for begin in range(0, len(rows), _EDGES_AT_ONCE):
            edges = slice(begin, begin + _EDGES_AT_ONCE)
            apart = F[rows[edges]].astype(np.float64) - F[W.indices[edges]]
            total += float(W.data[edges] @ np.square(apart).sum(axis=1))
        return self.coefficient * (total / 2)

    def bound(self, F: Array) -> Bound:
        """Bound f L f by ``2 f D f - 2 f (W + D) f'``; D has the sums of the rows of W.

        L = D - W, and W + D has no negative eigenvalue: -f (W + D) f is below its tangent at f'.
        """
        W, F = self._graph(len(F)), np.ascontiguousarray(F)
        degrees = self.coefficient * np.asarray(W.sum(axis=1)).ravel()
        up = self.coefficient * (W @ F) + degrees[:, None] * F
        return Bound(gram=np.eye(F.shape[1]), rows=2 * degrees, up=up)


@dataclass(frozen=True, eq=False)
class Graph(_Differences):
    """Differences between rows that are neighbors in a graph; makes neighbors similar.

    It is ``sum_(i < j) w_ij |f_i - f_j|^2``, the trace of F^T L F for the Laplacian L of the graph
    [1]_.  It does not bound the scale: add L1 or L2.

    Parameters
    ----------
    weights : array_like or scipy.sparse, shape (rows of the factor, rows of the factor)
        Nonnegative weights w of the edges, symmetric; the diagonal is ignored.  Its rows are those
        of the factor; columns of a DataFrame are put in the order of its rows.

    Raises
    ------
    ValueError, TypeError
        For negative weights, or a matrix that is not symmetric.

    References
    ----------
    .. [1] D. Cai, X. He, J. Han, T. S. Huang, "Graph regularized nonnegative matrix factorization
       for data representation", 2011.
    """

    weights: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        name, nodes = "weights of the graph", (None, labels_of(self.weights)[0])
        W = check_matrix(in_order(self.weights, nodes, name, "its rows"), name, allow_nan=False)
        if W.shape[0] != W.shape[1]:
            raise ValueError(
                f"weights of the graph are {W.shape}; expected a row and a column for each node."
            )
        W = sp.csr_array(W).astype(np.float64)
        if abs(W - W.T).max() > 1e-9 * W.max():
            raise ValueError(
                "weights of the graph are not symmetric; give (weights + weights.T) / 2."
            )
        W = sp.csr_array(sp.csr_array(W + W.T) / 2)
        rows = entry_rows(W.indptr)
        edges = (rows != W.indices) & (W.data > 0)
        W = sp.csr_array((W.data[edges], (rows[edges], W.indices[edges])), shape=W.shape)
        object.__setattr__(self, "weights", W)

    def check(self, n_rows: int, name: str) -> None:
        if self.weights.shape[0] != n_rows:
            hint = f"expected {n_rows}, one per row."
            raise ValueError(f"{name} has a graph with {self.weights.shape[0]} nodes; {hint}")

    def _graph(self, n_rows: int) -> sp.csr_array:
        return self.weights


@dataclass(frozen=True)
class Temporal(_Differences):
    """Differences between successive rows; makes factors smooth in time.

    It is ``sum_t |f_t - f_(t + 1)|^2``.  It does not bound the scale: add L1 or L2.
    """

    def _graph(self, n_rows: int) -> sp.csr_array:
        first = np.arange(max(n_rows - 1, 0))
        ends = np.concatenate([first, first + 1]), np.concatenate([first + 1, first])
        return sp.csr_array((np.ones(2 * len(first)), ends), shape=(n_rows, n_rows))


@dataclass(frozen=True)
class Penalties:
    """Penalties of a factor with `rank` components before the padding."""

    listed: tuple[Penalty, ...] = ()
    rank: int = 0

    def __bool__(self) -> bool:
        return bool(self.listed)

    def value(self, F: Array) -> float:
        return sum(penalty.value(F[:, : self.rank]) for penalty in self.listed)

    def bounds(self, F: Array) -> list[Bound]:
        """Return their bounds at a stored factor."""
        part = F[:, : self.rank]
        return [p.bound(part).stored(F, self.rank, type(p).__name__) for p in self.listed]


NONE = Penalties()


def value_of(penalties: Mapping[str, Penalties], factors: Factors) -> float:
    return sum(each.value(factors[name]) for name, each in penalties.items() if each)


PenaltiesLike: TypeAlias = (
    Penalty | Sequence[Penalty] | Mapping[Any, Penalty | Sequence[Penalty]] | None
)


def require_scale(
    penalties: Mapping[str, Penalties],
    related: Iterable[Sequence[str]],
    modes: Mapping[str, int] | None = None,
) -> None:
    """Raise ValueError if a factor may grow while another shrinks: there is no minimum."""
    products, keys = list(related), modes or {}
    met = set(penalties)
    for _ in products:
        met.update(*(names for names in products if met & set(names)))
    names = dict.fromkeys(name for product in products for name in product if name in met)
    listed = {name: penalties.get(name, NONE).listed for name in names}
    free = [name for name in names if not any(each.bounds_scale for each in listed[name])]
    if free:
        product = next(product for product in products if free[0] in product)
        shrinks = next(name for name in product if name != free[0])
        titles = {name: f"mode {keys[name]}" if name in keys else name for name in names}
        added = "penalties.L2(1e-3)"
        example = ", ".join(
            f"{keys.get(name, name)!r}: {f'[..., {added}]' if name in penalties else added}"
            for name in free
        )
        raise ValueError(
            f"the penalties have no minimum: {titles[shrinks]} can shrink while {titles[free[0]]} "
            f"grows. Add an L1 or L2 penalty of {' and '.join(titles[name] for name in free)}, "
            f"which bounds the scale, for example penalties={{{example}, ...}}."
        )
