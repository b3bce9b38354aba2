"""Do topics over time find events among other topics, and when these were?

Real texts of known groups are put into 30 slices of 20 to 60 texts.  Four groups, each of which has
330 texts or more, are there all the time, in shares that drift (a random walk of their logarithms);
four others are events: in 2 to 4 slices in a row, which no other event has, with 30 to 50 % of the
texts.  No text is used twice.  Methods get as many topics as there are groups.  Topics and groups
are matched one to one for the largest sum of correlations between the prevalence of the topic and
the group's share of texts, over slices; the table has the mean correlation of the events, and of
all groups, over draws, and the standard error of the former.

Texts are posts of 20 Newsgroups, and stories of Reuters-21578 with a single topic; 5000 terms.
The defaults were chosen with seeds 0 to 7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from common import Array, D, read_lines, read_posts, strip, timed
from records import Options, Question, Record, grouped, markdown
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import ssnmf_fast as sf

N_SLICES, SIZES, N_STEADY, N_EVENTS = 30, (20, 60), 4, 4
FEWEST, FEWEST_STEADY = 90, 330  # texts of a group
Fit = Callable[[Any, Any, Any, int], Array]


class Drawn(NamedTuple):
    """Texts of a draw, their slices, and the share of every group in the texts of a slice."""

    texts: list[str]
    slices: Array
    truth: Array


@cache
def texts_of(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if name == "made up":
        rng = np.random.default_rng(0)
        for group in range(10):
            words = [f"{'any' if k < 20 else f'group{group}'}word{k}" for k in range(40)]
            found[str(group)] = [" ".join(rng.choice(words, 30)) for _ in range(400)]
    elif name == "newsgroups":
        for text, group in read_posts():
            if (rest := strip(text)).strip():
                found.setdefault(group, []).append(rest)
    else:
        for story in read_lines("reuters21578.jsonl.gz"):
            if len(story["topics"]) == 1 and len(story["body"]) > 100:
                text = f"{story['title']} {story['body']}"
                found.setdefault(story["topics"][0], []).append(text)
    return {group: texts for group, texts in found.items() if len(texts) >= FEWEST}


def draw(name: str, seed: int) -> Drawn:
    rng = np.random.default_rng([seed, 77])
    texts = texts_of(name)
    large = sorted(group for group in texts if len(texts[group]) >= FEWEST_STEADY)
    steady = list(rng.choice(large, N_STEADY, replace=False))
    rest = [group for group in sorted(texts) if group not in steady]
    groups = steady + list(rng.choice(rest, N_EVENTS, replace=False))
    sizes = rng.integers(SIZES[0], SIZES[1] + 1, N_SLICES)
    steps = rng.normal(0, 0.25, (N_SLICES, N_STEADY))
    walk = np.exp(np.cumsum(steps, axis=0) + rng.normal(0, 0.3, N_STEADY))
    shares = np.zeros((N_SLICES, len(groups)))
    shares[:, :N_STEADY] = walk / walk.sum(axis=1, keepdims=True)
    for event in range(N_STEADY, len(groups)):
        length = rng.integers(2, 5)
        while True:
            first = rng.integers(0, N_SLICES - length + 1)
            during = slice(first, first + length)
            if not shares[during, N_STEADY:].any():
                break
        part = rng.uniform(0.3, 0.5)
        shares[during] *= 1 - part
        shares[during, event] = part
    left = {group: list(rng.permutation(len(texts[group]))) for group in groups}
    chosen, counts = [], np.zeros_like(shares)
    slices: list[int] = []
    for t, size in enumerate(sizes):
        for k in rng.choice(len(groups), size, p=shares[t]):
            if left[groups[k]]:
                chosen.append(texts[groups[k]][left[groups[k]].pop()])
                slices.append(t)
                counts[t, k] += 1
    return Drawn(chosen, np.array(slices), counts / counts.sum(axis=1, keepdims=True))


def correlations(truth: Array, prevalence: Array) -> Array:
    """Return the correlation of every group with the topic that is matched to it."""
    groups = truth.shape[1]
    with np.errstate(invalid="ignore"):
        alike = np.nan_to_num(np.corrcoef(truth.T, prevalence.T)[:groups, groups:])
    return np.asarray(alike[linear_sum_assignment(alike, maximize=True)])


def dynamic(of_counts: bool = False, **parameters: Any) -> Fit:
    def fit(tfidf: Any, counts: Any, times: Any, seed: int) -> Array:
        X = counts if of_counts else tfidf
        model = sf.DynamicTopics(N_STEADY + N_EVENTS, random_state=seed, **parameters)
        return model.fit(X, times).prevalence_

    return fit


def theirs(estimator: type, of_counts: bool = False) -> Fit:
    """Return what fits a model of scikit-learn: the prevalence is the mean of the documents."""

    def fit(tfidf: Any, counts: Any, times: Any, seed: int) -> Array:
        X = counts if of_counts else tfidf
        model = estimator(N_STEADY + N_EVENTS, random_state=seed)
        weights = model.fit_transform(X)
        if estimator is NMF:
            weights = weights * model.components_.sum(axis=1)
        return np.stack([weights[times == t].mean(axis=0) for t in np.unique(times)])

    return fit


METHODS: dict[str, Fit] = {
    "`DynamicTopics()`, TF-IDF": dynamic(),
    "divergence, TF-IDF": dynamic(loss=D),
    "divergence, counts": dynamic(True, loss=D),
    '`method="tensor"`, TF-IDF': dynamic(method="tensor"),
    "its start": dynamic(method="tensor", max_iter=0),
    'the same with `solver="mu"`': dynamic(method="tensor", solver="mu"),
    "tensor, divergence, counts": dynamic(True, method="tensor", loss=D),
    '`method="tied"`, TF-IDF': dynamic(method="tied"),
    '`method="nmf"`, TF-IDF': dynamic(method="nmf"),
    "NMF of scikit-learn, TF-IDF": theirs(NMF),
    "LDA of scikit-learn, counts": theirs(LatentDirichletAllocation, True),
}


OPTIONS = {"sets": ["newsgroups", "reuters"], "seeds": list(range(100, 110))}
QUICK = {"sets": ["made up"], "seeds": [0]}


@lru_cache(1)
def data_of(name: str, seed: int) -> tuple[Any, Any, Drawn]:
    drawn = draw(name, seed)
    counter = CountVectorizer(max_df=0.95, max_features=5000, stop_words="english")
    counts = counter.fit_transform(drawn.texts).astype(np.float64)
    return TfidfTransformer().fit_transform(counts), counts, drawn


def measure(options: Options, name: str, seed: int, method: str) -> Record:
    tfidf, counts, drawn = data_of(name, seed)
    times = np.datetime64("2000-01") + drawn.slices
    prevalence, took = timed(METHODS[method], tfidf, counts, times, seed)
    values = correlations(drawn.truth, prevalence)
    return {"events": values[N_STEADY:].mean(), "all": values.mean(), "seconds": took}


def report(records: list[Record], options: Options) -> str:
    header, rows = ["method"], [[method] for method in grouped(records, "method")]
    for name, of_set in grouped(records, "data").items():
        header += [f"{name}, events", "all groups", "seconds"]
        for row, own in zip(rows, grouped(of_set, "method").values(), strict=True):
            events, every, took = (
                np.array([r[k] for r in own]) for k in ("events", "all", "seconds")
            )
            error = events.std(ddof=1) / len(events) ** 0.5 if len(events) > 1 else 0.0
            row += [f"{events.mean():.3f} ({error:.3f})", f"{every.mean():.3f}"]
            row.append(f"{np.median(took):.2f}")
    return f"{len(options.seeds)} draws\n\n{markdown(header, rows)}"


QUESTION = Question(
    "data seed method", lambda o: product(o.sets, o.seeds, METHODS), measure, report, threads=None
)
