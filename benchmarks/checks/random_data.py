"""Random data, their weights and losses, for :mod:`random_calls`."""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import ssnmf_fast as sf
from ssnmf_fast import extend

Array = npt.NDArray[Any]
Results = dict[str, Any]

SOLVERS = ("auto", "mm", "mu", "hals")
LOSSES = ("frobenius", "kullback-leibler")
FORMATS = ("array", "array", "csr", "csr", "csc", "coo", "bsr", "lil")
ORDINARY_SCALES = (1.0, 1e-3, 1e3)
SCALES = (1.0, 1.0, 1.0, 2.0**-18, 2.0**18, 1e-6, 1e6)


@dataclass
class Call:
    """A call: what goes in, how results come out, and what is wrong with them."""

    name: str
    arguments: dict[str, Any]
    compute: Callable[[dict[str, Any], int], Results]
    complaints: Callable[[Results], list[str]]
    illegal: str = ""  # the argument that must be refused


BETAS = (0, 0.0, 0.3, 0.5, np.float64(0.7), 1, 1.2, 1.5, np.float32(1.5), 1.9, 2, "itakura-saito")


class Elastic(extend.Loss):
    """d(x, z) = (x - z)^2 / 2 + x log(x / z) - x + z, as code outside of the package adds it."""

    name = "elastic"
    exponents = (1.0, -1.0)

    def P(self, entries: Any, F: Any, G: Any, to: Any) -> None:
        entries.power(0, F, G, to)
        entries.power(-1, F, G, extend.Target(to.out, to.scale, accumulate=True))

    def N(self, form: Any, F: Any, G: Any, to: Any) -> None:
        form.power(1, F, G, to)
        form.power(0, F, G, extend.Target(to.out, to.scale, accumulate=True))

    def constant(self, z: Any, w: Any) -> float:
        z, w = np.nan_to_num(z).astype(float), np.ones(z.shape) if w is None else w.astype(float)
        positive = w * z > 0
        wz = (w * z)[positive]
        return float(np.sum(w * z**2) / 2 - np.sum(wz * np.log(w[positive])))

    def value(self, term: Any, F: Any, G: Any) -> float:
        P, squares, sums = np.empty_like(F), np.empty_like(F), np.empty_like(F)
        term.entries.power(0, F, G, extend.Target(P))
        term.form.power(1, F, G, extend.Target(squares))
        term.form.power(0, F, G, extend.Target(sums))
        products = [float(np.vdot(F.astype(float), M.astype(float))) for M in (P, squares, sums)]
        value = term.constant + products[1] / 2 - products[0] + products[2]
        return max(float(value + term.entries.sum("kl_loss", F, G)), 0.0)


extend.register_loss(Elastic())


def matrix(
    rng: Any,
    shape: tuple[int, int],
    dtype: Any,
    missing: bool = False,
    scales: tuple[float, ...] = SCALES,
) -> tuple[Any, Any]:
    """Return X in a random format, and its dense float64 array with NaN for what is missing."""
    dense = dense_data(rng, shape, dtype, scales)
    if rng.random() < 0.1:
        dense[rng.integers(shape[0])] = 0
    if rng.random() < 0.1:
        dense[:, rng.integers(shape[1])] = 0
    style = str(rng.choice(FORMATS))
    if style == "array":
        if missing and rng.random() < 0.3:
            dense[rng.random(shape) < 0.2] = np.nan
        return layout(rng, dense), dense.astype(np.float64)
    return sp.coo_array(dense).asformat(style), dense.astype(np.float64)


def layout(rng: Any, X: Array) -> Array:
    way = rng.integers(5)
    if way == 0:
        return np.asfortranarray(X)
    if way == 1:
        return np.repeat(X, 2, axis=0)[::2]
    if way == 2:
        return X[::-1].copy()[::-1]
    return X


