"""Table 1 and Figures 3, 6 and 7 of the paper on supervised vbNMF (Ivek 2014): 20 Newsgroups.

PCA, Poisson-gamma vbNMF without labels and with labels learn a space from the training documents;
k-NN with cosine similarity, k = sqrt(n_train), classifies the test documents in it.

    python benchmarks/papers/vbnmf.py --out results

As in the paper settings are compared on the test documents, so that the best of them flatters.
Departures, since other settings do worse or the paper is silent (see
vbnmf_fits.py): TF-IDF counts twice (count_scale=2), the shape of A is fixed at 1, fits have 60
iterations.  Training documents are represented by the fit itself, which knew their labels; test
documents by updates of S alone, under one exponential prior.  The paper has 10 random starts.
Every fit is written at once to vbnmf.jsonl; a later run goes on where an earlier one was
interrupted, or adds ranks, shapes and starts.  Remove that file to measure anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import blas_threads, load_average, measure_missing, new_parser
from vbnmf_fits import (
    PCA,
    SUPERVISED,
    UNSUPERVISED,
    Task,
    made_up_documents,
    measure,
    newsgroup_documents,
)
from vbnmf_summary import pictures, report

Record = dict[str, Any]
A_LAMBDA = (1.0, 10.0, 100.0, 300.0, 1000.0, 3000.0, 1e4, 1e5)
A_S = (1.0, 0.5, 0.2)


def wanted(options: argparse.Namespace) -> Iterator[Task]:
    """Yield all fits that were asked for, start by start, so that all settings soon have one."""
    for rank in sorted({*options.ranks, options.pca_rank}):
        yield Task(PCA, rank, 0.0, 0)
    for start, rank in product(range(options.restarts), options.ranks):
        for shape in options.S_shape:
            yield Task(UNSUPERVISED, rank, shape, start)
        for shape in options.rate_shape:
            yield Task(SUPERVISED, rank, shape, start)


def run(options: argparse.Namespace, stem: str) -> list[Record]:
    """Return the records of all fits, those that are missing measured now."""
    documents = made_up_documents if options.quick else newsgroup_documents
    path = options.out / f"{stem}.jsonl" if options.out else None
    with blas_threads(1):
        return measure_missing(wanted(options), key, lambda task: measure(task, documents()), path)


def key(record: Record) -> Task:
    return Task(record["method"], record["rank"], record["shape"], record["start"])


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    parser.add_argument("--restarts", type=int, default=3, help="random starts; the paper: 10")
    parser.add_argument("--ranks", type=int, nargs="+", default=[20, 40, 60, 100])
    parser.add_argument("--pca-rank", type=int, default=200, help="beside --ranks, for PCA alone")
    parser.add_argument("--rate-shape", type=float, nargs="+", default=list(A_LAMBDA))
    parser.add_argument("--S-shape", type=float, nargs="+", default=list(A_S), dest="S_shape")
    parser.add_argument("--quick", action="store_true", help="small made-up data, one start")
    parser.add_argument("--out", type=Path, help="folder for fits (JSON lines), table, pictures")
    options = parser.parse_args(arguments)
    if options.quick:
        options.restarts, options.ranks, options.pca_rank = 1, [5, 8], 10
        options.rate_shape, options.S_shape = [1.0, 100.0], [1.0, 0.5]
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    stem = "vbnmf" + options.quick * "-quick"
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    records = run(options, stem)
    summary = report(records)
    print(f"one thread, load {load_average()}\n\n{summary}", flush=True)
    if options.out:
        (options.out / f"{stem}.md").write_text(summary)
        pictures(records, options.out, stem)


if __name__ == "__main__":
    main()
