"""The warning of fits that have not converged."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from .._common.warn import warn_user


def warn_unless_converged(estimator: Any, result: Any) -> None:
    """Warn if a fit has met `max_iter` before its stopping rule."""
    if not result.converged and estimator.tol > 0 and 0 < estimator.max_iter <= result.n_iter:
        warn_user(
            f"The stopping rule was not met within max_iter={estimator.max_iter} iterations. "
            "Increase max_iter or tol; tol=0 always runs max_iter iterations, without this "
            "warning.",
            ConvergenceWarning,
        )
