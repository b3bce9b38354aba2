"""What many starts agree on: planted components, the recipe step by step, bad input."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from consensus_data import cosines, found, planted, same
from helpers.each import each
from helpers.refused import refused
from sklearn.metrics import silhouette_score

import ssnmf_fast as sf

LOSSES = ("frobenius", "kullback-leibler")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_planted_components_are_found_and_are_stable(loss, form):
    X, components = planted()
    consensus = found(form(X), loss=loss)
    alike = cosines(consensus.components, components)
    assert alike.max(axis=0).min() > 0.99
    assert set(alike.argmax(axis=0)) == set(range(4))
    assert consensus.stability.min() > 0.9
    assert consensus.cophenetic > 0.95
    assert consensus.kept == 1
    np.testing.assert_allclose(consensus.components.sum(axis=1), 1)
    np.testing.assert_allclose(consensus.transform(X), consensus.usage, rtol=1e-3, atol=1e-2)
    assert np.all(np.diff(consensus.shares.sum(axis=0)) <= 0)


def test_the_recipe_step_by_step():
    X, _ = planted(n=50, seed=1)
    given = {"tol": 1e-5, "max_iter": 1000, "init": "random"}
    consensus = found(X, 6, n_starts=10, distance_threshold=0.3, dtype="float64")
    seeds = np.random.default_rng(0)
    seeds.integers(2**31 - 1)
    seeds.choice(50, 50, replace=False, shuffle=False)
    fits = [
        sf.factorize(X, n_components=6, random_state=seed, **given)
        for seed in seeds.integers(2**31 - 1, size=10).tolist()
    ]
    spectra = np.vstack([fit.A / np.linalg.norm(fit.A, axis=1, keepdims=True) for fit in fits])
    np.testing.assert_allclose(consensus.spectra, spectra)
    distances = np.linalg.norm(spectra[:, None] - spectra, axis=2)
    density = np.sort(distances, axis=1)[:, 1:4].mean(axis=1)
    np.testing.assert_allclose(consensus.neighbor_distances, density, atol=1e-6)
    kept = density < 0.3
    assert 6 <= kept.sum() < 60
    assert np.array_equal(consensus.clusters >= 0, kept)
    for number, component in enumerate(consensus.components):
        median = np.median(spectra[consensus.clusters == number], axis=0)
        np.testing.assert_allclose(component, median / median.sum())
    np.testing.assert_allclose(consensus.usage, sf.represent(X, consensus.components), rtol=1e-3)
    score = silhouette_score(spectra[kept], consensus.clusters[kept])
    sizes = np.bincount(consensus.clusters[kept])
    assert np.average(consensus.stability, weights=sizes) == pytest.approx(score)
    assert consensus.error == pytest.approx(
        np.sum((X - consensus.usage @ consensus.components) ** 2)
    )
    main = np.array([(fit.S * fit.A.sum(axis=1)).argmax(axis=1) for fit in fits])
    assert np.array_equal(consensus.assignments, main)
    together = np.mean([row[:, None] == row for row in main], axis=0)
    np.testing.assert_allclose(consensus.consensus_matrix(), together)


def test_scores_are_regressions_of_standardized_features():
    X, components = planted()
    consensus = found(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = np.linalg.lstsq(consensus.usage, Z, rcond=None)[0]
    np.testing.assert_allclose(consensus.scores, expected)
    np.testing.assert_allclose(found(sp.csr_array(X)).scores, expected, rtol=1e-3, atol=1e-6)
    best = [topic.terms[0] for topic in consensus.topics()]
    assert len(set(best)) == len(components)


def test_scores_of_constant_features_are_zero():
    X, _ = planted()
    X[:, 5] = 3
    assert not found(X).scores[:, 5].any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.compiled("the reference has one thread")
def test_threads_and_jobs_do_not_change_a_bit(form):
    X, _ = planted()
    first = found(form(X), n_threads=1)
    for n_jobs, n_threads in itertools.product([1, 3], [2, 8]):
        assert same(found(form(X), n_jobs=n_jobs, n_threads=n_threads), first)


def test_float32_stays():
    consensus = found(planted(dtype=np.float32)[0])
    assert consensus.components.dtype == consensus.usage.dtype == np.float32
    assert consensus.spectra.dtype == np.float32


def test_starts_in_float32_find_what_those_in_float64_find():
    X, _ = planted()
    fast, exact = found(X), found(X, dtype="float64")
    assert same(exact, found(X, dtype=None))
    assert fast.spectra.dtype == np.float32
    assert fast.components.dtype == fast.usage.dtype == np.float64
    np.testing.assert_allclose(fast.components, exact.components, atol=1e-4)
    np.testing.assert_allclose(fast.silhouette, exact.silhouette, atol=1e-3)
    refused("dtype must be", found, X, dtype="float16")


def test_missing_entries_and_weights_are_heeded():
    X, components = planted()
    seen = np.random.default_rng(3).random(X.shape) > 0.2
    missing = found(np.where(seen, X, np.nan))
    weighted = found(np.where(seen, X, 7), X_weights=seen.astype(float))
    assert cosines(missing.components, components).max(axis=0).min() > 0.98
    assert cosines(weighted.components, components).max(axis=0).min() > 0.98
    np.testing.assert_allclose(missing.error, weighted.error, rtol=0.02)
    assert np.isfinite(missing.scores).all()


@pytest.mark.slow
def test_data_on_disk_give_the_same(tmp_path):
    X, _ = planted()
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(X), compressed=False)
    from_disk = found(sf.io.open_csr(tmp_path / "X.npz", memory=15_000), n_starts=3, dtype=None)
    in_memory = found(sp.csr_array(X), n_starts=3, dtype=None)
    np.testing.assert_allclose(from_disk.components, in_memory.components, atol=1e-6)
    np.testing.assert_allclose(from_disk.scores, in_memory.scores, rtol=1e-4, atol=1e-8)


def test_more_starts_begin_with_the_same():
    X, _ = planted(n=30)
    few, many = found(X, n_starts=3), found(X, n_starts=5)
    assert np.array_equal(many.spectra[: len(few.spectra)], few.spectra)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_starts_of_counts_that_are_drawn_again(form, tmp_path):
    """Each start has its own counts, with the entries of X as means; the rest is as without."""
    X, components = planted()
    settings = {"loss": "kullback-leibler", "max_iter": 200, "resample": "poisson"}
    one = found(form(X), n_jobs=1, **settings)
    assert cosines(components, one.components).max(axis=1).min() > 0.98
    assert same(one, found(form(X), n_jobs=3, n_threads=4, folder=tmp_path, **settings))
    assert same(one, found(form(X), folder=tmp_path, **settings))
    assert not same(one, found(form(X), loss="kullback-leibler", max_iter=200))
    with pytest.raises(ValueError, match=r"starts of other data or settings.*resample"):
        found(form(X), loss="kullback-leibler", max_iter=200, folder=tmp_path)


def test_counts_are_drawn_from_their_means():
    X = np.full((200, 60), 3.0)
    X[0, 0], X[1] = np.nan, 0
    task = sf.selection._consensus.StartTask(X, np.arange(3), {}, "poisson")
    drawn = task.redrawn(5).matrix
    np.testing.assert_array_equal(drawn, task.redrawn(5).matrix)
    assert not np.array_equal(drawn, task.redrawn(6).matrix, equal_nan=True)
    assert np.isnan(drawn[0, 0])
    assert not drawn[1].any()
    assert abs(np.nanmean(drawn[2:]) - 3) < 0.1
    assert abs(np.nanvar(drawn[2:]) - 3) < 0.2


def test_one_component_and_one_start_have_no_stability():
    X, _ = planted(n=30)
    for consensus in (found(X, 1, n_starts=3), found(X, 3, n_starts=1)):
        assert np.isnan(consensus.stability).all()
        assert np.isnan(consensus.silhouette)
        assert "stability not defined" in repr(consensus)
        assert consensus.components.shape == (len(consensus.stability), X.shape[1])


def test_starts_that_do_not_agree_are_refused():
    X = np.random.default_rng(0).random((30, 20))
    refused("below distance_threshold=0", found, X, 6, distance_threshold=0.01, tol=1e-3)
    assert found(X, 6, distance_threshold=2.0, tol=1e-3).kept == 1


def test_fewer_different_components_than_asked_for():
    X = np.arange(1.0, 9)[:, None]
    with pytest.warns(UserWarning, match="only 1 different components, fewer than n_components=3"):
        consensus = found(X, 3)
    assert consensus.components.shape == (1, 1)


def test_components_of_zeros_are_dropped():
    X = np.zeros((20, 10))
    refused("Only 0 of 24 components", found, X, 2)


def test_a_repr_says_how_stable():
    text = repr(found(planted()[0]))
    assert "4 components of 12 starts" in text
    assert "stability" in text
    assert "component" in text


@each(
    ("given", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"n_components": [3, 4]}, TypeError, "n_components must be an integer"),
        ({"n_starts": 0}, ValueError, "n_starts must be at least 1"),
        ({"neighborhood_fraction": 0}, ValueError, "neighborhood_fraction must be above 0"),
        ({"neighborhood_fraction": 30}, ValueError, "neighborhood_fraction must be above 0"),
        ({"distance_threshold": -1}, ValueError, "distance_threshold must be finite"),
        ({"init": "nndsvda"}, ValueError, "init must be one of 'random'"),
        ({"loss": "hinge"}, ValueError, "loss must be"),
        ({"verbose": "yes"}, TypeError, "verbose must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be at least 1"),
        ({"resample": "bootstrap"}, ValueError, "resample must be one of 'poisson'"),
    ],
)
def test_bad_arguments_are_named(given, error, message):
    refused(message, found, np.ones((6, 5)), error=error, **given)


def test_only_counts_in_memory_are_drawn_again(tmp_path):
    X = np.ones((6, 5))
    refused("needs counts, but X has entries with fractions", found, X / 2, resample="poisson")
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
    on_disk = sf.io.open_csr(tmp_path / "X.npz")
    refused("in memory", found, on_disk, error=TypeError, resample="poisson")


def test_progress_counts_starts(capsys):
    found(planted(n=20)[0], n_starts=3, verbose=1)
    assert "consensus: start 3/3" in capsys.readouterr().err
