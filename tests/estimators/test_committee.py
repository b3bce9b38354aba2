"""The committee of FewLabelsClassifier(): members, weights, neighbors, class shares."""

import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits, hide
from helpers.each import each
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_info

import ssnmf_fast as sf
from ssnmf_fast.estimators import _committee

QUICK = {"random_state": 0, "max_iter": 20, "tol": 0, "n_threads": 1}


def documents(seed, sizes, length=40, m=300):
    """Return counts of words (n, m) of classes of some sizes, each with two topics of its own."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, m + 1)
    zipf /= zipf.sum()
    topics = [[zipf[rng.permutation(m)] for _ in range(2)] for _ in sizes]
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    shares = [0.3 * zipf + 0.7 * topics[c][rng.integers(2)] for c in y]
    return sp.csr_array([rng.multinomial(length, p) for p in shares], dtype=float), y


def truth_and_logits(n, seed=0):
    """Return truth of n samples, and logits of a good member, a poor one and one of noise."""
    rng = np.random.default_rng(seed)
    codes, members = rng.integers(3, size=n), np.eye(3)
    truth = _committee.Truth(members[codes], np.ones((n, 3)), False)
    noise = {"good": 1.0, "poor": 4.0}
    found = {
        name: 2 * members[codes] + sigma * rng.normal(size=(n, 3)) for name, sigma in noise.items()
    }
    return truth, found | {"noise": rng.normal(size=(n, 3))}


PRIOR = {"good": 0.2, "poor": 0.4, "noise": 0.4}


def test_many_labels_find_the_good_member():
    truth, logits = truth_and_logits(3000)
    weights = _committee.fit_weights(logits, truth, PRIOR)
    assert weights["good"] > 5 * max(weights["poor"], weights["noise"])
    alone = truth.loss(_committee.temperature(logits["good"], truth) * logits["good"])[0]
    assert truth.loss(sum(w * logits[name] for name, w in weights.items()))[0] < 1.01 * alone


def test_few_labels_stay_near_the_prior():
    truth, logits = truth_and_logits(3)
    weights = _committee.fit_weights(logits, truth, PRIOR)
    scaled = {name: w / _committee.temperature(logits[name], truth) for name, w in weights.items()}
    assert all(abs(scaled[name] - PRIOR[name]) < 0.25 for name in PRIOR)
    nothing = truth.part(np.zeros(3, dtype=bool))
    none = {name: each[:0] for name, each in logits.items()}
    assert _committee.fit_weights(none, nothing, PRIOR) == PRIOR


@pytest.mark.parametrize("several", [False, True])
def test_gradients_agree_with_differences(several):
    rng = np.random.default_rng(0)
    members = np.eye(3)[rng.integers(3, size=5)] if not several else rng.integers(2, size=(5, 3))
    weights = (rng.random((5, 3)) < 0.7) | (np.arange(3) < 1), several, rng.random(5)
    truth = _committee.Truth(members.astype(float), *weights)
    logits, direction = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    step = 1e-6
    ends = [truth.loss(logits + sign * step * direction)[0] for sign in (1, -1)]
    slope = float((truth.loss(logits)[1] * direction).sum())
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-6)


def test_weights_of_a_fold_come_from_the_others():
    truth, logits = truth_and_logits(60)
    folds = np.arange(60) % 3
    before = _committee.cross_fitted(logits, truth, PRIOR, folds)
    rolled = np.roll(truth.members, 1, axis=1)
    wrong = replace(truth, members=np.where(folds[:, None] == 0, rolled, truth.members))
    after = _committee.cross_fitted(logits, wrong, PRIOR, folds)
    assert np.array_equal(before[folds == 0], after[folds == 0])
    assert not np.allclose(before[folds == 1], after[folds == 1])


def test_labels_of_labeled_samples_are_those_of_indicators_of_all():
    rng = np.random.default_rng(0)
    n, rows = 40, np.sort(rng.permutation(40)[:12])
    indicators, weights = np.zeros((n, 3)), np.zeros((n, 1))
    indicators[rows], weights[rows] = np.eye(3)[rng.integers(3, size=12)], rng.random((12, 1))
    of_samples = rng.random(n)
    truth = _committee.Truth(indicators[rows], weights[rows], False, of_samples[rows])
    labels = _committee.TrainingLabels(rows, truth, n, of_samples)
    chosen = rng.random(n) < 0.6
    more = np.flatnonzero(~labels.known & chosen)
    taught = labels.only(chosen).with_labels(more, np.eye(3)[more % 3], np.full((len(more), 1), 2))
    indicators[~chosen], weights[~chosen] = 0, 0
    indicators[more], weights[more] = np.eye(3)[more % 3], 2
    for found, seen in ((taught, slice(None)), (taught.part(chosen), chosen)):
        assert np.array_equal(found.of_all.members, indicators[seen])
        assert np.array_equal(found.indicators().toarray(), indicators[seen])
        assert np.array_equal(found.of_all.entry_weights, weights[seen])
        assert np.array_equal(found.weight, of_samples[seen])
        assert np.array_equal(found.truth.weight, found.weight[found.rows])
        of_class = of_samples @ indicators
        np.testing.assert_allclose(found.prior(), of_class / of_class.sum())


def test_accuracy_is_of_unlabeled_samples_and_corrected_by_labeled_ones():
    """150 labels in three folds, of which two thirds are right, correct probabilities by half."""
    codes, folds, members = np.arange(150) // 3 % 2, np.arange(150) % 3, np.eye(2)
    truth = _committee.Truth(members[codes], np.ones((150, 1)), False)
    logits = 2.0 * members[np.where(folds == 0, 1 - codes, codes)]
    others = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([3.0, 1.0])
    labels = _committee.TrainingLabels(np.arange(150), truth, 150)
    parts = labels, folds, logits, others, np.array([0.5, 0.5])
    slope, _ = _committee.calibration(logits, truth)
    sure = 1 / (1 + np.exp(-slope * np.array([2.0, 3.0, 1.0])))
    wrong = 1 - (3 * sure[1] + sure[2]) / 4 + (sure[0] - 2 / 3) / 2
    accuracy, low, high = _committee.Validation(*parts).accuracy
    assert accuracy == pytest.approx(1 - wrong * (2 / 3) ** 0.1)
    assert low < accuracy < high
    none = *parts[:3], (logits[:0], np.zeros(0)), parts[4]
    assert _committee.Validation(*none).accuracy[0] == pytest.approx(2 / 3)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def features_of(model, X):
    """Return what the readout of a model sees of samples (n, m): topics, directions, features."""
    rows = unit(X)
    explained = model.transform(X) * model.components_.sum(axis=1)
    shares = explained / explained.sum(axis=1, keepdims=True)
    return np.hstack([np.sqrt(shares), unit(rows @ model.readout_.directions.T), rows])


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_in_the_span_of_the_samples(form, classes):
    """Fewer samples than features: the unknowns are as many as these, the solution is the same."""
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 90)), np.arange(20) % classes
    model = sf.SSNMFClassifier(n_components=3, supervision_weight=1.0, **QUICK).fit(form(X), y)
    features = features_of(model, X)
    machine = LogisticRegression(C=10.0, tol=1e-9, max_iter=5000).fit(features, y)
    np.testing.assert_allclose(
        model.predict_proba(form(X)), machine.predict_proba(features), atol=0.02
    )


@pytest.mark.slow
def test_predictions_are_those_of_the_sum_of_the_members():
    X, y = documents(0, [30, 30])
    several = np.stack([y == 0, y == 1], axis=1).astype(float)
    several[hide(y, 9, 0) < 0] = np.nan
    model = sf.FewLabelsClassifier(threshold=0.5, **QUICK).fit(X, several)
    readout = model.readout_
    raw = features_of(model, X.toarray()) @ readout.coefficients.T + readout.intercepts
    expected = raw * readout.slopes + readout.offsets
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_members_of_missing_classes():
    """The only label of a class is hidden from some of the validation."""
    X, y = documents(0, [40, 40, 40])
    hidden = hide(y, 6, 0)
    hidden[np.flatnonzero(hidden == 2)[1:]] = -1
    model = sf.FewLabelsClassifier(**QUICK).fit(X, hidden)
    assert {"margins", "naive Bayes", "directions"} <= model.committee_.keys()
    assert np.isfinite(model.validation_proba_).all()
    assert np.isfinite([one["score"] for one in model.committee_.values()]).all()
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.slow
def test_who_is_in_the_committee():
    X, y = documents(0, [60, 60])
    assert set(sf.FewLabelsClassifier(**QUICK).fit(X, hide(y, 5, 0)).committee_) == {
        *("topics", "features", "directions", "naive Bayes", "neighbors", "margins")
    }
    several = np.stack([y == 0, y == 1], axis=1).astype(float)
    several[hide(y, 9, 0) < 0] = np.nan
    model = sf.FewLabelsClassifier(**QUICK).fit(X, several)
    assert {*model.committee_} == {"topics", "features", "directions", "naive Bayes"}
    assert model.validation_predicted_.shape == several.shape
    assert model.validation_interval_[0] < model.validation_accuracy_ <= 1
    dense = sf.FewLabelsClassifier(**QUICK).fit(X.toarray(), hide(y, 5, 0))
    assert "naive Bayes" in dense.committee_  # what counts is how many entries are not zero


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    return np.eye(3)[y] * 4 + 0.3 * rng.normal(size=(150, 3)), y


def fit_clusters(X, y, X_weights=None, **settings):
    """Return a committee that learned from some labels of clusters, and nothing from itself."""
    settings = {"self_training": 0, "loss": "frobenius"} | QUICK | settings
    return sf.FewLabelsClassifier(**settings).fit(X, y, X_weights=X_weights)


@pytest.mark.slow
def test_labels_spread_to_their_clusters(clusters):
    points, y = clusters
    points, hidden = np.abs(points), hide(y, 3, 0)
    model = fit_clusters(points, hidden)
    votes = model.readout_.votes
    assert len(votes.points) == len(points)
    np.testing.assert_allclose(votes.chances.sum(axis=1), 1)
    assert (votes.chances.argmax(axis=1) == y).all()
    machine = LabelSpreading("knn", n_neighbors=10).fit(points, hidden)
    assert (machine.transduction_ == votes.chances.argmax(axis=1)).all()
    assert (model.predict(points + 0.01) == y).all()


@pytest.mark.slow
def test_copies_and_few_samples():
    points = np.repeat(np.random.default_rng(0).random((3, 2)), 15, axis=0)
    y = np.repeat([0, 1, 2], 15)
    for rows in (np.arange(45), np.arange(6, 22)):
        model = fit_clusters(points[rows], hide(y, 4, 0)[rows])
        assert np.isfinite(model.predict_proba(points)).all()
        assert model.readout_.votes is None or np.isfinite(model.readout_.votes.scales).all()


@pytest.mark.slow
def test_any_number_of_threads_finds_the_same_neighbors(clusters):
    points, y = clusters
    points = np.abs(points)
    models = [fit_clusters(points, hide(y, 3, 0), n_threads=n) for n in (1, 2, 3)]
    found = [model.predict_proba(points) for model in models]
    assert all(np.array_equal(one, found[0]) for one in found[1:])


@pytest.mark.slow
def test_several_threads_leave_no_limit_behind(clusters):
    points, y = clusters
    model = fit_clusters(np.abs(points), hide(y, 3, 0))
    assert model.readout_.votes is not None
    before = [part["num_threads"] for part in threadpool_info()]
    workers = [threading.Thread(target=model.predict, args=(np.abs(points),)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [part["num_threads"] for part in threadpool_info()] == before


MANY = 50_100  # samples: more than those whose neighbors are searched among all


def many_clusters():
    y = np.arange(MANY) % 3
    points = np.eye(3)[y] * 4 + 0.3 * np.random.default_rng(0).normal(size=(MANY, 3))
    known = np.where(np.arange(MANY) < 600, y, -1)
    return np.abs(points), y, known


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package that is imported
def test_approximate_neighbors():
    pytest.importorskip("faiss")
    points, y, known = many_clusters()
    model = fit_clusters(points, known, max_iter=2, n_threads=2)
    assert "neighbors" in model.committee_
    assert (model.readout_.votes.chances.argmax(axis=1) == y).mean() > 0.95
    assert (model.predict(points[:9999]) == y[:9999]).mean() > 0.99


@pytest.mark.slow
def test_too_many_samples_for_exact_neighbors(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    points, y, known = many_clusters()
    with pytest.warns(UserWarning, match="no member 'neighbors'.*more than 50,000.*faiss"):
        model = fit_clusters(points, known, max_iter=2)
    assert "neighbors" not in model.committee_
    assert (model.predict(points[:999]) == y[:999]).mean() > 0.9


@each("limit", ["_views.EXACT", "_class_topics._MOST_COMPLETED"])
def test_members_that_are_left_out_are_told(monkeypatch, limit):
    """Once, with the way out."""
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(f"ssnmf_fast.estimators.{limit}", 50)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.poisson(np.kron(np.eye(2), np.ones(4))[y] + 0.2).astype(float)
    hidden, weights = np.where(np.arange(60) < 20, y, -1), None
    if limit != "_views.EXACT":
        weights = sf.weights.observed(rng.random(X.shape) < 0.9)
    with pytest.warns(UserWarning, match="The committee has no member") as found:
        model = fit_clusters(X, hidden, weights, max_iter=5)
    assert len(found) == 1
    assert "neighbors" not in model.committee_
    assert ("faiss" if weights is None else "weights.missing") in str(found[0].message)


@pytest.mark.slow
def test_images_are_recognized_by_their_neighbors():
    X, y = digits()
    hidden = hide(y, 2, 0)
    model = sf.FewLabelsClassifier(random_state=0, n_threads=1).fit(X, hidden)
    machine = LabelSpreading("knn", n_neighbors=10).fit(X, hidden)
    rest = hidden < 0
    rival = (machine.transduction_ == y)[rest].mean()
    assert (model.predict(X)[rest] == y[rest]).mean() > rival - 0.02


def drawn(y, design, seed):
    """Return labels drawn at random, as many of each class, or one class three times as often."""
    rng = np.random.default_rng(seed)
    if design == "even":
        return hide(y, 25, seed)
    chance = np.where((y == 1) & (design == "skewed"), 3.0, 1.0)
    rows = rng.choice(len(y), 150, replace=False, p=chance / chance.sum())
    return np.where(np.isin(np.arange(len(y)), rows), y, -1)


@pytest.mark.slow
@each("design", ["random", "even", "skewed"])
@each("seed", [0, 1])
def test_however_labels_are_drawn(design, seed):
    """The default is never much worse than without a shift, and says how good it is.

    The classes are uneven and hard to tell apart, so that predictions by neighbors, or an EM
    algorithm with the scores, would make few classes even more frequent.
    """
    X, y = documents(seed, [max(400 // (1 + c), 20) for c in range(16)], length=6)
    hidden = drawn(y, design, seed)
    new = hidden < 0
    model = sf.FewLabelsClassifier(**QUICK).fit(X, hidden)
    chance, of_labels = model.predict_proba(X[new]), np.bincount(y[~new]) / np.sum(~new)
    unshifted = chance / model.class_prior_ * of_labels[of_labels > 0]
    ours, plain = (np.mean(model.classes_[p.argmax(axis=1)] == y[new]) for p in (chance, unshifted))
    assert ours > plain - 0.02
    assert abs(model.validation_accuracy_ - ours) < 0.15


@pytest.mark.slow
def test_even_classes_do_not_look_uneven():
    X, y = documents(1, [100, 100, 100])
    model = sf.FewLabelsClassifier(**QUICK).fit(X, hide(y, 4, 0))
    assert len(model.components_) == 3
    np.testing.assert_allclose(model.class_prior_, 1 / 3, atol=0.01)


def bayes_logits(y, seed):
    """Return logits of the classes 0, 1, 2 by Bayes' rule for even classes, and indicators."""
    points = np.eye(3)[y] + 0.7 * np.random.default_rng(seed).normal(size=(len(y), 3))
    return points / 0.7**2, np.eye(3)[y]


