"""Fits on a Dask cluster, for data beyond one machine; needs the extra `dask`."""

from .._common.optional import DASK_HINT, needed

with needed("dask.distributed", DASK_HINT):
    import distributed as _distributed  # noqa: F401

from ._bayesian import BayesianNMF
from ._classifier import SSNMFClassifier
from ._cluster import SchedulerLostError
from ._estimators import NMF, TopicSupervisedNMF
from ._factorize import factorize

__all__ = [
    "NMF",
    "BayesianNMF",
    "SSNMFClassifier",
    "SchedulerLostError",
    "TopicSupervisedNMF",
    "factorize",
]
