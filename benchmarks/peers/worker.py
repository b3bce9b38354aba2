"""One package in a process of its own: fits what convergence.py asks for, a line each.

    python worker.py PACKAGE FOLDER THREADS

Needs NumPy, SciPy and the package only (gensim: ours too).  A request is
"solver<tab>iterations<tab>seed"; the answer is the seconds of the fit, with the factors in
FOLDER/S.npy and A.npy.  Data are put into the form that the package takes outside of the clock; all
get float64, and as many iterations as asked for: no early stop.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, D, F, Factors, sklearn_runner, start, timed


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
    """Coordinate descent (squared error only), multiplicative updates, mini-batches."""
    from sklearn.decomposition import MiniBatchNMF

    def runner(name: str) -> Runner:
        return Runner(lambda k, init, seed: sklearn_runner(given.X, init, given.loss, name)(k))

    def mini_batches(k: int, init: Factors, seed: int) -> Factors:
        options = {"init": "custom", "tol": 0, "max_no_improvement": None, "max_iter": k}
        model = MiniBatchNMF(given.rank, beta_loss=given.loss, **options)
        S = model.fit_transform(given.X, W=init[0].copy(), H=init[1].copy())
        return S, model.components_

    names = ("cd", "mu") if given.loss == F else ("mu",)
    runners = {f"scikit-learn {name.upper()}": runner(name) for name in names}
    return runners | {"scikit-learn MiniBatchNMF": Runner(mini_batches)}


def ssnmf(given: Given) -> Runners:
    """Multiplicative updates on a dense matrix, features x samples."""
    from ssnmf.ssnmf import SSNMF_N

    X = np.ascontiguousarray(given.dense.T)
    number = 1 if given.loss == F else 2

    def fit(k: int, init: Factors, seed: int) -> Any:
        start = {"A": init[1].T.copy(), "S": init[0].T.copy()}
        model = SSNMF_N(X, given.rank, modelNum=number, tol=-np.inf, **start)
        model.mult(numiters=k)
        return model

    return {"ssnmf MU": Runner(fit, lambda model: (model.S.T, model.A.T))}


def tsnmf(given: Given) -> Runners:
    """Topic-supervised NMF; samples without a topic may use all of them: plain NMF."""
    from tsnmf import TSNMF

    no_topics: list[list[int]] = [[] for _ in range(given.X.shape[0])]

    def fit(k: int, init: Factors, seed: int) -> Factors:
        # It has no name for a given start: any init it knows is overridden by W and H.
        model = TSNMF(given.rank, init="random", tol=0, max_iter=k)
        S = model.fit_transform(given.X, no_topics, W=init[0].copy(), H=init[1].copy())
        return S, model.components_

    return {"tsnmf MU": Runner(fit)} if given.loss == F else {}


def nmf_torch(given: Given) -> Runners:
    """Its default, a variant of HALS, and block principal pivoting; MU for KL."""
    import torch
    from nmf.nmf_models import NMFBatchHALS, NMFBatchMU, NMFBatchNnlsBpp

    dense = given.dense
    options = {"alpha_W": 0.0, "l1_ratio_W": 0.0, "alpha_H": 0.0, "l1_ratio_H": 0.0, "tol": 0}
    options |= {"beta_loss": 2 if given.loss == F else 1, "fp_precision": "double"}
    options |= {"n_jobs": given.threads, "device_type": "cpu", "random_state": 0, "init": "random"}

    def runner(method: Any) -> Runner:
        def fit(k: int, init: Factors, seed: int) -> Any:
            class FromStart(method):  # type: ignore[misc]
                """It takes no start; this replaces the step that draws one."""

                def _initialize_H_W(self) -> None:
                    self.H, self.W = torch.tensor(init[0]), torch.tensor(init[1])

            model = FromStart(n_components=given.rank, max_iter=k, **options)
            with redirect_stdout(io.StringIO()):
                model.fit(dense)
            return model

        return Runner(fit, lambda model: (model.H.numpy(), model.W.numpy()))

    if given.loss == D:
        return {"nmf-torch MU": runner(NMFBatchMU)}
    return {"nmf-torch HALS": runner(NMFBatchHALS), "nmf-torch BPP": runner(NMFBatchNnlsBpp)}


def torchnmf(given: Given) -> Runners:
    """Multiplicative updates by automatic differentiation, sparse where the data are."""
    import torch
    from torchnmf.nmf import NMF

    if sp.issparse(given.X):
        entries = given.X.tocoo()
        places = np.array([entries.row, entries.col])
        X = torch.sparse_coo_tensor(places, entries.data, entries.shape)
    else:
        X = torch.from_numpy(given.X)

    def fit(k: int, init: Factors, seed: int) -> Any:
        # .double() after the fact: the constructor makes float32 factors of any start.
        model = NMF(W=torch.from_numpy(init[1].T.copy()), H=torch.from_numpy(init[0])).double()
        model.fit(X, beta=2 if given.loss == F else 1, tol=-np.inf, max_iter=k)
        return model

    def factors(model: Any) -> Factors:
        return model.H.detach().numpy(), model.W.detach().numpy().T

    return {"torchnmf MU": Runner(fit, factors)}


def gensim(given: Given) -> Runners:
    """Online NMF with a start of its own; k passes.

    It returns no S: it is given the best one for its topics, outside of the clock.
    """
    from gensim.models.nmf import Nmf

    documents = sp.csc_matrix(given.X.T)
    words = {j: str(j) for j in range(given.X.shape[1])}

    def fit(k: int, init: Factors, seed: int) -> Any:
        options = {"passes": k, "eval_every": None, "random_state": seed}
        return Nmf(documents, num_topics=given.rank, id2word=words, **options)

    def factors(model: Any) -> Factors:
        import ssnmf_fast as sf

        topics = np.ascontiguousarray(model.get_topics(normalize=False))
        return sf.represent(given.X, topics, n_threads=given.threads), topics

    return {"gensim online*": Runner(fit, factors)} if given.loss == F else {}


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
        settings: dict[str, Any] = {"beta_loss": loss, "init": "random", "weighting": "count"}
        settings |= {"convergence_tol": 0.0, "seed": seed}
        model = package.NMF(given.rank, **settings)
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
        arguments: dict[str, Any] = {"guidance": 0.0, "init": "none", "init_a": init[0]}
        arguments |= {"init_s": init[1], "init_b": np.ones((1, given.rank)), "weighting": "count"}
        model = package.GuidedNMF(given.rank, {"any": [words[0]]}, **arguments)
        model.fit(corpus, iters=k, num_threads=given.threads)
        return model

    runners = {"topica NMF*": Runner(own_start, scaled)}
    if given.loss == F:
        runners["topica GuidedNMF"] = Runner(guided, lambda m: (m.factor_a, m.factor_s))
    return runners


PACKAGES: dict[str, Callable[[Given], Runners]] = {
    "scikit-learn": scikit_learn,
    "ssnmf": ssnmf,
    "tsnmf": tsnmf,
    "nmf-torch": nmf_torch,
    "torchnmf": torchnmf,
    "gensim": gensim,
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
        result, took = timed(runners[label].fit, int(iterations), init, int(seed))
        for name, factor in zip("SA", runners[label].factors(result), strict=True):
            np.save(folder / f"{name}.npy", np.ascontiguousarray(factor, dtype=np.float64))
        print(took, file=answers, flush=True)


if __name__ == "__main__":
    main()
