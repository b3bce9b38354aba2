"""What the estimators share: validation, fit, representation, topics."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .._csr_file import CsrFile
from .._factorize import Factorization, factorize
from .._online import Online, learn_batch
from .._represent import represent
from .._topics import Topics, make_topics
from .._validation import readable
from .._warn import warn_user
from ._all_or_nothing import AllOrNothing

Array = npt.NDArray[Any]

_DTYPES = [np.float64, np.float32]


def require(estimator: Any, X: Any, y: Any) -> None:
    """Raise ValueError unless there is a `y` with one row for each sample of X."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Use NMF to fit without targets."
        )
    check_consistent_length(X, y)


class FactorizationBase(
    AllOrNothing,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A dictionary learned from X, over which samples are represented.

    A subclass lists in `_fitted_attributes` what :func:`ssnmf_fast.save` keeps, and is entered in
    the registry of ``_io.py``.
    """

    label_components_: Any

    _fitted_attributes: ClassVar[tuple[str, ...]] = (
        "components_",
        "representation_",
        "n_iter_",
        "objective_",
        "n_features_in_",
        "feature_names_in_",
    )
    _model_parameters: ClassVar[tuple[str, ...]] = (
        "n_components",
        "reconstruction",
        "init",
        "random_state",
        "n_threads",
    )
    # Those of the fit loop have no part in learning from batches.
    _loop_parameters: ClassVar[tuple[str, ...]] = (
        "solver",
        "max_iter",
        "tol",
        "callback",
        "verbose",
    )

    def __sklearn_tags__(self) -> Any:
        """Return the tags: nonnegative X, sparse allowed, NaN = missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, CsrFile):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        allow_nan = self.__sklearn_tags__().input_tags.allow_nan
        return validate_data(
            self,
            readable(X, "X", allow_nan=allow_nan),
            reset=reset,
            dtype=_DTYPES,
            accept_sparse="csr",
            ensure_all_finite="allow-nan" if allow_nan else True,
        )

    def _learn(self, X: Any, y: Any, X_weights: Any, y_weights: Any) -> None:
        """Run the factorisation on checked data, and set the attributes."""
        Y, Y_weights, facts = self._read_targets(X, y, y_weights)
        result = factorize(
            X,
            Y,
            X_weights=X_weights,
            Y_weights=Y_weights,
            **self._arguments(self._model_parameters + self._loop_parameters),
        )
        self._keep(result, facts)

    def _keep(self, result: Factorization, facts: dict[str, Any]) -> None:
        """Set the attributes of a fit, and say so if it has not converged."""
        self.__dict__.pop("_online", None)
        self.components_ = result.A
        self.representation_ = result.S
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        if result.B is not None:
            self.label_components_ = result.B
        for name, value in facts.items():
            setattr(self, name, value)
        self._warn_unless_converged(result)

    def _learn_batch(
        self,
        X: Any,
        y: Any,
        X_weights: Any,
        y_weights: Any,
        past_weight: float,
        **known: Any,
    ) -> None:
        """Learn from one batch, and set the attributes.

        `known` is what the caller says of the targets of all batches.
        """
        X = self._checked(X, reset=not hasattr(self, "components_"))
        Y, Y_weights, facts = self._read_batch(X, y, y_weights, **known)
        arguments = self._batch_arguments(facts)
        online = getattr(self, "_online", None)
        if online is None and hasattr(self, "components_"):
            online = Online.resumed(self.components_, getattr(self, "label_components_", None))
        online = learn_batch(
            online,
            X,
            Y,
            X_weights=X_weights,
            Y_weights=Y_weights,
            past_weight=past_weight,
            **arguments,
        )
        first = not hasattr(self, "_online")
        self._online = online
        self.components_ = online.array("A")
        if Y is not None:
            self.label_components_ = online.array("B")
        self.n_iter_ = online.n_steps
        earlier = [] if first else self.objective_
        # A new list: copies of the model share the old one.
        self.objective_ = [*earlier, (online.n_steps, online.mean_loss)]
        self.__dict__.pop("representation_", None)
        for name, value in facts.items():
            setattr(self, name, value)

    def _read_targets(self, X: Any, y: Any, y_weights: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Return the matrix Y, (n, k), its weights, and the attributes that follow from `y`."""
        return None, None, {}

    def _read_batch(
        self, X: Any, y: Any, y_weights: Any, **known: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return the same of one batch."""
        return None, None, {}

    def _batch_arguments(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters for learning from a batch, of which `facts` is known."""
        del facts
        return self._arguments(self._model_parameters)

    def _arguments(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def _warn_unless_converged(self, result: Factorization) -> None:
        if not result.converged and self.tol > 0 and 0 < self.max_iter <= result.n_iter:
            warn_user(
                f"The stopping rule was not met within max_iter={self.max_iter} iterations. "
                "Increase max_iter or tol; tol=0 always runs max_iter iterations, without this "
                "warning.",
                ConvergenceWarning,
            )

    def _represent(self, X: Any, X_weights: Any) -> Array:
        """Represent checked data."""
        return represent(
            X,
            self.components_,
            loss=self.reconstruction,
            X_weights=X_weights,
            n_threads=self.n_threads,
        )

    def transform(self, X: Any, *, X_weights: Any = None) -> Array:
        """Represent samples over the learned dictionary.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Nonnegative samples; NaN in a dense X means missing.
        X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
            Nonnegative weights of the loss of every entry.

        Returns
        -------
        S : ndarray, shape (n, r)
            Nonnegative, of the dtype of X (float32 or float64).
        """
        check_is_fitted(self)
        return self._represent(self._checked(X, reset=False), X_weights)

    def inverse_transform(self, X: Any) -> Array:
        """Return the data that a representation stands for, ``S @ components_``.

        Parameters
        ----------
        X : array_like, shape (n, r)
            A representation S, as from :meth:`transform`.

        Returns
        -------
        ndarray, shape (n, m)
        """
        S = self._checked_features(X)
        return np.asarray(S @ self.components_.astype(S.dtype, copy=False))

    def _checked_features(self, X: Any) -> Array:
        """Return what :meth:`transform` returned, checked."""
        check_is_fitted(self)
        S: Array = check_array(readable(X, "X", allow_nan=False), dtype=_DTYPES)
        if S.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has shape {S.shape}; needed is one column for each of the "
                f"{self._n_features_out} components, as transform returns."
            )
        return S

    def topics(self, feature_names: Any = None, n_terms: int = 10) -> Topics:
        """Return the features of the largest weight of every component.

        Parameters
        ----------
        feature_names : array_like of str, shape (m,), optional
            Names of the features, for example ``vectorizer.get_feature_names_out()``.  None takes
            the names seen in fit, or else "x0", "x1", ...
        n_terms : int
            Number of terms per topic, at least 1.

        Returns
        -------
        Topics
            A sequence of topics; print it, or see its ``to_rows`` and ``to_frame``.
        """
        check_is_fitted(self)
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", None)
        return make_topics(self.components_, feature_names, n_terms, *self._class_shares())

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        """Return the classes and the components over them, where there are classes."""
        return None, None
