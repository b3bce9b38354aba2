"""Programs of an AnnData: which genes they have, where they are written, what is refused."""

import anndata
import numpy as np
import pandas as pd
import pytest
from helpers.refused import refused
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import ssnmf_fast as sf
import ssnmf_fast.anndata as sfa


def cosines(found, truth):
    """Cosines of rows as they match best."""
    found, truth = (F / np.linalg.norm(F, axis=1, keepdims=True) for F in (found, truth))
    similar = found @ truth.T
    rows, columns = linear_sum_assignment(-similar)
    return similar[rows, columns]


def test_the_best_of_several_starts_is_kept(cells):
    sfa.nmf(cells, 4, n_starts=3, random_state=1)
    used = cells.var["highly_variable"].to_numpy()
    fit = sf.factorize(cells.X[:, used], n_components=4, n_starts=3, random_state=1)
    assert cells.uns["nmf"]["objective"] == pytest.approx(min(fit.start_objectives))


def test_results_are_where_scanpy_has_them(cells):
    assert sfa.nmf(cells, 4, loss="kullback-leibler", random_state=3) is None
    used = cells.var["highly_variable"].to_numpy()
    S, A = cells.obsm["X_nmf"], cells.varm["nmf"]
    assert S.shape == (cells.n_obs, 4)
    assert A.shape == (cells.n_vars, 4)
    assert S.dtype == A.dtype == np.float32
    assert not A[~used].any()
    np.testing.assert_allclose(A.sum(axis=0), 1, rtol=1e-5)
    fit = sf.factorize(cells.X[:, used], n_components=4, loss="kullback-leibler", random_state=3)
    np.testing.assert_allclose(S @ A[used].T, fit.S @ fit.A, rtol=1e-4, atol=1e-4)
    about = cells.uns["nmf"]
    assert about["version"] == sf.__version__
    assert about["n_iter"] == fit.n_iter
    assert about["objective"] == pytest.approx(fit.objective[-1][1])
    assert about["params"] == {
        "layer": "X", "n_components": 4, "loss": "kullback-leibler", "solver": "auto",
        "max_iter": 200, "tol": 1e-4, "random_state": 3,
    }  # fmt: skip
    assert about["names"].tolist() == ["nmf0", "nmf1", "nmf2", "nmf3"]


def test_results_survive_a_file(cells, tmp_path):
    sfa.nmf(cells, 3, key_added="programs", batch_key="batch", random_state=None)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(read.obsm["X_programs"], cells.obsm["X_programs"])
    np.testing.assert_array_equal(read.varm["programs_batches"], cells.varm["programs_batches"])
    about = read.uns["programs"]
    assert about["batches"].tolist() == ["new", "old"]
    assert about["params"]["batch_key"] == "batch"
    assert "random_state" not in about["params"]


def test_copy_leaves_the_original(cells):
    found = sfa.nmf(cells, 3, random_state=0, copy=True)
    assert not cells.obsm.keys()
    assert not cells.uns
    sfa.nmf(cells, 3, random_state=0)
    np.testing.assert_array_equal(found.obsm["X_nmf"], cells.obsm["X_nmf"])


def test_which_genes_are_used(cells):
    half = np.arange(cells.n_vars) < 40
    cells.var["half"] = half
    for mask in ("half", half, pd.Series(half)):
        sfa.nmf(cells, 3, mask_var=mask)
        np.testing.assert_array_equal(cells.varm["nmf"].any(axis=1), half)
    sfa.nmf(cells, 3, use_highly_variable=False)
    assert cells.varm["nmf"].any(axis=1).sum() > 64
    del cells.var["highly_variable"]
    with pytest.warns(UserWarning, match=r"no column 'highly_variable': all 80 genes .*prepare"):
        sfa.nmf(cells, 3)


def test_a_layer_whole_numbers_and_long_floats(cells):
    cells.layers["whole"] = cells.X.astype(np.int64)
    cells.layers["long"] = cells.X.astype(np.float64)
    sfa.nmf(cells, 3, random_state=0)
    for layer, dtype in {"whole": np.float32, "long": np.float64}.items():
        sfa.nmf(cells, 3, layer=layer, key_added=layer, random_state=0)
        assert cells.obsm[f"X_{layer}"].dtype == dtype
        np.testing.assert_allclose(cells.obsm[f"X_{layer}"], cells.obsm["X_nmf"], atol=5)
        assert cells.uns[layer]["params"]["layer"] == f"layers[{layer!r}]"
    np.testing.assert_array_equal(cells.obsm["X_whole"], cells.obsm["X_nmf"])


