"""Tensors with a known number of components."""

from __future__ import annotations

from typing import Any

import numpy as np

RANK = 3
SHAPE = (14, 12, 10)


def amounts(seed: int = 0, rank: int = RANK) -> np.ndarray[Any, Any]:
    """Return numbers with a little Gaussian noise."""
    rng = np.random.default_rng(seed)
    means = np.einsum("iq,jq,kq->ijk", *(rng.gamma(1.0, size=(n, rank)) for n in SHAPE))
    return np.maximum(means + 0.1 * means.std() * rng.standard_normal(SHAPE), 0)


def counts(seed: int = 0, rank: int = RANK) -> np.ndarray[Any, Any]:
    """Return counts, half of them 0 or more."""
    rng = np.random.default_rng(seed)
    means = np.einsum("iq,jq,kq->ijk", *(rng.gamma(0.4, size=(n, rank)) for n in SHAPE))
    return rng.poisson(means * (2 / means.mean())).astype(np.float64)
