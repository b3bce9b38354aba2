"""float32 sums over long rows keep their digits."""

from itertools import pairwise

import numpy as np
import pytest

from ssnmf_fast._backend import reference

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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solvers_of_long_rows(kernels, dtype):
    """Rows that several threads share: as those of the reference, the same bits for any threads."""
    rng = np.random.default_rng(0)
    rank, n_columns = 8, 70_001
    lengths = [5, n_columns, 0, 65_537, 3]
    columns = [np.sort(rng.choice(n_columns, size, replace=False)) for size in lengths]
    indptr, indices = np.append(0, np.cumsum(lengths)), np.concatenate(columns).astype(np.int32)
    values = (rng.random(len(indices)) + 0.1).astype(dtype)
    csr = indptr, indices, values
    G, start = (rng.random((n, rank)).astype(dtype) + 0.1 for n in (n_columns, len(lengths)))
    P = np.array([values[a:b] @ G[indices[a:b]] for a, b in pairwise(indptr)], dtype)
    N, ridge = G.sum(axis=0, keepdims=True), np.full(rank, 0.5)
    gram = np.eye(rank, dtype=dtype)[None]
    solvers = {
        "kl_descent": lambda use, F, n: use.kl_descent(*csr, G, N, F, None, 2, True, n),
        "kl_rows": lambda use, F, n: use.kl_rows(*csr, G, N, F, 1e-6, 50, n),
        "coordinate_descent": lambda use, F, n: use.coordinate_descent(
            gram, None, *csr, G, P, F, None, 3, 0, n
        ),
        "nnls": lambda use, F, n: use.nnls(gram[0], None, *csr, G, P, F, 1e-8, 100, n),
        "ridge_rows": lambda use, F, n: use.ridge_rows(*csr, G, ridge, F, n),
    }
    for name, solve in solvers.items():
        found = []
        for use, threads in ((reference, 1), (kernels, 1), (kernels, 2), (kernels, 3)):
            F = start.copy()
            found.append((solve(use, F, threads), F))
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3, atol=1e-5, err_msg=name)
        for number, F in found[2:]:
            assert number == found[1][0], name
            assert np.array_equal(F, found[1][1]), name
