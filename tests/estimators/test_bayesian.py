"""BayesianNMF and SupervisedBayesianNMF."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.each import each
from helpers.refused import refused
from scipy.optimize import linear_sum_assignment
from scipy.stats import gamma
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import ssnmf_fast as sf

ESTIMATORS = [sf.BayesianNMF, sf.papers.SupervisedBayesianNMF]


DIGITS = X, y = 16 * digits(300)[0], digits(300)[1]


@pytest.fixture(scope="module")
def counts():
    """Counts of a known model: X, S, A."""
    rng = np.random.default_rng(0)
    S, A = rng.gamma(0.5, 2, (300, 4)), rng.gamma(0.3, 5, (4, 60))
    return rng.poisson(S @ A).astype(float), S, A


def _fitted(kind, X, y=None, **parameters):
    given = {"n_components": 6, "tol": 0, "max_iter": 30, "random_state": 0} | parameters
    return kind(**given).fit(X, y)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attributes_and_dtype(kind, dtype):
    model = _fitted(kind, X.astype(dtype), y)
    groups = 1 if kind is sf.BayesianNMF else 10
    assert model.components_.shape == (6, 64)
    assert model.components_rate_.shape == (6,)
    assert model.representation_.shape == (300, 6)
    assert model.representation_rates_.shape == (groups, 6)
    assert model.representation_groups_.dtype == np.int32
    assert model.n_iter_ == 30
    assert [iteration for iteration, _ in model.objective_] == [0, 10, 20, 30]
    assert model.lower_bound_ == -model.objective_[-1][1]
    S = model.transform(X.astype(dtype))
    arrays = [model.components_, model.representation_, S]
    arrays += [*model.interval_components(), *model.interval_representation()]
    assert {a.dtype for a in arrays} == {np.dtype(dtype)}
    assert np.linalg.norm(model.inverse_transform(S) - X) < 0.5 * np.linalg.norm(X)
    assert len(model.topics(n_terms=3)) == 6


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_equals_dense(kind, container):
    dense, sparse = _fitted(kind, X, y), _fitted(kind, container(X), y)
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-10)
    np.testing.assert_allclose(sparse.transform(container(X)), dense.transform(X), rtol=1e-8)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_tools_of_scikit_learn(kind):
    model = _fitted(kind, X, y)
    S = model.transform(X)
    assert np.array_equal(clone(model).fit_transform(X, y), S)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), S)
    assert clone(model).get_params() == model.get_params()
    assert model.get_feature_names_out()[0] == f"{kind.__name__.lower()}0"
    pipeline = make_pipeline(clone(model), LogisticRegression(max_iter=1000))
    assert pipeline.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_new_samples_come_near_to_those_of_the_fit(kind):
    model = _fitted(kind, X, y, max_iter=200)
    S = model.transform(X)
    distance = np.linalg.norm(S - model.representation_) / np.linalg.norm(S)
    assert distance < (0.02 if kind is sf.BayesianNMF else 0.4)
    some = model.transform(X[5:8])
    np.testing.assert_allclose(some, S[5:8], rtol=1e-10)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_bad_data_is_refused(kind, tmp_path):
    bad = X.copy()
    bad[2, 5] = -1
    refused(r"Negative values in data passed to X.*X\[2, 5\]", _fitted, kind, bad, y)
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad[2, 5] = value
        refused(name, _fitted, kind, bad, y)
        refused(name, _fitted(kind, X, y).transform, bad)
    stored = sp.csr_array(X)
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(stored, name))
    with pytest.raises(TypeError, match=r"X is on disk, and .*BayesianNMF needs it in memory"):
        _fitted(kind, sf.io.open_csr(tmp_path, n_features=64), y)


@each(
    ("parameters", "error", "message"),
    [
        ({"A_shape": "learn"}, ValueError, "A_shape must be 'auto' or a number from 1e-06 to 1e"),
        ({"A_shape": 0.0}, ValueError, "A_shape must be 'auto' or a number from 1e-06"),
        ({"A_mean": -1.0}, ValueError, "A_mean must be finite and at least 0"),
        ({"A_mean": np.nan}, ValueError, "A_mean must be finite"),
        ({"A_mean": 1e10}, ValueError, "A_mean must be 'auto' or a number from 1e-09 to 1e"),
        ({"A_shape": True}, TypeError, "A_shape must be a number"),
        ({"A_shape": None}, TypeError, "A_shape must be a number"),
        ({"burn_in": -1}, ValueError, "burn_in must be at least 0"),
        ({"burn_in": 1.5}, TypeError, "burn_in must be an integer"),
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"max_iter": -1}, ValueError, "max_iter must be at least 0"),
        ({"tol": -1.0}, ValueError, "tol must be finite"),
        ({"init": "zeros"}, ValueError, "init must be one of"),
        ({"init": (np.ones((3, 6)), np.ones((6, 64)))}, ValueError, r"init\[0\] \(S\) has shape"),
        ({"random_state": "x"}, ValueError, "random_state must be"),
    ],
)
@each("kind", ESTIMATORS)
def test_bad_parameters_are_refused(kind, parameters, error, message):
    refused(message, _fitted, kind, *DIGITS, **parameters, error=error)


def test_parameters_of_one_model_are_refused_too():
    for name in ("S_shape", "S_mean"):
        refused(f"{name} must be 'auto' or", _fitted, sf.BayesianNMF, X, **{name: 1e-12})
    with pytest.raises(ValueError, match="rate_shape must be 'auto' or a number from"):
        _fitted(sf.papers.SupervisedBayesianNMF, X, y, rate_shape="learn")
    with pytest.raises(ValueError, match="rate_mean must be 'auto' or"):
        _fitted(sf.papers.SupervisedBayesianNMF, X, y, rate_mean=0)


def test_bad_labels_are_refused():
    refused("requires y to be passed", _fitted, sf.papers.SupervisedBayesianNMF, X, None)
    refused("no labeled sample", _fitted, sf.papers.SupervisedBayesianNMF, X, np.full(300, np.nan))
    refused("inconsistent numbers of samples", _fitted, sf.papers.SupervisedBayesianNMF, X, y[:10])


def test_a_failed_fit_leaves_no_attributes():
    model = sf.BayesianNMF(A_shape=-1)
    refused("A_shape", model.fit, DIGITS[0])
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_convergence_warning_and_callback(kind):
    with pytest.warns(ConvergenceWarning, match="max_iter=3") as caught:
        _fitted(kind, X, y, tol=1e-9, max_iter=3)
    assert caught[0].filename == __file__
    seen = []

    def stop(state):
        seen.append((state.iteration, state.objective))
        assert state.S.shape == (300, 6)
        assert not state.A.flags.writeable
        return state.iteration == 10

    model = _fitted(kind, X, y, callback=stop, tol=1e-9)
    assert model.n_iter_ == 10
    assert seen == model.objective_


def _matched(model, A):
    """Components in the order of the true ones, and the factors that bring them to their scale."""
    shares, truth = (F / F.sum(axis=1, keepdims=True) for F in (model.components_, A))
    _, order = linear_sum_assignment(np.abs(truth[:, None] - shares[None]).sum(axis=2))
    return order, A.sum(axis=1) / model.components_[order].sum(axis=1)


def test_recovery_of_a_known_model(counts):
    X, S, A = counts
    model = _fitted(sf.BayesianNMF, X, n_components=4, max_iter=300, S_shape="auto")
    mean = S @ A
    error = np.linalg.norm(model.representation_ @ model.components_ - mean)
    assert error < 0.5 * np.linalg.norm(X - mean)
    order, factors = _matched(model, A)
    np.testing.assert_allclose(factors[:, None] * model.components_[order], A, atol=0.12 * A.max())
    assert 0.1 < model.A_shape_ < 0.5  # of the truth: 0.3
    assert 0.3 < model.S_shape_ < 0.8  # 0.5


def test_intervals(counts):
    X, S, A = counts
    model = _fitted(sf.BayesianNMF, X, n_components=4, max_iter=300, S_shape="auto")
    order, factors = _matched(model, A)
    coverage = []
    for level in (0.5, 0.9, 0.99):
        low, high = (factors[:, None] * side[order] for side in model.interval_components(level))
        of_A = np.mean((low <= A) & (high >= A))
        low, high = (side[:, order] / factors for side in model.interval_representation(level))
        coverage.append((of_A, np.mean((low <= S) & (high >= S))))
    assert np.all(np.diff(coverage, axis=0) > 0)
    assert np.all(np.array(coverage[1]) > 0.4)  # narrow, as those of mean-field posteriors are
    low, high = model.interval_components(0.8)
    posterior = gamma(
        model.components_ * model.components_rate_[:, None],
        scale=1 / model.components_rate_[:, None],
    )
    np.testing.assert_allclose(posterior.cdf(high) - posterior.cdf(low), 0.8, rtol=1e-6)
    for level in (0, 1, 1.5):
        refused("level must be above 0 and below 1", model.interval_components, level)
    refused("level must be a number", model.interval_representation, "all", error=TypeError)


def test_small_shapes_give_sparse_factors():
    share = []
    for S_shape in (3, 1, 0.1):
        relative = _fitted(sf.BayesianNMF, X, S_shape=S_shape, max_iter=100).representation_
        relative = relative / relative.max()
        share.append(np.mean(relative < 0.01))
    assert share[0] < share[1] < share[2]


@pytest.fixture(scope="module")
def labeled():
    """Counts of three classes, each with two components of its own, and one that all share."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 40)
    uses = np.full((3, 7), 0.02)
    for c in range(3):
        uses[c, [2 * c, 2 * c + 1, 6]] = 3
    S = rng.exponential(uses[np.searchsorted(["a", "b", "c"], y)])
    return rng.poisson(S @ rng.gamma(0.2, 5, (7, 50))).astype(float), y


