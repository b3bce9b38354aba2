"""Poisson-gamma NMF by variational Bayes: :class:`BayesianNMF`, and the choice of a rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from .._common.arrays import Array
from .._common.saved import POSITIVE
from .._common.warn import IDLE, quietly
from .._data.checks import check_integer, check_random_state
from ._bayesian_base import BayesianBase
from ._conventions import documented, set_parameters


@documented
class BayesianNMF(BayesianBase):
    """Poisson-gamma NMF by variational Bayes [1]_.

    Counts ``x_ij`` are Poisson with mean ``(S A)_ij``, and S and A have gamma priors.  The
    posterior is approximated by independent gamma distributions; a lower bound of the log-evidence
    rises in every step and can be compared between ranks (:func:`ssnmf_fast.choose_rank`).

    Parameters
    ----------
    A_shape : float or "auto"
        Shape of the prior of A, 1e-6 to 1e6; below 1 it favors sparse components.  "auto" learns
        it, between 1e-3 and 1e6.
    A_mean : float or "auto"
        Mean of the prior of A, 1e-9 to 1e9, in the units of X.  "auto" learns it.
    S_shape : float or "auto"
        Shape of the prior of S, 1e-6 to 1e6: 1 (exponential) or less gives a sparse S.  A given
        value controls sparsity better than a learned one.
    S_mean : float or "auto"
        Mean of the prior of S, 1e-9 to 1e9.  "auto" learns it.
    burn_in : int
        Number of iterations, at least 0, before hyperparameters are learned.
    init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start; a tuple holds S (n, r) and A (r, m), whose product is near X.  Its zeros may become
        positive.  "auto" is "least-squares", see :func:`ssnmf_fast.factorize`: bounds are higher
        and topics more coherent than from "random".  A start gives the expectations of S and A,
        both arithmetic and geometric; the posteriors of A, then of S are updated once before
        iteration 1.  An iteration updates A, S, then (after `burn_in`) the hyperparameters.

    Attributes
    ----------
    representation_ : ndarray, shape (n, r)
        Posterior expectations of S, the same in any units: ``S @ components_`` is near X.
    representation_rates_ : ndarray, shape (1, r)
        Rates of the posteriors of S, float64.
    representation_groups_ : ndarray of int32, shape (n,)
        Row of `representation_rates_` for every sample; here always 0.
    A_shape_, A_mean_, S_shape_, S_mean_ : float
        Hyperparameters, given or learned; A_mean_ in the units of X.

    See Also
    --------
    SupervisedBayesianNMF : The same with labels.
    NMF : Point estimates; with ``loss="kullback-leibler"`` the likelihood is the same.

    Notes
    -----
    The model of the data is ``count_scale * X ~ Poisson(count_scale * S A)``.  Counts need not be
    integers: the bound is then one of a continued Poisson likelihood.  NaN, weights and matrices on
    disk are not supported.

    References
    ----------
    .. [1] A. T. Cemgil, "Bayesian inference for nonnegative matrix factorization models",
       Computational Intelligence and Neuroscience, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(0.5, 2, (40, 2)) @ rng.gamma(0.5, 2, (2, 12)))
    >>> model = sf.BayesianNMF(n_components=2, tol=0, random_state=0).fit(X)
    >>> low, high = model.interval_components(level=0.9)
    >>> bool((low < model.components_).all() and (low < high).all())
    True
    """

    _saved: ClassVar = {**BayesianBase._saved, "S_shape_": POSITIVE, "S_mean_": POSITIVE}

    def __init__(
        self,
        n_components: int = 10,
        *,
        A_shape: float | str = "auto",
        A_mean: float | str = "auto",
        S_shape: float | str = 1.0,
        S_mean: float | str = "auto",
        count_scale: float | str = "auto",
        burn_in: int = 10,
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _learn(self, X: Any, y: Any) -> None:
        del y
        self._learn_posterior(X)

    def _prior_of_new_samples(self) -> tuple[float, Any]:
        return self.S_shape_, self.S_shape_ / self.S_mean_


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
