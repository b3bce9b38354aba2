"""Methods of :func:`ssnmf_fast.complete`, with their own parameters."""

from ._matrix_irls import MatrixIRLS
from ._methods import IRLS, NNM, SIRLS, StructuredIRLS, StructuredNNM, StructuredSIRLS

__all__ = [
    "IRLS",
    "NNM",
    "SIRLS",
    "MatrixIRLS",
    "StructuredIRLS",
    "StructuredNNM",
    "StructuredSIRLS",
]
