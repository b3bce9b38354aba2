"""A self-contained HTML report of a fit (needs matplotlib and jinja2: the extra `plot`)."""

from __future__ import annotations

from ._evaluation import (
    ClassScore,
    Evaluation,
    LearningGain,
    Measure,
    estimate_gain,
    evaluate,
    explain_no_estimate,
    format_score,
    name_classes,
    predict_simply,
    score_samples,
)
from ._page import Example, Picture, Report, confusion, png, render

__all__ = [
    "ClassScore",
    "Evaluation",
    "Example",
    "LearningGain",
    "Measure",
    "Picture",
    "Report",
    "confusion",
    "estimate_gain",
    "evaluate",
    "explain_no_estimate",
    "format_score",
    "name_classes",
    "png",
    "predict_simply",
    "render",
    "score_samples",
]
