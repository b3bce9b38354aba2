"""What a fit of an AnnData gets, and what is written of its result."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._common.arrays import Array
from .._data.csr_file import CsrFile, bytes_of
from .._version import __version__
from ._genes import SCALE, chosen_genes, scales_of
from ._read import read_matrix
from ._source import Source


@dataclass(frozen=True)
class Choice:
    """Which matrix of an AnnData is fitted, and where it may be kept meanwhile."""

    layer: str | None
    use_highly_variable: Any
    mask_var: Any
    scale: bool
    memory: Any
    folder: Any


@dataclass(frozen=True)
class Chosen:
    """The matrix (cells x chosen genes), and which genes they are and whether they were scaled."""

    X: Any
    genes: Array
    source: Source
    scaled: bool


@contextmanager
def open_data(adata: Any, choice: Choice, also: Array | None = None) -> Iterator[Chosen]:
    """Read what is chosen of an AnnData, and the genes of the numbers `also`."""
    source = Source.of(adata, choice.layer)
    mask = chosen_genes(adata, choice.use_highly_variable, choice.mask_var)
    if also is not None:
        mask = mask.copy()
        mask[also] = True
    genes = np.flatnonzero(mask)
    scales = scales_of(adata, source, choice.scale)
    own = None if scales is None else scales[genes]
    with read_matrix(source, genes, own, choice.memory, choice.folder) as X:
        yield Chosen(X, genes, source, scales is not None)


def gigabytes(X: CsrFile) -> str:
    """Return what a matrix on disk would take in memory, as text."""
    return f"{bytes_of(X.nnz, X.dtype) / 2**30:.1f} GiB"


def cell_totals(X: Any) -> Array:
    """Return the sum of each row, (n,), float64."""
    if not isinstance(X, CsrFile):
        return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    found = np.empty(X.shape[0])
    for rows, block in X.blocks():
        found[rows] = block.sum(axis=1, dtype=np.float64)
    return found


def writable(adata: Any, copy: bool) -> Any:
    """Return what results are written to: the AnnData itself, or a copy in memory."""
    if copy and adata.isbacked:
        raise ValueError(
            "copy=True, and adata is backed by a file. Give adata.to_memory(), or copy=False: "
            "the file is not written to."
        )
    return adata.copy() if copy else adata


def write_programs(
    adata: Any,
    key: str,
    factors: tuple[Array, Array],
    chosen: Chosen,
    parameters: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    batches: Sequence[str] = (),
    **facts: Any,
) -> None:
    """Write the result of a fit to obsm, varm and uns; the last rows of A are those of batches.

    Rows of A are divided by their sums, which S is multiplied by: the programs are distributions of
    genes, and S says how much of the data each of them explains.
    """
    S, A = factors
    rank = len(A) - len(batches)
    sums = A[:rank].sum(axis=1, dtype=np.float64)
    sums = np.where(sums > 0, sums, 1)
    for earlier in (f"{key}_batches", f"{key}_scores"):
        if earlier in adata.varm:
            del adata.varm[earlier]
    adata.obsm[f"X_{key}"] = (S[:, :rank] * sums).astype(S.dtype)
    programs = _by_gene(A[:rank] / sums[:, None], chosen.genes, adata.n_vars, A.dtype)
    of_names = list(names or (f"{key}{number + 1}" for number in range(rank)))
    adata.varm[key] = (
        pd.DataFrame(programs, index=adata.var_names, columns=of_names) if names else programs
    )
    params = {
        "layer": chosen.source.layer,
        **parameters,
        **said(scale=SCALE if chosen.scaled else None),
    }
    found: dict[str, Any] = {"params": params, "names": np.array(of_names, dtype=object)}
    if batches:
        adata.varm[f"{key}_batches"] = _by_gene(A[rank:], chosen.genes, adata.n_vars, A.dtype)
        found["batches"] = np.array(batches, dtype=object)
    adata.uns[key] = {**found, "version": __version__, **facts}


def said(**parameters: Any) -> dict[str, Any]:
    """Return those parameters that were given and can be written to a file, as plain values."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, numbers.Integral):
            found[name] = int(value)
        elif isinstance(value, (str, numbers.Real)):
            found[name] = value
    return found


def _by_gene(A: Array, genes: Array, n_genes: int, dtype: Any) -> Array:
    """Return components as columns, with zeros for genes that were not used."""
    found = np.zeros((n_genes, len(A)), dtype)
    found[genes] = A.T
    return found
