"""Learning from mini-batches, with sufficient statistics of past batches: a few sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from .._backend.dispatch import kernels, padded, padded_zeros
from .._common.arrays import Array, LossName, Matrix, MatrixLike, Seed, VectorLike, mask_of
from .._common.text import short
from .._data import border
from .._data.arrays import refuse_on_disk
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
from .._solver.relations import Relation
from .._solver.result import sizes_of
from .._solver.starts import start
from .._solver.terms import Loss, Term, kind_of
from .._solver.weights import WeightsLike

_ROUNDS, _UPDATES_OF_S, _SWEEPS = 5, 2, 2
_AWAKE = 1e-3  # of the mean of a column
_TOL, _MOST = 1e-4, 100  # of the coding of slices between two rounds
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
        both = (P.copy(), None) if N is None else (_times(P, F, sign * b), _times(N, F, sign * a))
        pairs[a, b, slope] = both
    return replace(sums, pairs=pairs)


@dataclass
class Learner:
    """Factors that follow the rows of batches, with sums over the rows of past batches.

    Rows depend only on their batch, the other factors also on sums of earlier batches with
    decreasing weights (online dictionary learning, Mairal et al. 2010).
    """

    factors: dict[str, Array]  # stored by rows and padded
    rank: int
    sums: dict[str, Majorizer] = field(default_factory=dict)
    support: dict[str, Array] = field(default_factory=dict)  # where factors move, as bits
    seen: float = 0.0  # rows so far, with the weights of the sums
    mean_loss: float = 0.0  # per row, with these weights

    def factor(self, name: str) -> Array:
        """Return a factor without padding, as a view."""
        return self.factors[name][:, : self.rank]

    def arrays(self) -> dict[str, Array]:
        """Return the sums of batches without padding, as arrays by name."""
        arrays = dict[str, Array]()
        for name, sums in self.sums.items():
            ((b, a),) = sums.pairs.values()
            parts = {"b": b, "a": a, "K": None if sums.gram is None else sums.gram[: self.rank]}
            arrays |= {k + name: x[:, : self.rank] for k, x in parts.items() if x is not None}
        return arrays

    def restore(self, arrays: Mapping[str, Array], losses: Mapping[str, Loss]) -> None:
        """Take sums from arrays; raise ValueError unless they have the shapes of the factors."""
        for name, loss in losses.items():
            m, r = len(self.factors[name]), self.rank
            parts = {part: arrays[part + name] for part in "baK" if part + name in arrays}
            shapes = {(part, *one.shape) for part, one in parts.items()}
            others = shapes - {("b", m, r)}
            if len(others) == len(parts) or not others <= {("a", m, r), ("a", 1, r), ("K", r, r)}:
                raise ValueError("the saved statistics do not have the shapes of the factors")
            stored = {part: padded(one, one.dtype) for part, one in parts.items()}
            K = stored.get("K")
            K = None if K is None else np.pad(K, ((0, K.shape[1] - len(K)), (0, 0)))
            self.sums[name] = Majorizer({kind_of(loss): (stored["b"], stored.get("a"))}, K)

    def follow(self, problem: Problem, keep: float) -> dict[str, Majorizer]:
        """Move the factors towards the minimizers of their sums, and return these.

        They are the sums over the rows of the problem, and a share of those of past batches.
        """
        majorizers = dict[str, Majorizer]()
        for name, F in self.factors.items():
            term = problem.views(name)[0].term
            majorizers[name] = _moved(problem.majorizer(name, _update_of(term)), F, -1)
            if name in self.sums:
                majorizers[name].add(self.sums[name], keep)
            _update(F, majorizers[name], term, self.support.get(name))
        return majorizers

    def count(self, value: float, n: float, keep: float) -> None:
        """Include the loss of `n` rows in the mean."""
        self.seen = keep * self.seen + n
        if self.mean_loss < inf:
            self.mean_loss += (value - n * self.mean_loss) / (self.seen or 1.0)


def _update_of(term: Term) -> Update:
    """Return the update of a factor; squares with weights only of columns have one curvature."""
    return "descent" if term.gram and term.form.equal_rows else "multiply"


def _update(F: Array, sums: Majorizer, term: Term, support: Array | None) -> None:
    """Move a factor towards the minimizer of the sums of batches with this term."""
    before, here = F.copy(), _moved(sums, F)
    ((_, N),) = here.pairs.values()
    if N is None:
        here.descend(F, support, _SWEEPS, 0, term.threads)
    else:
        if here.gram is not None:  # of earlier batches without weights of entries
            kernels.multiply(F, here.gram, None, N, 1.0, True, term.threads)
        here.multiply(F, "mm", 0.0, term.threads)
    # Entries that no batch has used so far must stay positive for later batches.
    F[(before > 0) & (F == 0)] = np.sqrt(kernels.tiny(F.dtype))
    if support is not None:
        np.copyto(F, before, where=~mask_of(support, F.shape[1]))


def _times(x: Array, F: Array, exponent: float) -> Array:
    """Return x F^exponent as a new array; 0 where F is 0."""
    if exponent == -1:
        return np.divide(x, F, out=np.zeros_like(x), where=F > 0)
    if exponent in (0, 1):
        return np.asarray(x * F if exponent else x.copy())
    most = np.finfo(F.dtype).max
    with np.errstate(over="ignore"):  # powers of entries near 0 leave the range
        power = np.power(F, exponent, out=np.zeros_like(F), where=F > 0)
        return np.asarray(np.minimum(x * np.minimum(power, most), most))


@dataclass
class Online(Learner):
    """Dictionary A and classifier B of samples."""

    settings: dict[str, Any] = field(default_factory=dict)  # the same for all batches
    weight: float | None = None  # of the supervision; None until the first batch balances it
    target_sums: Array | None = None  # of the rows of S, with the weights of each target (k x r)

    @classmethod
    def resume(
        cls, A: Array, B: Array | None, settings: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> Online:
        """Start from a dictionary (r x m), a classifier (r x k), and the sums of batches."""
        factors = {name: padded(F.T, A.dtype) for name, F in (("A", A), ("B", B)) if F is not None}
        learner = cls(factors, len(A), settings={"n_components": len(A), **settings})
        if arrays:
            learner.weight, learner.mean_loss, learner.seen = (settings[name] for name in _NUMBERS)
            sums = arrays.get("target_sums")
            learner.target_sums = None if sums is None else padded(sums, sums.dtype)
            learned = [name for name in factors if name == "A" or "bB" in arrays]
            learner.restore(arrays, {name: learner.loss(name) for name in learned})
        return learner

    def loss(self, name: str) -> Loss:
        """Return the loss of A or B."""
        return loss_named(self.settings[_LOSSES[name]], _LOSSES[name])

    def arrays(self) -> dict[str, Array]:
        sums = {} if self.target_sums is None else {"target_sums": self.target_sums[:, : self.rank]}
        return sums | super().arrays()

    def lift(self, by: Array) -> None:
        """Add a number to each target (k,), also in the statistics."""
        if not by.any() or "B" not in self.sums:
            return
        if self.loss("B") is not FROBENIUS:
            self.sums.pop("B")  # which are for the old targets
        elif self.target_sums is not None:
            past = self.sums["B"]
            ((kind, (P, N)),) = past.pairs.items()
            moved = P + by.astype(P.dtype)[:, None] * self.target_sums
            self.sums["B"] = replace(past, pairs={kind: (moved, N)})

    def learn(
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
        plan = problem.plan("auto")
        for _ in range(_ROUNDS):
            last = None
            for _ in range(_UPDATES_OF_S):
                last = problem.update_rows(plan, last=last)
            value = problem.objective(last)
            sums = self.follow(problem, keep)
        self.sums = sums
        self.count(value, n, keep)
        if counted is not None:
            new = counted.T.astype(problem.factors["S"].dtype) @ problem.factors["S"]
            past_sums = 0 if self.target_sums is None else self.target_sums
            self.target_sums = new + new.dtype.type(keep) * past_sums
        self.settings |= {name: getattr(self, name) for name in _NUMBERS}


def learn_batch(
    online: Online | None,
    X: Matrix,
    y: MatrixLike | None = None,
    *,
    n_components: int,
    loss: LossName | float,
    supervision_loss: LossName | float = "frobenius",
    supervision_weight: float | str = 1.0,
    X_weights: WeightsLike,
    y_weights: WeightsLike = None,
    init: object,
    random_state: Seed,
    n_threads: int | None,
    forget_factor: float,
    A_support: npt.ArrayLike | None = None,
    fixed_components: npt.ArrayLike | None = None,
    penalties: PenaltiesLike = None,
    sample_weight: VectorLike = None,
    lift: Array | None = None,
    counted: Array | None = None,
) -> Online:
    """Learn from a batch, the first if `online` is None; return the changed or new object."""
    refuse_on_disk(X, "partial_fit")
    rank = border.check_integer(n_components, "n_components", 1)
    keep = border.check_real(forget_factor, "forget_factor", maximum=1)
    threads = resolve_threads(n_threads)
    weight = check_weight(supervision_weight)
    if online is not None:
        X = X.astype(online.factors["A"].dtype, copy=False)
    X = border.check_data(X, threads)
    data, labels = terms(X, y, loss, supervision_loss, X_weights, y_weights, threads)
    if X.shape[0] and not data.form.total(data.shape) > 0:
        raise ValueError(UNOBSERVED.format("X"))
    known = Known.of(X.shape, rank, X.dtype, A_support=A_support, fixed_components=fixed_components)
    if penalties:
        raise ValueError("penalties are not supported for batches; leave them out, or use fit.")
    settings: dict[str, Any] = {"n_components": rank, "loss": loss}
    if y is not None:
        settings["supervision_loss"] = supervision_loss
        settings["supervision_weight"] = "balanced" if weight is None else weight
    if online is None:
        rng = border.check_random_state(random_state)
        if y is None and isinstance(init, str):
            border.warn_of_rank(rank, X.shape[1], "the number of features")
        _, A, B = start(init, X, data, labels, rank, rng, known, X_weights)
        online = Online.resume(A, B, {}, {})
    online.settings = settings | online.settings
    refuse_changes(settings, online.settings)
    if online.weight is None:
        online.weight = weight
    online.support = known.moves(online.factors)
    if lift is not None:
        online.lift(lift)
    n = X.shape[0] if sample_weight is None else float(np.asarray(sample_weight, float).sum())
    online.learn(data, labels, keep, n, counted)
    return online


@dataclass
class Stream(Learner):
    """Normalized factors of all modes but that of the slices, by names from 0."""

    loss: Loss = FROBENIUS
    n_slices: float = 0

    @classmethod
    def resume(
        cls, factors: Sequence[Array], loss: LossName | float, arrays: Mapping[str, Array]
    ) -> Stream:
        """Start from normalized factors and the sums of slices, if there are any."""
        stored = {str(k): padded(F, F.dtype) for k, F in enumerate(factors)}
        learner = cls(stored, factors[0].shape[1], loss=loss_named(loss, "loss"))
        if arrays:
            if "counts" not in arrays or arrays["counts"].shape != (1, 3):
                raise ValueError("the saved statistics of the slices are incomplete")
            learner.n_slices, learner.seen, learner.mean_loss = arrays["counts"][0].tolist()
            learner.restore(arrays, dict.fromkeys(stored, learner.loss))
        return learner

    def take_fit(self, rows: Array, threads: int, *, keep: float = 1.0, total: float = 0.0) -> None:
        """Take the sums of a fit with the loss `total` from its optimality conditions: P = N."""
        weights = np.power(keep, np.arange(len(rows))[::-1], dtype=rows.dtype)
        form = Separable((*[None] * len(self.factors), weights), threads)
        arrays = {**self.factors, "rows": padded(rows, rows.dtype)}
        for name, F in self.factors.items():
            G: Any = RowProducts(tuple(far for other, far in arrays.items() if other != name))
            N, gram = np.empty_like(F), form.gram(G) if self.loss.quadratic else None
            self.loss.N(form, F, G, Target(N))
            pair = N, N if gram is None else None
            self.sums[name] = _moved(Majorizer({kind_of(self.loss): pair}, gram), F, -1)
        self.n_slices, self.seen = len(rows), float(weights.sum())
        self.mean_loss = total / len(rows)

    def arrays(self) -> dict[str, Array]:
        counts = np.array([[self.n_slices, self.seen, self.mean_loss]])
        return {"counts": counts, **super().arrays()}

    def learn(self, X: Tensor, keep: float, threads: int) -> Array:
        """Learn from slices, the first mode of X, and return their rows; `keep` is per slice."""
        n, rank, factors = X.shape[0], self.rank, self.factors
        term = build_term(X, None, self.loss, "X", threads, tensor=True)
        # Draw new values for components that no slice has used.
        unused = np.any([~F[:, :rank].any(axis=0) for F in factors.values()], axis=0)
        if unused.any():
            rng = np.random.default_rng(int(self.n_slices))
            for F in factors.values():
                start = rng.random((len(F), rank)) / len(F)
                F[:, :rank] = np.where(unused, start, F[:, :rank])
        if _update_of(term) == "multiply":  # multiplicative steps hardly increase tiny entries
            for F in factors.values():
                np.maximum(F, _AWAKE * F.mean(axis=0), out=F)
        rows = padded_zeros(n, rank, factors["0"].dtype)
        problem = Problem({"rows": rows, **factors}, [Relation(("rows", *factors), term)])
        far: Any = RowProducts(tuple(factors.values()))
        left = min(keep**n, self.n_slices / (self.n_slices + n))
        for _ in range(_ROUNDS):
            self.loss.solve_rows(term, rows, far, _TOL, _MOST)
            sums = self.follow(problem, left)
        self.loss.solve_rows(term, rows, far, _TOL, _MOST)
        self.sums = sums
        self.n_slices += n
        self.count(term.value(rows, far), n, left)
        return np.asarray(rows[:, :rank] * self._normalize())

    def _normalize(self) -> Array:
        """Divide the columns of the factors by their sizes, and return the products of these."""
        rank, scale = self.rank, np.ones(self.rank, dtype=self.factors["0"].dtype)
        for name, F in self.factors.items():
            size = sizes_of(F[:, :rank], self.loss)
            size = np.where(size > 0, size, 1).astype(F.dtype)
            scale *= size
            F[:, :rank] /= size
            sums = self.sums[name]
            (((a, b, _), (P, N)),) = sums.pairs.items()
            P[:, :rank] *= size ** (b + 1)
            if N is not None:
                N[:, :rank] *= size ** (a + 1)
            if sums.gram is not None:
                sums.gram[:rank, :rank] *= np.outer(size, size)
        return scale
