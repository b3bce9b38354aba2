"""The NMF of scikit-learn on this engine: the same classes, parameters and results, in less time.

``from ssnmf_fast.sklearn import NMF`` in place of ``from sklearn.decomposition import NMF``; or, for
programs that are not to be changed, :func:`patch`, :func:`patched`, or on the command line
``python -m ssnmf_fast.sklearn script.py``.
"""

from ._calls import CallCounts, call_counts
from ._nmf import NMF, MiniBatchNMF, non_negative_factorization
from ._patch import patch, patched, unpatch

__all__ = [
    "NMF",
    "CallCounts",
    "MiniBatchNMF",
    "call_counts",
    "non_negative_factorization",
    "patch",
    "patched",
    "unpatch",
]
