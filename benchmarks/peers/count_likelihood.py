"""How likely are topics of counts, and how soon, compared with the published logs of fastTopics?

The counts are those of the experiments of fastTopics (18,774 posts of 20 Newsgroups x 55,911
words), `fasttopics_newsgroups.npz` in $SSNMF_FAST_DATA.  The Kullback-Leibler divergence is the
Poisson log-likelihood but for its sign and a constant.  Every fit is timed whole, by processor
time.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from common import (
    blas_threads,
    newsgroup_counts,
    processor,
    sklearn_runner,
    start,
    timed,
    zipf_text,
)
from records import Options, markdown, say
from scipy.special import gammaln

import ssnmf_fast as sf

LOSS = "kullback-leibler"
RANK = 10
# stephenslab/fastTopics-experiments, output/newsgroups: version 0.5-24, 8 CPUs, rank 10; 1000
# iterations of EM before all, then 1000 of each rule, about 10,500 s.
PUBLISHED = {
    "EM": -12_410_967,
    "EM, extrapolated": -12_410_900,
    "coordinate descent": -12_385_326,
    "coordinate descent, extrapolated": -12_384_999,
}


def log_likelihood(X: Any, S: Any, A: Any) -> float:
    best = np.sum(X.data * np.log(X.data) - X.data - gammaln(X.data + 1))
    return float(best - sf.extend.objective(X, S, A, loss=LOSS))


def measure(X: Any, options: Options) -> list[dict[str, Any]]:
    records = []

    def add(solver: str, seed: int, iterations: int, fit: Any) -> None:
        factors, took = timed(fit, iterations, clock=process_time)
        record = {"solver": solver, "seed": seed, "iterations": iterations, "seconds": took}
        records.append(record | {"log_likelihood": log_likelihood(X, *factors)})
        say(f"  {records[-1]}")

    def ours(seed: int, init: str) -> Any:
        def fit(iterations: int) -> Any:
            given = {"n_components": RANK, "loss": LOSS, "init": init, "tol": 0}
            given |= {"random_state": seed, "n_threads": options.threads}
            result = sf.factorize(X, max_iter=iterations, **given)
            return result.S, result.A

        return fit

    for iterations in options.iterations:
        add("ssnmf_fast, nndsvda", 0, iterations, ours(0, "nndsvda"))
        for seed in range(options.seeds):
            add("ssnmf_fast, random", seed, iterations, ours(seed, "random"))
    for iterations in options.sklearn_iterations:
        fit = sklearn_runner(X, start(X, 1, RANK)[:2], LOSS, "mu")
        add("scikit-learn MU", 0, iterations, fit)
    return records


def table(records: list[dict[str, Any]]) -> str:
    rows = [
        (value, f"fastTopics, {k} (published)", "10500 by the clock")
        for k, value in PUBLISHED.items()
    ]
    for r in records:
        name = f"{r['solver']}, start {r['seed']}, {r['iterations']} iterations"
        rows.append((r["log_likelihood"], name, f"{r['seconds']:.1f}"))
    cells = [[name, f"{value:,.0f}", took] for value, name, took in sorted(rows, reverse=True)]
    return markdown(["fit", "log-likelihood", "processor seconds"], cells)


OPTIONS = {
    "threads": 2,
    "seeds": (5, "random starts"),
    "iterations": [50, 100],
    "sklearn_iterations": [50],
}
QUICK = {"seeds": 1, "iterations": [2], "sklearn_iterations": [2]}


def main(options: Options) -> list[dict[str, Any]]:
    X = zipf_text(200, 300, 20).ceil() if options.quick else newsgroup_counts()
    with blas_threads(options.threads):
        records = measure(X, options)
    print(f"float64, {options.threads} threads, {processor()}\n\n{table(records)}")
    return records
