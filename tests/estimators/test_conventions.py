"""The conventions of scikit-learn, and its tools around the estimators."""

import functools
import inspect
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.each import each
from helpers.random_examples import ALL
from helpers.refused import refused
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import ssnmf_fast as sf
from ssnmf_fast import estimators

GUIDED = [sf.TopicSupervisedNMF, sf.papers.MarginNMF, sf.papers.ConstrainedNMF]
ESTIMATORS = [sf.NMF, sf.SSNMFClassifier, sf.SSNMFRegressor, *GUIDED]
WHOLE = [
    sf.BayesianNMF,
    sf.papers.SupervisedBayesianNMF,
    sf.SeededTopics,
]  # no weights or missing entries

# Two checks feed negative data to estimators whose tags say that they take none.  The tests of the
# same properties on nonnegative data follow below.
_NEGATIVE_X = {
    "check_decision_proba_consistency": "X of this check has negative entries (positive_only)"
}


def _other_weights(reason):
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


_NEGATIVE_DATA = {
    "SSNMFClassifier": {**_NEGATIVE_X},
    "HierarchicalClassifier": {
        **_NEGATIVE_X,
        **_other_weights("samples are put into folds at random"),
    },
    "TopicSupervisedNMF": _NEGATIVE_X,
    "MarginNMF": _NEGATIVE_X,
    "ConstrainedNMF": _NEGATIVE_X,
    "SupervisedBayesianNMF": _NEGATIVE_X,
    "SeededTopics": _NEGATIVE_X,
    "SSNMFRegressor": _other_weights("a random start has other numbers for a repeated sample"),
}

_TENSOR = "X is a tensor: the message names its modes"
_TENSORS = {
    "check_n_features_in_after_fitting": _TENSOR,
    "check_estimators_empty_data_messages": _TENSOR,
    "check_fit2d_predict1d": _TENSOR,
    "check_complex_data": "a TypeError, as for all functions; the check asks for a ValueError",
}
_DATED = {"check_fit2d_1sample": "topics over time need two documents: the message names slices"}
_FAILED = {**_NEGATIVE_DATA, "NonnegativeCP": _TENSORS, "Dated": _DATED}


class Dated(sf.DynamicTopics):
    """Documents of which two belong to each month: the checks know of no dates."""

    def fit(self, X, y=None):
        n_documents = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
        months = np.datetime64("2000-01", "M") + np.arange(n_documents) // 2
        return super().fit(X, months)

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)

    def partial_fit(self, X, y=None):
        months = np.datetime64("2000-01", "M") + np.arange(len(np.asarray(X))) // 2
        return super().partial_fit(X, months)


def of_scikit_learn(estimators, *marks):
    """Parametrize a test by the checks of scikit-learn, with the warnings that their data give."""
    warned = (
        ":sklearn.exceptions.ConvergenceWarning",
        ".*optimality conditions:RuntimeWarning",
        "Of the [0-9]+ components:UserWarning",
        "The cross-validated accuracy:UserWarning",  # labels at random
        "The readout of the fit cannot be updated:UserWarning",
        "The only labels in y are -1 and 1:UserWarning",
    )
    expected = {"expected_failed_checks": lambda e: _FAILED.get(type(e).__name__, {})}
    marks = (
        *marks,
        *(pytest.mark.filterwarnings(f"ignore:{message}") for message in warned),
        parametrize_with_checks(estimators, **expected),
    )
    return lambda test: functools.reduce(lambda marked, mark: mark(marked), marks, test)


# One of each way to learn; the others have much in common with one of them.
@of_scikit_learn(
    [
        *(sf.NMF(), sf.SSNMFClassifier(3, init="labels"), sf.SSNMFRegressor(), sf.BayesianNMF()),
        *(sf.NonnegativeCP(2), Dated(2)),
    ]
)
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


# A tree fits several committees, and takes three times as long as all others together.
RELATIVES = [kind() for kind in (*GUIDED, sf.papers.SupervisedBayesianNMF, sf.SeededTopics)]
TREE = sf.HierarchicalClassifier(sf.FewLabelsClassifier(random_state=0))
if ALL:
    RELATIVES.append(TREE)


