"""Fits of matrices in files: those of the same matrix in memory, or of a CsrFile."""

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.refused import refused
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


@pytest.mark.parametrize("form", FORMS)
def test_of_little_data_are_those_in_memory(form, cells, tmp_path):
    adata, given = stored(form, cells, tmp_path)
    sfa.nmf(adata, 4, random_state=0, **given)
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
    options = {"tol": 0, "max_iter": 10, "random_state": 0, "temporary_folder": scratch}
    sfa.nmf(adata, 4, memory=LITTLE, **options, **given)
    assert not list(scratch.iterdir())
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(chosen(cells)), compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=LITTLE // 4)
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
        refused(r"adata\.X is not a valid sparse matrix: .*10000", call, cells)


def test_nothing_is_left_after_an_error(cells, tmp_path):
    cells.X.data[-1] = -1
    adata, _ = stored("rows", cells, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(ValueError, match=r"adata\.X(\[\d+:\])?\[\d+, \d+\] = -1"):
        sfa.nmf(adata, 3, use_highly_variable=False, memory=LITTLE, temporary_folder=scratch)
    assert not list(scratch.iterdir())


def test_a_part_of_a_file_is_refused(cells, tmp_path):
    adata, _ = stored("rows", cells, tmp_path)
    for call in (lambda a: sfa.nmf(a, 3), sfa.prepare, lambda a: sfa.map_to(a, cells)):
        refused(r"view of an AnnData .*to_memory", call, adata[:100])
    refused(r"copy=True.*to_memory", sfa.nmf, adata, 3, copy=True)


DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "f2", "f4", "f8", "g"]
FORMS_IN_MEMORY = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}


def little(dtype, form="dense"):
    """A few cells; the numbers are whole and in the range of all dtypes."""
    counts = np.random.default_rng(0).poisson(1.0, (30, 8)) + (np.arange(8) == 0)
    X = np.minimum(counts, 1 if dtype == "?" else 100).astype(dtype)
    return anndata.AnnData(FORMS_IN_MEMORY[form](X), obs={"b": ["x", "y"] * 15})


EVERY = {"use_highly_variable": False, "max_iter": 3, "tol": 0, "random_state": 0}
FEW = {"n_starts": 2, "distance_threshold": 2}
CALLS = {
    "prepare": lambda a, layer: sfa.prepare(a, 8, layer=layer, empty_cells="keep"),
    "nmf": lambda a, layer: sfa.nmf(a, 2, layer=layer, **EVERY),
    "on disk": lambda a, layer: sfa.nmf(a, 2, layer=layer, memory=500, **EVERY),
    "batches": lambda a, layer: sfa.nmf(a, 2, layer=layer, batch_key="b", **EVERY),
    "sets": lambda a, layer: sfa.nmf(
        a, 3, layer=layer, gene_sets={"a": ["1"], "b": ["2"]}, **EVERY
    ),
    "consensus": lambda a, layer: sfa.consensus(a, 2, layer=layer, **EVERY, **FEW),
    "choose_rank": lambda a, layer: sfa.choose_rank(
        a, [1, 2], layer=layer, n_splits=1, n_starts=1, **EVERY
    ),
    "map_to": lambda a, layer: sfa.map_to(a, of_programs(), layer=layer, key_added="m"),
    "own scales": lambda a, layer: sfa.map_to(
        a, of_programs(), layer=layer, scale="own", key_added="m"
    ),
}


def of_programs():
    table = np.random.default_rng(1).random((2, 8))
    return pd.DataFrame(table, columns=list("01234567"), index=["p", "q"])


def written(adata):
    """All numbers that a call has left in an AnnData."""
    parts = {**adata.obsm, **adata.varm, **{name: adata.var[name] for name in adata.var}}
    found = [np.asarray(parts[name], float).ravel() for name in sorted(parts)]
    return np.concatenate([*found, np.ravel(adata.uns.get("nmf_rank", {}).get("means", []))])


STORAGES = ("memory", "file", "layer", "view")


def stored_as(storage, adata, folder):
    """Return the AnnData with its matrix elsewhere, and the layer that has it."""
    if storage == "layer":
        adata.layers["counts"], adata.X = adata.X, sp.csr_array(adata.shape, dtype=np.float32)
        return adata, "counts"
    if storage == "view":
        return adata[:, :], None
    if storage == "file":
        path = folder / f"cells{len(list(folder.iterdir()))}.h5ad"  # the others are open
        adata.write_h5ad(path)
        return anndata.read_h5ad(path, backed="r"), None
    return adata, None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::anndata.ImplicitModificationWarning")
@pytest.mark.parametrize("call", CALLS)
def test_every_function_takes_every_dtype(call, tmp_path):
    """The storages take turns, so that all meet all dtypes in some of the functions."""
    turn, function = list(CALLS).index(call), CALLS[call]
    for number, dtype in enumerate(DTYPES):
        form = "dense" if dtype == "f2" else [*FORMS_IN_MEMORY][(number + turn) % 3]
        storage = STORAGES[(number // 3 + turn) % 4]
        expected = little("?" if dtype == "?" else "i8", form)
        expected.X = expected.X.astype(np.float64 if dtype in ("f8", "g") else np.float32)
        function(expected, None)
        adata, layer = stored_as(storage, little(dtype, form), tmp_path)
        function(adata, layer)
        np.testing.assert_allclose(written(adata), written(expected), rtol=1e-3, atol=1e-5)


def test_nan_has_one_answer():
    """In genes that are read, in a masked array too; in others it does not matter."""
    for call, function in CALLS.items():
        if call == "map_to":  # of which all genes are used
            continue
        adata = little("f4")
        adata.X[5, 3] = np.nan
        refused(r"adata\.X contains NaN at \[5, 3\]", function, adata, None)
        assert not adata.obsm.keys()
        masked = little("f4")
        masked.layers["l"] = np.ma.masked_values(masked.X, masked.X[5, 3])
        refused(r"layers\['l'\] is a masked array", function, masked, "l")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("form", FORMS_IN_MEMORY)
def test_nan_of_genes_that_are_not_used(form, storage, tmp_path):
    adata = little("f4")
    adata.X[5, 3] = np.nan
    adata.X = FORMS_IN_MEMORY[form](adata.X)
    adata, layer = stored_as(storage, adata, tmp_path)
    others = np.arange(8) != 3
    sfa.nmf(adata.copy() if storage == "view" else adata, 2, layer=layer, mask_var=others)
    with pytest.raises(ValueError, match="contains NaN"):  # scores are those of all genes
        sfa.consensus(adata, 2, layer=layer, mask_var=others, key_added="c", **FEW)
    assert "X_c" not in adata.obsm


def test_advice_for_scaled_data():
    for function in CALLS.values():
        adata = little("f4")
        adata.X -= 0.5
        refused(r"look scaled\. Name the layer .*adata\.raw", function, adata, None)
