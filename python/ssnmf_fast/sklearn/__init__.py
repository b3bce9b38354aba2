"""The NMF of scikit-learn on this engine: the same parameters and results, in less time.

Import ``NMF``, ``MiniBatchNMF`` or ``non_negative_factorization`` from here in place of
``sklearn.decomposition``; or, for programs that are not to be changed, use :func:`patch`,
:func:`patched`, or on the command line ``python -m ssnmf_fast.sklearn script.py``.
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