@of_scikit_learn(RELATIVES, pytest.mark.slow)
def test_conventions_of_scikit_learn_hold_for_relatives(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The cross-validated accuracy:UserWarning")  # labels at random
@pytest.mark.filterwarnings("ignore:The only labels in y are -1 and 1:UserWarning")
@pytest.mark.parametrize("model", [sf.FewLabelsClassifier(), TREE])
@each(
    "check",
    [
        estimator_checks.check_classifiers_train,
        estimator_checks.check_estimators_pickle,
        estimator_checks.check_fit_idempotent,
        estimator_checks.check_methods_sample_order_invariance,
    ],
)
def test_conventions_hold_for_a_committee(model, check):
    check(type(model).__name__, clone(model))


def test_decision_and_probability_rank_alike():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.poisson([5, 1], (50, 2)), rng.poisson([2, 4], (50, 2))]) + 0.1
    model = sf.SSNMFClassifier(n_components=2, random_state=0).fit(X, np.repeat([0, 1], 50))
    share, decision = model.predict_proba(X)[:, 1], model.decision_function(X)
    order = np.argsort(share)
    assert np.all(np.diff(decision[order]) >= -1e-12)
    assert np.array_equal(decision > 0, model.predict(X) == 1)


def test_regressor_takes_several_targets():
    rng = np.random.default_rng(0)
    X = rng.random((11, 10))
    y = X @ rng.random((10, 5))
    predicted = sf.SSNMFRegressor(random_state=0, tol=0).fit(X, y).predict(X)
    assert predicted.shape == y.shape
    assert predicted.dtype == np.float64


DIGITS = X, y = digits(300)[0], digits(300)[1] % 8


def _fitted(kind, X, y, **parameters):
    if kind is sf.TopicSupervisedNMF:  # it has a component for each of the eight classes
        parameters["init"] = "random"
    elif kind is not sf.SeededTopics:  # nor has this one another number
        parameters["n_components"] = 8
    return kind(tol=0, max_iter=20, random_state=0, **parameters).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fit_transform_is_fit_then_transform(kind):
    model = _fitted(kind, X, y)
    weights = sf.weights.outer(columns=np.linspace(1, 2, X.shape[1]))
    assert np.array_equal(clone(model).fit_transform(X, y), model.transform(X))
    weighted = clone(model).fit(X, y, X_weights=weights).transform(X, X_weights=weights)
    assert np.array_equal(clone(model).fit_transform(X, y, X_weights=weights), weighted)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_attributes_and_dtype(kind):
    model = _fitted(kind, X.astype(np.float32), y)
    assert model.components_.shape == (8, 64)
    assert model.representation_.shape == (300, 8)
    assert model.n_iter_ == 20
    assert model.objective_[-1][0] == 20
    arrays = [model.components_, model.representation_, model.transform(X.astype(np.float32))]
    if hasattr(model, "label_components_"):
        arrays.append(model.label_components_)
    assert {a.dtype for a in arrays} == {np.dtype(np.float32)}
    back = model.inverse_transform(model.transform(X.astype(np.float32)))
    assert back.dtype == np.float32
    assert np.linalg.norm(back - X) < 0.5 * np.linalg.norm(X)
    refused("one column for each of the 8 components", model.inverse_transform, X)


@each("kind", [*ESTIMATORS, *WHOLE])
def test_shares(kind):
    X, y = DIGITS
    X = np.vstack([X[:200], 1e-300 * X[1], 0 * X[0]])
    model = _fitted(kind, X[:200], y[:200])
    found = model.topic_proportions(X)
    S = model._represent(X, None)
    amounts = S[:200] * model.components_.sum(axis=1)
    np.testing.assert_allclose(found[:200], amounts / amounts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found[S.any(axis=1)].sum(axis=1), 1)
    assert (found[~S.any(axis=1)] == 0).all()
    assert found.dtype == np.float64
    model.components_ = model.components_.astype(np.float32)
    assert model.topic_proportions(X[:3].astype(np.float32)).dtype == np.float64
    refused("64 features", model.topic_proportions, X[:, :5])


