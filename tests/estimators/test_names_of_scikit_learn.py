"""Names and conventions that users know from scikit-learn's NMF."""

import itertools
import re
from inspect import signature
from operator import attrgetter

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from scipy.special import kl_div
from sklearn.base import clone

import ssnmf_fast as sf
from ssnmf_fast import estimators

X = np.random.default_rng(0).poisson(2.0, (30, 12)).astype(float)


def test_the_number_of_components_may_be_positional():
    assert sf.NMF(3).fit(X).n_components_ == 3
    assert sf.BayesianNMF(2, max_iter=20, tol=0).fit(X).n_components_ == 2


@pytest.mark.slow
def test_n_components_answers_where_the_number_is_chosen():
    model = sf.FewLabelsClassifier(random_state=0).fit(X, np.arange(30) % 2)
    assert model.n_components_ == len(model.components_)


def test_n_components_is_no_attribute_before_fit():
    assert not hasattr(sf.NMF(), "n_components_")


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", 1.5])
def test_reconstruction_error_is_that_of_scikit_learn(loss):
    model = sf.NMF(3, loss=loss, random_state=0).fit(X)
    fitted = model.representation_ @ model.components_
    if loss == "frobenius":
        expected = np.linalg.norm(X - fitted)
    elif loss == "kullback-leibler":
        expected = np.sqrt(2 * kl_div(X, fitted).sum())
    else:  # Fevotte and Idier 2011, eq. 4
        entries = X**1.5 + 0.5 * fitted**1.5 - 1.5 * X * fitted**0.5
        expected = np.sqrt(2 * entries.sum() / (1.5 * 0.5))
    assert model.reconstruction_err_ == pytest.approx(expected, rel=1e-10)


def test_reconstruction_error_is_not_known_after_batches():
    model = sf.NMF(3, random_state=0).partial_fit(X)
    assert not hasattr(model, "reconstruction_err_")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"beta_loss": "kullback-leibler"}, "beta_loss is called loss here"),
        ({"alpha_W": 0.1}, "penalties="),
        ({"l1_ratio": 0.5}, "penalties="),
        ({"shuffle": True}, "shuffle is not needed"),
    ],
)
def test_arguments_of_scikit_learn_are_answered(given, answer):
    for call in (sf.NMF, sf.BayesianNMF, sf.SSNMFClassifier, sf.NonnegativeCP):
        refused(answer, call, 3, **given, error=TypeError)
    refused(answer, sf.factorize, X, n_components=3, **given, error=TypeError)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("Y", r"y=Y\.T"),
        ("lam", "supervision_weight"),
        ("L", "y_weights.*S_support"),
        ("W", r"init=\(S, A\).*X_weights"),
        ("modelNum", "supervision_loss"),
        ("numiters", "max_iter"),
    ],
)
def test_arguments_of_ssnmf_are_answered(name, answer):
    for call in (sf.SSNMFClassifier, sf.SSNMFClassifier(3).fit, sf.factorize):
        arguments = {"n_components": 3, name: 1} if call is sf.factorize else {name: 1}
        refused(answer, call, X, **arguments, error=TypeError)
    refused("is called n_components here", sf.NMF, k=3, error=TypeError)


def test_masks_are_answered_where_weights_are_arguments():
    mask, answer = X > 1, r"weights\.observed\(mask\) if .*, weights\.missing\(mask\) if"
    for call in (sf.NMF(3).fit, sf.SSNMFClassifier(3).fit):
        refused(answer, call, X, mask=mask, error=TypeError)
    refused(answer, sf.NMF, 3, mask=mask, error=TypeError)
    refused(answer, sf.factorize, X, n_components=3, mask=mask, error=TypeError)
    dates = [f"2020-01-{day + 1:02}" for day in range(30)]
    refused("unexpected", sf.DynamicTopics(2).fit, X, times=dates, mask=mask, error=TypeError)


def test_transposed_labels_are_answered():
    refused("give X.T and y.T", sf.factorize, X, np.ones((2, 12)), n_components=3)


