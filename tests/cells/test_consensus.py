"""The rank and the consensus of an AnnData: those of its matrix, and where they are written."""

import anndata
import numpy as np
import pandas as pd
import pytest
from helpers.refused import refused

import ssnmf_fast as sf
import ssnmf_fast.anndata as sfa


def test_is_that_of_the_matrix(cells, tmp_path):
    found = sfa.consensus(cells, 4, n_starts=5, loss="kullback-leibler", random_state=3)
    used = cells.var["highly_variable"].to_numpy()
    given = {"n_starts": 5, "loss": "kullback-leibler", "random_state": 3}
    expected = sf.consensus(cells.X[:, used], 4, **given)
    np.testing.assert_array_equal(found.components, expected.components)
    np.testing.assert_allclose(cells.varm["nmf_consensus"][used].T, expected.components, rtol=1e-5)
    np.testing.assert_allclose(cells.obsm["X_nmf_consensus"], expected.usage, rtol=1e-5)
    tpm = cells.X.toarray() / cells.X.sum(axis=1) * 1e6
    z_scores = (tpm - tpm.mean(axis=0)) / tpm.std(axis=0)
    scores = np.linalg.lstsq(expected.usage, np.asarray(z_scores), rcond=None)[0]
    np.testing.assert_allclose(cells.varm["nmf_consensus_scores"].T, scores, rtol=1e-3, atol=1e-6)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    about = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["nmf_consensus"]
    np.testing.assert_array_equal(about["stability"], expected.stability)
    assert about["error"] == expected.error
    assert about["params"]["n_starts"] == 5


@pytest.mark.slow
def test_of_a_file(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    found = sfa.consensus(
        backed, 4, n_starts=4, neighborhood_fraction=0.5, memory=50_000, tol=1e-3, random_state=0
    )
    assert found.usage.shape == (cells.n_obs, 4)
    assert backed.obsm["X_nmf_consensus"].shape == (cells.n_obs, 4)


def test_refused(cells, tmp_path):
    refused("n_stars", sfa.consensus, cells, 4, n_stars=5, error=TypeError)
    refused("adata must be an AnnData", sfa.consensus, cells.X, 4, error=TypeError)
    for name in ("../evil", "a/b", "/tmp/evil", "a\\b", "C:evil", "a\0b"):
        with pytest.raises(ValueError, match=r"cnmf_name is a prefix .*without folders"):
            sfa.consensus(cells, 4, cnmf_folder=tmp_path / "in", cnmf_name=name)
    with pytest.raises(TypeError, match="cnmf_name must be text"):
        sfa.consensus(cells, 4, cnmf_folder=tmp_path / "in", cnmf_name=3)
    assert not cells.obsm.keys()


@pytest.mark.slow
def test_the_rank_is_that_of_the_matrix(cells, tmp_path):
    options = {"loss": "kullback-leibler", "n_splits": 2, "n_starts": 1, "random_state": 0}
    choice = sfa.choose_rank(cells, [2, 4, 6], **options)
    X = cells.X[:, cells.var["highly_variable"].to_numpy()]
    expected = sf.choose_rank(X, [2, 4, 6], **options)
    assert choice.rank == expected.rank == 4
    np.testing.assert_array_equal(choice.scores, expected.scores)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    about = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r").uns["nmf_rank"]
    assert about["rank"] == 4
    assert about["ranks"].tolist() == [2, 4, 6]
    np.testing.assert_array_equal(about["means"], expected.means)


@pytest.mark.slow
def test_the_rank_of_data_on_disk(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"needs the data in memory.*Give more memory"):
        sfa.choose_rank(backed, [2, 3], memory=30_000)
    given = {
        "criterion": "stability",
        "random_state": 0,
        "n_starts": 4,
        "tol": 1e-3,
        "max_iter": 50,
    }
    choice = sfa.choose_rank(backed, [2, 3], memory=50_000, **given)
    assert choice.criterion == backed.uns["nmf_rank"]["criterion"] == "stability"


@pytest.mark.slow
def test_files_of_cnmf(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    given = {"n_starts": 4, "random_state": 0, "cnmf_folder": tmp_path / "run", "cnmf_name": "run"}
    found = sfa.consensus(backed, 4, **given)
    tables = {
        path.name: pd.read_csv(path, sep="\t", index_col=0) for path in (tmp_path / "run").iterdir()
    }
    end = "k_4.dt_0_5"
    usages, spectra = (tables[f"run.{kind}.{end}.consensus.txt"] for kind in ("usages", "spectra"))
    scores, tpm = (tables[f"run.gene_spectra_{kind}.{end}.txt"] for kind in ("score", "tpm"))
    assert len(tables) == 4
    assert usages.index.equals(cells.obs_names)
    np.testing.assert_allclose(usages, found.usage, rtol=1e-5)
    assert spectra.columns.equals(cells.var_names[cells.var["highly_variable"]])
    assert scores.columns.equals(cells.var_names)
    np.testing.assert_allclose(scores.T, backed.varm["nmf_consensus_scores"], rtol=1e-4, atol=1e-6)
    # Shares of programs in cells, times the programs in transcripts per million, are cells.
    mean = (found.shares @ tpm.to_numpy()).mean(axis=0)
    of_cells = cells.X.toarray() / cells.X.sum(axis=1) * 1e6
    np.testing.assert_allclose(mean, np.ravel(of_cells.mean(axis=0)), rtol=0.2, atol=500)
    sfa.map_to(cells, spectra, scale="none", key_added="mapped")
    np.testing.assert_allclose(cells.obsm["X_mapped"], found.usage, rtol=1e-3, atol=0.1)
    few = {**given, "cnmf_folder": tmp_path / "few", "memory": 30_000, "neighborhood_fraction": 0.5}
    sfa.consensus(backed, 4, **few)
    score = pd.read_csv(tmp_path / "few" / f"run.gene_spectra_score.{end}.txt", sep="\t")
    assert score.shape == (4, 1 + cells.var["highly_variable"].sum())


def test_results_of_a_fit_stay(cells):
    sfa.nmf(cells, 3)
    before = cells.obsm["X_nmf"].copy(), cells.varm["nmf"].copy()
    sfa.consensus(cells, 4, n_starts=3, random_state=0, distance_threshold=2)
    for expected, key in zip(before, (cells.obsm["X_nmf"], cells.varm["nmf"]), strict=True):
        np.testing.assert_array_equal(key, expected)
    assert cells.varm["nmf_consensus"].shape == (cells.n_vars, 4)
