"""Estimator :class:`NMF`: no supervision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._solver.beta_divergences import loss_named
from ._batches import BatchLearner
from ._conventions import set_parameters


class NMF(BatchLearner):
    """Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes ``sum W .* d(X, S A)`` over nonnegative S and A; see :func:`ssnmf_fast.factorize`.

    Parameters
    ----------
    n_components : int
        Rank r, at least 1.
    loss : {"frobenius", "kullback-leibler"}
        Loss of X: squared error, or the I-divergence.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`ssnmf_fast.factorize`.
    init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Start; a tuple holds S (n, r) and A (r, m).  "auto" is "least-squares" for the
        Kullback-Leibler loss, "random" for the Frobenius loss; see :func:`ssnmf_fast.factorize`.
    max_iter : int
        Largest number of iterations, at least 0.
    tol : float
        Stop when the objective falls by less than `tol` times its first value per iteration; 0
        never stops early.
    random_state : None, int, Generator or RandomState
        Seed of the start; give an int for the same result every time.
    n_threads : int, optional
        Number of threads; it does not change the result.  None uses the cores that are available.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``S`` and ``A``) after every
        check of the objective; returning True stops the fit.
    verbose : int
        1 shows progress on standard error.
    forget_factor : float
        In :meth:`partial_fit`, the share of their weight that earlier batches keep, between 0 and
        1.  A smaller value learns faster at first; a larger one ends closer to a fit to all data.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Dictionary A.
    representation_ : ndarray, shape (n, r)
        Factor S of the fit.
    objective_ : list of (int, float)
        Iterations at which the objective was evaluated, and its values.
    n_iter_ : int
        Number of iterations.
    n_components_ : int
        Number of components.
    reconstruction_err_ : float
        Distance of X from ``representation_ @ components_``, defined as in scikit-learn.
    n_features_in_ : int
        Number of features m.
    feature_names_in_ : ndarray of str, shape (m,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    SSNMFClassifier, SSNMFRegressor : The same with supervision.
    ssnmf_fast.factorize : The function behind it.

    Notes
    -----
    :meth:`transform` solves a convex problem over the fixed dictionary to its optimality
    conditions, so that ``fit_transform(X)`` equals ``fit(X).transform(X)``; `representation_`, the
    last iterate of the fit, lies close to both.

    References
    ----------
    .. [1] D. D. Lee, H. S. Seung, "Algorithms for non-negative matrix factorization", 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> model = sf.NMF(n_components=3, random_state=0).fit(X)
    >>> model.transform(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "frobenius",
        solver: str = "auto",
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
        forget_factor: float = 0.8,
    ) -> None:
        set_parameters(self, locals())

    @property
    def reconstruction_err_(self) -> float:
        """Distance of X from ``representation_ @ components_``, defined as in scikit-learn.

        The Frobenius norm of the difference; for another loss, the root of twice the loss.
        """
        if not hasattr(self, "representation_"):
            raise AttributeError("reconstruction_err_ is known after fit, not after partial_fit.")
        factor = 1 if loss_named(self.loss, "loss").quadratic else 2
        return math.sqrt(factor * self.objective_[-1][1])

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None) -> None:
        del y
        parameters = self._arguments(self._model_parameters + self._loop_parameters)
        self._keep(self._factorize(X, X_weights=X_weights, **parameters))

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
    ) -> NMF:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples of a batch, some hundreds or more; NaN in a dense X means missing.
        y : ignored
            Present for the conventions of scikit-learn.
        X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the loss of every entry.

        Returns
        -------
        self
            After each batch `components_` is up to date, `n_iter_` is the number of batches, and
            `objective_` has pairs of it and an estimate of the objective of all data, per sample.
            There is no `representation_`.

        Notes
        -----
        After :meth:`fit`, learning continues from its dictionary.  `solver`, `max_iter`, `tol`,
        `callback` and `verbose` are not used.  Losses, `n_components` and the weight of the
        supervision must stay the same for all batches: a change is refused.
        """
        self._learn_batch(self._batch(X), None, X_weights, None)
        return self
