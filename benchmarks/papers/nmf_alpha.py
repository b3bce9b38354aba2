"""Section 3 of the NMF-alpha paper: do labels help a reduction that precedes a linear classifier?

Three tasks (MNIST fours against nines, 20 Newsgroups, aviation safety reports), several shares of
labeled training rows, several ranks, five splits into training and validation rows, one test
part.  Every reduction sees all training rows; linear support vector machines are trained on the
labeled ones alone, mapped as the test rows are.  Their penalty, and the weight of the supervision,
are chosen by the validation rows, whose labels are known, as in the paper.

    python benchmarks/run.py nmf_alpha --data mnist --rates 0.05 0.1 --out results

Since a choice among weights is in itself worth something, "NMF, chosen start" chooses among as many
random starts.  Remove the results after a change of the weights in nmf_alpha_methods.py.  On one
core two rates and three ranks of MNIST take about 25 minutes, two ranks of 20 Newsgroups 12.

MNIST has pixels in [0, 1].  20 Newsgroups: all twenty groups, "bydate", without headers, footers
and quotes, TF-IDF.  Aviation: presence of 500 words in safety reports, 22 labels; the file names no
test part, so that one of the competition's size is drawn once.  Quick runs have made-up data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import NEWSGROUPS, data_file, panels, read_lines, stop_words, strip
from nmf_alpha_methods import (
    ALPHA,
    LDA,
    METHODS,
    ONE_RANK,
    RAW,
    WEIGHTS,
    Case,
    Dataset,
    common_arguments,
    judge,
    possible,
)
from records import Options, Question, Record, grouped, markdown, mean_of, pivot
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf

N_TERMS = 6000
AVIATION_TEST = 7077
TITLES = {
    "mnist": "MNIST, fours against nines: accuracy, %",
    "news": "20 Newsgroups: accuracy, %",
    "whole": "20 Newsgroups with headers, footers and quotes: accuracy, %",
    "aviation": "Aviation reports: mean of macro and micro F-measure, x 100",
}
# Shares of labeled training rows: the paper's, and the 5 % of the others for MNIST too.
RATES = dict.fromkeys(TITLES, (0.05, 0.1, 1.0)) | {"mnist": (0.02, 0.05, 0.1, 1.0)}
# Table 2 of the paper, by share of labeled rows: NMF-alpha of the best rank, and LDA.
TABLE_2 = {
    "mnist": {0.02: (93.3, 88.5), 0.1: (96.9, 92.7), 1.0: (98.2, 94.2)},
    "news": {0.05: (70.1, 65.3), 0.1: (75.3, 69.8), 1.0: (78.1, 73.5)},
    "aviation": {0.05: (48.5, 43.6), 0.1: (51.0, 47.9), 1.0: (57.2, 56.4)},
}
TABLE_2["whole"] = TABLE_2["news"]
BASES_RANK = 64  # of Figure 2
OPTIONS = {
    "data": (["mnist", "news", "aviation"], "", TITLES),
    "splits": (5, "as many as in the paper"),
    "ranks": [20, 40, 80],
    "rates": ([float], "shares of labeled training rows"),
    "methods": (list(METHODS), "", METHODS),
    "updates": (100, "of every factorization"),
}
QUICK = {"splits": 1, "ranks": [3], "rates": [0.5], "updates": 10}


def mnist() -> Dataset:
    parts = []
    for name in ("mnist_train.npz", "mnist_t10k.npz"):
        with np.load(data_file(name)) as file:
            images, labels = file["images"], file["labels"]
        chosen = np.isin(labels, (4, 9))
        flat = images[chosen].reshape(int(chosen.sum()), -1) / 255.0
        parts += [sp.csr_matrix(flat), (labels[chosen] == 9).astype(int)]
    return Dataset("mnist", *parts)


def news(name: str = "news", clean: Callable[[str], str] = strip) -> Dataset:
    """Return the twenty groups (11314 + 7532 posts, TF-IDF of 6000 terms)."""
    records = read_lines(NEWSGROUPS)
    names = sorted({record["label"] for record in records})
    vectorizer = TfidfVectorizer(
        token_pattern="[a-zA-Z]+", max_df=0.5, max_features=N_TERMS, stop_words=stop_words()
    )
    parts: list[Any] = []
    for part, convert in (("train", vectorizer.fit_transform), ("test", vectorizer.transform)):
        chosen = [record for record in records if record["split"] == part]
        parts.append(sp.csr_matrix(convert([clean(r["text"]) for r in chosen])))
        parts.append(np.array([names.index(record["label"]) for record in chosen]))
    return Dataset(name, *parts)


def aviation() -> Dataset:
    """Return the safety reports (21519 + 7077, presence of 500 words, 22 labels)."""
    with np.load(data_file("aviation_tmc2007_500.npz")) as file:
        words = np.ones(len(file["indices"]))
        shape = tuple(int(size) for size in file["shape"])
        X = sp.csr_matrix((words, file["indices"], file["indptr"]), shape=shape)
        Y = file["labels"].astype(int)
    order = np.random.default_rng(2007).permutation(shape[0])
    test, rest = order[:AVIATION_TEST], order[AVIATION_TEST:]
    return Dataset("aviation", X[rest], Y[rest], X[test], Y[test])


def made_up(name: str, n: int = 240, side: int = 8, seed: int = 0) -> Dataset:
    """Return small random data of the same kind: classes, many classes or several labels."""
    rng = np.random.default_rng(seed)
    kinds = {"mnist": 2, "aviation": 3}.get(name, 4)
    profiles = rng.gamma(0.3, size=(kinds, side * side))
    if name == "aviation":
        y = (rng.random((n, kinds)) < 0.5).astype(int)
        means = y @ profiles
    else:
        y = rng.integers(kinds, size=n)
        means = profiles[y]
    X = sp.csr_matrix(rng.poisson(means + 0.3).astype(float))
    cut = 2 * n // 3
    return Dataset(name, X[:cut], y[:cut], X[cut:], y[cut:])


DATA: dict[str, Callable[[], Dataset]] = {"mnist": mnist, "news": news, "aviation": aviation}
DATA["whole"] = lambda: news("whole", str)


@cache
def data_of(name: str, quick: bool) -> Dataset:
    return made_up(name) if quick else DATA[name]()


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    """Yield what belongs to the run, split by split; raw inputs and LDA have one rank only, 0."""
    for name in options.data:
        several = data_of(name, options.quick).multilabel
        rates = options.rates or RATES[name]
        grid = product(range(options.splits), [0, *options.ranks], rates, options.methods)
        for number, rank, rate, method in grid:
            if (rank == 0) == (method in ONE_RANK) and possible(method, name, several):
                yield name, options.updates, number, rank, rate, method


def measure(
    options: Options, data: str, updates: int, split: int, rank: int, rate: float, method: str
) -> Record:
    return judge(Case(data_of(data, options.quick), split, rate, updates), rank, method)


def scores(records: list[Record]) -> str:
    return pivot(records, "labeled method", "rank", lambda own: mean_of(own, "test", 100))


def differences(records: list[Record]) -> str:
    """Return how far NMF-alpha is above others, on the same splits, and in how many of them."""
    ours = {(r["rate"], r["rank"], r["split"]): r["test"] for r in records if r["method"] == ALPHA}

    def cell(theirs: list[Record]) -> str:
        pairs = [(ours.get((r["rate"], r["rank"], r["split"])), r["test"]) for r in theirs]
        above = [mine - other for mine, other in pairs if mine is not None]
        wins = sum(difference > 0 for difference in above)
        return f"{100 * np.mean(above):+.2f}, {wins} of {len(above)}" if above else ""

    return pivot([r for r in records if r["method"] != ALPHA], "labeled method", "rank", cell)


def weights(records: list[Record], method: str) -> str:
    """Return the mean test score of every weight, and in how many splits it was chosen."""
    rows = []
    for (labeled, rank), own in grouped(records, "labeled", "rank").items():
        times = Counter(record["weight"] for record in own)
        row = [labeled, str(rank)]
        for place, weight in enumerate(WEIGHTS[method]):
            score = np.mean([record["grid"][place]["test"] for record in own])
            row.append(f"{100 * score:.2f} ({times[weight]})")
        rows.append(row)
    return markdown(["labeled", "rank", *(f"{weight:g}" for weight in WEIGHTS[method])], rows)


def table_2(records: list[Record], name: str) -> str:
    """Return the paper's Table 2 and our results; validation chooses the rank of NMF-alpha."""
    rows = []
    for rate, printed in TABLE_2[name].items():
        row = [f"{rate:.0%}"]
        for method, theirs in zip((ALPHA, LDA), printed, strict=True):
            own = [r for r in records if (r["rate"], r["method"]) == (rate, method)]
            ranks = grouped(own, "rank").values()
            best = max(ranks, key=lambda own: np.mean([r["validation"] for r in own]), default=[])
            rank = f" (rank {best[0]['rank']})" if best and best[0]["rank"] else ""
            row += [f"{theirs:.1f}", mean_of(best, "test", 100) + rank]
        rows.append(row)
    return markdown(["labeled", "paper, NMF-alpha", "ours", "paper, LDA", "ours"], rows)


