"""The matrix of an AnnData, in memory or in a file, given in pieces of rows or of columns."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from anndata import AnnData
from sklearn.utils.sparsefuncs import incr_mean_variance_axis

from .._common.arrays import Array, Matrix
from .._common.text import listed
from .._common.warn import warn_user
from .._data.arrays import inspect_sparse, require_real, scale_rows, with_values
from .._data.border import check_integer, check_matrix
from .._data.csr_file import CsrFile, RowCollector, bytes_of, equal_blocks

Folder: TypeAlias = "str | PathLike[str] | None"

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
    def of(cls, adata: AnnData, layer: str | None) -> Source:
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
            matrix, place = adata.X, "X"
        elif layer in adata.layers:
            matrix, place = adata.layers[layer], f"layers[{layer!r}]"
        else:
            raise ValueError(
                f"layer={layer!r} is not among the layers of adata, {list(adata.layers)}."
            )
        name = f"adata.{place}"
        require_real(matrix.dtype, name)
        return cls(inspect_sparse(matrix, name)[0] if sp.issparse(matrix) else matrix, name, place)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 for floats that long; float32 for all else, exact for counts up to 2^24."""
        long = self.matrix.dtype.kind == "f" and self.matrix.dtype.itemsize >= _LONG.itemsize
        return _LONG if long else np.dtype(np.float32)

    @property
    def in_memory(self) -> bool:
        return isinstance(self.matrix, np.ndarray) or sp.issparse(self.matrix)

    @property
    def format(self) -> str | None:
        """ "csr" or "csc", of a file too; None for a dense matrix."""
        return getattr(self.matrix, "format", None)

    def pieces(self, genes: Array | None = None) -> Iterator[Piece]:
        """Give all entries of some genes, by their numbers in rising order, checked."""
        n, m = self.matrix.shape
        genes = np.arange(m) if genes is None else genes
        index = 0 if self.format is None else np.dtype(np.int64).itemsize
        entries = _PIECE // int(self.matrix.dtype.itemsize + index)
        if self.format == "csc":
            for place in equal_blocks(self.ends(genes), entries):
                part = self.checked(self.matrix[:, genes[place]], genes[place])
                yield Piece(slice(0, n), place, _canonical(part))
            return
        for rows in equal_blocks(self.ends(np.arange(n)), entries):
            part = self.checked(self.matrix[rows], genes, rows.start)
            yield Piece(rows, slice(0, len(genes)), _canonical(part))

    def ends(self, lines: Array) -> Array:
        """Return where rows, or columns, end if their stored entries follow each other."""
        if self.format is None:
            return np.arange(len(lines) + 1, dtype=np.int64) * int(self.matrix.shape[1])
        indptr = self.matrix.indptr if self.in_memory else self.matrix.group["indptr"][:]
        lengths = np.diff(np.asarray(indptr).astype(np.int64))[lines]
        return np.append(np.int64(0), np.cumsum(lengths))

    def checked(self, part: Any, genes: Array, first: int = 0) -> Matrix:
        """Return some genes of a part, whose first row has this number, of the dtype to work in."""
        part = part.compute() if hasattr(part, "compute") else part  # of a dask array
        name = f"{self.name}[{first}:]" if first else self.name
        if part.shape[1] != len(genes):
            of_file = sp.issparse(part) and not self.in_memory
            part = (inspect_sparse(part, name)[0] if of_file else part)[:, genes]
        remedy = f"the data look scaled. {COUNTS}"
        X: Matrix = check_matrix(part, name, dtype=self.dtype, allow_nan=False, remedy=remedy)
        return X


def _canonical(part: Matrix) -> sp.csr_array:
    """Return a checked part as a csr array with sorted rows."""
    block = sp.csr_array(part)
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    return block


def require_annotated(adata: object, name: str) -> None:
    if not isinstance(adata, AnnData):
        raise TypeError(
            f"{name} must be an AnnData; got {type(adata).__name__}. For arrays and sparse "
            "matrices there are ssnmf_fast.factorize and ssnmf_fast.NMF."
        )


MEMORY = 1 << 30
_OF_BLOCKS = 4  # share of the memory that rows of a file take while a fit reads them


