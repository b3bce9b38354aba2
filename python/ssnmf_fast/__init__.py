"""Fast semi-supervised nonnegative matrix factorization: sparse, masked, parallel, reproducible.

Functions such as :func:`factorize` and :func:`represent` work on NumPy and SciPy arrays; estimators
(:class:`NMF`, :class:`FewLabelsClassifier` and others) follow scikit-learn, which is imported when
one of them is first used.  Result types are in :mod:`ssnmf_fast.results`, trees of topics in
:mod:`ssnmf_fast.trees`, models of single papers in :mod:`ssnmf_fast.papers`, data on disk in
:mod:`ssnmf_fast.io`; submodules are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import completion, penalties, weights
from ._backend.dispatch import reference_kernels, set_thread_backend
from ._common.optional import MissingPackageError
from ._config import show_config
from ._models.factorize import factorize, factorize_tensor
from ._models.represent import represent
from ._persist.io import load, save
from ._version import __version__
from .completion._complete import complete

if TYPE_CHECKING:
    from . import extend, io, linalg, metrics, papers, plotting, results, selection, trees
    from .estimators import (
        NMF,
        BayesianNMF,
        DynamicTopics,
        FewLabelsClassifier,
        HierarchicalClassifier,
        LowRankImputer,
        NonnegativeCP,
        Recommender,
        SeededTopics,
        SSNMFClassifier,
        SSNMFRegressor,
        TopicSupervisedNMF,
        topics_over_time,
    )
    from .selection import choose_rank, consensus, verify

__all__ = [
    "NMF",
    "BayesianNMF",
    "DynamicTopics",
    "FewLabelsClassifier",
    "HierarchicalClassifier",
    "LowRankImputer",
    "MissingPackageError",
    "NonnegativeCP",
    "Recommender",
    "SSNMFClassifier",
    "SSNMFRegressor",
    "SeededTopics",
    "TopicSupervisedNMF",
    "__version__",
    "choose_rank",
    "complete",
    "completion",
    "consensus",
    "extend",
    "factorize",
    "factorize_tensor",
    "io",
    "linalg",
    "load",
    "metrics",
    "papers",
    "penalties",
    "plotting",
    "reference_kernels",
    "represent",
    "results",
    "save",
    "selection",
    "set_thread_backend",
    "show_config",
    "topics_over_time",
    "trees",
    "verify",
    "weights",
]

_LATE = ("extend", "io", "linalg", "metrics", "papers", "plotting", "results", "selection", "trees")
_SELECTION = ("choose_rank", "consensus", "verify")


if not TYPE_CHECKING:  # type checkers have the names from above, and report others

    def __getattr__(name: str) -> Any:
        if name in _LATE:
            return importlib.import_module(f".{name}", __name__)
        if name in __all__:  # not imported above
            module = ".selection" if name in _SELECTION else ".estimators"
            return getattr(importlib.import_module(module, __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
