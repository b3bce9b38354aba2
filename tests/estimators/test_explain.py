"""Explanations: what they say adds up to the predictions, and names what speaks for a class."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import small_digits
from helpers.each import each
from helpers.guided_models import QUICK, guided_models
from helpers.refused import refused
from scipy.special import logit

import ssnmf_fast as sf

X, Y = small_digits()
HOLES = np.random.default_rng(0).random(X.shape) < 0.2
NAMES = ["chosen", "several", "refit", "joint", "topics", "lists", "constrained", "margin"]


def counts(n_classes, seed=0, n=90, m=60):
    """Return counts of words of which each class has some of its own, and labels of two in five."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rates = np.full((n_classes, m), 0.05)
    for c in range(n_classes):
        rates[c, 8 * c : 8 * c + 8] = 0.8
    known = np.arange(n) % 5 < 2
    return sp.csr_array(rng.poisson(rates[y]).astype(float)), np.where(known, y, -1)


@pytest.fixture(scope="module")
def models():
    """Fitted models of every kind."""
    fitted = {name: model.fit(X, y) for name, (model, y) in guided_models(X, Y).items()}
    del fitted["regressor"]
    return fitted


@pytest.fixture(scope="module", params=[2, 3])
def of_words(request):
    """A classifier of counts of words, and its samples."""
    words, y = counts(request.param)
    return sf.FewLabelsClassifier(**QUICK).fit(words, y), words


def scores_of(model, samples, given):
    """Return what the contributions have to sum to."""
    decision = model.decision_function(samples, **given)
    if model.multilabel_:
        if getattr(model, "readout", "") in ("refit", "joint"):
            return decision + 0.5
        return logit(model.predict_proba(samples, **given))
    if decision.ndim == 1:
        return np.column_stack([-decision, decision]) / 2
    if getattr(model, "readout", "") in ("refit", "joint"):
        decision = decision / decision.sum(axis=1, keepdims=True)
    return decision - decision.mean(axis=1, keepdims=True)


def assert_adds_up(model, samples, tolerance=1e-10, **given):
    """Check that the parts sum to the scores of a model; return the explanation."""
    found = model.explain(samples, **given)
    sums = found.intercepts + found.neighbors
    for k, name in enumerate(model.classes_.tolist()):
        sums[:, k] += found.topics(name).sum(axis=1)
        sums[:, k] += np.asarray(found.features(name).sum(axis=1)).ravel()
    expected = scores_of(model, samples, given)
    limits = {"rtol": tolerance, "atol": tolerance * np.abs(expected).max()}
    np.testing.assert_allclose(sums, expected, **limits)
    np.testing.assert_allclose(found.totals, expected, **limits)
    return found


@pytest.mark.slow
@each("name", [*NAMES, "bayesian"])
def test_contributions_add_up_to_the_decision(name, models):
    model = models[name]
    found = assert_adds_up(model, X)
    assert found.topics(model.classes_[0]).shape == (len(X), len(model.components_))
    assert found.neighbors.any() == (name == "chosen")
    if not model.multilabel_:
        assert np.array_equal(found.predicted, model.predict(X))
        np.testing.assert_allclose(found.totals.sum(axis=1), 0, atol=1e-10)


def test_of_sparse_data_they_are_sparse(of_words):
    model, words = of_words
    found = assert_adds_up(model, words)
    for name in model.classes_.tolist():
        features = found.features(name)
        assert features.format == "csr"
        assert features.nnz <= words.nnz
        np.testing.assert_allclose(
            features.toarray(), model.explain(words.toarray()).features(name), atol=1e-10
        )


def test_one_class_of_a_sample_knows_nothing_of_the_others(of_words):
    """Parts of a sample do not depend on which samples are explained with it."""
    model, words = of_words
    every, some = model.explain(words), model.explain(words[5:8])
    np.testing.assert_allclose(some.totals, every.totals[5:8], atol=1e-6)
    assert [r.class_name for r in map(some.top, range(3))] == every.predicted[5:8].tolist()


@pytest.mark.parametrize("name", ["chosen", "several", "joint", "topics"])
def test_missing_and_weighted_entries(name, models):
    model = models[name]
    assert_adds_up(model, np.where(HOLES, np.nan, X))
    for form in (X, sp.csr_array(X)):
        for holes in (sp.csr_array(HOLES), (~HOLES).astype(float)):
            weights = sf.weights.missing(holes) if sp.issparse(holes) else holes
            assert_adds_up(model, form, X_weights=weights)


def test_models_that_see_topics_only():
    weights = sf.weights.outer(columns=np.linspace(1, 2, X.shape[1]))
    model = sf.papers.ConstrainedNMF(n_components=4, **QUICK).fit(X, Y, X_weights=weights)
    found = assert_adds_up(model, X, X_weights=weights)
    assert found.features(0).nnz == 0
    assert {kind for kind, *_ in found.top(0).parts} <= {"intercept", "topic", "rest"}
    assert found.leading_terms() == [()] * len(X)


@pytest.mark.parametrize("name", ["chosen", "several", "refit", "margin"])
def test_float32(name, models):
    assert_adds_up(models[name], X.astype(np.float32), 1e-4)


@pytest.mark.parametrize("name", ["chosen", "several", "lists"])
def test_a_loaded_model_explains_alike(name, models, tmp_path):
    model = models[name]
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    found, before = assert_adds_up(loaded, X), model.explain(X)
    assert np.array_equal(found.totals, before.totals)
    assert found.top(3) == before.top(3) == pickle.loads(pickle.dumps(before)).top(3)


