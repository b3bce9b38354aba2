"""A fit on a cluster: its blocks, its problem with rows on the workers, and its starts."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from distributed import Future, Scheduler

from .._common.arrays import Array, Seed, Solver
from .._data.border import check_random_state
from .._data.threads import resolve_threads
from .._solver import starts
from .._solver.build import even_weight, pad_factors
from .._solver.known import Known
from .._solver.majorizer import Majorizer
from .._solver.penalties import Penalties
from .._solver.plan import DEFAULT_TOL, Plan, Update, plan
from .._solver.problem import BlockProblem, LastRows, Momentum, Views
from .._solver.relations import Relation, unreached, value
from . import _cluster, _rows
from ._cluster import GOES_ON, WorkersLostError, ask, finish, keep_value, logger, result_of, retry
from ._data import ClusterData, unique
from ._rows import Block, BlockPlan, BlockStatistics, Draw, Rows, RowStep, Step


def _find_homes(
    keys: Sequence[str], before: Sequence[str], dask_scheduler: Scheduler = None
) -> list[str]:
    """Return a worker for each key, or "": preferably one that runs, and the same as before."""
    homes = []
    for key, home in zip(keys, before, strict=True):
        task = dask_scheduler.tasks.get(key)
        workers = (task and task.who_has) or ()
        having = [(w.status.name != "running", w.address != home, w.address) for w in workers]
        homes.append(min(having, default=("",))[-1])
    return homes


class ClusterFit:
    """The blocks of a fit, each on the worker with its rows of S, and totals of all blocks."""

    def __init__(self, data: ClusterData, plan: BlockPlan) -> None:
        self.data, self.plan, self.client = data, plan, data.client
        self.name = unique()
        titles = zip([(self.name, i) for i in data.positions], data.bounds[:-1], strict=True)
        self.futures = data.start(_rows.build, plan, parts=list(titles))
        self._places = [""] * len(self.futures)
        self._held: list[Any] = []  # futures of the last task
        self.free = np.arange(plan.rank) < plan.rank - data.n_fixed  # components
        self._count = 0
        self.number = 0  # of the last step that changed the rows
        retry(self.client, self._locate)
        counted: list[BlockStatistics] = result_of(self.client, self.anywhere(_rows.totals))
        self.totals = counted[0].plus(*counted[1:]).sums
        # The factor that keeps the mean of S if its support has zeros.
        self.within = data.shape[0] * plan.rank / max(1.0, self.totals["support"])
        # Only if all blocks can, with one Gram matrix for all.
        self.fills = min(self.totals.get(f"{name} fills", inf) for name in "XY") == len(counted)
        gaps = [self.totals.get(f"{name} gaps", 0.0) for name in "XY"]
        if any(0 < count < len(counted) for count in gaps):
            self._adapt(gaps, plan.weight)
        none = slice(0, 0)
        parts = self.anywhere(lambda b: [replace(r, term=r.term.part(none)) for r in b.relations])
        self.relations: list[Relation] = result_of(self.client, parts[0])

    def _locate(self) -> None:
        """Wait for all blocks and find their workers."""
        try:
            finish(self.client, self.futures)
        except WorkersLostError as error:
            for number, future in enumerate(self.futures):
                if future.cancelled():
                    raise RuntimeError(
                        f"The data of block {number} were lost, and Dask cannot recompute them: "
                        "they were scattered, or cancelled, for example by client.restart(). Give "
                        f"a dask array, delayed objects or files. {GOES_ON}"
                    ) from error
            raise
        keys, before = [future.key for future in self.futures], self._places
        look = partial(self.client.run_on_scheduler, _find_homes, keys, before)
        places: list[str] = ask(self.client, look)  # where rows of S stay
        if not all(places):
            raise WorkersLostError("A worker was lost while the blocks were located.")
        self._places = places

    def anywhere(self, task: Callable[..., Any], *arguments: object) -> list[Future]:
        """Submit a task for each block to its worker, or to another if that is gone."""
        submit = partial(self.client.submit, task, allow_other_workers=True, pure=False)
        pairs = zip(self.futures, self._places, strict=True)
        return [submit(future, *arguments, workers=[place]) for future, place in pairs]

    def _adapt(self, gaps: Sequence[float], weight: float) -> None:
        """Replace each block, on its worker, by an adapted one."""
        self.futures = self.anywhere(_rows.adapt, gaps, weight)
        retry(self.client, self._locate)

    def _collect(
        self, task: Callable[..., BlockStatistics], each: Sequence[object], *factors: Array
    ) -> BlockStatistics:
        """Run a task for all blocks with an argument each; return the sum of the statistics."""
        client, started = self.client, list[Future]()
        self._count += 1
        try:
            sent = _cluster.scatter(client, factors, self._places) if factors else {}
            shared = [sent.get(place, []) for place in self._places]
            numbers = range(len(self.futures))
            keys = [f"{task.__name__}-{self.name}-{self._count}-{number}" for number in numbers]
            arguments = self.futures, [task] * len(keys), each, *zip(*shared, strict=True)
            where = dict(zip(keys, self._places, strict=True)).__getitem__
            with dask.annotate(workers=where, allow_other_workers=False):  # all in one message
                started += client.map(_rows.run_task, *arguments, key=keys, pure=False)
            # The caller adds the last two if workers send to it directly: one message less.
            n_sums = 2 if client.direct_to_workers else 1
            last = _cluster.add_in_tree(client, started, BlockStatistics.plus, n_sums)
            # Release earlier futures in the same message as new tasks, so as not to delay these.
            self._held = [started, sent]
            sums: list[BlockStatistics] = result_of(client, last, self._places)
        except BaseException:
            _cluster.cancel(client, started)
            raise
        total = sums[0].plus(*sums[1:], copy=_rows.aligned_copy)
        if logger.isEnabledFor(logging.INFO):  # factors to each worker, and sums back
            n_workers = len(set(self._places))
            size = sum(F.nbytes for F in factors) + len(pickle.dumps(total, protocol=5))
            logger.info(
                "%d workers: %.1f MB moved (%s)", n_workers, n_workers * size / 1e6, keys[-1]
            )
        return total

    def run(self, step: Step, factors: Mapping[str, Array]) -> BlockStatistics:
        """Return the statistics of all blocks after a step.

        If a worker is lost, another worker rebuilds its blocks, and the step is repeated.
        """
        others = [factors[name] for name in step.names]
        attempt = partial(self._collect, _rows.run_step, [step] * len(self.futures), *others)
        return retry(self.client, attempt, self._locate)

    def read(self, step: Step, factors: Mapping[str, Array]) -> list[Future]:
        """Return futures of the results of a step that reads the rows of each block."""
        shared = [keep_value(self.client, factors[name]) for name in step.names]

        def attempt() -> list[Future]:
            futures = self.anywhere(_rows.run_task, _rows.run_step, step, *shared)
            finish(self.client, futures)  # before the workers drop the rows
            return futures

        return retry(self.client, attempt, self._locate)

    def mean(self, name: str = "X") -> float:
        """Return the weighted mean of X or Y; 1 if it is 0."""
        weights = self.totals[f"{name} weights"]
        return float(self.totals[name] / weights if weights > 0 else 0.0) or 1.0

    def begin(self, each: Sequence[Draw | Future] | None = None) -> tuple[Array, Array]:
        """Set S to its start; return column means, with and without support."""
        attempt = partial(self._collect, _rows.begin, each or [None] * len(self.futures))
        sums = retry(self.client, attempt, self._locate).sums
        n = self.data.shape[0]
        return sums["columns"] / n, sums["unbound"] / n

    def balance(self, losses: Array) -> float:
        """Set the weight of the supervision so that both losses are equal."""
        weight = even_weight(losses[0], losses[1])
        self.relations = [self.relations[0], replace(self.relations[1], coefficient=weight)]
        self._adapt((0, 0), weight)
        return weight


@contextmanager
def cluster_fit(data: ClusterData, plan: BlockPlan) -> Iterator[ClusterFit]:
    """Yield a fit; on exit, the workers drop its blocks with their rows."""
    fit = ClusterFit(data, plan)
    try:
        with _cluster.note_interrupts():
            yield fit
    finally:
        fit.futures, fit._held = [], []


class ClusterProblem(BlockProblem):
    """A problem with the rows of S and of the data on the workers.

    Here S and its relations have no rows.  Changes of S wait for the next task.
    """

    _of_rows = 0.0  # penalties of S

    def __init__(
        self,
        fit: ClusterFit,
        factors: dict[str, Array],
        support: Mapping[str, Array],
        local: Sequence[Relation] = (),
        penalties: Mapping[str, Penalties] | None = None,
    ) -> None:
        self._fit, self._has_data = fit, fit.totals["data"] > 0
        self._changes: list[Callable[[Rows], None]] = []
        self._largest: Array | None = None
        self._local = local
        self._elsewhere = tuple(name for r in fit.relations for name in r.names[1:])
        related = [*fit.relations, *local]
        super().__init__(factors, related, support, penalties=penalties)
        self._auto = self.plan("auto")
        self.threads = resolve_threads()  # all threads: the workers wait for the caller

    def scale_rows(self, scales: Array) -> None:
        """Multiply the components of S, except fixed ones, with the next task."""
        free = scales[: len(scales) - self._fit.data.n_fixed]
        if (free != 1).any():
            self._changes.append(partial(Rows.scale, scales=free))

    def plan(self, rule: Solver, tol: float = DEFAULT_TOL) -> Plan:
        rank = self.factors[self.rows].shape[1]
        fills = self._fit.fills
        return plan(self.relations, self.penalties, rule, tol, rank=rank, whole=False, fills=fills)

    def _step(self, plan: Plan | None = None, **parts: Any) -> RowStep:
        fields = {"number": self._fit.number, "names": self._elsewhere, **parts}
        return RowStep(plan=plan or self._auto, updates=plan is not None, **fields)

    def run_step(self, plan: Plan | None = None, **parts: Any) -> BlockStatistics:
        """Run the waiting changes, and a step with these fields, in all blocks."""
        changes, self._changes = tuple(self._changes), []
        moves = bool(changes or plan)
        self._fit.number += moves
        step = self._step(plan, moves=moves, changes=changes, **parts)
        statistics = self._fit.run(step, self.factors)
        self._largest = statistics.largest
        self._of_rows = float(statistics.sums.get("penalties", 0.0))
        return statistics

    def read(self, reads: Callable[[Block, Rows], Array]) -> list[Future]:
        """Return futures of the results of a function for the rows of each block."""
        if self._changes:
            self.run_step()
        return self._fit.read(self._step(reads=reads), self.factors)

    def majorizer(
        self, name: str, update: Update, last: LastRows | None = None, views: Views = None
    ) -> Majorizer:
        if name in self._elsewhere and (last is None or name not in last.ready):
            last = LastRows(ready=self.run_step(others={name: update}).factors)
        return super().majorizer(name, update, last, views)

    def update_rows(
        self, plan: Plan, momentum: Momentum | None = None, last: LastRows | None = None
    ) -> LastRows:
        others = {name: plan.by_factor[name] for name in self._elsewhere}
        where = None if momentum is None else (momentum.step, momentum.positive)
        found = self.run_step(plan, others=others, ahead=where)
        if "value" in found.sums:
            return LastRows(value=float(found.sums["value"]), ready=found.factors)
        if "product" not in found.sums:
            return LastRows(ready=found.factors)
        below, constant = found.sums["sides"].tolist()
        return LastRows(None, False, found.sums["product"], (below, constant), ready=found.factors)

    def _value_of_terms(self, last: LastRows | None) -> float:
        here = value(self._local, self.factors)
        if last is not None and last.value is not None:
            return last.value + here
        if last is not None and last.product is not None:
            total, constant = self._objective_from_P(last)
            if not (self._has_data and self._cancels(total, constant)):
                return total + here
        return float(self.run_step(asks=(value,)).sums["value"]) + here

    def _value_of_penalties(self) -> float:
        """Return the penalties, for S those of the last step."""
        return self._of_rows + super()._value_of_penalties()

    def _still(self) -> list[Array]:
        rank, number = self._fit.plan.rank, np.arange(self.factors[self.rows].shape[1])
        fixed = (rank - self._fit.data.n_fixed <= number) & (number < rank)
        return [*super()._still(), fixed]

    def unreached(self) -> float:
        return float(self.run_step(asks=(unreached,)).sums["unreached"])

    def extrapolate(self, name: str, before: Array, step: float, positive: bool) -> None:
        super().extrapolate(name, before, step, positive)
        if name == self.rows:
            self._changes.append(partial(Rows.extrapolate, step=step, positive=positive))

    def restore(self, factors: Mapping[str, Array]) -> None:
        super().restore(factors)
        if self.rows in factors:
            self._changes.append(Rows.restore)

    def _largest_of(self, name: str) -> Array:
        if name != self.rows:
            return super()._largest_of(name)
        return self.run_step().largest if self._largest is None else self._largest

    def _shift(self, exponents: Mapping[str, Array], earlier: Mapping[str, Array]) -> None:
        super()._shift(exponents, earlier)
        self._changes.append(partial(Rows.shift, exponents=exponents[self.rows]))
        self._largest = None


def pcg64_of(random_state: Seed) -> np.random.Generator:
    """Return a generator that blocks can advance: the user's, if it is a PCG64."""
    rng = check_random_state(random_state)
    if isinstance(rng.bit_generator, np.random.PCG64):
        return rng
    return np.random.Generator(np.random.PCG64(int(rng.integers(2**63))))


