"""What a fit of an AnnData gets, and what is written of its result."""

from __future__ import annotations

import numbers
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import pandas as pd

from .._common.arrays import Array
from .._data.border import check_real
from .._data.csr_file import CsrFile, bytes_of
from .._version import __version__
from ..estimators import SeededTopics
from ._source import SCALE, Source, chosen_genes, gene_numbers, read_matrix, scales_of


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


def batches_of(adata: Any, batch_key: str | None) -> pd.Categorical | None:
    """Return the batch of each cell; raises ValueError where there is none."""
    if batch_key is None:
        return None
    if batch_key not in adata.obs:
        raise ValueError(
            f"batch_key={batch_key!r} is not among the columns of adata.obs, {list(adata.obs)}."
        )
    found = pd.Categorical(adata.obs[batch_key]).remove_unused_categories()
    missing = int((found.codes < 0).sum())
    if missing:
        raise ValueError(
            f"adata.obs[{batch_key!r}] has no value for {missing} cells; expected a batch for each."
        )
    if len(set(map(str, found.categories))) < len(found.categories):
        raise ValueError(
            f"adata.obs[{batch_key!r}] has values that are the same as text, such as 1 and '1'. "
            "Make them text, by astype(str)."
        )
    if len(found.categories) < 2:
        raise ValueError(
            f"adata.obs[{batch_key!r}] has the same value for all cells; leave batch_key out."
        )
    return found


def names_of_batches(batches: pd.Categorical | None) -> list[str]:
    """Return the names of the batches."""
    return [] if batches is None else [str(name) for name in batches.categories]


def usage_of_profiles(X: Any, batches: pd.Categorical) -> Array:
    """Return the columns of S that are known (n x batches): the size of a cell in its batch.

    A cell with twice the counts has twice as much of the profile; their mean is 1.
    """
    totals = cell_totals(X)
    found = np.zeros((len(totals), len(batches.categories)), X.dtype)
    found[np.arange(len(totals)), batches.codes] = totals / (totals.mean() or 1.0)
    return found


Sets = dict[str, dict[int, float]]  # the strengths of genes, which are numbers of columns


def known_sets(adata: Any, gene_sets: Any, rank: int) -> Sets:
    """Return the genes of each set that adata has, with their strengths; warn of the others."""
    if not isinstance(gene_sets, Mapping):
        raise TypeError(
            "gene_sets must be a dict of programs, such as {'T cells': ['CD3D', 'CD3E']}; got "
            f"{gene_sets!r:.100} ({type(gene_sets).__name__})."
        )
    if not 2 <= len(gene_sets) <= rank:
        raise ValueError(
            f"gene_sets has {len(gene_sets)} programs, and n_components is {rank}; expected two "
            "or more, and not more than n_components."
        )
    sets: Sets = {}
    for name, genes in gene_sets.items():
        where = f"gene_sets[{name!r}]"
        known = gene_numbers(adata, genes, where)
        strengths = genes if isinstance(genes, Mapping) else {}
        for gene, strength in strengths.items():
            if check_real(strength, f"{where}[{gene!r}]") == 0:
                raise ValueError(f"{where}[{gene!r}] is 0; a strength is above 0. Leave it out.")
        names = adata.var_names[known]
        text = unicodedata.normalize("NFC", str(name))
        if text in sets:
            raise ValueError(f"gene_sets names the program {text!r} twice; give distinct names.")
        sets[text] = {int(k): strengths.get(g, 1.0) for k, g in zip(known, names, strict=True)}
    return sets


def genes_of(sets: Sets) -> Array:
    """Return the numbers of all genes of the sets."""
    return np.array([gene for each in sets.values() for gene in each])


def names_of_programs(sets: Sets, rank: int) -> list[str]:
    """Return the names of the sets, and those of free programs, which no set has."""
    free = (name for number in count(1) if (name := f"free{number}") not in sets)
    return [*sets, *islice(free, rank - len(sets))]


def fit_sets(chosen: Chosen, sets: Sets, rank: int, given: dict[str, Any]) -> SeededTopics:
    """Fit programs that begin with the gene sets."""
    if isinstance(chosen.X, CsrFile):
        raise ValueError(
            f"gene_sets need the data in memory, where the chosen genes take {gigabytes(chosen.X)}."
            " Give more memory, fewer genes, or no gene_sets."
        )
    seeds = {
        name: {
            int(np.searchsorted(chosen.genes, gene)): strength for gene, strength in each.items()
        }
        for name, each in sets.items()
    }
    model = SeededTopics(seeds, n_free_topics=rank - len(sets), membership="mixed", **given)
    return model.fit(chosen.X)
