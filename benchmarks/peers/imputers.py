"""How far from the truth are fills of tables, by LowRankImputer and by other imputers?

A fifth of the entries of complete tables is hidden, by five draws; the root mean squared error of
the fills, in standard deviations of the columns, is compared with that of column means, and of
KNNImputer (on standardized columns) and IterativeImputer of scikit-learn with their defaults.

Other benchmarks take from here SoftImpute and IterativeSVD of fancyimpute, and SoftImpute in plain
NumPy where that is missing.  fancyimpute 0.7.0 is no longer maintained: it fails with scikit-learn
since 1.8, which renamed an argument of `check_array`, and imports packages that these two methods
do not use.  `fancyimpute()` mends both.  Install it with
`python -m pip install --no-deps fancyimpute==0.7.0`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
from common import Array, timed
from records import Options, Question, Record, grouped, markdown
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.utils import check_array

import ssnmf_fast as sf

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
    if max_rank is None:
        U, singular, Vt = np.linalg.svd(X, full_matrices=False)
    else:
        from sklearn.utils.extmath import randomized_svd

        U, singular, Vt = randomized_svd(X, max_rank, n_iter=1, random_state=0)
    kept = int(np.count_nonzero(singular > shrinkage))
    product: Array = (U[:, :kept] * (singular[:kept] - shrinkage)) @ Vt[:kept]
    return product


def tables(quick: bool) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    planted = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 12))
    skewed = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 8))
    day = np.sin(np.arange(200) / 200 * 4 * np.pi)[:, None]
    weather = np.array([0.0, 288, 101325, 60]) + day * [0, 8, 500, -10]
    weather += rng.standard_normal((200, 4)) * [0, 1, 80, 2]
    weather[:, 0] = 1990 + np.arange(200) % 30
    digits = datasets.load_digits().data[:600]
    linnerud = datasets.load_linnerud()
    found = {
        "wine": datasets.load_wine().data,
        "iris": datasets.load_iris().data,
        "breast cancer": datasets.load_breast_cancer().data,
        "diabetes": datasets.load_diabetes().data,
        "digits, 600 of them": digits[:, digits.std(axis=0) > 0],
        "linnerud": np.hstack([linnerud.data, linnerud.target]),
        "planted rank 3, noise": planted + rng.standard_normal(planted.shape),
        "log-normal": np.exp(skewed / 2 + 0.3 * rng.standard_normal(skewed.shape)),
        "year, kelvin, pascal, %": weather,
        "noise": rng.standard_normal((60, 6)),
    }
    return {name: X[:30] for name, X in list(found.items())[:2]} if quick else found


def scaled_neighbors(X: Array) -> Array:
    means, deviations = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    deviations[deviations == 0] = 1.0
    filled: Array = KNNImputer().fit_transform((X - means) / deviations) * deviations + means
    return filled


OPTIONS = {"draws": 5, "share": (0.2, "of the entries, to hide")}
QUICK = {"draws": 1}


def imputers() -> dict[str, Impute]:
    return {
        "column means": SimpleImputer().fit_transform,
        "KNNImputer": scaled_neighbors,
        "IterativeImputer": IterativeImputer(random_state=0).fit_transform,
        "LowRankImputer": sf.LowRankImputer(random_state=0, n_threads=1).fit_transform,
    }


def measure(options: Options, table: str, share: float, seed: int) -> Record:
    X = tables(options.quick)[table]
    hidden = np.random.default_rng(seed).random(X.shape) < share
    errors, took = {}, 0.0
    for imputer, impute in imputers().items():
        filled, took = timed(impute, np.where(hidden, np.nan, X))
        gaps = ((filled - X) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1))[hidden]
        errors[imputer] = float(np.sqrt(np.mean(gaps**2)))
    return {"errors": errors, "seconds": took, "size": " x ".join(map(str, X.shape))}


def report(records: list[Record], options: Options) -> str:
    rows = []
    for (table, size), own in grouped(records, "table", "size").items():
        errors = [np.mean([r["errors"][name] for r in own]) for name in own[0]["errors"]]
        rows.append([table, size, *(f"{e:.3f}" for e in errors), f"{own[-1]['seconds']:.1f}"])
    header = ["table", "size", *records[0]["errors"], "seconds"]
    title = f"{options.draws} draws, {options.share:.0%} hidden, one thread"
    return f"{title}\n\n{markdown(header, rows)}"


QUESTION = Question(
    "table share seed",
    lambda o: product(tables(o.quick), [o.share], range(o.draws)),
    measure,
    report,
)
