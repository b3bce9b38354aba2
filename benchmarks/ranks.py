"""How often is a planted number of components found, and how soon, beside cvanmf?

    python benchmarks/ranks.py --out ranks.jsonl
    python benchmarks/ranks.py --criteria held-out --rivals cvanmf --rival-matrices 4

40 matrices: ten of each kind, with 3, 4, ..., 12 components, of which 1 to 16 are tried.

- "Gaussian": 300 x 200, dense; entries of S and A have gamma distributions of shape 0.5, 1 or 2,
  the noise 0.1, 0.2 or 0.3 of the standard deviation of S A, and what is below 0 becomes 0;
- "Poisson": 300 x 200; shapes 0.3, 0.5 or 1, counts of mean 2, 5 or 10;
- "sparse Gaussian": 2000 x 1000, 0.3 of the entries of S and 0.07 of those of A are not 0, of
  shape 2 or 4; the noise is on the nonzeros of S A alone, of whose deviation it is 0.1, 0.2 or 0.3;
- "sparse Poisson": 2000 x 1000, shape 0.3 or 0.5, counts of mean 0.1, 0.2 or 0.5.

Shapes, noise and means take turns.  Noise is small beside most of what it is added to: where much
falls below 0, the cut gives the data a structure of its own, beyond the planted components.
  `cvanmf` (bi-cross-validation in 3 x 3 blocks, 100 shuffles,
its defaults, and the elbow of its R^2) gets the same ranks and, for counts, the same loss; it takes
hours for all matrices, and needs Python 3.12 and a statsmodels below 0.15.

`--newsgroups` tries 5 to 80 components of the counts of 20 Newsgroups that fastTopics takes
(18,774 x 55,911), Kullback-Leibler, three splits and one start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import (
    append_records,
    data_file,
    load_average,
    markdown,
    new_parser,
    read_records,
    say,
)

import ssnmf_fast as sf

KINDS = ("Gaussian", "Poisson", "sparse Gaussian", "sparse Poisson")
CRITERIA = ("held-out", "block", "bound", "stability")
RANKS, TRIED = range(3, 13), range(1, 17)
SHAPES = {
    "Gaussian": (0.5, 1.0, 2.0),
    "Poisson": (0.3, 0.5, 1.0),
    "sparse Gaussian": (2.0, 4.0),
    "sparse Poisson": (0.3, 0.5),
}
LEVELS = {
    "Gaussian": (0.1, 0.2, 0.3),
    "Poisson": (2.0, 5.0, 10.0),
    "sparse Gaussian": (0.1, 0.2, 0.3),
    "sparse Poisson": (0.1, 0.2, 0.5),
}
PRESENT = 0.3, 0.07  # of the entries of sparse S and A
NEWSGROUPS = (5, 10, 15, 20, 30, 40, 60, 80)


class Planted(NamedTuple):
    """A matrix with its number of components, and the loss that suits its noise."""

    kind: str
    rank: int
    X: Any
    loss: str


def planted(kind: str, rank: int, number: int, quick: bool = False) -> Planted:
    """Return a matrix; `number` counts those of its kind."""
    rng = np.random.default_rng([KINDS.index(kind), number])
    sparse, counts = kind.startswith("sparse"), kind.endswith("Poisson")
    n, m = (2000, 1000) if sparse and not quick else (300, 200)
    shapes = SHAPES[kind]
    shape = shapes[number % len(shapes)]
    level = LEVELS[kind][number // len(shapes) % 3]
    S, A = rng.gamma(shape, 1 / shape, (n, rank)), rng.gamma(shape, 1 / shape, (rank, m))
    if sparse and not counts:
        S, A = (F * (rng.random(F.shape) < p) for F, p in zip((S, A), PRESENT, strict=True))
    Z = S @ A
    if counts:
        X = rng.poisson(Z * (level / Z.mean())).astype(np.float64)
    else:
        noise = level * Z[Z > 0].std() * rng.standard_normal(Z.shape)
        X = np.maximum(Z + (noise * (Z > 0) if sparse else noise), 0)
    loss = "kullback-leibler" if counts else "frobenius"
    return Planted(kind, rank, sp.csr_array(X) if sparse else X, loss)


def matrices(per_kind: int, kinds: Sequence[str], quick: bool) -> Iterator[tuple[int, Planted]]:
    """Give so many matrices of each kind, with their numbers; a few of ten are evenly chosen."""
    ends = np.linspace(0, len(RANKS), per_kind + 1)
    numbers = ((ends[:-1] + ends[1:]) / 2).astype(int).tolist()
    for kind in kinds:
        for number in numbers:
            yield number, planted(kind, RANKS[number], number, quick)


def ours(data: Planted, criterion: str, quick: bool) -> sf.RankChoice:
    """Return our choice, at the defaults but for the loss."""
    given: dict[str, Any] = {"criterion": criterion, "random_state": 0}
    if criterion == "bound":
        given["estimator"] = sf.BayesianNMF(max_iter=2000)
    else:
        given["loss"] = data.loss
    if quick:
        given |= {"n_starts": 2}
    tried = TRIED[1:6] if quick else TRIED
    return sf.choose_rank(data.X, tried[1:] if criterion == "stability" else tried, **given)


def cvanmf(data: Planted, criterion: str, quick: bool) -> Any:
    """Return the elbow of R^2 that cvanmf finds, 0 where it finds none."""
    import pandas as pd
    from cvanmf import denovo

    X = data.X.toarray() if sp.issparse(data.X) else data.X
    table = pd.DataFrame(X).rename(index="f{}".format, columns="s{}".format)
    given = {} if data.loss == "frobenius" else {"beta_loss": data.loss}
    found = denovo.rank_selection(
        table, TRIED, seed=0, shuffles=2 if quick else 100, progress_bar=False, **given
    )
    return denovo.suggest_rank(found)["r_squared"] or 0


def measure(options: Any) -> Iterator[dict[str, Any]]:
    """Give a record for each matrix and method."""
    done = {
        (one["method"], one["kind"], one["number"])
        for one in read_records(options.out)
        if "kind" in one
    }
    methods = [(name, ours, options.matrices) for name in options.criteria]
    methods += [(name, cvanmf, options.rival_matrices) for name in options.rivals]
    for name, method, count in methods:
        for number, data in matrices(-(-count // len(options.kinds)), options.kinds, options.quick):
            if (name, data.kind, number) in done:
                continue
            begin = perf_counter()
            found = method(data, name, options.quick)
            seconds = perf_counter() - begin
            record = {"method": name, "kind": data.kind, "number": number, "rank": data.rank}
            record |= {"seconds": seconds, "load": load_average()}
            if isinstance(found, sf.RankChoice):
                record |= {"scores": found.scores.tolist()}
                found = found.rank
            say(f"{name}, {data.kind}, rank {data.rank}: {found} in {seconds:.1f} s")
            yield record | {"found": int(found)}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return how often each method was right, and within one, by the kind of the data."""
    groups = defaultdict(list)
    for one in records:
        groups[one["method"], one["kind"]].append(one)
        groups[one["method"], "all"].append(one)
    rows = []
    for (method, kind), some in groups.items():
        off = np.array([one["found"] - one["rank"] for one in some])
        mean = np.mean([one["seconds"] for one in some])
        right, near = ((np.abs(off) <= most).mean() for most in (0, 1))
        wrong = ", ".join(f"{d:+d}" for d in off[off != 0])
        rows.append(
            [method, kind, str(len(some)), f"{right:.0%}", f"{near:.0%}", f"{mean:.1f}", wrong]
        )
    header = ["method", "data", "matrices", "right", "within one", "seconds", "errors"]
    return markdown(header, rows)


