"""Learning from mini-batches, with sufficient statistics of past batches: a few sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from .._backend.dispatch import kernels, padded, padded_zeros
from .._common.arrays import Array, Matrix, MatrixLike, Seed, mask_of
from .._common.text import short
from .._data.arrays import refuse_on_disk
from .._data.border import check_data, check_integer, check_random_state, check_real, warn_of_rank
from .._data.entries import Target
from .._data.tensors import RowProducts, Tensor
from .._data.threads import resolve_threads
from .._data.weight_forms import Quadratic, Separable
from .._solver.build import build_term, check_weight, relations, terms
from .._solver.descent import Part, descend, multiply
from .._solver.known import Known
from .._solver.losses import FROBENIUS, loss_named
from .._solver.penalties import PenaltiesLike
from .._solver.problem import UNOBSERVED, Problem
from .._solver.relations import Relation, Statistics, mode_names
from .._solver.result import sizes_of
from .._solver.starts import start
from .._solver.terms import Loss, Term
from .._solver.weights import WeightsLike

_ROUNDS, _UPDATES_OF_S, _SWEEPS = 5, 2, 2
_NUMBERS = "weight", "mean_loss", "seen"  # of batches, kept with their settings


def refuse_changes(settings: Mapping[str, Any], learned: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting that differs from the setting of earlier batches."""
    for name, value in settings.items():
        if value != learned[name]:
            raise ValueError(
                f"{name} must stay {learned[name]!r}, as for earlier batches; got {short(value)}. "
                "Set it back, or make a new estimator, for example by sklearn.base.clone."
            )


@dataclass
class BatchStatistics:
    """Sufficient statistics of batches for a factor F with rows f: a sum of functions of f.

    For squares without weights of entries, it is f K f^T - 2 b f, with one curvature K for all
    rows; otherwise the majorizer with a derivative proportional to ``a f^p - b f^q``, for the
    exponents (p, q) of the loss.
    """

    b: Array
    a: Array | None = None
    K: Array | None = None

    @classmethod
    def of(cls, F: Array, found: Statistics) -> BatchStatistics:
        """Return the statistics of one batch, in a form that stays valid if F changes."""
        if found.parts:
            ((quadratic, size, _),) = found.parts
            return cls(found.P, K=None if quadratic.gram is None else quadratic.gram * size)
        ((loss, (P, N)),) = found.sums.items()
        p, q = loss.exponents
        return cls(_times(P, F, -q), a=_times(N, F, -p))

    def plus(self, new: BatchStatistics, keep: float) -> BatchStatistics:
        """Return the kept share of these statistics plus the `new` statistics."""
        sums: dict[str, Any] = {**vars(new)}
        for name, before in vars(self).items():
            if before is not None:
                left, now = before.dtype.type(keep) * before, sums[name]
                sums[name] = left if now is None else left + now
        return BatchStatistics(**sums)

    def arrays(self, name: str, rank: int) -> dict[str, Array]:
        """Return the statistics of a factor without padding, as arrays by name."""
        parts = {part: one for part, one in vars(self).items() if one is not None}
        return {p + name: one[: rank if p == "K" else None, :rank] for p, one in parts.items()}

    @classmethod
    def of_arrays(cls, F: Array, name: str, arrays: Mapping[str, Array]) -> BatchStatistics:
        """Return the statistics of F, (m, r); raise ValueError for wrong shapes."""
        one = cls(arrays["b" + name], arrays.get("a" + name), arrays.get("K" + name))
        m, r = F.shape
        found = {(part, *array.shape) for part, array in vars(one).items() if array is not None}
        if len(found) < 2 or found - {("b", m, r), ("a", m, r), ("a", 1, r), ("K", r, r)}:
            raise ValueError("the saved statistics do not have the shapes of the factors")
        return one

    def padded(self) -> BatchStatistics:
        b, a, K = (None if one is None else padded(one, one.dtype) for one in vars(self).values())
        K = None if K is None else np.pad(K, ((0, K.shape[1] - len(K)), (0, 0)))
        return BatchStatistics(np.asarray(b), a, K)


