"""Estimator :class:`NMF`: no supervision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._solver.beta_divergences import loss_named
from ._batches import BatchLearner
from ._conventions import documented, set_parameters


@documented
class NMF(BatchLearner):
    """Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes ``sum W .* d(X, S A)`` over nonnegative S and A; see :func:`ssnmf_fast.factorize`.

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

    def partial_fit(self, X: Any, y: Any = None, *, X_weights: Any = None) -> NMF:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples of a batch, some hundreds or more; NaN in a dense X means missing.

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
