"""SeededTopics(membership="mixed"): samples that mix topics, and seeds that the data correct."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf

NAMES = ["growth", "stress", "light"]
OWN, SEEDS_EACH, WRONG_EACH = 12, 10, 2
QUICK = {"membership": "mixed", "random_state": 0, "n_threads": 1}


def cells(n=300, seed=0):
    """Return counts, five programs of which three are given, and lists: some right, some wrong."""
    rng = np.random.default_rng(seed)
    programs = np.full((5, 100), 0.2)
    for k in range(5):
        programs[k, OWN * k : OWN * (k + 1)] += rng.gamma(2, 4, OWN)
    programs /= programs.sum(axis=1, keepdims=True)
    X = rng.poisson(400 * rng.dirichlet(np.full(5, 0.4), n) @ programs).astype(np.float64)
    right = [OWN * k + np.arange(SEEDS_EACH - WRONG_EACH) for k in range(3)]
    # Wrong ones lead to the other two programs.
    wrong = [OWN * (3 + k % 2) + 2 * k + np.arange(WRONG_EACH) for k in range(3)]
    return X, programs, right, wrong


def seeds_of(right, wrong):
    return {name: [*a, *b] for name, a, b in zip(NAMES, right, wrong, strict=True)}


def cosines(A, B):
    A, B = (F / np.linalg.norm(F, axis=1, keepdims=True) for F in (A, B))
    return A @ B.T


DATA = X, programs, right, wrong = cells()


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_wrong_seeds_are_corrected(container, loss):
    model = sf.SeededTopics(seeds_of(right, wrong), n_free_topics=2, loss=loss, **QUICK)
    A = model.fit(container(X)).components_
    alike = cosines(A, programs)
    assert np.diag(alike)[:3].min() > 0.95
    assert alike[3:, 3:].max(axis=1).min() > 0.95
    for k in range(3):
        assert A[k, wrong[k]].mean() < 0.2 * A[k, right[k]].mean()
    assert list(model.get_feature_names_out()) == [*NAMES, "free0", "free1"]
    falls = np.diff([value for _, value in model.objective_])
    assert (falls <= 1e-9 * model.objective_[0][1]).all()


def test_samples_of_one_topic_are_no_help_here():
    seeds = seeds_of(right, wrong)
    single = sf.SeededTopics(seeds, n_free_topics=2, **(QUICK | {"membership": "single"})).fit(X)
    mixed = sf.SeededTopics(seeds, n_free_topics=2, **QUICK).fit(X)
    worst = [np.diag(cosines(fit.components_, programs))[:3].min() for fit in (single, mixed)]
    assert worst[0] < 0.9 < worst[1]


def test_order_of_the_topics_is_that_of_the_seeds():
    turned = dict(reversed(seeds_of(right, wrong).items()))
    model = sf.SeededTopics(turned, n_free_topics=2, **QUICK).fit(X)
    assert list(model.topic_names_) == NAMES[::-1]
    assert np.diag(cosines(model.components_, programs[[2, 1, 0]])).min() > 0.95


def test_predictions_follow_the_shares():
    model = sf.SeededTopics(seeds_of(right, wrong), n_free_topics=2, **QUICK).fit(X)
    shares = model.topic_proportions(X)[:, :3]
    clear = shares.max(axis=1) > 0.7
    assert clear.sum() > 30
    expected = model.topic_names_[shares.argmax(axis=1)]
    assert np.mean(model.predict(X)[clear] == expected[clear]) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_labels_name_topics_too():
    usage = np.linalg.lstsq(programs.T, X.T, rcond=None)[0].T
    usage /= usage.sum(axis=1, keepdims=True)
    rows = np.argsort(-usage[:, 2])[:5]
    y = np.full(len(X), None, dtype=object)
    y[rows] = "light"
    seeds = seeds_of(right, wrong) | {"light": []}
    model = sf.SeededTopics(seeds, n_free_topics=2, **QUICK).fit(X, y)
    assert model.n_labeled_ == 5
    assert np.diag(cosines(model.components_, programs))[:3].min() > 0.95
    assert (model.representation_[rows][:, :2] == 0).all()


@pytest.mark.parametrize("free", [0, 2])
def test_forbidden_genes_have_no_weight(free):
    forbidden = {"growth": [99], "light": [98, 97]}
    seeds = seeds_of(right, wrong)
    model = sf.SeededTopics(seeds, n_free_topics=free, forbidden=forbidden, **QUICK).fit(X)
    assert (model.components_[[0, 2, 2], [99, 98, 97]] == 0).all()
    assert model.components_[1, [97, 98, 99]].all()


def test_scale_threads_and_precision():
    seeds = seeds_of(right, wrong)

    def fitted(Z, **more):
        return sf.SeededTopics(seeds, n_free_topics=2, **(QUICK | more)).fit(Z).components_

    A = fitted(X)
    assert np.array_equal(fitted(X, n_threads=2), A)
    assert fitted(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(cosines(fitted(X * 2.0**-40), A).diagonal(), 1)


def test_samples_without_counts_and_the_given_arrays():
    X, _, right, wrong = DATA
    X = np.vstack([X, np.zeros((2, X.shape[1]))])
    before = X.copy()
    model = sf.SeededTopics(seeds_of(right, wrong), n_free_topics=2, **QUICK).fit(X)
    assert np.array_equal(X, before)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.class_prior_.sum(), 1)


def test_saved_models_come_back(tmp_path):
    model = sf.SeededTopics(seeds_of(right, wrong), n_free_topics=1, **QUICK).fit(X)
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert loaded.membership == "mixed"
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_labels_of_samples_without_counts():
    X = DATA[0].copy()
    X[:4] = 0
    y = np.full(len(X), None, dtype=object)
    y[:4] = [*NAMES[:2]] * 2
    for Z in (X, np.zeros_like(X)):
        model = sf.SeededTopics({name: [] for name in NAMES[:2]}, tol=0, max_iter=5, **QUICK)
        model.fit(Z, y)
        assert np.isfinite(model.components_).all()
        np.testing.assert_allclose(model.class_prior_.sum(), 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"membership": "both"}, "membership must be"),
        ({"seeds": {"growth": [0], "stress": []}}, "No sample has a seed of the topic 'stress'"),
    ],
)
def test_bad_parameters(parameters, message):
    given = {"seeds": {"growth": [0], "stress": [1]}} | QUICK | parameters
    refused(message, sf.SeededTopics(**given).fit, DATA[0])
