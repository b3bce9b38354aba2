"""The matrix of an AnnData, in memory or in a file, read in pieces of rows or columns."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from .._common.docstrings import completing
from .._common.text import listed
from .._common.warn import warn_user
from .._data.arrays import inspect_sparse, require_real, with_values
from .._data.border import check_integer, check_matrix
from .._data.csr_file import CsrFile, RowCollector, bytes_of, equal_blocks
from .._version import __version__

Folder: TypeAlias = "str | PathLike[str] | None"

documented = completing(
    """What the functions share.

Parameters
----------
adata : anndata.AnnData, n cells x m genes
    With nonnegative data, such as counts, in memory or backed by a file.
n_components : int
    Number r of programs.
layer : str, optional
    Layer to use instead of X.
use_highly_variable : bool
    Whether to use only the genes in ``var["highly_variable"]``; without this column all genes are
    used, with a warning.
mask_var : str or array_like of bool, shape (m,), optional
    Genes to use, or a column of `var` that marks them, instead of `use_highly_variable`.
scale : bool
    Whether to divide genes by ``var["nmf_scale"]``, if :func:`prepare` has written it.
key_added : str
    Name of the results.
random_state : None, int, Generator or RandomState
    Seed of the starts.
memory : int
    Largest size in bytes of the matrix of the chosen genes, if `adata` is backed by a file.  A
    larger matrix is written to a temporary file, which every iteration reads.
temporary_folder : path, optional
    Folder for the temporary file; by default that of the system.
copy : bool
    Whether to write the results to a copy and return it.

Raises
------
ValueError, TypeError
    For bad input, before anything is written.
