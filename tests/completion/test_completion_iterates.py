"""Iterates of the matrix-free engine are those of the dense reference, given the same SVD."""

from __future__ import annotations

import dense_completion
import numpy as np
import pytest
from completion_problems import observations, structured
from each import each

from ssnmf_fast.completion import _irls

RANK = 4
WHOLE = 1000  # sketch all columns: the SVD is exact


def schedules(data, p, q):
    yield _irls.sirls(data, RANK, p=p)
    yield _irls.sirls(data, RANK, p=p, exact=True)
    yield _irls.structured(p=p, q=q, sparsity=1e-6)
    yield _irls.structured(p=p, q=q, sparsity=1e-3, sparsity_decay=0.97, floor=0.0)


@pytest.mark.slow
@each("shape", [(30, 30), (36, 24), (24, 36)])
@each("p", [0.0, 0.5, 1.0])
@each("q", [0.0, 0.5, 1.0])
def test_matrix_free_is_dense(shape, p, q):
    _, holes = structured(*shape, RANK, 0.3, 0.7)
    data = observations(holes)
    observed = ~np.isnan(holes)
    scaled = np.where(observed, holes, 0) / data.scale
    for schedule in schedules(data, p, q):
        state = _irls.Iteration(data, RANK, None, np.random.default_rng(0), oversampling=WHOLE)
        dense = dense_completion.iterates(scaled, observed, schedule, RANK)
        for iteration in range(1, 21):
            state.reweight(schedule, iteration)
            expected = next(dense)
            ours = np.where(observed, scaled, state.F @ state.G.T)
            assert np.linalg.norm(ours - expected) < 1e-10 * np.linalg.norm(expected)


@pytest.mark.parametrize("shape", [(30, 30), (36, 24), (24, 36)])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_structured_irls_is_dense(shape, alpha):
    _, holes = structured(*shape, RANK, 0.3, 0.7)
    data = observations(holes)
    observed = ~np.isnan(holes)
    scaled = np.where(observed, holes, 0) / data.scale
    schedule = _irls.sirls(data, RANK, p=0.5, q=0.5, sparsity=alpha, exact=True)
    generator = np.random.default_rng(0)
    state = _irls.Iteration(data, RANK, None, generator, dense=True, oversampling=WHOLE)
    for iteration, expected in zip(
        range(1, 21),
        dense_completion.iterates(scaled, observed, schedule, RANK, alpha),
        strict=False,
    ):
        state.reweight(schedule, iteration)
        assert np.linalg.norm(state.X - expected) < 1e-10 * np.linalg.norm(expected)


def test_uniform_maps_need_no_pass_over_all_entries():
    schedule = _irls.structured(sparsity=1e-6)
    scale, shrink = schedule.map_at(2, largest=1e-4)
    assert shrink[0] == 0.0
    assert scale == pytest.approx(1 - 1e-6 / 0.9**0.5, abs=1e-11)
    assert schedule.map_at(200, largest=1e-1)[1][0] == 1e-6


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_damping_and_ridge_have_no_cancellation(p):
    singular = np.array([1.0, 1e-3, 1e-8, 1e-12, 0.0])
    for gamma in (1.0, 1e-8, 1e-17):
        d, delta = _irls.damping(singular, gamma, p), _irls.ridge(singular, gamma, p)
        ratio = singular.astype(np.longdouble) ** 2 / np.longdouble(gamma)
        exact = 1 - (1 + ratio) ** np.longdouble(-(1 - p / 2))
        assert np.all(np.isfinite(d) & np.isfinite(delta))
        np.testing.assert_allclose(d[:2], exact[:2].astype(float), rtol=1e-12)
        usable = d > 1e-10
        np.testing.assert_allclose(1 / (1 + delta[usable]), d[usable], rtol=1e-12)


def test_distance_of_factored_matrices():
    rng = np.random.default_rng(0)
    G, H = (np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in range(2))
    E, F = rng.standard_normal((2, 30, 3))
    expected = np.linalg.norm(E @ G.T - F @ H.T) ** 2
    assert _irls.distance_squared(E, G, F, H) == pytest.approx(expected)
    nearly = _irls.distance_squared(E, G, E * (1 + 1e-12), G) ** 0.5
    assert nearly == pytest.approx(1e-12 * np.linalg.norm(E), rel=1e-3)
