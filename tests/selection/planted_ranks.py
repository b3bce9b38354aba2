"""Matrices with a known number of components, and ways to give weights to their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ssnmf_fast import weights

RANK = 3


def counts(seed: int = 0, n: int = 60, m: int = 40) -> np.ndarray[Any, Any]:
    """Return counts of mean 8."""
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.5, 1, (n, RANK)) @ rng.gamma(0.5, 1, (RANK, m))
    return rng.poisson(means * (8 / means.mean())).astype(np.float64)


def amounts(seed: int = 0, n: int = 60, m: int = 40) -> np.ndarray[Any, Any]:
    """Return numbers with a little Gaussian noise."""
    rng = np.random.default_rng(seed)
    means = rng.gamma(2, 1, (n, RANK)) @ rng.gamma(2, 1, (RANK, m))
    return np.maximum(means + 0.2 * means.std() * rng.standard_normal((n, m)), 0)


def absent(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return some entries that shall have no weight."""
    return np.random.default_rng(9).random(shape) < 0.1


def weighed(hidden: Any) -> dict[str, Any]:
    """Return weights of 0 at some entries, in all forms."""
    return {
        "array": np.where(hidden, 0.0, 2.0),
        "observed": weights.observed(sp.csr_array(np.where(hidden, 0.0, 2.0))),
        "missing": weights.missing(sp.csr_array(hidden)),
    }
