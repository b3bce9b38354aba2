"""Factors are stored with zeros after their components, which no step of a fit moves."""

import itertools

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.padding import watched_padding
from helpers.refused import refused
from penalized import KINDS, made, sparse_problem

import ssnmf_fast as sf
from ssnmf_fast import penalties

KNOWN = {
    "nothing": {},
    "supports": {
        "S_support": np.random.default_rng(0).random((20, 5)) < 0.7,
        "A_support": np.random.default_rng(1).random((5, 15)) < 0.7,
    },
    "fixed": {"covariates": np.full((20, 1), 0.3), "fixed_components": np.full((1, 15), 0.3)},
}


@pytest.mark.slow
@each("kind", KINDS)
@each("known", KNOWN)
def test_no_step_reaches_the_padding(kind, known):
    """Factors are stored with zeros after their components: no penalty is to see them."""
    rng = np.random.default_rng(2)
    solvers, forms = ("auto", "hals", "mm", "mu"), ("none", "missing", "dense")
    ways = itertools.product(solvers, forms, (np.float32, np.float64))
    for seed, (solver, form, dtype) in enumerate(ways):
        storage = problems.STORAGE[seed // 2 % 2]
        X, X_weights, _ = sparse_problem(seed, dtype, form, storage)
        n, m = X.shape
        lengths = {"S": n, "A": m} | ({"B": 2} if seed % 3 == 0 else {})
        given = {
            name: [made(kind, 1.0, rng, length), penalties.L2(1e-4)]
            for name, length in lengths.items()
        }
        Y = (rng.random((n, 2)) < 0.5) * 1.0 if "B" in given else None
        loss = problems.LOSSES[seed % 4 == 1]
        options = {"loss": loss, "solver": solver, "X_weights": X_weights, "penalties": given}
        options |= {"n_components": 5, "random_state": 0, "tol": 0, "max_iter": 15}
        with watched_padding(5):
            fit = sf.factorize(X, Y, **options, **KNOWN[known])
        for name in ("solver", "n_components", "random_state", "tol", "max_iter"):
            del options[name]
        found = sf.extend.objective(X, fit.S, fit.A, y=Y, B=fit.B, **options)
        np.testing.assert_allclose(
            fit.objective[-1][1], found, rtol=1e-9 if dtype is np.float64 else 1e-4
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_step_reaches_the_padding_of_tensors_and_files(kind, tmp_path):
    rng, small = np.random.default_rng(3), penalties.L2(1e-4)
    T = rng.random((7, 6, 9)) * (rng.random((7, 6, 9)) < 0.2)
    given = {k: [made(kind, 1.0, rng, n), small] for k, n in enumerate(T.shape)}
    for solver, dtype in itertools.product(("auto", "hals", "mm"), ("float32", "float64")):
        options = {"n_components": 3, "solver": solver, "dtype": dtype, "max_iter": 15}
        with watched_padding(3):
            sf.factorize_tensor(T, penalties=given, random_state=0, **options)
            labeled = given | {"B0": [made(kind, 1.0, rng, 2), small]}
            Y = {0: np.eye(7, 2)}
            sf.factorize_tensor(T, y=Y, penalties=labeled, random_state=0, **options)
    X, _, _ = sparse_problem(4, np.float64, storage="sparse")
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=1000)
    given = {name: [made(kind, 1.0, rng, n), small] for name, n in zip("SA", X.shape, strict=True)}
    with watched_padding(5):
        sf.factorize(file, n_components=5, penalties=given, random_state=0, max_iter=15)


class Seen(penalties.Penalty):
    """A penalty of a user, which sees the components alone, and does not say that it bounds."""

    def value(self, F):
        assert F.shape[1] == 5
        return penalties.L2(self.coefficient).value(F)

    def bound(self, F):
        assert F.shape[1] == 5
        return penalties.L2(self.coefficient).bound(F)


class SeenToBound(Seen):
    bounds_scale = True


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_new_penalty_sees_the_components_alone(dtype):
    X, _, _ = sparse_problem(0, dtype)
    options = {"n_components": 5, "random_state": 0, "max_iter": 15}
    refused("can shrink while S grows", sf.factorize, X, penalties=Seen(0.1), **options)
    found = sf.factorize(X, penalties=SeenToBound(0.1), **options)
    expected = sf.factorize(X, penalties=penalties.L2(0.1), **options)
    np.testing.assert_array_equal(found.S, expected.S)
    assert found.objective == expected.objective
