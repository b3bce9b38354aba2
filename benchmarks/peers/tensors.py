"""How long does a sweep of a nonnegative CP decomposition take, in ours and in other packages?

Each package decomposes each tensor in a process of its own.  A sweep updates the factors of all
modes once.  Its time is the difference of a long run and a short one, divided by the difference of
their sweeps, the least of `--rounds`; setting up is not counted for anyone.  "Memory" is the peak
of the process above what it has with the tensor loaded.  The losses are those after
the same number of sweeps, from starts of each package's own.

- TensorLy (multiplicative updates, and HALS) takes dense tensors, or sparse ones by `sparse`.
- pyttb has unconstrained least squares (cp_als) and the Kullback-Leibler loss (cp_apr).  cp_apr
  makes up to 10 passes over the data for each mode: --inner 1 gives one.
- pygenten: unconstrained least squares (cp_als) and Poisson losses by L-BFGS-B (gcp_opt), of
  which an iteration counts as a sweep.

    python -m pip install tensorly==0.10.0 sparse==0.19.3 pyttb==1.8.6 pygenten==0.1.5
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Array, Clock, Timing, iteration_seconds, seconds
from records import Options, Question, Record, say, tabulate
from run import command

Sparse = tuple[Array, Array, tuple[int, ...]]
Run = Callable[[int], float]  # the loss after so many sweeps


def texts(n_terms: int, per_slice: int, n_slices: int, nonzeros: int) -> Sparse:
    """Return counts of terms in documents of slices: terms x documents in a slice x slices."""
    rng = np.random.default_rng(0)
    documents = rng.permutation(per_slice * n_slices)[np.arange(nonzeros) % (per_slice * n_slices)]
    terms = np.minimum((n_terms * rng.random(nonzeros) ** 3).astype(np.int64), n_terms - 1)
    coords = np.array([terms, documents // n_slices, documents % n_slices])
    return coords, rng.integers(1, 4, nonzeros).astype(float), (n_terms, per_slice, n_slices)


def scattered(shape: tuple[int, ...], nonzeros: int) -> Sparse:
    rng = np.random.default_rng(0)
    coords = np.array([rng.integers(n, size=nonzeros) for n in shape])
    return coords, rng.integers(1, 4, nonzeros).astype(float), shape


def dense(shape: tuple[int, ...], rank: int) -> Array:
    rng = np.random.default_rng(0)
    factors = [rng.random((n, rank)) for n in shape]
    return np.einsum("ir,jr,kr->ijk", *factors, optimize=True) + 0.1 * rng.random(shape)


# Name -> the tensor, the rank, the sweeps of the short and the long run.
CASES: dict[str, tuple[Callable[[], Any], int]] = {
    "tiny": (lambda: texts(60, 5, 8, 500), 3),
    "tiny dense": (lambda: dense((12, 12, 12), 3), 3),
    "20 Newsgroups' size": (lambda: texts(5000, 26, 40, 60_000), 5),
    "headlines' size": (lambda: texts(7000, 700, 203, 1_130_000), 25),
    "small dense": (lambda: dense((100, 90, 80), 6), 6),
    "dense": (lambda: dense((200, 200, 200), 20), 20),
    "distinct": (lambda: scattered((1_000_000, 100_000, 10_000), 10_000_000), 32),
}
MAIN = ("20 Newsgroups' size", "headlines' size", "small dense", "dense", "distinct")
LARGEST_DENSE = 50_000_000  # places that TensorLy is given


def is_dense(X: Any) -> bool:
    return isinstance(X, np.ndarray)


def our_run(X: Any, rank: int, loss: str, threads: int) -> Run:
    import ssnmf_fast as sf

    def run(sweeps: int) -> float:
        given = {"init": "random", "random_state": 0, "n_threads": threads, "tol": 0}
        fit = sf.factorize_tensor(X, n_components=rank, loss=loss, max_iter=sweeps, **given)
        return fit.objective[-1][1]

    return run


def tensorly_run(X: Any, rank: int, method: str) -> Run | None:
    import tensorly as tl
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

    if method == "MU, COO":
        if is_dense(X):
            return None
        import sparse
        from tensorly.contrib.sparse.decomposition import non_negative_parafac as of_sparse

        coords, values, shape = X
        X = sparse.COO(coords, values, shape=shape)

        def run_sparse(sweeps: int) -> float:
            of_sparse(X, rank, n_iter_max=sweeps, init="random", tol=0, random_state=0)
            return float("nan")

        return run_sparse
    if not is_dense(X):
        coords, values, shape = X
        if np.prod(shape) > LARGEST_DENSE:
            return None
        made = np.zeros(shape)
        np.add.at(made, tuple(coords), values)
        X = made
    solver = non_negative_parafac if method == "MU" else non_negative_parafac_hals

    def run(sweeps: int) -> float:
        found = solver(X, rank, n_iter_max=sweeps, init="random", tol=0, random_state=0)
        return float(tl.norm(X - tl.cp_to_tensor(found)) ** 2)

    return run


def for_pyttb(X: Any) -> Any:
    import pyttb as ttb

    if is_dense(X):
        return ttb.tensor(X)
    coords, values, shape = X
    return ttb.sptensor.from_aggregator(coords.T.copy(), values[:, None].copy(), shape)


def pyttb_run(X: Any, rank: int, method: str, inner: int) -> Run | None:
    import pyttb as ttb

    if is_dense(X) and method == "cp_apr (D)":
        return None
    made = for_pyttb(X)

    def run(sweeps: int) -> float:
        np.random.seed(0)  # noqa: NPY002 - the package draws from the global generator
        if method == "cp_als":
            _, _, result = ttb.cp_als(made, rank, stoptol=0, maxiters=sweeps, printitn=0)
            return float(result["normresidual"]) ** 2
        options = {"maxinneriters": inner, "stoptol": 0, "printitn": 0}
        ttb.cp_apr(made, rank, algorithm="mu", maxiters=sweeps, **options)
        return float("nan")

    return run


def pygenten_run(X: Any, rank: int, method: str) -> Run | None:
    import pygenten

    made = for_pyttb(X)
    made = pygenten.make_gt_tensor(made) if is_dense(X) else pygenten.make_gt_sptensor(made)

    def run(sweeps: int) -> float:
        options: dict[str, Any] = {"rank": rank, "maxiters": sweeps, "tol": 0.0, "printitn": 0}
        options["seed"] = 0
        if method == "cp_als":
            pygenten.cp_als(made, **options)
        else:
            pygenten.gcp_opt(made, type="poisson", **options)
        return float("nan")

    return run


# What makes a run of a package out of the tensor, the rank and the options; None: it cannot.
PEERS: dict[str, Callable[[Any, int, Options], Run | None]] = {
    "ssnmf_fast F": lambda X, rank, o: our_run(X, rank, "frobenius", o.threads),
    "ssnmf_fast D": lambda X, rank, o: our_run(X, rank, "kullback-leibler", o.threads),
    "tensorly MU": lambda X, rank, o: tensorly_run(X, rank, "MU"),
    "tensorly HALS": lambda X, rank, o: tensorly_run(X, rank, "HALS"),
    "tensorly MU, COO": lambda X, rank, o: tensorly_run(X, rank, "MU, COO"),
    "pyttb cp_als": lambda X, rank, o: pyttb_run(X, rank, "cp_als", o.inner),
    "pyttb cp_apr (D)": lambda X, rank, o: pyttb_run(X, rank, "cp_apr (D)", o.inner),
    "pygenten cp_als": lambda X, rank, o: pygenten_run(X, rank, "cp_als"),
    "pygenten gcp_opt (D)": lambda X, rank, o: pygenten_run(X, rank, "gcp_opt (D)"),
}


def measure_here(peer: str, case: str, options: Options) -> Record:
    """Return the time of a sweep, the peak of memory and the loss, in this process."""
    make, rank = CASES[case]
    X = make()
    tiny, tiny_rank = CASES["tiny dense" if is_dense(X) else "tiny"]
    warm = PEERS[peer](tiny(), tiny_rank, options)
    if warm is not None:
        warm(2)  # loads the package, and lets it compile what it compiles
    with Clock() as clock:
        run = PEERS[peer](X, rank, options)
        if run is None:
            return {"skipped": True}
        first = seconds(lambda: run(1))
    # As many sweeps as a few seconds allow, but the time of one is known only with set-up.
    more = int(np.clip(5 / max(first, 0.01), 2, 40))
    losses: list[float] = []
    fits = Timing(lambda sweeps: losses.append(run(sweeps)), 1, 1 + more)
    took = iteration_seconds({peer: fits}, options.rounds)[peer]
    memory = clock.peak - clock.before
    return {"seconds": took, "setup": first, "memory": memory, "loss": losses[-1]}


def measure(options: Options, case: str, peer: str) -> Record:
    """Return the same, measured in a process of its own; nothing if the package cannot or fails."""
    if options.one:
        return measure_here(peer, case, options)
    limits = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    limits |= {"NUMBA_NUM_THREADS": limits["OMP_NUM_THREADS"], "OMP_PROC_BIND": "false"}
    order = command("tensors", "--one", "--only", case, "--peers", peer)
    for name in ("threads", "inner", "rounds"):
        order += [f"--{name}", str(getattr(options, name))]
    how: dict[str, Any] = {"env": {**os.environ, **limits}, "timeout": options.patience}
    try:
        done = subprocess.run(order, capture_output=True, text=True, check=True, **how)
    except subprocess.TimeoutExpired:
        say(f"{peer}, {case}: no result within {options.patience} s")
        return {}
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["failed"]
        say(f"{peer}, {case}: {lines[-1]}")
        return {}
    result: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return {} if "skipped" in result else result


OPTIONS = {
    "only": (list(MAIN), "some tensors", CASES),
    "peers": (list(PEERS), "", PEERS),
    "threads": 2,
    "inner": (10, "passes of cp_apr for each mode"),
    "rounds": 3,
    "patience": (600.0, "seconds for each process"),
    "one": (False, None),
}
QUICK = {"only": ["tiny", "tiny dense"], "peers": list(PEERS)[:2]}


def report(records: list[Record], options: Options) -> str:
    if options.one:
        return json.dumps(records[0])
    columns: dict[str, Any] = {"tensor": "{case}", "": "{peer}"}
    columns |= {"ms a sweep": lambda r: f"{r['seconds'] * 1e3:.2f}"}
    columns |= {"set-up and one, s": "{setup:.2f}", "MB": "{memory:.0f}", "loss": "{loss:.6g}"}
    table = tabulate([record for record in records if "seconds" in record], **columns)
    return f"{options.threads} threads\n\n{table}"


QUESTION = Question("case peer", "only peers", measure, report, threads=None)
