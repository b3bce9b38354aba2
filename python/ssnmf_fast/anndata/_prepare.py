"""Function :func:`prepare`: highly variable genes and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from anndata import AnnData

from .._common.arrays import Array
from .._common.text import listed
from .._common.warn import warn_user
from .._data.arrays import scale_rows
from .._data.border import check_integer, check_option
from . import _source
from ._source import COUNTS, HIGHLY_VARIABLE, PREPARED, SCALE, Source, documented

_HIGHEST = 20  # genes for the variation of cell sizes
_MIDDLE = (0.1, 0.9)  # quantiles of the genes for the expected variance
FANO_RATIO = "fano_ratio"


@documented
def prepare(
    adata: AnnData,
    n_genes: int = 2000,
    *,
    layer: str | None = None,
    genes: Sequence[str] | None = None,
    empty_cells: Literal["error", "keep"] = "error",
    copy: bool = False,
) -> AnnData | None:
    """Choose genes with a higher variance than expected for their mean, and compute their scales.

    This is the preparation of cNMF [1]_; files are read block by block.  :func:`nmf` and the other
    functions use these genes, and divide each by its standard deviation.

    Parameters
    ----------
    adata : anndata.AnnData, n cells x m genes
        With counts, in memory or backed by a file.
    n_genes : int
        Number of genes to choose.
    genes : sequence of str, optional
        Names of the genes to use instead.
    empty_cells : {"error", "keep"}
        Whether cells without counts of the chosen genes are an error; if they are kept, no program
        is found in them.

    Returns
    -------
    None or anndata.AnnData
        With columns of `var`:

        - ``highly_variable``: the chosen genes,
        - ``fano_ratio``: variance divided by mean, in cells scaled to the same size, relative to
          the value expected for the mean; NaN without counts,
        - ``nmf_scale``: the standard deviation of the counts, 1 for constant genes,

        and ``uns["nmf_prepare"]``.

    Raises
    ------
    ValueError
        For cells without counts.

    Notes
    -----
    The expected ratio is ``a^2 mean + b^2``: a is the smallest coefficient of variation of the 20
    genes with the largest means, b^2 the median ratio of genes between the 10 % and 90 % quantiles.

    References
    ----------
    .. [1] D. Kotliar et al., "Identifying gene expression programs of cell-type identity and
       cellular activity with single-cell RNA-Seq", 2019.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> counts = np.random.default_rng(0).poisson(1.0, (100, 30))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> sfa.prepare(adata, n_genes=10)
    >>> int(adata.var["highly_variable"].sum())
    10
    """
    n_genes = check_integer(n_genes, "n_genes", 1)
    check_option(empty_cells, "empty_cells", ("error", "keep"))
    source = Source(adata, layer)
    own = None if genes is None else _source.gene_numbers(adata, genes, "genes")
    adata = _source.writable(adata, copy)
    factors, m = _source.factors_of_size(source), source.matrix.shape[1]
    counts, of_size, whole = _source.Moments(m), _source.Moments(m), True
    for piece in source.pieces():
        values = piece.values.astype(np.float64)
        whole = whole and bool((values.data == np.floor(values.data)).all())
        counts.add(piece.genes, values)
        of_size.add(piece.genes, scale_rows(values, factors[piece.rows]))
    if not whole:
        text = "has numbers that are not whole, but prepare is for counts"
        warn_user(f"{source.name} {text}. {COUNTS}.", UserWarning)
    if not counts.mean.any():
        raise ValueError(f"{source.name} has no count; expected at least one.")
    ratios = _fano_ratios(of_size.mean, of_size.variance)
    chosen = np.zeros(len(ratios), dtype=bool)
    order = np.argsort(-ratios, kind="stable")  # NaN comes last
    chosen[order[:n_genes] if own is None else own] = True
    if empty_cells == "error":
        empty = adata.obs_names[_source.cell_sums(source, np.flatnonzero(chosen)) == 0].astype(str)
        if len(empty):
            raise ValueError(
                f"{len(empty)} cells have no count of the {chosen.sum()} chosen genes: "
                f"{listed(empty.tolist())}. Leave them out, or set empty_cells='keep'."
            )
    adata.var[HIGHLY_VARIABLE] = chosen
    adata.var[FANO_RATIO] = ratios
    adata.var[SCALE] = counts.deviations()
    adata.uns[PREPARED] = {"layer": source.layer, "n_genes": int(chosen.sum())}
    return adata if copy else None


def _fano_ratios(mean: Array, variance: Array) -> Array:
    """Return variance / mean, relative to the expected ratio, (m,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fano = variance / mean
        variation = np.sqrt(variance) / mean
    highest = np.argsort(-mean, kind="stable")[:_HIGHEST]
    slope = np.nanmin(variation[highest]) ** 2
    means, ratios = np.quantile(mean, _MIDDLE), np.nanquantile(fano, _MIDDLE)
    with np.errstate(invalid="ignore"):
        middle = (fano > ratios[0]) & (fano < ratios[1]) & (mean > means[0]) & (mean < means[1])
    level = np.median(fano[middle]) if middle.any() else np.nanmedian(fano)
    return np.asarray(fano / (slope * mean + level))
