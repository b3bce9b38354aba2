"""How fast are the passes over a dense matrix, and what does a mask of NaN cost?"""

from __future__ import annotations

from ._base import FactorSuite, kernels, np


class Dense(FactorSuite):
    param_names = ("n", "missing", "rank", "dtype", "threads")
    params = ((2000,), (0.0, 0.3), (20, 64), ("float32", "float64"), (1, 2))
    m = 2000

    def setup(self, n, missing, rank, dtype, threads):
        rng = np.random.default_rng(0)
        self.Z = rng.random((n, self.m)).astype(dtype)
        self.Z[rng.random(self.Z.shape) < missing] = np.nan
        self.make_factors(n, rank, dtype)

    def time_product(self, n, missing, rank, dtype, threads):
        kernels.dense_pass(0, self.Z, False, None, self.G, self.out_F, 1.0, False, threads)

    def time_product_transposed(self, n, missing, rank, dtype, threads):
        kernels.dense_pass(0, self.Z.T, False, None, self.F, self.out_G, 1.0, False, threads)

    def time_ratio(self, n, missing, rank, dtype, threads):
        kernels.dense_pass(-1, self.Z, False, self.F, self.G, self.out_F, 1.0, False, threads)

    def time_sampled(self, n, missing, rank, dtype, threads):
        kernels.dense_pass(1, self.Z, True, self.F, self.G, self.out_F, 1.0, False, threads)