@contextmanager
def read_matrix(
    source: Source, genes: Array, scales: Array | None, memory: int, folder: Folder
) -> Iterator[Any]:
    """Give the matrix of some genes (cells x genes); a file for it is there within the context."""
    memory = check_integer(memory, "memory", 1)
    n = source.matrix.shape[0]

    def divided(block: sp.csr_array) -> sp.csr_array:
        values = block.data if scales is None else block.data / scales[block.indices]
        return with_values(block, values.astype(source.dtype, copy=False))

    if source.in_memory:
        X = source.checked(source.matrix, genes)
        if scales is None:
            yield X
        else:
            yield divided(X) if sp.issparse(X) else (X / scales).astype(X.dtype)
    elif source.format is None and n * len(genes) * source.dtype.itemsize <= memory:
        dense = np.empty((n, len(genes)), source.dtype)
        for piece in source.pieces(genes):
            dense[piece.rows] = divided(piece.values).toarray()
        yield dense
    else:
        with _collected(source, genes, memory, folder, lambda _, block: divided(block)) as X:
            yield X


@contextmanager
def cells_of_size(
    source: Source, factors: Array, memory: int, folder: Folder
) -> Iterator[sp.csr_array | CsrFile]:
    """Give the matrix of all genes times the factors of cells; else as :func:`read_matrix`."""

    def scaled(first: int, block: sp.csr_array) -> sp.csr_array:
        return scale_rows(block, factors[first : first + block.shape[0]])

    genes = np.arange(source.matrix.shape[1])
    with _collected(source, genes, memory, folder, scaled) as X:
        yield X


