"""SSNMFClassifier: labels in all their forms."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone
from sklearn.datasets import load_digits

import ssnmf_fast as sf

X, y = digits(900)


@pytest.fixture(scope="module")
def small():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:120] / 16, y[:120]


def _model(**parameters):
    defaults = {"n_components": 6, "tol": 0, "max_iter": 30, "random_state": 0}
    return sf.SSNMFClassifier(**(defaults | parameters))


def _quick(**parameters):
    """A model without logistic regression."""
    return _model(readout="refit", supervision_weight=1.0, **parameters)


def test_accuracy_with_half_the_labels_hidden():
    train, test = slice(0, 600), slice(600, 900)
    hidden = np.where(np.arange(600) % 2, y[train], -1)
    model = _model(n_components=15, supervision_weight="balanced", max_iter=100)
    model.fit(X[train], hidden)
    assert model.score(X[test], y[test]) > 0.75
    assert model.score(X[train], hidden) == model.score(X[:600][1::2], y[:600][1::2])


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_unlabeled_samples_do_not_steer(loss, small):
    X, y = small
    hidden = np.where(np.arange(120) % 3 == 0, -1, y)
    other = np.where(np.arange(120) % 3 == 0, (y + 1) % 3, y)
    model = _model(supervision_loss=loss)
    weighted = clone(model).fit(X, other, label_weight=(hidden >= 0).astype(float))
    np.testing.assert_allclose(
        model.fit(X, hidden).components_, weighted.components_, rtol=1e-6, atol=1e-9
    )


@pytest.mark.slow
def test_all_marks_of_unlabeled_are_equal(small):
    X, y = small
    absent = np.arange(120) % 2 == 0
    hidden = np.where(absent, -1, y)
    expected = _quick().fit(X, hidden)
    names = np.array(["zero", "one", "two"], dtype=object)
    forms = [
        hidden.tolist(),
        np.where(absent, np.nan, y),
        [None if a else int(v) for a, v in zip(absent, y, strict=True)],
        [float("nan") if a else int(v) for a, v in zip(absent, y, strict=True)],
        np.where(absent, np.nan, y).astype(object),
    ]
    for form in forms:
        model = _quick().fit(X, form)
        assert np.array_equal(model.components_, expected.components_)
        assert list(model.classes_) == [0, 1, 2]
        assert model.score(X, form) == expected.score(X, hidden)
    text = np.where(absent, None, names[y])
    model = _model().fit(X, text)
    assert list(model.classes_) == ["one", "two", "zero"]
    assert set(model.predict(X)) <= set(names)
    with pytest.warns(UserWarning, match="'\\?', which looks like a missing label"):
        model.fit(X, np.where(absent, "?", names[y]), sample_weight=None)
    assert model.classes_[0] == "?"
    model.set_params(unlabeled="?").fit(X, np.where(absent, "?", names[y]).astype(str))
    assert list(model.classes_) == ["one", "two", "zero"]


def test_pandas_labels(small):
    pd = pytest.importorskip("pandas")
    X, y = small
    absent = np.arange(120) % 2 == 0
    expected = _quick().fit(X, np.where(absent, -1, y))
    series = pd.Series(y, dtype="Int64").mask(absent)
    assert np.array_equal(_quick().fit(X, series).components_, expected.components_)
    categories = pd.Series(y).mask(absent).astype("category")
    assert np.array_equal(_quick().fit(X, categories).components_, expected.components_)


@pytest.mark.slow
def test_minus_one_is_a_class_only_beside_one_alone(small):
    X, y = small
    signs = np.where(y == 0, -1, 1)
    for form in (signs, signs.astype(float), np.where(y == 2, None, signs)):
        with pytest.warns(UserWarning, match=r"only labels in y are -1 and 1.*unlabeled=None"):
            model = _model().fit(X, form)
        assert list(model.classes_) == [-1, 1]
        assert model.score(X, form) > 0.9
    assert list(_model(unlabeled=None).fit(X, signs).classes_) == [-1, 1]
    for other in (0, 3):
        refused(f"one class only, {other}", _model().fit, X, np.where(y == 0, -1, other))
    refused("no labeled sample", _model().fit, X, np.full(len(X), -1))
    refused("one class only, 1", _model(unlabeled=-1).fit, X, signs)
    three = np.where(y == 2, 5, signs)
    assert list(_model().fit(X, three).classes_) == [1, 5]
    assert list(_model(unlabeled=None).fit(X, three).classes_) == [-1, 1, 5]


def test_probabilities_and_rows_of_zeros(small):
    X, y = small
    y = np.where(np.arange(120) < 90, y, -1)
    model = _model().fit(X, y)
    probability = model.predict_proba(np.vstack([X, np.zeros((1, 64))]))
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    frequency = np.bincount(y[:90]) / 90
    np.testing.assert_allclose(probability[-1], frequency)
    assert model.predict(np.zeros((1, 64)))[0] == frequency.argmax()
    assert (probability > 0).all()
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probability[:-1]))
    joint = _model(readout="joint", supervision_weight=1.0).fit(X, y)
    np.testing.assert_allclose(
        joint.decision_function(X), joint.transform(X) @ joint.label_components_
    )
    assert (joint.predict_proba(X) > 0).all()


def _many_labels(y):
    return np.column_stack([y == 0, y == 1, y > 0]).astype(int)


def test_multiple_labels(small):
    X, y = small
    Y = _many_labels(y)
    model = _model(supervision_weight="balanced", max_iter=100).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    assert predicted.dtype == np.int64
    assert (predicted == Y).mean() > 0.9
    assert model.score(X, Y) == (predicted == Y).all(axis=1).mean()
    assert np.array_equal(model.decision_function(X) > 0, predicted == 1)
    assert np.array_equal(model.predict_proba(X) > 0.5, predicted == 1)
    assert model.set_params(threshold=100.0).predict(X).sum() == 0
    np.testing.assert_allclose(model.class_prior_, Y.mean(axis=0))


@pytest.mark.slow
def test_multiple_labels_in_all_forms(small):
    X, y = small
    absent = np.arange(120) % 2 == 0
    Y = _many_labels(y)
    nan = np.where(absent[:, None], np.nan, Y)
    minus = np.where(absent[:, None], -1, Y)
    for kind, forms in (
        (_quick, [minus, minus.tolist(), sp.csr_matrix(minus), sp.coo_array(minus)]),
        (_model, [sp.csr_matrix(minus)]),
    ):
        expected = kind().fit(X, nan)
        for form in forms:
            model = kind().fit(X, form)
            assert np.array_equal(model.components_, expected.components_)
            assert model.score(X, form) == expected.score(X[~absent], Y[~absent])


def test_single_missing_labels_weigh_nothing(small):
    X, y = small
    Y = np.eye(3)[y]
    rng = np.random.default_rng(0)
    start = rng.random((120, 6)), rng.random((6, 64)), rng.random((6, 3))
    single = Y.astype(float)
    single[::2, 1] = np.nan
    model = _quick(init=start).fit(X, single)
    weights = np.where(np.isnan(single), 0.0, 1.0)
    given = model.get_params()
    names = "n_components loss supervision_loss supervision_weight tol max_iter random_state"
    options = {name: given[name] for name in names.split()}
    fit = sf.factorize(X, Y, y_weights=weights, init=start, **options)
    np.testing.assert_allclose(model.components_, fit.A, rtol=1e-6, atol=1e-9)


def test_label_weights_join_with_the_mask(small):
    X, y = small
    hidden = np.where(np.arange(120) % 2 == 0, -1, y)
    model = _quick(solver="hals")
    expected = clone(model).fit(X, hidden).components_
    for form in (np.ones(120), [1] * 120, np.where(hidden < 0, 9.0, 1)):
        components = clone(model).fit(X, hidden, label_weight=form).components_
        np.testing.assert_array_equal(components, expected)


def test_topics_show_the_classes(small):
    X, y = small
    names = [f"pixel{i}" for i in range(64)]
    topics = _model().fit(X, y).topics(names, n_terms=4)
    assert len(topics) == 6
    assert len(topics[0].terms) == 4
    assert list(topics[0].weights) == sorted(topics[0].weights, reverse=True)
    assert [label for label, _ in topics[0].shares] == [0, 1, 2]
    totals = np.array([sum(share for _, share in topic.shares) for topic in topics])
    assert np.all((totals == 0) | (np.abs(totals - 1) < 1e-9))  # a topic may say nothing of labels
    assert totals.any()
    rows = topics.to_rows()
    assert set(rows[0]) == {"topic", "name", "rank", "term", "weight"}
    assert len(rows) == 24
    assert f"topic {totals.argmax()} [" in str(topics)
    refused("feature_names holds 2 names", _model().fit(X, y).topics, ["a", "b"])


def test_topics_as_frames(small):
    pytest.importorskip("pandas")
    X, y = small
    topics = _model().fit(X, y).topics()
    assert topics.to_frame().shape == (60, 5)
    assert topics.shares_to_frame().shape == (6, 3)


@each(
    ("targets", "message"),
    [
        (lambda y: None, "requires y to be passed"),
        (lambda y: y[:-1], "inconsistent numbers of samples"),
        (lambda y: np.full(120, -1), "no labeled sample"),
        (lambda y: [None] * 120, "no labeled sample"),
        (lambda y: np.zeros(120), "one class only"),
        (lambda y: y + 0.5, "continuous"),
        (lambda y: np.where(y == 0, np.inf, y), "infinity"),
        (lambda y: np.column_stack([y, y]), "indicator matrix"),
        (lambda y: np.where(np.eye(120, 3) > 0, -1, 1), r"y\[0\] holds -1 in some columns"),
        (lambda y: np.full((120, 3), np.nan), "no labeled sample"),
    ],
)
def test_bad_targets_are_refused(targets, message, small):
    X, y = small
    model = _model()
    refused(message, model.fit, X, targets(y))
    assert not hasattr(model, "classes_")
