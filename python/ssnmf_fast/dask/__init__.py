"""Fits on a Dask cluster, for data too large for one machine; needs the extra `dask`."""

from .._common.optional import DASK_HINT, require_package

with require_package("dask.distributed", DASK_HINT):
    import distributed as _distributed  # noqa: F401

from ._bayesian import BayesianNMF
from ._cluster import SchedulerLostError
from ._estimators import NMF, SSNMFClassifier, TopicSupervisedNMF
from ._functions import consensus, factorize

__all__ = [
    "NMF",
    "BayesianNMF",
    "SSNMFClassifier",
    "SchedulerLostError",
    "TopicSupervisedNMF",
    "consensus",
    "factorize",
]
