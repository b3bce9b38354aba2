"""Starts of tensors: the better of two, the best of several fits, and what fits continue from."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.refused import refused
from helpers.tensors import coordinates, low_rank, product, sparse_counts

import ssnmf_fast as sf

LOSSES = ("frobenius", "kullback-leibler")


def planted(seed, shape=(40, 30, 20), rank=4):
    """Return Poisson counts of sparse factors, of which a twentieth of the places is filled."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(2.0, 0.5, (n, rank)) * (rng.random((n, rank)) < 0.2) for n in shape]
    return rng.poisson(8 * product(factors)).astype(float), factors


def same(one, other):
    pairs = zip([one.weights, *one.factors], [other.weights, *other.factors], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_auto_is_the_better_of_two_after_three_iterations(loss, seed):
    X, _ = planted(seed)
    options = {"n_components": 4, "loss": loss, "random_state": seed}
    short = [
        sf.factorize_tensor(X, init=init, max_iter=3, tol=0, **options).objective[-1][1]
        for init in ("least-squares", "svd")
    ]
    better = ("least-squares", "svd")[int(np.argmin(short))]
    for data in (X, coordinates(X)):
        found = sf.factorize_tensor(data, **options)
        assert same(found, sf.factorize_tensor(data, init=better, **options))


def test_labels_are_drawn_as_after_the_start_that_is_taken():
    X, _ = planted(0)
    options = {"n_components": 4, "y": {0: np.eye(40)[:, :3]}, "random_state": 0}
    fits = [
        sf.factorize_tensor(X, init=init, **options) for init in ("auto", "least-squares", "svd")
    ]
    assert same(fits[0], fits[1]) or same(fits[0], fits[2])


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_dense_have_the_same_start(loss):
    for seed in range(4):
        X, _ = planted(seed)
        options = {"n_components": 4, "loss": loss, "random_state": 0, "max_iter": 0}
        dense, sparse = (sf.factorize_tensor(Z, **options) for Z in (X, coordinates(X)))
        np.testing.assert_allclose(sparse.to_dense(), dense.to_dense(), rtol=1e-6, atol=1e-9)


def test_defaults_find_what_sparse_tensors_are_made_of():
    found = dict.fromkeys(LOSSES, 0)
    for loss in LOSSES:
        for seed in range(8):
            X, truth = planted(seed)
            fit = sf.factorize_tensor(coordinates(X), n_components=4, loss=loss, random_state=seed)
            score = sf.metrics.factor_match_score(fit, truth, consider_weights=False)
            found[loss] += score > 0.95
    assert found["frobenius"] >= 6
    assert found["kullback-leibler"] >= 7


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", "itakura-saito"])
def test_two_modes_and_other_losses_start_as_matrices_do(loss):
    X = np.random.default_rng(0).random((12, 9)) + 0.1
    options = {"n_components": 3, "loss": loss, "random_state": 0, "max_iter": 5, "tol": 0}
    matrix, tensor = sf.factorize(X, **options), sf.factorize_tensor(X, **options)
    np.testing.assert_allclose(tensor.to_dense(), matrix.S @ matrix.A, rtol=1e-7)
    if loss == "itakura-saito":
        cube = X[..., None] * np.arange(1.0, 4)
        named = sf.factorize_tensor(cube, init="random", **options)
        assert same(sf.factorize_tensor(cube, **options), named)


@pytest.mark.parametrize("filled", [0.02, 0.5])
def test_starts_of_leading_singular_vectors(filled):
    """By products of rows, where columns are short, and by sketches."""
    rng = np.random.default_rng(0)
    planes = rng.random((30, 3)) * [9, 5, 3] @ rng.random((3, 900))
    matrix = planes * (rng.random((30, 900)) < filled)
    U = np.linalg.svd(matrix)[0][:, :2]
    parts = np.maximum(U, 0), np.maximum(-U, 0)
    expected = np.where(np.linalg.norm(parts[0], axis=0) > np.linalg.norm(parts[1], axis=0), *parts)
    expected = np.where(expected > 1e-6, expected, expected.mean(axis=0))  # zeros are filled
    expected /= np.linalg.norm(expected, axis=0)
    X = matrix.reshape(30, 30, 30)
    for form in (X, coordinates(X), X.astype(np.float32)):
        fit = sf.factorize_tensor(form, n_components=2, init="svd", random_state=1, max_iter=0)
        F = fit.factors[0] / np.linalg.norm(fit.factors[0], axis=0)
        np.testing.assert_allclose((F.T @ expected).max(axis=1), 1, atol=2e-2)  # in any order
        assert {*(F.T @ expected).argmax(axis=1)} == {0, 1}


def test_zeros_and_single_entries_have_starts():
    for X in (np.zeros((4, 3, 2)), np.eye(4)[:, :3, None] * np.ones(2)):
        for loss in LOSSES:
            for data in (X, coordinates(X)):
                fit = sf.factorize_tensor(data, n_components=2, loss=loss, random_state=0)
                assert np.isfinite(fit.objective[-1][1])


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_of_several_starts_is_that_start_by_itself(loss):
    X = coordinates(sparse_counts((9, 8, 7)))
    options = {"n_components": 3, "loss": loss, "init": "random", "max_iter": 30}
    fits = [
        sf.factorize_tensor(X, n_starts=5, random_state=3, n_threads=n, **options) for n in (1, 3)
    ]
    assert same(*fits)
    assert fits[0].start_objectives == fits[1].start_objectives
    assert len(fits[0].start_objectives) == 5
    assert fits[0].objective[-1][1] == min(fits[0].start_objectives)
    assert len(set(fits[0].start_objectives)) > 1
    seed = fits[0].receipt.settings["random_state"]
    alone = sf.factorize_tensor(X, random_state=seed, **options)
    assert same(fits[0], alone)
    assert alone.start_objectives is None
    assert sf.verify(fits[0], X).ok


def test_several_starts_of_the_estimator():
    X = sparse_counts((9, 8, 7))
    options = {"n_starts": 3, "init": "random", "random_state": 0, "max_iter": 40, "tol": 0}
    fitted = sf.NonnegativeCP(3, **options).fit(X)
    result = sf.factorize_tensor(X, n_components=3, **options)
    assert all(np.array_equal(a, b) for a, b in zip(fitted.factors_, result.factors, strict=True))
    assert sf.verify(fitted, X).ok
    matrix = X.reshape(9, -1)
    assert sf.verify(sf.NMF(3, **options).fit(matrix), matrix).ok


def test_what_needs_one_start():
    X, factors = low_rank((5, 4, 3), 2)
    options = {"n_components": 2, "n_starts": 2}
    for init, message in (("svd", "init is 'svd'"), (factors, "init holds arrays")):
        with pytest.raises(ValueError, match=f"{message}; expected one of 'auto', 'random'"):
            sf.factorize_tensor(X, init=init, **options)
    with pytest.raises(ValueError, match="callback is not supported with n_starts"):
        sf.factorize_tensor(X, callback=lambda _: None, **options)
    refused("init must be one of", sf.factorize_tensor, X, init="nothing", **options)
    refused("n_starts must be at least 1", sf.factorize_tensor, X, n_components=2, n_starts=0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "mm"])
