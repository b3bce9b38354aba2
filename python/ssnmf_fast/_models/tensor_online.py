"""Learning the factors of a tensor from slices that arrive along one mode: no slice is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._backend.dispatch import padded, padded_zeros
from .._common.arrays import Array
from .._data.entries import Target
from .._data.tensor_entries import RowProducts
from .._data.tensors import Tensor
from .._data.weight_forms import Separable
from .._solver.losses import Loss, loss_named
from .._solver.problem import Problem
from .._solver.relations import Relation, Statistics
from .._solver.result import sizes_of
from .._solver.starts import mode_names
from .._solver.units import Units, exponent_of
from .._solver.weights import build_tensor_term
from .online import BatchStatistics, follow

_ROUNDS = 5
_AWAKE = 1e-3  # of the mean of a column
_TOL, _MOST = 1e-4, 100  # of the coding of slices between two rounds


@dataclass(frozen=True)
class Stream:
    """Factors of all modes but that of the slices, with statistics of the slices so far.

    Columns of the factors have size 1 as in :class:`TensorFactorization`: the rows of the slices
    have the scale of the data.
    """

    factors: tuple[Array, ...]
    sums: tuple[BatchStatistics, ...]  # one for each factor
    n_slices: int
    seen: float  # the same, each with the weight that it still has
    mean_loss: float  # per slice, averaged with these weights

    @classmethod
    def resumed(
        cls,
        factors: Sequence[Array],
        rows: Array,
        *,
        loss: str | float,
        keep: float,
        total: float,
        threads: int,
    ) -> Stream:
        """Set out from a fit with the loss `total`, by its optimality conditions.

        ``P = N`` where a factor is positive; N follows from the factors and the rows of the slices.
        """
        weights = np.power(keep, np.arange(len(rows))[::-1], dtype=rows.dtype)
        rank, dtype = rows.shape[1], rows.dtype
        divergence = loss_named(loss, "loss")
        stored = [padded(F, dtype) for F in (*factors, rows)]
        sums = []
        for k, F in enumerate(stored[:-1]):
            G: Any = RowProducts(tuple(far for j, far in enumerate(stored) if j != k))
            form = Separable((*[None] * len(factors), weights), threads)
            N = np.empty_like(F)
            divergence.N(form, F, G, Target(N))
            N = np.ascontiguousarray(N[:, :rank])
            if divergence.quadratic:
                K = np.ascontiguousarray(form.gram(G)[:rank, :rank])
                sums.append(BatchStatistics(N, K=K))
            else:
                sums.append(BatchStatistics.of(factors[k], Statistics({divergence: (N, N)}, [])))
        counts = len(rows), float(weights.sum()), total / len(rows)
        return cls(tuple(factors), tuple(sums), *counts)

    def arrays(self) -> dict[str, Array]:
        """Return the statistics of slices, as arrays by name."""
        arrays = {"counts": np.array([[self.n_slices, self.seen, self.mean_loss]])}
        for k, one in enumerate(self.sums):
            parts = {"b": one.b, "a": one.a, "K": one.K}
            arrays |= {f"{name}{k}": part for name, part in parts.items() if part is not None}
        return arrays

    @classmethod
    def of_arrays(cls, factors: Sequence[Array], arrays: Mapping[str, Array]) -> Stream:
        """Return what :meth:`arrays` took apart; raise ValueError if it does not fit."""
        wanted = {"counts", *(f"b{k}" for k in range(len(factors)))}
        if not wanted <= arrays.keys() or arrays["counts"].shape != (1, 3):
            raise ValueError("the saved statistics of the slices are incomplete")
        n_slices, seen, mean_loss = arrays["counts"][0].tolist()
        sums = []
        for k, F in enumerate(factors):
            one = BatchStatistics(arrays[f"b{k}"], arrays.get(f"a{k}"), arrays.get(f"K{k}"))
            sides = one.b.shape, F.shape if one.a is None else one.a.shape
            square = F.shape[1:] * 2 if one.K is None else one.K.shape
            if sides != (F.shape, F.shape) or square != F.shape[1:] * 2:
                raise ValueError(
                    "the saved statistics of the slices do not have the shapes of the factors"
                )
            sums.append(one)
        return cls(tuple(factors), tuple(sums), int(n_slices), seen, mean_loss)

    def learn(
        self, X: Tensor, *, loss: str | float, keep: float, threads: int
    ) -> tuple[Stream, Array]:
        """Learn from slices, which are the first mode of X, and return their rows of it.

        `keep` is the share of the weight of earlier slices that remains per slice.  The n-th slice
        leaves them 1 - 1/n at most: the first ones were coded with poor factors.
        """
        Units(exponent_of(X, "X"), 0).require_trivial("batches", "all batches")
        term = build_tensor_term(X, None, loss_named(loss, "loss"), threads)
        rank, dtype = self.factors[0].shape[1], self.factors[0].dtype
        names = mode_names(len(X.shape))
        rows = padded_zeros(X.shape[0], rank, dtype)
        stored = [rows, *(padded(F, dtype) for F in self._begun())]
        problem = Problem(dict(zip(names, stored, strict=True)), [Relation(names, term)])
        far: Any = RowProducts(tuple(stored[1:]))
        n_slices = self.n_slices + X.shape[0]
        curved = term.gram and term.form.equal_rows
        left = min(keep ** X.shape[0], self.n_slices / n_slices)
        past = [_padded(one) for one in self.sums]
        if not curved:  # multiplicative steps would hardly ever bring small entries back
            for F in stored[1:]:
                np.maximum(F, _AWAKE * F.mean(axis=0), out=F)
        solve_rows = term.loss.solve_rows
        for _ in range(_ROUNDS):
            solve_rows(term, rows, far, _TOL, _MOST)
            sums = []
            for k, name in enumerate(names[1:]):
                (side,) = problem.sides(name)
                F = problem.factors[name]
                new = BatchStatistics.of(F, problem.statistics(name, curved).copied())
                sums.append(past[k].plus(new, left))
                follow(F, sums[k], side.term, np.empty((0, F.shape[1]), dtype=dtype))
        solve_rows(term, rows, far, _TOL, _MOST)
        value = term.value(rows, far)
        seen = left * self.seen + X.shape[0]
        mean = self.mean_loss + (value - X.shape[0] * self.mean_loss) / seen
        return self._normalized(stored, sums, term.loss, n_slices, seen, mean)

    def _begun(self) -> list[Array]:
        """Return the factors; components that the slices so far did not use are drawn anew."""
        unused = np.any([~F.any(axis=0) for F in self.factors], axis=0)
        if not unused.any():
            return list(self.factors)
        rng = np.random.default_rng(self.n_slices)
        return [
            np.where(unused, rng.random(F.shape) / len(F), F).astype(F.dtype) for F in self.factors
        ]

    def _normalized(
        self, stored: list[Array], sums: list[BatchStatistics], loss: Loss, *counts: Any
    ) -> tuple[Stream, Array]:
        """Bring columns to size 1, and their statistics with them."""
        rank = self.factors[0].shape[1]
        p, q = loss.exponents
        rows, *others = (F[:, :rank] for F in stored)
        scale = np.ones(rank, dtype=rows.dtype)
        factors, scaled = [], []
        for F, one in zip(others, sums, strict=True):
            size = sizes_of(F, loss)
            size = np.where(size > 0, size, 1).astype(F.dtype)
            scale *= size
            factors.append(F / size)
            a = None if one.a is None else one.a[:, :rank] * size ** (p + 1)
            K = None if one.K is None else one.K[:rank, :rank] * np.outer(size, size)
            scaled.append(BatchStatistics(one.b[:, :rank] * size ** (q + 1), a, K))
        return Stream(tuple(factors), tuple(scaled), *counts), rows * scale


def _padded(one: BatchStatistics) -> BatchStatistics:
    """Return statistics for padded factors."""
    b = padded(one.b, one.b.dtype)
    more = 0, b.shape[1] - one.b.shape[1]
    a = None if one.a is None else np.pad(one.a, ((0, 0), more))
    return BatchStatistics(b, a, None if one.K is None else np.pad(one.K, more))