def test_rates_show_which_classes_use_a_component(labeled):
    X, y = labeled
    model = _fitted(sf.papers.SupervisedBayesianNMF, X, y, n_components=7, max_iter=200)
    assert list(model.classes_) == ["a", "b", "c"]
    use = 1 / model.label_rates_
    means = np.array([model.representation_[y == c].mean(axis=0) for c in model.classes_]).T
    assert np.corrcoef(np.log(use).ravel(), np.log(means).ravel())[0, 1] > 0.9
    dominated = use.max(axis=1) > 5 * np.sort(use, axis=1)[:, -2]
    assert dominated.sum() >= 4
    shares = dict(model.topics()[int(np.argmax(use[:, 0]))].shares)
    assert shares["a"] == max(shares.values())


def test_unlabeled_samples_are_a_class_of_their_own(labeled):
    X, y = labeled
    some = np.where(np.arange(len(y)) % 4 == 0, None, y)
    model = _fitted(sf.papers.SupervisedBayesianNMF, X, some)
    assert model.n_labeled_ == 90
    assert model.representation_rates_.shape == (4, 6)
    assert model.label_rates_.shape == (6, 3)
    assert set(model.representation_groups_[some == None]) == {3}  # noqa: E711
    codes = np.where(np.arange(len(y)) % 4 == 0, -1, np.searchsorted(["a", "b", "c"], y))
    again = _fitted(sf.papers.SupervisedBayesianNMF, X, codes)
    assert np.array_equal(again.components_, model.components_)
    whole = _fitted(sf.papers.SupervisedBayesianNMF, X, y)
    assert whole.representation_rates_.shape == (3, 6)
    assert (model.rate_shape_, whole.rate_shape_) == (30, 40)  # samples of a class
    assert 1 / whole.new_sample_rate_ == pytest.approx(whole.representation_.mean(), rel=1e-12)
