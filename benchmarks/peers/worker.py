"""One package in a process of its own: fits what processes.py asks for, a line each.

    python worker.py PACKAGE FOLDER THREADS

Needs NumPy, SciPy and the package only.  A request is "solver<tab>iterations<tab>seed"; the answer
is the seconds of the fit, with the factors in FOLDER/S.npy and A.npy.  Data are put into the form
that the package takes outside of the clock.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, Factors, seconds, sklearn_runner, start

F, D = "frobenius", "kullback-leibler"


class Given:
    """The problem in the files of a folder; seed 0 is the start that everybody gets."""

    def __init__(self, folder: Path, threads: int) -> None:
        loss, rank = (folder / "problem.txt").read_text().split()
        self.loss, self.rank, self.threads = loss, int(rank), threads
        data = np.load(folder / "data.npy")
        self.X: Any = data
        if (folder / "indptr.npy").exists():
            places = np.load(folder / "indices.npy"), np.load(folder / "indptr.npy")
            self.X = sp.csr_matrix((data, *places), shape=tuple(np.load(folder / "shape.npy")))

    def start(self, seed: int) -> Factors:
        return start(self.X, 1, self.rank, seed)[:2]

    @cached_property
    def dense(self) -> Array:
        return self.X.toarray() if sp.issparse(self.X) else self.X


class Runner(NamedTuple):
    """``fit(k, start, seed)`` is timed; ``factors`` takes S and A out of its result."""

    fit: Callable[[int, Factors, int], Any]
    factors: Callable[[Any], Factors] = lambda result: result


Runners = dict[str, Runner]


def scikit_learn(given: Given) -> Runners:
    """Coordinate descent (squared error only) and multiplicative updates."""

    def runner(name: str) -> Runner:
        return Runner(lambda k, init, seed: sklearn_runner(given.X, init, given.loss, name)(k))

    names = ("cd", "mu") if given.loss == F else ("mu",)
    return {f"scikit-learn {name.upper()}": runner(name) for name in names}


def pyplanc(given: Given) -> Runners:
    """PLANC's solvers in C++: squared error, columns of a sparse or dense matrix."""
    import pyplanc as package

    if given.loss != F:
        return {}
    X = sp.csc_matrix(given.X) if sp.issparse(given.X) else np.asfortranarray(given.X)

    def runner(name: str) -> Runner:
        def fit(k: int, init: Factors, seed: int) -> Any:
            S, A = np.asfortranarray(init[0]), np.asfortranarray(init[1].T)
            return package.nmf(X, given.rank, k, name, given.threads, Winit=S, Hinit=A)

        return Runner(fit, lambda result: (result.W, result.H.T))

    return {f"pyplanc {name}": runner(name) for name in ("anlsbpp", "admm", "hals", "mu")}


def nmf_rs(given: Given) -> Runners:
    """The algorithms of R's NMF in Rust, and HALS: dense matrices only."""
    import nmf_rs as package

    X = given.dense

    def runner(name: str) -> Runner:
        def fit(k: int, init: Factors, seed: int) -> Any:
            options = {"max_iter": k, "num_threads": given.threads}
            return package.nmf(X, given.rank, name, W0=init[0], H0=init[1], **options)

        return Runner(fit, lambda result: (result.W, result.H))

    names = ("lee", "hals", "ehals") if given.loss == F else ("brunet",)
    return {f"nmf-rs {name}": runner(name) for name in names}


def topica(given: Given) -> Runners:
    """Multiplicative updates of counts: it takes words, and has weights of its own for others.

    Its NMF draws its own start and returns shares: every document is given its best scale, outside
    of the clock.  GuidedNMF with guidance 0 is plain NMF of a given start.
    """
    import topica as package

    X = sp.csr_matrix(given.X)
    if (X.data != np.round(X.data)).any():
        return {}
    words = np.array([f"w{j:05d}" for j in range(X.shape[1])])
    tokens = [
        np.repeat(words[row.indices], row.data.astype(int)).tolist()
        for row in (X[i] for i in range(X.shape[0]))
    ]
    corpus = package.Corpus.from_documents(tokens, vocabulary=words.tolist())
    loss = {F: "frobenius", D: "kl"}[given.loss]

    def own_start(k: int, init: Factors, seed: int) -> Any:
        model = package.NMF(
            given.rank,
            beta_loss=loss,
            init="random",
            weighting="count",
            convergence_tol=0.0,
            seed=seed,
        )
        model.fit(corpus, iters=k, num_threads=given.threads)
        return model

    def scaled(model: Any) -> Factors:
        shares, topics = model.doc_topic, model.topic_word
        above, below = X.sum(axis=1), 1.0
        if given.loss == F:
            above = np.sum(shares * (X @ topics.T), axis=1)
            below = np.sum(shares * (shares @ (topics @ topics.T)), axis=1)
        return shares * np.reshape(np.asarray(above).ravel() / below, (-1, 1)), topics

    def guided(k: int, init: Factors, seed: int) -> Any:
        model = package.GuidedNMF(
            given.rank,
            {"any": [words[0]]},
            guidance=0.0,
            init="none",
            init_a=init[0],
            init_s=init[1],
            init_b=np.ones((1, given.rank)),
            weighting="count",
        )
        model.fit(corpus, iters=k, num_threads=given.threads)
        return model

    runners = {"topica NMF*": Runner(own_start, scaled)}
    if given.loss == F:
        runners["topica GuidedNMF"] = Runner(guided, lambda m: (m.factor_a, m.factor_s))
    return runners


PACKAGES: dict[str, Callable[[Given], Runners]] = {
    "scikit-learn": scikit_learn,
    "pyplanc": pyplanc,
    "nmf-rs": nmf_rs,
    "topica": topica,
}


def main() -> None:
    package, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")  # every fit stops before it has converged
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some packages print while they fit
    given = Given(folder, threads)
    runners = PACKAGES[package](given)
    print(importlib.metadata.version(package), *runners, sep="\t", file=answers, flush=True)
    for line in sys.stdin:
        label, iterations, seed = line.rstrip("\n").split("\t")
        init = given.start(int(seed))
        results: list[Any] = []

        def once(label: str = label, k: int = int(iterations), init: Factors = init) -> None:
            results[:] = [runners[label].fit(k, init, int(seed))]  # noqa: B023

        took = seconds(once)
        for name, factor in zip("SA", runners[label].factors(results[0]), strict=True):
            np.save(folder / f"{name}.npy", np.ascontiguousarray(factor, dtype=np.float64))
        print(took, file=answers, flush=True)


if __name__ == "__main__":
    main()
