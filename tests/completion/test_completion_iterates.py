"""Iterates of the matrix-free engine are those of the dense reference, given the same SVD."""

import dense_completion
import numpy as np
import pytest
from completion_problems import observations, structured
from helpers.each import each

import ssnmf_fast as sf
from ssnmf_fast.completion import IRLS, SIRLS, StructuredIRLS, StructuredSIRLS, _irls

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


@each("shape", [(30, 30), (36, 24), (24, 36)])
@each("q", [0.5, 1.0])
@each("steps", [(1, 10), (3, 4)])
def test_algorithm_2_as_printed(shape, q, steps):
    """Through the public name; the matrix of observed entries has the spectral norm 1."""
    _, holes = structured(*shape, RANK, 0.3, 0.7)
    observed = ~np.isnan(holes)
    holes /= np.linalg.norm(np.where(observed, holes, 0), 2)
    k_s, k_l = steps
    method = StructuredSIRLS(q=q, sparsity=1e-3, step="explicit", k_s=k_s, k_l=k_l)
    printed = dense_completion.algorithm_2(holes, observed, RANK, q, k_s, k_l)
    for iteration in range(1, 26):
        expected = next(printed)
        if iteration in {1, 2, 5, 25}:
            found = sf.complete(
                holes, n_components=RANK, method=method, max_iter=iteration, tol=1e-300
            ).to_dense(keep_observed=True)
            assert np.linalg.norm(found - expected) < 1e-12 * np.linalg.norm(expected)


PROPOSED = {  # of 2.4.1, and steps that are no constants
    "gamma": {"gamma": lambda k, s: min(0.5**k, s[RANK] ** 2 + 1e-12)},
    "eps": {"eps": lambda k, z: min(0.9**k, z[200])},
    "steps": {"sparsity": lambda k: 1e-2 / k, "step_size": lambda k: 0.4 * 0.5 ** (k / 2)},
}


@each("name", PROPOSED)
@each("rank", [RANK, None])
def test_algorithm_2_with_schedules_of_the_iterate_and_unknown_rank(name, rank):
    _, holes = structured(36, 30, RANK, 0.4, 0.8)
    observed, given = ~np.isnan(holes), PROPOSED[name]
    holes /= np.linalg.norm(np.where(observed, holes, 0), 2)
    of_print = {one if one != "sparsity" else "c": rule for one, rule in given.items()}
    printed = dense_completion.algorithm_2(holes, observed, rank, 1.0, 1, 10, **of_print)
    method = StructuredSIRLS(**{"sparsity": 1e-3, **given}, step="explicit")
    for iteration in range(1, 26):
        expected = next(printed)
        if iteration in {1, 2, 5, 25}:
            fit = sf.complete(holes, n_components=rank, method=method, max_iter=iteration, tol=0)
            found = fit.to_dense(keep_observed=True) if fit.iterate is None else fit.iterate
            assert (fit.iterate is None) == (name != "steps")
            assert np.linalg.norm(found - expected) < 1e-11 * np.linalg.norm(expected)


def test_a_sketch_as_wide_as_the_matrix_is_exact():
    _, holes = structured(30, 24, RANK, 0.3, 0.7)
    settings = {"n_components": RANK, "max_iter": 8, "tol": 0, "clip": False}
    for kind in (SIRLS, IRLS, StructuredSIRLS, StructuredIRLS):
        first, second = (
            sf.complete(holes, method=kind(oversampling=24), random_state=seed, **settings)
            for seed in (0, 1)
        )
        np.testing.assert_allclose(first.to_dense(), second.to_dense(), rtol=1e-9, atol=1e-12)
        narrow = sf.complete(holes, method=kind(), random_state=0, **settings)
        assert not np.allclose(narrow.to_dense(), first.to_dense(), rtol=1e-9, atol=1e-12)


def test_schedules_are_numbers_or_functions():
    _, holes = structured(30, 24, RANK, 0.3, 0.7)
    settings = {"n_components": RANK, "random_state": 0, "max_iter": 30, "tol": 1e-300}

    def completed(**more):
        method = StructuredSIRLS(q=0.5, sparsity=1e-3, **more)
        return sf.complete(holes, method=method, **settings).to_dense()

    for step, first in (("proximal", 0), ("explicit", 1)):
        numbers = completed(step=step, gamma=0.6, eps=0.8)
        rules = {"gamma": lambda k, first=first: 0.6 ** (k - 1 + first), "eps": lambda k: 0.8**k}
        np.testing.assert_allclose(completed(step=step, **rules), numbers, rtol=1e-9, atol=1e-12)
        assert not np.allclose(completed(step=step), numbers, rtol=1e-6)


def test_printed_steps_diverge_for_q_0():
    _, holes = structured(30, 30, RANK, 0.3, 0.7)
    settings = {"n_components": RANK, "random_state": 0, "max_iter": 1000, "tol": 1e-300}
    largest = [
        abs(sf.complete(holes, method=method, **settings).to_dense()).max()
        for method in (
            StructuredSIRLS(q=0.5, sparsity=1e-3, step="explicit"),
            StructuredSIRLS(q=0, sparsity=1e-3, step="explicit"),
            StructuredSIRLS(q=0, sparsity=1e-3),
        )
    ]
    assert largest[0] < 1e3  # the largest entry is 2
    assert largest[1] > 1e6
    assert largest[2] < 10


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"step": "implicit"}, "step must be"),
        ({"k_s": 0}, "k_s must be at least 1"),
        ({"k_l": 2.5}, "k_l must be"),
        ({"gamma": 1.5}, "gamma must be at most 1"),
        ({"eps": -1}, "eps must"),
        ({"gamma": lambda k: -1.0}, r"gamma\(1\) must return a positive number; got -1.0"),
        ({"gamma": lambda k, s: 1.0}, 'gamma as a function of the iterate needs step="explicit"'),
        ({"step_size": 0.5}, 'step_size needs step="explicit"'),
        ({"oversampling": -1}, "oversampling must be at least 0"),
        ({"eps": lambda k: None}, r"eps\(1\) must return a positive number; got None"),
    ],
)
def test_bad_parameters_of_the_schedule(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sf.complete(np.diag([1.0, np.nan, 3]), method=StructuredSIRLS(**parameters), n_components=1)
