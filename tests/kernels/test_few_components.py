"""Rows of factors with few components, which take passes and products of their own."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.levels import bits_of

RANKS = [16, 24, 40, 64, 90, 130]
DTYPES = [np.float32, np.float64]


def sparse_rows(problem, rows, columns):
    """Return a factor of which most rows have few positive entries, some none, some all."""
    F = problem.factor(rows, columns)
    kept = problem.rng.random(F.shape) < problem.rng.choice([0, 0.02, 0.08, 1], (rows, 1))
    return np.where(kept, F, 0).astype(F.dtype)


@pytest.mark.slow
@each("exponent", [0, -1, 1, -2, -0.5])
@each("rank", RANKS)
@each("dtype", DTYPES)
def test_passes(kernels, reference, problem, rank, dtype, exponent):
    """Few components of the rows that are gathered, of the result, and of both."""
    a = problem(kernels, 90, 700, rank, dtype, np.int32)
    G, F = sparse_rows(a, len(a.G), a.G.shape[1]), sparse_rows(a, len(a.F), a.F.shape[1])
    some = a.rng.random(F.shape) < 0.02
    wanted = some | (F > 0)
    X = sp.csr_array((a.values, a.indices, a.indptr), shape=(90, 700))
    left, right = X[:, :300], X[:, 300:]
    cut_csr = (
        np.concatenate([left.indptr, left.indptr[-1] + right.indptr[1:]]).astype(np.int64),
        np.concatenate([left.indices, right.indices + 300]).astype(np.int32),
        np.concatenate([left.data, right.data]),
    )
    for far, near, mask in ((G, a.F, None), (a.G, F, wanted), (G, F, wanted)):
        asked = None if mask is None else bits_of(mask)
        counts = np.ones(F.shape, bool) if mask is None else mask
        for accumulate in (False, True):
            expected, found, again, paneled = (a.out.copy() for _ in range(4))
            given = a.csr_arguments()
            reference.sparse_pass(exponent, *given, near, far, expected, 0.7, accumulate, 1)
            for out, threads in ((found, 2), (again, 1)):
                kernels.sparse_pass(
                    exponent, *given, near, far, out, 0.7, accumulate, threads, asked
                )
            a.close(found[counts], expected[counts])
            assert np.isfinite(found).all()
            np.testing.assert_array_equal(found, again)
            bounds = np.array([0, 31, 90])
            kernels.panel_pass(
                exponent, *cut_csr, near, far, bounds, paneled, 0.7, accumulate, 2, asked
            )
            a.close(paneled[counts], expected[counts])


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows_are_summed_in_parts(kernels, problem, dtype):
    """The sum of two million small numbers in float32, of the whole rows and of the others."""
    q, count = 64, 2_000_000
    G = np.zeros((q, 96), dtype)
    G[:, 5] = 0.1
    G[::4] = 0.1
    indptr, indices = np.array([0, count]), np.tile(np.arange(q, dtype=np.int32), count // q)
    asked = np.zeros((1, 96), bool)
    asked[0, 5] = True
    for bits in (None, bits_of(asked)):
        out = np.zeros((1, 96), dtype)
        kernels.sparse_pass(0, indptr, indices, None, None, G, out, 1.0, False, 2, bits)
        assert out[0, 5] == pytest.approx(0.1 * count, rel=1e-5)
        if bits is None:
            assert out[0, 6] == pytest.approx(0.1 * count / 4, rel=1e-5)


@each("weighted", [False, True])
@each("rank", [*RANKS, 61])
@each("dtype", DTYPES)
def test_products(kernels, reference, problem, rank, dtype, weighted):
    a = problem(kernels, 3, 700, rank, dtype, np.int32)
    F = sparse_rows(a, 700, rank if rank == 61 else a.G.shape[1])
    weights = a.rng.random(len(F)).astype(dtype) if weighted else None
    K = a.factor(F.shape[1], F.shape[1])
    for accumulate in (False, True):
        found, expected, again = (np.ones_like(F) for _ in range(3))
        kernels.multiply(F, K, weights, found, 0.5, accumulate, 2)
        kernels.multiply(F, K, weights, again, 0.5, accumulate, 1)
        reference.multiply(F, K, weights, expected, 0.5, accumulate, 1)
        a.close(found, expected)
        np.testing.assert_array_equal(found, again)
    found, expected, again = (np.ones((F.shape[1],) * 2, dtype) for _ in range(3))
    kernels.gram(F, weights, found, 2)
    kernels.gram(F, weights, again, 1)
    reference.gram(F, weights, expected, 1)
    a.close(found, expected)
    np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(found, found.T)