def test_batches_have_profiles_of_their_own(cells, truth, usage):
    rng = np.random.default_rng(5)
    old = (cells.obs["batch"] == "old").to_numpy()
    profiles = rng.dirichlet(np.full(cells.n_vars, 0.1), size=2)
    sizes = usage.sum(axis=1, keepdims=True)
    cells.X = rng.poisson(usage @ truth + sizes * profiles[old.astype(int)]).astype(np.float32)
    given = {"use_highly_variable": False, "loss": "kullback-leibler", "random_state": 0}
    sfa.nmf(cells, 4, batch_key="batch", **given)
    assert cosines(cells.varm["nmf"].T, truth).min() > 0.95
    assert cosines(cells.varm["nmf_batches"].T, profiles).min() > 0.95
    new_first = cells.varm["nmf_batches"].T @ profiles.T
    assert (new_first.argmax(axis=1) == [0, 1]).all()
    sfa.nmf(cells, 4, **given)
    assert cosines(cells.varm["nmf"].T, truth).min() < 0.9
    assert "nmf_batches" not in cells.varm


@pytest.mark.slow
def test_gene_sets_name_programs(cells, truth):
    names = cells.var_names.to_numpy()
    markers = {f"program {k}": names[np.argsort(-truth[k])[:5]].tolist() for k in (2, 0)}
    cells.var["highly_variable"] = ~cells.var_names.isin(markers["program 0"][:3])
    markers["program 0"] = dict.fromkeys(markers["program 0"], 2.0)
    markers["program 2"].append("no such gene")
    with pytest.warns(UserWarning, match=r"gene_sets\['program 2'\] .*'no such gene'"):
        sfa.nmf(cells, 4, gene_sets=markers, loss="kullback-leibler", random_state=0)
    found = cells.varm["nmf"]
    assert list(found.columns) == ["program 2", "program 0", "free1", "free2"]
    assert found.index.equals(cells.var_names)
    assert (found.loc[list(markers["program 0"]), "program 0"] > 0).all()
    for k in (2, 0):
        assert cosines(found[[f"program {k}"]].to_numpy().T, truth[[k]]).min() > 0.95


def test_no_convergence_is_said(cells):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        sfa.nmf(cells, 3, max_iter=2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"layer": "none"}, ValueError, r"layer='none' .*\[\]"),
        ({"mask_var": "none"}, ValueError, r"mask_var='none' is not among .*highly_variable"),
        ({"mask_var": np.ones(3, bool)}, ValueError, r"mask_var has shape \(3,\)"),
        ({"mask_var": np.ones(80)}, ValueError, r"dtype float64; expected a bool"),
        ({"mask_var": np.zeros(80, bool)}, ValueError, "mask_var chooses no gene"),
        ({"batch_key": "none"}, ValueError, r"batch_key='none' is not among .*'batch'"),
        ({"batch_key": "one"}, ValueError, "the same value for all cells"),
        ({"batch_key": "gaps"}, ValueError, "no value for 1 cells"),
        ({"gene_sets": ["gene1"]}, TypeError, "gene_sets must be a dict"),
        ({"gene_sets": {"a": ["gene1"]}}, ValueError, "gene_sets has 1 programs"),
        ({"gene_sets": {"a": ["gene1"], "b": "gene2"}}, TypeError, r"gene_sets\['b'\]"),
        ({"gene_sets": {"a": ["gene1"], "b": [3]}}, TypeError, r"gene_sets\['b'\]"),
        ({"gene_sets": {"a": ["gene1"], "b": []}}, ValueError, r"gene_sets\['b'\] has no gene"),
        ({"gene_sets": {"a": ["gene1"], "b": {"gene2": 0}}}, ValueError, r"\['gene2'\] is 0"),
        ({"gene_sets": {}, "n_starts": 2}, ValueError, "n_starts must be 1 with gene_sets"),
        ({"gene_sets": {}, "batch_key": "batch"}, ValueError, "cannot be given together"),
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"loss": "none"}, ValueError, "loss"),
    ],
)
def test_refused(cells, given, error, message):
    cells.obs["one"] = "here"
    cells.obs["gaps"] = cells.obs["batch"].where(np.arange(cells.n_obs) > 0)
    before = set(cells.obsm), set(cells.varm), set(cells.uns)
    refused(message, sfa.nmf, cells, error=error, **{"n_components": 4, **given})
    assert (set(cells.obsm), set(cells.varm), set(cells.uns)) == before


def test_what_is_no_table_of_cells(cells):
    with pytest.raises(TypeError, match=r"adata must be an AnnData; got ndarray.*factorize"):
        sfa.nmf(np.ones((3, 3)), 2)
    del cells.X
    refused(r"adata\.X is None; name one of the layers", sfa.nmf, cells, 2)


