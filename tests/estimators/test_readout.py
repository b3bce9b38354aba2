"""What predicts: readouts, refusals, data that only topics see."""

import contextlib
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits, small_digits
from helpers.each import each
from helpers.guided_models import QUICK, guided_models
from helpers.refused import refused
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import ssnmf_fast as sf

D = "kullback-leibler"


DATA = X, y = small_digits()


@pytest.mark.parametrize("labels", [[0, 1, 2, -1], [0, 0, 1, -1]])
def test_labeled_samples_may_all_be_empty(labels):
    X = sp.csr_array(np.diag([0.0, 0.0, 0.0, 1.0]))
    model = sf.TopicSupervisedNMF(n_free_topics=1, random_state=0).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def papers_model(readout):
    """Return (D,D)-SSNMF with a weight that is far too heavy for few labels."""
    papers = {"loss": D, "supervision_loss": D, "supervision_weight": "balanced"}
    papers |= {"n_components": 20, "init": "random", "random_state": 0, "max_iter": 300, "tol": 0}
    return sf.SSNMFClassifier(readout=readout, **papers)


@pytest.mark.parametrize(("readout", "works"), [("joint", 0), ("refit", 1), ("logistic", 1)])
def test_labels_that_only_labeled_rows_explain(readout, works):
    """The factor S of the fit knows the labels; new samples, and those of the fit, come without."""
    X, y = digits(500)
    shown = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(10)])
    hidden = np.full(len(y), -1)
    hidden[shown] = y[shown]
    model = papers_model(readout).fit(X, hidden)
    inside = (model.representation_[shown] @ model.label_components_).argmax(axis=1)
    assert (inside == y[shown]).mean() == 1
    assert (model.score(X, hidden) > 0.8) == works
    assert (model.score(X[hidden < 0], y[hidden < 0]) > 0.4) == works


def test_refitted_components_are_nonnegative_least_squares():
    from scipy.optimize import nnls

    options = {"n_components": 12, "supervision_loss": "frobenius", "supervision_weight": 1.0}
    model = sf.SSNMFClassifier(readout="refit", init="random", **options, **QUICK).fit(X, y)
    S = model.transform(X[y >= 0])
    for c in range(10):
        exact = nnls(S, (y[y >= 0] == c).astype(float))[0]
        np.testing.assert_allclose(model.refitted_label_components_[:, c], exact, atol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(X), model.transform(X) @ model.refitted_label_components_
    )
    joint = clone(model).set_params(readout="joint").fit(X, y)
    assert not hasattr(joint, "refitted_label_components_")
    np.testing.assert_allclose(joint.components_, model.components_)
    np.testing.assert_allclose(
        joint.decision_function(X), joint.transform(X) @ joint.label_components_
    )


def test_the_papers_setting_is_a_plain_factorization():
    given = {"loss": "frobenius", "supervision_loss": D, "init": "random"} | QUICK
    given |= {"n_components": 12, "supervision_weight": 3.0}
    model = sf.SSNMFClassifier(readout="joint", **given).fit(X, y)
    Y = (y[:, None] == np.arange(10)).astype(float)
    rows = sf.weights.outer(rows=(y >= 0).astype(float))
    result = sf.factorize(X, Y, y_weights=rows, **given)
    np.testing.assert_allclose(model.components_, result.A, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.label_components_, result.B, rtol=1e-6, atol=1e-12)
    assert model.objective_[-1][1] == pytest.approx(result.objective[-1][1])


def test_the_regressor_refits_too():
    target = np.where(y < 0, np.nan, X @ np.linspace(0, 1, 16))
    settings = {"n_components": 6, "supervision_weight": 50.0, **QUICK}
    errors = []
    for readout in ("refit", "joint"):
        model = sf.SSNMFRegressor(readout=readout, **settings).fit(X, target)
        errors.append(np.square(model.predict(X[y >= 0]) - target[y >= 0]).sum())
    assert errors[0] <= errors[1]


def _by_joint(model, X):
    return model.transform(X) @ model.label_components_ + getattr(model, "offset_", 0.0)


def test_batches_predict_by_joint():
    batches = sf.SSNMFClassifier(readout="refit", **QUICK).partial_fit(X, y, classes=range(10))
    np.testing.assert_allclose(batches.decision_function(X), _by_joint(batches, X))
    model = sf.SSNMFClassifier(readout="joint", **QUICK).fit(X, y).partial_fit(X, y)
    assert not hasattr(model, "readout_")
    np.testing.assert_allclose(model.decision_function(X), _by_joint(model, X))


