"""The stopping rules, checks after every iteration, and the parts of the objective."""

import numpy as np
import problems
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import penalties

LOSSES = ("frobenius", "kullback-leibler")
OPTIONS = {"n_components": 3, "random_state": 0, "n_threads": 1}


def data(labels=True):
    rng = np.random.default_rng(3)
    X = rng.poisson(2.0, (30, 14)) * rng.gamma(1, 1, (30, 14))
    return X, np.eye(3)[rng.integers(0, 3, 30)] if labels else None


@each("loss", LOSSES)
@each("solver", ("auto", "mm", "mu", "hals"))
@each("labels", (False, True))
def test_checks_do_not_change_the_fit(loss, solver, labels):
    X, Y = data(labels)
    given = {"loss": loss, "solver": solver, "tol": 0, "max_iter": 23, **OPTIONS}
    often, rarely = (sf.factorize(sp.csr_array(X), Y, check_every=n, **given) for n in (1, 10))
    np.testing.assert_array_equal(often.S, rarely.S)
    np.testing.assert_array_equal(often.A, rarely.A)
    assert [n for n, _ in often.objective] == [*range(24)]
    assert [n for n, _ in rarely.objective] == [0, 10, 20, 23]
    every = dict(often.objective)
    np.testing.assert_allclose(
        [v for _, v in rarely.objective], [every[n] for n, _ in rarely.objective]
    )


@each("stopping", ("decrease", "relative-error"))
@each("solver", ("auto", "mu"))
def test_a_fit_ends_where_the_rule_is_met_first(stopping, solver):
    X, Y = data()
    given = {"solver": solver, "check_every": 1, "max_iter": 40, **OPTIONS}
    values = np.array([v for _, v in sf.factorize(X, Y, tol=0, **given).objective])
    if stopping == "decrease":  # thesis, eq. 3.10
        errors = (values[:-1] - values[1:]) / values[0]
    else:  # SSNMF paper, eq. 10
        errors = values[1:] / values[0]
    tol = 1.000001 * errors[20]
    fit = sf.factorize(X, Y, tol=tol, stopping=stopping, **given)
    assert fit.converged
    assert fit.n_iter == 1 + int(np.argmax(errors < tol)) > 1
    assert (fit.receipt.settings["stopping"], fit.receipt.settings["check_every"]) == (stopping, 1)


@each("loss", LOSSES)
@each("supervision_loss", LOSSES)
@each("penalized", (False, True))
def test_parts_add_up_to_the_objective(loss, supervision_loss, penalized):
    X, Y = data()
    penalty = penalties.L1(0.01)
    fit = sf.factorize(
        X, Y, loss=loss, supervision_loss=supervision_loss, supervision_weight=1.5, max_iter=12,
        penalties=penalty if penalized else None, check_every=1, **OPTIONS,
    )  # fmt: skip
    parts = fit.objective_parts
    np.testing.assert_allclose(np.sum([*parts.values()], axis=0), [v for _, v in fit.objective])
    ones = np.ones_like
    expected = {
        "X": problems.dense_objective(X, ones(X), fit.S, fit.A, loss),
        "y": 1.5 * problems.dense_objective(Y, ones(Y), fit.S, fit.B, supervision_loss),
    }
    assert [*parts] == ["X", "y"] + ["penalties"] * penalized
    for name, value in expected.items():
        np.testing.assert_allclose(parts[name][-1], float(value), rtol=1e-8)


def test_parts_of_a_tensor():
    rng = np.random.default_rng(0)
    X, Y = rng.random((6, 5, 4)), np.eye(2)[rng.integers(0, 2, 5)]
    fit = sf.factorize_tensor(X, y={1: Y}, n_components=2, max_iter=12, random_state=0)
    labels = np.sum((Y - fit.factors[1] @ fit.label_components[1]) ** 2)
    data = np.sum((X - fit.to_dense()) ** 2)
    assert [*fit.objective_parts] == ["X", "y[1]"]
    last = [values[-1] for values in fit.objective_parts.values()]
    np.testing.assert_allclose(last, [data, labels], rtol=1e-8)


def test_the_parts_are_saved(tmp_path):
    X, Y = data()
    fit = sf.factorize(X, Y, max_iter=10, **OPTIONS)
    sf.save(fit, tmp_path / "fit.npz")
    assert sf.load(tmp_path / "fit.npz").objective_parts == fit.objective_parts


def test_bad_rules_are_refused():
    for given, message in (
        ({"stopping": "relative"}, "stopping must be one of 'decrease', 'relative-error'"),
        ({"check_every": 0}, "check_every must be at least 1"),
    ):
        refused(message, sf.factorize, data()[0], **OPTIONS, **given)
