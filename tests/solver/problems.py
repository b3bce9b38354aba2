"""Random problems, and the objective written out in dense NumPy."""

import numpy as np
import scipy.sparse as sp

from ssnmf_fast import weights

LOSSES = ("frobenius", "kullback-leibler")
FORMS = ("none", "outer", "observed", "missing", "base", "dense", "nan")
STORAGE = ("sparse", "dense")


def divergence(x, z, loss):
    if loss == "frobenius":
        return (x - z) ** 2
    safe = np.where(x > 0, x, 1)
    return np.where(x > 0, x * np.log(safe / np.maximum(z, 1e-300)), 0) - x + z


def dense_objective(X, W, S, A, loss):
    S, A = S.astype(np.longdouble), A.astype(np.longdouble)
    entries = divergence(X.astype(np.longdouble), S @ A, loss)
    return float(np.sum(np.where(W > 0, W * entries, 0)))


def data(rng, shape, dtype, storage="sparse", density=0.4):
    X = rng.random(shape) * (rng.random(shape) < density)
    X = np.round(X * 8, 2).astype(dtype)
    return sp.csr_array(X) if storage == "sparse" else X


def iterates(fit):
    """The factors (S, A, B) at the start of a fit and after each of its iterations."""
    seen = []

    def keep(state):
        seen.append([None if F is None else F.copy() for F in (state.S, state.A, state.B)])

    fit(callback=keep, check_every=1)
    return seen


def filled(X):
    """X as a dense float64 array, with 0 for NaN."""
    return np.nan_to_num(X.toarray() if sp.issparse(X) else X).astype(float)


def weighted(rng, X, form):
    """Return (data, weights) to pass, and the same weights as a dense array."""
    shape, dtype = X.shape, X.dtype
    pattern = (rng.random(shape) < 0.5) * 1.0
    if form == "outer":
        a, b = rng.random(shape[0]), rng.random(shape[1])
        return X, weights.outer(a, b), np.outer(a.astype(dtype), b.astype(dtype)).astype(float)
    if form == "observed":
        values = pattern * np.round(rng.random(shape), 2)
        return X, weights.observed(sp.csr_array(values)), values.astype(dtype).astype(float)
    if form == "missing":
        return X, weights.missing(sp.csr_array(pattern)), 1 - pattern
    if form == "base":
        extra = pattern * np.round(rng.random(shape), 2)
        dense = extra.astype(dtype).astype(float) + float(dtype.type(0.3))
        return X, weights.base(0.3, sp.csr_array(extra)), dense
    if form == "dense":
        values = rng.random(shape)
        return X, values, values.astype(dtype).astype(float)
    if form == "nan":
        holes = X.toarray() if sp.issparse(X) else X.copy()
        holes[pattern > 0] = np.nan
        return holes, None, 1 - pattern
    return X, None, np.ones(shape)