@dataclass
class Online:
    """Dictionary A and classifier B, stored by rows and padded, with statistics of past batches.

    S depends only on its batch, A and B also on statistics of earlier batches with decreasing
    weights (online dictionary learning, Mairal et al. 2010).
    """

    factors: dict[str, Array]
    rank: int
    settings: dict[str, Any]  # the same for all batches
    weight: float | None = None  # of the supervision; None until the first batch balances it
    mean_loss: float = 0.0  # per sample, with the weights of the sums
    support: dict[str, Array] = field(default_factory=dict)  # where factors move, as bits
    target_sums: Array | None = None  # of the rows of S, with the weights of each target (k x r)
    _seen: float = 0.0
    _statistics: dict[str, BatchStatistics] = field(default_factory=dict)

    @classmethod
    def resume(
        cls, A: Array, B: Array | None, settings: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> Online:
        """Start from a dictionary (r x m), a classifier (r x k), and the sums of batches."""
        given = {name: F.T for name, F in (("A", A), ("B", B)) if F is not None}
        factors = {name: padded(F, A.dtype) for name, F in given.items()}
        made = cls(factors, len(A), {"n_components": len(A), **settings})
        if arrays:
            made.weight, made.mean_loss, made._seen = (settings[name] for name in _NUMBERS)
            sums = arrays.get("target_sums")
            made.target_sums = None if sums is None else padded(sums, sums.dtype)
        for name in given if arrays else ():
            if name == "A" or "bB" in arrays:
                one = BatchStatistics.of_arrays(given[name], name, arrays)
                made._statistics[name] = one.padded()
        return made

    def arrays(self) -> dict[str, Array]:
        """Return the sums of batches, as arrays by name."""
        sums = {} if self.target_sums is None else {"target_sums": self.target_sums[:, : self.rank]}
        for name, one in self._statistics.items():
            sums |= one.arrays(name, self.rank)
        return sums

    def array(self, name: str) -> Array:
        """Return a copy of A or B as (r x m) or (r x k)."""
        return np.ascontiguousarray(self.factors[name][:, : self.rank].T)

    def lift(self, by: Array) -> None:
        """Add a number to each target (k,), also in the statistics."""
        if not by.any() or "B" not in self._statistics:
            return
        if loss_named(self.settings["supervision_loss"], "supervision_loss") is not FROBENIUS:
            self._statistics = {"A": self._statistics["A"]}  # B's are for the old targets
        elif self.target_sums is not None:
            past = self._statistics["B"]
            moved = replace(past, b=past.b + by.astype(past.b.dtype)[:, None] * self.target_sums)
            self._statistics = {**self._statistics, "B": moved}

    def step(
        self, data: Term, labels: Term | None, keep: float, n: float, counted: Array | None
    ) -> None:
        """Learn from a batch of `n` samples, keeping a share of the past."""
        # Start with equal entries in the used columns of S, scaled to the mean of the data.
        A = self.factors["A"]
        size = float(A.sum(axis=1, dtype=np.float64).mean())
        mean = data.entries.total() / (n * data.shape[1]) if n else 0.0
        if mean * float(np.finfo(A.dtype).eps) ** 2 > size > 0:  # without past data, A vanishes
            moves = self.support.get("A")
            where = True if moves is None else mask_of(moves, A.shape[1])
            np.multiply(A, A.dtype.type(mean / size), out=A, where=where)
            size = mean
        level = mean / size if mean > 0 and size > 0 else 1.0
        S = np.tile(np.where(A.any(axis=0), level, 0.0), (data.shape[0], 1))
        factors = {"S": padded(S, A.dtype), **self.factors}
        related = relations(data, labels, self.weight, factors)
        if labels is not None:
            self.weight = related[1].coefficient
        problem = Problem(factors, related)
        # Squares with weights only of columns have one curvature for all rows of a factor.
        seen = {name: problem.views(name)[0].term for name in self.factors}
        asked = {name: term.gram and term.form.equal_rows for name, term in seen.items()}
        sums: dict[str, BatchStatistics] = {}
        for _ in range(_ROUNDS):
            for _ in range(_UPDATES_OF_S):
                problem.update_rows("auto")
            found = problem.row_statistics(asked)
            value = problem.objective()
            for name, statistics in found.items():
                new = BatchStatistics.of(self.factors[name], statistics)
                past = self._statistics.get(name)
                sums[name] = new if past is None else past.plus(new, keep)
                follow(self.factors[name], sums[name], seen[name], self.support.get(name))
            problem.forget()
        self._statistics = sums
        if counted is not None:
            new = counted.T.astype(problem.factors["S"].dtype) @ problem.factors["S"]
            past_sums = 0 if self.target_sums is None else self.target_sums
            self.target_sums = new + new.dtype.type(keep) * past_sums
        self._seen = keep * self._seen + n
        if self.mean_loss < inf:
            self.mean_loss += (value - n * self.mean_loss) / (self._seen or 1.0)
        numbers = self.weight, self.mean_loss, self._seen
        self.settings = self.settings | dict(zip(_NUMBERS, numbers, strict=True))


def follow(F: Array, sums: BatchStatistics, term: Term, support: Array | None = None) -> None:
    """Move a factor towards the minimizer of the statistics of batches with this term."""
    before = None if support is None else F.copy()
    alive = F > 0
    p, q = term.loss.exponents
    b, a, K = sums.b, sums.a, sums.K
    if a is None:
        descend(F, b, [Part(Quadratic(K), 1.0, b[:0])], support, _SWEEPS, 0, term.threads)
    else:
        N = _times(a, F, p)
        if K is not None:
            kernels.multiply(F, K, None, N, 1.0, True, term.threads)
        multiply(F, {term.loss: (_times(b, F, q), N)}, "mm", 0.0, term.threads)
    # Entries that no batch has used so far must stay positive for later batches.
    F[alive & (F == 0)] = np.sqrt(kernels.tiny(F.dtype))
    if before is not None and support is not None:
        np.copyto(F, before, where=~mask_of(support, F.shape[1]))


def _times(x: Array, F: Array, exponent: float) -> Array:
    """Return x F^exponent as a new array; 0 where F is 0."""
    if exponent == -1:
        return np.divide(x, F, out=np.zeros_like(x), where=F > 0)
    if exponent == 0:
        return np.array(x)
    if exponent == 1:
        return np.asarray(x * F)
    most = np.finfo(F.dtype).max
    with np.errstate(over="ignore"):  # powers of entries near 0 leave the range
        power = np.power(F, exponent, out=np.zeros_like(F), where=F > 0)
        return np.asarray(np.minimum(x * np.minimum(power, most), most))


def learn_batch(
    online: Online | None,
    X: Matrix,
    y: MatrixLike | None,
    *,
    n_components: int,
    loss: str,
    supervision_loss: str = "frobenius",
    supervision_weight: float | str = 1.0,
    X_weights: WeightsLike,
    y_weights: WeightsLike,
    init: object,
    random_state: Seed,
    n_threads: int | None,
    forget_factor: float,
    A_support: npt.ArrayLike | None = None,
    fixed_components: npt.ArrayLike | None = None,
    penalties: PenaltiesLike = None,
    sample_weight: Array | None = None,
    lift: Array | None = None,
    counted: Array | None = None,
) -> Online:
    """Learn from a batch, the first if `online` is None; return the changed or new object."""
    refuse_on_disk(X, "partial_fit")
    rank = check_integer(n_components, "n_components", 1)
    keep = check_real(forget_factor, "forget_factor", maximum=1)
    threads = resolve_threads(n_threads)
    weight = check_weight(supervision_weight)
    if online is not None:
        X = X.astype(online.factors["A"].dtype, copy=False)
    X = check_data(X, threads)
    data, labels = terms(X, y, loss, supervision_loss, X_weights, y_weights, threads)
    if X.shape[0] and not data.form.total(data.shape) > 0:
        raise ValueError(UNOBSERVED.format("X"))
    known = Known.of(X.shape, rank, X.dtype, A_support=A_support, fixed_components=fixed_components)
    if penalties:
        raise ValueError("penalties are not supported for batches; leave them out, or use fit.")
    settings = {"n_components": rank, "loss": loss}
    if y is not None:
        settings["supervision_loss"] = supervision_loss
        settings["supervision_weight"] = "balanced" if weight is None else weight
    if online is None:
        rng = check_random_state(random_state)
        if y is None and isinstance(init, str):
            warn_of_rank(rank, X.shape[1], "the number of features")
        _, A, B = start(init, X, data, labels, rank, rng, known, X_weights)
        online = Online.resume(A, B, {}, {})
    online.settings = settings | online.settings
    refuse_changes(settings, online.settings)
    if online.weight is None:
        online.weight = weight
    online.support = known.moves(online.factors)
    if lift is not None:
        online.lift(lift)
    n = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    online.step(data, labels, keep, n, counted)
    return online


_AWAKE = 1e-3  # of the mean of a column
_TOL, _MOST = 1e-4, 100  # of the coding of slices between two rounds


@dataclass(frozen=True)
class Stream:
    """Normalized factors of the other modes, with statistics of past slices."""

    factors: tuple[Array, ...]
    sums: tuple[BatchStatistics, ...]  # one for each factor
    n_slices: int
    seen: float  # sum of the current weights of the slices
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
        """Start from a fit with the loss `total`, by its optimality conditions: P = N."""
        rank, dtype, divergence = rows.shape[1], rows.dtype, loss_named(loss, "loss")
        weights = np.power(keep, np.arange(len(rows))[::-1], dtype=dtype)
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
            arrays |= one.arrays(str(k), self.factors[k].shape[1])
        return arrays

    @classmethod
    def of_arrays(cls, factors: Sequence[Array], arrays: Mapping[str, Array]) -> Stream:
        """Return a stream from :meth:`arrays`; raise ValueError for wrong shapes."""
        wanted = {"counts", *(f"b{k}" for k in range(len(factors)))}
        if not wanted <= arrays.keys() or arrays["counts"].shape != (1, 3):
            raise ValueError("the saved statistics of the slices are incomplete")
        n_slices, seen, mean_loss = arrays["counts"][0].tolist()
        sums = (BatchStatistics.of_arrays(F, str(k), arrays) for k, F in enumerate(factors))
        return cls(tuple(factors), tuple(sums), int(n_slices), seen, mean_loss)

    def learn(
        self, X: Tensor, *, loss: str | float, keep: float, threads: int
    ) -> tuple[Stream, Array]:
        """Learn from slices, the first mode of X, and return their rows; `keep` is per slice."""
        term = build_term(X, None, loss_named(loss, "loss"), "X", threads, tensor=True)
        rank, dtype = self.factors[0].shape[1], self.factors[0].dtype
        names = mode_names(len(X.shape))
        rows = padded_zeros(X.shape[0], rank, dtype)
        stored = [rows, *(padded(F, dtype) for F in self.factors)]
        # Draw new values for components that no slice has used.
        unused = np.any([~F.any(axis=0) for F in self.factors], axis=0)
        if unused.any():
            rng = np.random.default_rng(self.n_slices)
            for F in stored[1:]:
                drawn = rng.random((len(F), rank)) / len(F)
                F[:, :rank] = np.where(unused, drawn, F[:, :rank])
        problem = Problem(dict(zip(names, stored, strict=True)), [Relation(names, term)])
        far: Any = RowProducts(tuple(stored[1:]))
        n_slices = self.n_slices + X.shape[0]
        curved = term.gram and term.form.equal_rows
        left = min(keep ** X.shape[0], self.n_slices / n_slices)
        past = [one.padded() for one in self.sums]
        if not curved:  # multiplicative steps hardly increase tiny entries
            for F in stored[1:]:
                np.maximum(F, _AWAKE * F.mean(axis=0), out=F)
        solve_rows = term.loss.solve_rows
        for _ in range(_ROUNDS):
            solve_rows(term, rows, far, _TOL, _MOST)
            sums = []
            for k, name in enumerate(names[1:]):
                (side,) = problem.views(name)
                F = problem.factors[name]
                new = BatchStatistics.of(F, problem.statistics(name, curved).copied())
                sums.append(past[k].plus(new, left))
                follow(F, sums[k], side.term)
        solve_rows(term, rows, far, _TOL, _MOST)
        value = term.value(rows, far)
        seen = left * self.seen + X.shape[0]
        mean = self.mean_loss + (value - X.shape[0] * self.mean_loss) / seen
        return self._normalized(stored, sums, term.loss, n_slices, seen, mean)

    def _normalized(
        self, stored: list[Array], sums: list[BatchStatistics], loss: Loss, *counts: Any
    ) -> tuple[Stream, Array]:
        """Normalize columns, and scale their statistics."""
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
