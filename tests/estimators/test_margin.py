"""MarginNMF: support vectors, features, labels in all their forms."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.refused import refused
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import ssnmf_fast as sf

X, y = digits(600)


def _model(**parameters):
    defaults = {"n_components": 8, "random_state": 0, "tol": 0, "max_iter": 30}
    return sf.papers.MarginNMF(**(defaults | parameters))


def root_mean_square_length(X):
    return np.sqrt(np.mean(np.sum(X**2, axis=1)))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_dual_coefficients_make_up_the_normal_vectors(kind):
    X, y = digits(184, n_class=3)
    hidden = np.where(np.arange(len(y)) % 2, y, -1)
    X = X / root_mean_square_length(X[hidden >= 0])
    alpha = _model(C=0.5, max_iter=1).fit(kind(X), hidden).alpha_.toarray()
    assert alpha.shape == (len(y), 6)
    assert (alpha >= 0).all()
    assert not alpha[hidden < 0].any()
    pairs = [(0, 1), (0, 2), (1, 2)]
    for machine, (first, second) in enumerate(pairs):
        plus, minus = alpha[:, machine], alpha[:, 3 + machine]
        assert not plus[hidden != second].any()
        assert not minus[hidden != first].any()
        chosen = np.isin(hidden, [first, second])
        svm = LinearSVC(C=0.5, tol=1e-8, max_iter=100_000).fit(X[chosen], hidden[chosen])
        np.testing.assert_allclose((plus - minus) @ X, svm.coef_[0], atol=2e-3)
    larger = _model(C=0.5, max_iter=1).fit(kind(8 * X), hidden).alpha_
    np.testing.assert_allclose(larger.toarray(), alpha, rtol=1e-9)  # one number scales the samples


def test_one_machine_for_two_classes_and_for_each_label():
    assert _model().fit(X, y > 4).n_directions_ == 2
    assert _model().fit(X, y).n_directions_ == 90
    labels = np.column_stack([y > 4, y % 2 == 0, np.ones(600)]).astype(float)
    labels[::3] = np.nan
    model = _model().fit(X, labels)
    assert model.n_directions_ == 4  # all labeled samples have the third label: no machine for it
    assert not model.alpha_[::3].count_nonzero()


@pytest.mark.slow
def test_supervised_features_are_worth_it():
    """With few labels, at the same rank, the machine does better than on features of plain NMF."""
    scores = {"margin": [], "plain": []}
    for seed in range(3):
        known = np.random.default_rng(seed).permutation(450)[:90]
        hidden = np.full(450, -1)
        hidden[known] = y[known]
        options = {"random_state": seed, "tol": 0, "max_iter": 100}
        models = {
            "margin": sf.papers.MarginNMF(n_components=10, C=12, **options),
            "plain": sf.NMF(n_components=10, loss="kullback-leibler", **options),
        }
        for name, model in models.items():
            model.fit(X[:450], hidden)
            svm = LinearSVC(C=10).fit(model.transform(X[known]), y[known])
            scores[name].append(svm.score(model.transform(X[450:]), y[450:]))
    assert np.mean(scores["margin"]) > np.mean(scores["plain"])


def test_features_keep_inner_products():
    model = _model().fit(X, y)
    Z = model.transform(X)
    S = clone(model).set_params(features="representation").fit_transform(X, y)
    SA = S @ model.components_
    np.testing.assert_allclose(Z @ Z.T, SA @ SA.T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.inverse_transform(Z), SA, rtol=1e-5, atol=1e-6)
    assert (S >= 0).all()


def test_given_coefficients_take_the_place_of_machines():
    expected = _model().fit(X, y)
    alpha = expected.alpha_
    for given in (alpha, alpha.toarray(), alpha.tocsc()):
        model = _model().fit(X, alpha=given)
        assert np.array_equal(model.components_, expected.components_)
    assert np.array_equal(_model().fit(X, y[::-1], alpha=alpha).components_, expected.components_)


def test_the_coefficients_are_kept_and_saved(tmp_path):
    model = _model().fit(X, y)
    assert model.alpha_.shape == (600, model.n_directions_)
    again = _model().fit(X, alpha=model.alpha_)
    assert np.array_equal(again.components_, model.components_)
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert (loaded.alpha_ != model.alpha_).nnz == 0
    given = np.abs(model.alpha_.toarray())
    own = _model().fit(X, alpha=given)
    given[:] = 0
    assert own.alpha_.count_nonzero() == model.alpha_.count_nonzero()


@pytest.mark.slow
def test_weight_of_the_fit():
    model = _model().fit(X, y)
    assert model.supervision_weight_ == pytest.approx(X.sum() / (model.alpha_.T @ X).sum())
    assert _model(supervision_weight=2.5).fit(X, y).supervision_weight_ == 2.5
    same = _model(supervision_weight=model.supervision_weight_).fit(X, y)
    assert np.array_equal(same.components_, model.components_)


@pytest.mark.slow
def test_in_a_pipeline_and_a_search():
    pipeline = make_pipeline(_model(), LinearSVC())
    search = GridSearchCV(
        pipeline, {"marginnmf__supervision_weight": [0.1, "balanced"]}, cv=2, n_jobs=1
    ).fit(X[:200], y[:200])
    assert search.best_score_ > 0.7


def test_bad_input_is_refused():
    refused("features must be one of", _model(features="other").fit, X, y)
    refused("C must be above 0", _model(C=0).fit, X, y)
    refused("requires y", _model().fit, X)
    refused("y has one class only", _model().fit, X, np.ones(600))
    refused("No label in y separates labeled samples", _model().fit, X, np.ones((600, 2)))
    refused("alpha has shape", _model().fit, X, alpha=np.ones((3, 2)))
    refused("Negative values in data passed to alpha", _model().fit, X, alpha=-np.ones((600, 2)))
    refused("NaN", _model().fit, np.where(X > 0.9, np.nan, X), y)
    refused("supervision_weight must be", _model(supervision_weight="huge").fit, X, y)
    refused("one column for each of the 8 components", _model().fit(X, y).inverse_transform, X)


def test_indices_of_64_bits():
    X = sp.random_array((30, 8), density=0.5, format="csr", rng=0)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    y = np.arange(30) % 2
    narrow, other = (
        sf.papers.MarginNMF(n_components=2, random_state=0).fit(Z, y) for Z in (X, wide)
    )
    assert np.array_equal(narrow.components_, other.components_)


def test_labels_of_the_paper_warn_and_have_their_parameter():
    labels = np.where(y < 5, -1, 1)
    labels[::3] = 0  # unlabeled in the paper
    with pytest.warns(UserWarning, match="-1, 0 and 1.*unlabeled=0"):
        assert _model().fit(X, labels).classes_.tolist() == [0, 1]
    model = _model(unlabeled=0).fit(X, labels)
    assert model.classes_.tolist() == [-1, 1]
    assert not model.alpha_.toarray()[::3].any()
    _model(unlabeled=-1).fit(X, labels)
