"""Parameters of estimators: attributes of the same names, unchanged, as scikit-learn wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def set_parameters(estimator: Any, given: Mapping[str, Any]) -> None:
    """Set the arguments of ``__init__``; `given` is its ``locals()``."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)
