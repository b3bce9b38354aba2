"""The committee of FewLabelsClassifier(): members, weights, neighbors, labels that mislead."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from test_few_labels import hide
from threadpoolctl import threadpool_info

import ssnmf_fast as sf
from ssnmf_fast.estimators import _committee, _members, _training_data
from ssnmf_fast.estimators import _views as _neighbors

QUICK = {"random_state": 0, "max_iter": 20, "tol": 0, "n_threads": 1}


def labels_of(y, weights=None):
    """Return training labels of codes, -1 for none."""
    known = y >= 0
    members = np.eye(y.max() + 1)[np.maximum(y, 0)] * known[:, None]
    given = known.astype(float) if weights is None else weights * known
    return _training_data.TrainingLabels(members, np.repeat(given[:, None], y.max() + 1, 1), False)


def documents(seed, sizes, length=40, m=300):
    """Return counts of words (n, m) of classes of some sizes, each with two topics of its own."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, m + 1)
    zipf /= zipf.sum()
    topics = [[zipf[rng.permutation(m)] for _ in range(2)] for _ in sizes]
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    shares = [0.3 * zipf + 0.7 * topics[c][rng.integers(2)] for c in y]
    return sp.csr_array([rng.multinomial(length, p) for p in shares], dtype=float), y


# ------------------------------------------------------------------------------------- weights


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
    nothing = truth[np.zeros(3, dtype=bool)]
    none = {name: each[:0] for name, each in logits.items()}
    assert _committee.fit_weights(none, nothing, PRIOR) == PRIOR


@pytest.mark.parametrize("several", [False, True])
def test_gradients_agree_with_differences(several):
    rng = np.random.default_rng(0)
    members = np.eye(3)[rng.integers(3, size=5)] if not several else rng.integers(2, size=(5, 3))
    truth = _committee.Truth(members.astype(float), rng.random((5, 3 if several else 1)), several)
    logits, direction = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    step = 1e-6
    ends = [truth.loss(logits + sign * step * direction)[0] for sign in (1, -1)]
    slope = float((truth.loss(logits)[1] * direction).sum())
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-6)


def test_weights_of_a_fold_come_from_the_others():
    truth, logits = truth_and_logits(60)
    folds = np.arange(60) % 3
    before = _committee.cross_fitted(logits, truth, PRIOR, folds)
    wrong = _committee.Truth(
        np.where(folds[:, None] == 0, np.roll(truth.members, 1, axis=1), truth.members),
        truth.weights,
        False,
    )
    after = _committee.cross_fitted(logits, wrong, PRIOR, folds)
    assert np.array_equal(before[folds == 0], after[folds == 0])
    assert not np.allclose(before[folds == 1], after[folds == 1])


# ------------------------------------------------------------------------------------- members


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_in_the_span_of_the_samples(form, classes):
    """Fewer samples than features: the unknowns are as many as these, the solution is the same."""
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 90)), np.arange(20) % classes
    coefficients, intercepts = _members.fit_logistic(form(X), labels_of(y), 10.0, None, tol=1e-9)
    machine = LogisticRegression(C=10.0, tol=1e-9, max_iter=5000).fit(X, y)
    expected = machine.predict_proba(X)
    found = softmax(X @ coefficients.T + intercepts, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["margins", "naive Bayes", "directions"])
def test_members_of_one_class_or_of_missing_classes(name):
    X = np.random.default_rng(0).random((12, 8))
    view = _neighbors.view_of(X, np.eye(8)[:4])
    for y in (np.zeros(12, dtype=int), np.array([0, 2] * 6)):
        labels = _training_data.TrainingLabels(np.eye(4)[y], np.ones((12, 4)), False)
        member = _members.fit_member(name, view, labels)
        logits = member.logits(view)
        assert logits.shape == (12, 4)
        assert np.isfinite(logits).all()
        assert set(logits.argmax(axis=1)) <= set(y)


def test_a_sum_of_members_gives_the_sum_of_their_logits():
    rng = np.random.default_rng(0)
    X, shares = rng.random((7, 5)), rng.dirichlet(np.ones(3), 7)
    view = replace(_neighbors.view_of(X, rng.normal(size=(2, 5))), shares=shares)
    one = _members.Linear(
        rng.normal(size=4), rng.normal(size=(4, 3)), None, rng.normal(size=(4, 5))
    )
    other = _members.Linear(rng.normal(size=4), None, rng.normal(size=(4, 2)))
    expected = 2 * one.logits(view) + other.logits(view)
    np.testing.assert_allclose((one.scaled(2) + other).logits(view), expected)


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


# ----------------------------------------------------------------------------------- neighbors


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    return np.eye(3)[y] * 4 + 0.3 * rng.normal(size=(150, 3)), y


def seen_at(points):
    """Return a view of samples whose scores are some points."""
    return SimpleNamespace(scores=points)


def test_labels_spread_to_their_clusters(clusters):
    points, y = clusters
    graph = _neighbors.Graph.of(points, 1)
    assert abs(graph.nearness - graph.nearness.T).max() == 0
    assert graph.nearness.diagonal().max() == 0
    labels = labels_of(hide(y, 1, 0))
    chances = graph.spread(labels)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances.argmax(axis=1) == y).all()
    machine = LabelSpreading("knn", n_neighbors=10).fit(points, hide(y, 1, 0))
    assert (machine.transduction_ == chances.argmax(axis=1)).all()
    known = labels.known
    for most in (150, 60, 2):  # the labeled samples always vote
        votes = graph.votes(chances, known, most)
        assert len(votes.points) == max(most, known.sum())
        assert (votes.logits(seen_at(points + 0.01)).argmax(axis=1) == y).all()


