"""What does an iteration of other models cost, in units of one of Kullback-Leibler NMF ("mm")?

Text-like data of the size of 20 Newsgroups (11314 x 10000, about 80 nonzeros a row), float64;
target: at most 1.6 times for variational Bayes, 1.3 times for NMF-alpha with ten machines (2p = 20)
for which half of all labeled samples are support vectors.  All are timed in turn, again and again,
and the least counts; an iteration is a fit with `--iterations` of them minus a fit with none, over
their number.  All hyperparameters are learned from the first iteration on, and bound and objective
are evaluated every ten, as always.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Fits, iteration_seconds, zipf_text
from records import Options, Question, Record, markdown

import ssnmf_fast as sf

CLASSES = 20


def fits(X: Any, rank: int, threads: int) -> dict[str, Callable[[int], Any]]:
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


OPTIONS = {"ranks": [20, 50, 100], "threads": [1, 2], "iterations": 10, "repeats": 5}
QUICK = {"ranks": [20], "threads": [1], "iterations": 2, "repeats": 1}


def measure(options: Options, threads: int, rank: int) -> Record:
    X = zipf_text(1000, 500, 20) if options.quick else zipf_text(11_314, 10_000, 80)
    runs = {n: Fits(f, 0, options.iterations) for n, f in fits(X, rank, threads).items()}
    base, *others = iteration_seconds(runs, options.repeats).values()
    times = {f"{n}, times": other / base for n, other in zip(list(runs)[1:], others, strict=True)}
    return {"times": {"NMF, ms": base * 1e3} | times}


def report(records: list[Record], options: Options) -> str:
    rows = [
        [str(r["threads"]), str(r["rank"]), *(f"{t:.2f}" for t in r["times"].values())]
        for r in records
    ]
    return f"float64\n\n{markdown(['threads', 'rank', *records[0]['times']], rows)}"


QUESTION = Question("threads rank", "threads ranks", measure, report, threads=None)
