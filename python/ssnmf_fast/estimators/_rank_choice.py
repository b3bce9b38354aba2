"""Function :func:`choose_rank`: the rank with the largest lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._common.arrays import Array
from .._common.warn import IDLE, quietly
from .._data.checks import check_integer, check_random_state
from ._bayesian_base import BayesianBase


@dataclass(frozen=True, eq=False)
class RankChoice:
    """Result of :func:`choose_rank`.

    Attributes
    ----------
    ranks : tuple of int
        The ranks that were tried.
    bounds : ndarray, shape (ranks, starts)
        Lower bounds of the log-evidence: larger is better.
    best_rank : int
        The rank of the largest bound.
    best_model : BayesianNMF or SupervisedBayesianNMF
        The fitted model with that bound.
    """

    ranks: tuple[int, ...]
    bounds: Array
    best_rank: int
    best_model: Any


def choose_rank(
    model: Any, X: Any, ranks: Sequence[int], y: Any = None, n_starts: int = 3
) -> RankChoice:
    """Fit a Bayesian model with several ranks and starts, and keep the one of the largest bound.

    The bound takes account of the number of parameters, so that no data need be held out [1]_.

    Parameters
    ----------
    model : BayesianNMF or SupervisedBayesianNMF
        The parameters to use; it is not fitted itself.
    X : array_like or scipy.sparse, shape (n, m)
        Nonnegative samples, without NaN.
    ranks : sequence of int
        Ranks to try, each at least 1.
    y : array_like, shape (n,), optional
        Class labels, for SupervisedBayesianNMF.
    n_starts : int
        Number of random starts of every rank, at least 1; the seeds follow from the `random_state`
        of the model and are the same for all ranks.

    Returns
    -------
    RankChoice

    Raises
    ------
    TypeError
        If the model is of another class.
    ValueError
        If there is no rank or a bad one, or the model has a start of arrays.

    References
    ----------
    .. [1] A. T. Cemgil, "Bayesian inference for nonnegative matrix factorization models", 2009.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(0.5, 4, (60, 3)) @ rng.gamma(0.5, 4, (3, 30)))
    >>> model = sf.BayesianNMF(tol=0, random_state=0)
    >>> sf.choose_rank(model, X, [1, 3, 6], n_starts=2).best_rank
    3
    """
    if not isinstance(model, BayesianBase):
        raise TypeError(
            "model must be a BayesianNMF or SupervisedBayesianNMF, whose bounds can be compared; "
            f"got {type(model).__name__}."
        )
    if not isinstance(model.init, str):
        raise ValueError(
            "model.init holds arrays, which have one rank; set it to 'random' to choose a rank."
        )
    tried = tuple(check_integer(rank, "every rank in ranks", 1) for rank in ranks)
    if not tried:
        raise ValueError("ranks is empty; expected at least one rank, for example [5, 10, 20].")
    n_starts = check_integer(n_starts, "n_starts", 1)
    seeds = check_random_state(model.random_state).integers(2**31 - 1, size=n_starts)
    bounds = np.empty((len(tried), n_starts))
    best: Any = None
    for i, rank in enumerate(tried):
        for j, seed in enumerate(seeds.tolist()):
            fitted = clone(model).set_params(n_components=rank, random_state=seed)
            # More components than the data need are tried on purpose.
            quietly(IDLE, fitted.fit, X, y)
            bounds[i, j] = fitted.lower_bound_
            if best is None or fitted.lower_bound_ > best.lower_bound_:
                best = fitted
    return RankChoice(tried, bounds, best.n_components, best)