def test_copies_and_few_samples():
    points = np.repeat(np.random.default_rng(0).random((3, 2)), 15, axis=0)
    graph = _neighbors.Graph.of(points, 1)
    assert np.isfinite(graph.nearness.data).all()
    assert graph.nearness.diagonal().max() == 0
    y = np.repeat([0, 1, 2], 15)
    chances = graph.spread(labels_of(hide(y, 1, 0)))
    assert np.isfinite(chances).all()
    two = _neighbors.Graph.of(points[:16], 1)
    assert np.isfinite(
        two.votes(chances[:16], np.ones(16, dtype=bool), 16).logits(seen_at(points[:2]))
    ).all()


def test_any_number_of_threads_finds_the_same_neighbors(clusters):
    points, _ = clusters
    found = [_neighbors.nearest(points, points, 5, threads) for threads in (1, 2, 3)]
    assert all(
        np.array_equal(a, b) for each in found[1:] for a, b in zip(each, found[0], strict=True)
    )


def test_several_threads_leave_no_limit_behind(clusters):
    points, _ = clusters
    before = [part["num_threads"] for part in threadpool_info()]
    workers = [
        threading.Thread(target=_neighbors.nearest, args=(points, points, 5, 1)) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [part["num_threads"] for part in threadpool_info()] == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package that is imported
def test_approximate_neighbors(clusters, monkeypatch):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4000, 8)).astype(np.float32)
    exact = _neighbors.nearest(points, points, 6, 1)[1]
    monkeypatch.setattr(_neighbors, "EXACT", 100)
    distances, near = _neighbors.nearest(points, points, 6, 2)
    assert (np.diff(distances, axis=1) >= 0).all()
    same = np.mean([len(set(a) & set(b)) / 6 for a, b in zip(near, exact, strict=True)])
    assert same > 0.95
    points, y = clusters
    model = sf.FewLabelsClassifier(**QUICK).fit(np.abs(points), hide(y, 3, 0))
    assert "neighbors" in model.committee_
    assert (model.predict(np.abs(points)) == y).mean() > 0.9


@pytest.mark.slow
def test_too_many_samples_for_exact_neighbors(clusters, monkeypatch):
    points, y = clusters
    monkeypatch.setattr(_neighbors, "EXACT", 100)
    monkeypatch.setattr(_neighbors, "find_spec", lambda name: None)
    assert not _neighbors.can_search(150)
    model = sf.FewLabelsClassifier(**QUICK).fit(np.abs(points), hide(y, 3, 0))
    assert "neighbors" not in model.committee_
    assert (model.predict(np.abs(points)) == y).mean() > 0.9


@pytest.mark.slow
def test_images_are_recognized_by_their_neighbors():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    hidden = hide(y, 2, 0)
    model = sf.FewLabelsClassifier(random_state=0, n_threads=1).fit(X, hidden)
    machine = LabelSpreading("knn", n_neighbors=10).fit(X, hidden)
    rest = hidden < 0
    rival = (machine.transduction_ == y)[rest].mean()
    assert (model.predict(X)[rest] == y[rest]).mean() > rival - 0.02


# ---------------------------------------------------------------------------- labels that mislead


@pytest.mark.slow
def test_as_many_labels_of_uneven_classes():
    X, y = documents(0, [700, 60, 50, 40])
    model = sf.FewLabelsClassifier(**QUICK).fit(X, hide(y, 6, 0))
    assert len(model.components_) == 12
    assert model.self_training_ == 0
    true = np.bincount(y) / len(y)
    np.testing.assert_allclose(model.class_prior_, true, atol=0.05)
    accuracy = (model.predict(X) == y).mean()
    low, high = model.validation_interval_
    assert low <= accuracy <= high
    untaught = sf.FewLabelsClassifier(self_training=0, **QUICK).fit(X, hide(y, 6, 0))
    np.testing.assert_array_equal(untaught.predict_proba(X), model.predict_proba(X))
    plain = sf.FewLabelsClassifier(class_weight={0: 1.0}, **QUICK).fit(X, hide(y, 6, 0))
    assert np.allclose(plain.class_prior_, 0.25)
    assert accuracy > (plain.predict(X) == y).mean() - 0.005


@pytest.mark.slow
def test_even_classes_do_not_look_uneven():
    X, y = documents(1, [100, 100, 100])
    model = sf.FewLabelsClassifier(**QUICK).fit(X, hide(y, 4, 0))
    assert len(model.components_) == 3
    np.testing.assert_allclose(model.class_prior_, 1 / 3)


def test_shares_of_classes_are_found_from_predictions():
    rng = np.random.default_rng(0)
    true, prior = np.array([0.8, 0.15, 0.05]), np.full(3, 1 / 3)
    y = rng.choice(3, size=20_000, p=true)
    points = np.eye(3)[y] + 0.7 * rng.normal(size=(len(y), 3))
    logits = points / 0.7**2  # Bayes' rule for even classes
    found = _committee.shares_of_classes(logits, prior, np.ones(len(y)))
    np.testing.assert_allclose(found, true, atol=0.02)
    shifted = logits + _committee.log_ratio(found, prior)
    assert (shifted.argmax(axis=1) == y).mean() > (logits.argmax(axis=1) == y).mean() + 0.02
    assert _committee.effective_number(np.ones(7)) == pytest.approx(7)
    assert _committee.effective_number(np.array([1.0, 0])) == pytest.approx(1)
