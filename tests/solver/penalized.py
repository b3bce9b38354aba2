"""Penalties of all kinds, their values written out, and data of which components die."""

import numpy as np
import problems
import scipy.sparse as sp

from ssnmf_fast import penalties

KINDS = ("L1", "L2", "Orthogonal", "Graph", "Temporal")


def graph(rng, n):
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    W = W + W.T
    np.fill_diagonal(W, 0)
    return W


def made(kind, coefficient, rng, n):
    more = (graph(rng, n),) if kind == "Graph" else ()
    return getattr(penalties, kind)(coefficient, *more)


def written_out(kind, penalty, F):
    """The value, from the formula of the docstring."""
    F = F.astype(np.longdouble)
    pairs = F.T @ F
    W = {"Graph": lambda: penalty.weights.toarray(), "Temporal": lambda: np.eye(len(F), k=1)}
    edges = W[kind]() if kind in W else None
    total = {
        "L1": lambda: F.sum(),
        "L2": lambda: (F**2).sum(),
        "Orthogonal": lambda: pairs[~np.eye(len(pairs), dtype=bool)].sum(),
        "Graph": lambda: sum(
            edges[i, j] * ((F[i] - F[j]) ** 2).sum() for i in range(len(F)) for j in range(i)
        ),
        "Temporal": lambda: sum(((F[i] - F[i + 1]) ** 2).sum() for i in range(len(F) - 1)),
    }[kind]()
    return penalty.coefficient * total


def sparse_problem(seed, dtype, form="none", storage="dense"):
    """Data of three components, most of which is zero: components die, and rows have few."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(20, 3)) @ rng.gamma(0.5, size=(3, 15))
    X = (X * (rng.random(X.shape) < 0.2)).astype(dtype)
    return problems.weighted(rng, sp.csr_array(X) if storage == "sparse" else X, form)