def report(records: list[Record], options: Options) -> str:
    parts = []
    for name, own in grouped(records, "data").items():
        ranks = sorted({r["rank"] for r in own} - {0}) or [0]
        # Raw inputs are compared with every rank.
        listed = [
            {**r, "rank": rank, "labeled": f"{r['rate']:.0%}"}
            for rank in ranks
            for r in own
            if r["rank"] in (rank, 0)
        ]
        order = list(METHODS)
        listed.sort(key=lambda r: (r["rate"], order.index(r["method"]), r["rank"]))
        splits, updates = len({r["split"] for r in own}), own[0]["updates"]
        parts += [f"## {TITLES[name]}"]
        parts += [
            f"Mean (standard deviation) of the test scores of {splits} splits, {updates} updates."
        ]
        parts += [scores(listed), "Table 2 of the paper, and ours:", table_2(own, name)]
        methods = grouped(listed, "method")
        if ALPHA in methods and len(methods) > 1:
            parts += ["Mean difference, and splits in which NMF-alpha is better:"]
            parts += [differences(listed)]
        for method in [m for m in WEIGHTS if m in methods]:
            parts += [
                f"{method} by weight (1: as large in total as the data), and how often chosen:"
            ]
            parts += [weights(methods[method], method)]
    return "\n\n".join(parts)


