"""Random decompositions of tensors, for :mod:`random_calls`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import outside
from random_calls import may_rise
from random_data import SOLVERS, Call, Results, any_loss, floats, of_positive, scales_of
from random_problems import differences, draw_penalties, inputs_of

import ssnmf_fast as sf

Array = npt.NDArray[Any]


@dataclass
class Coordinates:
    """A sparse tensor as other packages have it."""

    coords: Array
    data: Array
    shape: tuple[int, ...]


def _sparse(rng: Any, dense: Array) -> Any:
    """Return a tensor by coordinates in any order, some of them twice."""
    places = np.array(np.nonzero(dense))
    values = dense[tuple(places)]
    if rng.random() < 0.3:
        places, values = np.tile(places, 2), np.tile(values / 2, 2).astype(dense.dtype)
    order = rng.permutation(len(values))
    places = places[:, order].astype(rng.choice([np.int32, np.int64, np.uint16]))
    if rng.random() < 0.5:
        return Coordinates(places, values[order], dense.shape)
    return places, values[order], dense.shape


def _weights(rng: Any, dense: Array) -> tuple[Any, Array]:
    shape = dense.shape
    if np.isnan(dense).any():
        return None, np.ones(shape)
    pattern = rng.random(shape) < rng.choice([0.3, 0.8])
    way = rng.integers(6)
    if way == 0:
        W = rng.random(shape) * pattern
        return W, W
    if way == 1:
        return sf.weights.observed(_sparse(rng, pattern.astype(float))), pattern.astype(float)
    if way == 2:
        return sf.weights.missing(pattern), 1.0 - pattern
    if way == 3:
        vectors = [None if rng.random() < 0.3 else rng.random(n) for n in shape]
        W = np.ones(shape)
        for mode, vector in enumerate(vectors):
            if vector is not None:
                W *= vector.reshape([-1 if k == mode else 1 for k in range(len(shape))])
        return vectors, W
    return None, np.ones(shape)


def _far_side(factors: list[Array]) -> Array:
    made = factors[0]
    for F in factors[1:]:
        made = (made[:, None] * F).reshape(-1, F.shape[1])
    return made


def factorize_tensor(rng: Any) -> Call:
    shape = tuple(int(rng.integers(1, 9)) for _ in range(rng.integers(2, 6)))
    dtype = floats(rng)
    largest = np.inf if dtype == np.float64 else 1e6
    dense = [rng.random(shape), rng.poisson(2, shape)][rng.integers(2)]
    dense = dense * (rng.random(shape) < rng.choice([0.1, 0.4, 1.0]))
    loss, of_labels = (any_loss(rng) for _ in range(2))
    penalized = bool(rng.random() < 0.4)
    scales = scales_of(loss, of_labels, ordinary=penalized)
    dense = (dense * min(rng.choice(scales), largest)).astype(dtype)
    positive = of_positive(loss)
    if positive:
        dense += dtype(0.1) * (dense.mean() or dtype(1))
    X: Any = dense
    if rng.random() < 0.6 and not positive:
        X = _sparse(rng, dense)
        dense = np.zeros(shape, dtype=np.float64)
        places, values = (X.coords, X.data) if isinstance(X, Coordinates) else X[:2]
        np.add.at(dense, tuple(places), values)
    elif rng.random() < 0.3:
        dense[rng.random(shape) < 0.2] = np.nan
        X = np.asfortranarray(dense) if rng.random() < 0.5 else dense
    rank = int(rng.integers(1, 6 if rng.random() < 0.7 else 20))
    given_weights, W = _weights(rng, dense)
    arguments: dict[str, Any] = {
        "tensor": X,
        "n_components": rank,
        "loss": loss,
        "X_weights": given_weights,
        "solver": str(rng.choice(SOLVERS)),
        "init": str(rng.choice(["auto", "random", "least-squares", "svd"])),
        "max_iter": int(rng.integers(0, 25)),
        "tol": float(rng.choice([0, 1e-4])),
        "random_state": int(rng.integers(1000)),
    }
    labels, weight = {}, float(rng.choice([0.0, 1.0, 1000.0]))
    for mode in np.flatnonzero(rng.random(len(shape)) < 0.15).tolist():
        Y = (rng.random((shape[mode], 3)) < 0.4).astype(dtype) + dtype(of_positive(of_labels))
        Y[rng.random(shape[mode]) < 0.3] = np.nan
        labels[mode] = Y
    if labels:
        arguments |= {"labels": labels, "supervision_loss": of_labels}
        arguments["supervision_weight"] = weight
    penalties: dict[Any, Any] = {}
    if penalized:
        penalties = {mode: draw_penalties(rng, n) for mode, n in enumerate(shape)}
        penalties |= {f"B{mode}": draw_penalties(rng, 3) for mode in labels}
        arguments["penalties"] = penalties
    elif rng.random() < 0.1 and arguments["init"] != "svd":
        arguments["n_starts"] = 2

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        rest = {name: value for name, value in given.items() if name != "tensor"}
        states: list[Any] = []  # of which the last has factors with the sizes that penalties see
        if penalized:
            rest["callback"] = lambda state: states.append(state)
        fit = sf.factorize_tensor(given["tensor"], **rest, n_threads=n_threads)
        results = {f"F{mode}": F for mode, F in enumerate(fit.factors)}
        results |= {f"B{mode}": B for mode, B in fit.label_components.items()}
        results |= {"weights": fit.weights, "objective": [v for _, v in fit.objective]}
        if penalized:
            last = {name: np.array(F) for name, F in states[-1].factors.items()}
            return results | {name: F if name[0] == "F" else F.T for name, F in last.items()}
        told = inputs_of(given) | ({"labels": labels} if labels else {})
        return {**results, "differences": differences(fit, given["tensor"], n_threads, **told)}

    def complaints(results: Results) -> list[str]:
        found = outside.factors(results, tuple(name for name in results if name[0] in "FB"))
        found += [f"not verified: {sentence}" for sentence in results.get("differences", [])]
        factors = [results[f"F{mode}"].astype(np.longdouble) for mode in range(len(shape))]
        matrix = dense.reshape(shape[0], -1).astype(np.float64)
        weights = W.reshape(shape[0], -1)
        S, A = factors[0] * (1.0 if penalized else results["weights"]), _far_side(factors[1:]).T
        parts = [outside.divergence_of(matrix, weights, S, A.astype(dtype), loss)]
        for mode, Y in labels.items():
            F, B = factors[mode], results[f"B{mode}"]
            of_mode = outside.divergence_of(Y, np.ones(Y.shape), F, B, of_labels)
            parts.append(weight * np.array(of_mode))
        for key, listed in penalties.items():
            mode = int(str(key).lstrip("B"))
            F, meets = (
                (factors[key], dense.size // shape[key])
                if key == mode
                else (results[key].T, shape[mode])
            )
            cost = meets * sum(outside.penalty(each, F) for each in listed)
            parts.append(np.array([cost, cost]))
        expected, rounding = np.sum(parts, axis=0)
        rises = may_rise(arguments)
        return found or outside.trace(results["objective"], expected, rounding, dtype, rises)

    return Call("factorize_tensor", arguments, compute, complaints)


def spoiled_tensor(X: Any, rng: Any) -> Any:
    """Return a tensor that must be refused."""
    if isinstance(X, np.ndarray):
        bad = np.array(X, dtype=np.float64)
        bad[tuple(rng.integers(n) for n in bad.shape)] = rng.choice([-1.0, np.inf, -1e-300])
        return [bad, bad.astype(complex), bad.ravel()[0]][rng.integers(3)]
    parts = (X.coords, X.data, X.shape) if isinstance(X, Coordinates) else X
    coords, values, shape = parts
    coords, values = np.array(coords, dtype=np.int64), np.array(values, dtype=np.float64)
    way = rng.integers(6)
    if len(values) == 0 or way == 0:
        return coords, values, shape[:-1]
    entry = rng.integers(len(values))
    if way == 1:
        values[entry] = rng.choice([-1.0, np.nan, np.inf])
    elif way == 2:
        coords[rng.integers(len(shape)), entry] = rng.choice([-1, max(shape), 2**40])
    elif way == 3:
        return coords[:, 1:], values, shape
    elif way == 4:
        return coords + 0.5, values, shape
    else:
        return coords, values.astype(complex), shape
    return coords, values, shape


TENSORS = [factorize_tensor, factorize_tensor]
