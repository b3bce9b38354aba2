"""Estimator :class:`NMF`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import Saved
from .._data.arrays import as_array
from .._data.border import check_matrix
from .._solver.losses import loss_named
from .._topics import Topics, topic_shares
from ._batches import BatchLearner
from ._docstrings import complete_docstring
from ._receipts import Restated


def _table(S_fixed: Any) -> Any:
    """Return given columns of S as a checked array; one in chunks stays as it is."""
    if S_fixed is None or hasattr(S_fixed, "chunks"):
        return S_fixed
    return check_matrix(as_array(S_fixed, "S_fixed"), "S_fixed", allow_nan=False)


@complete_docstring
@dataclass(eq=False, repr=False)
class NMF(BatchLearner):
    """Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes ``sum W .* d(X, S A)`` over nonnegative S and A; see :func:`ssnmf_fast.factorize`.

    Attributes
    ----------
    topic_names_ : ndarray of str, shape (r,)
        Names of the topics, where they come from :func:`ssnmf_fast.split` or
        :func:`ssnmf_fast.merge`.

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

    n_components: int = 10
    _: KW_ONLY
    loss: str = "frobenius"
    solver: str = "auto"
    init: Any = "auto"
    n_starts: int = 1
    forget_factor: float = 0.8
    A_support: Any = None
    A_fixed: Any = None
    penalties: Any = None

    _saved: ClassVar = {"topic_names_": Saved("r", "text", optional=True)}
    _of_fit: ClassVar = ("X_weights", "S_fixed", "A_support", "A_fixed", "penalties")

    @property
    def reconstruction_err_(self) -> float:
        """Distance of X from ``representation_ @ components_``, defined as in scikit-learn.

        The Frobenius norm of the difference; for another loss, the root of twice the loss.
        """
        if not hasattr(self, "representation_") or not self.objective_:
            raise AttributeError(
                "reconstruction_err_ is known after fit, not after partial_fit or merge."
            )
        factor = 1 if loss_named(self.loss, "loss").quadratic else 2
        return math.sqrt(factor * self.objective_[-1][1])

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, S_fixed: Any = None) -> None:
        del y
        given = {"X_weights": X_weights, **self._arguments()}
        if S_fixed is not None:
            given["S_fixed"] = S_fixed
        n_fixed = 0 if S_fixed is None else S_fixed.shape[1]
        self._keep(self._factorize(X, **given), n_fixed_=n_fixed)

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        del y
        return Restated(X, {name: self._parameter(name, given) for name in self._of_fit})

    def fit(self, X: Any, y: Any = None, *, X_weights: Any = None, S_fixed: Any = None) -> NMF:
        """Learn a dictionary.

        Parameters
        ----------
        S_fixed : array_like, shape (n, number of fixed components), optional
            The last columns of S, which are given: known covariates of the samples such as
            indicators of batches, or a column of ones.  The dictionary learns what goes with them.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` is reached before the stopping rule is met, unless tol = 0.
        """
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, S_fixed=_table(S_fixed))
        return self

    def transform(self, X: Any, *, X_weights: Any = None, S_fixed: Any = None) -> Array:
        """Represent samples over the learned dictionary.

        Parameters
        ----------
        S_fixed : array_like, shape (n, number of fixed components), optional
            The given columns of S for these samples, where the fit had some.

        Returns
        -------
        S : ndarray, shape (n, r)
            Nonnegative, of the dtype of X (float32 or float64).
        """
        check_is_fitted(self)
        return self._features(self._checked(X, reset=False), X_weights, S_fixed=_table(S_fixed))

    def shares(self, X: Any, *, X_weights: Any = None, S_fixed: Any = None) -> Array:
        """Return the share of each sample that every component explains.

        A component explains its coefficient in S times the sum of its row of `components_`.  The
        scales of the rows are arbitrary, so the coefficients themselves are not comparable.

        Parameters
        ----------
        S_fixed : array_like, shape (n, number of fixed components), optional
            As in :meth:`transform`.

        Returns
        -------
        ndarray, shape (n, r)
            Nonnegative, float64.  Rows sum to 1; a row is zero where no component explains anything
            of the sample, as for a row of zeros.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        S = self._represent(X, X_weights, S_fixed=_table(S_fixed))
        return topic_shares(S, self.components_)

    def _represent(self, X: Any, X_weights: Any, **known: Any) -> Array:
        wanted, given = getattr(self, "n_fixed_", 0), known.get("S_fixed")
        found = 0 if given is None else given.shape[1]
        if found != wanted:
            raise ValueError(
                f"S_fixed has {found} columns, and the fit had {wanted}; give the same covariates "
                "for these samples, or none if the fit had none."
            )
        return super()._represent(X, X_weights, **known)

    def topics(self, feature_names: Any = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest weights of every topic, and names of split ones."""
        topics, names = super().topics(feature_names, n_terms), getattr(self, "topic_names_", None)
        return topics if names is None else topics.named(names.tolist())

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
        self._learn_batch(self._batch(X), None, X_weights)
        return self