def test_data_on_disk(of_words, tmp_path):
    model, words = of_words
    sp.save_npz(tmp_path / "X.npz", words, compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=4000)
    assert len(list(file.blocks())) > 1
    found = assert_adds_up(model, file)
    np.testing.assert_allclose(found.totals, model.explain(words).totals, atol=1e-5)


@each("name", NAMES)
def test_empty_samples_get_the_frequencies_of_the_classes(name, models):
    model, samples = models[name], X[:3].copy()
    samples[1] = 0
    for form in (samples, sp.csr_array(samples)):
        found = assert_adds_up(model, form)
        assert np.array_equal(found.totals[1], found.intercepts[1])
        kinds = [kind for kind, *_ in found.top(1).parts]
        assert set(kinds) <= {"intercept"}
        for label in model.classes_.tolist():
            assert not found.topics(label)[1].any()
            assert not found.features(label)[[1]].sum()
        assert np.array_equal(found.intercepts[0], found.intercepts[2])


def test_the_terms_of_a_class_speak_for_it(of_words):
    model, words = of_words
    found = model.explain(words)
    own = []
    for i in range(words.shape[0]):
        reasons = found.top(i, n_terms=4)
        best = next(name for kind, name, _ in reasons.parts if kind == "term")
        assert found.leading_terms(1)[i] == (best,)
        own.append(int(best[1:]) // 8 == reasons.class_name)
    assert np.mean(own) > 0.9


@each("name", ["chosen", "several", "joint", "topics"])
@each("n_terms", [1, 3, 100])
def test_a_table_sums_to_the_total(name, n_terms, models):
    model = models[name]
    found = model.explain(X)
    for label in model.classes_.tolist()[:3]:
        reasons = found.top(7, label, n_terms)
        k = model.classes_.tolist().index(label)
        assert reasons.class_name == label
        values = [value for *_, value in reasons.parts]
        assert values == sorted(values, reverse=True)
        assert sum(values) == pytest.approx(found.totals[7, k], abs=1e-9)
        kinds = [kind for kind, *_ in reasons.parts]
        assert max(kinds.count("term"), kinds.count("topic")) <= n_terms
        if n_terms == 100:
            assert "rest" not in kinds


def test_how_reasons_look():
    pandas = pytest.importorskip("pandas")
    reasons = sf.results.SampleContributions(
        2, "sport", 0.75, (("term", "goal", 1.0), ("intercept", "", -0.25))
    )
    assert repr(reasons).splitlines() == [
        "sample 2, sport: +0.75",
        "        +1  term goal",
        "     -0.25  intercept",
    ]
    assert reasons.to_rows()[0] == {
        "sample": 2,
        "class": "sport",
        "kind": "term",
        "name": "goal",
        "contribution": 1.0,
    }
    assert isinstance(reasons.to_frame(), pandas.DataFrame)
    assert reasons.to_frame()["contribution"].tolist() == [1.0, -0.25]


def test_names_of_features_and_topics(of_words):
    model, words = of_words
    names = [f"word {j}" for j in range(words.shape[1])]
    found = model.explain(words)
    reasons, plain = found.top(0, feature_names=names), found.top(0)
    renamed = [name.replace("x", "word ") for _, name, _ in plain.parts]
    assert [name for _, name, _ in reasons.parts] == renamed
    topic = next(name for kind, name, _ in reasons.parts if kind == "topic")
    number, terms = topic.split(": ")
    assert tuple(terms.split(", ")) == model.topics(names, 3)[int(number)].terms
    assert repr(found).startswith(f"Explanation of {words.shape[0]} samples for")


def test_named_topics_have_their_names():
    words, y = counts(3)
    names = np.array([None, "a", "b", "c"], dtype=object)
    model = sf.TopicSupervisedNMF(**QUICK).fit(words, names[y + 1])
    named = [name for kind, name, _ in model.explain(words).top(0).parts if kind == "topic"]
    known = {f"{number} ({name})" for number, name in enumerate(model.topic_names_)}
    assert {name.split(":")[0] for name in named} <= known


def test_topics_of_the_committee_have_the_shares_of_classes(of_words):
    model, _ = of_words
    shares = model.class_shares_
    assert shares.shape == (len(model.components_), len(model.classes_))
    for topic in model.topics():
        row = shares[topic.topic] / shares[topic.topic].sum()
        assert dict(topic.shares) == pytest.approx(
            dict(zip(model.classes_.tolist(), row, strict=True))
        )


@each(
    ("given", "error", "message"),
    [
        ({"sample": -1}, ValueError, "sample must be at least 0"),
        ({"sample": 90}, ValueError, "sample must be at most 89"),
        ({"sample": 1.5}, TypeError, "sample must be an integer"),
        ({"sample": 0, "class_name": "pets"}, ValueError, "Unknown class_name 'pets'"),
        ({"sample": 0, "n_terms": 0}, ValueError, "n_terms must be at least 1"),
        ({"sample": 0, "feature_names": ["a"]}, ValueError, "feature_names holds 1 names"),
    ],
)
def test_bad_questions_are_refused(given, error, message, of_words):
    model, words = of_words
    refused(message, model.explain(words).top, **given, error=error)


def test_bad_data_are_refused(of_words):
    model, words = of_words
    refused("features", model.explain, words[:, 1:])
    refused("n_terms must be at least 1", model.explain(words).leading_terms, 0)
    with pytest.raises(AttributeError, match="has no attribute 'explain'"):
        sf.papers.MarginNMF(predicts=False, **QUICK).explain  # noqa: B018
