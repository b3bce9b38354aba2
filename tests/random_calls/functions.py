"""Random calls of the public functions, legal and not, with answers checked outside the library.

Case number k of a seed is always the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import ssnmf_fast as sf
from random_calls import outside
from random_calls import problems as draw
from random_calls.doors import randomly_damaged
from random_calls.models import LABEL_FORMS, MODELS, spoiled_labels
from random_calls.surface import SURFACE
from random_calls.tensors import CLUSTERS, TENSORS, spoiled_blocks, spoiled_tensor
from ssnmf_fast.penalties import L2, Graph, Orthogonal


def factorize(rng: Any) -> draw.Call:
    found = draw.problem(rng, files=True)
    arguments = found.arguments
    arguments |= {"n_components": found.rank, **draw.settings(rng)}
    inits = ["auto", "random"]
    if not isinstance(arguments["X"], sf.io.CsrFile):
        inits += ["random-acol", "least-squares", "nndsvda"]
    arguments["init"] = str(rng.choice(inits))
    if arguments["init"] != "nndsvda" and rng.random() < 0.1:
        arguments["n_starts"] = int(rng.integers(2, 4))
    elif rng.random() < 0.1 and 1e-5 < np.nanmax(found.dense, initial=0) < 1e5:
        (n, m), rank = found.dense.shape, found.rank
        arguments["init"] = rng.random((n, rank)), rng.random((rank, m))

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        fit = sf.factorize(**given, n_threads=n_threads)
        told = draw.differences(fit, given["X"], n_threads, **draw.inputs_of(given))
        return {**draw.results_of(fit), "differences": told}

    def complaints(results: draw.Results) -> list[str]:
        return found.complaints(results, draw.may_rise(arguments))

    return draw.Call("factorize", arguments, compute, complaints)


def objective(rng: Any) -> draw.Call:
    found = draw.problem(rng, among=())
    arguments, (n, m), rank = found.arguments, found.dense.shape, found.rank
    shapes = {"S": (n, rank), "A": (rank, m)}
    shapes |= {"B": (rank, 3)} if "y" in arguments else {}
    shapes |= {"C": (rank, 2)} if "feature_labels" in arguments else {}
    factors = {name: rng.random(shape) for name, shape in shapes.items()}
    arguments |= factors
    weights = {"weight": 30.0, "feature_weight": 0.0}
    arguments |= {"supervision_weight": weights["weight"]} if "B" in shapes else {}
    arguments |= {"feature_weight": weights["feature_weight"]} if "C" in shapes else {}

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        return {"value": sf.extend.objective(**given, n_threads=n_threads)}

    def complaints(results: draw.Results) -> list[str]:
        kept = {name: factor.astype(found.dtype) for name, factor in factors.items()}
        expected, rounding = found.value(kept | weights)
        slack = outside.slack_of(expected, rounding, found.dtype)
        if abs(results["value"] - expected) <= slack:
            return []
        return [f"objective {results['value']!r}, outside {expected!r}, rounding {rounding!r}"]

    return draw.Call("objective", arguments, compute, complaints)


def represented(given: dict[str, Any], n_threads: int) -> draw.Results:
    return {"S": sf.represent(**given, n_threads=n_threads)}


def represent(rng: Any) -> draw.Call:
    dtype, loss = draw.floats(rng), str(rng.choice(draw.LOSSES))
    X, dense, W_given, W = draw.data_for(rng, loss, dtype, files=True)
    shape, rank = dense.shape, int(rng.integers(1, 8))
    A = rng.gamma(0.5, 1, (rank, shape[1])).astype(dtype)
    A *= (rng.random(A.shape) < 0.8).astype(dtype)
    largest = 8 if dtype == np.float64 else 2
    if rng.random() < 0.3:
        A *= (10.0 ** rng.uniform(-largest, largest, (rank, 1))).astype(dtype)
    arguments = {"X": X, "A": A, "loss": loss, "X_weights": W_given}

    def complaints(results: draw.Results) -> list[str]:
        found = outside.factors(results, ("S",))
        slack = 1e-4 if dtype == np.float64 else 2e-2
        return found or outside.optimality(dense, W, results["S"], A, loss, slack)

    return draw.Call("represent", arguments, represented, complaints)


def represent_more(rng: Any) -> draw.Call:
    """Return a call with any loss, in half of which columns are given or cost something."""
    dtype, loss = draw.floats(rng), draw.any_loss(rng)
    known = rng.random() < 0.5
    X, dense, given_weights, W = draw.data_for(rng, loss, dtype, known)
    rank, (n, m) = int(rng.integers(1, 10)), dense.shape
    A = (rng.gamma(1, 1, (rank, m)) + 1e-3).astype(dtype)
    arguments = {"X": X, "A": A, "loss": loss, "X_weights": given_weights}
    listed: list[Any] = []
    if known:
        listed = [each for each in draw.draw_penalties(rng, n, bounded=False) if each.by_rows]
        arguments["penalties"] = listed
    if known and rng.random() < 0.5:
        size = float(np.nanmean(dense)) or 1.0
        arguments["covariates"] = (size * rng.random((n, rng.integers(1, rank + 1)))).astype(dtype)

    def complaints(results: draw.Results) -> list[str]:
        S = results["S"]
        found = outside.factors(results, ("S",))
        if found:
            return found
        if "covariates" in arguments:
            fixed = arguments["covariates"]
            if not np.array_equal(S[:, -fixed.shape[1] :], fixed):
                return ["S is not covariates"]
        # At the least value of a row no common factor of its free coefficients makes it less.
        free = rank - np.shape(arguments.get("covariates", [[]]))[1]
        best, rounding = outside.row_values(dense, W, S, A, loss, listed)
        for factor in (0.9, 1.1):
            scales = np.where(np.arange(rank) < free, factor, 1.0)
            other, _ = outside.row_values(dense, W, S * scales, A, loss, listed)
            worse = best - other > 1e-4 * rounding
            if worse.any():
                row = int(np.argmax(worse))
                found.append(f"row {row}: {best[row]} at S, {other[row]} at {factor} S")
        return found

    return draw.Call("represent with any loss", arguments, represented, complaints)


def randomized_svd(rng: Any) -> draw.Call:
    shape = draw.sizes(rng)
    dtype = draw.floats(rng)
    X, dense = draw.matrix(rng, shape, dtype)
    rank = int(rng.integers(1, min(shape) + 1))
    arguments = {"X": X, "rank": rank, "random_state": int(rng.integers(100))}

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        U, s, Vt = sf.linalg.randomized_svd(**given, n_threads=n_threads)
        return {"U": U, "s": s, "Vt": Vt}

    def complaints(results: draw.Results) -> list[str]:
        found = outside.finite(results)
        true = np.linalg.svd(dense, compute_uv=False)[:rank]
        # The sketch has 10 columns more; a smaller one finds no values that lie close together.
        exact = 1e-4 if dtype == np.float64 else 1e-3
        slack = exact if rank + 10 >= min(dense.shape) else 0.3
        top = max(true[0], np.finfo(np.float64).tiny)
        if not found and np.abs(results["s"] - true).max() > slack * top:
            found.append(f"singular values {results['s']}, outside {true}")
        return found

    return draw.Call("randomized_svd", arguments, compute, complaints)


def complete(rng: Any) -> draw.Call:
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
        arguments["n_components"] = int(rng.integers(1, min(6, *shape) + 1))
    if method in ("auto", "sirls", "irls") and rng.random() < 0.4:
        arguments |= {"biases": True, "gamma_min": 1e-3}

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        fit = sf.complete(**given, n_threads=n_threads)
        return {"left": fit.left, "right": fit.right, "offset": fit.offset}

    return draw.Call("complete", arguments, compute, outside.finite)


def measures(rng: Any) -> draw.Call:
    n, r, k = int(rng.integers(2, 40)), int(rng.integers(2, 6)), int(rng.integers(1, 5))
    S = rng.random((n, r)) * (rng.random((n, r)) < 0.7)
    arguments = {"S": S, "labels": rng.integers(0, k, n)}

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        m = sf.metrics
        return {
            "hard": m.clustering_score(given["S"], given["labels"]).score,
            "soft": m.clustering_score(given["S"], given["labels"], assignment="soft").score,
            "sparsity": m.hoyer_sparsity(given["S"][0] + 1e-3 * np.arange(r)),
        }

    def complaints(results: draw.Results) -> list[str]:
        scores = {name: results[name] for name in ("hard", "soft")}
        return [f"{name} = {x}" for name, x in scores.items() if not -1e-12 <= x <= 1 + 1e-12]

    return draw.Call("metrics", arguments, compute, complaints)


MORE = [represent, represent_more, objective, randomized_svd, complete, measures]
# What is called, and how often: functions, estimators, forms of labels, tensors, blocks of Dask,
# what is spelled in two ways at the surface, and sparse matrices that are damaged.
GROUPS = {
    0.215: [*[factorize] * 6, *MORE],
    0.11: MODELS,
    0.05: LABEL_FORMS,
    0.1: TENSORS,
    0.025: CLUSTERS,
    0.47: SURFACE,
    0.03: [randomly_damaged],
}


def make(seed: int, case: int, illegal: bool | None = None) -> draw.Call:
    """Return case number `case`; `illegal` says whether an argument is to be refused."""
    rng = np.random.default_rng([seed, case])
    makers = [*GROUPS.values()][rng.choice(len(GROUPS), p=[*GROUPS])]
    call = makers[rng.integers(len(makers))](rng)
    if illegal is None:
        illegal = bool(rng.random() < 0.15)
    if illegal:
        spoil(call, rng)
    return call


def spoil(call: draw.Call, rng: Any) -> None:
    """Make one argument illegal, if the call has one that can be."""
    ways = [key for key in call.arguments if key in _SPOILED]
    legal = {"randomized_svd": "X", "objective": "penalties"}  # of either sign; without a minimum
    ways = [key for key in ways if key != legal.get(call.name)]
    if not ways:
        return
    key = ways[rng.integers(len(ways))]
    bad = _SPOILED[key](call.arguments[key], rng)
    if bad is None:
        return
    call.arguments[key] = bad
    call.illegal = key


def _data(X: Any, rng: Any) -> Any:
    if isinstance(X, sf.io.CsrFile):
        return None
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


def one_of(*values: Any) -> Callable[[Any, Any], Any]:
    return lambda value, rng: values[rng.integers(len(values))]


def _option(value: Any, rng: Any) -> Any:
    return [value + "x" if isinstance(value, str) else "no", 3.5, ["a"]][rng.integers(3)]


def _dictionary(value: Any, rng: Any) -> Any:
    spoiled = np.array(value, dtype=np.float64)
    if rng.random() < 0.5:
        return np.hstack([spoiled, spoiled])
    spoiled[0, 0] = [-1.0, np.nan, np.inf][rng.integers(3)]
    return spoiled


def _penalties(value: Any, rng: Any) -> Any:
    """Return penalties that cannot be, or, for a mapping, have no minimum."""
    ways = [L2, [3.0], "L2"]
    if isinstance(value, dict):
        ways += [{**value, "Z": L2(1.0)}, {**value, "A": Graph(1.0, np.zeros((9999, 9999)))}]
        ways += [{"S": L2(0.1)}, {"S": L2(0.1), "A": Orthogonal(0.1)}, {**value, "A": []}] * 2
    return ways[rng.integers(len(ways))]


_SPOILED: dict[str, Callable[[Any, Any], Any]] = {
    "X": _data,
    "tensor": spoiled_tensor,
    "y": spoiled_labels,
    "blocks": spoiled_blocks,
    "A": _dictionary,
    "n_components": one_of(0, -2, 2.5, "many", [2]),
    "max_iter": one_of(-1, 1.5, "many", np.nan, None, [2]),
    "tol": one_of(-1.0, np.nan, "small", [1e-3]),
    "loss": one_of("frobeniusx", -0.1, 2.5, np.nan, True, ["frobenius"], None, 1j),
    "solver": _option,
    "init": _option,
    "method": _option,
    "rank": one_of(0, -2, 2.5, "many", [2]),
    "X_weights": one_of(np.array([[-1.0]]), np.ones((1, 1, 1)), "heavy"),
    "penalties": _penalties,
}
