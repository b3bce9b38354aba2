"""float32 sums over long rows keep their digits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

LENGTH = 1_000_000
CLOSE = 1e-5


@pytest.mark.parametrize("rank", [3, 160])
def test_one_long_sparse_row(kernels, rank):
    length = LENGTH if rank < 64 else LENGTH // 10
    columns = kernels.padded_rank(rank, 4)
    G = np.full((500, columns), 0.1, dtype=np.float32)
    F = np.full((1, columns), 0.2, dtype=np.float32)
    csr = (
        np.array([0, length], dtype=np.int32),
        (np.arange(length) % 500).astype(np.int32),
        np.full(length, 0.3, dtype=np.float32),
    )
    z = 0.02 * columns
    for exponent in (0, -1, 1):
        out = np.zeros_like(F)
        kernels.sparse_pass(exponent, *csr, F, G, out, 1.0, False, 2)
        np.testing.assert_allclose(out, length * 0.03 * z**exponent, rtol=CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [3, 160])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows_among_short_ones(kernels, rank, dtype):
    """Rows that are cut into pieces are those of the definition, for any number of threads."""
    rng = np.random.default_rng(0)
    lengths = np.array([5, 70_001, 0, 65_536, 3])
    columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
    F, G = (rng.random((n, columns)).astype(dtype) for n in (len(lengths), 40))
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    indices = rng.integers(40, size=indptr[-1]).astype(np.int32)
    values = rng.random(indptr[-1]).astype(dtype)
    before = rng.random(F.shape).astype(dtype)
    for exponent in (0, -1):
        results = []
        for threads in (1, 2, 3):
            out = before.copy()
            arguments = indptr, indices, values, F, G, out, 0.5, True, threads
            kernels.sparse_pass(exponent, *arguments)
            results.append(out)
        for i, (first, last) in enumerate(pairwise(indptr)):
            g = G[indices[first:last]].astype(np.float64)
            terms = values[first:last] * (g @ F[i]) ** float(exponent)
            tolerance = 1e-5 if dtype == np.float32 else 1e-12
            np.testing.assert_allclose(results[0][i], before[i] + 0.5 * terms @ g, rtol=tolerance)
        assert all(np.array_equal(results[0], other) for other in results[1:])


def test_wide_dense_rows_and_gram_matrices(kernels):
    columns = kernels.padded_rank(3, 4)
    G = np.full((LENGTH, columns), 0.1, dtype=np.float32)
    out = np.zeros((1, columns), dtype=np.float32)
    Z = np.full((1, LENGTH), 0.3, dtype=np.float32)
    kernels.dense_pass(0, Z, False, None, G, out, 1.0, False, 2)
    np.testing.assert_allclose(out, 0.03 * LENGTH, rtol=CLOSE)
    gram = np.zeros((columns, columns), dtype=np.float32)
    kernels.gram(G, None, gram, 2)
    np.testing.assert_allclose(gram, 0.01 * LENGTH, rtol=CLOSE)
    sums = np.zeros(columns, dtype=np.float32)
    kernels.column_sums(G, None, sums, 2)
    np.testing.assert_allclose(sums, 0.1 * LENGTH, rtol=CLOSE)
