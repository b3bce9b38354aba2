"""Models of individual papers, for comparison; others of :mod:`ssnmf_fast` predict better."""

from __future__ import annotations

from .estimators import ConstrainedNMF, MarginNMF, SupervisedBayesianNMF

__all__ = ["ConstrainedNMF", "MarginNMF", "SupervisedBayesianNMF"]