def newsgroups(quick: bool) -> str:
    """Return the curve of real counts."""
    file = np.load(data_file("fasttopics_newsgroups.npz"))
    parts = file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"]
    X = sp.csr_array(parts, shape=tuple(file["shape"]))
    X = X[:200] if quick else X
    begin = perf_counter()
    choice = sf.choose_rank(
        X,
        NEWSGROUPS[:2] if quick else NEWSGROUPS,
        loss="kullback-leibler",
        n_splits=3,
        n_starts=1,
        tol=1e-4,
        random_state=0,
        verbose=1,
    )
    names = "mean", "standard_error", "perplexity"
    rows = [[str(row["rank"]), *(f"{row[name]:.5g}" for name in names)] for row in choice.to_rows()]
    curve = markdown(["rank", "error", "standard error", "perplexity"], rows)
    return f"{curve}\n\n{choice}\n{perf_counter() - begin:.0f} s\n"


def main(argv: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--criteria", nargs="*", default=CRITERIA)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--matrices", type=int, default=40, help="of all kinds together")
    parser.add_argument("--rivals", nargs="*", default=[], choices=["cvanmf"])
    parser.add_argument("--rival-matrices", type=int, default=4, help="for the rivals")
    parser.add_argument("--newsgroups", action="store_true", help="try real counts too")
    parser.add_argument("--out", type=Path, help="file of JSON lines; goes on where it was stopped")
    parser.add_argument("--quick", action="store_true", help="small: does it run?")
    options = parser.parse_args(argv)
    if options.quick:
        options.matrices = 4
    records = []
    for record in measure(options):
        append_records(options.out, [record])
        records.append(record)
    records = read_records(options.out) or records
    print(f"load {load_average()}\n\n{table(records)}\n")
    if options.newsgroups:
        print(newsgroups(options.quick))


if __name__ == "__main__":
    main()
