"""Estimators that follow the conventions of scikit-learn (version 1.6 or newer)."""

from __future__ import annotations

from ._classifier import SSNMFClassifier
from ._imputer import LowRankImputer
from ._nmf import NMF
from ._regressor import SSNMFRegressor

__all__ = ["NMF", "LowRankImputer", "SSNMFClassifier", "SSNMFRegressor"]
