"""Base class of the suite: the parameters, the matrix and the factors of a benchmark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import one_hot, start, zipf_text

from ssnmf_fast._backend import dispatch as _dispatch

__all__ = ["FactorSuite", "SparseSuite", "kernels", "one_hot", "start"]

kernels = _dispatch.kernels


class FactorSuite:
    """Padded factors F (n x R) and G (m x R), and an output for each."""

    param_names = ("n", "per_row", "rank", "dtype", "threads")
    timeout = 120.0
    warmup_time = 0.1
    m = 5000

    def make_factors(self, n: int, rank: int, dtype: str) -> None:
        rng = np.random.default_rng(0)
        self.F = _dispatch.padded(rng.random((n, rank)) + 0.1, dtype)
        self.G = _dispatch.padded(rng.random((self.m, rank)) + 0.1, dtype)
        self.out_F = _dispatch.padded_zeros(n, rank, dtype)
        self.out_G = _dispatch.padded_zeros(self.m, rank, dtype)


class SparseSuite(FactorSuite):
    """A text-like sparse matrix of n x m with `per_row` nonzeros a row, and its transpose."""

    params: tuple[Any, ...] = ((9000,), (80,), (13, 32, 64), ("float32", "float64"), (1, 2))

    def setup(self, n: int, per_row: int, rank: int, dtype: str, threads: int) -> None:
        self.X = zipf_text(n, self.m, per_row, dtype)
        transposed = self.X.T.tocsr()
        self.csr = (self.X.indptr, self.X.indices, self.X.data)
        self.csr_T = (transposed.indptr, transposed.indices, transposed.data)
        self.make_factors(n, rank, dtype)
