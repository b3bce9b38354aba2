"""The engine of variational Bayes: against Table A3 in plain NumPy, and its bound."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse as sp
import scipy.stats
from helpers.each import each
from helpers.random_examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, psi

from ssnmf_fast._models import variational
from ssnmf_fast._solver.loop import FitLoop

infer = variational.infer

DEFAULTS = {
    "n_components": 3,
    "A_shape": "auto",
    "A_mean": "auto",
    "burn_in": 3,
    "init": "random",
    "max_iter": 20,
    "tol": 0,
    "random_state": 0,
    "n_threads": 1,
    "callback": None,
    "verbose": 0,
}
UNSUPERVISED = DEFAULTS | {"S_shape": 1.0, "S_mean": "auto"}
SUPERVISED = DEFAULTS | {"rate_shape": 5.0, "rate_mean": "auto"}


def problem(seed=0, shape=(30, 20), rank=3):
    rng = np.random.default_rng(seed)
    n, m = shape
    X = rng.poisson(2 * rng.gamma(0.3, 1, (n, rank)) @ rng.gamma(0.3, 3, (rank, m)))
    codes = np.arange(n, dtype=np.int32) % min(3, n)
    return X.astype(float), Groups(codes, np.bincount(codes))


class Groups(NamedTuple):
    codes: np.ndarray
    counts: np.ndarray


def fit_variational(X, groups, **parameters):
    codes = None if groups is None else groups.codes
    return variational.fit_variational(X, codes, **parameters)


def every_bound(X, groups, **parameters):
    """Lower bounds at the start and after every iteration."""
    defaults = UNSUPERVISED if groups is None else SUPERVISED
    with mock.patch.object(variational, "FitLoop", partial(FitLoop, check_every=1)):
        fit = fit_variational(X, groups, **defaults | parameters)
    return fit, -np.array([value for _, value in fit.objective])


def shape_with(difference):
    """The a at which log a - psi(a) is `difference`."""
    return scipy.optimize.brentq(lambda a: np.log(a) - psi(a) - difference, 1e-3, 1e6, xtol=1e-14)


def table_a3(X, S, A, groups, n_iter, burn_in):
    """The updates of the paper in turn, as coordinate ascent: sources are made anew for S, whose
    rates have the new E of A. Transposed (samples in rows), with Cemgil's model of S if there are
    no groups, and maximization of the bound in the hyperparameters. b_A and b_lambda are scales."""
    E_S, L_S, E_A, L_A = S, np.log(S), A, np.log(A)
    a_A, b_A, b_S = 1.0, A.mean(), S.mean()
    if groups is not None:
        delta = np.eye(len(groups.counts))[groups.codes]  # samples x classes
        a_lambda, b_lambda = 5.0, 1 / (5.0 * S.mean())
        E_lambda = np.full((S.shape[1], len(groups.counts)), 1 / S.mean())

    def sources():
        Xi = X / (np.exp(L_S) @ np.exp(L_A))
        return np.exp(L_S) * (Xi @ np.exp(L_A).T), np.exp(L_A) * (np.exp(L_S).T @ Xi)

    for iteration in range(n_iter + 1):  # the first has no lambda: it is the start
        shape = a_A + sources()[1]
        scale = 1 / (1 / b_A + E_S.sum(axis=0)[:, None] * np.ones_like(A))
        E_A, L_A = shape * scale, psi(shape) + np.log(scale)
        shape = 1 + sources()[0]
        rate_S = 1 / b_S if groups is None else (E_lambda @ delta.T).T
        scale = 1 / (rate_S + E_A.sum(axis=1) * np.ones_like(S))
        E_S, L_S = shape * scale, psi(shape) + np.log(scale)
        if iteration == 0 or iteration <= burn_in:
            continue
        if groups is not None:
            shape = a_lambda + groups.counts * np.ones_like(E_lambda)
            E_lambda = shape / (1 / b_lambda + E_S.T @ delta)
            b_lambda = E_lambda.mean() / a_lambda
        else:
            b_S = E_S.mean()
        a_A = shape_with(np.log(E_A.mean()) - L_A.mean())
        b_A = E_A.mean() / a_A
    return E_S, E_A, a_A, b_A


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("burn_in", [0, 4])
def test_updates_are_those_of_table_a3_in_turn(supervised, burn_in):
    X, groups = problem()
    groups = groups if supervised else None
    rng = np.random.default_rng(1)
    S, A = rng.random((30, 3)) + 0.1, rng.random((3, 20)) + 0.1
    defaults = SUPERVISED if supervised else UNSUPERVISED
    parameters = {"init": (S, A), "burn_in": burn_in, "max_iter": 15}
    fit = fit_variational(X, groups, **defaults | parameters)
    E_S, E_A, a_A, b_A = table_a3(X, S, A, groups, 15, burn_in)
    np.testing.assert_allclose(fit.S, E_S, rtol=1e-8)
    np.testing.assert_allclose(fit.A, E_A, rtol=1e-8)
    assert fit.hyperparameters["A_shape"] == pytest.approx(a_A, rel=1e-8)
    assert fit.hyperparameters["A_mean"] == pytest.approx(a_A * b_A, rel=1e-8)


def gamma_part(E, rate, prior_shape, prior_rate, log_prior_rate=None):
    """Expected log-prior and entropy of gamma variables."""
    shape = E * rate
    Lg = psi(shape) - np.log(rate)
    log_rate = np.log(prior_rate) if log_prior_rate is None else log_prior_rate
    prior = (prior_shape - 1) * Lg - prior_rate * E + prior_shape * log_rate - gammaln(prior_shape)
    entropy = scipy.stats.gamma(shape, scale=1 / rate).entropy()
    return float(np.sum(prior) + np.sum(entropy))


def written_out(X, fit, groups):
    """The bound from the posteriors of all variables, the sources included."""
    h = fit.hyperparameters
    rates_S = fit.S_rates[np.zeros(len(X), int) if groups is None else groups.codes]
    rates_A = fit.A_rates[:, None]
    L_S = psi(fit.S * rates_S) - np.log(rates_S)
    L_A = psi(fit.A * rates_A) - np.log(rates_A)
    joint = L_S[:, :, None] + L_A[None]
    shares = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(shares, 1e-300))
    total = np.sum(X[:, None] * shares * (joint - logs)) - np.sum(fit.S @ fit.A + gammaln(X + 1))
    total += gamma_part(fit.A, rates_A, h["A_shape"], h["A_shape"] / h["A_mean"])
    if groups is None:
        return total + gamma_part(fit.S, rates_S, h["S_shape"], h["S_shape"] / h["S_mean"])
    shape = h["rate_shape"] + groups.counts[:, None]
    E = fit.label_rates
    Lg = psi(shape) - np.log(shape / E)
    total += gamma_part(fit.S, rates_S, 1.0, E[groups.codes], Lg[groups.codes])
    return total + gamma_part(E, shape / E, h["rate_shape"], h["rate_shape"] / h["rate_mean"])


def printed(X, S, A, groups, fixed, n_iter):
    """Table A3 to the letter, for fixed hyperparameters: all updates of an iteration take the
    sources, and B_v the E_t, of the iteration before.  Yields what `written_out` takes."""
    shape_t, scale_t = fixed["A_shape"], fixed["A_mean"] / fixed["A_shape"]
    shape_l, scale_l = fixed["rate_shape"], fixed["rate_mean"] / fixed["rate_shape"]
    delta = np.eye(len(groups.counts))[groups.codes].T  # classes x samples
    E_t, L_t, E_v, L_v = A.T, np.log(A.T), S.T, np.log(S.T)
    E_l = np.full((S.shape[1], len(groups.counts)), 1 / S.mean())
    for _ in range(n_iter):
        Xi = X.T / (np.exp(L_t) @ np.exp(L_v))
        sources_v = np.exp(L_v) * (np.exp(L_t).T @ Xi)
        sources_t = np.exp(L_t) * (Xi @ np.exp(L_v).T)
        shapes = shape_t + sources_t
        B_t = 1 / (1 / scale_t + np.ones(X.T.shape) @ E_v.T)
        B_v = 1 / (E_l @ delta + E_t.T @ np.ones(X.T.shape))
        E_t, L_t = shapes * B_t, psi(shapes) + np.log(B_t)
        shapes = 1 + sources_v
        E_v, L_v = shapes * B_v, psi(shapes) + np.log(B_v)
        E_l = (shape_l + delta.sum(axis=1)) / (1 / scale_l + E_v @ delta.T)
        first = [np.flatnonzero(one)[0] for one in delta]  # a sample of each class
        yield SimpleNamespace(
            S=E_v.T,
            A=E_t.T,
            S_rates=1 / B_v.T[first],
            A_rates=1 / B_t[0],
            label_rates=E_l.T,
            hyperparameters=fixed,
        )


@pytest.mark.parametrize("seed", [0, 2])
def test_table_a3_as_printed_is_not_monotone(seed):
    """So that the library updates in turn; both reach the same fixed point."""
    X, groups = problem(seed)
    rng = np.random.default_rng(seed)
    S, A = rng.random((30, 3)) + 0.1, rng.random((3, 20)) + 0.1
    fixed = {"A_shape": 1.0, "A_mean": 1.0, "rate_shape": 5.0, "rate_mean": 1.0}
    fit, bounds = every_bound(X, groups, init=(S, A), max_iter=400, **fixed)
    states = [*printed(X, S, A, groups, fixed, 400)]
    theirs = np.array([written_out(X, state, groups) for state in [*states[:10], states[-1]]])
    assert np.diff(theirs).min() < -1
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[:-1])).all()
    np.testing.assert_allclose(states[-1].S @ states[-1].A, fit.S @ fit.A, rtol=1e-3)
    assert theirs[-1] == pytest.approx(bounds[-1], rel=1e-6)


@each("supervised", [False, True])
@each("max_iter", [0, 2, 30])
@each("A_shape", ["auto", 0.05])
def test_bound_equals_the_formula_written_out(supervised, max_iter, A_shape):
    X, groups = problem(1)
    groups = groups if supervised else None
    fit, bounds = every_bound(X, groups, max_iter=max_iter, A_shape=A_shape)
    assert bounds[-1] == pytest.approx(written_out(X, fit, groups), rel=1e-9)


@pytest.mark.parametrize("x", [0, 1, 7])
def test_bound_is_below_the_evidence_and_near_it(x):
    A_shape, A_mean, S_shape, S_mean = 1.5, 2.0, 1.0, 1.5

    def joint(a):  # s integrated out: a negative binomial distribution
        chance = (S_shape / S_mean) / (S_shape / S_mean + a)
        prior = scipy.stats.gamma.pdf(a, A_shape, scale=A_mean / A_shape)
        return scipy.stats.nbinom.pmf(x, S_shape, chance) * prior

    evidence, _ = scipy.integrate.quad(joint, 0, np.inf)
    given = {
        "A_shape": A_shape,
        "A_mean": A_mean,
        "S_shape": S_shape,
        "S_mean": S_mean,
        "n_components": 1,
        "max_iter": 300,
    }
    fit = fit_variational(np.array([[float(x)]]), None, **UNSUPERVISED | given)
    bound = -fit.objective[-1][1]
    assert np.log(evidence) - 0.7 < bound < np.log(evidence)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    supervised=st.booleans(),
    A_shape=st.sampled_from(["auto", 0.01, 0.3, 5.0]),
    A_mean=st.sampled_from(["auto", 0.2]),
    S_shape=st.sampled_from(["auto", 0.2, 1.0]),
    S_mean=st.sampled_from(["auto", 3.0]),
    rate_shape=st.sampled_from([0.01, 1.0, 100.0]),
    burn_in=st.integers(0, 5),
    seed=st.integers(0, 10_000),
)
def test_bound_never_falls(
    dtype, supervised, A_shape, A_mean, S_shape, S_mean, rate_shape, burn_in, seed
):
    rng = np.random.default_rng(seed)
    shape = tuple(int(side) for side in rng.integers(1, 25, size=2))
    X, groups = problem(seed, shape, int(rng.integers(1, 5)))
    if seed % 3 == 0:
        X = X * rng.random(shape) * 10.0 ** rng.integers(-3, 4)
    given = {"A_shape": A_shape, "A_mean": A_mean, "burn_in": burn_in, "n_components": 1 + seed % 6}
    given |= (
        {"rate_shape": rate_shape, "rate_mean": S_mean}
        if supervised
        else {"S_shape": S_shape, "S_mean": S_mean}
    )
    fit, bounds = every_bound(
        X.astype(dtype), groups if supervised else None, random_state=seed, **given
    )
    scale = np.abs(bounds).max() + float(np.sum(X * np.log1p(X))) + 10 * (fit.S.size + fit.A.size)
    assert np.isfinite(bounds).all()
    assert np.isfinite(fit.S).all()
    assert np.isfinite(fit.A).all()
    assert np.diff(bounds).min() >= -50 * np.finfo(dtype).eps * scale


@pytest.mark.parametrize("supervised", [False, True])
def test_burn_in_holds_hyperparameters_and_rates(supervised):
    X, groups = problem()
    groups = groups if supervised else None
    held, _ = every_bound(X, groups, burn_in=6, max_iter=6)
    start, _ = every_bound(X, groups, burn_in=6, max_iter=0)
    after, _ = every_bound(X, groups, burn_in=6, max_iter=7)
    assert held.hyperparameters == start.hyperparameters
    changed = {k for k, v in after.hyperparameters.items() if v != held.hyperparameters[k]}
    assert changed == (
        {"A_shape", "A_mean", "rate_mean"} if supervised else {"A_shape", "A_mean", "S_mean"}
    )
    if supervised:
        assert np.ptp(held.label_rates) < 1e-12 * held.label_rates.max()
        assert np.ptp(after.label_rates) > 0.01 * after.label_rates.max()


@pytest.mark.slow
def test_learned_hyperparameters_are_where_the_bound_is_largest():
    X, groups = problem()
    for of_fit in (None, groups):
        fit, _ = (
            every_bound(X, of_fit, max_iter=3000, S_shape="auto")
            if of_fit is None
            else (every_bound(X, of_fit, max_iter=3000))
        )
        here = written_out(X, fit, of_fit)
        for name in fit.hyperparameters.keys() - {"rate_shape"}:
            for factor in (0.9, 1.1):
                moved = fit.hyperparameters | {name: factor * fit.hyperparameters[name]}
                with mock.patch.dict(fit.hyperparameters, moved):
                    assert written_out(X, fit, of_fit) < here


def test_no_stop_before_the_end_of_burn_in():
    X, _ = problem()
    fit = fit_variational(X, None, **UNSUPERVISED | {"burn_in": 35, "tol": 1e3, "max_iter": 200})
    assert fit.n_iter == 50
    assert fit.converged


@pytest.mark.parametrize("supervised", [False, True])
def test_sparse_equals_dense(supervised):
    X, groups = problem(shape=(80, 50))
    groups = groups if supervised else None
    defaults = (SUPERVISED if supervised else UNSUPERVISED) | {"max_iter": 30}
    dense = fit_variational(X, groups, **defaults)
    for container in (sp.csr_array, sp.csc_array, sp.coo_array):
        sparse = fit_variational(container(X), groups, **defaults)
        np.testing.assert_allclose(sparse.S, dense.S, rtol=1e-10)
        np.testing.assert_allclose(sparse.A, dense.A, rtol=1e-10)
        assert sparse.objective[-1][1] == pytest.approx(dense.objective[-1][1], rel=1e-12)
    transposed = fit_variational(np.asfortranarray(X), groups, **defaults)
    np.testing.assert_allclose(transposed.S, dense.S, rtol=1e-10)


@pytest.mark.parametrize("supervised", [False, True])
def test_threads_give_the_same_bits(supervised):
    X, groups = problem(shape=(3000, 300))
    defaults = (SUPERVISED if supervised else UNSUPERVISED) | {"max_iter": 8}
    results = set()
    for n_threads in (1, 2, 3):
        parameters = defaults | {"n_threads": n_threads}
        fit = fit_variational(sp.csr_array(X), groups if supervised else None, **parameters)
        new = infer(X[:50], fit.A, fit.A_rates, 1.0, 1.0, 5, n_threads)
        results.add((fit.S.tobytes(), fit.A.tobytes(), fit.objective[-1][1], new.tobytes()))
    assert len(results) == 1


DEGENERATE = {
    "all zero": np.zeros((6, 5)),
    "empty row and column": np.pad(np.ones((4, 4)), ((0, 1), (1, 0))),
    "one entry": np.ones((1, 1)),
    "one sample": np.ones((1, 5)),
    "one feature": np.ones((6, 1)),
    "empty sparse": sp.csr_array((4, 3)),
    "tiny values": np.full((4, 4), 1e-300),
    "large values": np.full((4, 4), 1e80),
    "large and small": np.outer([1e-30, 1, 1e30], [1, 1e20, 1e-20]),
}


@each("name", DEGENERATE)
@each("supervised", [False, True])
@each("shapes", ["auto", 1e-6, 1e6])
def test_degenerate_data_gives_finite_posteriors(name, supervised, shapes):
    X = DEGENERATE[name]
    codes = np.arange(X.shape[0], dtype=np.int32) % 2
    groups = Groups(codes, np.bincount(codes)) if supervised else None
    given = {"A_shape": shapes, "max_iter": 30, "n_components": 4}
    given |= (
        {"rate_shape": 1.0 if shapes == "auto" else shapes} if supervised else {"S_shape": shapes}
    )
    fit = fit_variational(X, groups, **(SUPERVISED if supervised else UNSUPERVISED) | given)
    new = infer(X, fit.A, fit.A_rates, 1.0, 1.0, 10, 1)
    for array in (fit.S, fit.A, fit.S_rates, fit.A_rates, new, [v for _, v in fit.objective]):
        assert np.isfinite(array).all()
    assert np.isfinite(list(fit.hyperparameters.values())).all()
    assert shapes != "auto" or 1e-3 <= fit.hyperparameters["A_shape"] <= 1e6


def test_rows_of_new_samples_do_not_depend_on_each_other():
    X, _ = problem(shape=(60, 20))
    fit = fit_variational(X, None, **UNSUPERVISED)
    together = infer(X, fit.A, fit.A_rates, 1.0, 0.5, 50, 1)
    alone = [infer(X[i : i + 1], fit.A, fit.A_rates, 1.0, 0.5, 50, 1)[0] for i in range(60)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_given_start_is_not_modified():
    X, _ = problem()
    S, A = np.ones((30, 3)), np.random.default_rng(0).random((3, 20))
    S[:, 0] = 0
    copies = X.copy(), S.copy(), A.copy()
    for array in (X, S, A):
        array.flags.writeable = False
    fit = fit_variational(X, None, **UNSUPERVISED | {"init": (S, A)})
    assert (fit.S > 0).all()
    for array, copy in zip((X, S, A), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