@pytest.mark.slow
@each("kind", ESTIMATORS)
@each("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_equals_dense(kind, container):
    # "auto" of a Kullback-Leibler fit to a small `tol` ends with descent for sparse data alone.
    rule = {"solver": "mm"} if kind is sf.SSNMFClassifier else {}
    dense, sparse = _fitted(kind, X, y, **rule), _fitted(kind, container(X), y, **rule)
    # A restart of the momentum magnifies rounding.
    close = {"rtol": 1e-8, "atol": 1e-10} if kind is not GUIDED[0] else {"rtol": 1e-6, "atol": 1e-8}
    np.testing.assert_allclose(sparse.components_, dense.components_, **close)
    np.testing.assert_allclose(
        sparse.transform(container(X)), dense.transform(X), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_pandas_in_and_out(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    model = _fitted(kind, frame, pd.Series(y)).set_output(transform="pandas")
    S = model.transform(frame)
    assert list(S.columns) == list(model.get_feature_names_out())
    named = kind is sf.TopicSupervisedNMF
    assert S.columns[0] == ("0" if named else f"{kind.__name__.lower()}0")
    assert model.feature_names_in_[3] == "pixel3"
    assert model.topics(n_terms=2)[0].terms[0].startswith("pixel")
    np.testing.assert_allclose(S, _fitted(kind, X, y).transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [sf.NMF, sf.SSNMFClassifier, sf.SSNMFRegressor, GUIDED[0]])
def test_missing_entries(kind):
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = _fitted(kind, holes, y)
    assert np.isfinite(model.components_).all()
    masked = clone(model).fit(X, y, X_weights=sf.weights.missing(np.isnan(holes)))
    assert np.linalg.norm(masked.components_ - model.components_) < 1e-8 * np.linalg.norm(X)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_pickle_and_clone(kind):
    model = _fitted(kind, X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "components_")


def test_convergence_warning_only_where_the_rule_was_missed():
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as caught:
        sf.NMF(n_components=3, max_iter=2, tol=1e-12, random_state=0).fit(X)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("parameters", [{"tol": 0}, {"tol": 0.5}, {"callback": lambda state: True}])
def test_no_convergence_warning(parameters):
    sf.NMF(**{"n_components": 3, "max_iter": 20, "random_state": 0} | parameters).fit(DIGITS[0])


def test_grid_search_over_a_text_pipeline():
    texts = ["cat dog pet", "dog pet vet", "cat vet", "stock bond", "bond market", "market stock"]
    y = ["pets"] * 3 + ["money"] * 3
    pipeline = make_pipeline(
        TfidfVectorizer(), sf.SSNMFClassifier(n_components=2, random_state=0, tol=0, max_iter=50)
    )
    grid = {"ssnmfclassifier__supervision_weight": [1.0, "balanced"]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(texts * 3, y * 3)
    assert search.score(texts, y) == 1
    assert list(search.predict(["my cat", "my bond"])) == ["pets", "money"]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_unknown_keywords_are_refused(kind):
    for method in ("fit", "fit_transform"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'X_weight'"):
            getattr(kind(), method)(*DIGITS, X_weight=None)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_bad_data_is_refused(kind):
    bad = X.copy()
    bad[2, 5] = -1
    refused(r"Negative values in data passed to X.*X\[2, 5\]", _fitted, kind, bad, y)
    bad[2, 5] = np.inf
    refused("infinity", _fitted, kind, bad, y)
    refused("infinity", _fitted(kind, X, y).transform, bad)
    refused("must be one of", _fitted, kind, X, y, loss="huber")


@pytest.mark.skipif(not __doc__, reason="python -OO leaves docstrings out")
@each("name", estimators.__all__)
def test_docstrings_are_complete(name):
    cls = getattr(estimators, name)
    if not hasattr(cls, "fit"):
        return
    methods = [(n, m) for n, m in inspect.getmembers(cls, inspect.isfunction) if n[0] != "_"]
    ours = [pair for pair in methods if pair[1].__module__.startswith("ssnmf_fast")]
    assert {"fit", "transform"} <= {method for method, _ in ours}
    for place, documented in [(name, cls), *ours]:
        sections = inspect.getdoc(documented).split("\n\n")
        parameters = [s for s in sections if s.startswith("Parameters\n---")]
        names = re.findall(r"^[\w*, ]+(?= :|$)", "".join(parameters), re.MULTILINE)
        found = {n.strip("* ") for line in names for n in line.split(",")}
        missing = inspect.signature(documented).parameters.keys() - found - {"self"}
        assert not missing, (place, missing)
    wraps = "estimator" in inspect.signature(cls).parameters  # another, which has iterations
    for attribute in ("n_features_in_",) if wraps else ("n_iter_", "n_features_in_"):
        assert f"\n{attribute} : int\n" in inspect.getdoc(cls)
