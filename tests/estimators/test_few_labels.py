"""FewLabelsClassifier() with few labels: how good it is, what validation tries and does not see."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import digits, hide, tfidf, zipf_documents
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

import ssnmf_fast as sf


def accuracies(X, y, hidden):
    """Return the accuracy of the classifier and of LinearSVC on what has no label."""
    model = sf.FewLabelsClassifier(random_state=0, n_threads=1).fit(X, hidden)
    known = hidden >= 0
    rival = LinearSVC(random_state=0, max_iter=5000).fit(X[known], y[known])
    return [(m.predict(X)[~known] == y[~known]).mean() for m in (model, rival)]


X, y = digits(500)


@pytest.fixture(scope="module")
def validated():
    """A fit with validation, and its labels."""
    hidden = hide(y, 4, 0)
    return sf.FewLabelsClassifier(random_state=0, n_threads=1).fit(X, hidden), hidden


@pytest.mark.slow
@pytest.mark.parametrize("per_class", [1, 3])
def test_better_than_a_linear_machine_on_zipf_documents(per_class):
    gains = []
    for seed in range(2):
        counts, y = zipf_documents(seed)
        ours, theirs = accuracies(tfidf(counts), y, hide(y, per_class, seed))
        gains.append(ours - theirs)
    assert np.mean(gains) > 0.05
    assert min(gains) > 0


@pytest.mark.slow
@pytest.mark.parametrize("per_class", [2, 5])
def test_better_than_a_linear_machine_on_digits(per_class):
    X, y = load_digits(return_X_y=True)
    results = [accuracies(X / 16, y, hide(y, per_class, seed)) for seed in (1, 2)]
    ours, theirs = np.mean(results, axis=0)
    assert ours - theirs > {2: 0.05, 5: 0.005}[per_class]  # with five labels it is about 0.01
    assert ours > {2: 0.75, 5: 0.86}[per_class]


def test_validation_says_what_it_tried(validated):
    model, hidden = validated
    scores = model.validation_scores_
    assert set(scores) == {"topics", "features", "directions", "neighbors", "margins", "committee"}
    assert all(0 <= score <= 1 for score in scores.values())
    assert set(model.committee_) == set(scores) - {"committee"}
    for name, member in model.committee_.items():
        assert member["score"] == scores[name]
        assert member["weight"] >= 0
    assert (hidden >= 0)[model.validation_folds_ >= 0].all()


def test_accuracy_and_interval_are_those_of_the_folds(validated):
    model, hidden = validated
    rows = model.validation_folds_ >= 0
    assert rows.sum() == 40
    assert len(np.unique(model.validation_folds_[rows])) == 4
    right = model.classes_[model.validation_proba_[rows].argmax(axis=1)] == hidden[rows]
    assert model.validation_scores_["committee"] == pytest.approx(right.mean(), abs=0.01)
    np.testing.assert_allclose(model.class_prior_, 0.1, atol=0.01)
    assert not model.validation_proba_[~rows].any()
    np.testing.assert_allclose(model.validation_proba_[rows].sum(axis=1), 1)
    # Fits of folds share labels: three quarters of the samples are taken to be independent.
    count = round(30 * model.validation_accuracy_)
    wilson = binomtest(count, 30).proportion_ci(0.95, method="wilson")
    high = 1 - (1 - wilson.high) * np.sqrt(3 / 4)  # the fit sees the labels that a fold hides
    assert model.validation_interval_ == pytest.approx((wilson.low, high), rel=1e-3)


@pytest.mark.parametrize("per_class", [1, 4])
def test_as_sure_as_right_on_unlabeled_samples(validated, per_class):
    """Without validation it is less sure than logits alone would be, and not too sure."""
    model, hidden = validated
    if per_class == 1:
        hidden = hide(y, 1, 0)
        model = sf.FewLabelsClassifier(random_state=0, n_threads=1).fit(X, hidden)
    new = hidden < 0
    sure, right = model.predict_proba(X[new]).max(axis=1).mean(), model.score(X[new], y[new])
    if per_class == 1:
        logits = model.decision_function(X[new]) / model.readout_.slopes
        assert sure < min(right, softmax(logits, axis=1).max(axis=1).mean() - 0.1)
    else:
        assert sure == pytest.approx(model.validation_accuracy_, abs=0.02)
        assert sure == pytest.approx(right, abs=0.04)


def test_weights_of_the_samples_in_parts_in_any_form():
    """The validation takes rows of them, which frames and lists give in ways of their own."""
    small, W = X[:60], np.random.default_rng(0).random((60, X.shape[1]))
    fits = [
        sf.FewLabelsClassifier(random_state=0, max_iter=5, tol=0, n_threads=1).fit(
            small, hide(y[:60], 4, 0), X_weights=given
        )
        for given in (W, W.tolist(), pd.DataFrame(W), sf.weights.observed(pd.DataFrame(W)))
    ]
    assert all(np.allclose(fit.components_, fits[0].components_) for fit in fits)


def test_no_validation_for_too_few_labels():
    model = sf.FewLabelsClassifier(random_state=0, max_iter=20, tol=0).fit(X, hide(y, 1, 0))
    assert model.validation_scores_ == {}
    assert np.isnan(model.validation_accuracy_)
    assert np.isnan(model.validation_interval_).all()
    assert (model.validation_folds_ == -1).all()
    assert not model.validation_proba_.any()
    assert model.self_training_ == 2


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, 2])
def test_self_training_as_asked(rounds):
    for hidden in (hide(y, 2, 0), hide(y, 3, 0)):
        model = sf.FewLabelsClassifier(self_training=rounds, random_state=0, max_iter=20, tol=0)
        model.fit(X, hidden)
        assert model.self_training_ == rounds
    everything = model.fit(X, y)
    assert everything.self_training_ == 0


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, 1])
def test_no_label_of_a_fold_affects_its_predictions(rounds):
    """Labels that have nothing to do with the data are not predicted better than by chance."""
    options = {"self_training": rounds, "max_iter": 20, "tol": 0, "n_threads": 1}
    accuracies = []
    for seed in range(4):
        shuffled = np.random.default_rng(seed).permutation(y)
        model = sf.FewLabelsClassifier(random_state=seed, **options)
        accuracies.append(model.fit(X, hide(shuffled, 8, seed)).validation_accuracy_)
    chance, count = 1 / len(np.unique(y)), 4 * 8 * len(np.unique(y))
    assert np.mean(accuracies) < chance + 4 * np.sqrt(chance * (1 - chance) / count)


@pytest.mark.slow
def test_poor_predictions_are_warned_of():
    X = np.repeat(np.random.default_rng(0).random((40, 20)), 2, axis=0)
    y = np.tile([0, 1], 40)  # of each sample there is a copy of the other class
    with pytest.warns(UserWarning, match="that of always predicting the largest class .50.0%"):
        sf.FewLabelsClassifier(random_state=0).fit(X, y)


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bits():
    hidden = hide(y[:150], 3, 0)
    models = [
        sf.FewLabelsClassifier(random_state=0, max_iter=20, tol=0, n_threads=n).fit(X[:150], hidden)
        for n in (1, 2, 3)
    ]
    assert len({model.components_.tobytes() for model in models}) == 1
    assert len({model.predict_proba(X).tobytes() for model in models}) == 1
    assert models[0].validation_scores_ == models[2].validation_scores_


SHORT = {"random_state": 0, "max_iter": 20, "tol": 0}


@pytest.fixture(scope="module")
def of_two():
    """A short fit to two labels of each class, and the labels."""
    hidden = hide(y, 2, 0)
    return sf.FewLabelsClassifier(**SHORT).fit(X, hidden), hidden


@pytest.mark.slow
def test_labels_that_weigh_nothing_are_as_good_as_none(of_two):
    expected, hidden = of_two
    weights = (hidden >= 0).astype(float)
    rows = np.vstack([X, np.zeros(64)])
    other = np.where(hidden < 0, np.random.default_rng(0).permutation(y), y)
    for labels in (y, other):
        model = sf.FewLabelsClassifier(**SHORT).fit(X, labels, label_weight=weights)
        assert np.array_equal(model.components_, expected.components_)
        assert np.array_equal(model.predict_proba(rows), expected.predict_proba(rows))
        assert np.array_equal(model.class_prior_, expected.class_prior_)
        assert model.n_labeled_ == expected.n_labeled_ == 20


@pytest.mark.slow
def test_the_fit_is_seen_as_new_samples_are(of_two):
    model, hidden = of_two
    rows = np.flatnonzero(hidden >= 0)
    np.testing.assert_allclose(model.predict_proba(X[rows]), model.predict_proba(X)[rows])
    one_by_one = np.vstack([model.predict_proba(X[i : i + 1]) for i in rows])
    np.testing.assert_allclose(one_by_one, model.predict_proba(X)[rows])
    amounts = model.transform(X[rows]) * model.components_.sum(axis=1)
    shares = amounts / amounts.sum(axis=1, keepdims=True)
    means = np.column_stack([shares[hidden[rows] == c].mean(axis=0) for c in range(10)])
    np.testing.assert_allclose(
        model.class_shares_, means, rtol=0, atol=2e-3
    )  # training rounds more


def small():
    """Return images of 4 x 4 pixels, of which all directions are kept."""
    return X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16), y


def test_order_of_samples_features_and_classes():
    X, y = small()
    hidden = hide(y, 2, 0)
    # One component of a class starts at the mean of the class: no random number is drawn.
    given = {"init": "labels", "supervision_weight": np.inf, "max_iter": 30, "tol": 0}
    model = sf.SSNMFClassifier(n_components=10, **given)
    expected = model.fit(X, hidden).predict_proba(X)
    near = {"rtol": 0, "atol": 5e-3}  # the tolerance of the logistic regression
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(16)
    again = model.fit(X[rows], hidden[rows]).predict_proba(X)
    np.testing.assert_allclose(again, expected, **near)
    again = model.fit(X[:, columns], hidden).predict_proba(X[:, columns])
    np.testing.assert_allclose(again, expected, **near)
    names = np.array(list("jihgfedcba"), dtype=object)
    again = model.fit(X, [None if c < 0 else names[c] for c in hidden]).predict_proba(X)
    np.testing.assert_allclose(again[:, ::-1], expected, **near)


@pytest.mark.slow
@pytest.mark.parametrize("form", [sp.csr_array, np.float32])
def test_forms_of_the_data(form):
    X, y = small()
    hidden = hide(y, 4, 0)
    # With a `tol` below the default, sparse data alone take coordinate descent.
    options = {"random_state": 0, "max_iter": 300}
    expected = sf.FewLabelsClassifier(**options).fit(X, hidden)
    model = sf.FewLabelsClassifier(**options).fit(form(X), hidden)
    rough = form is np.float32
    assert model.components_.dtype == model.transform(form(X)).dtype
    assert model.components_.dtype == (np.float32 if rough else np.float64)
    if not rough:
        assert model.validation_scores_ == expected.validation_scores_
        np.testing.assert_allclose(
            model.predict_proba(form(X)), expected.predict_proba(X), rtol=0, atol=5e-3
        )
    assert (model.predict(form(X)) == expected.predict(X)).mean() > 0.95
