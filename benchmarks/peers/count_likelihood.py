"""How likely are topics of counts, and how soon, beside the published logs of fastTopics?

    python benchmarks/peers/count_likelihood.py --out counts.json

The counts are those of the experiments of fastTopics (18,774 posts of 20 Newsgroups x 55,911
words), `fasttopics_newsgroups.npz` in $SSNMF_FAST_DATA.  The Kullback-Leibler divergence is the
Poisson log-likelihood but for its sign and a constant.  Every fit is timed whole.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    blas_threads,
    data_file,
    load_average,
    markdown,
    new_parser,
    say,
    seconds,
    sklearn_runner,
    start,
    zipf_text,
)

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


def counts() -> Any:
    """Return the counts, posts x words (csr)."""
    with np.load(data_file("fasttopics_newsgroups.npz")) as file:
        parts = (file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"])
        return sp.csr_matrix(parts, shape=tuple(file["shape"]))


def log_likelihood(X: Any, S: Any, A: Any) -> float:
    """Return the Poisson log-likelihood of the counts, with the factorials."""
    from scipy.special import gammaln

    best = np.sum(X.data * np.log(X.data) - X.data - gammaln(X.data + 1))
    return float(best - sf.extend.objective(X, S, A, loss=LOSS))


def measure(X: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a record for every fit."""
    records = []

    def add(solver: str, seed: int, iterations: int, fit: Any) -> None:
        found: list[Any] = []
        took = seconds(lambda: found.append(fit(iterations)))
        record = {"solver": solver, "seed": seed, "iterations": iterations, "seconds": took}
        records.append(record | {"log_likelihood": log_likelihood(X, *found[0])})
        say(f"  {records[-1]}")

    def ours(seed: int, init: Any = "auto") -> Any:
        def fit(iterations: int) -> Any:
            result = sf.factorize(
                X,
                n_components=RANK,
                loss=LOSS,
                init=init,
                tol=0,
                max_iter=iterations,
                random_state=seed,
                n_threads=options.threads,
            )
            return result.S, result.A

        return fit

    def best_of_short(iterations: int) -> Any:
        """Fit from many starts for a while, and go on with the most likely one."""
        short = [ours(seed)(options.short) for seed in range(options.starts)]
        best = max(short, key=lambda factors: log_likelihood(X, *factors))
        return ours(0, best)(iterations)

    for seed in range(options.seeds):
        for iterations in options.iterations:
            add("ssnmf_fast", seed, iterations, ours(seed))
    name = f"ssnmf_fast, best of {options.starts} after {options.short} iterations"
    add(name, 0, options.iterations[-1], best_of_short)
    for iterations in options.sklearn_iterations:
        fit = sklearn_runner(X, start(X, 1, RANK)[:2], LOSS, "mu")
        add("scikit-learn MU", 0, iterations, fit)
    return records


def table(records: list[dict[str, Any]]) -> str:
    """Return the fits and the published figures, the most likely first."""
    rows = [
        (
            r["log_likelihood"],
            f"{r['solver']}, start {r['seed']}, {r['iterations']} iterations",
            f"{r['seconds']:.1f}",
        )
        for r in records
    ]
    rows += [
        (value, f"fastTopics, {name} (published)", "10500") for name, value in PUBLISHED.items()
    ]
    cells = [[name, f"{value:,.0f}", took] for value, name, took in sorted(rows, reverse=True)]
    return markdown(["fit", "log-likelihood", "seconds"], cells)


def main(arguments: list[str] | None = None) -> None:
    """Run the script."""
    parser = new_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, nargs="+", default=[50, 200, 800])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--short", type=int, default=50, help="iterations of each of them")
    parser.add_argument("--sklearn-iterations", type=int, nargs="*", default=[50])
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    parser.add_argument("--quick", action="store_true", help="small synthetic data")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.iterations, options.sklearn_iterations = 1, [2], [2]
        options.starts, options.short = 2, 2
    X = zipf_text(200, 300, 20).ceil() if options.quick else counts()
    with blas_threads(options.threads):
        records = measure(X, options)
    print(f"float64, {options.threads} threads, load {load_average()}\n")
    print(table(records))
    if options.out:
        options.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
