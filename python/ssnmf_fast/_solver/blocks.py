"""A fit to data that are read a block of rows at a time: once in every iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._common.arrays import Array
from .problem import Ahead, Problem, Solver
from .relations import Relation, Statistics


def problem_of(
    factors: dict[str, Array],
    relations: Sequence[Relation],
    support: Mapping[str, Array] | None = None,
    **options: Any,
) -> Problem:
    """Return the problem of these relations, in blocks where their data are on disk."""
    blocked = relations[0].term.entries.streamed
    return (BlockProblem if blocked else Problem)(factors, relations, support, **options)


class BlockProblem(Problem):
    """A problem whose first relation has streamed data.

    Blocks of rows are read in order.  Each updates its rows of the hub and adds its statistics for
    the other factor of the data, which the next update of that factor needs.
    """

    _ready: dict[str, Statistics]  # of the factors as they are

    def forget(self) -> None:
        super().forget()
        self._ready = {}

    def statistics(self, name: str, curvature: bool) -> Statistics:
        return self._ready.pop(name, None) or super().statistics(name, curvature)

    def update_rows(self, rule: Solver, ahead: Ahead | None = None) -> None:
        if rule == "hals" and not self.descends(self.hub, rule):
            rule = "mm"  # as for the other factor, though a block by itself could do otherwise
        ready: dict[str, Statistics] = {}
        self._ready = ready
        far = self.relations[0].names[1]
        product = 0.0
        for rows, block in self._blocks():
            where = None if ahead is None else ahead.part(rows)
            found = block.step(rule, {far: self.descends(far, rule)}, where)
            product += block.product()
            if far in ready:
                ready[far].add(found[far])
            else:
                ready |= found
        self._mapped.changed(self.hub)
        self._kept = product if self._keeps_P else None

    def _blocks(self) -> Iterator[tuple[slice, Problem]]:
        """Read the data, and give the problem of each block of rows."""
        first, *others = self.relations
        for rows, entries in first.term.entries.blocks():
            relations = [replace(first, term=first.term.part(rows, entries))]
            relations += [replace(r, term=r.term.part(rows)) for r in others]
            factors = {**self.factors, self.hub: self.factors[self.hub][rows]}
            support = {name: T[rows] if name == self.hub else T for name, T in self.support.items()}
            yield rows, Problem(factors, relations, support, self._workspaces)
