"""The methods that topic_supervised.py compares, and how a representation is judged."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Array
from topic_supervised_stories import Stories, labeled_rows

import ssnmf_fast as sf

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


def _supervised(stories: Stories, labeled: Array, draw: int, parameters: dict[str, Any]) -> Any:
    model = sf.TopicSupervisedNMF(random_state=draw, n_threads=1, **parameters)
    y = stories.topics * labeled[:, None]
    return model.fit(stories.X, y)


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

    rank = stories.topics.shape[1]
    model = LatentDirichletAllocation(
        rank, learning_method="batch", max_iter=LDA_PASSES, random_state=draw
    )
    return model.fit_transform(stories.counts), model.n_iter_


UNSUPERVISED: dict[str, Callable[[Stories, int], tuple[Array, int]]] = {
    NMF: _nmf,
    SKLEARN_NMF: _sklearn_nmf,
    LDA: _lda,
}
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
    model = _supervised(stories, labeled, draw, SUPERVISED[method])
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
