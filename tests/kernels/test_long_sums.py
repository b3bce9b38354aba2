"""float32 sums over long rows keep their digits."""

from __future__ import annotations

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