Start = tuple[Array, Array, Array]  # A, the means of S, and factors for its components


def begin(fit: ClusterFit, init: str, rng: np.random.Generator, known: Known) -> Start:
    """Start S as in memory; return the other parts of the start, with the known parts of A."""
    if init == "nndsvda":
        raise ValueError("init='nndsvda' is not available on a cluster; use 'random' or arrays.")
    name, data = starts.choose_start(init, fit.plan.losses[0], fit.data.on_disk), fit.data
    if name == "random-acol":
        chosen = rng.integers(data.shape[0], size=(fit.plan.rank, starts.ROWS_PER_MEAN))
        numbers, places = np.unique(chosen, return_inverse=True)
        parts = data.parts(numbers)
        some = result_of(data.client, data.start(_rows_of, parts=parts))
        rows = np.vstack([part.toarray() if sp.issparse(part) else part for part in some])
        A = rows[places.reshape(chosen.shape)].mean(axis=1) + 0.01 * fit.mean()
        means, unbound = fit.begin(_draws(fit, rng, 1.0))
        scale = even_weight(fit.mean(), float(unbound @ A.mean(axis=1))) * fit.within
        return _as_known(fit, A, means, scale, known)
    start = None
    if name == "least-squares" and fit.totals["X"] > 0:
        start = _least_squares(fit, rng, known)
    return _uniform(fit, rng, known) if start is None else start


