"""Every peer as a solver of plain NMF: how it is given the data, the start and the iterations.

All get the data in the form they take, float64, and as many iterations as asked for: no early stop.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import Array, Factors, our_runner, sklearn_runner

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"


@dataclass
class Problem:
    """Plain NMF: data (samples x features), a start, a loss."""

    X: Any
    S: Array
    A: Array
    loss: str
    threads: int

    @property
    def rank(self) -> int:
        return self.A.shape[0]

    @cached_property
    def dense(self) -> Array:
        return self.X.toarray() if sp.issparse(self.X) else self.X

    def objective(self, factors: Factors) -> float:
        """Return the loss of factors, infinite for NaN; some are transposed, or just below 0."""
        if not all(np.isfinite(factor).all() for factor in factors):
            return np.inf
        S, A = (np.ascontiguousarray(np.maximum(factor, 0)) for factor in factors)
        return float(sf.objective(self.X, S, A, loss=self.loss, n_threads=self.threads))


@dataclass
class Solver:
    """``fit(k)`` is timed: set-up and k iterations; ``factors`` takes S and A out of its result."""

    label: str
    fit: Callable[[int], Any]
    factors: Callable[[Any], Factors] = lambda result: result
    same_start: bool = True


def ours(problem: Problem) -> list[Solver]:
    """Our default solver and the multiplicative updates of most peers."""
    start = (problem.S, problem.A)

    def solver(label: str, name: str) -> Solver:
        return Solver(label, our_runner(problem.X, start, problem.loss, name, problem.threads))

    return [solver("ssnmf_fast", "auto"), solver("ssnmf_fast MU", "mu")]


def scikit_learn(problem: Problem) -> list[Solver]:
    """Coordinate descent (squared error only), multiplicative updates, mini-batches."""
    from sklearn.decomposition import MiniBatchNMF

    start = (problem.S, problem.A)

    def mini_batches(k: int) -> Factors:
        model = MiniBatchNMF(
            problem.rank,
            beta_loss=problem.loss,
            init="custom",
            tol=0,
            max_no_improvement=None,
            max_iter=k,
        )
        S = model.fit_transform(problem.X, W=problem.S.copy(), H=problem.A.copy())
        return S, model.components_

    solvers = [
        Solver(f"scikit-learn {name.upper()}", sklearn_runner(problem.X, start, problem.loss, name))
        for name in (("cd", "mu") if problem.loss == F else ("mu",))
    ]
    return [*solvers, Solver("scikit-learn MiniBatchNMF", mini_batches)]


def ssnmf(problem: Problem) -> list[Solver]:
    """Multiplicative updates on a dense matrix, features x samples."""
    from ssnmf.ssnmf import SSNMF_N

    X = np.ascontiguousarray(problem.dense.T)
    number = 1 if problem.loss == F else 2

    def fit(k: int) -> Any:
        model = SSNMF_N(
            X,
            problem.rank,
            modelNum=number,
            A=problem.A.T.copy(),
            S=problem.S.T.copy(),
            tol=-np.inf,
        )
        model.mult(numiters=k)
        return model

    return [Solver("ssnmf MU", fit, lambda model: (model.S.T, model.A.T))]


def tsnmf(problem: Problem) -> list[Solver]:
    """Topic-supervised NMF; samples without a topic may use all of them: plain NMF."""
    from tsnmf import TSNMF

    if problem.loss != F:
        return []
    no_topics: list[list[int]] = [[] for _ in range(problem.X.shape[0])]

    def fit(k: int) -> Factors:
        # It has no name for a given start: any init it knows is overridden by W and H.
        model = TSNMF(problem.rank, init="random", tol=0, max_iter=k)
        S = model.fit_transform(problem.X, no_topics, W=problem.S.copy(), H=problem.A.copy())
        return S, model.components_

    return [Solver("tsnmf MU", fit)]


def nmf_torch(problem: Problem) -> list[Solver]:
    """Its default, a variant of HALS, and block principal pivoting; MU for KL.

    MU divides by S A, which is zero for samples without any entry: there KL becomes NaN.
    """
    import torch
    from nmf.nmf_models import NMFBatchHALS, NMFBatchMU, NMFBatchNnlsBpp

    dense = problem.dense
    no_penalty = {"alpha_W": 0.0, "l1_ratio_W": 0.0, "alpha_H": 0.0, "l1_ratio_H": 0.0}

    def solver(label: str, method: Any) -> Solver:
        class FromStart(method):  # type: ignore[misc]
            """It takes no start; this replaces the step that draws one."""

            def _initialize_H_W(self) -> None:
                self.H, self.W = torch.tensor(problem.S), torch.tensor(problem.A)

        def fit(k: int) -> Any:
            model = FromStart(
                n_components=problem.rank,
                init="random",
                beta_loss=2 if problem.loss == F else 1,
                tol=0,
                random_state=0,
                fp_precision="double",
                device_type="cpu",
                n_jobs=problem.threads,
                max_iter=k,
                **no_penalty,
            )
            with redirect_stdout(io.StringIO()):
                model.fit(dense)
            return model

        return Solver(label, fit, lambda model: (model.H.numpy(), model.W.numpy()))

    if problem.loss == D:
        return [solver("nmf-torch MU", NMFBatchMU)]
    return [solver("nmf-torch HALS", NMFBatchHALS), solver("nmf-torch BPP", NMFBatchNnlsBpp)]


def torchnmf(problem: Problem) -> list[Solver]:
    """Multiplicative updates by automatic differentiation, sparse where the data are."""
    import torch
    from torchnmf.nmf import NMF

    if sp.issparse(problem.X):
        entries = problem.X.tocoo()
        places = np.array([entries.row, entries.col])
        X = torch.sparse_coo_tensor(places, entries.data, entries.shape)
    else:
        X = torch.from_numpy(problem.X)

    def fit(k: int) -> Any:
        # .double() after the fact: the constructor makes float32 factors of any start.
        model = NMF(W=torch.from_numpy(problem.A.T.copy()), H=torch.from_numpy(problem.S)).double()
        model.fit(X, beta=2 if problem.loss == F else 1, tol=-np.inf, max_iter=k)
        return model

    return [
        Solver(
            "torchnmf MU", fit, lambda model: (model.H.detach().numpy(), model.W.detach().numpy().T)
        )
    ]


def gensim(problem: Problem) -> list[Solver]:
    """Online NMF with a start of its own; k passes.

    It returns no S: it is given the best one for its topics, outside of the clock.
    """
    from gensim.models.nmf import Nmf

    if problem.loss != F:
        return []
    documents = sp.csc_matrix(problem.X.T)
    words = {j: str(j) for j in range(problem.X.shape[1])}

    def fit(k: int) -> Any:
        return Nmf(
            documents,
            num_topics=problem.rank,
            id2word=words,
            passes=k,
            eval_every=None,
            random_state=0,
        )

    def factors(model: Any) -> Factors:
        topics = np.ascontiguousarray(model.get_topics(normalize=False))
        return sf.represent(problem.X, topics, n_threads=problem.threads), topics

    return [Solver("gensim online", fit, factors, same_start=False)]


class Package(NamedTuple):
    """A package: the module to import, its arguments for pip, its solvers of a problem."""

    module: str
    install: str
    solvers: Callable[[Problem], list[Solver]]


# torch is named so that all are measured with the same one.  tsnmf asks for "sklearn", a name on
# PyPI that can no longer be installed; scikit-learn is all it needs, hence --no-deps.
PEERS = {
    "scikit-learn": Package("sklearn.decomposition", "scikit-learn", scikit_learn),
    "ssnmf": Package("ssnmf.ssnmf", "ssnmf==1.0.3 torch==2.13.0", ssnmf),
    "tsnmf": Package("tsnmf", "--no-deps tsnmf==1.0.4", tsnmf),
    "nmf-torch": Package("nmf.nmf_models", "nmf-torch==0.1.1 torch==2.13.0", nmf_torch),
    "torchnmf": Package("torchnmf.nmf", "torchnmf==0.3.5 torch==2.13.0", torchnmf),
    "gensim": Package("gensim.models.nmf", "gensim==4.4.0", gensim),
}


def version(package: str) -> str | None:
    """Return the version of a package, None if it cannot be imported."""
    try:
        importlib.import_module(PEERS[package].module)
    except ImportError:
        return None
    return importlib.metadata.version(package)