def test_shares_of_classes_are_found_from_predictions():
    rng = np.random.default_rng(0)
    true, of_labels = np.array([0.8, 0.15, 0.05]), np.full(3, 1 / 3)
    logits, y = bayes_logits(rng.choice(3, size=20_000, p=true), 1)
    known, members = bayes_logits(rng.choice(3, size=3000), 2)
    truth = _committee.Truth(members, np.ones_like(members), False)
    found = _committee.estimate_shares(known, truth, (logits, np.ones(len(y))), of_labels)
    np.testing.assert_allclose(found, true, atol=0.05)
    shifted = logits + _committee.log_ratio(found, of_labels)
    right = [(z.argmax(axis=1) == y.argmax(axis=1)).mean() for z in (shifted, logits)]
    assert right[0] > right[1] + 0.02
    # Samples of weight 0 do not count, nor does the scale of weights.
    weights = np.repeat([1e-6, 0], [3000, 100]), np.repeat([1e3, 0], [20_000, 50])
    wrong = np.vstack([members, members[100:200]])
    truth = _committee.Truth(wrong, np.ones_like(wrong), False, weights[0])
    others = np.vstack([logits, logits[:50]]), weights[1]
    again = _committee.estimate_shares(np.vstack([known, known[:100]]), truth, others, of_labels)
    np.testing.assert_allclose(again, found, atol=1e-4)


