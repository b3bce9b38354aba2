"""The stories and methods that topic_supervised.py compares, how a representation is judged.

The stories are those of Reuters-21578, as the paper prepares them, or made up for quick runs.

The 90 topics that occur in both parts of the ModApte split; the stories of both parts with one of
them and with 250 characters or more; TF-IDF of 2000 terms, every story's row of length 1.  The
paper splits words as NLTK's Treebank tokenizer does and lemmatises them; here a term is three or
more letters, as it stands.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Array, read_lines, stop_words

import ssnmf_fast as sf

SHORTEST = 250
TERMS = 2000
QUICK_TOPICS = 12


@dataclass(frozen=True, eq=False)
class Stories:
    """Documents x terms twice, as TF-IDF and as counts (csr), and their true topics (0 or 1)."""

    X: Any
    counts: Any
    topics: Array
    names: list[str]


@cache
def reuters_stories() -> Stories:
    """Return the stories of the 90 topics, from $SSNMF_FAST_DATA."""
    stories = read_lines("reuters21578.jsonl.gz")
    names = sorted(_topics_of(stories, "train") & _topics_of(stories, "test"))
    texts, topics = [], []
    for story in stories:
        text = story["title"] + "\n" + story["body"]
        own = [name in story["topics"] for name in names]
        if story["modapte"] != "unused" and any(own) and len(text) >= SHORTEST:
            texts.append(text)
            topics.append(own)
    return _stories(texts, np.array(topics, dtype=np.float64), names)


def _topics_of(stories: list[dict[str, Any]], part: str) -> set[str]:
    return {topic for story in stories if story["modapte"] == part for topic in story["topics"]}


def random_stories(per_topic: int = 30, words: int = 40, seed: int = 0) -> Stories:
    """Return stories of made-up words; every fourth has two topics, whose words are mixed."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.eye(QUICK_TOPICS), per_topic, axis=0)
    second = rng.integers(QUICK_TOPICS, size=len(topics))
    topics[np.arange(0, len(topics), 4), second[::4]] = 1
    texts = []
    for row in topics:
        sources = rng.choice([-1, *np.flatnonzero(row)], size=words)
        numbers = rng.integers(30, size=words) + 30 * (sources + 1)
        texts.append(" ".join(_word(number) for number in numbers))
    return _stories(texts, topics, [f"topic {k}" for k in range(QUICK_TOPICS)])


def _word(number: int) -> str:
    """Spell a number by letters, three or more, that are no stop word."""
    return "xq" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _stories(texts: list[str], topics: Array, names: list[str]) -> Stories:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    words = stop_words()
    if not isinstance(words, str):  # those that are long enough to be terms
        words = [word for word in words if len(word) >= 3]
    vectorizer = CountVectorizer(token_pattern="[a-zA-Z]{3,}", max_features=TERMS, stop_words=words)
    counts = vectorizer.fit_transform(texts)
    counts.sort_indices()
    return Stories(TfidfTransformer().fit_transform(counts), counts, topics, names)


def labeled_rows(stories: Stories, rate: float, draw: int) -> Array:
    """Return which stories a draw labels: a share `rate` of them."""
    n = len(stories.topics)
    rng = np.random.default_rng([2017, draw, round(1e4 * rate)])
    labeled = np.zeros(n, dtype=bool)
    labeled[rng.choice(n, round(rate * n), replace=False)] = True
    return labeled


SCALES = ("rows", "columns", "none")
WHERE = ("all", "unlabeled")
# Settled: 60 passes lower the perplexity by 0.2 % more.  scikit-learn's other method, "online",
# leaves a third of the topics unused on these data and scores less.
LDA_PASSES = 30

PAPER, UNWEIGHTED, DIVERGENCE = "TS-NMF", "TS-NMF, weight 1", "TS-NMF, KL"
HEAVY, HEAVY_DIVERGENCE = "TS-NMF, weight 100", "TS-NMF, KL, weight 100"
NMF, SKLEARN_NMF, LDA = "NMF", "NMF, scikit-learn", "LDA, scikit-learn"
KL = {"loss": "kullback-leibler"}
# Parameters of TopicSupervisedNMF; the first are the paper's model and weights.
SUPERVISED: dict[str, dict[str, Any]] = {
    PAPER: {},
    UNWEIGHTED: {"labeled_weight": 1.0},
    DIVERGENCE: KL,
    HEAVY: {"labeled_weight": 100.0},
    HEAVY_DIVERGENCE: {**KL, "labeled_weight": 100.0},
}


