"""Base classes of scikit-learn with types, so that calls of derived classes are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from .arrays import Array

if not TYPE_CHECKING:
    from sklearn.base import *  # noqa: F403
else:
    Self = TypeVar("Self")

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            raise NotImplementedError

        def set_params(self: Self, **params: Any) -> Self:
            return self

        def __sklearn_tags__(self) -> Any: ...

        def __getattr__(self, name: str) -> Any: ...  # attributes of a fit

        def __setattr__(self, name: str, value: Any) -> None: ...

    class TransformerMixin:
        def set_output(self: Self, *, transform: str | None = None) -> Self:
            return self

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> Array:
            raise NotImplementedError

    OneToOneFeatureMixin = ClassNamePrefixFeaturesOutMixin

    class ClassifierMixin: ...

    class RegressorMixin: ...
