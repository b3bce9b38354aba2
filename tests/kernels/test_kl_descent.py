"""Coordinate descent on rows with the Kullback-Leibler loss."""

import numpy as np
import pytest
from helpers.each import each
from helpers.levels import bits_of

DTYPES = [np.float32, np.float64]


class Problem:
    """A random problem in which row i lists ``lengths[i]`` of the q columns."""

    def __init__(self, kernels, rank, dtype, lengths, q, seed=0, zeros=0.3):
        rng = np.random.default_rng(seed)
        columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
        p = len(lengths)
        self.F, self.G = np.zeros((p, columns), dtype), np.zeros((q, columns), dtype)
        self.G[:, :rank] = rng.random((q, rank)) * (rng.random((q, rank)) >= zeros)
        self.F[:, :rank] = rng.random((p, rank)) * (rng.random((p, rank)) >= zeros)
        self.indptr = np.concatenate([[0], np.cumsum(lengths)])
        chosen = [np.sort(rng.choice(q, n, replace=False)) for n in lengths]
        self.indices = np.concatenate([*chosen, []]).astype(np.int32)
        self.values = (rng.random(len(self.indices)) * rank).astype(dtype)
        self.values[::11] = 0
        self.N = self.G.sum(axis=0, keepdims=True)
        self.allowed = None

    def run(self, kernels, sweeps=1, n_threads=2, F=None, with_loss=True, rows=slice(None)):
        """Return the rows of F afterwards, and the loss that the kernel tells."""
        first, last, _ = rows.indices(len(self.F))
        ends = self.indptr[first : last + 1]
        part = slice(ends[0], ends[-1])
        csr = ends - ends[0], self.indices[part], self.values[part]
        F = (self.F if F is None else F)[rows].copy()
        allowed = None if self.allowed is None else bits_of(self.allowed[rows])
        N = self.N if len(self.N) == 1 else self.N[rows]
        loss = kernels.kl_descent(*csr, self.G, N, F, allowed, sweeps, with_loss, n_threads)
        return F, loss

    def losses(self, F):
        """Return N_i . f - sum_j x_ij log(f . g_j) of every row, in float64."""
        F, G = F.astype(float), self.G.astype(float)
        rows = np.repeat(np.arange(len(F)), np.diff(self.indptr))
        z = np.einsum("er,er->e", F[rows], G[self.indices])
        counts = (self.values > 0) & (self.G[self.indices] > 0).any(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.where(counts, self.values * np.log(np.where(counts, z, 1)), 0)
        return (F * self.N).sum(axis=1) - np.bincount(rows, logs, minlength=len(F))


LENGTHS = [0, 1, 5, 16, 17, 700, 3, 0, 64]


@each("sweeps", [1, 2])
@each("rank", [1, 5, 8, 13, 24, 40, 70])
@each("dtype", DTYPES)
def test_rows_of_any_length_equal_the_reference(kernels, reference, rank, dtype, sweeps):
    problem = Problem(kernels, rank, dtype, LENGTHS, 900)
    problem.allowed = np.random.default_rng(1).random(problem.F.shape) < 0.8
    problem.N = problem.N * np.random.default_rng(2).random((len(LENGTHS), 1)).astype(dtype)
    (F, loss), (expected, its_loss) = (problem.run(m, sweeps) for m in (kernels, reference))
    tolerance = 2e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(F, expected, rtol=tolerance, atol=tolerance)
    assert loss == pytest.approx(its_loss, rel=tolerance)
    assert problem.run(kernels, sweeps, with_loss=False)[1] == 0
    np.testing.assert_array_equal(F[~problem.allowed], problem.F[~problem.allowed])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_too_long_for_the_cache_equal_the_reference(kernels, reference, dtype):
    problem = Problem(kernels, 40, dtype, [3, 26_000, 40], 27_000)
    (F, loss), (expected, its_loss) = (problem.run(m, 2) for m in (kernels, reference))
    tolerance = 2e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(F, expected, rtol=tolerance, atol=tolerance)
    assert loss == pytest.approx(its_loss, rel=tolerance)


@pytest.mark.parametrize("rank", [3, 24, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_does_not_depend_on_the_others_nor_on_threads(kernels, rank, dtype):
    lengths = np.random.default_rng(2).integers(0, 300, size=70)
    problem = Problem(kernels, rank, dtype, lengths, 400)
    together, loss = problem.run(kernels, 2)
    one_thread, same = problem.run(kernels, 2, n_threads=1)
    np.testing.assert_array_equal(one_thread, together)
    assert same == loss
    for i in range(len(lengths) - 1, -1, -1):
        alone, _ = problem.run(kernels, 2, n_threads=1, rows=slice(i, i + 1))
        np.testing.assert_array_equal(alone[0], together[i])


@each("zeros", [0.0, 0.5, 0.95])
@each("rank", [1, 6, 30])
@each("dtype", DTYPES)
def test_no_sweep_raises_the_loss_of_a_row(kernels, rank, dtype, zeros):
    problem = Problem(kernels, rank, dtype, [1, 2, 30, 200, 350] * 4, 400, zeros=zeros)
    F = problem.F
    values = [problem.losses(F)]
    for _ in range(40):
        F, _ = problem.run(kernels, 1, F=F)
        values.append(problem.losses(F))
    begun = np.isfinite(values[0])
    rounding = 1e-5 if dtype == np.float32 else 1e-12
    rises = np.diff(np.array(values)[:, begun], axis=0)
    assert np.max(rises / (1 + np.abs(values[0][begun])), initial=0.0) <= rounding
    assert np.isfinite(F).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sweeps_from_anywhere_end_at_the_minimum(kernels, dtype, scale):
    """From starts far too large and far too small, where full Newton steps would overshoot."""
    problem = Problem(kernels, 7, dtype, [20, 60, 150], 200, zeros=0.4)
    F, _ = problem.run(kernels, 3000, F=problem.F * dtype(scale) + (problem.F == 0) * dtype(1e-9))
    ends = problem.indptr
    best = np.zeros_like(problem.F)
    csr = ends, problem.indices, problem.values
    tol = 1e-10 if dtype == np.float64 else 1e-5
    assert kernels.kl_rows(*csr, problem.G, problem.N, best, tol, 1000, 1) == 0
    rounding = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(problem.losses(F), problem.losses(best), rtol=rounding)


def test_zeros_leave_where_data_pull_and_others_get_there(kernels):
    problem = Problem(kernels, 2, np.float64, [2], 2)
    problem.G[:, :2] = [[1, 0], [0, 1]]
    problem.N = problem.G.sum(axis=0, keepdims=True)
    problem.values = np.array([3.0, 0.0])
    F, _ = problem.run(kernels, 30, F=np.array([[0.0, 5.0, *[0.0] * 6]]))
    np.testing.assert_array_equal(F[0, 1:], 0)
    assert F[0, 0] == 0  # no component reaches the entry: it has no say
    F, _ = problem.run(kernels, 30, F=np.array([[1e-8, 5.0, *[0.0] * 6]]))
    np.testing.assert_allclose(F[0, :2], [3, 0], rtol=1e-12)


def test_rows_without_data_are_zero_and_empty_components_stay(kernels):
    problem = Problem(kernels, 4, np.float64, [0, 12], 20, zeros=0.0)
    problem.G[:, 2] = 0
    problem.N = problem.G.sum(axis=0, keepdims=True)
    F, _ = problem.run(kernels)
    np.testing.assert_array_equal(F[0, [0, 1, 3]], 0)
    np.testing.assert_array_equal(F[:, 2], problem.F[:, 2])