class Fit(NamedTuple):
    """Topic weights of every story, on the scale of the amount of data; what the fit took."""

    S: Array
    iterations: int
    seconds: float


def _nmf(stories: Stories, draw: int) -> tuple[Array, int]:
    rank = stories.topics.shape[1]
    parameters = {"init": "random-acol", "random_state": draw, "n_threads": 1}
    model = sf.NMF(n_components=rank, **parameters).fit(stories.X)
    return model.representation_ * model.components_.sum(axis=1), model.n_iter_


def _sklearn_nmf(stories: Stories, draw: int) -> tuple[Array, int]:
    from sklearn.decomposition import NMF as SklearnNMF

    model = SklearnNMF(stories.topics.shape[1], init="random", random_state=draw)
    S = model.fit_transform(stories.X)
    return S * model.components_.sum(axis=1), model.n_iter_


def _lda(stories: Stories, draw: int) -> tuple[Array, int]:
    from sklearn.decomposition import LatentDirichletAllocation

    options = {"learning_method": "batch", "max_iter": LDA_PASSES, "random_state": draw}
    model = LatentDirichletAllocation(stories.topics.shape[1], **options)
    return model.fit_transform(stories.counts), model.n_iter_


UNSUPERVISED = {NMF: _nmf, SKLEARN_NMF: _sklearn_nmf, LDA: _lda}
METHODS = (*SUPERVISED, *UNSUPERVISED)


@lru_cache(maxsize=2)
def _unsupervised(stories: Stories, method: str, draw: int) -> Fit:
    """Return one fit for all rates: it sees no labels."""
    begin = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a limit of iterations was reached
        S, iterations = UNSUPERVISED[method](stories, draw)
    return Fit(S, iterations, perf_counter() - begin)


def fit(stories: Stories, method: str, labeled: Array, draw: int) -> Fit:
    """Fit one method; the supervised ones see the topics of the labeled stories."""
    if method in UNSUPERVISED:
        return _unsupervised(stories, method, draw)
    begin = perf_counter()
    model = sf.TopicSupervisedNMF(random_state=draw, n_threads=1, **SUPERVISED[method])
    model.fit(stories.X, stories.topics * labeled[:, None])
    S = model.representation_ * model.components_.sum(axis=1)
    return Fit(S, model.n_iter_, perf_counter() - begin)


def judge(S: Array, truth: Array) -> dict[str, list[float]]:
    """Return similarity score and number of resolved topics, by scale.

    Topics of none of these stories are left out: nothing could match them.
    """
    present = truth[:, truth.any(axis=0)]
    results = {}
    for scale in SCALES:
        matching = sf.metrics.match_topics(S, present, normalize=scale)
        results[scale] = [matching.score, matching.n_resolved]
    return results


def named_score(S: Array, truth: Array) -> float:
    """Return the mean similarity of every topic with the component of its own name, unmatched."""
    present = np.flatnonzero(truth.any(axis=0))
    similarity = sf.metrics.jaccard_similarity(S, truth[:, present])
    return float(similarity[present, np.arange(len(present))].mean())


def measure(stories: Stories, method: str, rate: float, draw: int) -> dict[str, Any]:
    """Return the record of one method at one rate and draw."""
    labeled = labeled_rows(stories, rate, draw)
    S, iterations, seconds = fit(stories, method, labeled, draw)
    parts = {"all": np.ones_like(labeled), "unlabeled": ~labeled}
    record: dict[str, Any] = {"method": method, "rate": rate, "draw": draw}
    record |= {"iterations": iterations, "seconds": round(seconds, 2)}
    record["coverage"] = float(stories.topics[labeled].any(axis=0).mean())
    for where in WHERE:
        rows = parts[where]
        record[where] = judge(S[rows], stories.topics[rows])
        if method in SUPERVISED:
            record[f"named, {where}"] = named_score(S[rows], stories.topics[rows])
    return record