def test_gene_sets_that_share_names(cells):
    cells.var_names = ["gene1"] * cells.n_vars
    refused("var_names_make_unique", sfa.nmf, cells, 3, gene_sets={"a": ["gene1"], "b": ["gene2"]})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_names_of_programs_are_distinct(cells, tmp_path):
    given = {"use_highly_variable": False, "max_iter": 2}
    for names in (("free1", "b"), ("free2", "free1"), ("b", "free3")):
        sets = dict(zip(names, (["gene1"], ["gene2"]), strict=True))
        sfa.nmf(cells, 5, gene_sets=sets, **given)
        found = list(cells.varm["nmf"].columns)
        assert found[:2] == list(names)
        assert len(set(found)) == 5
    cells.write_h5ad(tmp_path / "cells.h5ad")
    for names in ((1, "1"), ("é", "e\u0301")):
        sets = dict(zip(names, (["gene1"], ["gene2"]), strict=True))
        refused(r"gene_sets has the program .* twice", sfa.nmf, cells, 4, gene_sets=sets, **given)
    cells.obs["mixed"] = [1, "1"] * (cells.n_obs // 2)
    refused("equal as text", sfa.nmf, cells, 2, batch_key="mixed", **given)


def test_gene_sets_of_data_on_disk(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    sets = {"a": ["gene1"], "b": ["gene2"]}
    with pytest.raises(ValueError, match=r"gene_sets need the data in memory.*Give more memory"):
        sfa.nmf(adata, 3, gene_sets=sets, memory=30_000)


def test_usages_are_columns_of_obs(cells):
    sfa.nmf(cells, 3, random_state=0)
    cells.obsm["X_nmf"][0] = 0
    assert sfa.usages_to_obs(cells) == ["nmf0", "nmf1", "nmf2"]
    S = cells.obsm["X_nmf"]
    np.testing.assert_allclose(cells.obs["nmf1"][1:], S[1:, 1] / S[1:].sum(axis=1), rtol=1e-6)
    assert not cells.obs.iloc[0][["nmf0", "nmf1", "nmf2"]].any()
    sfa.nmf(cells, 3, random_state=1)  # columns of an earlier fit are replaced
    sfa.usages_to_obs(cells, shares=False)
    np.testing.assert_array_equal(cells.obs["nmf2"], cells.obsm["X_nmf"][:, 2])


def test_what_others_wrote_stays(cells):
    sets = {"S_score": ["gene0", "gene1"], "G2M_score": ["gene2", "gene3"]}
    cells.obs["S_score"] = np.linspace(0, 1, cells.n_obs)  # floats, as of scanpy
    sfa.nmf(cells, 3, gene_sets=sets, random_state=0)
    refused(r"other columns \['S_score'\]; give a prefix", sfa.usages_to_obs, cells)
    np.testing.assert_array_equal(cells.obs["S_score"], np.linspace(0, 1, cells.n_obs))
    for _ in range(2):  # earlier columns are replaced
        sfa.usages_to_obs(cells, prefix="of_")
    cells.obsm["X_pca"] = np.ones((cells.n_obs, 2))
    cells.uns["neighbors"] = {"params": {}}
    for key in ("pca", "neighbors"):
        for call in (sfa.nmf, sfa.consensus, lambda a, r, **g: sfa.choose_rank(a, [r], **g)):
            refused("from another tool; give another key_added", call, cells, 2, key_added=key)
        with pytest.raises(ValueError, match="from another tool; give another key_added"):
            sfa.map_to(cells, cells, key_added=key)


@pytest.mark.parametrize("kind", ["cells", "numbers", "one"])
def test_batches_are_groups_of_cells(cells, kind):
    n = cells.n_obs
    values = {"cells": cells.obs_names, "numbers": np.linspace(0, 1, n), "one": np.arange(n) // 9}
    cells.obs["b"] = values[kind]
    if kind == "one":
        cells.obs.loc[cells.obs_names[0], "b"] = -1
        with pytest.warns(UserWarning, match=r"one cell in 1 of \d+ batches: its profile"):
            sfa.nmf(cells, 2, batch_key="b", max_iter=2, tol=0)
    else:
        with pytest.raises(ValueError, match=r"one cell in \d+ of \d+ batches; expected groups"):
            sfa.nmf(cells, 2, batch_key="b")


def test_columns_of_obs_have_the_names_of_gene_sets(cells):
    sets = {"T": ["gene0", "gene1"], "batch": ["gene2", "gene3"]}
    sfa.nmf(cells, 3, gene_sets=sets, key_added="named", random_state=0)
    refused(r"other columns \['batch'\]; give a prefix", sfa.usages_to_obs, cells, "named")
    assert sfa.usages_to_obs(cells, "named", prefix="is_") == ["is_T", "is_batch", "is_free1"]
    assert sfa.usages_to_obs(cells, prefix="is_") == [
        "is_T",
        "is_batch",
        "is_free1",
    ]
    refused(r"no programs with key='a'; .* are \['named'\]", sfa.usages_to_obs, cells, "a")


def test_several_ranks_are_several_calls(cells):
    with pytest.raises(TypeError, match=r"got \[5, 6\].*with a different key_added"):
        sfa.consensus(cells, [5, 6])
