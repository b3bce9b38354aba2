"""Fast semi-supervised nonnegative matrix factorization: sparse, masked, parallel, reproducible.

Functions :func:`factorize`, :func:`represent` and :func:`objective` work on NumPy and SciPy arrays;
the estimators (:class:`NMF`, :class:`FewLabelsClassifier` and others) follow scikit-learn, which is
imported only when one of them is first used.  Measures of topics and predictions are in
:mod:`ssnmf_fast.metrics` and pictures in :mod:`ssnmf_fast.plotting`, imported on first use as well.
"""

# ruff: noqa: F403, F405
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import penalties, weights
from ._common.optional import MissingPackageError
from ._config import show_config
from ._data.csr_file import CsrFile, open_csr
from ._models.factorize import Factorization, TensorFactorization, factorize, factorize_tensor
from ._models.represent import objective, represent
from ._persist.io import load, save
from ._persist.texts import load_vectorizer
from ._solver.result import FitState, Receipt
from ._topics import Topic, Topics
from ._version import __version__
from .completion._complete import complete
from .completion._result import Completion, CompletionState

if TYPE_CHECKING:
    from . import linalg, metrics, plotting
    from .estimators import *  # their names are listed there
    from .selection import *

__all__ = [
    "NMF",
    "BayesianNMF",
    "Completion",
    "CompletionState",
    "Consensus",
    "ConstrainedNMF",
    "CsrFile",
    "DynamicTopics",
    "Explanation",
    "Factorization",
    "FewLabelsClassifier",
    "FitState",
    "HierarchicalClassifier",
    "LowRankImputer",
    "MarginNMF",
    "MissingPackageError",
    "NonnegativeCP",
    "Peak",
    "PeakInterval",
    "RankChoice",
    "Reasons",
    "Receipt",
    "SSNMFClassifier",
    "SSNMFRegressor",
    "SeededTopics",
    "SlicePrevalence",
    "SupervisedBayesianNMF",
    "TensorFactorization",
    "Topic",
    "TopicNode",
    "TopicSupervisedNMF",
    "TopicTree",
    "Topics",
    "Verification",
    "__version__",
    "choose_rank",
    "complete",
    "consensus",
    "factorize",
    "factorize_tensor",
    "linalg",
    "load",
    "load_vectorizer",
    "merge_topics",
    "metrics",
    "objective",
    "open_csr",
    "penalties",
    "plotting",
    "represent",
    "save",
    "show_config",
    "split_topic",
    "topic_tree",
    "verify",
    "weights",
]

_SUBMODULES = ("linalg", "metrics", "plotting")


if not TYPE_CHECKING:  # type checkers have the names from above, and shall notice others

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in __all__:  # what is not imported above is of one of these
            parts = (
                importlib.import_module(part, __name__) for part in (".estimators", ".selection")
            )
            return next(getattr(part, name) for part in parts if name in part.__all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