@pytest.mark.parametrize("kind", [sf.SSNMFClassifier, sf.SSNMFRegressor])
def test_batches_warn_that_they_discard_the_readout_of_a_fit(kind):
    model = kind(**({"n_components": 10, "supervision_weight": 1.0} | QUICK))
    targets = y if kind is sf.SSNMFClassifier else np.where(y < 0, np.nan, X.sum(axis=1))
    classes = {"classes": range(10)} if kind is sf.SSNMFClassifier else {}
    anew = clone(model).partial_fit(X, targets, **classes)  # without a warning
    model.fit(X, targets)
    with pytest.warns(UserWarning, match="of the fit cannot be updated.*'joint'"):
        model.partial_fit(X, targets)
    model.partial_fit(X, targets)
    decide = "decision_function" if classes else "predict"
    for one in (anew, model):
        found = getattr(one, decide)(X)
        np.testing.assert_allclose(found.reshape(len(X), -1), _by_joint(one, X))


def test_every_argument_acts_alone():
    """No two arguments together choose another predictor, and neither class has the other's."""
    for settings in ({"supervision_weight": np.inf}, {"n_components": 12}, {"init": "labels"}):
        model = sf.SSNMFClassifier(**QUICK | settings | {"n_components": 12}).fit(X, y)
        assert columns_of(model) == 12 + 16 + 16
        assert not hasattr(model, "committee_")
    committee = {*vars(sf.FewLabelsClassifier())} - {*vars(sf.SSNMFClassifier())}
    assert committee == {"self_training", "class_weight", "class_prior"}
    papers = {*vars(sf.SSNMFClassifier())} - {*vars(sf.FewLabelsClassifier())}
    assert papers == {
        *("n_components", "supervision_loss", "supervision_weight", "solver", "init", "readout"),
        "forget_factor",
    }
    assert not hasattr(sf.FewLabelsClassifier, "partial_fit")


@each(
    ("settings", "error", "message"),
    [
        ({"n_components": 3, "supervision_weight": np.inf}, ValueError, "n_components=3 is too"),
        ({"n_components": "auto"}, TypeError, "n_components must be"),
        ({"n_components": 0}, ValueError, "n_components"),
        ({"supervision_weight": "heavy"}, ValueError, "supervision_weight must be one of"),
        ({"supervision_weight": -1}, ValueError, "supervision_weight"),
        ({"supervision_weight": np.nan}, ValueError, "supervision_weight"),
        ({"readout": "svm"}, ValueError, "readout must be one of 'logistic', 'refit', "),
        ({"readout": None}, ValueError, "readout must be one of"),
        ({"readout": "committee"}, ValueError, "readout must be one of"),
        (
            {"supervision_weight": "auto"},
            ValueError,
            "supervision_weight must be one of 'balanced'",
        ),
        ({"threshold": "auto"}, TypeError, "threshold must be"),
        ({"threshold": None}, TypeError, "threshold must be"),
        ({"init": "means"}, ValueError, "init must be"),
        ({"init": (np.ones((120, 10)),)}, ValueError, "init holds 1 arrays"),
        ({"max_iter": -1}, ValueError, "max_iter"),
    ],
)
def test_bad_parameters_are_refused(settings, error, message):
    refuses(sf.SSNMFClassifier(**(QUICK | settings)), error, message)


@each(
    ("settings", "error", "message"),
    [
        ({"threshold": "best"}, ValueError, "threshold must be 'auto' or a number"),
        ({"threshold": None}, TypeError, "threshold must be"),
        ({"self_training": "often"}, ValueError, "self_training must be one of 'auto'"),
        ({"self_training": -1}, ValueError, "self_training"),
        ({"self_training": 0.5}, TypeError, "self_training"),
        ({"class_weight": "rare"}, ValueError, "class_weight must be"),
        ({"class_weight": {77: 1.0}}, ValueError, "class_weight must be"),
        ({"class_weight": {1: -1.0}}, ValueError, r"class_weight\[1\]"),
        ({"class_weight": [1, 2]}, ValueError, "class_weight must be"),
        ({"class_prior": "even"}, ValueError, "class_prior must be one of 'labels'"),
        ({"class_prior": ""}, ValueError, "class_prior must be one of 'labels'"),
        ({"class_prior": {77: 1.0}}, ValueError, "class_prior must be None, 'labels' or a dict"),
        ({"class_prior": {0: 1.0}}, ValueError, "numbers for all of"),
        ({"class_prior": [1, 2, 3, 4, 5, 6]}, ValueError, "class_prior has shape"),
        ({"class_prior": 0.5}, ValueError, "class_prior has shape"),
        ({"class_prior": np.zeros(10)}, ValueError, "class_prior is 0 for all classes"),
    ],
)
def test_bad_parameters_of_the_committee_are_refused(settings, error, message):
    refuses(sf.FewLabelsClassifier(**(QUICK | settings)), error, message)


