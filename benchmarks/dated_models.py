"""Does `topics_over_time` of any model show how much was written about each topic, and when?

Stories of Reuters-21578 with a single topic that 100 stories or more have, by week.  Classifiers
have ten labels a class; seeded topics have the five words of each class whose mean TF-IDF in these
stories exceeds that in the others most.  Models that take a number of topics get two for a class.
A topic stands for the class with which its shares correlate most over stories; the prevalence of a
class is the sum of its topics'.  The table has the mean over classes of its correlation over weeks
with the class's share of the stories (0 without a topic), the root of the mean squared difference,
how many classes have a topic, and words that increase in the week of an event (first seed).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from common import Array, read_lines
from dynamic_events import day_of
from records import Options, Question, Record, grouped, mean_of, tabulate
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import ssnmf_fast as sf

LEAST, LABELS, SEEDS = 100, 10, 5
EVENTS = {"trade": "1987-03-30", "crude": "1987-10-19"}  # duties on chips; attacks in the Gulf
OF_COUNTS = ("SeededTopics", "BayesianNMF", "LDA")
MODELS = ["NMF", "SSNMFClassifier", "FewLabelsClassifier", *OF_COUNTS]
OPTIONS = {"models": MODELS, "seeds": [0, 1, 2]}


@cache
def data() -> tuple[Any, Array, Array, Array]:
    stories = [s for s in read_lines("reuters21578.jsonl.gz") if len(s["topics"]) == 1]
    sizes = Counter(story["topics"][0] for story in stories)
    stories = [story for story in stories if sizes[story["topics"][0]] >= LEAST]
    given: dict[str, Any] = {"max_df": 0.5, "token_pattern": "[a-z]{3,}", "stop_words": "english"}
    vectorizer = CountVectorizer(max_features=5000, **given)
    counts = vectorizer.fit_transform([f"{s['title']} {s['body']}" for s in stories]).astype(float)
    days, y = map(np.array, zip(*((day_of(s), s["topics"][0]) for s in stories), strict=True))
    return counts, vectorizer.get_feature_names_out(), days, y


def make(name: str, T: Any, words: Array, labeled: Array, y: Array, seed: int) -> Any:
    classes, T, known = np.unique(y), T[labeled], y[labeled]
    if name == "SeededTopics":
        more = [np.ravel(T[known == c].mean(axis=0) - T[known != c].mean(axis=0)) for c in classes]
        seeds = [words[np.argsort(-row)[:SEEDS]].tolist() for row in more]
        named = dict(zip(classes.tolist(), seeds, strict=True))
        return sf.SeededTopics(named, feature_names=words, random_state=seed)
    kind = LatentDirichletAllocation if name == "LDA" else getattr(sf, name)
    sized = {} if name == "FewLabelsClassifier" else {"n_components": 2 * len(classes)}
    return kind(random_state=seed, **sized)


def measure(options: Options, name: str, seed: int) -> Record:
    counts, words, days, y = data()
    tfidf = TfidfTransformer().fit_transform(counts)
    classes, of = np.unique(y, return_inverse=True)
    k, order = len(classes), np.random.default_rng(seed).permutation(len(y))
    labeled = np.concatenate([order[of[order] == c][:LABELS] for c in range(k)])
    X, given = counts if name in OF_COUNTS else tfidf, np.full(len(y), None, dtype=object)
    given[labeled] = y[labeled]
    model = make(name, tfidf, words, labeled, y, seed)
    model.fit(X, given) if "Classifier" in name else model.fit(X)
    over = sf.topics_over_time(model, X, days, freq="week", feature_names=words)
    members, at = np.eye(k)[of], np.flatnonzero(over.sizes)
    truth = np.stack([members[over.document_slices == t].mean(axis=0) for t in at])
    with np.errstate(invalid="ignore"):
        alike = np.nan_to_num(np.corrcoef(members.T, over.shares.T)[:k, k:])
        ours = (over.prevalence @ np.eye(k)[alike.argmax(axis=0)])[at]
        over_weeks = np.nan_to_num(np.corrcoef(truth.T, ours.T)[:k, k:].diagonal())
    best = {c: over.terms(t)[int(alike[classes == c].argmax())].terms for c, t in EVENTS.items()}
    result = {"weeks": len(at), "sizes": over.sizes[at].tolist(), "topics": alike.shape[1]}
    result |= {"correlation": over_weeks.mean(), "rmse": ((truth - ours) ** 2).mean() ** 0.5}
    result |= {"found": len({*alike.argmax(axis=0)}), "classes": k}
    return result | {c: ", ".join(terms[:6]) for c, terms in best.items()}


def report(records: list[Record], options: Options) -> str:
    one, means = records[0], ("correlation", "rmse", "found")
    head = f"{sum(one['sizes']):,} stories of {one['classes']} classes in {one['weeks']} weeks"
    rows = [r[0] | {n: mean_of(r, n) for n in means} for r in grouped(records, "model").values()]
    columns = {name: f"{{{name}}}" for name in ("model", "topics", *means, *EVENTS)}
    return f"{head}, {min(one['sizes'])} to {max(one['sizes'])}\n\n{tabulate(rows, **columns)}"


QUESTION = Question("model seed", "models seeds", measure, report)
