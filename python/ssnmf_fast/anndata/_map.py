"""Function :func:`map_to`: the programs of a reference in new cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from anndata import AnnData

from .._common.arrays import Array, LossName
from .._common.text import listed
from .._common.warn import warn_user
from .._data.border import check_factor, check_option
from .._models.represent import represent
from ..selection import Consensus
from . import _source
from ._source import MEMORY, Folder, Source, documented


@documented
def map_to(
    adata: AnnData,
    reference: AnnData | pd.DataFrame | Consensus,
    *,
    key: str | None = None,
    layer: str | None = None,
    genes: Sequence[str] | None = None,
    scale: Literal["reference", "own", "none"] = "reference",
    key_added: str = "nmf",
    loss: LossName | float | None = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    memory: int = MEMORY,
    temporary_folder: Folder = None,
    copy: bool = False,
) -> AnnData | None:
    """Find the programs of a reference in other cells, by gene names.

    Parameters
    ----------
    adata : anndata.AnnData
        New cells, in the same units as the data of the reference, such as counts.
    reference : anndata.AnnData, pandas.DataFrame or Consensus
        An AnnData with results of :func:`nmf` or :func:`consensus`; a table of programs (rows) and
        genes (columns), such as the spectra of cNMF; or a consensus, with `genes`.
    key : str, optional
        Name of the results in an AnnData reference; by default that of its only results, or "nmf".
    genes : sequence of str, optional
        Gene names of a consensus.
    scale : {"reference", "own", "none"}
        Divisors of the genes of `adata`: the scales of an AnnData reference, if it has some
        ("reference"); their own standard deviations ("own"), as in starCAT, which adjusts for
        technical differences but makes the result of a cell depend on the other cells; or "none".
    loss : str or float, optional
        Loss, as in :func:`ssnmf_fast.represent`; None means the loss of the reference, for a table
        "frobenius".
    tol, n_threads
        As in :func:`ssnmf_fast.represent`.

    Returns
    -------
    None or anndata.AnnData
        With ``obsm["X_nmf"]``, the amount of each program in each cell, and ``uns["nmf"]``.

    Raises
    ------
    ValueError
        If there are no common genes.

    Warns
    -----
    UserWarning
        If `adata` lacks genes of programs: these genes are left out.

    Notes
    -----
    Batch profiles of the reference are part of the fit, but not of the result.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(1.0, (120, 30)).astype(np.float32)
    >>> old, new = anndata.AnnData(counts[:100]), anndata.AnnData(counts[100:])
    >>> sfa.nmf(old, 4, use_highly_variable=False)
    >>> sfa.map_to(new, old)
    >>> new.obsm["X_nmf"].shape
    (20, 4)
    """
    check_option(scale, "scale", ("reference", "own", "none"))
    source = Source(adata, layer)
    if key_added in adata.varm:
        raise ValueError(
            f"adata.varm[{key_added!r}] has programs of its own cells; give another key_added."
        )
    _source.require_own(adata, key_added)
    A, gene_names, programs, scales, of_reference = _programs(reference, key, genes)
    _source.require_unique(adata)
    places = np.asarray(adata.var_names.get_indexer(gene_names))
    missing = [str(gene) for gene in gene_names[places < 0]]
    if len(missing) == len(places):
        names = f"such as {listed(missing)}. Use the same kind of names in both"
        raise ValueError(f"adata has none of the {len(places)} genes of the reference, {names}.")
    if missing:
        counts = f"{len(missing)} of the {len(places)} genes of the reference"
        warn_user(f"adata lacks {counts}, which are left out: {listed(missing)}.", UserWarning)
    columns = np.argsort(places)[len(missing) :]  # numbers of genes rise in adata
    A, places = A[:, columns], places[columns]
    scales = scales[columns] if scale == "reference" and scales is not None else None
    if scale == "own":
        moments = _source.Moments(len(places))
        for piece in source.pieces(places):
            moments.add(piece.genes, piece.values)
        scales = moments.deviations()
    adata = _source.writable(adata, copy)
    loss = of_reference if loss is None else loss
    with _source.read_matrix(source, places, scales, memory, temporary_folder) as X:
        S = represent(X, A.astype(X.dtype), loss=loss, tol=tol, n_threads=n_threads)
    rank = len(programs)
    adata.obsm[f"X_{key_added}"] = np.ascontiguousarray(S[:, :rank])
    params = {"layer": source.layer, "scale": scale, "n_genes": len(places)}
    params |= _source.plain_parameters(loss=loss)
    about = {"params": params, "names": np.array(programs, dtype=object)}
    _source.write_about(adata, key_added, **about)
    return adata if copy else None


def _programs(
    reference: AnnData | pd.DataFrame | Consensus, key: str | None, genes: Sequence[str] | None
) -> tuple[Array, pd.Index, list[str], Array | None, Any]:
    """Return programs by used genes, these genes, program names, gene scales, and the loss.

    The last programs, the batch profiles, have no name.
    """
    loss: Any = "frobenius"
    scales = None
    if isinstance(reference, pd.DataFrame):
        values, columns = reference.to_numpy(), reference.columns
        names = [str(name) for name in reference.index]
    elif isinstance(reference, Consensus):
        if genes is None:
            raise ValueError("reference is a Consensus; give the names of its features as genes.")
        values, columns, loss = reference.components, pd.Index(genes), reference.loss
        names = [f"{key or 'nmf'}{number + 1}" for number in range(len(values))]
    else:
        _source.require_annotated(reference, "reference")
        key = _source.key_of(key, [k for k in reference.varm if f"X_{k}" in reference.obsm])
        if key not in reference.varm:
            hint = "Run ssnmf_fast.anndata.nmf on it, or select other results by key."
            raise ValueError(f"reference.varm has no {key!r}, only {list(reference.varm)}. {hint}")
        about, columns = reference.uns.get(key, {}), reference.var_names
        values, params = np.asarray(reference.varm[key]).T, about.get("params", {})
        names = [str(name) for name in about.get("names", range(1, len(values) + 1))]
        if "batches" in about:
            values = np.vstack([values, np.asarray(reference.varm[f"{key}_batches"]).T])
        if "scale" in params:
            scales = np.asarray(reference.var[params["scale"]], dtype=np.float64)
        loss = params.get("loss", "frobenius")
    for what, listing in (("genes", columns), ("programs", names)):
        if len(listing) != len(set(listing)):
            raise ValueError(f"reference has {what} with the same name; names must be unique.")
    shape = len(values), len(columns)
    A = check_factor(values, "the programs of reference", shape, np.float64, "programs x genes")
    used = np.flatnonzero(A.any(axis=0))
    if not len(used):
        raise ValueError("the programs of reference are all zero; expected at least one gene.")
    return A[:, used], columns[used], names, None if scales is None else scales[used], loss