"""
)

_PIECE = 1 << 24  # largest number of bytes of a piece in memory
COUNTS = "Name the layer of the counts by layer, or use the counts of adata.raw.to_adata()"


def key_of(key: str | None, keys: Sequence[str]) -> str:
    """Return a given key of results; by default "nmf", or that of the only results."""
    return key or (keys[0] if len(keys) == 1 else "nmf")


class Piece(NamedTuple):
    """Part of the matrix as a csr array, and its rows and genes."""

    rows: slice
    genes: slice
    values: sp.csr_array


class Source:
    """X or a layer of an AnnData; `name` is for messages, `layer` for uns."""

    def __init__(self, adata: AnnData, layer: str | None) -> None:
        require_annotated(adata, "adata")
        if adata.isbacked and adata.is_view:
            raise ValueError(
                "adata is a view of an AnnData backed by a file, to which results cannot be "
                "written. Give adata.to_memory(), or adata.copy('part.h5ad')."
            )
        layers = [name for name in adata.layers if name is not None]  # which is X, from 0.13 on
        if layer is None and adata.X is None:
            raise ValueError(f"adata.X is None; name one of the layers, {layers}, by layer.")
        if layer is not None and layer not in layers:
            raise ValueError(f"layer={layer!r} is not among the layers of adata, {layers}.")
        matrix = adata.X if layer is None else adata.layers[layer]
        self.layer = "X" if layer is None else f"layers[{layer!r}]"
        self.name = f"adata.{self.layer}"
        require_real(matrix.dtype, self.name)
        sparse = sp.issparse(matrix)
        self.matrix: Any = inspect_sparse(matrix, self.name)[0] if sparse else matrix
        self.in_memory = isinstance(matrix, np.ndarray) or sparse
        # "csr" or "csc" (also in a file); None for a dense matrix.
        self.format: str | None = getattr(self.matrix, "format", None)
        # float64 for float64; otherwise float32, which is exact for counts up to 2^24.
        long = matrix.dtype.kind == "f" and matrix.dtype.itemsize >= 8
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if long else np.float32)

    def pieces(self, genes: Array | None = None) -> Iterator[Piece]:
        """Yield the checked entries of some genes, given by sorted numbers."""
        n, m = self.matrix.shape
        genes = np.arange(m) if genes is None else genes
        index = 0 if self.format is None else np.dtype(np.int64).itemsize
        entries = _PIECE // int(self.matrix.dtype.itemsize + index)
        by_columns = self.format == "csc"
        for lines in equal_blocks(self.ends(genes if by_columns else np.arange(n)), entries):
            if by_columns:
                place = slice(0, n), lines
                part = self.checked(self.matrix[:, genes[lines]], genes[lines])
            else:
                place = lines, slice(0, len(genes))
                part = self.checked(self.matrix[lines], genes, lines.start)
            block = sp.csr_array(part)
            if not block.has_canonical_format:  # a copy of it gets sorted rows
                block = block.copy()
                block.sum_duplicates()
            yield Piece(*place, block)

    def ends(self, lines: Array) -> Array:
        """Return the cumulative numbers of stored entries of rows, or columns."""
        if self.format is None:
            return np.arange(len(lines) + 1, dtype=np.int64) * int(self.matrix.shape[1])
        indptr = self.matrix.indptr if self.in_memory else self.matrix.group["indptr"][:]
        lengths = np.diff(np.asarray(indptr).astype(np.int64))[lines]
        return np.append(np.int64(0), np.cumsum(lengths))

    def checked(self, part: Any, genes: Array, first: int = 0) -> Matrix:
        """Return some genes of a part that begins with row `first`, checked and converted."""
        part = part.compute() if hasattr(part, "compute") else part  # a dask array
        name = f"{self.name}[{first}:]" if first else self.name
        if part.shape[1] != len(genes):
            of_file = sp.issparse(part) and not self.in_memory
            part = (inspect_sparse(part, name)[0] if of_file else part)[:, genes]
        remedy = f"the data look scaled. {COUNTS}"
        X: Matrix = check_matrix(part, name, dtype=self.dtype, allow_nan=False, remedy=remedy)
        return X


def require_annotated(adata: object, name: str) -> None:
    if not isinstance(adata, AnnData):
        hint = "For arrays and sparse matrices, use ssnmf_fast.factorize or ssnmf_fast.NMF."
        raise TypeError(f"{name} must be an AnnData; got {type(adata).__name__}. {hint}")


MEMORY = 1 << 30
_OF_BLOCKS = 4  # memory / this: the size of blocks of rows that a fit reads from a file


@contextmanager
def read_matrix(
    source: Source, genes: Array, scales: Array | None, memory: int, folder: Folder
) -> Iterator[Any]:
    """Yield the matrix of some genes (cells x genes); a file for it exists within the context."""
    memory = check_integer(memory, "memory", 1)
    n = source.matrix.shape[0]

    def divided(block: Any) -> Any:
        if scales is None or not sp.issparse(block):
            return block if scales is None else (block / scales).astype(block.dtype)
        return with_values(block, (block.data / scales[block.indices]).astype(block.dtype))

    if source.in_memory:
        yield divided(source.checked(source.matrix, genes))
    elif source.format is None and n * len(genes) * source.dtype.itemsize <= memory:
        dense = np.empty((n, len(genes)), source.dtype)
        for piece in source.pieces(genes):
            dense[piece.rows] = divided(piece.values).toarray()
        yield dense
    else:
        with collected(source, genes, memory, folder, lambda _, block: divided(block)) as X:
            yield X


@contextmanager
def collected(
    source: Source,
    genes: Array,
    memory: int,
    folder: Folder,
    change: Callable[[int, sp.csr_array], sp.csr_array],
) -> Iterator[sp.csr_array | CsrFile]:
    """Yield the matrix of some genes; `change` is applied to (number of first row, block)."""
    with TemporaryDirectory("", "ssnmf_fast_", folder, ignore_cleanup_errors=True) as place:
        capacity = memory // bytes_of(1, source.dtype)
        n, m = source.matrix.shape
        if source.format is None:
            most, exact = n * len(genes), False
        else:
            most = int(source.ends(genes if source.format == "csc" else np.arange(n))[-1])
            exact = source.format == "csc" or len(genes) == m
        if most > capacity and exact:
            capacity = 0  # everything goes to a file anyway
        rows = RowCollector(Path(place), len(genes), source.dtype, min(most, capacity))
        first = 0
        for block in _row_blocks(source, genes, Path(place), memory):
            rows.append(change(first, block))
            first += block.shape[0]
        yield rows.finish(max(1, memory // _OF_BLOCKS))


def _row_blocks(source: Source, genes: Array, folder: Path, memory: int) -> Iterator[sp.csr_array]:
    """Yield blocks of rows in order; a matrix of columns is transposed by way of files."""
    if source.format != "csc":
        for piece in source.pieces(genes):
            yield piece.values
        return
    n = source.matrix.shape[0]
    n_bytes = bytes_of(int(source.ends(genes)[-1]), source.dtype)
    n_parts = min(n, 1 + n_bytes * _OF_BLOCKS // memory)
    cuts = np.linspace(0, n, n_parts + 1).astype(np.int64)
    collectors = []
    for number, rows in enumerate(map(slice, cuts[:-1], cuts[1:])):
        place = folder / f"rows{number}"
        place.mkdir()
        collector = RowCollector(place, rows.stop - rows.start, source.dtype, 0)
        collectors.append((rows, place, collector))
    for piece in source.pieces(genes):
        for rows, _, collector in collectors:
            collector.append(sp.csr_array(piece.values[rows].T))
    for _, place, collector in collectors:
        matrix = collector.finish(memory)
        block = matrix.rows(slice(0, len(genes))) if isinstance(matrix, CsrFile) else matrix
        yield sp.csr_array(block.T)
        rmtree(place)


HIGHLY_VARIABLE = "highly_variable"
SCALE = "nmf_scale"  # column of var that `prepare` writes
PREPARED = "nmf_prepare"  # in uns


def gene_numbers(adata: AnnData, genes: Iterable[str], where: str) -> Array:
    """Return the numbers of genes by their names, and warn about unknown names."""
    names = [] if isinstance(genes, str) else list(genes)
    if isinstance(genes, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{where} must be names of genes; got {genes!r:.100}.")
    require_unique(adata)
    places = np.asarray(adata.var_names.get_indexer(names))
    unknown = [name for name, place in zip(names, places, strict=True) if place < 0]
    if 0 < len(unknown) < len(names):
        text = f"{where} has {len(unknown)} names that are not in adata.var_names and are left out"
        warn_user(f"{text}: {listed(unknown)}.", UserWarning)
    if len(unknown) == len(names):
        raise ValueError(f"{where} has no gene that is in adata.var_names; give one or more.")
    return places[places >= 0]


def require_own(adata: AnnData, key: str) -> None:
    """Raise ValueError if the results of a key would replace those of another tool."""
    require_annotated(adata, "adata")
    places = ("obsm", f"X_{key}"), ("varm", key), ("uns", key)
    entries = [f"{part}[{name!r}]" for part, name in places if name in getattr(adata, part)]
    about = adata.uns.get(key)
    if entries and not (isinstance(about, Mapping) and "version" in about):
        raise ValueError(f"adata.{entries[0]} comes from another tool; give another key_added.")


def write_about(adata: AnnData, key: str, **about: Any) -> None:
    """Write facts about results; keep the names of their columns of `obs`."""
    earlier = adata.uns.get(key, {})
    columns = {name: earlier[name] for name in ("obs_columns",) if name in earlier}
    adata.uns[key] = {**about, "version": __version__, **columns}


def require_unique(adata: AnnData) -> None:
    if not adata.var_names.is_unique:
        raise ValueError("adata.var_names must be unique. Use adata.var_names_make_unique().")


_TOTAL = 1e6  # counts per cell for the comparison of genes


class Moments:
    """Means and variances of genes over cells, from pieces of rows or columns."""

    def __init__(self, n_genes: int) -> None:
        self._moments = np.zeros((3, n_genes))
        self.mean, self.variance, self._n = self._moments

    def add(self, genes: slice, values: sp.csr_array) -> None:
        before = zip(("last_mean", "last_var", "last_n"), self._moments[:, genes], strict=True)
        after = incr_mean_variance_axis(values.astype(np.float64), axis=0, **dict(before))
        self._moments[:, genes] = after

    def deviations(self) -> Array:
        """Return sample standard deviations, 1 for constant genes."""
        variance = self.variance * (self._n / np.maximum(self._n - 1, 1))
        return np.sqrt(np.where(variance > 0, variance, 1))


def cell_sums(source: Source, genes: Array | None = None) -> Array:
    totals = np.zeros(source.matrix.shape[0])
    for piece in source.pieces(genes):
        totals[piece.rows] += piece.values.sum(axis=1, dtype=np.float64)
    return totals


def factors_of_size(source: Source) -> Array:
    """Return factors that bring the sum of counts of each cell to a million, (n,)."""
    totals = cell_sums(source)
    return np.divide(_TOTAL, totals, out=np.zeros(len(totals)), where=totals > 0)


class SelectedData(NamedTuple):
    """The matrix (cells x selected genes), the genes, and whether they are scaled."""

    X: Any  # Matrix | CsrFile
    genes: Array
    source: Source
    scaled: bool


@contextmanager
def selected_data(
    adata: AnnData,
    layer: str | None,
    use_highly_variable: bool,
    mask_var: str | npt.ArrayLike | None,
    scale: bool,
    memory: int,
    folder: Folder,
    also: Sequence[str] = (),
) -> Iterator[SelectedData]:
    """Yield the data of the selected genes of an AnnData, and of the genes in `also`."""
    source, scales = Source(adata, layer), None
    name = "mask_var"
    if mask_var is None and use_highly_variable:
        mask_var = HIGHLY_VARIABLE if HIGHLY_VARIABLE in adata.var else None
        if mask_var is None:
            text = f"adata.var has no column {HIGHLY_VARIABLE!r}: all {adata.n_vars} genes are used"
            warn_user(f"{text}. Run prepare, or set use_highly_variable=False.", UserWarning)
    if isinstance(mask_var, str):
        columns = list(adata.var)
        if mask_var not in columns:
            raise ValueError(f"mask_var={mask_var!r} is not among adata.var, {columns}.")
        mask_var, name = adata.var[mask_var], f"adata.var[{mask_var!r}]"
    mask = np.ones(adata.n_vars, dtype=bool) if mask_var is None else np.asarray(mask_var)
    if mask.shape != (adata.n_vars,) or mask.dtype != bool:
        expected = f"expected a bool for each of the {adata.n_vars} genes"
        raise ValueError(f"{name} has shape {mask.shape} and dtype {mask.dtype}; {expected}.")
    if not mask.any():
        raise ValueError(f"{name} chooses no gene; expected at least one.")
    genes = np.flatnonzero(mask | adata.var_names.isin(also))
    if scale and SCALE in adata.var:
        prepared = adata.uns.get(PREPARED, {}).get("layer", source.layer)
        if prepared != source.layer:
            raise ValueError(
                f"adata.var[{SCALE!r}] has the scales of adata.{prepared}, but the data are "
                f"{source.name}. Give the layer that was prepared, or scale=False."
            )
        scales = np.asarray(adata.var[SCALE], dtype=np.float64)
        if not (np.isfinite(scales).all() and (scales > 0).all()):
            remedy = "Run prepare again, or give scale=False."
            raise ValueError(f"adata.var[{SCALE!r}] must hold finite numbers above 0. {remedy}")
        scales = scales[genes]
    with read_matrix(source, genes, scales, memory, folder) as X:
        yield SelectedData(X, genes, source, scales is not None)


def writable(adata: AnnData, copy: bool) -> AnnData:
    """Return the AnnData for the results: itself, or a copy in memory."""
    if copy and adata.isbacked:
        remedy = "Give adata.to_memory(), or copy=False, which does not change the file."
        raise ValueError(f"copy=True is not possible if adata is backed by a file. {remedy}")
    return adata.copy() if copy else adata


def plain_parameters(**parameters: object) -> dict[str, Any]:
    """Return the parameters that can be written to a file, as plain values."""
    return {
        name: int(value) if isinstance(value, numbers.Integral) else value
        for name, value in parameters.items()
        if isinstance(value, (str, numbers.Real))
    }
