"""Programs of a reference in new cells: by the names of genes, in the units of the reference."""

import numpy as np
import pandas as pd
import pytest
from helpers.refused import refused

import ssnmf_fast as sf
import ssnmf_fast.anndata as sfa


@pytest.fixture
def pair(cells):
    """Return a reference with programs, and other cells."""
    old, new = cells[:200].copy(), cells[200:].copy()
    sfa.prepare(old, 60)
    sfa.nmf(old, 4, loss="kullback-leibler", tol=1e-6, random_state=0)
    return old, new


def test_units_and_loss_are_those_of_the_reference(pair):
    old, new = pair
    assert sfa.map_to(new, old) is None
    used = old.var["highly_variable"].to_numpy()
    X = new.X[:, used].toarray() / old.var["nmf_scale"].to_numpy()[used]
    A = old.varm["nmf"][used].T
    expected = sf.represent(X.astype(np.float32), A, loss="kullback-leibler")
    np.testing.assert_allclose(new.obsm["X_nmf"], expected, rtol=1e-3, atol=1e-2)
    assert new.uns["nmf"]["params"] == {
        "layer": "X", "scale": "reference", "n_genes": 60, "loss": "kullback-leibler",
    }  # fmt: skip
    assert "highly_variable" in new.var  # which has no say
    again = sfa.map_to(old, old, key_added="again", copy=True)
    np.testing.assert_allclose(again.obsm["X_again"], old.obsm["X_nmf"], atol=2)


def test_the_only_results_of_a_reference_are_taken(cells):
    old, new = cells[:200].copy(), cells[200:].copy()
    sfa.consensus(old, 3, n_starts=3, random_state=0, use_highly_variable=False)
    sfa.map_to(new, old)
    sfa.map_to(new, old, key="nmf_consensus", key_added="named")
    np.testing.assert_array_equal(new.obsm["X_nmf"], new.obsm["X_named"])
    assert sfa.usages_to_obs(old) == [f"nmf_consensus{number}" for number in range(3)]
    refused("has no 'a', only", sfa.map_to, new, old, key="a")


def test_the_order_of_genes_does_not_matter(pair):
    old, new = pair
    other = new[:, np.random.default_rng(0).permutation(new.n_vars)].copy()
    sfa.map_to(new, old)
    sfa.map_to(other, old)
    np.testing.assert_allclose(other.obsm["X_nmf"], new.obsm["X_nmf"], rtol=1e-3, atol=1e-2)


def test_missing_genes_are_named(pair):
    old, new = pair
    used = old.var_names[old.var["highly_variable"]]
    part = new[:, ~new.var_names.isin(used[:2])].copy()
    with pytest.warns(UserWarning, match=f"lacks 2 of the 60 genes .*'{used[0]}', '{used[1]}'"):
        sfa.map_to(part, old)
    sfa.map_to(new, old)
    near = np.corrcoef(part.obsm["X_nmf"].ravel(), new.obsm["X_nmf"].ravel())[0, 1]
    assert near > 0.95
    new.var_names = [name.upper() for name in new.var_names]
    refused("none of the 60 genes of the reference", sfa.map_to, new, old)


def test_tables_and_consensus(pair):
    old, new = pair
    used = old.var["highly_variable"].to_numpy()
    table = pd.DataFrame(old.varm["nmf"].T, columns=old.var_names, index=list("abcd"))
    sfa.map_to(new, table, scale="own", key_added="table")
    assert new.uns["table"]["names"].tolist() == list("abcd")
    assert new.uns["table"]["params"]["loss"] == "frobenius"
    X = new.X.toarray()[:, used]
    X = (X / np.where((X > 0).any(axis=0), X.std(axis=0, ddof=1), 1)).astype(np.float32)
    expected = sf.represent(X, old.varm["nmf"][used].T)
    np.testing.assert_allclose(new.obsm["X_table"], expected, rtol=1e-3, atol=1e-2)
    found = sfa.consensus(old, 3, n_starts=4, key_added="stable")
    sfa.map_to(new, old, key="stable", key_added="first")
    sfa.map_to(new, found, genes=old.var_names[used], scale="none", key_added="second")
    assert new.obsm["X_second"].shape == new.obsm["X_first"].shape == (100, 3)
    refused("give the names of its features as genes", sfa.map_to, new, found)


def test_profiles_of_batches_take_part(cells):
    given = {"use_highly_variable": False, "loss": "kullback-leibler", "tol": 1e-6}
    sfa.nmf(cells, 4, batch_key="batch", **given)
    with_profiles = sfa.map_to(cells, cells, key_added="new", copy=True).obsm["X_new"]
    del cells.uns["nmf"]["batches"]
    without = sfa.map_to(cells, cells, key_added="new", copy=True).obsm["X_new"]
    assert with_profiles.shape == without.shape == (cells.n_obs, 4)
    assert with_profiles.sum() < without.sum()


def test_refused(pair):
    old, new = pair
    refused("scale must be one of 'reference', 'own', 'none'", sfa.map_to, new, old, scale="other")
    refused(r"reference\.varm has no 'none', only \['nmf'\]", sfa.map_to, new, old, key="none")
    refused("reference must be an AnnData", sfa.map_to, new, old.varm["nmf"], error=TypeError)
    refused("programs of its own cells; give another key_added", sfa.map_to, old, old)
    table = pd.DataFrame(old.varm["nmf"].T, columns=["gene1"] * old.n_vars)
    refused("genes with the same name", sfa.map_to, new, table)
    table = pd.DataFrame(-old.varm["nmf"].T, columns=old.var_names)
    refused("programs of reference", sfa.map_to, new, table)
    table = pd.DataFrame(old.varm["nmf"].T, columns=old.var_names)
    refused("all zero", sfa.map_to, new, 0 * table)
    refused("programs with the same name", sfa.map_to, new, table.set_axis([1, "1", 2, 3]))
    assert not new.obsm.keys()