def draw(records: list[Record], stem: Path) -> None:
    """Draw Figure 3, test scores by rank, and Figure 2, basis vectors of images by weight."""
    for name, own in grouped(records, "data").items():
        rates = sorted({r["rate"] for r in own})
        figure, (axes,) = panels(4 * len(rates), 3.5, 1, len(rates))
        for place, rate in zip(axes, rates, strict=True):
            for method, these in grouped((r for r in own if r["rate"] == rate), "method").items():
                by_rank = grouped(these, "rank").items()
                ranks = {k: 100 * np.mean([r["test"] for r in part]) for k, part in by_rank}
                if method in ONE_RANK:
                    place.axhline(ranks[0], linestyle="--", color="0.5" if method == RAW else "0.8")
                    place.annotate(method, (0.02, ranks[0]), xycoords=("axes fraction", "data"))
                else:
                    place.plot(list(ranks), list(ranks.values()), "o-", label=method)
            place.set(title=f"{rate:.0%} labeled", xlabel="rank", ylabel=TITLES[name])
        axes[-1].legend(fontsize="small")
        figure.savefig(stem.with_name(f"{stem.name}-{name}-figure-3.png"), dpi=110)
        if name == "mnist" and 0.02 in rates and not stem.name.endswith("quick"):
            draw_bases(stem.with_name(f"{stem.name}-figure-2.png"))


def draw_bases(path: Path) -> None:
    """Draw 64 basis vectors of fours and nines, without labels and for two weights of 2 %."""
    case = Case(data_of("mnist", False), 0, 0.02, 500)
    arguments = common_arguments(case, BASES_RANK)
    figure, (axes,) = panels(12, 4.4, 1, 3)
    for place, weight in zip(axes, (0.0, 1.0, 1000.0), strict=True):
        model = sf.papers.MarginNMF(supervision_weight=weight, **arguments)
        sf.plotting.image_grid(
            model.fit(case.X, alpha=case.alpha).components_, (28, 28), columns=8, ax=place
        )
        place.set_title(f"weight {weight:g}")
    figure.savefig(path, dpi=110)


QUESTION = Question("data updates split rank rate method", cases, measure, report, draw)
