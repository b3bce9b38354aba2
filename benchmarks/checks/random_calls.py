"""Random calls of the public functions, legal and not, with answers checked outside the library.

Case number k of a seed is always the same call.  :mod:`fuzz` and :mod:`same_bits` make them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import outside
import scipy.sparse as sp

import ssnmf_fast as sf

Array = npt.NDArray[Any]
Results = dict[str, Any]

SOLVERS = ("auto", "mm", "mu", "hals")
LOSSES = ("frobenius", "kullback-leibler")
FORMATS = ("array", "array", "csr", "csr", "csc", "coo", "bsr", "lil")
ORDINARY_SCALES = (1.0, 1e-3, 1e3)  # that are fitted without a change of units
SCALES = (1.0, 1.0, 1.0, 2.0**-40, 2.0**40, 1e-6, 1e6)


@dataclass
class Call:
    """A call: what goes in, how results come out, and what is wrong with them."""

    name: str
    arguments: dict[str, Any]
    compute: Callable[[dict[str, Any], int], Results]
    complaints: Callable[[Results], list[str]]
    illegal: str = ""  # the argument that must be refused


def make(seed: int, case: int, illegal: bool | None = None) -> Call:
    """Return case number `case`; `illegal` says whether an argument is to be refused."""
    rng = np.random.default_rng([seed, case])
    groups = _groups()
    makers = groups[rng.choice(len(groups), p=_SHARES)]
    call = makers[rng.integers(len(makers))](rng)
    if illegal is None:
        illegal = bool(rng.random() < 0.15)
    if illegal:
        spoil(call, rng)
    return call


# How often what is called: functions, losses by number and of the user's, estimators, forms of
# labels, tensors, and blocks on a cluster.
_SHARES = (0.28, 0.15, 0.22, 0.1, 0.2, 0.05)


@functools.cache
def _groups() -> tuple[list[Callable[[Any], Call]], ...]:
    from random_clusters import CLUSTERS
    from random_labels import LABEL_FORMS
    from random_losses import LOSSES_BY_NUMBER
    from random_models import MODELS
    from random_tensors import TENSORS

    return FUNCTIONS, LOSSES_BY_NUMBER, MODELS, LABEL_FORMS, TENSORS, CLUSTERS


# ---------------------------------------------------------------- data


def matrix(
    rng: Any,
    shape: tuple[int, int],
    dtype: Any,
    missing: bool = False,
    scales: tuple[float, ...] = SCALES,
) -> tuple[Any, Any]:
    """Return X in a random format, and its dense float64 array with NaN for what is missing."""
    density = rng.choice([0.1, 0.4, 1.0])
    kind = rng.integers(3)
    dense = [rng.random(shape), rng.poisson(2, shape), rng.gamma(0.3, 1, shape)][kind]
    dense = dense * (rng.random(shape) < density)
    largest = np.inf if dtype == np.float64 else 1e6  # float32 data are refused from 1e9 on
    dense = (dense * min(rng.choice(scales), largest)).astype(dtype)
    if rng.random() < 0.1:
        dense[rng.integers(shape[0])] = 0
    if rng.random() < 0.1:
        dense[:, rng.integers(shape[1])] = 0
    style = str(rng.choice(FORMATS))
    if style == "array":
        if missing and rng.random() < 0.3:
            dense[rng.random(shape) < 0.2] = np.nan
        return layout(rng, dense), dense.astype(np.float64)
    return sp.coo_array(dense).asformat(style), dense.astype(np.float64)


def layout(rng: Any, X: Array) -> Array:
    """Return the same array in some layout of memory."""
    way = rng.integers(5)
    if way == 0:
        return np.asfortranarray(X)
    if way == 1:
        return np.repeat(X, 2, axis=0)[::2]
    if way == 2:
        return X[::-1].copy()[::-1]
    return X


def weights(rng: Any, shape: tuple[int, int], X: Array) -> tuple[Any, Array]:
    """Return weights in a random form, and as a dense array; none where X says what is missing."""
    if np.isnan(X).any():
        return None, np.ones(shape)
    pattern = rng.random(shape) < rng.choice([0.2, 0.7])
    way = rng.integers(6)
    if way == 0:
        W = rng.random(shape) * pattern
        return W, W
    if way == 1:
        W = np.round(rng.random(shape), 3) * pattern
        return sf.weights.observed(sp.csr_array(W)), W
    if way == 2:
        return sf.weights.missing(sp.csc_array(pattern)), 1.0 - pattern
    if way == 3:
        a, b = rng.random(shape[0]), rng.random(shape[1])
        return sf.weights.outer(a, b), np.outer(a, b)
    return None, np.ones(shape)


def sizes(rng: Any) -> tuple[int, int]:
    """Return n and m: small, now and then large enough for threads."""
    if rng.random() < 0.03:
        return int(rng.integers(200, 3000)), int(rng.integers(50, 400))
    return int(rng.integers(1, 30)), int(rng.integers(1, 30))


def floats(rng: Any) -> Any:
    return rng.choice([np.float64, np.float64, np.float32])


# ---------------------------------------------------------------- functions


def results_of(fit: Any) -> Results:
    labels = {} if fit.B is None else {"B": fit.B, "weight": fit.supervision_weight}
    return {"S": fit.S, "A": fit.A, "objective": [v for _, v in fit.objective], **labels}


def factorize(rng: Any) -> Call:
    shape, dtype = sizes(rng), floats(rng)
    X, dense = matrix(rng, shape, dtype, missing=True)
    rank = int(rng.integers(1, 8))
    arguments: dict[str, Any] = {
        "X": X,
        "n_components": rank,
        "loss": str(rng.choice(LOSSES)),
        "max_iter": int(rng.integers(0, 25)),
        "tol": float(rng.choice([0, 1e-4])),
        "random_state": int(rng.integers(1000)),
        "solver": str(rng.choice(SOLVERS)),
        "init": str(rng.choice(["auto", "random", "random-acol", "least-squares"])),
    }
    arguments["X_weights"], W = weights(rng, shape, dense)
    Y = None
    if rng.random() < 0.5:
        Y = (rng.random((shape[0], 3)) < 0.4).astype(dtype)
        Y[rng.random(shape[0]) < 0.3] = np.nan
        arguments |= {"Y": Y, "supervision_loss": str(rng.choice(LOSSES))}
        arguments["supervision_weight"] = [0.0, 1.0, 30.0, "balanced"][rng.integers(4)]
    if rng.random() < 0.2:
        arguments["S_support"] = rng.random((shape[0], rank)) < 0.7

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        return results_of(sf.factorize(**given, n_threads=n_threads))

    def complaints(results: Results) -> list[str]:
        found = outside.factors(results, ("S", "A", "B"))
        if "S_support" in arguments and results["S"][~arguments["S_support"]].any():
            found.append("S is positive outside of its support")
        expected = outside.objective(
            dense, W, results, Y, arguments["loss"], arguments.get("supervision_loss", "")
        )
        total = outside.size(dense, W, arguments["loss"])
        mixed = arguments["solver"] == "mu" and "Y" in arguments
        return found or outside.trace(results["objective"], expected, total, dtype, mixed)

    return Call("factorize", arguments, compute, complaints)


def represent(rng: Any) -> Call:
    shape, dtype = sizes(rng), floats(rng)
    X, dense = matrix(rng, shape, dtype, missing=True)
    rank = int(rng.integers(1, 8))
    A = rng.gamma(0.5, 1, (rank, shape[1])).astype(dtype)
    A *= (rng.random(A.shape) < 0.8).astype(dtype)
    largest = 8 if dtype == np.float64 else 2
    if rng.random() < 0.3:
        A *= (10.0 ** rng.uniform(-largest, largest, (rank, 1))).astype(dtype)
    loss = str(rng.choice(LOSSES))
    W_given, W = weights(rng, shape, dense)
    arguments = {"X": X, "A": A, "loss": loss, "X_weights": W_given}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        return {"S": sf.represent(**given, n_threads=n_threads)}

    def complaints(results: Results) -> list[str]:
        found = outside.factors(results, ("S",))
        slack = 1e-4 if dtype == np.float64 else 2e-2
        return found or outside.optimality(dense, W, results["S"], A, loss, slack)

    return Call("represent", arguments, compute, complaints)


def objective(rng: Any) -> Call:
    shape, dtype = sizes(rng), floats(rng)
    X, dense = matrix(rng, shape, dtype, missing=True)
    rank = int(rng.integers(1, 6))
    factors = {"S": rng.random((shape[0], rank)), "A": rng.random((rank, shape[1]))}
    loss = str(rng.choice(LOSSES))
    W_given, W = weights(rng, shape, dense)
    arguments = {"X": X, **factors, "loss": loss, "X_weights": W_given}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        return {"value": sf.objective(**given, n_threads=n_threads)}

    def complaints(results: Results) -> list[str]:
        kept = {name: factor.astype(dtype) for name, factor in factors.items()}
        expected = outside.objective(dense, W, kept, None, loss, "")
        scale = max(abs(expected), outside.size(dense, W, loss))
        if abs(results["value"] - expected) <= outside.slack_of(dtype) * scale:
            return []
        return [f"objective {results['value']!r}, outside {expected!r}"]

    return Call("objective", arguments, compute, complaints)


def randomized_svd(rng: Any) -> Call:
    shape = sizes(rng)
    dtype = floats(rng)
    X, dense = matrix(rng, shape, dtype)
    rank = int(rng.integers(1, min(shape) + 1))
    arguments = {"X": X, "rank": rank, "random_state": int(rng.integers(100))}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        U, s, Vt = sf.linalg.randomized_svd(**given, n_threads=n_threads)
        return {"U": U, "s": s, "Vt": Vt}

    def complaints(results: Results) -> list[str]:
        found = outside.finite(results)
        true = np.linalg.svd(dense, compute_uv=False)[:rank]
        # The sketch has 10 columns more; a smaller one finds no values that lie close together.
        exact = 1e-4 if dtype == np.float64 else 1e-3
        slack = exact if rank + 10 >= min(dense.shape) else 0.3
        top = max(true[0], np.finfo(np.float64).tiny)
        if not found and np.abs(results["s"] - true).max() > slack * top:
            found.append(f"singular values {results['s']}, outside {true}")
        return found

    return Call("randomized_svd", arguments, compute, complaints)


def complete(rng: Any) -> Call:
    shape = int(rng.integers(2, 25)), int(rng.integers(2, 25))
    rank = int(rng.integers(1, 4))
    M = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    seen = rng.random(shape) < rng.choice([0.3, 0.7, 0.95])
    seen[rng.integers(shape[0]), rng.integers(shape[1])] = True
    M = M * rng.choice([1.0, 1e-4, 1e4])
    method = str(rng.choice(["auto", "sirls", "structured-sirls", "irls", "structured-irls"]))
    arguments: dict[str, Any] = {
        "M": np.where(seen, M, np.nan),
        "method": method,
        "max_iter": int(rng.integers(1, 15)),
        "random_state": int(rng.integers(100)),
    }
    if rng.random() < 0.6:
        arguments["rank"] = int(rng.integers(1, min(6, *shape) + 1))
    if method in ("auto", "sirls", "irls") and rng.random() < 0.4:
        arguments |= {"biases": True, "gamma_min": 1e-3}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        fit = sf.complete(**given, n_threads=n_threads)
        return {"left": fit.left, "right": fit.right, "offset": fit.offset}

    def complaints(results: Results) -> list[str]:
        return outside.finite(results)

    return Call("complete", arguments, compute, complaints)


def measures(rng: Any) -> Call:
    n, r, k = int(rng.integers(2, 40)), int(rng.integers(2, 6)), int(rng.integers(1, 5))
    S = rng.random((n, r)) * (rng.random((n, r)) < 0.7)
    arguments = {"S": S, "labels": rng.integers(0, k, n)}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        m = sf.metrics
        return {
            "hard": m.clustering_score(given["S"], given["labels"]).score,
            "soft": m.clustering_score(given["S"], given["labels"], assignment="soft").score,
            "sparsity": m.hoyer_sparsity(given["S"][0] + 1e-3 * np.arange(r)),
        }

    def complaints(results: Results) -> list[str]:
        return [
            f"{name} = {results[name]}"
            for name in ("hard", "soft")
            if not -1e-12 <= results[name] <= 1 + 1e-12
        ]

    return Call("metrics", arguments, compute, complaints)


FUNCTIONS = [factorize, factorize, represent, objective, randomized_svd, complete, measures]


# ---------------------------------------------------------------- what must be refused


def spoil(call: Call, rng: Any) -> None:
    """Make one argument illegal, if the call has one that can be."""
    ways = [key for key in call.arguments if key in _SPOILED]
    if call.name == "randomized_svd":  # of entries of either sign
        ways.remove("X")
    if not ways:
        return
    key = ways[rng.integers(len(ways))]
    bad = _SPOILED[key](call.arguments[key], rng)
    if bad is None:
        return
    call.arguments[key] = bad
    call.illegal = key


def _data(X: Any, rng: Any) -> Any:
    dense = np.array(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    place = tuple(rng.integers(size) for size in dense.shape)
    dense[place] = [-1.0, np.inf, -np.inf, -1e-300][rng.integers(4)]
    way = rng.integers(4)
    if way == 0:
        return dense[..., None]
    if way == 1:
        return dense.astype(complex)
    if way == 2 and not np.isnan(dense).any():
        return sp.csr_array(dense)
    return dense


def _option(value: Any, rng: Any) -> Any:
    return [value + "x" if isinstance(value, str) else "no", 3.5, ["a"]][rng.integers(3)]


def _count(value: Any, rng: Any) -> Any:
    return [-1, 1.5, "many", np.nan, None, [2]][rng.integers(6)]


def _size(value: Any, rng: Any) -> Any:
    return [0, -2, 2.5, "many", [2]][rng.integers(5)]


def _tolerance(value: Any, rng: Any) -> Any:
    return [-1.0, np.nan, "small", [1e-3]][rng.integers(4)]


def _entry_weights(value: Any, rng: Any) -> Any:
    return [np.array([[-1.0]]), np.ones((1, 1, 1)), "heavy"][rng.integers(3)]


def _dictionary(value: Any, rng: Any) -> Any:
    spoiled = np.array(value, dtype=np.float64)
    if rng.random() < 0.5:
        return np.hstack([spoiled, spoiled])
    spoiled[0, 0] = [-1.0, np.nan, np.inf][rng.integers(3)]
    return spoiled


def _loss(value: Any, rng: Any) -> Any:
    return ["frobeniusx", -0.1, 2.5, np.nan, True, ["frobenius"], None, 1j][rng.integers(8)]


def _labels(value: Any, rng: Any) -> Any:
    from random_labels import spoiled_labels

    return spoiled_labels(value, rng)


def _blocks(value: Any, rng: Any) -> Any:
    from random_clusters import spoiled_blocks

    return spoiled_blocks(value, rng)


def _tensor(value: Any, rng: Any) -> Any:
    from random_tensors import spoiled_tensor

    return spoiled_tensor(value, rng)


_SPOILED: dict[str, Callable[[Any, Any], Any]] = {
    "X": _data,
    "tensor": _tensor,
    "y": _labels,
    "blocks": _blocks,
    "A": _dictionary,
    "n_components": _size,
    "max_iter": _count,
    "tol": _tolerance,
    "loss": _loss,
    "solver": _option,
    "init": _option,
    "method": _option,
    "rank": _size,
    "X_weights": _entry_weights,
}
