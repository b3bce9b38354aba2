"""The four models of the SSNMF paper: its settings, its start, its stopping rule, its score P."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
RANK = 13
MOST_UPDATES = 50
NEW_SAMPLE_UPDATES = 10  # the default of the paper's package
TINY = 1e-10


@dataclass(frozen=True)
class Model:
    """Losses of data and labels, and the weight and tolerance the paper chose (its Table 6)."""

    loss: str
    supervision_loss: str
    weight: float
    tol: float


MODELS = {
    "(F, F)": Model(F, F, 1e2, 1e-4),
    "(F, D)": Model(F, D, 1e1, 1e-4),
    "(D, F)": Model(D, F, 1e2, 1e-3),
    "(D, D)": Model(D, D, 1e3, 1e-3),
}


@dataclass(frozen=True)
class Protocol:
    """How a fit starts, and which value of the objective the tolerance is relative to."""

    scaled: bool
    reference: int  # 0: the objective of the start; 1: that after the first update

    def start(self, X: Any, k: int, seed: int) -> Any:
        """Return the library's scaled start, or factors uniform on (0, 1)."""
        if self.scaled:
            return "random"
        rng = np.random.default_rng(seed)
        n, m = X.shape
        return rng.random((n, RANK)), rng.random((RANK, m)), rng.random((RANK, k))


PROTOCOLS = {
    "uniform start, tol x F_1": Protocol(scaled=False, reference=1),
    "library's start, tol x F_0": Protocol(scaled=True, reference=0),
    "uniform start, tol x F_0": Protocol(scaled=False, reference=0),
}


def fit(X: Any, Y: Array, model: Model, protocol: Protocol, seed: int) -> tuple[Any, int]:
    """Fit by the papers' rule, judged after every update; return the fit and its updates.

    One update a call: the library itself looks at the objective every ten, too rarely for a rule
    that stops most of these fits before the twentieth.
    """
    start = protocol.start(X, Y.shape[1], seed)
    values: list[float] = []
    for update in range(1, MOST_UPDATES + 1):
        result = sf.factorize(
            X,
            Y,
            n_components=RANK,
            loss=model.loss,
            supervision_loss=model.supervision_loss,
            supervision_weight=model.weight,
            solver="mu",
            init=start,
            max_iter=1,
            tol=0,
            random_state=seed,
            n_threads=1,
        )
        start = (result.S, result.A, result.B)
        values += [value for _, value in result.objective[bool(values) :]]
        if update > protocol.reference and (
            values[-2] - values[-1] < model.tol * values[protocol.reference]
        ):
            break
    return result, update


def represent(X: Any, A: Array, loss: str, seed: int) -> Array:
    """Represent new samples as the paper does: exactly, or for D by ten updates of S.

    Ten updates from a uniform start are far from the optimum that :func:`ssnmf_fast.represent`
    finds; they act as early stopping.
    """
    if loss == F:
        return sf.represent(X, A, loss=loss, n_threads=1)
    S = np.random.default_rng(seed).random((X.shape[0], len(A)))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    words = np.ascontiguousarray(A.T)
    for _ in range(NEW_SAMPLE_UPDATES):
        fitted = np.einsum("ij,ij->i", S[rows], words[X.indices]) + TINY
        ratio = sp.csr_matrix((X.data / fitted, X.indices, X.indptr), shape=X.shape)
        S = S * (ratio @ words) / (A.sum(axis=1) + TINY)
    return S