def test_random_labels_leave_their_shares():
    moved = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        true = rng.dirichlet([3, 3, 3])
        logits, y = bayes_logits(rng.choice(3, size=3000, p=true), seed)
        of_labels = y[:200].mean(axis=0)
        truth = _committee.Truth(y[:200], np.ones((200, 3)), False)
        others = logits[200:], np.ones(2800)
        found = _committee.estimate_shares(logits[:200], truth, others, of_labels)
        moved.append(np.abs(found - of_labels).max())
    assert np.median(moved) < 0.01
    assert max(moved) < 0.05


def test_given_shares_of_classes():
    X, y = documents(0, [80, 60, 60])
    names = np.array(["rare", "b", "c"], dtype=object)[y]
    hidden = np.where(hide(y, 5, 0) < 0, None, names)
    shares = {"rare": 10, "c": 60, "b": 30}
    pandas = pytest.importorskip("pandas")

    def fitted(prior):
        return sf.FewLabelsClassifier(class_prior=prior, **QUICK).fit(X, hidden)

    plain, found = fitted("labels"), fitted(shares)
    np.testing.assert_allclose(plain.class_prior_, 1 / 3)
    np.testing.assert_allclose(found.class_prior_, [0.3, 0.6, 0.1])
    wanted = plain.predict_proba(X) * found.class_prior_
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.predict_proba(X), wanted, atol=1e-10)
    judged = found.validation_folds_ >= 0
    right = names[judged] == found.classes_[found.validation_proba_[judged].argmax(axis=1)]
    of_class = [np.mean(right[names[judged] == c]) for c in found.classes_]
    assert found.validation_accuracy_ == pytest.approx(np.dot(of_class, found.class_prior_))
    for same in ([3, 6, 1], np.array([0.3, 0.6, 0.1]), pandas.Series(shares)):
        np.testing.assert_allclose(fitted(same).predict_proba(X), wanted, atol=1e-10)
    without = sf.FewLabelsClassifier(class_prior=shares, **QUICK)
    without.fit(X, np.where(hide(y, 1, 0) < 0, None, names))  # too few labels for validation
    np.testing.assert_allclose(without.class_prior_, found.class_prior_)
