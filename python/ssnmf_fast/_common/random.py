"""Seeds."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a nonnegative integer, a numpy Generator or a RandomState; "
            f"got {random_state!r}."
        ) from error