@contextmanager
def _collected(
    source: Source,
    genes: Array,
    memory: int,
    folder: Folder,
    change: Callable[[int, sp.csr_array], sp.csr_array],
) -> Iterator[sp.csr_array | CsrFile]:
    """Give the rows of some genes, each block changed, given the number of its first row."""
    with TemporaryDirectory(prefix="ssnmf_fast_", dir=folder) as place:
        capacity = memory // bytes_of(1, source.dtype)
        n, m = source.matrix.shape
        if source.format is None:
            most, exact = n * len(genes), False
        else:
            most = int(source.ends(genes if source.format == "csc" else np.arange(n))[-1])
            exact = source.format == "csc" or len(genes) == m
        if most > capacity and exact:
            capacity = 0  # all go to a file in any case
        rows = RowCollector(Path(place), len(genes), source.dtype, min(most, capacity))
        first = 0
        for block in _row_blocks(source, genes, Path(place), memory):
            rows.append(change(first, block))
            first += block.shape[0]
        yield rows.finish(max(1, memory // _OF_BLOCKS))


def _row_blocks(source: Source, genes: Array, folder: Path, memory: int) -> Iterator[sp.csr_array]:
    """Give blocks of rows, from the first to the last; columns go through files."""
    if source.format != "csc":
        for piece in source.pieces(genes):
            yield piece.values
        return
    n = source.matrix.shape[0]
    n_bytes = bytes_of(int(source.ends(genes)[-1]), source.dtype)
    n_parts = min(n, 1 + n_bytes * _OF_BLOCKS // memory)
    cuts = np.linspace(0, n, n_parts + 1).astype(np.int64)
    folders = [folder / f"rows{number}" for number in range(n_parts)]
    parts = []
    for part, rows in zip(folders, map(slice, cuts[:-1], cuts[1:]), strict=True):
        part.mkdir()
        parts.append((rows, RowCollector(part, rows.stop - rows.start, source.dtype, 0)))
    for piece in source.pieces(genes):
        for rows, columns in parts:
            columns.append(sp.csr_array(piece.values[rows].T))
    for part, (_, columns) in zip(folders, parts, strict=True):
        stored = columns.finish(memory)
        block = stored.rows(slice(0, len(genes))) if isinstance(stored, CsrFile) else stored
        yield sp.csr_array(block.T)
        rmtree(part)


HIGHLY_VARIABLE = "highly_variable"
SCALE = "nmf_scale"  # column of var that `prepare` writes
PREPARED = "nmf_prepare"  # in uns


def chosen_genes(
    adata: AnnData, use_highly_variable: bool, mask_var: str | npt.ArrayLike | None
) -> Array:
    """Return whether each gene is to be used, (m,)."""
    if mask_var is None:
        if not use_highly_variable:
            return np.ones(adata.n_vars, dtype=bool)
        if HIGHLY_VARIABLE not in adata.var:
            warn_user(
                f"adata.var has no column {HIGHLY_VARIABLE!r}: all {adata.n_vars} genes are used. "
                "Choose genes with ssnmf_fast.anndata.prepare or scanpy.pp.highly_variable_genes, "
                "or set use_highly_variable=False.",
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


def scales_of(adata: AnnData, source: Source, scale: bool) -> Array | None:
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


def gene_numbers(adata: AnnData, genes: Iterable[str], where: str) -> Array:
    """Return the numbers of genes by their names, and warn of names that adata does not have."""
    names = [] if isinstance(genes, str) else list(genes)
    if isinstance(genes, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{where} must have the names of genes; got {genes!r:.100}.")
    require_unique(adata, "adata")
    places = np.asarray(adata.var_names.get_indexer(names))
    unknown = [name for name, place in zip(names, places, strict=True) if place < 0]
    if 0 < len(unknown) < len(names):
        warn_user(
            f"{where} names {len(unknown)} genes that adata.var_names does not have, which are "
            f"left out: {listed(unknown)}.",
            UserWarning,
        )
    if len(unknown) == len(names):
        raise ValueError(f"{where} has no gene that is in adata.var_names; give one or more.")
    return places[places >= 0]


def require_unique(adata: AnnData, name: str) -> None:
    if not adata.var_names.is_unique:
        raise ValueError(
            f"{name}.var_names has names more than once. Use {name}.var_names_make_unique()."
        )


_TOTAL = 1e6  # counts of every cell, when genes are compared


class Moments:
    """Means and variances of the genes over cells, from pieces of rows or of columns."""

    def __init__(self, n_genes: int) -> None:
        self.mean, self.variance, self._n = np.zeros((3, n_genes))

    def add(self, genes: slice, values: sp.csr_array) -> None:
        before = self.mean[genes], self.variance[genes], self._n[genes]
        options = dict(zip(("last_mean", "last_var", "last_n"), before, strict=True))
        after = incr_mean_variance_axis(values.astype(np.float64), axis=0, **options)
        self.mean[genes], self.variance[genes], self._n[genes] = after

    def deviations(self) -> Array:
        """Return standard deviations of a sample, 1 for what does not vary."""
        variance = self.variance * (self._n / np.maximum(self._n - 1, 1))
        return np.sqrt(np.where(variance > 0, variance, 1))


def cell_sums(source: Source, genes: Array | None = None) -> Array:
    totals = np.zeros(source.matrix.shape[0])
    for piece in source.pieces(genes):
        totals[piece.rows] += piece.values.sum(axis=1, dtype=np.float64)
    return totals


def factors_of_size(source: Source) -> Array:
    """Return what the counts of each cell are to be multiplied by for a sum of a million, (n,)."""
    totals = cell_sums(source)
    return np.divide(_TOTAL, totals, out=np.zeros(len(totals)), where=totals > 0)


@dataclass(frozen=True)
class DataSelection:
    """Which matrix of an AnnData is fitted, and where it may be kept meanwhile."""

    layer: str | None
    use_highly_variable: bool
    mask_var: str | npt.ArrayLike | None
    scale: bool
    memory: int
    folder: Folder

    @contextmanager
    def open(self, adata: AnnData, also: Sequence[str] = ()) -> Iterator[SelectedData]:
        """Read the selected genes of an AnnData, and those of the names `also`."""
        source = Source.of(adata, self.layer)
        mask = chosen_genes(adata, self.use_highly_variable, self.mask_var)
        mask = mask | adata.var_names.isin(also)
        genes = np.flatnonzero(mask)
        scales = scales_of(adata, source, self.scale)
        own = None if scales is None else scales[genes]
        with read_matrix(source, genes, own, self.memory, self.folder) as X:
            yield SelectedData(X, genes, source, scales is not None)


@dataclass(frozen=True)
class SelectedData:
    """The matrix (cells x selected genes), the genes, and whether they were scaled."""

    X: Any  # Matrix | CsrFile
    genes: Array
    source: Source
    scaled: bool


def writable(adata: AnnData, copy: bool) -> AnnData:
    """Return what results are written to: the AnnData itself, or a copy in memory."""
    if copy and adata.isbacked:
        raise ValueError(
            "copy=True, and adata is backed by a file. Give adata.to_memory(), or copy=False: "
            "the file is not written to."
        )
    return adata.copy() if copy else adata


def plain_parameters(**parameters: object) -> dict[str, Any]:
    """Return those parameters that can be written to a file, as plain values."""
    return {
        name: int(value) if isinstance(value, numbers.Integral) else value
        for name, value in parameters.items()
        if isinstance(value, (str, numbers.Real))
    }
