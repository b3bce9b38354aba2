"""The preparation of cNMF: the same genes and scales as a small version of its formulas."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast.anndata as sfa


def of_cnmf(counts, n_genes):
    """Ratios, chosen genes and scales as cNMF computes them, of a dense array."""
    sizes = counts.sum(axis=1, keepdims=True)
    tpm = counts / np.where(sizes > 0, sizes, 1) * 1e6
    mean, variance = pd.Series(tpm.mean(axis=0)), pd.Series(tpm.var(axis=0))
    fano = variance / mean
    top = mean.sort_values(ascending=False)[:20].index
    a = (np.sqrt(variance) / mean)[top].min()
    low, high = mean.quantile([0.1, 0.9])
    least, most = fano.quantile([0.1, 0.9])
    box = (fano > least) & (fano < most) & (mean > low) & (mean < high)
    ratio = fano / (a**2 * mean + fano[box].median())
    chosen = ratio.sort_values(ascending=False).index[:n_genes]
    return ratio.to_numpy(), np.isin(np.arange(counts.shape[1]), chosen), counts.std(axis=0, ddof=1)


@pytest.mark.parametrize("n_genes", [5, 30])
def test_as_cnmf_does(cells, n_genes):
    counts = cells.X.toarray().astype(np.float64)
    counts[:, 7] = 0
    cells.X = sp.csr_matrix(counts)
    sfa.prepare(cells, n_genes, empty_cells="keep")
    ratio, chosen, deviations = of_cnmf(counts, n_genes)
    np.testing.assert_allclose(cells.var["fano_ratio"], ratio, rtol=1e-10)
    np.testing.assert_array_equal(cells.var["highly_variable"], chosen)
    np.testing.assert_allclose(
        cells.var["nmf_scale"], np.where(deviations > 0, deviations, 1), rtol=1e-10
    )
    assert cells.uns["nmf_prepare"] == {"layer": "X", "n_genes": n_genes}


def test_fits_take_genes_and_scales(cells):
    sfa.prepare(cells, 30)
    sfa.nmf(cells, 3, random_state=0)
    used = cells.var["highly_variable"].to_numpy()
    assert used.sum() == 30
    scaled = (cells.X.toarray() / cells.var["nmf_scale"].to_numpy())[:, used]
    of_scaled = cells[:, used].copy()
    of_scaled.X = sp.csr_matrix(scaled.astype(np.float32))
    del of_scaled.var["nmf_scale"]
    sfa.nmf(of_scaled, 3, random_state=0)
    np.testing.assert_allclose(of_scaled.obsm["X_nmf"], cells.obsm["X_nmf"], rtol=1e-5, atol=1e-4)
    assert cells.uns["nmf"]["params"]["scale"] == "nmf_scale"
    sfa.nmf(cells, 3, scale=False)
    assert "scale" not in cells.uns["nmf"]["params"]


def test_genes_of_the_user(cells):
    with pytest.warns(UserWarning, match="genes has 1 names .*'none'"):
        sfa.prepare(cells, genes=["gene3", "none", "gene1"], empty_cells="keep")
    assert cells.var_names[cells.var["highly_variable"]].tolist() == ["gene1", "gene3"]
    refused("genes must be names of genes", sfa.prepare, cells, genes="gene1", error=TypeError)
    refused("genes has no gene", sfa.prepare, cells, genes=["none"])


def test_cells_without_counts(cells):
    X = cells.X.tolil()
    X[5] = 0
    cells.X = X.tocsr()
    with pytest.raises(ValueError, match=r"1 cells have no count of the 20 .*'cell5'.*empty_cells"):
        sfa.prepare(cells, 20, genes=list(cells.var_names[:20]))
    assert "nmf_scale" not in cells.var
    sfa.prepare(cells, 20, empty_cells="keep")
    sfa.nmf(cells, 3)
    assert not cells.obsm["X_nmf"][5].any()
    sfa.prepare(cells[cells.obs_names != "cell5"].copy(), genes=list(cells.var_names))


def test_the_wrong_data(cells):
    cells.layers["logs"] = cells.X.log1p()
    with pytest.warns(UserWarning, match=r"layers\['logs'\] has numbers that are not whole"):
        sfa.prepare(cells, 20, layer="logs", empty_cells="keep")
    refused(r"scales of adata\.layers\['logs'\].*data are adata\.X", sfa.nmf, cells, 3)
    cells.X = sp.csr_matrix(cells.shape, dtype=np.float32)
    refused(r"adata\.X has no count", sfa.prepare, cells)
    cells.var["nmf_scale"] = 0.0
    refused("must hold finite numbers above 0", sfa.nmf, cells, 3, layer="logs")


def test_copy(cells):
    found = sfa.prepare(cells, 20, copy=True)
    assert "nmf_scale" in found.var
    assert "nmf_scale" not in cells.var
