"""Function :func:`objective`."""

from __future__ import annotations

from typing import Any

from .._data.border import require_finite
from .._data.threads import resolve_threads
from .at_factors import problem_at


def objective(
    X: Any,
    S: Any,
    A: Any,
    *,
    Y: Any = None,
    B: Any = None,
    loss: str | float = "frobenius",
    supervision_loss: str | float = "frobenius",
    supervision_weight: float = 1.0,
    X_weights: Any = None,
    Y_weights: Any = None,
    feature_labels: Any = None,
    C: Any = None,
    feature_weight: float = 1.0,
    penalties: Any = None,
    n_threads: int | None = None,
) -> float:
    """Return the value that :func:`factorize` minimizes.

    Parameters
    ----------
    X, Y, loss, supervision_loss, supervision_weight, X_weights, Y_weights, feature_labels, \
feature_weight, penalties, n_threads
        As in :func:`factorize`.
    S, A, B, C : array_like, shapes (n, r), (r, m), (r, k) and (r, g)
        Nonnegative factors; B is needed where Y is given, and C where feature_labels are.

    Returns
    -------
    float

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> sf.objective([[1, 2], [2, 5]], S=[[1], [2]], A=[[1, 2]])
    1.0
    """
    for name, data_of, factor in (("Y", Y, "B"), ("feature_labels", feature_labels, "C")):
        if (data_of is None) != ({"B": B, "C": C}[factor] is None):
            raise ValueError(f"{name} and {factor} belong together: give both or neither.")
    found = problem_at(
        *(X, {"S": S, "A": A, "B": B, "C": C}),
        Y=Y,
        loss=loss,
        supervision_loss=supervision_loss,
        supervision_weight=supervision_weight,
        X_weights=X_weights,
        Y_weights=Y_weights,
        feature_labels=feature_labels,
        feature_weight=feature_weight,
        penalties=penalties,
        threads=resolve_threads(n_threads),
    ).objective()
    require_finite({"the objective": found})
    return found


__all__ = ["objective"]
