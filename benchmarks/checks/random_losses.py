"""Random calls with losses by number and with a registered loss, for :mod:`random_calls`."""

from __future__ import annotations

from typing import Any

import numpy as np
import outside
from random_calls import (
    ORDINARY_SCALES,
    SCALES,
    SOLVERS,
    Call,
    Results,
    floats,
    matrix,
    sizes,
    weights,
)

import ssnmf_fast as sf
from ssnmf_fast import extend

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


def _data(rng: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return X, its weights and the loss, and what they stand for."""
    shape, dtype = sizes(rng), floats(rng)
    loss = "elastic" if rng.random() < 0.25 else BETAS[rng.integers(len(BETAS))]
    scales = ORDINARY_SCALES if loss == "elastic" else SCALES
    X, dense = matrix(rng, shape, dtype, missing=True, scales=scales)
    if loss in (0, "itakura-saito"):  # of positive entries alone
        typical = np.nanmean(np.where(dense > 0, dense, np.nan)) if (dense > 0).any() else 1.0
        X = dense = (dense + 0.1 * typical).astype(dtype)
    given, W = weights(rng, shape, dense)
    return X, dense.astype(np.float64), given, W, loss, dtype


def _close(value: float, expected: float, rounding: float, dtype: Any) -> bool:
    return abs(value - expected) <= outside.slack_of(dtype) * max(abs(expected), rounding)


def factorize(rng: Any) -> Call:
    X, dense, given_weights, W, loss, dtype = _data(rng)
    arguments: dict[str, Any] = {
        "X": X,
        "n_components": int(rng.integers(1, 8)),
        "loss": loss,
        "X_weights": given_weights,
        "max_iter": int(rng.integers(0, 25)),
        "tol": float(rng.choice([0, 1e-4])),
        "random_state": int(rng.integers(1000)),
        "solver": str(rng.choice(SOLVERS)),
        "init": str(rng.choice(["auto", "random"])),
    }

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        fit = sf.factorize(**given, n_threads=n_threads)
        return {"S": fit.S, "A": fit.A, "objective": [v for _, v in fit.objective]}

    def complaints(results: Results) -> list[str]:
        found = outside.factors(results, ("S", "A"))
        values = results["objective"]
        expected, rounding = outside.divergence_of(dense, W, results["S"], results["A"], loss)
        found = found or outside.trace(values, expected, rounding, dtype)
        if not (found or _close(values[-1], expected, rounding, dtype)):
            found = [f"objective {values[-1]!r}, outside {expected!r}, rounding {rounding!r}"]
        return found

    return Call("factorize by number", arguments, compute, complaints)


def objective(rng: Any) -> Call:
    X, dense, given_weights, W, loss, dtype = _data(rng)
    rank = int(rng.integers(1, 6))
    S, A = rng.random((dense.shape[0], rank)), rng.random((rank, dense.shape[1]))
    arguments = {"X": X, "S": S, "A": A, "loss": loss, "X_weights": given_weights}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        return {"value": sf.objective(**given, n_threads=n_threads)}

    def complaints(results: Results) -> list[str]:
        kept = S.astype(dtype), A.astype(dtype)
        expected, rounding = outside.divergence_of(dense, W, *kept, loss)
        if _close(results["value"], expected, rounding, dtype):
            return []
        return [f"objective {results['value']!r}, outside {expected!r}"]

    return Call("objective by number", arguments, compute, complaints)


def represent(rng: Any) -> Call:
    X, dense, given_weights, W, loss, dtype = _data(rng)
    rank = int(rng.integers(1, 6))
    A = (rng.gamma(1, 1, (rank, dense.shape[1])) + 1e-3).astype(dtype)
    arguments = {"X": X, "A": A, "loss": loss, "X_weights": given_weights}

    def compute(given: dict[str, Any], n_threads: int) -> Results:
        return {"S": sf.represent(**given, n_threads=n_threads)}

    def complaints(results: Results) -> list[str]:
        S = results["S"]
        found = outside.factors(results, ("S",))
        if found:
            return found
        # At the least value of a row no common factor of its coefficients makes it less.
        best, rounding = outside.row_values(dense, W, S, A, loss)
        for factor in (0.9, 1.1):
            other, _ = outside.row_values(dense, W, S * factor, A, loss)
            worse = best - other > 1e-4 * rounding
            if worse.any():
                row = int(np.argmax(worse))
                found.append(f"row {row}: {best[row]} at S, {other[row]} at {factor} S")
        return found

    return Call("represent by number", arguments, compute, complaints)


LOSSES_BY_NUMBER = [factorize, objective, represent]
