"""The problem of a fit whose rows are on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._common.arrays import Array
from .._solver.problem import Ahead, Problem, Solver
from .._solver.relations import Relation, Statistics
from ._block import Change, RowOrder
from ._cluster import Blocks
from ._rows import BlockStatistics, aligned_copy


class ClusterProblem(Problem):
    """A problem whose rows of S, and of the data, are on the workers.

    Here S and its relations have no row.  Changes of S wait for the next task; an update of the
    rows returns at once what the next updates of the other factors need.
    """

    _ready: dict[str, Statistics]

    def __init__(
        self,
        blocks: Blocks,
        factors: dict[str, Array],
        relations: Sequence[Relation],
        support: Mapping[str, Array],
        has_data: bool,
        **options: Any,
    ) -> None:
        self._blocks, self._has_data = blocks, has_data
        self._changes: list[Change] = []
        self._sums: dict[str, Any] = {}
        self._largest: Array | None = None
        super().__init__(factors, relations, support, whole=False, **options)

    def forget(self) -> None:
        super().forget()
        self._ready, self._sums = {}, {}

    def scale_rows(self, scale: float) -> None:
        """Multiply the rows of S, with the next task."""
        if scale != 1:
            self._changes.append(Change("scale", scale))
            self._largest = None

    def flush(self) -> None:
        """Let changes that wait be made."""
        if self._changes:
            self.order()

    def order(self, **what: Any) -> BlockStatistics:
        """Let all blocks do what is due, and something more."""
        if self._changes or what.get("rule"):
            self._blocks.number += 1
        order = RowOrder(self._blocks.number, tuple(self.others), tuple(self._changes), **what)
        found = self._blocks.obey(order, self.factors)
        self._changes = []
        self._largest = found.largest
        return found

    def read(self, what: Callable[..., Array], *given: Any) -> list[Any]:
        """Return futures of what a function makes of the rows of each block."""
        self.flush()
        order = RowOrder(self._blocks.number, tuple(self.others))
        return self._blocks.read(order, what, given, self.factors)

    def statistics(self, name: str, curvature: bool) -> Statistics:
        if name not in self._ready:
            self._keep(self.order(others={name: curvature}))
        return self._ready.pop(name)

    def _keep(self, found: BlockStatistics) -> None:
        self._ready = {name: _aligned(each) for name, each in found.factors.items()}

    def descends(self, name: str, rule: Solver) -> bool:
        """Whether by coordinate descent: where rows add to one Gram matrix."""
        return super().descends(name, rule) and all(s.term.gram for s in self.sides(name))

    def refines(self) -> bool:
        return False

    def update_rows(self, rule: Solver, ahead: Ahead | None = None) -> None:
        if rule == "hals" and not self.descends(self.hub, rule):
            rule = "mm"
        others = {name: self.descends(name, rule) for name in self.others}
        where = None if ahead is None else (ahead.step, ahead.positive)
        found = self.order(rule=rule, others=others, ahead=where)
        self._kept = self._value = None
        self._keep(found)
        self._sums = found.sums

    def apply(self, name: str, statistics: Statistics, rule: Solver) -> None:
        super().apply(name, statistics, rule)
        self._sums = {}

    def objective(self) -> float:
        if "product" in self._sums:
            total, constant = self._objective_from_P()
            if not (self._has_data and self._cancels(total, constant)):
                return total
        self._value = None
        return float(self.order(asks=("value",)).sums["value"])

    def squares(self) -> tuple[float, float]:
        return self._sums["below"], self._sums["constant"]

    def product(self) -> float:
        return float(self._sums.get("product", 0.0))

    def unreached(self) -> float:
        return float(self.order(asks=("unreached",)).sums["unreached"])

    def extrapolate(self, name: str, before: Array, step: float, positive: bool) -> None:
        super().extrapolate(name, before, step, positive)
        if name == self.hub:
            self._changes.append(Change("extrapolate", step, positive))

    def restore(self, factors: Mapping[str, Array]) -> None:
        super().restore(factors)
        if self.hub in factors:
            self._changes.append(Change("restore"))

    def _largest_of_rows(self) -> Array:
        if self._largest is None:
            self.order()
        assert self._largest is not None
        return self._largest

    def _shift(self, exponents: Mapping[str, Array], earlier: Mapping[str, Array]) -> None:
        super()._shift(exponents, earlier)
        self._changes.append(Change("shift", exponents=exponents[self.hub]))
        self._largest = None


def _aligned(statistics: Statistics) -> Statistics:
    """Return statistics that came over the network as the kernels hold them."""
    sums = {loss: (aligned_copy(P), aligned_copy(N)) for loss, (P, N) in statistics.sums.items()}
    parts = [
        part
        if part.quadratic.gram is None
        else part._replace(
            quadratic=replace(part.quadratic, gram=aligned_copy(part.quadratic.gram))
        )
        for part in statistics.parts
    ]
    return Statistics(sums, parts)
