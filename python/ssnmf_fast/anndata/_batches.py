"""Batches of cells: known columns of S, which profiles of batches go with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._common.arrays import Array
from ._data import cell_totals


def batches_of(adata: Any, batch_key: str | None) -> pd.Categorical | None:
    """Return the batch of each cell; raises ValueError where there is none."""
    if batch_key is None:
        return None
    if batch_key not in adata.obs:
        raise ValueError(
            f"batch_key={batch_key!r} is not among the columns of adata.obs, {list(adata.obs)}."
        )
    found = pd.Categorical(adata.obs[batch_key]).remove_unused_categories()
    missing = int((found.codes < 0).sum())
    if missing:
        raise ValueError(
            f"adata.obs[{batch_key!r}] has no value for {missing} cells; expected a batch for each."
        )
    if len(set(map(str, found.categories))) < len(found.categories):
        raise ValueError(
            f"adata.obs[{batch_key!r}] has values that are the same as text, such as 1 and '1'. "
            "Make them text, by astype(str)."
        )
    if len(found.categories) < 2:
        raise ValueError(
            f"adata.obs[{batch_key!r}] has the same value for all cells; leave batch_key out."
        )
    return found


def names_of_batches(batches: pd.Categorical | None) -> list[str]:
    """Return the names of the batches."""
    return [] if batches is None else [str(name) for name in batches.categories]


def usage_of_profiles(X: Any, batches: pd.Categorical) -> Array:
    """Return the columns of S that are known (n x batches): the size of a cell in its batch.

    A cell with twice the counts has twice as much of the profile; their mean is 1.
    """
    totals = cell_totals(X)
    found = np.zeros((len(totals), len(batches.categories)), X.dtype)
    found[np.arange(len(totals)), batches.codes] = totals / (totals.mean() or 1.0)
    return found
