"""Random decompositions of tensors, and fits of Dask blocks, for :mod:`random_calls`.

The cluster of the blocks is within the process.
"""

from __future__ import annotations

import atexit
import functools
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import khatri_rao

import ssnmf_fast as sf
from random_calls import outside
from random_calls import problems as draw


@dataclass
class Coordinates:
    """A sparse tensor as other packages have it."""

    coords: draw.Array
    data: draw.Array
    shape: tuple[int, ...]


def _sparse(rng: Any, dense: draw.Array) -> Any:
    """Return a tensor by coordinates in any order, some of them twice."""
    places = np.array(np.nonzero(dense))
    values = dense[tuple(places)]
    if rng.random() < 0.3:
        places, values = np.tile(places, 2), np.tile(values / 2, 2).astype(dense.dtype)
    order = rng.permutation(len(values))
    places = places[:, order].astype(rng.choice([np.int32, np.int64, np.uint16]))
    if rng.random() < 0.5:
        return Coordinates(places, values[order], dense.shape)
    return places, values[order], dense.shape


def factorize_tensor(rng: Any) -> draw.Call:
    shape = tuple(int(rng.integers(1, 9)) for _ in range(rng.integers(2, 6)))
    dtype = draw.floats(rng)
    loss, of_labels = (draw.any_loss(rng) for _ in range(2))
    penalized = bool(rng.random() < 0.4)
    scales = draw.scales_of(loss, of_labels, ordinary=penalized)
    dense = draw.dense_data(rng, shape, dtype, scales)
    positive = draw.of_positive(loss)
    if positive:
        dense += dtype(0.1) * (dense.mean() or dtype(1))
    X: Any = dense
    if rng.random() < 0.6 and not positive:
        X = _sparse(rng, dense)
        dense = np.zeros(shape, dtype=np.float64)
        places, values = (X.coords, X.data) if isinstance(X, Coordinates) else X[:2]
        np.add.at(dense, tuple(places), values)
    elif rng.random() < 0.3:
        dense[draw.some(rng, shape, 0.2)] = np.nan
        X = np.asfortranarray(dense) if rng.random() < 0.5 else dense
    rank = int(rng.integers(1, 6 if rng.random() < 0.7 else 20))
    given_weights, W = draw.weights(rng, dense, lambda Z: _sparse(rng, Z.astype(float)))
    arguments: dict[str, Any] = {
        "tensor": X,
        "n_components": rank,
        "loss": loss,
        "X_weights": given_weights,
        "solver": str(rng.choice(draw.SOLVERS)),
        "init": str(rng.choice(["auto", "random", "least-squares", "svd"])),
        "max_iter": int(rng.integers(0, 25)),
        "tol": float(rng.choice([0, 1e-4])),
        "random_state": int(rng.integers(1000)),
    }
    labels, weight = {}, float(rng.choice([0.0, 1.0, 1000.0]))
    for mode in np.flatnonzero(rng.random(len(shape)) < 0.15).tolist():
        Y = (rng.random((shape[mode], 3)) < 0.4).astype(dtype) + dtype(draw.of_positive(of_labels))
        Y[draw.some(rng, shape[mode], 0.3)] = np.nan
        labels[mode] = Y
    if labels:
        arguments |= {"y": labels, "supervision_loss": of_labels}
        arguments["supervision_weight"] = weight
    penalties: dict[Any, Any] = {}
    if penalized:
        penalties = {mode: draw.draw_penalties(rng, n) for mode, n in enumerate(shape)}
        penalties |= {f"B{mode}": draw.draw_penalties(rng, 3) for mode in labels}
        arguments["penalties"] = penalties
    elif rng.random() < 0.1 and arguments["init"] != "svd":
        arguments["n_starts"] = 2

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        rest = {name: value for name, value in given.items() if name != "tensor"}
        states: list[Any] = []  # of which the last has factors with the sizes that penalties see
        if penalized:
            rest["callback"] = lambda state: states.append(state)
        fit = sf.factorize_tensor(given["tensor"], **rest, n_threads=n_threads)
        results = {f"F{mode}": F for mode, F in enumerate(fit.factors)}
        results |= {f"B{mode}": B for mode, B in fit.label_components.items()}
        results |= {"weights": fit.weights, "objective": [v for _, v in fit.objective]}
        if penalized:
            last = {name: np.array(F) for name, F in states[-1].factors.items()}
            return results | {name: F if name[0] == "F" else F.T for name, F in last.items()}
        told = draw.inputs_of(given) | ({"y": labels} if labels else {})
        return {**results, "differences": draw.differences(fit, given["tensor"], n_threads, **told)}

    def complaints(results: draw.Results) -> list[str]:
        found = outside.factors(results, tuple(name for name in results if name[0] in "FB"))
        found += [f"not verified: {sentence}" for sentence in results.get("differences", [])]
        factors = [results[f"F{mode}"].astype(np.longdouble) for mode in range(len(shape))]
        unfolded = dense.reshape(shape[0], -1).astype(np.float64)
        S = factors[0] * (1.0 if penalized else results["weights"])
        A = functools.reduce(khatri_rao, factors[1:]).T
        parts = [outside.divergence_of(unfolded, W.reshape(shape[0], -1), S, A.astype(dtype), loss)]
        for mode, Y in labels.items():
            F, B = factors[mode], results[f"B{mode}"]
            of_mode = outside.divergence_of(Y, np.ones(Y.shape), F, B, of_labels)
            parts.append(weight * np.array(of_mode))
        for key, listed in penalties.items():
            mode = int(str(key).lstrip("B"))
            F = factors[mode] if key == mode else results[key].T
            meets = dense.size // shape[mode] if key == mode else shape[mode]
            cost = meets * sum(outside.penalty(each, F) for each in listed)
            parts.append(np.array([cost, cost]))
        expected, rounding = np.sum(parts, axis=0)
        rises = draw.may_rise(arguments)
        return found or outside.trace(results["objective"], expected, rounding, dtype, rises)

    return draw.Call("factorize_tensor", arguments, compute, complaints)


