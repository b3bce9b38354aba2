"""The randomized SVD, of dense and sparse matrices and of sums of sparse and low-rank ones."""

from ._linalg import LowRankPlusSparse, randomized_svd

__all__ = ["LowRankPlusSparse", "randomized_svd"]
