"""How often is a planted number of components found, and how soon, by us and by cvanmf?

40 matrices: ten of each kind, with 3, 4, ..., 12 components, of which 1 to 16 are tried.

- "Gaussian": 300 x 200, dense; entries of S and A have gamma distributions of shape 0.5, 1 or 2,
  the noise 0.1, 0.2 or 0.3 of the standard deviation of S A, and what is below 0 becomes 0;
- "Poisson": 300 x 200; shapes 0.3, 0.5 or 1, counts of mean 2, 5 or 10;
- "sparse Gaussian": 2000 x 1000, 0.3 of the entries of S and 0.07 of those of A are not 0, of
  shape 2 or 4; the noise is on the nonzeros of S A alone, of whose deviation it is 0.1, 0.2 or 0.3;
- "sparse Poisson": 2000 x 1000, shape 0.3 or 0.5, counts of mean 0.1, 0.2 or 0.5.

"--parts tensors" takes 24 tensors, twelve of each kind, with 3 to 8 components; 1 to 11 are
tried:

- "Gaussian tensor": 40 x 30 x 20, dense; factors of shape 2, 3 or 4, the noise 0.1, 0.2 or 0.3 of
  the standard deviation;
- "Poisson tensor": 80 x 60 x 40, sparse; shape 0.1, 0.2 or 0.3, counts of mean 0.02, 0.05 or 0.1.

Shapes, noise and means take turns.  Noise is small compared with what it is added to: where much
falls below 0, the cut gives the data a structure of its own, beyond the planted components.
  `cvanmf` (bi-cross-validation in 3 x 3 blocks, 100 shuffles,
its defaults, and the elbow of its R^2) gets the same ranks and, for counts, the same loss; it takes
hours for all matrices, and needs Python 3.12 and a statsmodels below 0.15.

`--newsgroups` tries 5 to 80 components of the counts of 20 Newsgroups that fastTopics takes
(18,774 x 55,911), Kullback-Leibler, three splits and one start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import newsgroup_counts
from records import Options, Question, Record, grouped, markdown, say, tabulate

import ssnmf_fast as sf

KINDS = ("Gaussian", "Poisson", "sparse Gaussian", "sparse Poisson")
TENSORS = ("Gaussian tensor", "Poisson tensor")
CRITERIA = ("held-out", "bound", "stability")
OF_TENSORS = ("held-out", "corcondia", "stability")
RANKS, TRIED = tuple(range(3, 13)), range(1, 17)
RANKS_OF_TENSORS, TRIED_OF_TENSORS = (*range(3, 9), *range(3, 9)), range(1, 12)
SHAPES = {
    "Gaussian": (0.5, 1.0, 2.0),
    "Poisson": (0.3, 0.5, 1.0),
    "sparse Gaussian": (2.0, 4.0),
    "sparse Poisson": (0.3, 0.5),
    "Gaussian tensor": (2.0, 3.0, 4.0),
    "Poisson tensor": (0.1, 0.2, 0.3),
}
LEVELS = {
    "Gaussian": (0.1, 0.2, 0.3),
    "Poisson": (2.0, 5.0, 10.0),
    "sparse Gaussian": (0.1, 0.2, 0.3),
    "sparse Poisson": (0.1, 0.2, 0.5),
    "Gaussian tensor": (0.1, 0.2, 0.3),
    "Poisson tensor": (0.02, 0.05, 0.1),
}
PRESENT = 0.3, 0.07  # of the entries of sparse S and A
NEWSGROUPS = (5, 10, 15, 20, 30, 40, 60, 80)


class Planted(NamedTuple):
    """A matrix or tensor with its number of components, and the loss that suits its noise."""

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


def planted_tensor(kind: str, rank: int, number: int, quick: bool = False) -> Planted:
    """Return a tensor; `number` counts those of its kind."""
    rng = np.random.default_rng([9, TENSORS.index(kind), number])
    counts = kind.startswith("Poisson")
    lengths = (20, 15, 10) if quick else (80, 60, 40) if counts else (40, 30, 20)
    shape, level = SHAPES[kind][number % 3], LEVELS[kind][number // 3 % 3]
    factors = [rng.gamma(shape, 1 / shape, (n, rank)) for n in lengths]
    if counts:  # components of sizes that are alike
        factors = [F / F.sum(axis=0) for F in factors]
        factors[0] *= rng.uniform(0.5, 1.5, rank)
    Z = np.einsum("iq,jq,kq->ijk", *factors)
    if not counts:
        noise = level * Z.std() * rng.standard_normal(Z.shape)
        return Planted(kind, rank, np.maximum(Z + noise, 0), "frobenius")
    X = rng.poisson(Z * (level / Z.mean())).astype(np.float64)
    coords = np.array(np.nonzero(X))
    return Planted(kind, rank, (coords, X[tuple(coords)], X.shape), "kullback-leibler")


def ours(data: Planted, criterion: str, quick: bool) -> sf.results.RankChoice:
    given: dict[str, Any] = {"criterion": criterion, "random_state": 0}
    if criterion == "bound":
        given["estimator"] = sf.BayesianNMF(max_iter=2000)
    else:
        given["loss"] = data.loss
    if quick:
        given |= {"n_starts": 2}
    if data.kind in TENSORS:
        return sf.choose_rank(data.X, range(2, 5) if quick else TRIED_OF_TENSORS, **given)
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


def cases(options: Options) -> Iterator[tuple[str, str, int]]:
    """Yield method, kind and number; a few problems of all are evenly chosen."""
    methods: list[tuple[str, Sequence[str], int]] = []
    if "matrices" in options.parts:
        methods += [(c, options.kinds, options.matrices) for c in options.criteria if c in CRITERIA]
        methods += [(name, options.kinds, options.rival_matrices) for name in options.rivals]
    if "tensors" in options.parts:
        methods += [(c, TENSORS, options.tensors) for c in options.criteria if c in OF_TENSORS]
    for method, kinds, count in methods:
        for kind in kinds:
            ranks = RANKS_OF_TENSORS if kind in TENSORS else RANKS
            ends = np.linspace(0, len(ranks), -(-count // len(kinds)) + 1)
            for number in ((ends[:-1] + ends[1:]) / 2).astype(int).tolist():
                yield method, kind, number


def measure(options: Options, method: str, kind: str, number: int) -> Record:
    of_tensor = kind in TENSORS
    rank = (RANKS_OF_TENSORS if of_tensor else RANKS)[number]
    data = (planted_tensor if of_tensor else planted)(kind, rank, number, options.quick)
    begin = perf_counter()
    found: Any = (cvanmf if method == "cvanmf" else ours)(data, method, options.quick)
    record: Record = {"rank": rank, "seconds": perf_counter() - begin}
    if isinstance(found, sf.results.RankChoice):
        record["scores"] = found.scores.tolist()
        record |= {name: values.tolist() for name, values in found.measures.items()}
        found = found.rank
    say(f"{method}, {kind}, rank {rank}: {found} in {record['seconds']:.1f} s")
    return record | {"found": int(found)}


def report(records: list[Record], options: Options) -> str:
    rows = []
    every = [{**r, "kind": kind} for r in records for kind in (r["kind"], "all")]
    for (method, kind), own in grouped(every, "method", "kind").items():
        off = np.array([one["found"] - one["rank"] for one in own])
        right, near = (f"{(np.abs(off) <= most).mean():.0%}" for most in (0, 1))
        seconds = f"{np.mean([one['seconds'] for one in own]):.1f}"
        wrong = ", ".join(f"{d:+d}" for d in off[off != 0])
        rows.append([method, kind, str(len(own)), right, near, seconds, wrong])
    header = ["method", "data", "problems", "right", "within one", "seconds", "errors"]
    table = markdown(header, rows)
    return f"{table}\n\n{newsgroups(options.quick)}" if options.newsgroups else table


def newsgroups(quick: bool) -> str:
    X = sp.csr_array(newsgroup_counts())
    X = X[:200] if quick else X
    begin = perf_counter()
    given: dict[str, Any] = {"loss": "kullback-leibler", "n_splits": 3, "n_starts": 1, "tol": 1e-4}
    given |= {"random_state": 0, "verbose": 1}
    choice = sf.choose_rank(X, NEWSGROUPS[:2] if quick else NEWSGROUPS, **given)
    columns = {"rank": "{rank}", "error": "{mean:.5g}"}
    columns |= {"standard error": "{standard_error:.5g}", "perplexity": "{perplexity:.5g}"}
    curve = tabulate(choice.to_rows(), **columns)
    return f"{curve}\n\n{choice}\n{perf_counter() - begin:.0f} s"


OPTIONS = {
    "parts": (["matrices"], "", ["matrices", "tensors"]),
    "tensors": (24, "of both kinds together"),
    "criteria": [*CRITERIA, "corcondia"],
    "kinds": (list(KINDS), "", KINDS),
    "matrices": (40, "of all kinds together"),
    "rivals": ([], "", ["cvanmf"]),
    "rival_matrices": (4, "for the rivals"),
    "newsgroups": (False, "try real counts too"),
}
QUICK = {"matrices": 4, "tensors": 2}
QUESTION = Question("method kind number", cases, measure, report, threads=None)
