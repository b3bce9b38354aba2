"""Probabilities of the readout, and what weights, thresholds and missing labels do to them."""

import numpy as np
import pytest
from helpers.data import digits
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import f1_score, get_scorer, roc_auc_score

import ssnmf_fast as sf
from ssnmf_fast import estimators

QUICK = {"random_state": 0, "max_iter": 30, "tol": 0, "n_threads": 1}


DIGITS = digits()


@pytest.fixture(scope="module")
def half():
    """Half of the images, and labels of 200 of them."""
    X, y = DIGITS[0][::2], DIGITS[1][::2]
    shown = np.random.default_rng(0).permutation(len(y))[:200]  # neighbors are of one hand
    return X, np.where(np.isin(np.arange(len(y)), shown), y, -1)


@pytest.fixture(scope="module")
def fitted(half):
    return sf.FewLabelsClassifier(**QUICK).fit(*half)


def calibration_error(chance, right, bins=10):
    """Return the mean distance of sureness and accuracy over bins of equal sureness."""
    sure = chance.max(axis=1)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    parts = [(place == b) for b in range(bins) if (place == b).any()]
    return sum(part.mean() * abs(sure[part].mean() - right[part].mean()) for part in parts)


def guided(name):
    """Return a model with a readout."""
    given = dict(QUICK)
    if name in ("SSNMFClassifier", "ConstrainedNMF", "MarginNMF", "SupervisedBayesianNMF"):
        given["n_components"] = 10
    if name == "SupervisedBayesianNMF":
        given["count_scale"] = 16  # of the pixels of digits
    return getattr(estimators, name)(**given)


