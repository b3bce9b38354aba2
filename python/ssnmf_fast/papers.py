"""Models of single papers, to compare with them; others of :mod:`ssnmf_fast` predict better."""

from __future__ import annotations

from .estimators import ConstrainedNMF, MarginNMF, SupervisedBayesianNMF

__all__ = ["ConstrainedNMF", "MarginNMF", "SupervisedBayesianNMF"]
