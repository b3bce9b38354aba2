"""Fast semi-supervised nonnegative matrix factorization: sparse, masked, parallel, reproducible.

Functions such as :func:`factorize` and :func:`represent` work on NumPy and SciPy arrays; estimators
(:class:`NMF`, :class:`FewLabelsClassifier` and others) follow scikit-learn.  Result types are in
:mod:`ssnmf_fast.results`, trees of topics in :mod:`ssnmf_fast.trees`, models of single papers in
:mod:`ssnmf_fast.papers`, data on disk in :mod:`ssnmf_fast.io`.  Modules, SciPy and scikit-learn are
imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Imported at once: a wrong SSNMF_FAST_ISA is refused, and threadpoolctl knows the kernels.
from ._backend.dispatch import reference_kernels, set_thread_backend
from ._data import threads as _threads  # noqa: F401
from ._version import __version__

if TYPE_CHECKING:
    from . import (
        completion,
        extend,
        io,
        linalg,
        metrics,
        papers,
        penalties,
        plotting,
        results,
        selection,
        trees,
        weights,
    )
    from ._common.optional import MissingPackageError
    from ._config import show_config
    from ._models.factorize import factorize, factorize_tensor
    from ._models.represent import represent
    from ._persist.io import load, save
    from .completion._complete import complete
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

# Modules of the names that are neither modules nor estimators; all are imported on first use.
_MODULES = {
    "_common.optional": ("MissingPackageError",),
    "_config": ("show_config",),
    "_models.factorize": ("factorize", "factorize_tensor"),
    "_models.represent": ("represent",),
    "_persist.io": ("load", "save"),
    "completion._complete": ("complete",),
    "selection": ("choose_rank", "consensus", "verify"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # type checkers have the names from above, and report others

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            from ._common.foreign import CLASSES

            answer = f"; use {__name__}.{CLASSES[name]}" if name in CLASSES else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{answer}")
        if name.islower() and name not in _MODULE_OF and name != "topics_over_time":
            return importlib.import_module(f".{name}", __name__)
        module = importlib.import_module(f".{_MODULE_OF.get(name, 'estimators')}", __name__)
        return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return __all__
