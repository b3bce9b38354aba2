"""How fast are the products of a Frobenius update: sparse x factor, both ways, and Gram terms?"""

from __future__ import annotations

from ._base import SparseSuite, kernels, np


class Products(SparseSuite):
    def setup(self, n, per_row, rank, dtype, threads):
        super().setup(n, per_row, rank, dtype, threads)
        self.K = np.ones((self.F.shape[1],) * 2, dtype)

    def time_samples(self, n, per_row, rank, dtype, threads):
        kernels.sparse_pass(0, *self.csr, None, self.G, self.out_F, 1.0, False, threads)

    def time_features(self, n, per_row, rank, dtype, threads):
        kernels.sparse_pass(0, *self.csr_T, None, self.F, self.out_G, 1.0, False, threads)

    def time_gram(self, n, per_row, rank, dtype, threads):
        kernels.gram(self.F, None, self.K, threads)

    def time_multiply(self, n, per_row, rank, dtype, threads):
        kernels.multiply(self.F, self.K, None, self.out_F, 1.0, False, threads)
