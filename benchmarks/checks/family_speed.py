"""What does an iteration of other models cost, beside one of Kullback-Leibler NMF ("mm")?

    python benchmarks/checks/family_speed.py

Text-like data of the size of 20 Newsgroups (11314 x 10000, about 80 nonzeros a row), float64;
target: at most 1.6 times for variational Bayes, 1.3 times for NMF-alpha with ten machines (2p = 20)
for which half of all labeled samples are support vectors.  All are timed in turn, again and again,
and the least counts; an iteration is a fit with `--iterations` of them minus a fit with none, over
their number.  All hyperparameters are learned from the first iteration on, and bound and objective
are evaluated every ten, as always.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Fits, iteration_seconds, load_average, markdown, new_parser, say, zipf_text

import ssnmf_fast as sf

CLASSES = 20


def fits(X: Any, rank: int, threads: int) -> dict[str, Callable[[int], Any]]:
    """Return functions of the number of iterations, the first that of plain NMF."""
    common = {"n_components": rank, "tol": 0, "random_state": 0, "n_threads": threads}
    common["init"] = "random"  # the same for all, and soon done
    nmf = sf.NMF(loss="kullback-leibler", solver="mm", **common)
    labels = np.random.default_rng(0).integers(CLASSES, size=X.shape[0])
    unsupervised = sf.BayesianNMF(burn_in=0, **common)
    sparse = sf.BayesianNMF(burn_in=0, S_shape="auto", **common)
    supervised = sf.papers.SupervisedBayesianNMF(burn_in=0, **common)

    margin = sf.papers.MarginNMF(solver="mm", **common)

    def fit(model: Any, y: Any, max_iter: int) -> Any:
        return model.set_params(max_iter=max_iter).fit(X, y)

    def fit_margin(alpha: Any, max_iter: int) -> Any:
        return margin.set_params(max_iter=max_iter).fit(X, alpha=alpha)

    return {
        "NMF": partial(fit, nmf, None),
        "Bayesian": partial(fit, unsupervised, None),
        "Bayesian, S_shape learned": partial(fit, sparse, None),
        "with labels": partial(fit, supervised, labels),
        "NMF-alpha": partial(fit_margin, dual_coefficients(X.shape[0], 1.0)),
        "a tenth labeled": partial(fit_margin, dual_coefficients(X.shape[0], 0.1)),
    }


def dual_coefficients(n: int, labeled: float, machines: int = 10) -> Any:
    """Return alpha (n x 2p) of machines whose support vectors are half of the labeled samples."""
    rng = np.random.default_rng(0)
    support = (rng.random((n, machines)) < 0.5) & (rng.random((n, 1)) < labeled)
    rows, machine = np.nonzero(support)
    side = rng.integers(2, size=len(rows))
    place = (rows, machine + machines * side)
    return sp.csr_array((rng.random(len(rows)), place), shape=(n, 2 * machines))


def main(arguments: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small data, the first rank only")
    options = parser.parse_args(arguments)
    X = zipf_text(1000, 500, 20) if options.quick else zipf_text(11_314, 10_000, 80)
    ranks = options.ranks[:1] if options.quick else options.ranks
    table, header = [], []
    for threads, rank in product(options.threads, ranks):
        runs = {n: Fits(f, 0, options.iterations) for n, f in fits(X, rank, threads).items()}
        times = iteration_seconds(runs, options.repeats)
        base, *others = times.values()
        say(f"{threads} threads, rank {rank}: {base * 1e3:.1f} ms")
        times_as_long = [f"{other / base:.2f}" for other in others]
        table.append([str(threads), str(rank), f"{base * 1e3:.1f}", *times_as_long])
        header = ["threads", "rank", "NMF, ms", *(f"{name}, times" for name in list(times)[1:])]
    print(f"float64, load {load_average()}\n\n{markdown(header, table)}")


if __name__ == "__main__":
    main()
