"""A dense array with separable weights, as data that the passes run over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import Array
from .entries import Csr, DenseEntries, Entries, Target, block_slices


@dataclass(frozen=True)
class WeightedEntries(Entries):
    """``rows columns^T .* Z`` for a dense Z, without an array of its size; None stands for ones."""

    entries: DenseEntries
    rows: Array | None
    columns: Array | None

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.entries.threads

    def transposed(self) -> WeightedEntries:
        return WeightedEntries(self.entries.transposed(), self.columns, self.rows)

    def part(self, rows: slice) -> WeightedEntries:
        weights = None if self.rows is None else self.rows[rows]
        return WeightedEntries(self.entries.part(rows), weights, self.columns)

    def block(self, rows: slice) -> DenseEntries:
        """Return some rows, weighted."""
        array = self.entries.array[rows]
        if self.entries.mask:
            array = np.where(np.isnan(array), array.dtype.type(0), array.dtype.type(1))
        if self.columns is not None:
            array = array * self.columns
        if self.rows is not None:
            array = array * self.rows[rows, None]
        return DenseEntries(array, self.threads)

    def _blocks(self) -> Iterator[tuple[slice, DenseEntries]]:
        for rows in block_slices(self.entries.array.shape):
            yield rows, self.block(rows)

    def total(self) -> float:
        return sum(block.total() for _, block in self._blocks())

    def csr_rows(self, rows: slice) -> Csr:
        return self.block(rows).csr_rows(slice(0, rows.stop - rows.start))

    def power(self, exponent: float, F: Array | None, G: Array, to: Target) -> None:
        if exponent and self.columns is not None and F is not None:
            for rows, block in self._blocks():
                block.power(exponent, F[rows], G, to.rows(rows))
            return
        if self.columns is not None:
            G = self.columns[:, None] * G
        to.weighted(self.rows, lambda part: self.entries.power(exponent, F, G, part))

    def sum(self, name: str, F: Array, G: Array, *parameters: Any) -> float:
        return sum(block.sum(name, F[rows], G, *parameters) for rows, block in self._blocks())
