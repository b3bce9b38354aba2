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
from .._data.weight_forms import Separable
from .._solver.build import build_term, check_weight, relations, terms
from .._solver.known import Known
from .._solver.losses import FROBENIUS, loss_named
from .._solver.majorizer import Kind, Majorizer, Pair
from .._solver.penalties import PenaltiesLike
from .._solver.plan import Update
from .._solver.problem import UNOBSERVED, Problem
from .._solver.relations import Relation, mode_names
from .._solver.result import sizes_of
from .._solver.starts import start
from .._solver.terms import Loss, Term, kind_of
from .._solver.weights import WeightsLike

_ROUNDS, _UPDATES_OF_S, _SWEEPS = 5, 2, 2
_LOSSES = {"A": "loss", "B": "supervision_loss"}
_NUMBERS = "weight", "mean_loss", "seen"  # of batches, kept with their settings


def refuse_changes(settings: Mapping[str, Any], learned: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting that differs from the setting of earlier batches."""
    for name, value in settings.items():
        if value != learned[name]:
            raise ValueError(
                f"{name} must stay {learned[name]!r}, as for earlier batches; got {short(value)}. "
                "Set it back, or make a new estimator, for example by sklearn.base.clone."
            )


# Batches add up majorizers at a factor of ones, for which t = f; see `Majorizer`.


def _moved(sums: Majorizer, F: Array, sign: int = 1) -> Majorizer:
    """Return a copy with equality at F instead of ones, or the reverse for the sign -1."""
    pairs: dict[Kind, Pair] = {}
    for (a, b, slope), (P, N) in sums.pairs.items():
        curved = N is None
        moved = P.copy() if curved else _times(P, F, sign * b)
        pairs[a, b, slope] = moved, None if N is None else _times(N, F, sign * a)
    return replace(sums, pairs=pairs)


def _arrays(sums: Majorizer, name: str, rank: int) -> dict[str, Array]:
    """Return the sums for a factor without padding, as arrays by name."""
    ((b, a),) = sums.pairs.values()
    parts = {"b": b, "a": a, "K": sums.gram}
    return {
        part + name: one[: rank if part == "K" else None, :rank]
        for part, one in parts.items()
        if one is not None
    }


def _check_arrays(F: Array, name: str, arrays: Mapping[str, Array]) -> None:
    """Raise ValueError unless the arrays have the shapes of sums for F, (m, r)."""
    m, r = F.shape
    found = {(part, *arrays[part + name].shape) for part in "baK" if part + name in arrays}
    if len(found) < 2 or found - {("b", m, r), ("a", m, r), ("a", 1, r), ("K", r, r)}:
        raise ValueError("the saved statistics do not have the shapes of the factors")


def _from_arrays(name: str, arrays: Mapping[str, Array], loss: Loss) -> Majorizer:
    """Return the padded sums from the arrays for a factor."""
    parts = {p: arrays[p + name] for p in "baK" if p + name in arrays}
    stored = {part: padded(one, one.dtype) for part, one in parts.items()}
    K = stored.get("K")
    K = None if K is None else np.pad(K, ((0, K.shape[1] - len(K)), (0, 0)))
    return Majorizer({kind_of(loss): (stored["b"], stored.get("a"))}, K)


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
    _sums: dict[str, Majorizer] = field(default_factory=dict)

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
                _check_arrays(given[name], name, arrays)
                loss = loss_named(settings[_LOSSES[name]], _LOSSES[name])
                made._sums[name] = _from_arrays(name, arrays, loss)
        return made

    def arrays(self) -> dict[str, Array]:
        """Return the sums of batches, as arrays by name."""
        sums = {} if self.target_sums is None else {"target_sums": self.target_sums[:, : self.rank]}
        for name, one in self._sums.items():
            sums |= _arrays(one, name, self.rank)
        return sums

    def array(self, name: str) -> Array:
        """Return a copy of A or B as (r x m) or (r x k)."""
        return np.ascontiguousarray(self.factors[name][:, : self.rank].T)

    def lift(self, by: Array) -> None:
        """Add a number to each target (k,), also in the statistics."""
        if not by.any() or "B" not in self._sums:
            return
        if loss_named(self.settings["supervision_loss"], "supervision_loss") is not FROBENIUS:
            self._sums = {"A": self._sums["A"]}  # B's are for the old targets
        elif self.target_sums is not None:
            past = self._sums["B"]
            ((kind, (P, N)),) = past.pairs.items()
            moved = P + by.astype(P.dtype)[:, None] * self.target_sums
            self._sums = {**self._sums, "B": replace(past, pairs={kind: (moved, N)})}

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
        asked: dict[str, Update] = {
            name: "descent" if term.gram and term.form.equal_rows else "multiply"
            for name, term in seen.items()
        }
        plan, sums = problem.plan("auto"), dict[str, Majorizer]()
        for _ in range(_ROUNDS):
            last = None
            for _ in range(_UPDATES_OF_S):
                last = problem.update_rows(plan, last=last)
            value = problem.objective(last)
            for name, found in problem.row_majorizers(asked).items():
                sums[name] = _moved(found, self.factors[name], -1)
                if name in self._sums:
                    sums[name].add(self._sums[name], keep)
                follow(self.factors[name], sums[name], seen[name], self.support.get(name))
        self._sums = sums
        if counted is not None:
            new = counted.T.astype(problem.factors["S"].dtype) @ problem.factors["S"]
            past_sums = 0 if self.target_sums is None else self.target_sums
            self.target_sums = new + new.dtype.type(keep) * past_sums
        self._seen = keep * self._seen + n
        if self.mean_loss < inf:
            self.mean_loss += (value - n * self.mean_loss) / (self._seen or 1.0)
        numbers = self.weight, self.mean_loss, self._seen
        self.settings = self.settings | dict(zip(_NUMBERS, numbers, strict=True))


def follow(F: Array, sums: Majorizer, term: Term, support: Array | None = None) -> None:
    """Move a factor towards the minimizer of the sums of batches with this term."""
    before = None if support is None else F.copy()
    alive = F > 0
    here = _moved(sums, F)
    ((_, N),) = here.pairs.values()
    if N is None:
        here.descend(F, support, _SWEEPS, 0, term.threads)
    else:
        if here.gram is not None:  # of earlier batches without weights of entries
            kernels.multiply(F, here.gram, None, N, 1.0, True, term.threads)
        here.multiply(F, "mm", 0.0, term.threads)
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
    sums: Mapping[str, Array]  # of slices for the factors, by names from 0
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
        sums = dict[str, Array]()
        for k, F in enumerate(stored[:-1]):
            G: Any = RowProducts(tuple(far for j, far in enumerate(stored) if j != k))
            form = Separable((*[None] * len(factors), weights), threads)
            N = np.empty_like(F)
            divergence.N(form, F, G, Target(N))
            found = Majorizer({kind_of(divergence): (N, N)})
            if divergence.quadratic:
                found = Majorizer({kind_of(divergence): (N, None)}, form.gram(G))
            sums |= _arrays(_moved(found, F, -1), str(k), rank)
        counts = len(rows), float(weights.sum()), total / len(rows)
        return cls(tuple(factors), sums, *counts)

    def arrays(self) -> dict[str, Array]:
        """Return the statistics of slices, as arrays by name."""
        return {"counts": np.array([[self.n_slices, self.seen, self.mean_loss]]), **self.sums}

    @classmethod
    def of_arrays(cls, factors: Sequence[Array], arrays: Mapping[str, Array]) -> Stream:
        """Return a stream from :meth:`arrays`; raise ValueError for wrong shapes."""
        wanted = {"counts", *(f"b{k}" for k in range(len(factors)))}
        if not wanted <= arrays.keys() or arrays["counts"].shape != (1, 3):
            raise ValueError("the saved statistics of the slices are incomplete")
        n_slices, seen, mean_loss = arrays["counts"][0].tolist()
        for k, F in enumerate(factors):
            _check_arrays(F, str(k), arrays)
        sums = {name: one for name, one in arrays.items() if name != "counts"}
        return cls(tuple(factors), sums, int(n_slices), seen, mean_loss)

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
        update: Update = "descent" if term.gram and term.form.equal_rows else "multiply"
        left = min(keep ** X.shape[0], self.n_slices / n_slices)
        past = [_from_arrays(str(k), self.sums, term.loss) for k in range(len(self.factors))]
        if update == "multiply":  # multiplicative steps hardly increase tiny entries
            for F in stored[1:]:
                np.maximum(F, _AWAKE * F.mean(axis=0), out=F)
        solve_rows = term.loss.solve_rows
        for _ in range(_ROUNDS):
            solve_rows(term, rows, far, _TOL, _MOST)
            sums = []
            for k, name in enumerate(names[1:]):
                (side,) = problem.views(name)
                F = problem.factors[name]
                new = _moved(problem.majorizer(name, update).copied(), F, -1)
                sums.append(new.add(past[k], left))
                follow(F, sums[k], side.term)
        solve_rows(term, rows, far, _TOL, _MOST)
        value = term.value(rows, far)
        seen = left * self.seen + X.shape[0]
        mean = self.mean_loss + (value - X.shape[0] * self.mean_loss) / seen
        return self._normalized(stored, sums, term.loss, n_slices, seen, mean)

    def _normalized(
        self, stored: list[Array], sums: list[Majorizer], loss: Loss, *counts: Any
    ) -> tuple[Stream, Array]:
        """Normalize columns, and scale their statistics."""
        rank = self.factors[0].shape[1]
        p, q = loss.exponents
        rows, *others = (F[:, :rank] for F in stored)
        scale = np.ones(rank, dtype=rows.dtype)
        factors, scaled = [], dict[str, Array]()
        powers = {"b": q + 1, "a": p + 1}
        for k, (F, one) in enumerate(zip(others, sums, strict=True)):
            size = sizes_of(F, loss)
            size = np.where(size > 0, size, 1).astype(F.dtype)
            scale *= size
            factors.append(F / size)
            for name, sum_ in _arrays(one, str(k), rank).items():
                by = np.outer(size, size) if name[0] == "K" else size ** powers[name[0]]
                scaled[name] = sum_ * by
        return Stream(tuple(factors), scaled, *counts), rows * scale
