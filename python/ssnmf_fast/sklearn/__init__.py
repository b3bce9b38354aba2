"""scikit-learn's NMF on the engine of this package: the same parameters and results in less time.

Import ``NMF``, ``MiniBatchNMF`` or ``non_negative_factorization`` from here instead of
``sklearn.decomposition``.  For programs that should not be changed, use :func:`patch` or
:func:`patched`, or run ``python -m ssnmf_fast.sklearn script.py``.
"""

from ._calls import call_counts
from ._nmf import NMF, MiniBatchNMF, non_negative_factorization
from ._patch import patch, patched, unpatch

__all__ = [
    "NMF",
    "MiniBatchNMF",
    "call_counts",
    "non_negative_factorization",
    "patch",
    "patched",
    "unpatch",
]
