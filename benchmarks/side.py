"""What does side information add to predictions from few labels?

    python benchmarks/side.py --out side

`FewLabelsClassifier()` as it comes, without tables and with one of three: "vectors", means of word
vectors that are learned from the training texts alone (PPMI of the words within a window, and its
randomized SVD); "planted", noisy points around one center for each class; and "noise".  Results are
appended to DIR/results.jsonl: started again, the script goes on where it was.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import (
    Array,
    load_average,
    markdown,
    measure_missing,
    new_parser,
    read_records,
    say,
)
from labeled_sets import ALL_SETS, labeled, split, texts_of

AMOUNTS = (4, 16, 64)  # labels of each class
SETS = ("5 newsgroups", "BBC", "Reuters 10")
TABLES = ("none", "vectors", "planted", "noise")
KEY = ("amount", "draw", "data", "table")
Key = tuple[float, int, str, str]
_WINDOW, _DIMENSIONS, _LEAST_TEXTS = 5, 100, 3
_SMOOTHING = 0.75  # of how often a word is met (Levy, Goldberg and Dagan 2015)
_STRENGTH, _PLANTED_DIMENSIONS = 0.6, 50  # of the centers, beside noise of 1
last_split = lru_cache(1)(split)


def ppmi(words: Array, texts: Array, m: int) -> Any:
    """Return positive pointwise mutual information of m words, (m, m) CSR.

    `words` are those of all texts in turn, by number, and `texts` the text of each.
    """
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
    from sklearn.feature_extraction.text import TfidfVectorizer

    from ssnmf_fast.linalg import randomized_svd

    data, texts = last_split(name, draw), texts_of(name)
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
    rng, data = np.random.default_rng(draw), last_split(name, draw)
    strength = _STRENGTH if table == "planted" else 0.0
    centers = strength * rng.standard_normal((int(data.y.max()) + 1, _PLANTED_DIMENSIONS))
    classes = data.y, data.y_test
    return [{table: centers[y] + rng.standard_normal((len(y), len(centers[0])))} for y in classes]


def measure(task: Key) -> dict[str, Any]:
    """Return the accuracy with one table or none."""
    import ssnmf_fast as sf

    amount, draw, name, table = task
    data = last_split(name, draw)
    y = data.y.astype(float)
    y[~labeled(data.y, amount, draw)] = np.nan
    side, side_test = tables_of(name, draw, table)
    model = sf.FewLabelsClassifier(random_state=draw).fit(data.X, y, side=side)
    return dict(zip(KEY, task, strict=True)) | {
        "accuracy": float(model.score(data.X_test, data.y_test, side=side_test)),
        "committee": model.committee_,
    }


def key(record: dict[str, Any]) -> Key:
    amount, draw, name, table = (record[part] for part in KEY)
    return amount, draw, name, table


def report(records: list[dict[str, Any]]) -> str:
    """Return the table of means over the draws, in percent."""
    values: Any = defaultdict(lambda: defaultdict(list))
    for record in records:
        values[record["data"], record["amount"]][record["table"]].append(record["accuracy"])
    rows = [
        [name, f"{amount:g}", *(f"{100 * np.mean(by[t]):.1f}" if t in by else "" for t in TABLES)]
        for (name, amount), by in sorted(values.items())
    ]
    return markdown(["data", "labels a class", *TABLES], rows)


def main(arguments: list[str] | None = None) -> None:
    """Run the script."""
    parser = new_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("side"), help="default: %(default)s")
    parser.add_argument("--data", nargs="+", choices=ALL_SETS, default=list(SETS))
    parser.add_argument("--amounts", nargs="+", type=float, default=list(AMOUNTS))
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="digits, without vectors")
    options = parser.parse_args(arguments)
    if options.quick:
        options.data, options.amounts, options.draws = ["digits"], [4], 1
        options.tables = ["none", "planted", "noise"]
    warnings.simplefilter("ignore")  # of convergence
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.jsonl"
    say(f"load of the last minute: {load_average()}")
    tasks = [
        (amount, draw, name, table)
        for draw, name, amount, table in product(
            range(options.draws), options.data, options.amounts, options.tables
        )
    ]
    measure_missing(tasks, key, measure, path)
    print(report(read_records(path)))


if __name__ == "__main__":
    main()
