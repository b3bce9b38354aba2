"""The core consistency: its definition, sparse and missing entries, what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.refused import refused
from helpers.tensors import coordinates, product
from hypothesis import given
from hypothesis import strategies as st

import ssnmf_fast as sf
from ssnmf_fast.metrics import core_consistency


def model(shape: tuple[int, ...], rank: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 2, rank), [rng.gamma(0.7, size=(n, rank)) for n in shape]


def by_definition(weights: Any, factors: Any, X: Any) -> float:
    """The formula of Bro and Kiers, with pseudoinverses; sizes are in the first mode."""
    rank, core = len(weights), X
    norms = np.array([np.linalg.norm(F, axis=0) for F in factors])
    for mode, F in enumerate(factors):
        F = F / norms[mode] * (weights * norms.prod(axis=0) if mode == 0 else 1)
        core = np.moveaxis(np.tensordot(np.linalg.pinv(F), core, axes=(1, mode)), 0, mode)
    wanted = np.zeros(core.shape)
    wanted[(np.arange(rank),) * len(factors)] = 1
    return float(100 * (1 - np.square(core - wanted).sum() / rank))


@pytest.mark.parametrize("shape", [(7, 6), (7, 6, 5), (5, 6, 4, 5)])
def test_definition(shape: tuple[int, ...]) -> None:
    weights, factors = model(shape, 3, 0)
    X = np.random.default_rng(1).poisson(2 * product(factors, weights)).astype(float)
    expected = by_definition(weights, factors, X)
    assert core_consistency((weights, factors), X) == pytest.approx(expected)
    assert core_consistency((weights, factors), coordinates(X)) == pytest.approx(expected)
    # The same entries so often that they are read some at a time.
    many = [np.tile(factors[0], (400, 1)), *factors[1:]]
    data = np.tile(X, (400, *[1] * (len(shape) - 1)))
    assert core_consistency((weights, many), coordinates(data)) == pytest.approx(expected)


@given(st.integers(0, 1000), st.integers(1, 3), st.floats(-12, 12))
def test_the_size_of_the_data_and_of_columns_has_no_say(seed: int, rank: int, power: float) -> None:
    weights, factors = model((6, 5, 4), rank, seed)
    X = product(factors, weights) + np.random.default_rng(seed).random((6, 5, 4))
    found = core_consistency((weights, factors), X)
    assert found <= 100 + 1e-9
    size = 10.0**power
    scaled = [factors[0] / 8, factors[1] * 8, factors[2]]
    assert core_consistency((weights * size, scaled), X * size) == pytest.approx(found, rel=1e-6)


def test_a_perfect_model_and_forms_of_models() -> None:
    weights, factors = model((6, 5, 4), 3, 0)
    X = product(factors, weights)
    assert core_consistency((weights, factors), X) == pytest.approx(100)
    absorbed = [factors[0] * weights, *factors[1:]]
    assert core_consistency(absorbed, X) == pytest.approx(100)
    assert core_consistency(SimpleNamespace(weights=weights, factors=factors), X) > 99
    fit = sf.NonnegativeCP(1, random_state=0, tol=1e-9).fit(X)
    assert core_consistency(fit, X) == pytest.approx(100, abs=0.01)


def test_missing_entries_are_those_of_the_model() -> None:
    weights, factors = model((6, 5, 4), 2, 0)
    X = product(factors, weights) + np.random.default_rng(0).random((6, 5, 4))
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    filled = np.where(hidden, product(factors, weights), X)
    expected = core_consistency((weights, factors), filled)
    assert core_consistency((weights, factors), np.where(hidden, np.nan, X)) == expected


def test_components_of_zeros() -> None:
    weights, factors = model((6, 5, 4), 2, 0)
    X = product(factors, weights)
    more = np.append(weights, 0), [np.column_stack([F, F[:, 0]]) for F in factors]
    assert core_consistency(more, X) == pytest.approx(100 * 2 / 3)
    assert core_consistency((weights, factors), np.zeros(X.shape)) == 0
    assert core_consistency((weights, factors), coordinates(np.zeros(X.shape))) == 0
    assert np.isnan(core_consistency((0 * weights, factors), X))


def test_bad_arguments() -> None:
    weights, factors = model((6, 5, 4), 2, 0)
    with pytest.raises(ValueError, match=r"shape \(6, 5, 4\), and X has shape \(6, 5, 3\)"):
        core_consistency((weights, factors), np.ones((6, 5, 3)))
    refused("result is a int", core_consistency, 3, np.ones((6, 5, 4)), error=TypeError)
    with pytest.raises(ValueError, match=r"core of 2000 components .* has 8,000,000,000 entries"):
        core_consistency([np.ones((2, 2000))] * 3, np.ones((2, 2, 2)))
    refused("Negative values", core_consistency, (weights, factors), -np.ones((6, 5, 4)))