NAMES = [
    "FewLabelsClassifier",
    "SSNMFClassifier",
    "TopicSupervisedNMF",
    "ConstrainedNMF",
    "MarginNMF",
    "SupervisedBayesianNMF",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_topics_say_which_classes_they_stand_for(name, half):
    model = guided(name).fit(*half)
    for topic in model.topics(n_terms=1):
        assert [label for label, _ in topic.shares] == list(range(10))
        assert sum(share for _, share in topic.shares) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_guided_model_predicts(name, half):
    X, y = DIGITS[0][1::2], DIGITS[1][1::2]
    model = guided(name).fit(*half)
    rows = np.vstack([X, 1e-30 * X[:1], 1e12 * X[:1], np.zeros((1, 64))])
    chance = model.predict_proba(rows)
    assert chance.shape == (len(rows), 10)
    assert ((chance > 0) & (chance < 1)).all()
    np.testing.assert_allclose(chance.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(rows), np.log(chance))
    assert np.array_equal(model.predict(rows), model.classes_[chance.argmax(axis=1)])
    decisions = model.decision_function(rows)
    assert np.array_equal(decisions.argmax(axis=1), chance.argmax(axis=1))
    assert model.score(X, y) == (model.predict(X) == y).mean() > 0.85
    of_labels = np.bincount(half[1][half[1] >= 0]) / 200
    atol = 0.01 if name == "FewLabelsClassifier" else 0  # which estimates the shares
    np.testing.assert_allclose(model.class_prior_, of_labels, atol=atol)
    np.testing.assert_allclose(chance[-1], model.class_prior_, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_two_classes_have_one_decision(name):
    X, y = (part[DIGITS[1] < 2][:150] for part in DIGITS)
    labels = np.where(np.arange(150) < 30, y, -1)
    model = guided(name)
    model = model.set_params(unlabeled=-1).fit(X, labels)
    decision = model.decision_function(X)
    assert decision.shape == (150,)
    assert np.array_equal(model.predict(X), (decision > 0).astype(int))
    assert model.score(X, y) > 0.95


@pytest.mark.slow
def test_probabilities_are_as_sure_as_they_are_right(fitted):
    X, y = DIGITS[0][1::2], DIGITS[1][1::2]
    chance = fitted.predict_proba(X)
    assert calibration_error(chance, chance.argmax(axis=1) == y) < 0.08
    low, high = fitted.validation_interval_
    assert low - 0.03 < fitted.score(X, y) < high + 0.03


def test_only_proportions_of_label_weights_count(half):
    X, y = half
    given = {"n_components": 10, "supervision_weight": np.inf}
    weights = np.random.default_rng(0).uniform(0.2, 2, len(X))
    one = sf.SSNMFClassifier(**given, **QUICK).fit(X, y, label_weight=weights)
    two = sf.SSNMFClassifier(**given, **QUICK).fit(X, y, label_weight=2 * weights)
    plain = sf.SSNMFClassifier(**given, **QUICK).fit(X, y)
    doubled = sf.SSNMFClassifier(**given, **QUICK).fit(X, y, label_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), rtol=0, atol=5e-3)
    np.testing.assert_allclose(doubled.predict_proba(X), plain.predict_proba(X), rtol=0, atol=5e-3)
    assert np.abs(one.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


def test_heavy_labels_win(half):
    X, y = half
    known = np.flatnonzero(y >= 0)
    wrong = np.where(np.isin(np.arange(len(y)), known[:60]), y, -1)
    wrong[known[:20]] = (wrong[known[:20]] + 1) % 10
    weights = np.where(np.isin(np.arange(len(y)), known[:20]), 0.01, 1.0)
    model = sf.SSNMFClassifier(n_components=10, supervision_weight="balanced", **QUICK)
    rest = X[known[60:]], y[known[60:]]
    light = model.fit(X, wrong, label_weight=weights).score(*rest)
    assert light > model.fit(X, wrong).score(*rest) + 0.05


def test_class_weights_favor_a_class():
    """Of labels that are too few for a validation; it finds what predicts best for all classes."""
    rng = np.random.default_rng(0)
    rare = np.arange(60) % 6 == 0
    rates = np.where(np.arange(40) < 8, 0.3, 0.1) + 0.5 * rare[:, None] * (np.arange(40) < 8)
    X = rng.poisson(rates).astype(float)
    labels = np.where(np.arange(60) < 5, np.where(rare, "rare", "many"), None)
    means = []
    for weight in (None, {"rare": 2.0, "many": 1.0}, "balanced", {"rare": 1000.0, "many": 1.0}):
        model = sf.FewLabelsClassifier(class_weight=weight, self_training=0, **QUICK)
        means.append(model.fit(X, labels).decision_function(X).mean())
    assert means == sorted(means)
    assert means[-1] > means[0] + 0.25


def several(n=400):
    """Return images, indicators of three properties of their digits, and labels of some."""
    X, y = digits(n)
    Y = np.column_stack([y % 2 == 0, y < 3, y == 8]).astype(float)
    return X, Y, np.where((np.arange(n) < n // 2)[:, None], Y, np.nan)


@pytest.mark.slow
def test_thresholds_of_labels():
    X, Y, given = several()
    model = sf.FewLabelsClassifier(**QUICK).fit(X, given)
    chance = model.predict_proba(X)
    assert ((chance > 0) & (chance < 1)).all()
    assert model.readout_.thresholds.shape == (3,)
    assert ((model.readout_.thresholds > 0) & (model.readout_.thresholds < 1)).all()
    assert np.array_equal(model.predict(X), chance > model.readout_.thresholds)
    assert np.array_equal(model.decision_function(X) > 0, chance > model.readout_.thresholds)
    new = slice(200, None)
    assert f1_score(Y[new], model.predict(X[new]), average="macro") > 0.75
    counts = [model.set_params(threshold=t).predict(X).sum() for t in (0.0, 0.3, 0.6, 1.0)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (chance.size, 0)
    rows = model.validation_folds_ >= 0
    right = (model.validation_predicted_ == Y).all(axis=1)[rows]
    assert model.validation_accuracy_ == right.mean()
    assert model.validation_scores_
    assert model.self_training_ == 0


def test_columns_of_a_frame_are_the_classes():
    pd = pytest.importorskip("pandas")
    X, _, given = several(120)
    names = ["even", "small", "eight"]
    given_rank = QUICK | {"n_components": 3, "supervision_weight": np.inf}
    model = sf.SSNMFClassifier(**given_rank).fit(X, pd.DataFrame(given, columns=names))
    assert list(model.classes_) == names
    expected = sf.SSNMFClassifier(**given_rank).fit(X, given)
    assert list(expected.classes_) == [0, 1, 2]
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.topics()[0].shares[0][0] == "even"
    assert model.score(X, pd.DataFrame(given, columns=names)) == expected.score(X, given)


@pytest.mark.slow
def test_single_missing_entries_have_no_say():
    X, Y, given = several(120)
    holes = (np.random.default_rng(0).random(Y.shape) < 0.3) & ~np.isnan(given)
    single = np.where(holes, np.nan, given)
    model = sf.SSNMFClassifier(**QUICK).fit(X, single)
    np.testing.assert_allclose(model.class_prior_, np.nanmean(single, axis=0))


@pytest.mark.parametrize(
    "model",
    [
        sf.SSNMFClassifier(n_components=4, **QUICK),
        sf.papers.MarginNMF(n_components=4, **QUICK),
        sf.papers.ConstrainedNMF(n_components=4, **QUICK),
        sf.papers.SupervisedBayesianNMF(n_components=4, **QUICK),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:Of the 4 components, 4 explain nothing:UserWarning")
def test_data_without_anything_predict_how_frequent_the_classes_are(model):
    X, y = np.zeros((20, 3)), np.arange(20) % 4 > 0
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X)[:, 1], 0.75, atol=0.05)


def shuffled(kind):
    """Return counts of three kinds of texts, and labels of a type whose order is not sorted."""
    rng = np.random.default_rng(0)
    names = {"int": [7, 2, 5], "str": ["sport", "art", "moon"], "bool": [True, False]}[kind]
    codes = rng.permutation(np.arange(90) % len(names))
    rates = np.kron(np.eye(3), np.ones((1, 8)))[codes] * 1.5 + 0.1
    return rng.poisson(rates).astype(float), np.array(names)[codes], names


def classifiers(names):
    """Yield a classifier of each kind, with the names in the order in which they come."""
    seeds, three = {name: [8 * k] for k, name in enumerate(names)}, {"n_components": 3, **QUICK}
    yield sf.FewLabelsClassifier(**QUICK)
    if len(names) == 3:
        yield sf.FewLabelsClassifier(class_prior=dict.fromkeys(names, 1 / 3), **QUICK)
    yield from (sf.SSNMFClassifier(readout=how, **three) for how in ("logistic", "refit", "joint"))
    yield from (getattr(estimators, name)(**three) for name in NAMES[3:])
    yield sf.TopicSupervisedNMF(topic_names=names, n_free_topics=1, **QUICK)
    yield sf.SeededTopics(seeds, **QUICK)
    yield sf.SeededTopics(seeds, membership="mixed", n_free_topics=1, **QUICK)
    yield sf.HierarchicalClassifier(sf.SeededTopics(seeds, **QUICK))


@pytest.mark.parametrize("kind", ["int", "str", "bool"])
def test_classes_are_sorted_as_scikit_learn_assumes(kind, tmp_path):
    X, y, names = shuffled(kind)
    batches = sf.SSNMFClassifier(3, **QUICK).partial_fit(X[:45], y[:45], classes=names)
    models = [batches.partial_fit(X[45:], y[45:]), *(one.fit(X, y) for one in classifiers(names))]
    for model in models:
        sf.save(model, tmp_path / "model.npz")
        loaded = sf.load(tmp_path / "model.npz")
        assert model.classes_.tolist() == loaded.classes_.tolist() == sorted(names), model
        chance, truth = model.predict_proba(X), y[:, None] == model.classes_
        losses = -np.log(np.clip(chance[truth], 1e-15, 1))
        assert -get_scorer("neg_log_loss")(loaded, X, y) == pytest.approx(losses.mean()), model
        if kind == "bool":  # by the decision function, since probabilities may be equal
            scorer, parts = "roc_auc", [roc_auc_score(y, loaded.decision_function(X))]
        else:
            scorer, parts = "roc_auc_ovr", map(roc_auc_score, truth.T, chance.T)
        assert get_scorer(scorer)(loaded, X, y) == pytest.approx(np.mean([*parts])), model
        predicted, scores = model.predict(X), model.decision_function(X)
        assert np.array_equal(model.classes_[chance.argmax(axis=1)], predicted), model
        best = (scores > 0).astype(int) if kind == "bool" else scores.argmax(axis=1)
        assert np.mean(model.classes_[best] == predicted) > 0.95, model
        assert np.mean(predicted == y) == model.score(X, y) > 0.8, model
        if hasattr(model, "class_shares_"):
            largest = model.topic_proportions(X)[truth[:, 0]].mean(axis=0)
            assert model.class_shares_[:, 0] == pytest.approx(largest, abs=0.05), model
        if hasattr(model, "topic_names_"):
            assert model.topic_names_.tolist() == names, model


def test_votes_of_named_topics():
    X, y, _ = shuffled("int")
    names, y = [2, 0, 1], np.searchsorted([2, 5, 7], y)  # as VotingClassifier encodes labels
    seeds = {name: [8 * k] for k, name in enumerate(names)}
    named = sf.TopicSupervisedNMF(topic_names=names, **QUICK)
    votes = VotingClassifier([("a", named), ("b", sf.SeededTopics(seeds, **QUICK))], voting="soft")
    assert votes.fit(X, y).score(X, y) > 0.95


def test_columns_of_several_labels():
    X, y, names = shuffled("str")
    lists = sf.TopicSupervisedNMF(topic_names=names, **QUICK).fit(X, [[one] for one in y])
    assert (lists.classes_.tolist(), lists.topic_names_.tolist()) == (sorted(names), names)
    assert lists.score(X, [[one] for one in y]) > 0.9
    table = pytest.importorskip("pandas").DataFrame({name: (y == name) * 1 for name in names})
    matrix = sf.TopicSupervisedNMF(**QUICK).fit(X, table)
    assert matrix.classes_.tolist() == names
    assert np.mean((matrix.predict(X) == table).all(axis=1)) == matrix.score(X, table) > 0.9
