"""The demo on text: 20 Newsgroups, 5 classes, 40 % of the labels hidden."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._demo import TOPICS, Outcome, finish, fit, linear_svc, print_outcome
from ._examples import examples
from ._fitted import Fitted
from ._folder import Results
from ._newsgroups import load_subset, tfidf
from ._sample_labels import read_labels
from ._shares import data_topics
from ._topic_tables import print_topics, write_topics

_TRAINING = 0.6
_TOPICS = 10
_ITERATIONS = 20
_TERMS = 10
_NAMES = ("SSNMF: all posts, the labels where known", "LinearSVC: labelled posts only")


def demo(out: Results, options: Any) -> None:
    """Fit, compare, and write everything."""
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
    known = read_labels(truth.tolist(), None)
    fitted = Fitted(model, X, known, hidden, list(terms), seconds, [], is_text=True, texts=texts)
    described = data_topics(fitted, _TERMS)
    print_topics(described.topics)
    write_topics(out.path(TOPICS), described.topics)
    finish(
        out,
        outcome,
        [("data", f"{len(truth)} posts x {X.shape[1]} terms, {X.nnz} nonzeros")],
        title="Topics of 20 Newsgroups",
        lead="TF-IDF of posts without headers, footers and quotes; the model learns topics from "
        "all posts and labels from those that have one.",
        topics=described.topics,
        shares_note=described.note,
        class_counts=described.counts,
        examples=examples(fitted),
    )
