"""Precision, recall and F of every class: printed, and for JSON."""

from __future__ import annotations

import math

from ..report import Judged
from ..report._judged import format_score

_MOST_PRINTED = 20
_LONGEST = 32  # characters of a name


def class_content(judged: Judged | None) -> dict[str, dict[str, float | None]]:
    """Return what JSON has of every class; None where a score is not defined."""
    scores = [] if judged is None else judged.class_scores
    return {
        one.name: {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in one._asdict().items()
            if name != "name"
        }
        for one in scores
    }


def print_class_scores(judged: Judged | None, report: str) -> None:
    """Print a line for every class, or for the largest of many; the file `report` has all."""
    if judged is None:
        return
    scores = judged.class_scores
    shown = scores
    if len(scores) > _MOST_PRINTED:
        largest = sorted(scores, key=lambda one: -one.samples)[:_MOST_PRINTED]
        shown = [one for one in scores if one in largest]
    width = min(max(len(one.name) for one in shown), _LONGEST)
    print(f"\n{'Classes':<{width + 2}}  precision  recall     F  samples")
    for one in shown:
        precision, recall, f = (format_score(value) for value in one[1:4])
        name = one.name if len(one.name) <= width else one.name[: width - 3] + "..."
        print(f"  {name:<{width}}  {precision:>9}  {recall:>6}  {f:>4}  {one.samples:>7}")
    if len(shown) < len(scores):
        print(f"  and {len(scores) - len(shown)} smaller ones; {report} has all")
