"""Coordinate descent on rows with weights of their own, by entries and by matrices."""

import numpy as np
import pytest
from helpers.each import each
from helpers.levels import bits_of

RANKS = [8, 24, 40, 64]


class Listed:
    """A random problem in which row i lists ``lengths[i]`` of the q columns."""

    def __init__(self, kernels, rank, dtype, lengths, q, signs="positive", seed=0):
        rng = np.random.default_rng(seed)
        columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
        p = len(lengths)
        self.G = np.zeros((q, columns), dtype)
        self.G[:, :rank] = rng.random((q, rank)) * (rng.random((q, rank)) < 0.7)
        self.F = np.zeros((p, columns), dtype)
        self.F[:, :rank] = rng.random((p, rank)) * (rng.random((p, rank)) < 0.7)
        self.indptr = np.concatenate([[0], np.cumsum(lengths)])
        chosen = [np.sort(rng.choice(q, n, replace=False)) for n in lengths]
        self.indices = np.concatenate(chosen).astype(np.int32)
        self.weights = 2 * rng.random(len(self.indices)) + 0.1
        base = 0.0
        if signs != "positive":
            base = 5.0
            flipped = rng.random(len(self.indices)) < (0.5 if signs == "mixed" else 1.0)
            self.weights[flipped] *= -1
        self.weights[::7] = 0.0
        self.weights = self.weights.astype(dtype)
        self.grams = (base * self.G.T @ self.G)[None][: int(base > 0)].astype(dtype)
        self.W = np.full((p, q), base)
        for i, row in enumerate(chosen):
            self.W[i, row] += self.weights[self.indptr[i] : self.indptr[i + 1]]
        self.Z = rng.random((p, q)) * rank / 4
        self.P = ((self.W * self.Z) @ self.G).astype(dtype)
        self.allowed = None

    def run(self, kernels, sweeps, n_threads=2, rows=slice(None), F=None):
        first, last, _ = rows.indices(len(self.F))
        ends = self.indptr[first : last + 1]
        entries = slice(ends[0], ends[-1])
        csr = ends - ends[0], self.indices[entries], self.weights[entries]
        F = (self.F if F is None else F)[rows].copy()
        allowed = None if self.allowed is None else bits_of(self.allowed[rows])
        arguments = self.G, self.P[rows], F, allowed, sweeps, 0, n_threads
        kernels.coordinate_descent(self.grams, None, *csr, *arguments)
        return F

    def value(self, F):
        return float(np.sum(self.W * (self.Z - F.astype(float) @ self.G.T.astype(float)) ** 2))


@each("signs", ["positive", "negative", "mixed"])
@each("sweeps", [1, 2, 9])
@each("rank", RANKS)
@each("dtype", [np.float32, np.float64])
def test_rows_of_any_length_equal_the_reference(kernels, reference, rank, dtype, sweeps, signs):
    problem = Listed(kernels, rank, dtype, [0, 1, 5, 16, 17, 700, 3, 0, 64], 900, signs)
    problem.allowed = np.random.default_rng(1).random(problem.F.shape) < 0.8
    tolerance = 2e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(
        problem.run(kernels, sweeps), problem.run(reference, sweeps), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_too_long_for_the_cache_equal_the_reference(kernels, reference, dtype):
    lengths = [3, 26_000, 40, 26_000]
    problem = Listed(kernels, 32, dtype, lengths, 27_000)
    tolerance = 2e-3 if dtype == np.float32 else 1e-10
    expected = problem.run(reference, 2)
    np.testing.assert_allclose(problem.run(kernels, 2), expected, rtol=tolerance, atol=tolerance)


@each("signs", ["positive", "mixed"])
@each("rank", RANKS)
@each("dtype", [np.float32, np.float64])
def test_a_row_does_not_depend_on_the_others(kernels, rank, dtype, signs):
    """Nor on the threads: what a thread keeps from its last row must not matter."""
    lengths = np.random.default_rng(2).integers(0, 300, size=70)
    problem = Listed(kernels, rank, dtype, lengths, 400, signs)
    together = problem.run(kernels, 2)
    np.testing.assert_array_equal(problem.run(kernels, 2, n_threads=1), together)
    for i in range(len(lengths) - 1, -1, -1):
        alone = problem.run(kernels, 2, n_threads=1, rows=slice(i, i + 1))
        np.testing.assert_array_equal(alone[0], together[i])


@each("signs", ["positive", "negative", "mixed"])
@each("rank", RANKS)
@each("dtype", [np.float32, np.float64])
def test_no_call_raises_the_objective(kernels, rank, dtype, signs):
    problem = Listed(kernels, rank, dtype, [30, 200, 350] * 5, 400, signs)
    F = problem.F
    values = [problem.value(F)]
    for _ in range(60):
        F = problem.run(kernels, 2, F=F)
        values.append(problem.value(F))
    rounding = 1e-6 if dtype == np.float32 else 1e-13
    assert np.max(np.diff(values)) <= rounding * values[0]
    assert values[-1] < values[0]


def test_weights_of_any_size(kernels, reference):
    problem = Listed(kernels, 40, np.float64, [50, 200, 300], 400)
    powers = np.random.default_rng(3).integers(-30, 30, size=len(problem.weights))
    problem.weights = np.ldexp(problem.weights, powers)
    for i in range(len(problem.F)):
        row = slice(problem.indptr[i], problem.indptr[i + 1])
        pull = problem.weights[row] * problem.Z[i, problem.indices[row]]
        problem.P[i] = pull @ problem.G[problem.indices[row]]
    expected = problem.run(reference, 2)
    np.testing.assert_allclose(problem.run(kernels, 2), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rank", [8, 40])
def test_components_that_the_entries_of_a_row_lack_stay_or_vanish(kernels, reference, rank):
    problem = Listed(kernels, rank, np.float64, [20, 30], 60)
    problem.G[problem.indices[:20], 5] = 0
    problem.F[:, 5] = 0.5
    moved = problem.run(kernels, 2)
    assert moved[0, 5] == problem.F[0, 5]
    assert np.any(moved[0] != problem.F[0])
    problem.P[0, 5] = -1e-9
    for kernel in (kernels, reference):
        moved = problem.run(kernel, 2)
        assert moved[0, 5] == 0 < moved[1, 5]