@pytest.mark.parametrize(
    "name", ["SSNMF", "TSNMF", "MarginNMF", "ConstrainedNMF", "SupervisedBayesianNMF"]
)
def test_classes_of_papers_and_packages_are_answered(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use ssnmf_fast.") as caught:
        getattr(sf, name)
    for path in re.findall(r"ssnmf_fast\.([\w.]+)", str(caught.value)):
        assert callable(attrgetter(path)(sf))


def test_factors_of_scikit_learn_are_answered():
    start = np.ones((30, 3)), np.ones((3, 12))
    for name, factor in zip("WH", start, strict=True):
        refused(r"init=\(S, A\)", sf.NMF(3).fit_transform, X, **{name: factor}, error=TypeError)
        with pytest.raises(TypeError, match=r"init=\(S, A\)"):
            sf.factorize(X, n_components=3, **{name: factor})


def test_sample_weight_is_answered_where_it_is_no_argument():
    X, weights = np.random.default_rng(0).random((12, 5)), np.ones(12)
    with pytest.raises(TypeError, match=r"NMF\.fit has no argument 'sample_weight'.*outer\(rows"):
        sf.NMF(2).fit(X, sample_weight=weights)
    sf.SSNMFClassifier(2).fit(X, np.arange(12) % 2, sample_weight=weights)
    weighted = sf.NMF(2, random_state=0).fit(X, X_weights=sf.weights.outer(rows=weights))
    plain = sf.NMF(2, random_state=0).fit(X)
    np.testing.assert_allclose(weighted.components_, plain.components_, rtol=1e-6)


class Shuffled(sf.NMF):
    """A subclass with a parameter of its own, which has a name of scikit-learn's NMF."""

    def __init__(self, n_components=10, *, shuffle=False):
        super().__init__(n_components)
        self.shuffle = shuffle


def test_subclasses_have_the_signature_of_their_constructor():
    plain = type("Plain", (sf.NMF,), {})
    assert signature(plain) == signature(sf.NMF)
    assert "n_components" in signature(sf.NMF).parameters
    assert clone(Shuffled(3, shuffle=True)).shuffle
    refused("is called loss here", plain, beta_loss="frobenius", error=TypeError)


@each(
    ("of_model", "of_fit"),
    [
        ({}, {}),
        ({"penalties": []}, {}),
        ({"A_support": np.ones((3, 12))}, {}),
        ({"n_starts": 2, "dtype": "float32"}, {}),
        ({}, {"covariates": np.ones((30, 1))}),
        ({"penalties": sf.penalties.L1(0.05)}, {}),
        ({"penalties": {"A": sf.penalties.L1(0.01), "S": [sf.penalties.L2(0.05)]}}, {}),
        ({}, {"X_weights": sf.weights.outer(rows=np.full(30, 4.0))}),
        ({}, {"X_weights": np.ones((30, 12))}),
    ],
)
def test_reconstruction_error_is_a_norm_or_not_there(of_model, of_fit):
    model = sf.NMF(3, random_state=0, **of_model).fit(X, **of_fit)
    if of_model.get("penalties") or "X_weights" in of_fit:
        with pytest.raises(AttributeError, match="reconstruction_err_ needs a fit without"):
            _ = model.reconstruction_err_
        return
    norm = np.linalg.norm(X - model.representation_ @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(norm, rel=1e-6)
    model.set_params(loss="kullback-leibler")  # not that of the fit
    assert model.reconstruction_err_ == pytest.approx(norm, rel=1e-6)


LEARNERS = [getattr(estimators, name) for name in estimators.__all__ if name[0].isupper()]
LEARNERS = [one for one in LEARNERS if "X" in signature(getattr(one, "fit", id)).parameters]


@each(("kind", "method"), itertools.product(LEARNERS, ("fit", "fit_transform", "partial_fit")))
def test_wrong_keywords_name_the_public_method(kind, method):
    if not hasattr(kind, method):
        return
    taken = signature(getattr(kind(), method)).parameters
    if method == "fit_transform":
        assert taken == signature(kind().fit).parameters
    for wrong in ("sample_weights", "sample_weight", "X_weights", "covariates"):
        if wrong not in taken and kind is not sf.HierarchicalClassifier:
            answer = "has no argument" if wrong == "sample_weight" and "X_weights" in taken else ""
            with pytest.raises(TypeError, match=rf"^{kind.__name__}\.{method}.*{answer}.*{wrong}"):
                getattr(kind(), method)(X, np.arange(30) % 2, **{wrong: np.ones(30)})
    if "given" not in taken and "fit_parameters" not in taken:
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\.{method}\(\) .*positional"):
            getattr(kind(), method)(*range(len(taken) + 1))
