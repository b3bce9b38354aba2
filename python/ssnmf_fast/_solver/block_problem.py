"""Problems whose data are on disk: in each iteration they are read block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .._common.arrays import Array
from .penalties import Bound, Penalties
from .problem import Ahead, Problem, Workspaces
from .relations import Relation, Side, Solver, Statistics, curvatures


class _RowsOfBlock(Problem):
    """The problem of the rows of a block; the bounds of penalties are those of all rows."""

    bounds: list[Bound]

    def _bounds(self, name: str) -> list[Bound]:
        return self.bounds if name == self.rows else []


class BlockProblem(Problem):
    """A problem whose first relation has data on disk, read by blocks of rows in their order.

    Each block updates its rows and adds its statistics for the other factor of the data, which the
    next update of that factor needs.
    """

    _ready: dict[str, Statistics]  # of the factors as they are

    def forget(self) -> None:
        super().forget()
        self._ready = {}

    def statistics(
        self, name: str, curvature: bool, sides: Sequence[Side] | None = None
    ) -> Statistics:
        if name not in self._ready:
            return super().statistics(name, curvature, sides)
        found = self._ready.pop(name)
        others = [side for side in self.sides(name) if self.rows not in side.far]
        if others:
            found.join(super().statistics(name, curvature, others))
        return found

    def update_rows(self, rule: Solver, ahead: Ahead | None = None) -> None:
        if rule == "hals" and not self.descends(self.rows, rule):
            rule = "mm"  # as for the other factor, though a block by itself could do otherwise
        ready: dict[str, Statistics] = {}
        self._ready = ready
        far = self.relations[0].names[1]
        product = 0.0
        bounds = self._bounds(self.rows)
        for rows, block in self._blocks():
            block.bounds = [bound.part(rows) for bound in bounds]
            where = None if ahead is None else ahead.part(rows)
            block.update_rows(rule)
            found = block.row_statistics({far: self.descends(far, rule)}, where)
            product += block.product()
            if far in ready:
                ready[far].add(found[far])
            else:
                ready |= found
        self._images.forget(self.rows)
        self._kept = product if self._keeps_P else None

    def _blocks(self) -> Iterator[tuple[slice, _RowsOfBlock]]:
        """Read the data, and give the problem of each block of rows."""
        first, *others = (r for r in self.relations if self.rows in r.names)
        elsewhere = curvatures([r for r in self.relations if self.rows not in r.names])
        for rows, entries in first.term.entries.blocks():
            relations = [replace(first, term=first.term.part(rows, entries))]
            relations += [replace(r, term=r.term.part(rows)) for r in others]
            factors = {**self.factors, self.rows: self.factors[self.rows][rows]}
            support = {
                name: T[rows] if name == self.rows else T for name, T in self.support.items()
            }
            given = factors, relations, support, self._workspaces, True, self.penalties
            yield rows, _RowsOfBlock(*given, elsewhere)


def problem_of(
    factors: dict[str, Array],
    relations: Sequence[Relation],
    support: Mapping[str, Array] | None = None,
    workspaces: Workspaces | None = None,
    whole: bool = True,
    penalties: Mapping[str, Penalties] | None = None,
    elsewhere: Sequence[bool] = (),
) -> Problem:
    """Return the problem of these relations, in blocks where their data are on disk."""
    kind = BlockProblem if relations[0].term.entries.streamed else Problem
    return kind(factors, relations, support, workspaces, whole, penalties, elsewhere)
