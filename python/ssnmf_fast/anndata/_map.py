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
from .._version import __version__
from ..selection import Consensus
from . import _source
from ._source import MEMORY, Folder, Source, documented


@documented
def map_to(
    adata: AnnData,
    reference: AnnData | pd.DataFrame | Consensus,
    *,
    key: str = "nmf",
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
    """Find the programs of a reference in other cells, by the names of genes.

    Parameters
    ----------
    adata : anndata.AnnData
        New cells, in the units of the data that the reference was fitted to, such as counts.
    reference : anndata.AnnData, pandas.DataFrame or Consensus
        What :func:`nmf` or :func:`consensus` have written to; or a table of programs (rows) and
        genes (columns), as the spectra of cNMF are; or a consensus, with `genes`.
    key : str
        Name of the results in an AnnData that is the reference.
    genes : sequence of str, optional
        Names of the genes of a consensus.
    scale : {"reference", "own", "none"}
        What the genes of `adata` are divided by: as in the reference, if that is an AnnData with
        scales; or their own standard deviations, as starCAT does, which allows for differences in
        technique, and lets the result of a cell depend on the others; or nothing.
    loss : str or float, optional
        Loss, as in :func:`ssnmf_fast.represent`; None takes that of the reference, and "frobenius"
        for a table.
    tol, n_threads
        As in :func:`ssnmf_fast.represent`.

    Returns
    -------
    None or anndata.AnnData
        With ``obsm["X_nmf"]``, how much of each program is in each cell, and ``uns["nmf"]``.

    Raises
    ------
    ValueError
        If there is no gene in common.

    Warns
    -----
    UserWarning
        If `adata` lacks genes that programs have: the fit is restricted to the others.

    Notes
    -----
    Profiles of batches of the reference take part in the fit, and are left out of the result.

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
    A, named, programs, scales, of_reference = _programs(reference, key, genes)
    _source.require_unique(adata)
    places = np.asarray(adata.var_names.get_indexer(named))
    missing = [str(gene) for gene in named[places < 0]]
    if len(missing) == len(places):
        names = f"such as {listed(missing)}. Give both the same kind of names"
        raise ValueError(f"adata has none of the {len(places)} genes of the reference, {names}.")
    if missing:
        counts = f"{len(missing)} of the {len(places)} genes of the reference"
        warn_user(f"adata lacks {counts}, which are left out: {listed(missing)}.", UserWarning)
    columns = np.flatnonzero(places >= 0)
    columns = columns[np.argsort(places[columns])]  # numbers of genes rise in adata
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
    adata.uns[key_added] = {**about, "version": __version__}
    return adata if copy else None


def _programs(
    reference: AnnData | pd.DataFrame | Consensus, key: str, genes: Sequence[str] | None
) -> tuple[Array, pd.Index, list[str], Array | None, Any]:
    """Return programs by genes that some has, the genes, names, scales of genes, and the loss.

    The last programs, those of batches, have no name.
    """
    loss: Any = "frobenius"
    scales = None
    if isinstance(reference, pd.DataFrame):
        values, columns = reference.to_numpy(), reference.columns
        names = [str(name) for name in reference.index]
    elif isinstance(reference, Consensus):
        if genes is None:
            raise ValueError("reference is a Consensus; give the names of its features by genes.")
        values, columns, loss = reference.components, pd.Index(genes), reference.loss
        names = [f"{key}{number + 1}" for number in range(len(values))]
    else:
        _source.require_annotated(reference, "reference")
        if key not in reference.varm:
            raise ValueError(
                f"reference.varm has no {key!r}, only {list(reference.varm)}. Run "
                "ssnmf_fast.anndata.nmf on it, or name other results by key."
            )
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
            raise ValueError(f"reference has {what} with the same name; make the names unique.")
    shape = len(values), len(columns)
    A = check_factor(values, "the programs of reference", shape, np.float64, "programs x genes")
    used = np.flatnonzero(A.any(axis=0))
    if not len(used):
        raise ValueError("the programs of reference are all zero; expected at least one gene.")
    return A[:, used], columns[used], names, None if scales is None else scales[used], loss
