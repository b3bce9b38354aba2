"""What does side information add to predictions from few labels?

`FewLabelsClassifier()` as it comes, without tables and with one of three: "vectors", means of word
vectors that are learned from the training texts alone (PPMI of the words within a window, and its
randomized SVD); "planted", noisy points around one center for each class; and "noise".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array
from labeled_sets import ALL_SETS, labeled, split, texts_of
from records import Options, Question, Record, pivot
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf
from ssnmf_fast.linalg import randomized_svd

TABLES = ["none", "vectors", "planted", "noise"]
OPTIONS = {
    "data": (["5 newsgroups", "BBC", "Reuters 10"], "", ALL_SETS),
    "amounts": ([4.0, 16.0, 64.0], "labels of each class"),
    "tables": (TABLES, "", TABLES),
    "draws": 3,
}
QUICK = {"data": ["digits"], "amounts": [4.0], "draws": 1, "tables": ["none", "planted", "noise"]}
_WINDOW, _DIMENSIONS, _LEAST_TEXTS = 5, 100, 3
_SMOOTHING = 0.75  # of how often a word is met (Levy, Goldberg and Dagan 2015)
_STRENGTH, _PLANTED_DIMENSIONS = 0.6, 50  # of the centers, beside noise of 1


def ppmi(words: Array, texts: Array, m: int) -> Any:
    """Return positive pointwise mutual information of m words, (m, m) CSR."""
    counts = sp.csr_array((m, m))
    for distance in range(1, _WINDOW + 1):
        near = texts[distance:] == texts[:-distance]
        pair = words[:-distance][near], words[distance:][near]
        counts = counts + sp.csr_array((np.ones(int(near.sum())), pair), shape=(m, m))
    found = sp.coo_array(counts + counts.T)
    totals = np.asarray(found.sum(axis=1)).ravel()
    met = totals**_SMOOTHING / (totals**_SMOOTHING).sum()
    values = np.log(found.data / (totals[found.row] * met[found.col]))
    kept = values > 0
    places = found.row[kept], found.col[kept]
    return sp.csr_array((values[kept], places), shape=(m, m))


@lru_cache(1)
def vectors(name: str, draw: int) -> tuple[Array, Array]:
    """Return vectors of the training and test texts: means of those of their words, by idf."""
    data, texts = split(name, draw), texts_of(name)
    training = [texts[i] for i in data.training]
    weigh = TfidfVectorizer(
        stop_words="english", min_df=_LEAST_TEXTS, sublinear_tf=True, norm="l1"
    ).fit(training)
    number, analyze = weigh.vocabulary_, weigh.build_analyzer()
    words = [[number[w] for w in analyze(text) if w in number] for text in training]
    ends = np.repeat(np.arange(len(words)), [len(each) for each in words])
    U, singular, _ = randomized_svd(
        ppmi(np.concatenate(words).astype(int), ends, len(number)), _DIMENSIONS, random_state=draw
    )
    of_words = U * np.sqrt(singular)
    test = [texts[i] for i in data.test]
    return weigh.transform(training) @ of_words, weigh.transform(test) @ of_words


def tables_of(name: str, draw: int, table: str) -> list[Any]:
    """Return what is given as `side` for the training and for the test samples."""
    if table == "none":
        return [None, None]
    if table == "vectors":
        return [{table: E} for E in vectors(name, draw)]
    rng, data = np.random.default_rng(draw), split(name, draw)
    strength = _STRENGTH if table == "planted" else 0.0
    centers = strength * rng.standard_normal((int(data.y.max()) + 1, _PLANTED_DIMENSIONS))
    classes = data.y, data.y_test
    return [{table: centers[y] + rng.standard_normal((len(y), len(centers[0])))} for y in classes]


def measure(options: Options, amount: float, draw: int, data: str, table: str) -> Record:
    it = split(data, draw)
    y = it.y.astype(float)
    y[~labeled(it.y, amount, draw)] = np.nan
    side, side_test = tables_of(data, draw, table)
    model = sf.FewLabelsClassifier(random_state=draw).fit(it.X, y, side=side)
    accuracy = float(model.score(it.X_test, it.y_test, side=side_test))
    return {"accuracy": accuracy, "committee": model.committee_}


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    grid = product(range(options.draws), options.data, options.amounts, options.tables)
    return ((amount, draw, name, table) for draw, name, amount, table in grid)


def report(records: list[Record], options: Options) -> str:
    named = [{**r, "labels a class": r["amount"]} for r in records]
    named.sort(key=lambda r: (r["data"], r["amount"]))

    def mean(own: list[Record]) -> str:
        return f"{100 * np.mean([r['accuracy'] for r in own]):.1f}"

    return pivot(named, ("data", "labels a class"), "table", mean)


QUESTION = Question("amount draw data table", cases, measure, report, threads=None)
