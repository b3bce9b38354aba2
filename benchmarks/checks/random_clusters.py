"""Random fits of Dask blocks on a cluster within the process, for :mod:`random_calls`."""

from __future__ import annotations

import atexit
import functools
import itertools
from typing import Any

import numpy as np
import outside
import scipy.sparse as sp
from random_calls import may_rise, results_of, settings
from random_data import LOSSES, ORDINARY_SCALES, Call, Results, floats, matrix
from random_problems import problem

import ssnmf_fast as sf


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


def factorize(rng: Any) -> Call:
    """Return a fit on the cluster, which begins where one in memory does."""
    found = problem(rng, cluster=True)
    arguments = found.arguments
    inits = ["auto", "random", "random-acol"]
    arguments |= {"n_components": found.rank, **settings(rng), "init": str(rng.choice(inits))}
    arguments["max_iter"] = min(arguments["max_iter"], 12)
    in_memory = {**arguments, "max_iter": 0}
    X = arguments.pop("X")
    arguments["blocks"] = _cut(rng, X)

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        import ssnmf_fast.dask as sfd

        client = _client()
        rest = {name: value for name, value in given.items() if name != "blocks"}
        with client.as_current():
            fit = sfd.factorize(given["blocks"], **rest, n_threads=n_threads)
            S = client.compute(fit.S, sync=True)
        return {**results_of(fit), "S": S}

    def complaints(results: Results) -> list[str]:
        complaints = found.complaints(results, may_rise(arguments))
        # Least squares for weights of single entries begin elsewhere, as the documentation says;
        # with more components than the data have, the last ones are what rounding makes them.
        plain = arguments["X_weights"] is None and not np.isnan(found.dense).any()
        if (plain and found.rank <= min(found.dense.shape)) or arguments["init"] != "auto":
            begin, there = sf.factorize(**in_memory).objective[0][1], results["objective"][0]
            if abs(begin - there) > (1e-9 if found.dtype == np.float64 else 1e-3) * begin:
                complaints.append(f"begins at {there!r}, in memory at {begin!r}")
        return complaints

    return Call("dask.factorize", arguments, compute, complaints)


def nmf(rng: Any) -> Call:
    shape, dtype = (int(rng.integers(2, 60)), int(rng.integers(1, 20))), floats(rng)
    X, dense = matrix(rng, shape, dtype, scales=ORDINARY_SCALES)
    blocks = _cut(rng, X)
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