def refuses(model, error, message):
    before = set(vars(model))
    refused(message, model.fit, *DATA, error=error)
    assert set(vars(model)) <= before | {"n_features_in_"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), r"{} has shape \(5,\)"),
        (np.ones((120, 10)), r"{} has shape \(120, 10\)"),
        (-np.ones(120), r"the first is {}\[0\] = -1"),
        (np.full(120, np.nan), "{} contains NaN"),
        (np.zeros(120), "weights of all labels are zero"),
        (np.where(np.arange(120) < 3, 1.0, 0.0), "one class"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    for kind in (sf.SSNMFClassifier, sf.FewLabelsClassifier):
        fitted = kind(**QUICK).fit(X, y)
        before = dict(vars(fitted))
        for name in ("sample_weight", "label_weight"):
            refused(message.format(name), fitted.fit, X, y, **{name: weights})
            assert all(vars(fitted)[key] is before[key] for key in before)


def test_unknown_readouts_are_refused():
    model, targets = guided_models(*DATA)["regressor"]
    refused("readout must be one of", model.set_params(readout="nearest").fit, DATA[0], targets)
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("kind", ["topics", "constrained", "margin", "bayesian"])
def test_without_a_readout_nothing_predicts(kind):
    model, targets = guided_models(X, y)[kind]
    with_one = clone(model).fit(X, targets)
    model.set_params(predicts=False).fit(X, targets)
    assert np.array_equal(model.transform(X), with_one.transform(X))
    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")
    for method in methods:
        assert hasattr(with_one, method)
        assert not hasattr(model, method)
    with pytest.raises(AttributeError) as caught:
        model.predict(X)
    assert "predicts=True" in str(caught.value.__cause__)


def columns_of(model):
    return model.readout_.coefficients.shape[1]


def file_of(X, folder, **options):
    sp.save_npz(folder / "X.npz", X, compressed=False)
    return sf.io.open_csr(folder / "X.npz", **options)


@pytest.mark.slow
def test_committee_of_data_on_disk(tmp_path):
    matrix = sp.csr_array(X)
    in_memory = sf.FewLabelsClassifier(**QUICK).fit(matrix, y)
    for memory in (1 << 28, 100_000):  # all samples, or one block of some, are read at a time
        file = file_of(matrix, tmp_path, memory=memory)
        model = sf.FewLabelsClassifier(**QUICK).fit(file, y)
        assert model.committee_.keys() == in_memory.committee_.keys()
        assert model.validation_folds_.shape == (len(y),)
        assert not (model.validation_folds_[y < 0] >= 0).any()
        assert model.score(file, y) > in_memory.score(matrix, y) - 0.02
        np.testing.assert_allclose(
            model.predict_proba(file), model.predict_proba(matrix), atol=1e-5
        )
    # The same samples are in memory, and their topics nearly the same.
    model = sf.FewLabelsClassifier(**QUICK).fit(file_of(matrix, tmp_path), y)
    assert (model.predict(matrix) == in_memory.predict(matrix)).mean() > 0.98


@pytest.mark.slow
def test_too_little_memory_for_the_classes(tmp_path):
    """Without room for a sample of each class, data on disk are seen through their topics only."""
    file = file_of(sp.csr_array(X), tmp_path, memory=2000)
    with pytest.warns(UserWarning, match="no member but topics.*`memory`.*open_csr"):
        model = sf.FewLabelsClassifier(**QUICK).fit(file, y)
    assert set(model.committee_) == {"topics"}
    assert columns_of(model) == len(model.components_)
    assert model.score(file, y) > 0.6


@pytest.mark.slow
def test_other_classifiers_see_data_on_disk_through_topics(tmp_path):
    matrix = sp.csr_array(X)
    file = file_of(matrix, tmp_path)
    model = sf.TopicSupervisedNMF(labeled_weight=1, **QUICK).fit(file, y)
    assert columns_of(model) == len(model.components_)
    assert model.readout_.directions is None
    np.testing.assert_allclose(model.predict_proba(file), model.predict_proba(matrix), atol=1e-5)
    assert model.score(file, y) > 0.6
    model.fit(matrix, y)
    assert columns_of(model) > len(model.components_) + X.shape[1]
    np.testing.assert_allclose(model.predict_proba(file), model.predict_proba(matrix), atol=1e-5)


@pytest.mark.slow
def test_entries_without_weight_have_no_say():
    seen = (np.random.default_rng(0).random(X.shape) > 0.2).astype(float)
    spoiled = np.where(seen > 0, X, 100.0)
    for model in (
        sf.FewLabelsClassifier(**QUICK),
        sf.papers.ConstrainedNMF(n_components=10, **QUICK),
    ):
        expected = clone(model).fit(X, y, X_weights=seen)
        model.fit(spoiled, y, X_weights=seen)
        np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
        assert model.score(X, y) > 0.5
        if hasattr(model, "committee_"):
            assert {"topics", "features", "directions", "neighbors"} <= model.committee_.keys()
        else:
            assert columns_of(model) == len(model.components_)


@pytest.mark.slow
def test_weights_that_hide_nothing_change_no_committee():
    expected = sf.FewLabelsClassifier(**QUICK).fit(X, y)
    ones = sf.weights.outer(rows=np.ones(len(X)))
    model = sf.FewLabelsClassifier(**QUICK).fit(X, y, X_weights=ones)
    assert model.committee_.keys() == expected.committee_.keys()
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-3)


