"""The demo on text: 20 Newsgroups, 5 classes, 40 % of the labels hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ._demo_common import Outcome, finish, fit, linear_svc, print_outcome
from ._newsgroups import load_subset, tfidf
from ._outputs import print_topics, write_topics

_TRAINING = 0.6
_TOPICS = 10
_ITERATIONS = 20
_TERMS = 10
_NAMES = ("SSNMF: all posts, the labels where known", "LinearSVC: labelled posts only")


def demo(folder: Path, options: Any) -> None:
    """Fit, compare, and write everything into the folder."""
    texts, truth = load_subset(options.seed)
    X, terms = tfidf(texts)
    rng = np.random.default_rng(options.seed)
    hidden = np.ones(len(truth), dtype=bool)
    hidden[rng.permutation(len(truth))[: round(_TRAINING * len(truth))]] = False
    labels = truth.astype(object)
    labels[hidden] = None
    print("Semi-supervised topics of 20 Newsgroups\n")
    print(f"  data    {len(truth)} posts, {X.shape[1]} terms; {', '.join(np.unique(truth))}")
    print(f"  hidden  {hidden.sum()} of the labels")

    model, seconds = fit(
        X,
        labels,
        options,
        n_components=_TOPICS,
        reconstruction="kullback-leibler",
        supervision="frobenius",
        supervision_weight="balanced",
        max_iter=_ITERATIONS,
    )
    rival = linear_svc(X, truth, hidden)
    outcome = Outcome(model, seconds, truth[hidden], model.predict(X[hidden]), rival, _NAMES)
    print_outcome(outcome, "topics", "posts")
    topics = model.topics(terms, _TERMS)
    print_topics(topics)
    write_topics(folder / "topics.csv", topics)
    finish(
        folder,
        outcome,
        [("topics.csv", "top terms of every topic")],
        [],
        [("data", f"{len(truth)} posts x {X.shape[1]} terms, {X.nnz} nonzeros")],
        title="Topics of 20 Newsgroups",
        lead="TF-IDF of posts without headers, footers and quotes; the model learns topics from "
        "all posts and labels from those that have one.",
        topics=topics,
    )
