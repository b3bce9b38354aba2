"""Every loadable instruction-set level, and problems of odd shapes."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import levels

TOLERANCE = {np.float32: 2e-4, np.float64: 1e-11}


@pytest.fixture(params=levels.AVAILABLE)
def kernels(request):
    return levels.kernels_of(request.param)


@pytest.fixture
def reference():
    return levels.reference


class Problem:
    """Sparse and dense Z (p x q) with padded factors of random entries."""

    def __init__(self, module, p, q, rank, dtype, index, density=0.3, seed=0):
        rng = np.random.default_rng(seed)
        self.rng, self.dtype, self.rank = rng, dtype, rank
        dense = rng.random((p, q)) * (rng.random((p, q)) < density)
        self.csr = sp.csr_array(dense.astype(dtype))
        self.indptr = self.csr.indptr.astype(index)
        self.indices = self.csr.indices.astype(index)
        self.values = self.csr.data
        self.dense = self.csr.toarray()
        columns = module.padded_rank(rank, np.dtype(dtype).itemsize)
        self.F = self.factor(p, columns)
        self.G = self.factor(q, columns)
        self.out = np.ones((p, columns), dtype=dtype)

    def factor(self, rows, columns):
        factor = np.zeros((rows, columns), dtype=self.dtype)
        factor[:, : self.rank] = self.rng.random((rows, self.rank)) + 0.01
        return factor

    def csr_arguments(self, pattern=False):
        return self.indptr, self.indices, None if pattern else self.values

    def close(self, a, b):
        tolerance = TOLERANCE[self.dtype]
        largest = max(1, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * largest)


@pytest.fixture
def problem():
    return Problem