def spoiled_tensor(X: Any, rng: Any) -> Any:
    if isinstance(X, np.ndarray):
        bad = np.array(X, dtype=np.float64)
        bad[tuple(rng.integers(n) for n in bad.shape)] = rng.choice([-1.0, np.inf, -1e-300])
        return [bad, bad.astype(complex), bad.ravel()[0]][rng.integers(3)]
    parts = (X.coords, X.data, X.shape) if isinstance(X, Coordinates) else X
    coords, values, shape = parts
    coords, values = np.array(coords, dtype=np.int64), np.array(values, dtype=np.float64)
    way = rng.integers(6)
    if len(values) == 0 or way == 0:
        return coords, values, shape[:-1]
    entry = rng.integers(len(values))
    if way == 1:
        values[entry] = rng.choice([-1.0, np.nan, np.inf])
    elif way == 2:
        coords[rng.integers(len(shape)), entry] = rng.choice([-1, max(shape), 2**40])
    elif way == 3:
        return coords[:, 1:], values, shape
    elif way == 4:
        return coords + 0.5, values, shape
    else:
        return coords, values.astype(complex), shape
    return coords, values, shape


TENSORS = [factorize_tensor, factorize_tensor]


@functools.cache
def _client() -> Any:
    import dask
    from distributed import Client, LocalCluster

    # The heap of a process that does other things besides is none of the cluster's business.
    dask.config.set({"distributed.worker.memory.terminate": False})
    given: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    given |= {"dashboard_address": None, "memory_limit": 0, "silence_logs": 50}
    cluster = LocalCluster(**given)
    client = Client(cluster, set_as_default=False)
    atexit.register(cluster.close)
    atexit.register(client.close)
    return client


def _cut(rng: Any, X: Any) -> Any:
    """Return rows of X in blocks: as a Dask array, or delayed objects."""
    import dask
    import dask.array as da

    n, X = X.shape[0], sp.csr_array(X) if sp.issparse(X) else X
    inner = rng.choice(np.arange(1, n), rng.integers(0, min(4, n)), replace=False)
    cuts = [0, *sorted(inner.tolist()), n]
    if rng.integers(3) == 0 and not sp.issparse(X):
        return da.from_array(X, chunks=(tuple(np.diff(cuts).tolist()), (X.shape[1],)))
    return [dask.delayed(X[begin:end]) for begin, end in itertools.pairwise(cuts)]


