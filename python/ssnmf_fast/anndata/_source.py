"""The matrix of an AnnData, in memory or in a file, given in pieces of rows or of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from anndata import AnnData

from .._common.arrays import Array
from .._common.text import listed
from .._common.warn import warn_user
from .._data.arrays import read_sparse, require_real, scale_rows, with_values
from .._data.border import check_integer, check_matrix
from .._data.csr_file import RowCollector, bytes_of, equal_blocks

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


MEMORY = 1 << 30
_OF_BLOCKS = 4  # share of the memory that rows of a file take while a fit reads them


@contextmanager
def read_matrix(
    source: Source, genes: Array, scales: Array | None, memory: Any, folder: Any
) -> Iterator[Any]:
    """Give the matrix of some genes (cells x genes); a file for it is there within the context.

    It is dense or a csr array, or a CsrFile if it would take more than `memory` bytes.
    """
    memory = check_integer(memory, "memory", 1)
    n = source.shape[0]
    if source.in_memory:
        yield _chosen(source, genes, scales)
    elif not source.is_sparse and n * len(genes) * source.dtype.itemsize <= memory:
        yield _dense(source, genes, scales)
    else:
        with _collected(source, genes, memory, folder) as (rows, blocks):
            for block in blocks:
                rows.append(_divided(block, scales, source.dtype))
            yield rows.finish(max(1, memory // _OF_BLOCKS))


@contextmanager
def cells_of_size(source: Source, factors: Array, memory: int, folder: Any) -> Iterator[Any]:
    """Give the matrix of all genes times the factors of cells; else as :func:`read_matrix`."""
    with _collected(source, np.arange(source.shape[1]), memory, folder) as (rows, blocks):
        first = 0
        for block in blocks:
            last = first + block.shape[0]
            rows.append(scale_rows(block, factors[first:last]))
            first = last
        yield rows.finish(max(1, memory // _OF_BLOCKS))


@contextmanager
def _collected(
    source: Source, genes: Array, memory: int, folder: Any
) -> Iterator[tuple[RowCollector, Iterator[sp.csr_array]]]:
    """Give where blocks of rows are collected, and the blocks of some genes."""
    with TemporaryDirectory(prefix="ssnmf_fast_", dir=folder) as place:
        capacity = memory // bytes_of(1, source.dtype)
        most = source.most_entries(genes)
        if most > capacity and source.knows_entries(genes):
            capacity = 0  # all go to a file in any case
        rows = RowCollector(Path(place), len(genes), source.dtype, min(most, capacity))
        yield rows, _row_blocks(source, genes, Path(place), memory)


def _chosen(source: Source, genes: Array, scales: Array | None) -> Any:
    X = source.checked(source.matrix, genes)
    if scales is None:
        return X
    return _divided(X, scales, X.dtype) if sp.issparse(X) else (X / scales).astype(X.dtype)


def _dense(source: Source, genes: Array, scales: Array | None) -> Array:
    X = np.empty((source.shape[0], len(genes)), source.dtype)
    for piece in source.pieces(genes):
        X[piece.rows] = _divided(piece.values, scales, X.dtype).toarray()
    return X


def _divided(block: sp.csr_array, scales: Array | None, dtype: np.dtype[Any]) -> sp.csr_array:
    """Return a block of the dtype, whose columns are divided by their scales."""
    values = block.data if scales is None else block.data / scales[block.indices]
    return with_values(block, values.astype(dtype, copy=False))


def _row_blocks(source: Source, genes: Array, folder: Path, memory: int) -> Iterator[sp.csr_array]:
    """Give blocks of rows, from the first to the last."""
    if not source.by_columns:
        for piece in source.pieces(genes):
            yield piece.values
        return
    entries = np.dtype([("row", np.int32), ("gene", np.int32), ("value", source.dtype)])
    n_bytes = int(source.ends(genes)[-1]) * entries.itemsize
    n_parts = min(source.shape[0], 1 + n_bytes * _OF_BLOCKS // memory)
    cuts = np.linspace(0, source.shape[0], n_parts + 1).astype(np.int64)
    files = [folder / f"rows{number}.bin" for number in range(n_parts)]
    parts = list(zip(files, cuts[:-1], cuts[1:], strict=True))
    for piece in source.pieces(genes):
        for file, first, last in parts:
            _add_entries(file, piece.values[first:last], piece.genes.start, entries)
    for file, first, last in parts:
        found = np.fromfile(file, entries)
        file.unlink()
        places = found["row"], found["gene"]
        yield sp.coo_array((found["value"], places), (last - first, len(genes))).tocsr()


def _add_entries(file: Path, block: sp.csr_array, first: int, entries: np.dtype[Any]) -> None:
    """Write the entries of some columns, of which `first` is the first, below those before."""
    part = block.tocoo()
    found = np.empty(part.nnz, entries)
    found["row"], found["gene"], found["value"] = part.row, part.col + first, part.data
    with file.open("ab") as stream:
        found.tofile(stream)


HIGHLY_VARIABLE = "highly_variable"
SCALE = "nmf_scale"  # column of var that `prepare` writes
PREPARED = "nmf_prepare"  # in uns


def chosen_genes(adata: Any, use_highly_variable: Any, mask_var: Any) -> Array:
    """Return whether each gene is to be used, (m,)."""
    if mask_var is None:
        if not use_highly_variable:
            return np.ones(adata.n_vars, dtype=bool)
        if HIGHLY_VARIABLE not in adata.var:
            warn_user(
                f"adata.var has no column {HIGHLY_VARIABLE!r}: all {adata.n_vars} genes are used. "
                "Choose genes with ssnmf_fast.anndata.prepare or scanpy.pp.highly_variable_genes, "
                "or say use_highly_variable=False.",
                UserWarning,
            )
            return np.ones(adata.n_vars, dtype=bool)
        mask_var = HIGHLY_VARIABLE
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(
                f"mask_var={mask_var!r} is not among the columns of adata.var, {list(adata.var)}."
            )
        mask_var, name = adata.var[mask_var], f"adata.var[{mask_var!r}]"
    else:
        name = "mask_var"
    mask = np.asarray(mask_var)
    if mask.shape != (adata.n_vars,) or mask.dtype != bool:
        raise ValueError(
            f"{name} has shape {mask.shape} and dtype {mask.dtype}; expected a bool for each of "
            f"the {adata.n_vars} genes."
        )
    if not mask.any():
        raise ValueError(f"{name} chooses no gene; expected at least one.")
    return mask


def scales_of(adata: Any, source: Source, scale: bool) -> Array | None:
    """Return what each gene is divided by, (m,), where `prepare` has written it."""
    if not scale or SCALE not in adata.var:
        return None
    prepared = adata.uns.get(PREPARED, {}).get("layer", source.layer)
    if prepared != source.layer:
        raise ValueError(
            f"adata.var[{SCALE!r}] has the scales of adata.{prepared}, and the data are "
            f"{source.name}. Give the layer that was prepared, or scale=False."
        )
    scales = np.asarray(adata.var[SCALE], dtype=np.float64)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ValueError(
            f"adata.var[{SCALE!r}] must hold finite numbers above 0. Run prepare again, or give "
            "scale=False."
        )
    return scales


def gene_numbers(adata: Any, genes: Iterable[str], where: str) -> Array:
    """Return the numbers of genes by their names, and warn of names that adata does not have."""
    names = [] if isinstance(genes, str) else list(genes)
    if isinstance(genes, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{where} must have the names of genes; got {genes!r:.100}.")
    require_unique(adata, "adata")
    found = np.asarray(adata.var_names.get_indexer(names))
    unknown = [name for name, place in zip(names, found, strict=True) if place < 0]
    if 0 < len(unknown) < len(names):
        warn_user(
            f"{where} names {len(unknown)} genes that adata.var_names does not have, which are "
            f"left out: {listed(unknown)}.",
            UserWarning,
        )
    if len(unknown) == len(names):
        raise ValueError(f"{where} has no gene that is in adata.var_names; give one or more.")
    return found[found >= 0]


def require_unique(adata: Any, name: str) -> None:
    """Raise ValueError if genes share a name."""
    if not adata.var_names.is_unique:
        raise ValueError(
            f"{name}.var_names has names more than once. Use {name}.var_names_make_unique()."
        )


_TOTAL = 1e6  # counts of every cell, when genes are compared


class Moments(NamedTuple):
    """Sums over cells: of each gene and of its square, as they are and for cells of one size."""

    counts: Array
    squares: Array
    of_size: Array
    squares_of_size: Array


def cell_sums(source: Source, genes: Array) -> Array:
    """Return the sum of some genes in each cell, (n,)."""
    totals = np.zeros(source.shape[0])
    for piece in source.pieces(genes):
        totals[piece.rows] += piece.values.sum(axis=1, dtype=np.float64)
    return totals


def factors_of_size(source: Source) -> Array:
    """Return what the counts of each cell are to be multiplied by for a sum of a million, (n,)."""
    totals = cell_sums(source, np.arange(source.shape[1]))
    return np.divide(_TOTAL, totals, out=np.zeros(len(totals)), where=totals > 0)


def moments_of(source: Source) -> Moments:
    """Read the counts twice: for the sums of cells, and for those of genes."""
    m = source.shape[1]
    factors = factors_of_size(source)
    moments = Moments(*np.zeros((4, m)))
    whole = True
    for piece in source.pieces(np.arange(m)):
        counts = piece.values.astype(np.float64)
        whole = whole and bool((counts.data == np.floor(counts.data)).all())
        add_moments(moments.counts, moments.squares, piece.genes, counts)
        of_size = scale_rows(counts, factors[piece.rows])
        add_moments(moments.of_size, moments.squares_of_size, piece.genes, of_size)
    if not whole:
        warn_user(
            f"{source.name} has numbers that are not whole, and prepare is for counts. {COUNTS}.",
            UserWarning,
        )
    return moments


def deviations_of(source: Source, genes: Array) -> Array:
    """Return the standard deviation of each of some genes, 1 for one that does not vary."""
    sums, squares = np.zeros((2, len(genes)))
    for piece in source.pieces(genes):
        add_moments(sums, squares, piece.genes, piece.values.astype(np.float64))
    return deviations(sums, squares, source.shape[0])


def deviations(sums: Array, squares: Array, n: int) -> Array:
    """Return standard deviations of a sample, 1 for what does not vary."""
    variance = (squares - sums**2 / n) / max(n - 1, 1)
    return np.sqrt(np.where(variance > 0, variance, 1))


def add_moments(sums: Array, squares: Array, genes: slice, block: Any) -> None:
    """Add the entries of some genes, and their squares, to the sums of all."""
    sums[genes] += block.sum(axis=0)
    squares[genes] += block.multiply(block).sum(axis=0)
