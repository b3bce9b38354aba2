"""User data, cut by rows into checked blocks on the workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import dask.array as da
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from dask import delayed
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, Future

from .._common.arrays import Array, Matrix
from .._common.warn import warn_user
from .._data.arrays import check_dtype
from .._data.border import CleanMatrix, check_data, check_integer
from .._data.csr_file import CsrFile, open_csr
from .._solver.build import as_weights, check_rows, sparse_labels
from .._solver.term_forms import values_of
from .._solver.weights import Weights
from ._cluster import check_client, result_of

Blocks: TypeAlias = "da.Array | Sequence[Delayed | Future | str | Path]"
ByRows: TypeAlias = "Blocks | Matrix | Sequence[Any]"  # with a row for each sample
FilePath: TypeAlias = "str | Path"
RowWeights: TypeAlias = "ByRows | Weights | None"
Parts: TypeAlias = Sequence[tuple[Any, ...] | None]  # arguments for each block

MEMORY = 1 << 28  # bytes of the rows of one file at a time

_BLOCKS = (Delayed, Future, str, Path)
_ERRORS = (ValueError, TypeError, MemoryError, FileNotFoundError)  # whose class stays
_NAMES = {"support": "S_support", "S": "init[0] (S)"}  # of arguments


@dataclass(frozen=True)
class BlockInput:
    """Checked data of a block of rows; sent as bytes: other parts of messages may be misaligned."""

    X: Any  # Matrix | CsrFile
    y: Matrix | None = None
    X_weights: Weights | None = None
    y_weights: Weights | None = None
    support: Matrix | None = None
    S: Matrix | None = None
    covariates: Matrix | None = None

    def __getstate__(self) -> bytes:
        return pickle.dumps(vars(self), protocol=5)

    def __setstate__(self, contents: bytes) -> None:
        vars(self).update(pickle.loads(contents))


def unique() -> str:
    """Return a part of names of tasks, after what the dashboard groups them by."""
    return uuid4().hex[:12]


def with_title(title: str, task: Callable[..., Any], *arguments: object, **options: object) -> Any:
    """Run a task; errors name the block."""
    try:
        return task(*arguments, **options)
    except Exception as error:
        kind = type(error) if type(error) in _ERRORS else RuntimeError
        raise kind(f"{title}: {error}") from error


def as_matrix(Z: Any) -> Any:
    """Convert a chunk of pydata/sparse to SciPy; copy misaligned arrays (from the network)."""
    if hasattr(Z, "to_scipy_sparse"):
        return sp.csr_array(Z.to_scipy_sparse())
    if isinstance(Z, np.ndarray) and not Z.flags.aligned:
        return Z.copy()
    return Z


WeightParts: TypeAlias = tuple[Weights, Matrix | None]  # weights without rows, and the rows


def weights_of(parts: WeightParts) -> Weights:
    weights, rows = parts
    return weights if rows is None else weights.with_part(as_matrix(rows))


def _check_block(
    X: BlockInput | CsrFile | Matrix, threads: int, dtype: np.dtype[Any] | None, **parts: Any
) -> BlockInput:
    clean = CleanMatrix(X.X) if isinstance(X, BlockInput) else as_matrix(X)
    checked = check_data(clean, threads, dtype)
    if "y" in parts:
        wanted = checked.dtype, checked.shape[0], "sample of X"
        y = check_rows(as_matrix(parts["y"]), "y", *wanted, ordinary=True)
        parts["y"] = sparse_labels(y)
    of_weights = {name: weights_of(w) for name, w in parts.items() if name.endswith("weights")}
    return BlockInput(checked, **parts | of_weights)


def _info_of(block: BlockInput) -> dict[str, Any]:
    """Return the fields of `ClusterData` for a block."""
    X, Y, covariates = block.X, block.y, block.covariates
    of_X = X.nnz if isinstance(X, CsrFile) else np.count_nonzero(values_of(X))
    return {
        "n_columns": X.shape[1],
        "n_labels": None if Y is None else Y.shape[1],
        "dtype": X.dtype,
        "on_disk": isinstance(X, CsrFile),
        "nonzeros": np.array([of_X, 0 if Y is None else np.count_nonzero(values_of(Y))]),
        "n_fixed": 0 if covariates is None else np.shape(as_matrix(covariates))[-1],
    }


# Fields that must be equal in all blocks.
_EQUAL = {"n_columns": "number of columns", "n_labels": "number of columns of y", "dtype": "dtype"}
_EQUAL["n_fixed"] = "number of columns of covariates"


@dataclass(frozen=True)
class ClusterData:
    """Checked data on the workers, by blocks that have rows."""

    n_columns: int
    n_labels: int | None
    dtype: np.dtype[Any]
    on_disk: bool
    nonzeros: Array  # of X and y
    n_fixed: int  # fixed columns of S
    client: Client
    futures: list[Future]
    rows: list[int]  # of all blocks, including empty ones
    positions: list[int]  # of the blocks that have rows
    checkpoint: FilePath | None = None  # of a fit
    chosen: Array | None = None  # sorted numbers of a part of the samples

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows) if self.chosen is None else len(self.chosen), self.n_columns

    @property
    def bounds(self) -> list[int]:
        """First rows of the blocks that have rows, and the number of all rows."""
        before = list(accumulate(self.rows, initial=0))
        return [*(before[position] for position in self.positions), before[-1]]

    @property
    def lengths(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Mean numbers of nonzeros per row and column, for X and y."""
        n, m = self.shape
        (of_X, of_Y), k = self.nonzeros.tolist(), self.n_labels
        return (of_X // n, of_X // m), () if k is None else (of_Y // n, of_Y // k)

    def parts(self, chosen: Array, *arrays: Array, everywhere: bool = False) -> Parts:
        """Return for each block its rows among sorted numbers, and parts of arrays; or None."""
        places = np.searchsorted(chosen, self.bounds)
        return [
            (chosen[a:b] - first, *(each[a:b] for each in arrays)) if a < b or everywhere else None
            for (a, b), first in zip(pairwise(places), self.bounds, strict=False)
        ]

    def start(
        self, task: Callable[..., Any], *shared: object, parts: Parts | None = None
    ) -> list[Future]:
        """Submit a task for each block, with its part; None leaves a block out."""
        pairs = zip(self.futures, parts or [()] * len(self.futures), strict=True)
        submit = partial(self.client.submit, task, pure=False)
        return [submit(block, *part, *shared) for block, part in pairs if part is not None]

    def array(self, futures: Sequence[Future], width: int, dtype: np.dtype[Any]) -> da.Array:
        """Return blocks of rows as a dask array with the blocks of the data."""
        parts = dict(zip(self.positions, futures, strict=True))
        empty = delayed(np.empty((0, width), dtype))
        blocks = ((parts.get(number, empty), (n, width)) for number, n in enumerate(self.rows))
        return stacked([da.from_delayed(*block, dtype) for block in blocks])

    def with_weights(self, X_weights: Any, n_threads: int | None) -> ClusterData:
        if X_weights is None:
            return self
        return load_blocks(self.client, self, count_threads(n_threads), X_weights=X_weights)


def stacked(blocks: Sequence[da.Array]) -> da.Array:
    """Return an array of blocks of rows; dask's own function would leave out those without rows."""
    name = f"rows-{tokenize(blocks)}"
    keys = {(name, number, 0): each.__dask_keys__()[0][0] for number, each in enumerate(blocks)}
    graph = HighLevelGraph.from_collections(name, keys, dependencies=blocks)
    chunks = tuple(each.shape[0] for each in blocks), blocks[0].chunks[1]
    return da.Array(graph, name, chunks, meta=blocks[0]._meta)


def count_threads(n_threads: int | None) -> int:
    """Return the threads of each task, by default 1: a worker runs several tasks at a time."""
    return 1 if n_threads is None else check_integer(n_threads, "n_threads", 1)


def load_blocks(
    client: Client,
    X: Blocks | ClusterData,
    threads: int,
    memory: int = MEMORY,
    dtype: npt.DTypeLike | None = None,
    **further: Any,
) -> ClusterData:
    """Let the workers check and convert data; further parts are fields of `BlockInput`."""
    further = {name: part for name, part in further.items() if part is not None}
    if "y_weights" in further and "y" not in further:
        raise ValueError("y_weights are given without y; give y, or leave them out.")
    of_type = None if dtype is None else check_dtype(dtype)
    if isinstance(X, ClusterData):
        blocks, rows = dict(zip(X.positions, X.futures, strict=True)), X.rows
    else:
        started, rows = _start_blocks(client, X, memory)
        blocks = dict(enumerate(started))
    if not sum(rows):
        raise ValueError("X must have at least one row; got none.")
    for name, part in further.items():
        cutting = cut_weights if name.endswith("weights") else cut
        further[name] = cutting(part, _NAMES.get(name, name), rows)
    positions = [position for position, n in enumerate(rows) if n]
    futures, bounds, of_all = [], list(accumulate(rows, initial=0)), unique()
    for position in positions:
        title = f"block {position} (rows {bounds[position]} to {bounds[position + 1] - 1})"
        own = {name: each[position] for name, each in further.items()}
        own |= {k: client.compute(part) for k, part in own.items() if isinstance(part, Delayed)}
        task = with_title, title, _check_block, blocks[position], threads, of_type
        futures.append(client.submit(*task, **own, key=f"load_block-{of_all}-{position}"))
    info = result_of(client, [client.submit(_info_of, each, pure=False) for each in futures])
    first = info[0]
    for position, each in zip(positions, info, strict=True):
        for name, text in _EQUAL.items():
            if each[name] != first[name]:
                raise ValueError(
                    f"All blocks must have the same {text}; got {first[name]} in block "
                    f"{positions[0]} and {each[name]} in block {position}."
                )
    if first["n_columns"] == 0 or first["n_labels"] == 0:
        raise ValueError("X, and y if it is given, must have at least one column.")
    first["on_disk"] = any(each["on_disk"] for each in info)
    first["nonzeros"] = sum(each["nonzeros"] for each in info)
    return ClusterData(**first, client=client, futures=futures, rows=rows, positions=positions)


def _count_rows(X: object) -> int:
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        kinds = "a NumPy array, a SciPy sparse matrix or a pydata/sparse array"
        raise TypeError(f"X must be {kinds}; got {type(X).__name__}.")
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions; got shape {shape}.")
    return int(shape[0])


def _start_blocks(client: Client, X: Blocks, memory: int) -> tuple[list[Future], list[int]]:
    """Start loading X; return futures of its blocks, and the numbers of their rows."""
    blocks = blocks_of(X, "X")
    if blocks is None:
        raise TypeError(
            "X must be a dask array, or a list with a delayed object, future or path per block; "
            f"got {type(X).__name__}. For data in memory, use ssnmf_fast.factorize; for a dask "
            "DataFrame, give X.to_dask_array(lengths=True)."
        )
    if not blocks:
        raise ValueError("X must have at least one block of rows; got an empty list.")
    lazy = any(isinstance(block, Delayed) for block in blocks)
    futures: list[Any] = list(client.compute(blocks) if lazy else blocks)
    for number, block in enumerate(futures):
        if isinstance(block, (str, Path)):  # the workers open files
            task = with_title, f"block {number}", partial(open_csr, memory=memory), str(block)
            futures[number] = client.submit(*task, key=f"open_file-{unique()}")
    sizes = X.chunks[0] if isinstance(X, da.Array) else (np.nan,)
    if not np.isnan(sizes).any():
        return futures, [int(size) for size in sizes]
    titles = [f"block {number}" for number in range(len(futures))]
    counting, options = [_count_rows] * len(futures), {"key": "count_rows", "pure": False}
    return futures, result_of(client, client.map(with_title, titles, counting, futures, **options))


def blocks_of(Z: ByRows, name: str, columns: bool = True) -> list[Any] | None:
    """Return the blocks of Z if it is cut by rows; None for an array of all rows."""
    if isinstance(Z, da.Array):
        Z = whole_rows(Z, name, columns)
        return list(Z.to_delayed(optimize_graph=True).ravel())
    if isinstance(Z, (list, tuple)) and all(isinstance(block, _BLOCKS) for block in Z):
        return list(Z)
    return None


def whole_rows(Z: da.Array, name: str, columns: bool = True) -> da.Array:
    if Z.ndim != (2 if columns else 1):
        raise ValueError(f"{name} must have {1 + columns} dimensions; got shape {Z.shape}.")
    if not columns or Z.numblocks[1] <= 1:
        return Z
    text = (
        f"{name} is also cut by columns, into {Z.numblocks[1]} pieces per block of rows. Joining "
        "them copies and sends the data; use rechunk({1: -1}) once before the fit."
    )
    warn_user(text, UserWarning)
    return Z.rechunk({1: -1})


def cut(Z: ByRows, name: str, rows: Sequence[int], columns: bool = True) -> list[Any]:
    """Return the part of Z for each block of X."""
    lazy = isinstance(Z, da.Array) and not np.isnan(Z.shape[0])
    if not lazy and (blocks := blocks_of(Z, name, columns)) is not None:
        if len(blocks) == np.count_nonzero(rows):  # those without rows may be left out
            present = iter(blocks)
            return [next(present) if n else None for n in rows]
        if len(blocks) != len(rows):
            counts = f"got {len(blocks)} blocks, but X has {len(rows)}"
            raise ValueError(f"{name} must have the blocks of X, with the same rows; {counts}.")
        return blocks
    whole: Any = Z if lazy else sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
    n = whole.shape[0] if whole.ndim else 0
    if n != sum(rows):
        raise ValueError(f"{name} must have the rows of X; got {n} rows, but X has {sum(rows)}.")
    if lazy:
        return blocks_of(whole.rechunk({0: tuple(rows)}), name, columns) or []
    return [whole[begin:end] for begin, end in pairwise(accumulate(rows, initial=0))]


def cut_weights(X_weights: Any, name: str, rows: Sequence[int]) -> list[WeightParts | Delayed]:
    """Return the arguments of `weights_of` for each block: weights, and their rows."""
    weights = as_weights(X_weights, name)
    if weights.by_rows is None:
        return [(weights, None)] * len(rows)
    vector, common = weights.row_field == "rows", weights.with_part(None)
    parts = cut(weights.by_rows, f"{name}.rows" if vector else name, rows, columns=not vector)
    return [delayed((common, p)) if isinstance(p, Delayed) else (common, p) for p in parts]


def gather(client: Client | None, y: ByRows | None) -> Any:
    """Compute a dask array; return others unchanged."""
    if not isinstance(y, da.Array):
        return y
    client = check_client(client)
    return result_of(client, client.compute(y))


def with_rows(X_weights: RowWeights, rows: Array | None) -> Any:
    """Return weights of X, with those of each sample multiplied by a number."""
    if rows is None:
        return X_weights
    if isinstance(X_weights, da.Array):
        return X_weights * da.from_array(rows[:, None], chunks=(X_weights.chunks[0], 1))
    weights = as_weights(X_weights, "X_weights")
    if weights.row_field == "rows" and isinstance(weights.by_rows, da.Array):
        weights = weights.with_part(gather(None, weights.by_rows))
    elif isinstance(weights.by_rows, (da.Array, list, tuple)):
        kind = type(X_weights).__name__.lower()
        raise ValueError(
            f"X_weights must be one array if samples have weights; got blocks ({kind}). Give an "
            "array, or no weights of samples (sample_weight None, labeled_weight 1)."
        )
    joined = weights.with_rows(rows, "X_weights")
    if not joined.divisible:
        raise ValueError(
            "X_weights are weights.base(...), which cannot be combined with weights of samples on "
            "a cluster. Give an array, or no such weights (sample_weight None, labeled_weight 1)."
        )
    return joined


def is_on_cluster(X: object) -> bool:
    return isinstance(X, da.Array) or (isinstance(X, (list, tuple)) and bool(blocks_of(X, "X")))


def lazy_weights(X_weights: ByRows | Weights, rows: tuple[int, ...]) -> da.Array:
    """Return a dask array with the weights of each block of rows."""
    if np.isnan(rows).any():
        raise ValueError("X_weights need chunks of known sizes; call X.compute_chunk_sizes().")
    meta = np.empty((0, 1), dtype=object)
    parts = zip(cut_weights(X_weights, "X_weights", rows), rows, strict=True)
    return stacked([da.from_delayed(delayed(part), (n, 1), meta=meta) for part, n in parts])
