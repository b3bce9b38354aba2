"""Bayesian models on data of any scale; components that explain nothing."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf

ESTIMATORS = [sf.BayesianNMF, sf.papers.SupervisedBayesianNMF]
FIXED = {"tol": 0, "max_iter": 60, "random_state": 0}


@pytest.fixture(scope="module")
def counts():
    """Counts of four groups of samples, and the groups."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 30)
    A = rng.gamma(0.3, 4, (4, 50))
    S = rng.gamma(0.5, 1, (120, 4)) * 0.1 + np.eye(4)[y]
    return rng.poisson(S @ A).astype(float), y


@pytest.fixture(scope="module")
def shares(counts):
    """Real numbers in rows of length 1, as TF-IDF has them, and the groups."""
    X, y = counts
    X = X * np.random.default_rng(1).uniform(1, 3, X.shape[1])
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12), y


def _sides(one, other, factor):
    """Return pairs of the lower and of the upper ends of the intervals of two models."""
    name = f"interval_{factor}"
    return zip(getattr(one, name)(), getattr(other, name)(), strict=True)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data", ["counts", "shares"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_any_multiple_gives_the_same_topics(kind, data, dtype, container, request):
    X, y = request.getfixturevalue(data)
    model = kind(n_components=4, **FIXED).fit(X, y)
    S = model.transform(X)
    rtol = 1e-3 if dtype == np.float32 else 1e-8
    for factor in (1e-6, 1.0, 1e6):
        Z = container((factor * X).astype(dtype))
        other = kind(n_components=4, **FIXED).fit(Z, y)
        near = {"rtol": rtol, "atol": rtol * model.components_.mean()}
        np.testing.assert_allclose(other.components_ / factor, model.components_, **near)
        np.testing.assert_allclose(other.transform(Z), S, rtol=rtol, atol=rtol * S.mean())
        assert other.count_scale_ == pytest.approx(model.count_scale_ / factor, rel=1e-6)
        assert other.A_mean_ == pytest.approx(factor * model.A_mean_, rel=rtol)
        assert other.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-5)
        for mine, theirs in _sides(other, model, "components"):
            np.testing.assert_allclose(mine / factor, theirs, rtol=10 * rtol, atol=rtol)
        for mine, theirs in _sides(other, model, "representation"):
            np.testing.assert_allclose(mine, theirs, rtol=10 * rtol, atol=rtol)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_factors_are_in_the_units_of_the_data(kind, shares):
    X, y = shares
    seen = []
    model = kind(n_components=4, callback=lambda state: seen.append(state.A.mean()), **FIXED)
    model.fit(X, y)
    back = model.inverse_transform(model.transform(X))
    assert back.mean() == pytest.approx(X.mean(), rel=0.05)
    assert np.linalg.norm(back - X) < 0.6 * np.linalg.norm(X)
    assert seen[-1] == pytest.approx(model.components_.mean(), rel=1e-12)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_scale_of_ones_own(kind, shares):
    """Fitting s X as it is, and X with count_scale=s, is the same fit in other units."""
    X, y = shares
    s = 8.0
    by_hand = kind(n_components=4, count_scale=1, A_mean=0.3, **FIXED).fit(s * X, y)
    model = kind(n_components=4, count_scale=s, A_mean=0.3 / s, **FIXED).fit(X, y)
    assert model.count_scale_ == s
    assert model.A_mean_ == 0.3 / s
    assert model.lower_bound_ == pytest.approx(by_hand.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(s * model.components_, by_hand.components_, rtol=1e-12)
    np.testing.assert_allclose(model.representation_, by_hand.representation_, rtol=1e-12)
    np.testing.assert_allclose(model.transform(X), by_hand.transform(s * X), rtol=1e-10)
    start = {"init": (by_hand.representation_, by_hand.components_ / s)}
    again = kind(n_components=4, count_scale=s, **FIXED | {"max_iter": 0}, **start).fit(X, y)
    np.testing.assert_allclose(s * again.components_.sum(), by_hand.components_.sum(), rtol=0.02)


def test_shares_are_told_apart_at_first_try(shares):
    X, y = shares
    model = sf.BayesianNMF(n_components=4, **FIXED).fit(X)
    found = [
        np.bincount(y[column > 0.6 * column.max()]).argmax() for column in model.transform(X).T
    ]
    assert sorted(found) == [0, 1, 2, 3]
    assert model.active_components_.all()


@each(
    ("scale", "error"),
    [
        ("counts", ValueError),
        (0, ValueError),
        (-1.0, ValueError),
        (np.inf, ValueError),
        (None, TypeError),
        (True, TypeError),
    ],
)
@each("kind", ESTIMATORS)
def test_bad_scales_are_refused(kind, scale, error, counts):
    refused("count_scale must be", kind(count_scale=scale).fit, *counts, error=error)


def test_counts_too_large_for_the_dtype_are_refused(counts):
    X = counts[0].astype(np.float32)
    with pytest.raises(ValueError, match=r"count_scale \* X contains .* too large to work with in"):
        sf.BayesianNMF(n_components=2, count_scale=1e12).fit(X)


def test_components_that_explain_nothing(counts, tmp_path):
    X, y = counts
    model = sf.papers.SupervisedBayesianNMF(
        n_components=8, A_shape=0.5, **FIXED | {"max_iter": 300}
    )
    with pytest.warns(UserWarning, match="Of the 8 components, 4 explain nothing") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    active = model.active_components_
    assert active.dtype == bool
    assert active.sum() == 4
    spread = model.components_.max(axis=1) / model.components_.min(axis=1)
    assert spread[~active].max() < 1.5 < spread[active].min()
    topics = model.topics(n_terms=3)
    assert [len(topic.terms) for topic in topics] == [3 if used else 0 for used in active]
    idle = int(np.flatnonzero(~active)[0])
    assert str(topics[idle]) == f"topic {idle}: not used"
    assert {row["topic"] for row in topics.to_rows()} == set(np.flatnonzero(active))
    sf.save(model, tmp_path / "model.npz")
    assert np.array_equal(sf.load(tmp_path / "model.npz").active_components_, active)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = sf.papers.SupervisedBayesianNMF(n_components=5, **FIXED).fit(X, y)
    assert few.active_components_.sum() >= 4


def test_copies_are_said(shares):
    X, _ = shares
    with pytest.warns(UserWarning, match=r"3 repeat others.*counts of 0\.5 \* X"):
        sf.BayesianNMF(n_components=4, count_scale=0.5, **FIXED | {"max_iter": 300}).fit(X)


@pytest.mark.slow
def test_idle_components_in_pictures_and_reports(counts):
    plotting = pytest.importorskip("ssnmf_fast.plotting")
    pytest.importorskip("matplotlib")
    from ssnmf_fast.report import Summary

    X, y = counts
    model = sf.papers.SupervisedBayesianNMF(
        n_components=7, A_shape=0.5, **FIXED | {"max_iter": 300}
    )
    topics = model.fit(X, y).topics(n_terms=3)
    active = model.active_components_
    summary = Summary("title", "lead", {}, {}, objective=[(0, 2.0), (1, 1.0)], topics=topics)
    assert 0 < np.count_nonzero(~active) < 4
    bars = [len(axes.patches) for axes in plotting.term_bars(topics).axes]
    assert [n > 0 for n in bars] == active.tolist()
    _, *cards = summary.html({}).split('<div class="topic" id="topic')
    shown = {
        int(card.split('"')[0]): '<span class="words">empty</span>' not in card for card in cards
    }
    assert [shown[k] for k in range(7)] == active.tolist()