def test_every_form_of_a_model_continues_from_it(loss, solver):
    X = coordinates(sparse_counts((9, 8, 7)))
    options = {"n_components": 3, "loss": loss, "solver": solver}
    fit = sf.factorize_tensor(X, max_iter=20, tol=0, random_state=0, **options)
    weights, factors = fit
    forms = [
        fit,
        (weights, factors),
        [weights.tolist(), [F.tolist() for F in factors]],
        SimpleNamespace(weights=weights, factors=factors),  # CPTensor of TensorLy
        SimpleNamespace(weights=None, factors=[factors[0] * weights, *factors[1:]]),
        SimpleNamespace(weights=weights, factor_matrices=factors),  # ktensor of pyttb
        (None, [factors[0] * weights, *factors[1:]]),
    ]
    last = fit.objective[-1][1]
    for form in forms:
        begun = sf.factorize_tensor(X, init=form, max_iter=0, **options)
        assert begun.objective[0][1] == pytest.approx(last)
        estimator = sf.NonnegativeCP(3, loss=loss, solver=solver, init=form, max_iter=3, tol=0)
        fitted = estimator.fit(X)
        assert fitted.objective_[0][1] == pytest.approx(last)
        assert fitted.objective_[-1][1] <= last * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_result_with_labels_continues_with_its_labels(loss):
    X = sparse_counts((9, 8, 7))
    rng = np.random.default_rng(0)
    labels = {0: np.eye(3)[rng.integers(3, size=9)], 2: np.eye(2)[rng.integers(2, size=7)]}
    options = {"n_components": 3, "loss": loss, "y": labels, "supervision_loss": loss}
    options["supervision_weight"] = 5.0
    fit = sf.factorize_tensor(X, max_iter=50, tol=0, random_state=0, **options)
    begun = sf.factorize_tensor(X, init=fit, max_iter=0, random_state=0, **options)
    assert begun.objective[0][1] == pytest.approx(fit.objective[-1][1])
    for mode, B in fit.label_components.items():
        np.testing.assert_allclose(begun.label_components[mode], B, rtol=1e-9, atol=1e-12)
    model_ = sf.NonnegativeCP(
        3, loss=loss, supervision_loss=loss, supervision_weight=5.0, init=fit, max_iter=1, tol=0
    ).fit(X, labels)
    assert model_.objective_[0][1] == pytest.approx(fit.objective[-1][1])
    others = options | {"y": {0: np.eye(4)[rng.integers(4, size=9)]}}
    begun = sf.factorize_tensor(X, init=fit, max_iter=0, random_state=0, **others)
    assert begun.label_components[0].shape == (3, 4)  # of other labels, which are drawn
