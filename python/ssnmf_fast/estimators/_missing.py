"""Missing entries of X, marked by NaN or by weights of 0, for code that needs an X without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._solver.weights import as_weights

_BLOCK_ENTRIES = 1 << 22  # of X at a time, where they are filled


def visible(X: Any, X_weights: Any) -> Any:
    """Return X with 0 where an entry has no weight, as far as the form of the weights tells it."""
    if X_weights is None or sp.issparse(X_weights):  # the fit refuses the latter
        return X
    return as_weights(X_weights, "X_weights").hide(X)


@one_blas_thread()
def filled(X: Any, S: Array | None, A: Array | None, absent: Any = None) -> Any:
    """Return X with S A in the place of missing entries, or 0 without factors.

    NaN is missing, and what is `absent`: a boolean array or a boolean CSR matrix, (n, m).  The
    result is sparse where both X and that are.
    """
    if sp.issparse(X) and sp.issparse(absent):
        rest = sp.csr_array(X - X.multiply(absent))
        places = absent.nonzero()
        values = np.zeros(len(places[0])) if S is None or A is None else (S @ A)[places]
        return rest + sp.csr_array((values.astype(X.dtype), places), shape=X.shape)
    missing = False if sp.issparse(X) else np.isnan(X)
    if absent is not None:
        missing = missing | (absent.toarray() if sp.issparse(absent) else absent)
    if not np.any(missing):
        return X
    X = X.toarray() if sp.issparse(X) else np.array(X)
    X[missing] = 0 if S is None or A is None else (S @ A)[missing]
    return X


def row_blocks(X: Any, X_weights: Any) -> Iterator[tuple[slice, Any, Any]]:
    """Yield rows, these of X, and where they are missing for want of weight, or None.

    Missing entries may make the rows of a sparse X dense, and rows on disk come to memory: there is
    a bounded number of them at a time.
    """
    if isinstance(X, CsrFile):
        for rows, block in X.blocks():
            yield rows, block, None
        return
    if X_weights is None:
        yield slice(None), X, None
        return
    absent = as_weights(X_weights, "X_weights").absent(X.shape)
    step = max(1, _BLOCK_ENTRIES // X.shape[1])
    for begin in range(0, X.shape[0], step):
        rows = slice(begin, begin + step)
        yield rows, X[rows], absent(rows)
