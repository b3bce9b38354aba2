"""SoftImpute and IterativeSVD of fancyimpute, and SoftImpute in plain NumPy where that is missing.

fancyimpute 0.7.0 is no longer maintained: it fails with scikit-learn since 1.8, which renamed an
argument of `check_array`, and imports packages that these two methods do not use.  `fancyimpute()`
mends both.  Install it with `python -m pip install --no-deps fancyimpute==0.7.0`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Impute = Callable[[Array], Array]  # an array with NaN -> the whole array

UNUSED = {"cvxpy": [], "knnimpute": ["knn_impute_few_observed", "knn_impute_with_argpartition"]}
# The defaults of fancyimpute's SoftImpute.
SHARE_OF_LARGEST, THRESHOLD, MAX_ITERATIONS = 1 / 50, 1e-3, 100


def fancyimpute() -> Any:
    """Return the package fit for use, None if it is not installed."""
    for name, functions in UNUSED.items():
        try:
            importlib.import_module(name)
        except ImportError:
            stub = ModuleType(name)
            for function in functions:
                setattr(stub, function, None)
            sys.modules[name] = stub
    try:
        package = importlib.import_module("fancyimpute")
    except ImportError:
        return None
    from sklearn.utils import check_array

    def renamed(X: Any, force_all_finite: Any = True, **more: Any) -> Any:
        return check_array(X, ensure_all_finite=force_all_finite, **more)

    for part in ("solver", "soft_impute", "iterative_svd"):
        importlib.import_module(f"fancyimpute.{part}").check_array = renamed
    return package


def soft_impute(shrinkage: float | None = None, max_rank: int | None = None) -> Impute:
    """Return SoftImpute with this shrinkage (by default that of fancyimpute)."""
    package = fancyimpute()
    if package is None:
        return lambda X: numpy_soft_impute(X, shrinkage, max_rank)
    return lambda X: package.SoftImpute(
        shrinkage_value=shrinkage, max_rank=max_rank, verbose=False
    ).fit_transform(X)


def iterative_svd(rank: int) -> Impute | None:
    """Return IterativeSVD of this rank, None without fancyimpute."""
    package = fancyimpute()
    if package is None:
        return None
    return lambda X: package.IterativeSVD(rank=rank, verbose=False).fit_transform(X)


def source() -> str:
    """Return whose SoftImpute it is."""
    return "NumPy, ours" if fancyimpute() is None else "fancyimpute"


def numpy_soft_impute(X: Array, shrinkage: float | None, max_rank: int | None) -> Array:
    """SoftImpute (Mazumder, Hastie and Tibshirani 2010), the loop and the stop of fancyimpute."""
    missing = np.isnan(X)
    filled = np.where(missing, 0.0, X)
    if shrinkage is None:
        shrinkage = float(np.linalg.norm(filled, 2)) * SHARE_OF_LARGEST
    for _ in range(MAX_ITERATIONS):
        before = filled[missing]
        now = _shrunk(filled, shrinkage, max_rank)[missing]
        filled[missing] = now
        length = float(np.linalg.norm(before))
        if length > 0 and np.linalg.norm(now - before) < THRESHOLD * length:
            break
    return filled


def _shrunk(X: Array, shrinkage: float, max_rank: int | None) -> Array:
    """Soft-threshold the singular values, all of them or the leading ones."""
    if max_rank is None:
        U, singular, Vt = np.linalg.svd(X, full_matrices=False)
    else:
        from sklearn.utils.extmath import randomized_svd

        U, singular, Vt = randomized_svd(X, max_rank, n_iter=1, random_state=0)
    kept = int(np.count_nonzero(singular > shrinkage))
    product: Array = (U[:, :kept] * (singular[:kept] - shrinkage)) @ Vt[:kept]
    return product
