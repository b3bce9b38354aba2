"""Iterations in one call of a kernel have the bits of the loop in Python."""

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from problems import LOSSES, data

import ssnmf_fast as sf
from ssnmf_fast._solver import problem

pytestmark = pytest.mark.compiled("the loop in Python is the reference")

SHAPES = [((1, 1), 1), ((7, 3), 2), ((3, 40), 9), ((70, 33), 5), ((40, 300), 17), ((300, 41), 33)]
SOLVERS = ("auto", "mm", "mu", "hals")
FORMS = {
    "dense": lambda X: X,
    "by columns": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "sparse": sp.csr_array,
    "missing": lambda X: np.where(np.arange(X.size).reshape(X.shape) % 7 == 1, np.nan, X),
}


def fits(X, **options):
    """Return the fit, that of the loop in Python, and whether the first had calls of a kernel."""
    calls = []

    def watched(self, *given):
        calls.append(given)
        return iterations(self, *given)

    iterations = problem.Problem.iterations
    with mock.patch.object(problem.Problem, "iterations", watched):
        found = sf.factorize(X, **options)
        compiled = bool(calls)
        with mock.patch.object(problem, "is_compiled", return_value=False):
            wanted = sf.factorize(X, **options)
        assert compiled == bool(calls)
    return found, wanted, compiled


def check_same(found, wanted):
    np.testing.assert_array_equal(found.S, wanted.S)
    np.testing.assert_array_equal(found.A, wanted.A)
    assert (found.objective, found.n_iter) == (wanted.objective, wanted.n_iter)
    assert (found.converged, found.receipt) == (wanted.converged, wanted.receipt)


@pytest.mark.filterwarnings("ignore:n_components")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
@each("form", FORMS)
@each("solver", SOLVERS)
@each(("shape", "rank"), SHAPES)
def test_the_bits_are_those_of_the_loop_in_python(dtype, loss, form, solver, shape, rank):
    rng = np.random.default_rng(rank)
    X = data(rng, shape, dtype, "dense", 0.7)
    X[0, 0] = 1
    options = {"n_components": rank, "loss": loss, "solver": solver, "random_state": 0}
    options |= {"max_iter": int(rng.integers(48)), "tol": rng.choice([0, 1e-5, 1e-3])}
    options |= {"n_threads": 1 + rank % 2, "init": "random"}
    found, wanted, compiled = fits(FORMS[form](X), **options)
    check_same(found, wanted)
    plan = found.receipt.settings["plan"]
    by_entries = "by entries" in plan and "after" not in plan
    weighted = form == "missing" and X.size > 1 and "filling" not in plan
    begun = loss == "frobenius" and "filling" not in plan  # with the first objective
    assert compiled == (found.n_iter > begun and not by_entries and not weighted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each("form", FORMS)
def test_the_start_of_the_divergence_and_a_nearly_perfect_fit(dtype, form):
    """The start is a short fit; of small residuals, the loss is summed over the entries."""
    rng = np.random.default_rng(0)
    S, A = (rng.random(size) for size in ((40, 3), (3, 31)))
    X, options = FORMS[form]((S @ A).astype(dtype)), {"n_components": 3, "max_iter": 60}
    for loss in LOSSES:
        check_same(*fits(X, loss=loss, tol=0, random_state=0, **options)[:2])
        check_same(*fits(X, loss=loss, tol=0, init=(S, A), **options)[:2])