@pytest.mark.slow
def test_missing_entries():
    holes = np.random.default_rng(0).random(X.shape) < 0.15
    missing = np.where(holes, np.nan, X)
    model = sf.FewLabelsClassifier(**QUICK).fit(missing, y)
    assert model.score(missing, y) > 0.7
    assert np.isfinite(model.predict_proba(missing)).all()
    assert np.isnan(missing).sum() == holes.sum()
    nothing = np.full((1, X.shape[1]), np.nan)
    np.testing.assert_allclose(model.predict_proba(nothing)[0], model.class_prior_)


def blas_threads():
    return [part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"]


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_blas_has_one_thread_in_the_readout(several, monkeypatch):
    X, y = DATA
    y = np.column_stack([y == 0, y == 1]).astype(int) if several else y
    fit, seen = LogisticRegression.fit, []

    def noted(self, *args, **kwargs):
        seen.extend(blas_threads())
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(LogisticRegression, "fit", noted)
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        model = sf.FewLabelsClassifier(**QUICK).fit(X, y)
        decisions = model.decision_function(X)
        assert set(seen) == {1}
        assert blas_threads() == before
    with threadpool_limits(1, "blas"):
        again = clone(model).set_params(n_threads=2).fit(X, y)
        np.testing.assert_array_equal(again.decision_function(X), decisions)


def test_blas_gets_its_threads_back_from_several_threads():
    X, together, seen = np.random.default_rng(0).random((6, 5)), threading.Barrier(4), []

    def watched_fit(callback):
        model = sf.NMF(n_components=1, max_iter=2, tol=0, callback=callback)
        settings = {"n_splits": 1, "n_starts": 1, "n_threads": 1, "random_state": 0}
        return sf.choose_rank(X, [1], estimator=model, **settings)

    def body(fails):
        def look(state):
            if state.iteration == 0:
                together.wait(10)
                seen.extend(blas_threads())
                together.wait(10)
                if fails:
                    raise OSError

        for _ in range(5):
            with contextlib.suppress(OSError):
                watched_fit(look)

    def inner(state):
        seen.extend(blas_threads())

    def outer(state):
        watched_fit(inner)
        seen.extend(blas_threads())

    before = blas_threads()
    threads = [threading.Thread(target=body, args=(k % 2 == 0,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 in seen
    assert blas_threads() == before
    seen.clear()
    watched_fit(outer)
    assert set(seen) == {1}
    assert blas_threads() == before


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_sparse_samples_may_have_long_indices(several):
    """The solvers of scikit-learn for several labels take short ones alone."""
    X, y = DATA
    short = sp.csr_array(X)
    parts = short.data, short.indices.astype(np.int64), short.indptr.astype(np.int64)
    long = sp.csr_array(parts, shape=X.shape)
    long.indices, long.indptr = parts[1:]
    if several:
        y = np.stack([y == 0, y > 1], axis=1).astype(int)
    model = sf.SSNMFClassifier(n_components=12, **QUICK)
    expected = clone(model).fit(short, y).predict_proba(short)
    assert np.array_equal(model.fit(long, y).predict_proba(long), expected)
    assert long.indices.dtype == long.indptr.dtype == np.int64
