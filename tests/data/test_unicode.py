"""Labels, seeds, names and texts that are equal in the form NFC of Unicode are the same."""

import unicodedata
from functools import partial

import numpy as np
import pytest
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import estimators

COMPOSED, DECOMPOSED = (partial(unicodedata.normalize, form) for form in ("NFC", "NFD"))
CAFE, NAIVE = "caf\u00e9", "na\u00efve"
GIVEN = [DECOMPOSED(CAFE), COMPOSED(NAIVE)]  # how each is written first
TRUTH = [CAFE, NAIVE] * 20
MIXED = [GIVEN[k] if k < 2 else (COMPOSED, DECOMPOSED)[k % 3 > 0](TRUTH[k]) for k in range(40)]
RNG = np.random.default_rng(0)
X = RNG.random((40, 6)) + 4 * np.eye(6)[np.arange(40) % 2]
FEW = {"max_iter": 5, "tol": 0, "random_state": 0}
MODELS = {
    "FewLabelsClassifier": {},
    "SSNMFClassifier": {"n_components": 2, "supervision_weight": 1.0},
    "TopicSupervisedNMF": {},
    "ConstrainedNMF": {"n_components": 2},
    "MarginNMF": {"n_components": 2},
    "SupervisedBayesianNMF": {"n_components": 2},
    "SeededTopics": {"seeds": dict(zip(GIVEN, [[0], [1]], strict=True))},
}
FORMS = {"list": list, "text": np.array, "objects": partial(np.array, dtype=object)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_one_class_named_as_given_first(name, form, tmp_path):
    labels = FORMS[form](MIXED[:4] + [""] * 36)
    model = getattr(estimators, name)(**MODELS[name], unlabeled="", **FEW).fit(X, labels)
    assert sorted(model.classes_.tolist()) == sorted(GIVEN)
    right = [COMPOSED(guess) == truth for guess, truth in zip(model.predict(X), TRUTH, strict=True)]
    sf.save(model, tmp_path / "model.npz")
    for one in (model, sf.load(tmp_path / "model.npz")):
        assert sorted(one.classes_.tolist()) == sorted(GIVEN)
        for write in (COMPOSED, DECOMPOSED):
            y = FORMS[form](list(map(write, TRUTH)))
            assert one.score(X, y) == pytest.approx(np.mean(right))
            assert sf.metrics.labeled_scorer("accuracy")(one, X, y) == pytest.approx(np.mean(right))
    unlabeled = ["other" if k % 5 == 0 else one for k, one in enumerate(MIXED)]
    if name in ("SSNMFClassifier", "ConstrainedNMF"):
        marked = getattr(estimators, name)(**MODELS[name], **FEW, unlabeled=COMPOSED(CAFE))
        assert marked.fit(X, unlabeled).classes_.tolist() == [GIVEN[1], "other"]


def test_metrics():
    S = RNG.random((40, 3))
    for measure in (sf.metrics.jaccard_similarity, sf.metrics.clustering_score):
        one, other = measure(S, MIXED), measure(S, TRUTH)
        np.testing.assert_array_equal(getattr(one, "score", one), getattr(other, "score", other))
    tokens = [[DECOMPOSED(CAFE), "tea"], [CAFE, "tea", NAIVE], [NAIVE]]
    scores = [
        sf.metrics.topic_coherence(texts=tokens, terms=[[write(CAFE), "tea"]]).score
        for write in (COMPOSED, DECOMPOSED)
    ]
    assert scores == [1.0, 1.0]
    with pytest.raises(ValueError, match="two or more different terms"):
        sf.metrics.topic_coherence(texts=tokens, terms=[[CAFE, DECOMPOSED(CAFE)]])


def test_several_labels():
    y = [[DECOMPOSED(CAFE), CAFE], [NAIVE], [CAFE, DECOMPOSED(NAIVE)], []] * 10
    for names in (None, [NAIVE, CAFE]):
        model = sf.TopicSupervisedNMF(topic_names=names, **FEW).fit(X, y)
        wanted = names or [DECOMPOSED(CAFE), NAIVE]
        assert model.topic_names_.tolist() == wanted
        scores = [model.score(X, [list(map(w, one)) for one in y]) for w in (COMPOSED, DECOMPOSED)]
        assert scores[0] == scores[1]
    with pytest.raises(ValueError, match="topic_names holds 'caf\u00e9' twice"):
        sf.TopicSupervisedNMF(topic_names=[CAFE, DECOMPOSED(CAFE)]).fit(X, y)


def test_levels():
    y = ["e\u0301/x", "\u00e9/y", "\u00fc", "u\u0308"] + [None] * 36
    model = sf.HierarchicalClassifier(sf.FewLabelsClassifier(**FEW)).fit(X, y)
    assert [len(level) for level in model.levels_] == [2, 3]
    for level in (0, 1):
        forms = [list(map(write, y[:4])) for write in (COMPOSED, DECOMPOSED)]
        assert len({model.score(X[:4], form, level=level) for form in forms}) == 1
    parents = {"e\u03011": "\u00e9", "y": "e\u0301"}
    y[:4] = ["\u00e91", "y", "z", "z"]
    model = sf.HierarchicalClassifier(sf.FewLabelsClassifier(**FEW), parents=parents).fit(X, y)
    assert [len(level) for level in model.levels_] == [2, 3]


def test_classes_and_weights_of_classes():
    model = sf.SSNMFClassifier(2, readout="joint", supervision_weight=1.0, random_state=0)
    model.partial_fit(X, MIXED, classes=[CAFE, NAIVE, DECOMPOSED(CAFE)])
    model.partial_fit(X, MIXED, classes=[DECOMPOSED(NAIVE), CAFE])
    assert model.classes_.tolist() == [CAFE, NAIVE]
    weights = [{write(CAFE): 3.0} for write in (COMPOSED, DECOMPOSED)]
    fits = [sf.FewLabelsClassifier(class_weight=w, **FEW) for w in weights]
    one, other = (model.fit(X, MIXED).predict_proba(X) for model in fits)
    np.testing.assert_array_equal(one, other)


def test_seeds():
    names = [CAFE, DECOMPOSED(NAIVE), *"abcd"]
    given = {CAFE: [DECOMPOSED(CAFE)], "b": {NAIVE: 1.0}}
    model = sf.SeededTopics(given, feature_names=names, forbidden={DECOMPOSED(CAFE): ["a"]}, **FEW)
    found = model.fit(X).seed_weights_.toarray()
    np.testing.assert_array_equal(found.argmax(axis=1), [0, 1])
    assert model.components_[0, 2] == 0
    both = {"a": [CAFE, DECOMPOSED(CAFE)], "b": ["a"]}
    model = sf.SeededTopics(both, feature_names=[CAFE, DECOMPOSED(CAFE), *"abcd"], **FEW).fit(X)
    np.testing.assert_array_equal(model.seed_weights_.toarray()[0, :2], [0.5, 0.5])
    for bad, message in (
        ({CAFE: [0], DECOMPOSED(CAFE): [1]}, "seeds has the topic .* twice"),
        ({"a": {CAFE: 1, DECOMPOSED(CAFE): 2}, "b": ["a"]}, "the strengths 1 and 2"),
    ):
        refused(message, sf.SeededTopics(bad, feature_names=names).fit, X)


def test_names_of_topics():
    model = sf.TopicSupervisedNMF(**FEW).fit(X, MIXED)
    assert len(sf.trees.merge_topics(model, [CAFE, DECOMPOSED(NAIVE)]).topic_names_) == 1
