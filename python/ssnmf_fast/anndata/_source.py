"""The matrix of an AnnData, in memory or in a file, given in pieces of rows or of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from anndata import AnnData

from .._common.arrays import Array
from .._data.arrays import read_sparse, require_real
from .._data.border import check_matrix
from .._data.csr_file import equal_blocks

_PIECE = 1 << 24  # bytes of a piece in memory, at most
_LONG = np.dtype(np.float64)
COUNTS = (
    "Name the layer that has the counts by layer, or take those of adata.raw, by "
    "adata.raw.to_adata()"
)


class Piece(NamedTuple):
    """A part of the matrix as a csr array, and which rows and which of the genes it has."""

    rows: slice
    genes: slice
    values: sp.csr_array


@dataclass(frozen=True)
class Source:
    """A matrix of an AnnData: `name` is how a user writes it, `layer` that of uns."""

    matrix: Any
    name: str
    layer: str

    @classmethod
    def of(cls, adata: Any, layer: str | None) -> Source:
        """Return X or a layer; raises ValueError or TypeError where there is none."""
        require_annotated(adata, "adata")
        if adata.isbacked and adata.is_view:
            raise ValueError(
                "adata is a part of an AnnData that is backed by a file, which can take no "
                "results. Give adata.to_memory(), or adata.copy('part.h5ad')."
            )
        if layer is None:
            if adata.X is None:
                raise ValueError(
                    f"adata.X is None; name one of the layers, {list(adata.layers)}, by layer."
                )
            return cls(_sound(adata.X, "adata.X"), "adata.X", "X")
        if layer not in adata.layers:
            raise ValueError(
                f"layer={layer!r} is not among the layers of adata, {list(adata.layers)}."
            )
        name = f"layers[{layer!r}]"
        return cls(_sound(adata.layers[layer], f"adata.{name}"), f"adata.{name}", name)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and of genes."""
        n, m = self.matrix.shape
        return int(n), int(m)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 for floats that long; float32 for all else, exact for counts up to 2^24."""
        long = self.matrix.dtype.kind == "f" and self.matrix.dtype.itemsize >= _LONG.itemsize
        return _LONG if long else np.dtype(np.float32)

    @property
    def in_memory(self) -> bool:
        """Whether it is an array of NumPy or SciPy, and not a part of a file."""
        return isinstance(self.matrix, np.ndarray) or sp.issparse(self.matrix)

    @property
    def is_sparse(self) -> bool:
        """Whether zeros are not stored."""
        return self._format in ("csr", "csc") or sp.issparse(self.matrix)

    @property
    def by_columns(self) -> bool:
        """Whether columns, and not rows, can be read one by one."""
        return self._format == "csc"

    @property
    def _format(self) -> str | None:
        return getattr(self.matrix, "format", None)

    def pieces(self, genes: Array) -> Iterator[Piece]:
        """Give all entries of some genes, by their numbers in rising order, checked."""
        n = self.shape[0]
        if self.by_columns:
            for place in equal_blocks(self.ends(genes), self._entries):
                part = self.checked(self.matrix[:, genes[place]], genes[place])
                yield Piece(slice(0, n), place, _canonical(part))
            return
        for rows in equal_blocks(self.ends(np.arange(n)), self._entries):
            part = self.checked(self.matrix[rows], genes, rows.start)
            yield Piece(rows, slice(0, len(genes)), _canonical(part))

    def most_entries(self, genes: Array) -> int:
        """Return how many entries some genes may have."""
        if not self.is_sparse:
            return self.shape[0] * len(genes)
        lines = genes if self.by_columns else np.arange(self.shape[0])
        return int(self.ends(lines)[-1])

    def knows_entries(self, genes: Array) -> bool:
        """Return whether these genes have all of these entries, if they are sound."""
        return self.is_sparse and (self.by_columns or len(genes) == self.shape[1])

    @property
    def _entries(self) -> int:
        """Number of entries of a piece."""
        index = np.dtype(np.int64).itemsize if self.is_sparse else 0
        return _PIECE // int(self.matrix.dtype.itemsize + index)

    def ends(self, lines: Array) -> Array:
        """Return where rows, or columns, end if their stored entries follow each other."""
        if not self.is_sparse:
            return np.arange(len(lines) + 1, dtype=np.int64) * self.shape[1]
        indptr = self.matrix.indptr if self.in_memory else self.matrix.group["indptr"][:]
        lengths = np.diff(np.asarray(indptr).astype(np.int64))[lines]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])

    def checked(self, part: Any, genes: Array, first: int = 0) -> Any:
        """Return some genes of a part, whose first row has this number, of the dtype to work in.

        Every number that is read passes here.
        """
        part = part.compute() if hasattr(part, "compute") else part  # of a dask array
        name = f"{self.name}[{first}:]" if first else self.name
        if part.shape[1] != len(genes):
            of_file = sp.issparse(part) and not self.in_memory
            part = (read_sparse(part, name) if of_file else part)[:, genes]
        return check_matrix(
            part, name, dtype=self.dtype, allow_nan=False, remedy=f"the data look scaled. {COUNTS}"
        )


def _canonical(part: Any) -> sp.csr_array:
    """Return a checked part as a csr array with sorted rows."""
    block = sp.csr_array(part)
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    return block


def _sound(matrix: Any, name: str) -> Any:
    """Return a sparse matrix in memory with parts that SciPy may follow, and others as they are."""
    require_real(matrix.dtype, name)
    return read_sparse(matrix, name) if sp.issparse(matrix) else matrix


def require_annotated(adata: Any, name: str) -> None:
    """Raise TypeError unless it is an AnnData."""
    if not isinstance(adata, AnnData):
        raise TypeError(
            f"{name} must be an AnnData; got {type(adata).__name__}. For arrays and sparse "
            "matrices there are ssnmf_fast.factorize and ssnmf_fast.NMF."
        )
