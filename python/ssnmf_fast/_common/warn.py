"""Where a warning points to: the line of the user that led to it."""

from __future__ import annotations

import sys
import warnings

_PASSED_OVER = ("ssnmf_fast", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost call that comes from outside of this package and scikit-learn.

    A fixed `stacklevel` cannot say that: the depth differs between `fit` and `fit_transform`, and
    scikit-learn wraps some of the methods.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame.f_globals) in _PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(variables: dict[str, object]) -> str:
    return str(variables.get("__name__", "")).partition(".")[0]
