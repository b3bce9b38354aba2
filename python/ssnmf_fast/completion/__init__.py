"""Methods of :func:`ssnmf_fast.complete`, with their own parameters."""

from ._methods import IRLS, SIRLS, MatrixIRLS, StructuredIRLS, StructuredSIRLS
from ._nuclear import NNM, StructuredNNM

__all__ = [
    "IRLS",
    "NNM",
    "SIRLS",
    "MatrixIRLS",
    "StructuredIRLS",
    "StructuredNNM",
    "StructuredSIRLS",
]
