"""The thesis' matrices, samples and experiments for completion.py, and the methods it compares."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from common import Array

import ssnmf_fast as sf
from ssnmf_fast.completion import StructuredNNM, StructuredSIRLS

# Drawn with replacement, so that collisions thin them: about 74 % and 61 % of zeros.
DENSITIES = (0.3, 0.5)
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)  # of Structured NNM, the best for every matrix
SIRLS, STRUCTURED, WITHOUT, AUTO = "sirls", "structured-sirls", "structured-sirls c=0", "auto"
NNM, VALIDATED = "structured-nnm", "auto validated"
METHODS: dict[str, dict[str, Any]] = {
    SIRLS: {"method": "sirls"},
    STRUCTURED: {"method": "structured-sirls"},
    WITHOUT: {"method": StructuredSIRLS(sparsity=0.0)},
    AUTO: {"method": "auto"},
    NNM: {"method": "structured-nnm"},
    VALIDATED: {"method": "auto", "gamma_min": "validate"},
}
FOUR = (SIRLS, STRUCTURED, WITHOUT, AUTO)


@dataclass(frozen=True)
class Experiment:
    """One figure of the thesis."""

    size: int
    rank: int
    step: float = 0.05
    knows_rank: bool = True
    noise: float = 0.0
    methods: tuple[str, ...] = FOUR
    rival: str = SIRLS  # Structured sIRLS is compared with it


EXPERIMENTS = {
    "2.1": Experiment(1000, 10, step=0.2),
    "2.2": Experiment(500, 10, step=0.2),
    "2.3": Experiment(100, 10),
    "2.4": Experiment(100, 8, knows_rank=False),
    "2.5": Experiment(100, 20),
    "2.6": Experiment(30, 7, methods=(*FOUR, NNM), rival=NNM),
    "2.7": Experiment(100, 3, noise=1e-4, methods=(*FOUR, VALIDATED)),
    "2.7b": Experiment(100, 3, noise=1e-3, methods=(*FOUR, VALIDATED)),
}


def rates(step: float) -> list[float]:
    """Return 0.05, 0.10 ... 0.95, or the middles of coarser intervals."""
    return [float(rate) for rate in np.round(np.arange(max(step / 2, 0.05), 0.96, step), 4)]


def sparse_factor(n: int, rank: int, density: float, rng: np.random.Generator) -> Array:
    """Return n x rank zeros with uniform values at positions drawn with replacement."""
    flat = np.zeros(n * rank)
    positions = rng.integers(n * rank, size=round(density * n * rank))
    flat[positions] = rng.random(len(positions))
    return flat.reshape(n, rank)


def true_matrix(size: int, rank: int, number: int) -> Array:
    """Return matrix `number` of the experiment."""
    rng = np.random.default_rng([number, size, rank])
    left = sparse_factor(size, rank, DENSITIES[0], rng)
    product: Array = left @ sparse_factor(size, rank, DENSITIES[1], rng).T
    return product


def sampled(M: Array, zero: float, nonzero: float, rng: np.random.Generator) -> Array:
    """Return True at a share `zero` of the zeros of M and a share `nonzero` of the others."""
    observed = np.zeros(M.size, dtype=bool)
    for places, rate in (
        (np.flatnonzero(M.ravel() == 0), zero),
        (np.flatnonzero(M.ravel()), nonzero),
    ):
        observed[rng.choice(places, size=round(rate * len(places)), replace=False)] = True
    return observed.reshape(M.shape)


def with_noise(M: Array, observed: Array, level: float, rng: np.random.Generator) -> Array:
    """Return M plus noise whose norm at the observed entries is `level` times theirs."""
    if level == 0:
        return M
    N = rng.standard_normal(M.shape)
    noisy: Array = M + level * np.linalg.norm(M[observed]) / np.linalg.norm(N[observed]) * N
    return noisy


def completed(
    holes: Array, experiment: Experiment, name: str, **more: Any
) -> sf.results.Completion:
    """Return the completion by one method, with one thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without any observed entry are part of the thing
        return sf.complete(
            holes,
            n_components=experiment.rank if experiment.knows_rank and name != NNM else None,
            random_state=0,
            n_threads=1,
            **METHODS[name] | more,
        )


def record(
    experiment: Experiment, method: str, M: Array, target: Array, holes: Array
) -> dict[str, Any]:
    """Complete the matrix once (NNM: for every alpha); errors as the thesis takes them."""
    best: dict[str, Any] = {"method": method, "error": np.inf}
    choices: list[dict[str, Any]] = [{}]
    if method == NNM:
        choices = [{"sparsity": alpha} for alpha in ALPHAS]
    begin = perf_counter()
    for choice in choices:
        more = {"method": StructuredNNM(**choice)} if choice else {}
        fit = completed(holes, experiment, method, **more)
        filled = fit.to_dense(keep_observed=True)
        error = float(np.linalg.norm(filled - target) / np.linalg.norm(target))
        if error < best["error"]:
            best.update(choice, error=error, iterations=fit.n_iter, rank=fit.n_components)
            best["converged"] = bool(fit.converged)
            if experiment.noise:
                gap = np.linalg.norm(fit.to_dense() - M) / np.linalg.norm(M)
                best["model_error"] = float(gap)  # of the low-rank part, to the noiseless matrix
    best["seconds"] = round((perf_counter() - begin) / len(choices), 4)
    return best


def measure(experiment: Experiment, task: tuple[int, float, float, str]) -> dict[str, Any]:
    """Return the record of a task: number of the matrix, rates of nonzeros and zeros, method."""
    number, nonzero, zero, method = task
    M = true_matrix(experiment.size, experiment.rank, number)
    seed = [number, experiment.size, experiment.rank, round(1e4 * zero), round(1e4 * nonzero)]
    rng = np.random.default_rng(seed)
    observed = sampled(M, zero, nonzero, rng)
    target = with_noise(M, observed, experiment.noise, rng)
    holes = np.where(observed, target, np.nan)
    place = {"zero": zero, "nonzero": nonzero, "matrix": number}
    return place | record(experiment, method, M, target, holes)


def density(experiment: Experiment, matrices: int) -> float:
    """Return the mean share of nonzeros of the matrices."""
    shares = [
        np.mean(true_matrix(experiment.size, experiment.rank, k) != 0) for k in range(matrices)
    ]
    return float(np.mean(shares))
