"""How near does one pass over a stream of slices come to a fit of the whole tensor?

The objective of the stream is that of the whole tensor: final factors, every slice coded with them.
"Gain" is what a model lowers the objective of the best single component by, as a share of what the
fit lowers it by: in sparse texts all objectives are alike.  Memory is what Python allocates above
its slices and factors in a call, early and late in the stream.
"""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from datetime import datetime
from functools import lru_cache
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import D, F, read_lines, timed
from records import Options, Question, Record, tabulate
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import ssnmf_fast as sf

FIRST = 24  # slices of the first call, but at most a quarter of all
PER_MONTH = 500


class Case(NamedTuple):
    """Slices along the last mode, each a sparse matrix."""

    slices: list[Any]
    loss: str
    rank: int


def vectors(texts: list[str], n_words: int, form: str) -> Any:
    """Return TF-IDF or counts of the most frequent words that are no stop words."""
    make = TfidfVectorizer if form == "tfidf" else CountVectorizer
    return make(stop_words="english", max_features=n_words).fit_transform(texts)


def by_month(rng: np.random.Generator) -> dict[str, list[str]]:
    """Return equally many headlines of every month that has as many, in random order."""
    months: dict[str, list[str]] = defaultdict(list)
    for line in read_lines("abc_headlines.jsonl.gz"):
        months[line["publish_date"][:6]].append(line["headline_text"])
    return {
        month: [texts[i] for i in rng.permutation(len(texts))[:PER_MONTH]]
        for month, texts in sorted(months.items())
        if len(texts) >= PER_MONTH
    }


def headlines(seed: int) -> Case:
    """Words x headlines of a month, in random order x months, TF-IDF."""
    months = by_month(np.random.default_rng(seed))
    X = vectors([text for texts in months.values() for text in texts], 5000, "tfidf")
    parts = [X[k * PER_MONTH : (k + 1) * PER_MONTH].T for k in range(len(months))]
    return Case(parts, "frobenius", 25)


def pairs(seed: int) -> Case:
    """Words x words x months: how many headlines of the month have both."""
    months = by_month(np.random.default_rng(seed))
    X = vectors([text for texts in months.values() for text in texts], 2000, "counts")
    X.data[:] = 1
    slices = []
    for k in range(len(months)):
        part = X[k * PER_MONTH : (k + 1) * PER_MONTH].astype(np.float64)
        together = sp.csr_array(part.T @ part)
        together.setdiag(0)
        together.eliminate_zeros()
        slices.append(together)
    return Case(slices, D, 25)


def reuters(seed: int) -> Case:
    del seed
    stories = [s for s in read_lines("reuters21578.jsonl.gz") if s["topics"]]
    dates = [str(story["date"]).split()[0] for story in stories]
    days = np.array([datetime.strptime(d, "%d-%b-%Y") for d in dates], "datetime64[D]")
    topics = sorted({t for s in stories for t in s["topics"]})
    X = vectors([f"{s['title']} {s['body']}" for s in stories], 3000, "counts").astype(float)
    members = sp.csr_array(
        np.array([[t in s["topics"] for t in topics] for s in stories], dtype=float)
    )
    every, counts = np.unique(days, return_counts=True)
    parts = [np.flatnonzero(days == day) for day in every[counts >= 50]]
    return Case([sp.csr_array(members[rows].T @ X[rows]) for rows in parts], D, 25)


def synthetic(seed: int, loss: str, shape: tuple[int, int, int] = (400, 60, 200)) -> Case:
    rng = np.random.default_rng(seed)
    F, G, H = (rng.gamma(0.3, size=(n, 10)) for n in shape)
    scale = 0.5 / ((F.mean(0) * G.mean(0)) @ H.mean(0))
    slices = [sp.csr_array(rng.poisson(scale * (F * h) @ G.T).astype(float)) for h in H]
    return Case(slices, loss, 10)


CASES = {
    "headlines": headlines,
    "pairs": pairs,
    "reuters": reuters,
    "synthetic, frobenius": lambda seed: synthetic(seed, F),
    "synthetic, kullback-leibler": lambda seed: synthetic(seed, D),
    "quick": lambda seed: synthetic(0, D, (30, 20, 24)),
}


def tensor(slices: list[Any]) -> Any:
    parts = [sp.coo_array(one) for one in slices]
    coords = [np.vstack([*part.coords, np.full(part.nnz, k)]) for k, part in enumerate(parts)]
    values = np.concatenate([part.data for part in parts])
    return np.concatenate(coords, axis=1), values, (*slices[0].shape, len(slices))


def streamed(case: Case, seed: int, factor: float, traced: bool) -> tuple[Any, list[int]]:
    model = sf.NonnegativeCP(
        case.rank, loss=case.loss, random_state=seed, forget_factor=factor, n_threads=1
    )
    peaks = []
    first = min(FIRST, len(case.slices) // 4)
    batches = [case.slices[:first], *([one] for one in case.slices[first:])]
    for batch in batches:
        X = tensor(batch)
        if traced:
            tracemalloc.start()
        model.partial_fit(X)
        if traced:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return model, peaks


def objective(X: Any, model: Any) -> float:
    factors = [*model.factors_[:2], model.transform(X, mode=2)]
    fixed = sf.factorize_tensor(
        X, n_components=len(model.weights_), loss=model.loss_, init=factors, max_iter=0
    )
    return float(fixed.objective[0][1])


CASE = lru_cache(1)(lambda name, seed: CASES[name](seed))
OPTIONS = {"cases": (list(CASES)[:-1], "", CASES), "forget_factors": [0.9, 0.98, 1.0], "seed": 0}
QUICK = {"cases": ["quick"], "forget_factors": [0.98]}


def measure(options: Options, name: str, seed: int, factor: float) -> Record:
    case = CASE(name, seed)
    X = tensor(case.slices)
    settings: dict[str, Any] = {"loss": case.loss, "random_state": seed, "n_threads": 1}
    batch, of_batch = timed(sf.factorize_tensor, X, n_components=case.rank, **settings)
    single = sf.factorize_tensor(X, n_components=1, **settings).objective[-1][1]
    begin = perf_counter()
    model, _ = streamed(case, seed, factor, traced=False)
    of_stream = perf_counter() - begin
    _, peaks = streamed(case, seed, factor, traced=True)
    fitted, found = batch.objective[-1][1], objective(X, model)
    record: Record = {"shape": " x ".join(map(str, X[2])), "nonzeros": len(X[1])}
    record |= {"rank": case.rank, "fitted": fitted, "found": found, "above": found / fitted - 1}
    record |= {"gain": (single - found) / (single - fitted), "batch": of_batch}
    record |= {"early": max(peaks[1:11]) / 1e6, "late": max(peaks[-10:]) / 1e6}
    return record | {"stream": of_stream}


COLUMNS = {
    "tensor": "{name}",
    "shape": "{shape}",
    "nonzeros": "{nonzeros:,}",
    "rank": "{rank}",
    "forget factor": "{factor:g}",
    "fit": "{fitted:.5g}",
    "stream": "{found:.5g}",
    "above": "{above:+.2%}",
    "gain": "{gain:.0%}",
    "time of the fit": "{batch:.1f} s",
    "of the stream": "{stream:.1f} s",
    "memory of a call, early / late": "{early:.1f} / {late:.1f} MB",
}


def report(records: list[Record], options: Options) -> str:
    return tabulate(records, **COLUMNS)


def cases(options: Options) -> Any:
    return product(options.cases, [options.seed], options.forget_factors)


QUESTION = Question("name seed factor", cases, measure, report, threads=None)
