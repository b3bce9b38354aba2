"""Fits of matrices in files: those of the same matrix in memory, or of a CsrFile."""

from __future__ import annotations

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from stored import FORMS

import ssnmf_fast as sf
import ssnmf_fast.anndata as sfa

LITTLE = 30_000  # bytes, less than the chosen genes take


def stored(form, cells, folder):
    store, package = FORMS[form]
    if package is not None:
        pytest.importorskip(package)
    return store(cells, folder), {"layer": "stored"} if form == "layer" else {}


def chosen(cells):
    return cells.X[:, cells.var["highly_variable"].to_numpy()]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    """Files are read in many pieces."""
    monkeypatch.setattr("ssnmf_fast.anndata._source._PIECE", 10_000)


@pytest.mark.parametrize("form", FORMS)
def test_of_little_data_are_those_in_memory(form, cells, tmp_path):
    adata, given = stored(form, cells, tmp_path)
    sfa.nmf(adata, 4, **given)
    X = chosen(cells)
    fit = sf.factorize(
        X.toarray() if form in ("dense", "dask") else X, n_components=4, random_state=0
    )
    sums = fit.A.sum(axis=1, dtype=np.float64)
    np.testing.assert_array_equal(adata.obsm["X_nmf"], (fit.S * sums).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_of_much_data_are_those_from_disk(form, cells, tmp_path):
    adata, given = stored(form, cells, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sfa.nmf(adata, 4, tol=0, max_iter=10, memory=LITTLE, temporary_folder=scratch, **given)
    assert not list(scratch.iterdir())
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(chosen(cells)), compressed=False)
    file = sf.open_csr(tmp_path / "X.npz", memory=LITTLE // 4)
    fit = sf.factorize(file, n_components=4, tol=0, max_iter=10, random_state=0)
    sums = fit.A.sum(axis=1, dtype=np.float64)
    np.testing.assert_array_equal(adata.obsm["X_nmf"], (fit.S * sums).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_prepared_alike(form, cells, tmp_path):
    adata, given = stored(form, cells, tmp_path)
    sfa.prepare(adata, 20, **given)
    sfa.prepare(cells, 20)
    for column in ("highly_variable", "fano_ratio", "nmf_scale"):
        np.testing.assert_allclose(adata.var[column], cells.var[column], rtol=1e-12)
    sfa.nmf(adata, 3, tol=0, max_iter=20, memory=LITTLE, **given)
    scaled = cells.X.toarray() / cells.var["nmf_scale"].to_numpy()
    used = cells.var["highly_variable"].to_numpy()
    np.testing.assert_allclose(
        adata.obsm["X_nmf"].sum(axis=1).mean(), scaled[:, used].sum(axis=1).mean(), rtol=0.1
    )


def test_files_are_checked(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    with h5py.File(tmp_path / "cells.h5ad", "r+") as file:
        file["X/indices"][3] = 10_000
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"adata\.X is not a valid sparse matrix: .*10000"):
        sfa.nmf(adata, 3, use_highly_variable=False)
    assert "X_nmf" not in adata.obsm


def test_matrices_in_memory_are_checked(cells):
    cells.X.indices[3] = 10_000
    for call in (sfa.prepare, lambda adata: sfa.nmf(adata, 3)):
        with pytest.raises(ValueError, match=r"adata\.X is not a valid sparse matrix: .*10000"):
            call(cells)


def test_nothing_is_left_after_an_error(cells, tmp_path):
    cells.X.data[-1] = -1
    adata, _ = stored("rows", cells, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(ValueError, match=r"adata\.X\[\d+:\]\[\d+, \d+\] = -1"):
        sfa.nmf(adata, 3, use_highly_variable=False, memory=LITTLE, temporary_folder=scratch)
    assert not list(scratch.iterdir())


def test_a_part_of_a_file_is_refused(cells, tmp_path):
    adata, _ = stored("rows", cells, tmp_path)
    for call in (lambda a: sfa.nmf(a, 3), sfa.prepare, lambda a: sfa.map_to(a, cells)):
        with pytest.raises(ValueError, match=r"part of an AnnData .*to_memory"):
            call(adata[:100])
    with pytest.raises(ValueError, match=r"copy=True.*to_memory"):
        sfa.nmf(adata, 3, copy=True)
