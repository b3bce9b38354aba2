"""Recipes: the solver inside of other packages, where these are installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ssnmf_fast as sf

RECIPES = Path(__file__).resolve().parents[1] / "examples" / "recipes"

# Warnings here are those of the other packages, whose users see them anyway.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _without_folders_of_tests(monkeypatch):
    """Some packages take a folder `dask` on the path for that package."""
    here = Path(__file__).parent
    paths = [path for path in sys.path if not Path(path).is_relative_to(here)]
    monkeypatch.setattr(sys, "path", paths)


def recipe(name: str, package: str) -> ModuleType:
    pytest.importorskip(package, reason="needs examples/recipes/requirements.txt")
    path = RECIPES / f"{name}.py"
    if not path.exists():
        pytest.skip("away from the source tree")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_cnmf_finds_the_programs(loss, tmp_path):
    consensus = recipe("consensus", "cnmf")
    counts, spectra = consensus.draw_counts(cells=200, genes=300, programs=4)
    found, _ = consensus.consensus(
        consensus.FastCNMF, counts, tmp_path, programs=4, runs=10, loss=loss, genes=150
    )
    assert found.shape[1] == 4
    assert consensus.agreement(found, spectra).min() > 0.95
    wrong = np.random.default_rng(0).random(spectra.shape)
    assert consensus.agreement(found, wrong).max() < 0.9


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_penalties_of_cnmf_are_those_of_scikit_learn(loss, tmp_path):
    consensus, squares = recipe("consensus", "cnmf"), loss == "frobenius"
    X = np.random.default_rng(0).random((20, 12))
    penalized = {"alpha_W": 0.02, "alpha_H": 0.03, "l1_ratio": 0.0}
    options = {
        "beta_loss": loss, "n_components": 3, "init": "random", "random_state": 0,
        "solver": "cd" if squares else "mu", "tol": 1e-9 * squares, "max_iter": 5000,
    }  # fmt: skip
    fast = consensus.FastCNMF(output_dir=str(tmp_path), name="penalties")
    slow = consensus.cNMF(output_dir=str(tmp_path), name="penalties")
    A, _ = slow._nmf(X, {**options, **penalized})
    given = {**options, **penalized, "H": A, "update_H": False}
    found, expected = (model._nmf(X, given)[1] for model in (fast, slow))
    np.testing.assert_allclose(found, expected, atol=0.02)
    without = fast._nmf(X, {**given, "alpha_W": 0.0})[1]
    assert np.abs(without - expected).max() > 0.05

    def size(**alphas):
        return sum(factor.sum() for factor in fast._nmf(X, {**options, **penalized, **alphas}))

    assert size() < size(alpha_W=0.0, alpha_H=0.0)


def test_the_steps_of_a_consensus_are_those_of_cnmf(tmp_path):
    consensus = recipe("consensus", "cnmf")
    from cnmf.cnmf import efficient_ols_all_cols, save_df_to_npz

    counts, _ = consensus.draw_counts(cells=200, genes=300, programs=4)
    found = sf.consensus(counts.X, 4, n_starts=20, distance_threshold=0.4, random_state=0)
    scores = efficient_ols_all_cols(found.usage, counts.X, normalize_y=True)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6, atol=1e-9)
    path = tmp_path / "counts.h5ad"
    counts.write(path)
    model = consensus.cNMF(output_dir=str(tmp_path), name="steps")
    model.prepare(str(path), [4], n_iter=20, seed=0, num_highvar_genes=300)
    save_df_to_npz(
        consensus.pd.DataFrame(found.spectra, columns=counts.var_names),
        model.paths["merged_spectra"] % 4,
    )
    model.consensus(4, density_threshold=0.4, show_clustering=False, build_ref=False)
    with np.load(model.paths["local_density_cache"] % 4, allow_pickle=True) as archive:
        np.testing.assert_allclose(archive["data"].ravel(), found.neighbor_distances, atol=1e-6)
    with np.load(model.paths["consensus_spectra"] % (4, "0_4"), allow_pickle=True) as archive:
        medians = archive["data"]
    near = consensus.normalize(medians) @ consensus.normalize(found.components).T
    np.testing.assert_allclose(near.max(axis=0), 1, atol=1e-6)


def test_key_nmf_finds_the_topics():
    key_topics = recipe("key_topics", "turftopic")
    texts, labels = key_topics.draw_texts(120)
    options = {
        "encoder": key_topics.RandomEncoder(),
        "vectorizer": key_topics.CountVectorizer(),
        "random_state": 0,
    }
    model = key_topics.fast_key_nmf(4, **options).fit(texts)
    topics = model.transform(texts)
    assert key_topics.purity(topics, labels) > 0.95
    assert key_topics.purity(topics, np.random.default_rng(0).permutation(labels)) < 0.6
    for topic, terms in model.get_topics(top_k=3):
        first = labels[topics.argmax(axis=1) == topic][0]
        assert all(term.startswith(f"topic{first}word") for term, _ in terms)
    X = model.vectorize(texts)
    expected = sf.NMF(4, random_state=0).fit(X)
    assert np.array_equal(model.components_, expected.components_)
    np.testing.assert_allclose(topics, expected.transform(X))


@pytest.mark.parametrize("dense", [False, True])
def test_genes_and_scales_are_those_of_cnmf(dense, tmp_path):
    consensus = recipe("consensus", "cnmf")
    import ssnmf_fast.anndata as sfa

    counts, _ = consensus.draw_counts(cells=200, genes=300, programs=4)
    if dense:
        counts.X = counts.X.toarray()
    counts.write(tmp_path / "counts.h5ad")
    theirs = consensus.cNMF(output_dir=str(tmp_path), name="prepared")
    theirs.prepare(str(tmp_path / "counts.h5ad"), [4], n_iter=1, num_highvar_genes=100)
    expected = consensus.anndata.read_h5ad(theirs.paths["normalized_counts"])
    sfa.prepare(counts, 100)
    chosen = counts.var["highly_variable"].to_numpy()
    assert counts.var_names[chosen].tolist() == expected.var_names.tolist()
    scaled = counts.to_df().to_numpy()[:, chosen] / counts.var["nmf_scale"].to_numpy()[chosen]
    np.testing.assert_allclose(scaled, expected.to_df().to_numpy(), rtol=1e-10)
