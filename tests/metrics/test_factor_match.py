"""Components of two CP models matched: by hand, by brute force, and what changes nothing."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import ssnmf_fast as sf
from ssnmf_fast.metrics import factor_match_score

SHAPE = (6, 5, 4)


def drawn(seed: int, rank: int, shape: tuple[int, ...] = SHAPE) -> tuple[Any, list[Any]]:
    """Return weights and sparse factors."""
    rng = np.random.default_rng(seed)
    factors = [rng.random((n, rank)) * (rng.random((n, rank)) < 0.7) for n in shape]
    return rng.random(rank) + 0.5, factors


def brute_score(one: Any, other: Any, consider_weights: bool = True) -> float:
    """Return the score by its definition, with every way to match."""
    dense = []
    for weights, factors in (one, other):
        components = [[w, *(F[:, q] for F in factors)] for q, w in enumerate(weights)]
        dense.append(components)
    few, many = sorted(dense, key=len)

    def similarity(p: Any, q: Any) -> float:
        cosines, sizes = 1.0, [p[0], q[0]]
        for a, b in zip(p[1:], q[1:], strict=True):
            norms = np.linalg.norm(a), np.linalg.norm(b)
            sizes = [size * norm for size, norm in zip(sizes, norms, strict=True)]
            if not all(norms):
                return 0.0
            cosines *= a @ b / (norms[0] * norms[1])
        if max(sizes) == 0:
            return 0.0
        penalty = 1 - abs(sizes[0] - sizes[1]) / max(sizes) if consider_weights else 1.0
        return cosines * penalty

    table = np.array([[similarity(p, q) for q in many] for p in few])
    ways = permutations(range(len(many)), len(few))
    return max(float(np.mean([table[i, q] for i, q in enumerate(way)])) for way in ways)


def test_by_hand() -> None:
    e, f = np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]])
    # Component 0 is the same in direction; component 1 has a cosine of sqrt(1/2) in mode 0 alone.
    assert factor_match_score([e, e, e], [f, e, e], consider_weights=False) == pytest.approx(
        (1 + np.sqrt(0.5)) / 2
    )
    # The norm of its column is sqrt(2): the similarity is sqrt(1/2) times 1/sqrt(2).
    assert factor_match_score([e, e, e], [f, e, e]) == pytest.approx((1 + 0.5) / 2)
    assert factor_match_score(([1.0, 4.0], [e, e]), ([3.0, 4.0], [e, e])) == pytest.approx(2 / 3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_brute_force(seed: int, r: int, s: int, consider_weights: bool) -> None:
    one, other = drawn(seed, r), drawn(seed + 1, s)
    found = factor_match_score(one, other, consider_weights=consider_weights)
    assert found == pytest.approx(brute_score(one, other, consider_weights), abs=1e-12)
    assert found == pytest.approx(
        factor_match_score(other, one, consider_weights=consider_weights), abs=1e-12
    )
    assert 0 <= found <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(1e-200, 1e200))
def test_order_and_scales_within_a_component_change_nothing(
    seed: int, rank: int, scale: float
) -> None:
    weights, factors = drawn(seed, rank)
    for F in factors:
        F[0] += 0.1  # none vanishes
    order = np.random.default_rng(seed).permutation(rank)
    moved = [factors[0][:, order] * scale, factors[1][:, order] / scale, factors[2][:, order]]
    assert factor_match_score((weights, factors), (weights[order], moved)) == pytest.approx(1)
    larger = factor_match_score((weights, factors), (weights * scale, factors))
    assert larger >= min(scale, 1 / scale) * (1 - 1e-6)  # or more, where others match better
    assert factor_match_score(
        (weights, factors), (weights * scale, factors), consider_weights=False
    ) == pytest.approx(1)


def test_every_form_of_a_model() -> None:
    X = np.random.default_rng(0).random(SHAPE)
    fit = sf.factorize_tensor(X, n_components=3, random_state=0)
    scaled = [fit.factors[0] * fit.weights, *fit.factors[1:]]
    forms = [
        fit,
        tuple(fit),
        (fit.weights.tolist(), [F.tolist() for F in fit.factors]),
        scaled,
        (None, scaled),
        SimpleNamespace(weights=fit.weights, factors=fit.factors),
        SimpleNamespace(weights=None, factors=tuple(scaled)),
        SimpleNamespace(weights=fit.weights, factor_matrices=fit.factors),
    ]
    for form in forms:
        assert factor_match_score(form, fit) == pytest.approx(1)
    other = drawn(1, 3)
    expected = factor_match_score(fit, other)
    assert expected < 0.9
    assert [factor_match_score(other, form) for form in forms] == pytest.approx([expected] * 8)


def test_components_of_zeros_are_like_none() -> None:
    weights, factors = drawn(0, 3)
    for F in factors:
        F[0] += 0.1
    without = weights.copy()
    without[1] = 0
    empty = [F.copy() for F in factors]
    empty[2][:, 1] = 0
    for one in ((without, factors), (weights, empty)):
        for consider in (True, False):
            found = factor_match_score(one, one, consider_weights=consider)
            assert found == pytest.approx(2 / 3)
    zeros = [np.zeros((n, 2)) for n in SHAPE]
    assert factor_match_score(zeros, zeros) == 0


def test_what_is_no_pair_of_models() -> None:
    weights, factors = drawn(0, 3)
    for wrong, error, message in [
        ("svd", TypeError, "B is a str; expected a TensorFactorization, a pair"),
        ([], TypeError, "B is a list"),
        (factors[0], TypeError, "B is a ndarray"),
        (factors[:2], ValueError, r"shape \(6, 5, 4\), and B of shape \(6, 5\); give"),
        ([factors[0], factors[1][:, :2], factors[2]], ValueError, r"B\[1\] has shape \(5, 2\)"),
        ([np.ones(3), *factors[1:]], ValueError, r"B\[0\] must be a matrix"),
        ([-factors[0], *factors[1:]], ValueError, r"Negative values in data passed to B\[0\]"),
        ((weights[:2], factors), ValueError, r"weights of B has shape \(2,\); expected \(3,\)"),
        ((-weights, factors), ValueError, "weights of B"),
        ([factors[0], np.full((5, 3), np.nan), factors[2]], ValueError, r"B\[1\] contains NaN"),
    ]:
        refused(message, factor_match_score, (weights, factors), wrong, error=error)
