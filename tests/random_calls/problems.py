"""Random data and problems of factorizations, for :mod:`random_calls`.

The objective of a problem is computed outside the library, by the formulas of its documentation.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import ssnmf_fast as sf
from random_calls import outside
from ssnmf_fast import extend
from ssnmf_fast.penalties import L1, L2, Graph, Orthogonal, Temporal

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
            dense[some(rng, shape, 0.2)] = np.nan
        return layout(rng, dense), dense.astype(np.float64)
    return sp.coo_array(dense).asformat(style), dense.astype(np.float64)


def some(rng: Any, shape: Any, share: float) -> Array:
    """Return which entries are chosen: never all of them."""
    chosen = rng.random(shape) < share
    chosen[(-1,) * chosen.ndim] = False
    return np.asarray(chosen)


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
    pattern = ~some(rng, shape, 1 - rng.choice([0.2, 0.7]))
    way = rng.integers(6)
    if way == 0:
        W = rng.random(shape) * pattern
        return W, W
    if way == 1:
        W = np.round(rng.random(shape) + 1e-3, 3) * pattern
        return sf.weights.observed(sparse(W)), W
    if way == 2:
        return sf.weights.missing(sparse(~pattern)), 1.0 * pattern
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
    if 0 < (top := dense.max()) < 0.01:  # data that are far from 1 are refused
        dense = dense / top
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


def _below_one(loss: Any) -> bool:
    return loss == "itakura-saito" or (not isinstance(loss, str) and loss < 1)


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


KNOWN = ("S_support", "A_support", "covariates", "fixed_components")


@dataclass
class Problem:
    """What is minimized: arguments of `factorize`, the data without NaN and forms, the weights."""

    arguments: dict[str, Any]
    dense: Array
    W: Array
    dtype: Any
    rank: int
    penalized: dict[str, list[Any]] = field(default_factory=dict)

    def value(self, fit: Results) -> tuple[float, float]:
        """Return the objective of factors outside, and the scale of its rounding errors."""
        given, (n, m) = self.arguments, self.dense.shape
        rows = {name: fit[name] if name == "S" else fit[name].T for name in "SABC" if name in fit}
        of_labels = given.get("supervision_loss")
        terms = [(1.0, self.dense, self.W, "S", "A", given["loss"])]
        if given.get("y") is not None:
            L = given.get("y_weights")
            L = np.ones(given["y"].shape) if L is None else L
            terms.append((fit["weight"], given["y"], L, "S", "B", of_labels))
        if "feature_labels" in given:
            Z = given["feature_labels"]
            terms.append((fit["feature_weight"], Z, np.ones(Z.shape), "A", "C", of_labels))
        total = np.zeros(2)
        for weight, X, W, near, far, loss in terms:
            total += weight * np.array(outside.divergence_of(X, W, rows[near], rows[far].T, loss))
        for name, listed in self.penalized.items():
            meets = m if name in "SC" else n
            total += meets * sum(outside.penalty(each, rows[name]) for each in listed)
        return float(total[0]), float(total[1])

    def complaints(self, results: Results, may_rise: bool = False) -> list[str]:
        """Complain of factors that are not what they are known to be, and of the objective."""
        given, found = self.arguments, outside.factors(results, ("S", "A", "B", "C"))
        for name, known in {"S": "covariates", "A": "fixed_components"}.items():
            F, support, fixed = results.get(name), given.get(f"{name}_support"), given.get(known)
            if F is None:
                continue
            moves = np.ones(F.shape, bool)
            if fixed is not None:
                moves[(..., slice(-fixed.shape[1], None)) if name == "S" else slice(len(fixed))] = 0
                if not np.array_equal(F[~moves].reshape(fixed.shape), fixed.astype(F.dtype)):
                    found.append(f"{name} is not {known}")
            if support is not None and F[moves & ~support].any():
                found.append(f"{name} is positive outside of its support")
        found += [f"not verified: {sentence}" for sentence in results.get("differences", [])]
        if found or "objective" not in results:
            return found
        return outside.trace(results["objective"], *self.value(results), self.dtype, may_rise)


def problem(
    rng: Any,
    files: bool = False,
    cluster: bool = False,
    ordinary: bool = False,
    labels: bool = True,
    among: tuple[str, ...] = KNOWN,
) -> Problem:
    """Return a random problem, in half of which something is known or costs something."""
    dtype, loss, of_labels = floats(rng), any_loss(rng), any_loss(rng)
    known = rng.random() < 0.6
    ordinary = ordinary or known or cluster or of_labels == "elastic"
    X, dense, given_weights, W = data_for(rng, loss, dtype, ordinary, files)
    rank = int(rng.integers(1, 8 if rng.random() < 0.7 else 21))
    arguments: dict[str, Any] = {"X": X, "loss": loss, "X_weights": given_weights}
    found = Problem(arguments, dense, W, dtype, rank)
    n, m = dense.shape
    rows = {"S": n, "A": m}
    if labels and rng.random() < 0.5:
        Y = (rng.random((n, 3)) < 0.4).astype(dtype) + dtype(of_positive(of_labels))
        Y[some(rng, n, 0.3)] = np.nan
        arguments |= {"y": Y, "supervision_loss": of_labels}
        arguments["supervision_weight"] = [0.0, 1.0, 30.0, "balanced"][rng.integers(4)]
        if rng.random() < 0.2:
            arguments["y_weights"] = rng.random((n, 3))
        rows["B"] = 3
    if labels and known and rng.random() < 0.2:
        Z = (rng.random((m, 2)) < 0.4).astype(dtype) + dtype(of_positive(of_labels))
        Z[some(rng, m, 0.3)] = np.nan
        arguments |= {"feature_labels": Z, "supervision_loss": of_labels}
        arguments["feature_weight"] = [1.0, 30.0, "balanced"][rng.integers(3)]
        rows["C"] = 2
    if known:
        _know(rng, found, among)
        if rng.random() < 0.7:
            _penalize(rng, found, rows, cluster)
    return found


def _know(rng: Any, found: Problem, among: tuple[str, ...]) -> None:
    (n, m), rank, dtype = found.dense.shape, found.rank, found.dtype
    shapes = {"S_support": (n, rank), "A_support": (rank, m)}
    for name, shape in shapes.items():
        if name in among and rng.random() < 0.3:
            found.arguments[name] = rng.random(shape) < rng.choice([0.3, 0.8])
    typical = float(np.sqrt(np.nanmean(found.dense) / rank)) or 1.0
    first = int(rng.integers(rank + 1)) if rng.random() < 0.4 else 0
    last = int(rng.integers(rank + 1 - first)) if rng.random() < 0.4 else 0
    for name, shape in (("fixed_components", (first, m)), ("covariates", (n, last))):
        if min(shape) > 0 and name in among:
            sizes = typical * 10.0 ** rng.uniform(-2, 2)
            given = rng.random(shape) * (rng.random(shape) < rng.choice([0.5, 1.0]))
            found.arguments[name] = (sizes * given).astype(dtype)
    if any(map(_below_one, (found.arguments["loss"], found.arguments.get("supervision_loss", 1)))):
        # Where the model stays 0 these losses are infinite, and such fits are refused.
        if first + last == rank:
            for name in ("fixed_components", "covariates"):
                found.arguments.pop(name, None)
        free = first % rank
        if "A_support" in found.arguments:
            found.arguments["A_support"][free] = True
        if "S_support" in found.arguments:
            found.arguments["S_support"][:, free] = True


def draw_penalties(rng: Any, n_rows: int, bounded: bool = True) -> list[Any]:
    """Return penalties of a factor with `n_rows` rows; with `bounded`, one bounds its scale."""
    graph = np.triu(rng.random((n_rows, n_rows)) * (rng.random((n_rows, n_rows)) < 0.3), 1)
    makers = [L1, L2, Orthogonal, Temporal, lambda c: Graph(c, graph + graph.T)]
    chosen = [make for make in makers if rng.random() < 0.3]
    if bounded and not {L1, L2} & set(chosen):
        chosen.append(makers[rng.integers(2)])
    return [make(float(10.0 ** rng.uniform(-9, 4))) for make in chosen]


def _penalize(rng: Any, found: Problem, rows: dict[str, int], cluster: bool) -> None:
    """Draw penalties: of all factors, one that bounds it, or none has a scale that is free."""

    def possible(listed: list[Any], name: str) -> list[Any]:
        return [each for each in listed if each.by_rows or not (cluster and name == "S")]

    given = found.arguments
    fixed = len(given.get("fixed_components", ())) + np.shape(given.get("covariates", [[]]))[1]
    if fixed == found.rank or rng.random() < 0.3:  # a list is of all factors
        listed = draw_penalties(rng, 1, bounded=fixed < found.rank)
        listed = [each for each in possible(listed, "S") if not isinstance(each, Graph)]
        given["penalties"], found.penalized = listed, dict.fromkeys(rows, listed)
    else:
        drawn = {name: draw_penalties(rng, size) for name, size in rows.items()}
        found.penalized = {name: possible(listed, name) for name, listed in drawn.items()}
        given["penalties"] = dict(found.penalized)


def results_of(fit: Any) -> Results:
    found = {name: getattr(fit, name) for name in "SABC" if getattr(fit, name) is not None}
    found |= {"weight": fit.supervision_weight, "feature_weight": fit.feature_weight}
    found["objective"] = [value for _, value in fit.objective]
    return {name: value for name, value in found.items() if value is not None}


def settings(rng: Any) -> dict[str, Any]:
    return {
        "max_iter": int(rng.integers(0, 25)),
        "tol": float(rng.choice([0, 1e-4])),
        "random_state": int(rng.integers(1000)),
        "solver": str(rng.choice(SOLVERS)),
    }


def may_rise(given: dict[str, Any]) -> bool:
    """Whether the rule of the papers, with two losses or penalties, may raise the objective."""
    others = {"y", "feature_labels", "penalties"}
    return given["solver"] == "mu" and bool(others & set(given))


def inputs_of(given: dict[str, Any]) -> dict[str, Any]:
    names = ("y", "X_weights", "y_weights", "feature_labels", "penalties", *KNOWN)
    return {name: given[name] for name in names if given.get(name) is not None}


def differences(result: Any, X: Any, n_threads: int, **inputs: Any) -> list[str]:
    return list(sf.verify(result, X, n_threads=n_threads, **inputs).differences)