def factorize_blocks(rng: Any) -> draw.Call:
    """Return a fit on the cluster, which begins where one in memory does."""
    found = draw.problem(rng, cluster=True)
    arguments = found.arguments
    inits = ["auto", "random", "random-acol"]
    arguments |= {"n_components": found.rank, **draw.settings(rng), "init": str(rng.choice(inits))}
    arguments["max_iter"] = min(arguments["max_iter"], 12)
    in_memory = {**arguments, "max_iter": 0}
    X = arguments.pop("X")
    arguments["blocks"] = _cut(rng, X)

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        import ssnmf_fast.dask as sfd

        client = _client()
        rest = {name: value for name, value in given.items() if name != "blocks"}
        with client.as_current():
            fit = sfd.factorize(given["blocks"], **rest, n_threads=n_threads)
            S = client.compute(fit.S, sync=True)
        return {**draw.results_of(fit), "S": S}

    def complaints(results: draw.Results) -> list[str]:
        complaints = found.complaints(results, draw.may_rise(arguments))
        # Least squares for weights of single entries begin elsewhere, as the documentation says;
        # with more components than the data have, the last ones are what rounding makes them.
        plain = arguments["X_weights"] is None and not np.isnan(found.dense).any()
        if (plain and found.rank <= min(found.dense.shape)) or arguments["init"] != "auto":
            begin, there = sf.factorize(**in_memory).objective[0][1], results["objective"][0]
            if abs(begin - there) > (1e-9 if found.dtype == np.float64 else 1e-3) * begin:
                complaints.append(f"begins at {there!r}, in memory at {begin!r}")
        return complaints

    return draw.Call("dask.factorize", arguments, compute, complaints)


def nmf_of_blocks(rng: Any) -> draw.Call:
    shape, dtype = (int(rng.integers(2, 60)), int(rng.integers(1, 20))), draw.floats(rng)
    X, dense = draw.matrix(rng, shape, dtype, scales=draw.ORDINARY_SCALES)
    blocks = _cut(rng, X)
    arguments: dict[str, Any] = {
        "blocks": blocks,
        "n_components": int(rng.integers(1, 5)),
        "loss": str(rng.choice(draw.LOSSES)),
        "max_iter": int(rng.integers(1, 12)),
        "random_state": 0,
    }

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        import ssnmf_fast.dask as sfd

        client = _client()
        rest = {name: value for name, value in given.items() if name != "blocks"}
        with client.as_current():
            model = sfd.NMF(**rest, n_threads=n_threads).fit(given["blocks"])
            S = client.compute(model.transform(given["blocks"]), sync=True)
        return {"A": model.components_, "S": S}

    def complaints(results: draw.Results) -> list[str]:
        found = outside.factors(results, ("A", "S"))
        if found:
            return found
        loss, W = arguments["loss"], np.ones(dense.shape)
        slack = 1e-3 if dtype == np.float64 else 2e-2
        return outside.optimality(dense, W, results["S"], results["A"], loss, slack)

    return draw.Call("dask.NMF", arguments, compute, complaints)


def spoiled_blocks(blocks: Any, rng: Any) -> Any:
    import dask

    n = len(blocks) if isinstance(blocks, list) else blocks.numblocks[0]
    parts = [b.compute() if isinstance(blocks, list) else b for b in blocks]
    if not isinstance(blocks, list):
        parts = [np.asarray(blocks.blocks[k].compute()) for k in range(n)]
    parts = [np.array(p.toarray() if sp.issparse(p) else p, dtype=float) for p in parts]
    k = int(rng.integers(n))
    way = rng.integers(4)
    if way == 0:
        parts[k][0, 0] = rng.choice([-1.0, np.inf])
    elif way == 1 and n > 1:
        parts[k] = np.hstack([parts[k], parts[k]])
    elif way == 2:
        parts[k] = parts[k].astype(complex)
    else:
        return [parts[k].ravel(), 3.0, "x"][rng.integers(3)]
    return [dask.delayed(part) for part in parts]


CLUSTERS = [factorize_blocks, factorize_blocks, nmf_of_blocks]
