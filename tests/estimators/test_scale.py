"""Data in other units, c X, give the same predictions and the same topics up to their scale.

What docs/guide/models.md promises: the same bits where c is a power of two, and else what rounding
of the data leaves, which depends on the problem.
"""

import numpy as np
import pytest
from helpers.data import small_digits
from helpers.each import each
from sklearn.base import clone

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
LOSSES = [F, D]
FIXED = {"random_state": 0, "max_iter": 30, "tol": 0, "n_threads": 1}
POWERS, OTHERS = (2.0**-20, 2.0**20), (1e-6, 1e6)
# Regressions and representations stop where residuals are small: rounding decides on the rest.
REGRESSION, EXACT = 5e-2, 1e-3


DATA = X, y = small_digits(200, 4)


def topics(model):
    """Return the components in rows that sum to 1."""
    A = model.components_
    return A / np.maximum(A.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def rounding(model, expected, X, y):
    """Return ten times what topics move by when entries of X change by 1e-12 of themselves.

    A single change may happen to move them little.
    """
    signs = np.random.default_rng(0).choice([-1, 1], X.shape)
    near = clone(model).fit(X * (1 + 1e-12 * signs), y)
    return 10 * np.abs(topics(near) - topics(expected)).max() + 1e-12


def compare(model, X, y, outcome, atol, factors=(POWERS[0], *OTHERS)):
    """Fit to c X for several c, and compare topics and outcomes with those of X.

    A power of two rounds nothing: then outcomes are the same to the bit.  Entries of topics that
    fall to the floor of factors differ, by less than anything.  Other factors round the data.
    """
    expected = clone(model).fit(X, y)
    tolerance = rounding(model, expected, X, y)
    for c in factors:
        other = clone(model).fit(c * X, y)
        assert other.n_iter_ == expected.n_iter_
        exact = c in POWERS
        close_topics(other, expected, 1e-12 if exact else tolerance)
        found, right = outcome(other, c * X), outcome(expected, X)
        np.testing.assert_allclose(found, right, rtol=0, atol=0 if exact else atol)


def close_topics(model, expected, atol):
    np.testing.assert_allclose(topics(model), topics(expected), rtol=0, atol=atol)


def chance(model, X):
    return model.predict_proba(X)


def several(y):
    """Return indicators of two properties of digits, with rows of -1 where there is no label."""
    return np.where((y < 0)[:, None], -1, np.column_stack([y < 5, y % 2 == 0]))


@pytest.mark.slow
@pytest.mark.parametrize("given", ["many", "few", "several"])
def test_classifier_that_chooses(given):
    labels = {"many": y, "few": np.where(np.arange(200) < 60, y, -1), "several": several(y)}[given]
    compare(sf.SSNMFClassifier(**FIXED), X, labels, chance, REGRESSION, (2.0**-20, 1e6))


@pytest.mark.slow
@each("readout", ["logistic", "refit", "joint"])
@each("supervision_loss", LOSSES)
@each("loss", LOSSES)
def test_classifier_with_balanced_losses(loss, supervision_loss, readout):
    options = {"n_components": 12, "supervision_weight": "balanced", "init": "random", **FIXED}
    losses = {"loss": loss, "supervision_loss": supervision_loss}
    model = sf.SSNMFClassifier(readout=readout, **losses, **options)
    compare(model, *DATA, chance, REGRESSION if readout == "logistic" else EXACT)


@pytest.mark.parametrize("supervision_loss", LOSSES)
@pytest.mark.parametrize("loss", LOSSES)
def test_regressor(loss, supervision_loss):
    target = np.where(y < 0, np.nan, X[:, 4:10].sum(axis=1))
    options = {"n_components": 6, "supervision_weight": "balanced", **FIXED}
    model = sf.SSNMFRegressor(loss=loss, supervision_loss=supervision_loss, **options)
    compare(model, X, target, lambda m, Z: m.predict(Z), EXACT)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_number_as_weight_holds_where_both_sides_have_the_same_units(loss):
    """Targets that grow with the data: c X and c y."""
    target = np.where(y < 0, np.nan, X[:, 4:10].sum(axis=1))
    given = {"loss": loss, "supervision_loss": loss, "supervision_weight": 2.0}
    model = sf.SSNMFRegressor(n_components=6, **given, **FIXED)
    expected = clone(model).fit(X, target)
    tolerance = rounding(model, expected, X, target)
    for c in (*POWERS, *OTHERS):
        other = clone(model).fit(c * X, c * target)
        np.testing.assert_allclose(other.predict(c * X) / c, expected.predict(X), rtol=1e-5)
        close_topics(other, expected, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", ["auto", "balanced", 1.0])
def test_margins(loss, weight):
    model = sf.papers.MarginNMF(n_components=12, loss=loss, supervision_weight=weight, **FIXED)
    compare(model, *DATA, chance, REGRESSION)


@pytest.mark.parametrize("loss", LOSSES)
def test_named_topics(loss):
    compare(sf.TopicSupervisedNMF(loss=loss, **FIXED), *DATA, chance, REGRESSION)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("init", ["random", "nndsvda"])
def test_shared_rows(loss, init):
    model = sf.papers.ConstrainedNMF(n_components=12, loss=loss, init=init, **FIXED)
    compare(model, *DATA, chance, REGRESSION)


def shares(model, X):
    """Return what share of a sample each component explains."""
    amounts = model.transform(X) * model.components_.sum(axis=1)
    return amounts / np.maximum(amounts.sum(axis=1, keepdims=True), np.finfo(float).tiny)


@each("init", ["auto", "random", "nndsvda", "random-acol"])
@each("loss", LOSSES)
def test_without_labels(loss, init):
    compare(sf.NMF(n_components=6, loss=loss, init=init, **FIXED), X, None, shares, EXACT)


@pytest.mark.parametrize("kind", [sf.BayesianNMF, sf.papers.SupervisedBayesianNMF])
def test_bayesian_models(kind):
    compare(kind(n_components=6, **FIXED), np.pi * X, y, shares, EXACT)  # never integers


def test_predictions_of_bayes():
    model = sf.papers.SupervisedBayesianNMF(n_components=4, **FIXED)
    compare(model, np.pi * X, y, chance, REGRESSION)


@pytest.mark.parametrize("loss", LOSSES)
def test_components_of_any_size_are_represented_alike(loss):
    """The optimality conditions of small components count as much as those of large ones."""
    A = sf.NMF(n_components=8, loss=loss, **FIXED).fit(X).components_
    expected = sf.represent(X, A, loss=loss)
    sizes = 2.0 ** np.random.default_rng(0).integers(-30, 30, 8)
    scaled = sf.represent(X, A * sizes[:, None], loss=loss)
    assert np.array_equal(scaled * sizes, expected)
    start = sf.represent(X, A, loss=loss, tol=1e-2)
    again = sf.represent(X, A * sizes[:, None], loss=loss, init=start / sizes)
    assert np.array_equal(again * sizes, sf.represent(X, A, loss=loss, init=start))
