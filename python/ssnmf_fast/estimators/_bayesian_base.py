"""What the estimators of variational Bayes share: fit, intervals, new samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammainccinv, gammaincinv
from sklearn.utils.validation import check_is_fitted

from .._csr_file import CsrFile
from .._validation import check_real
from .._variational import Groups, fit_variational, infer
from ._base import FactorizationBase
from ._targets import ClassLabels

Array = npt.NDArray[Any]

_TRANSFORM_ITERATIONS = 100


class BayesianBase(FactorizationBase):
    """Poisson-gamma NMF with gamma posteriors; subclasses say what is known of S beforehand."""

    a_lambda: float | str

    _fitted_attributes: ClassVar[tuple[str, ...]] = (
        *FactorizationBase._fitted_attributes,
        "components_rate_",
        "representation_rates_",
        "representation_groups_",
        "lower_bound_",
        "a_A_",
        "b_A_",
    )
    _model_parameters: ClassVar[tuple[str, ...]] = (
        "n_components",
        "a_A",
        "b_A",
        "burn_in",
        "init",
        "max_iter",
        "tol",
        "random_state",
        "n_threads",
        "callback",
        "verbose",
    )

    def __sklearn_tags__(self) -> Any:
        """Return the tags: no missing entries."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, CsrFile):
            raise TypeError(
                f"{type(self).__name__} needs X in memory, and it is on disk (CsrFile). Give "
                "X.rows(slice(0, n)) of as many rows n as memory holds, or use NMF."
            )
        return super()._checked(X, reset=reset)

    def _learn_posterior(self, X: Any, labels: ClassLabels | None = None) -> None:
        """Fit to checked data; set the attributes only once it has succeeded."""
        groups = None if labels is None else _groups(labels)
        arguments = self._arguments(self._model_parameters)
        if labels is not None and isinstance(self.a_lambda, str) and self.a_lambda == "auto":
            arguments["a_lambda"] = len(labels.known) / len(labels.classes)
        result: Any = fit_variational(X, groups, **arguments)
        self.components_ = result.A
        self.components_rate_ = result.A_rates
        self.representation_ = result.S
        self.representation_rates_ = result.S_rates
        self.representation_groups_ = (
            np.zeros(len(result.S), dtype=np.int32) if groups is None else groups.codes
        )
        self.objective_ = result.objective
        self.lower_bound_ = -result.objective[-1][1]
        self.n_iter_ = result.n_iter
        for name, value in result.hyperparameters.items():
            setattr(self, f"{name}_", value)
        if labels is not None:
            self._keep_labels(labels, result.label_rates)
        self._warn_unless_converged(result)

    def _keep_labels(self, labels: ClassLabels, rates: Array) -> None:
        """Set the attributes that follow from the labels and the rates, (groups, r)."""
        raise NotImplementedError

    def _prior_of_new_samples(self) -> tuple[float, Any]:
        """Return shape and rates of the prior of S."""
        raise NotImplementedError

    def _represent(self, X: Any, X_weights: Any = None) -> Array:
        del X_weights
        return infer(
            X,
            self.components_,
            self.components_rate_,
            *self._prior_of_new_samples(),
            _TRANSFORM_ITERATIONS,
            self.n_threads,
        )

    def transform(self, X: Any) -> Array:  # type: ignore[override]
        """Represent samples over the learned dictionary, whose posterior stays as it is.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples, without NaN.

        Returns
        -------
        S : ndarray, shape (n, r)
            Posterior expectations after 100 iterations, of the dtype of X (float32 or float64).
        """
        check_is_fitted(self)
        return self._represent(self._checked(X, reset=False))

    def interval_components(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return credible intervals of the entries of the dictionary.

        Parameters
        ----------
        level : float
            Probability inside the interval, above 0 and below 1; the rest lies to both sides in
            equal parts.

        Returns
        -------
        low, high : ndarray, shape (r, m)
            Quantiles of the gamma posteriors, of the dtype of `components_`.

        Notes
        -----
        The approximate posterior treats S and A as independent and has one mode: intervals are too
        narrow rather than too wide.
        """
        check_is_fitted(self)
        return _interval(self.components_, self.components_rate_[:, None], level)

    def interval_representation(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return credible intervals of the entries of `representation_`.

        Parameters
        ----------
        level : float
            As in :meth:`interval_components`.

        Returns
        -------
        low, high : ndarray, shape (n, r)
            Quantiles of the gamma posteriors, of the dtype of `representation_`.
        """
        check_is_fitted(self)
        rates = self.representation_rates_[self.representation_groups_]
        return _interval(self.representation_, rates, level)


def _interval(expectations: Array, rates: Array, level: float) -> tuple[Array, Array]:
    level = check_real(level, "level")
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, for example 0.9; got {level!r}.")
    tail = (1 - level) / 2
    shapes = expectations.astype(np.float64) * rates
    low, high = gammaincinv(shapes, tail) / rates, gammainccinv(shapes, tail) / rates
    return low.astype(expectations.dtype), high.astype(expectations.dtype)


def _groups(labels: ClassLabels) -> Groups:
    """Return the classes as groups; unlabelled samples are the last one, if there are any."""
    codes = np.full(len(labels.labelled), len(labels.classes), dtype=np.int32)
    codes[labels.labelled] = labels.codes
    return Groups(codes, np.bincount(codes))