def weights(rng: Any, X: Array, sparse: Callable[[Array], Any] = sp.csr_array) -> tuple[Any, Array]:
    """Return weights in a random form, and as a dense array; none where X says what is missing."""
    shape = X.shape
    if np.isnan(X).any():
        return None, np.ones(shape)
    pattern = rng.random(shape) < rng.choice([0.2, 0.7])
    way = rng.integers(6)
    if way == 0:
        W = rng.random(shape) * pattern
        return W, W
    if way == 1:
        W = np.round(rng.random(shape), 3) * pattern
        return sf.weights.observed(sparse(W)), W
    if way == 2:
        return sf.weights.missing(sparse(pattern)), 1.0 - pattern
    if way == 3:
        vectors = [rng.random(n) for n in shape]
        W = functools.reduce(np.multiply.outer, vectors)
        return sf.weights.outer(*vectors) if sparse is sp.csr_array else vectors, W
    return None, np.ones(shape)


def dense_data(rng: Any, shape: tuple[int, ...], dtype: Any, scales: tuple[float, ...]) -> Array:
    density = rng.choice([0.1, 0.4, 1.0])
    dense = [rng.random, lambda s: rng.poisson(2, s), lambda s: rng.gamma(0.3, 1, s)][
        rng.integers(3)
    ](shape)
    dense = dense * (rng.random(shape) < density)
    largest = np.inf if dtype == np.float64 else 1e6  # float32 data are refused from 1e9 on
    return np.asarray(dense * min(rng.choice(scales), largest), dtype)


def sizes(rng: Any) -> tuple[int, int]:
    """Return n and m: small, now and then large enough for threads."""
    if rng.random() < 0.03:
        return int(rng.integers(200, 3000)), int(rng.integers(50, 400))
    return int(rng.integers(1, 30)), int(rng.integers(1, 30))


def floats(rng: Any) -> Any:
    return rng.choice([np.float64, np.float64, np.float32])


def any_loss(rng: Any) -> Any:
    """Return a loss of the papers, half of the time, or any other."""
    others = [*BETAS, "elastic"]
    return str(rng.choice(LOSSES)) if rng.random() < 0.5 else others[rng.integers(len(others))]


def scales_of(*losses: Any, ordinary: bool = False) -> tuple[float, ...]:
    """Return scales of data that losses, and what has a scale of its own, can be fitted with."""
    return ORDINARY_SCALES if ordinary or "elastic" in losses else SCALES


def of_positive(loss: Any) -> bool:
    return loss == "itakura-saito" or (not isinstance(loss, str) and loss == 0)


def data_for(
    rng: Any, loss: Any, dtype: Any, ordinary: bool = False, files: bool = False
) -> tuple[Any, Array, Any, Array]:
    """Return X in some form, or at times in a file, and dense; its weights, and dense."""
    shape, scales = sizes(rng), scales_of(loss, ordinary=ordinary)
    X, dense = matrix(rng, shape, dtype, missing=True, scales=scales)
    if of_positive(loss):
        typical = np.nanmean(np.where(dense > 0, dense, np.nan)) if (dense > 0).any() else 1.0
        X = (dense + 0.1 * typical).astype(dtype)
        dense = X.astype(np.float64)
    given, W = weights(rng, dense)
    plain = given is None and not np.isnan(dense).any() and scales == ORDINARY_SCALES
    if files and plain and str(loss) in LOSSES and rng.random() < 0.2:
        X = on_disk(rng, dense.astype(dtype))
    return X, dense, given, W


_numbers = itertools.count()
_folders: list[str] = []


def on_disk(rng: Any, dense: Array) -> sf.io.CsrFile:
    """Return data in a file, of which a few rows are read at a time."""
    if not _folders:
        _folders.append(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    path = f"{_folders[0]}/{next(_numbers)}.npz"
    sp.save_npz(path, sp.csr_array(dense), compressed=False)
    return sf.io.open_csr(path, memory=int(rng.integers(300, 5000)))
