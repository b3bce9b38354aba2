"""Base classes of scikit-learn, with types: it has none, and a constructor would take anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from .._common.arrays import Array

if TYPE_CHECKING:
    Self = TypeVar("Self")

    class BaseEstimator:
        """Parameters, output and routing of metadata."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self: Self, **params: Any) -> Self: ...
        def set_output(self: Self, *, transform: str | None = None) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self: Self, **metadata: bool | str | None) -> Self: ...
        def set_partial_fit_request(self: Self, **metadata: bool | str | None) -> Self: ...
        def set_predict_request(self: Self, **metadata: bool | str | None) -> Self: ...
        def set_score_request(self: Self, **metadata: bool | str | None) -> Self: ...
        def set_transform_request(self: Self, **metadata: bool | str | None) -> Self: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getattr__(self, name: str) -> Any: ...  # what a fit sets
        def __setattr__(self, name: str, value: Any) -> None: ...

    class TransformerMixin:
        """Any estimator that transforms."""

    class ClassNamePrefixFeaturesOutMixin:
        """Names of features after the class."""

        def get_feature_names_out(self, input_features: Any = None) -> Array: ...

    class OneToOneFeatureMixin:
        """Names of features of the input."""

        def get_feature_names_out(self, input_features: Any = None) -> Array: ...

    class ClassifierMixin:
        """Any classifier."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin:
        """Any regressor."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
    )

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "OneToOneFeatureMixin",
    "RegressorMixin",
    "TransformerMixin",
]
