"""Random fits of Dask blocks on a cluster within the process, for :mod:`random_calls`."""

from __future__ import annotations

import atexit
import functools
import itertools
from typing import Any

import numpy as np
import outside
import scipy.sparse as sp
from random_calls import LOSSES, ORDINARY_SCALES, Call, Results, floats, matrix, results_of


@functools.cache
def _client() -> Any:
    """Return a client of workers that are threads of this process."""
    import dask
    from distributed import Client, LocalCluster

    # The heap of a process that does other things besides is none of the cluster's business.
    dask.config.set({"distributed.worker.memory.terminate": False})
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        memory_limit=0,
        silence_logs=50,
    )
    client = Client(cluster, set_as_default=False)
    atexit.register(cluster.close)
    atexit.register(client.close)
    return client


def _blocks(rng: Any, X: Any, cuts: list[int]) -> Any:
    """Return rows of X as a Dask array, delayed objects, or futures."""
    import dask
    import dask.array as da

    X = sp.csr_array(X) if sp.issparse(X) else X
    parts = [X[begin:end] for begin, end in itertools.pairwise(cuts)]
    way = rng.integers(3)
    if way == 0 and not sp.issparse(X):
        chunks = (tuple(map(len, parts)), (X.shape[1],))
        return da.from_array(X, chunks=chunks)
    return [dask.delayed(part) for part in parts]


def _cut(rng: Any) -> tuple[Any, Any, Any]:
    shape, dtype = (int(rng.integers(2, 60)), int(rng.integers(1, 20))), floats(rng)
    X, dense = matrix(rng, shape, dtype, scales=ORDINARY_SCALES)
    inner = rng.choice(np.arange(1, shape[0]), rng.integers(0, min(4, shape[0])), replace=False)
    cuts = [0, *sorted(inner.tolist()), shape[0]]
    return _blocks(rng, X, cuts), dense, dtype


def factorize(rng: Any) -> Call:
    blocks, dense, dtype = _cut(rng)
    rank = int(rng.integers(1, 5))
    arguments: dict[str, Any] = {
        "blocks": blocks,
        "n_components": rank,
        "loss": str(rng.choice(LOSSES)),
        "solver": str(rng.choice(["auto", "mm", "mu", "hals"])),
        "init": str(rng.choice(["auto", "random", "random-acol"])),
        "max_iter": int(rng.integers(0, 12)),
        "tol": float(rng.choice([0, 1e-4])),
        "random_state": int(rng.integers(1000)),
    }
    Y = None
    if rng.random() < 0.4:
        Y = (rng.random((len(dense), 3)) < 0.4).astype(dtype)
        arguments |= {"Y": Y, "supervision_loss": str(rng.choice(LOSSES))}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        import ssnmf_fast.dask as sfd

        client = _client()
        rest = {name: value for name, value in given.items() if name != "blocks"}
        with client.as_current():
            fit = sfd.factorize(given["blocks"], **rest, n_threads=n_threads)
            S = client.compute(fit.S, sync=True)
        return {**results_of(fit), "S": S}

    def complaints(results: Results) -> list[str]:
        found = outside.factors(results, ("S", "A", "B"))
        loss, W = arguments["loss"], np.ones(dense.shape)
        expected = outside.objective(
            dense, W, results, Y, loss, arguments.get("supervision_loss", "")
        )
        mixed = arguments["solver"] == "mu" and Y is not None
        total = outside.size(dense, W, loss)
        return found or outside.trace(results["objective"], expected, total, dtype, mixed)

    return Call("dask.factorize", arguments, compute, complaints)


def nmf(rng: Any) -> Call:
    blocks, dense, dtype = _cut(rng)
    arguments: dict[str, Any] = {
        "blocks": blocks,
        "n_components": int(rng.integers(1, 5)),
        "loss": str(rng.choice(LOSSES)),
        "max_iter": int(rng.integers(1, 12)),
        "random_state": 0,
    }

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        import ssnmf_fast.dask as sfd

        client = _client()
        rest = {name: value for name, value in given.items() if name != "blocks"}
        with client.as_current():
            model = sfd.NMF(**rest, n_threads=n_threads).fit(given["blocks"])
            S = client.compute(model.transform(given["blocks"]), sync=True)
        return {"A": model.components_, "S": S}

    def complaints(results: Results) -> list[str]:
        found = outside.factors(results, ("A", "S"))
        if found:
            return found
        loss, W = arguments["loss"], np.ones(dense.shape)
        slack = 1e-3 if dtype == np.float64 else 2e-2
        return outside.optimality(dense, W, results["S"], results["A"], loss, slack)

    return Call("dask.NMF", arguments, compute, complaints)


def spoiled_blocks(blocks: Any, rng: Any) -> Any:
    """Return blocks that must be refused."""
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


CLUSTERS = [factorize, factorize, nmf]