def _rows_of(block: Any, numbers: Array) -> Any:
    X = block.X if block.X_weights is None else block.X_weights.hide(block.X)
    return starts.rows_of(X, numbers)


def _uniform(fit: ClusterFit, rng: np.random.Generator, known: Known) -> Start:
    rank, m = fit.plan.rank, fit.data.shape[1]
    scale = 2 * np.sqrt(fit.mean() / rank)
    means, _ = fit.begin(_draws(fit, rng, scale * fit.within))
    return _as_known(fit, scale * rng.random((rank, m)), means, 1.0, known)


def _least_squares(fit: ClusterFit, rng: np.random.Generator, known: Known) -> Start | None:
    """Start from the squares of factors fitted to the square roots of X; None if one is 0."""
    plan = replace(fit.plan, of_roots=True, lengths=((), ()), penalties={})
    rank = plan.rank
    with cluster_fit(fit.data, plan) as roots:
        A, _, scales = _uniform(roots, rng, known.roots())
        factors = pad_factors(np.zeros((0, rank), fit.data.dtype), A, None)
        problem = ClusterProblem(roots, factors, known.moves(factors))
        problem.scale_rows(scales)
        starts.short_fit(problem)
        F = problem.factors["A"][:, :rank].astype(np.float64) ** 2
        mean = problem.run_step(asks=(_rows.squares,)).sums["squares"] / (fit.data.shape[0] * rank)
        if not (mean > 0 and F.mean() > 0):
            return None
        floor = starts.FILLER * mean
        means, _ = fit.begin(problem.read(partial(_rows.square_rows, floor=floor)))
    A = known.restore("A", np.maximum(F, starts.FILLER * F.mean())).T
    scales = np.where(fit.free, even_weight(fit.mean(), float(means @ A.mean(axis=1))), 1.0)
    return A, means * scales, scales


def _as_known(fit: ClusterFit, A: Array, means: Array, scale: float, known: Known) -> Start:
    """Return a drawn start with the known parts of A, for an S that is still to be scaled."""
    F, scales = known.restore("A", known.within("A", A.T)), np.where(fit.free, scale, 1.0)
    levels = known.levels({"S": means * scales, "A": F.mean(axis=0)}, fit.mean())
    scales *= levels["S"]
    return (F * levels["A"]).T, means * scales, scales


def _draws(fit: ClusterFit, rng: np.random.Generator, scale: float) -> list[Draw]:
    """Return the draws of all blocks, and advance the generator past them."""
    bits, draws = rng.bit_generator, list[Draw]()
    assert isinstance(bits, np.random.PCG64)
    for n_rows in np.diff(fit.data.bounds).tolist():
        draws.append((bits.state, float(scale)))
        bits.advance(n_rows * fit.plan.rank)
    return draws
