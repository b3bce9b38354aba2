"""Does `choose_rank(criterion="words")` choose numbers of topics that agree with classes?

Labeled sets of short and long texts, at most 5,000 texts of each, words that at least 3 have, at
most 10,000.  Agreement is the adjusted mutual information of the classes and the leading topics, by
Kullback-Leibler NMF of counts, over the best of the ranks 2 to 64.  The range is right if one of
its ranks has 95 % of the best.  Shuffled texts keep their lengths, and words their totals.

The files come from $SSNMF_FAST_DATA; "made up" draws texts of five topics.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import D, read_lines, stop_words, strip
from records import Options, Question, Record, mean_of, tabulate
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_mutual_info_score

import ssnmf_fast as sf

RANKS = (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64)
MOST = 5000
SHORT = ("StackOverflow", "SearchSnippets", "DBLP", "TREC")
# Name -> collection, what is read of a record, and the first and last class, by name or frequency.
SETS: dict[str, tuple[str, str, tuple[int, int]]] = {
    **{name: (name, "{text}", (0, 99)) for name in SHORT},
    "StackOverflow, 5 classes": ("StackOverflow", "{text}", (0, 5)),
    "StackOverflow, 8 classes": ("StackOverflow", "{text}", (7, 15)),
    "StackOverflow, 12 classes": ("StackOverflow", "{text}", (8, 20)),
    "BBC": ("bbc_news", "{title} {body}", (0, 99)),
    "BBC, titles": ("bbc_news", "{title}", (0, 99)),
    "20 Newsgroups": ("20newsgroups", "{text}", (0, 99)),
    "20 Newsgroups, 5 classes": ("20newsgroups", "{text}", (1, 6)),
    "20 Newsgroups, 10 classes": ("20newsgroups", "{text}", (10, 20)),
    "20 Newsgroups, subjects": ("20newsgroups", "{subject}", (0, 99)),
    "Reuters, topics 1 to 10": ("reuters21578", "{title} {body}", (0, 10)),
    "Reuters, titles": ("reuters21578", "{title}", (0, 10)),
    "Reuters, topics 11 to 30": ("reuters21578", "{title} {body}", (10, 30)),
    "Reuters, titles, 11 to 30": ("reuters21578", "{title}", (10, 30)),
}
KINDS = ("as written", "shuffled")


@cache
def collection(name: str) -> list[dict[str, Any]]:
    if name in SHORT:
        return [r for r in read_lines("short_texts.jsonl.gz") if r["set"] == name]
    records = read_lines(f"{name}.jsonl.gz")
    if name == "reuters21578":
        records = [r | {"label": r["topics"][0]} for r in records if len(r["topics"]) == 1]
    if name == "20newsgroups":
        subject = re.compile(r"^Subject:\s*(?:Re:\s*)*(.*)$", re.MULTILINE)
        for r in records:
            r |= {"subject": " ".join(subject.findall(r["text"])[:1]), "text": strip(r["text"])}
    return records


@cache
def documents(name: str) -> tuple[Any, Any]:
    """Return counts (csr) and the class of each text."""
    rng = np.random.default_rng(0)
    if name == "made up":
        y = np.repeat(np.arange(5), 80)
        likely = np.where(np.arange(100) // 20 == y[:, None], 0.25, 0.01)
        return sp.csr_array((rng.random((400, 100)) < likely).astype(float)), y
    source, text, (first, last) = SETS[name]
    counts = Counter(record["label"] for record in collection(source))
    by_name = sorted(counts)
    classes = [c for c, _ in counts.most_common()] if source == "reuters21578" else by_name
    classes = classes[first:last]
    records = [record for record in collection(source) if record["label"] in classes]
    rows = rng.permutation(len(records))[:MOST]
    pattern = r"(?u)\b[^\W\d_]{2,}\b"
    counter = CountVectorizer(
        token_pattern=pattern, min_df=3, max_features=10_000, stop_words=stop_words()
    )
    X = sp.csr_array(counter.fit_transform(text.format(**records[i]) for i in rows).astype(float))
    kept = np.diff(X.indptr) >= 2
    return X[kept], np.array([records[i]["label"] for i in rows])[kept]


def shuffled(X: Any, seed: int) -> Any:
    rows, words = (np.repeat(part, X.data.astype(int)) for part in X.nonzero())
    words = np.random.default_rng(seed).permutation(words)
    return sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, words)), X.shape))


@cache
def agreements(name: str) -> dict[int, float]:
    X, y = documents(name)
    fits = {k: sf.factorize(X, n_components=k, loss=D, random_state=0, max_iter=50) for k in RANKS}
    found = {k: adjusted_mutual_info_score(y, fit.S.argmax(axis=1)) for k, fit in fits.items()}
    return {1: 0.0} | {k: value / max(found.values()) for k, value in found.items()}


def measure(options: Options, name: str, kind: str, seed: int) -> Record:
    del options
    X, _ = documents(name)
    X = X if kind == KINDS[0] else shuffled(X, seed)
    begin = process_time()
    choice = sf.choose_rank(X, criterion="words", random_state=seed, n_threads=1)
    record: Record = {"cpu": process_time() - begin, "rank": choice.rank}
    if kind == KINDS[0]:
        of = agreements(name)
        near = [k for k in RANKS if choice.low <= k <= choice.high and of[k] >= 0.95]
        record |= {"low": choice.low, "high": choice.high, "right": bool(near)}
        record |= {"agreement": of[choice.rank], "always 16": of[16]}
    return record


def report(records: list[Record], options: Options) -> str:
    del options
    table = tabulate(
        records,
        texts="{data}, {kind}",
        seed="{seed}",
        topics="{rank}",
        range="{low} to {high}",
        agreement="{agreement:.2f}",
        right="{right}",
        cpu="{cpu:.1f} s",
    )
    means = [f"{name} {mean_of(records, name)}" for name in ("agreement", "always 16", "right")]
    return f"{table}\n\nMeans and standard deviations: {', '.join(means)}"


OPTIONS = {"sets": (list(SETS), "", (*SETS, "made up")), "kinds": list(KINDS), "seeds": 2}
QUICK = {"sets": ["made up"], "seeds": 1}
QUESTION = Question("data kind seed", "sets kinds seeds", measure, report)
