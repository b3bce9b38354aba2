"""Fits of many kinds, which `verify` has to accept.

    python honest_fits.py FOLDER make:MAKER check:MAKER ...

writes the results of half of them to a folder of this name, or verifies those that lie there: at
another level of the kernels.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import ssnmf_fast as sf

N, M, RANK = 60, 30, 4
SETTINGS: dict[str, Any] = {"n_components": RANK, "max_iter": 30, "random_state": 0}
# Arguments of the fit that its receipt tells, or that change no result.
TOLD = {"loss", "supervision_loss", "supervision_weight", "feature_weight", "solver", "init", "tol"}
TOLD |= {*SETTINGS, "n_threads", "callback"}
PENALTY = sf.penalties


class Fit(NamedTuple):
    X: Any
    given: dict[str, Any]

    def result(self, **more: Any) -> Any:
        return sf.factorize(self.X, **{**SETTINGS, **self.given, **more})

    @property
    def inputs(self) -> dict[str, Any]:
        return {k: one for k, one in self.given.items() if k not in TOLD}


def counts(rng: np.random.Generator) -> np.ndarray:
    X = rng.poisson(rng.gamma(0.4, 2, (N, RANK)) @ rng.gamma(0.4, 2, (RANK, M))).astype(float)
    X[3] = 0
    return X


def honest_fits(folder: Path) -> dict[str, Fit]:
    """Return fits by name; the folder is for data on disk."""
    rng = np.random.default_rng(0)
    X = counts(rng)
    sparse, single = sp.csr_array(X), X.astype(np.float32)
    sp.save_npz(folder / "X.npz", sparse, compressed=False)
    Y = np.eye(3)[rng.integers(0, 3, N)]
    some = np.where(np.arange(N)[:, None] % 3 == 0, np.nan, Y)
    pattern = sp.csr_array(rng.random(X.shape) < 0.4)
    words = np.where(np.arange(M)[:, None] < 6, np.eye(2)[np.arange(M) % 2], np.nan)
    support = rng.random((N, RANK)) < 0.7
    support[:, 0] = True
    S = rng.random((N, RANK))
    S[S < 0.2] = 0
    forms = {
        "dense": X,
        "columns": np.asfortranarray(X),
        "sparse": sparse,
        "disk": sf.io.open_csr(folder / "X.npz", memory=5000),
        "float32": single,
        "sparse float32": sp.csr_array(single),
        "missing": np.where(rng.random(X.shape) < 0.2, np.nan, X),
    }
    fits = {}
    for loss in ("frobenius", "kullback-leibler"):
        small = PENALTY.L2(1e-3)
        smooth = {"S": [PENALTY.Temporal(0.01), small], "A": [PENALTY.Orthogonal(0.01), small]}
        given: dict[str, dict[str, Any]] = {
            "labels": {"y": Y},
            "labels by mu": {"y": Y, "supervision_loss": "frobenius", "solver": "mu"},
            "some labels": {"y": some, "supervision_weight": "balanced"},
            "labels without weight": {"y": Y, "supervision_weight": 0.0},
            "weights of labels": {"y": Y, "y_weights": sf.weights.outer(rows=rng.random(N))},
            "observed": {"X_weights": sf.weights.observed(pattern)},
            "missing pattern": {"X_weights": sf.weights.missing(pattern)},
            "base": {"X_weights": sf.weights.base(0.2, pattern)},
            "outer": {"X_weights": sf.weights.outer(rng.random(N), rng.random(M))},
            "entry by entry": {"X_weights": rng.random(X.shape)},
            "penalties": {"penalties": [PENALTY.L1(0.01), PENALTY.L2(0.01)]},
            "smooth": {"penalties": smooth},
            "fixed": {"covariates": np.ones((N, 1)), "fixed_components": X[:1] + 0.1},
            "supports": {"S_support": support, "A_support": np.arange(M) > np.zeros((RANK, 1))},
            "words": {"feature_labels": words, "feature_weight": "balanced"},
            "given start": {"init": (S, rng.random((RANK, M)))},
            "no iteration": {"max_iter": 0},
            "many iterations": {"max_iter": 200, "tol": 0},
            "one component": {"n_components": 1},
            "stopped": {"callback": lambda state: state.iteration == 10},
        }
        for name, arguments in given.items():
            fits[f"{loss}, {name}"] = Fit(X, {"loss": loss, **arguments})
        for solver in ("auto", "mm", "mu", "hals"):
            for name, data in forms.items():
                fits[f"{loss}, {name}, {solver}"] = Fit(data, {"loss": loss, "solver": solver})
        for scale in (1e-14, 1e-7, 1e12):
            fits[f"{loss}, times {scale}"] = Fit(X * scale, {"loss": loss})
        exact = rng.random((30, 2)) @ rng.random((2, 20))
        for data in (exact, exact.astype(np.float32)):
            close = {"loss": loss, "n_components": 2, "tol": 0, "max_iter": 200}
            fits[f"{loss}, exact, {data.dtype}"] = Fit(data, close)
    for loss in ("itakura-saito", 0.5, 1.5):
        for data in (X + 0.1, single + np.float32(0.1)):
            fits[f"{loss}, {data.dtype}"] = Fit(data, {"loss": loss})
    return fits


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.npz"


def half(fits: dict[str, Fit]) -> dict[str, Fit]:
    """Leave out every second one of each of two losses: another one for each loss."""
    one, other = (
        [name for name in fits if name.startswith(loss)]
        for loss in ("frobenius", "kullback-leibler")
    )
    out = {*one[::2], *other[1::2]}
    return {name: fit for name, fit in fits.items() if name not in out}


def main(folder: Path, *actions: str) -> None:
    warnings.simplefilter("ignore")
    fits = half(honest_fits(folder))
    for action, _, maker in (asked.partition(":") for asked in actions):
        (folder / maker).mkdir(exist_ok=True)
        for name, fit in fits.items():
            path = path_of(folder / maker, name)
            if action == "make":
                sf.save(fit.result(), path)
            elif not (found := sf.verify(sf.load(path), fit.X, **fit.inputs)):
                print(maker, name, found.differences)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
