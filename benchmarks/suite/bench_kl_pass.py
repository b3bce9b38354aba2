"""How fast is the fused Kullback-Leibler pass, for each factor, and the loss?"""

from __future__ import annotations

from ._base import SparseSuite, kernels


class KLPass(SparseSuite):
    def time_samples(self, n, per_row, rank, dtype, threads):
        kernels.sparse_pass(-1, *self.csr, self.F, self.G, self.out_F, 1.0, False, threads)

    def time_features(self, n, per_row, rank, dtype, threads):
        kernels.sparse_pass(-1, *self.csr_T, self.G, self.F, self.out_G, 1.0, False, threads)

    def time_loss(self, n, per_row, rank, dtype, threads):
        kernels.sparse_kl_loss(*self.csr, self.F, self.G, threads)
