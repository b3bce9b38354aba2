"""How good are predictions of labels that are parts of others, at every level?

`HierarchicalClassifier()` as it comes ("tree"), `FewLabelsClassifier()` on the labels without
parts, whose probabilities are summed ("flat"); a classifier of the top with one for the parts of
each of its labels ("top-down"); and the mean of the logarithms of these two ("mixture").
Newsgroups are parts of the six usual groups, topics of Reuters of its own sets of codes.  With "5
%" all labels are without parts; with "2 %, top 10 %" 2 % are, and of others only the top is known.
Then topics without labels: `topic_tree`, and `NMF` with as many topics as there are groups and
classes; loss of the last level, and mutual information of the largest topic with both.
"""

from __future__ import annotations

from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from common import Array
from labeled_sets import TREE_SETS, class_names, labeled, split
from records import Options, Question, Record, grouped, markdown
from sklearn.metrics import normalized_mutual_info_score as agreement

import ssnmf_fast as sf

GROUPS = {
    "religion": "alt.atheism soc.religion.christian talk.religion.misc",
    "politics": "talk.politics.guns talk.politics.mideast talk.politics.misc",
    "corporate": "acq earn",
    "money": "interest money-fx",
    "economy": "bop cpi gnp housing income inventories ipi jobs lei money-supply reserves retail "
    "trade wpi",
    "energy": "crude fuel gas heat jet naphtha nat-gas pet-chem propane",
    "commodity": "alum carcass cocoa coffee copper corn cotton f-cattle gold grain hog iron-steel "
    "lead livestock lumber meal-feed nickel oilseed orange platinum plywood potato rice rubber "
    "silver soybean strategic-metal sugar tapioca tea tin veg-oil wheat wool zinc",
    "even": "0 2 4 6 8",  # digits, of the quick run
    "odd": "1 3 5 7 9",
}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names.split()}
LABELS = {"5 %": (0.05, 0.05), "2 %, top 10 %": (0.02, 0.1)}  # shares: without parts, at all
WAYS = ("flat", "top-down", "mixture", "tree")
TOPICS = "none: topics"
OPTIONS = {
    "data": (list(TREE_SETS), "", TREE_SETS),
    "labels": ([*LABELS, TOPICS], "", (*LABELS, TOPICS)),
    "draws": 5,
}
QUICK = {"data": ["digits"], "draws": 1}
MEASURED = ("loss", "groups", "classes", "seconds")  # of topics
_LEAST = 1e-12


def group_of(name: str) -> str:
    """Return what a class is part of: by the table, or else the beginning of a newsgroup."""
    return GROUP_OF.get(name, name.partition(".")[0])


def top_down(X: Any, X_test: Any, y: Array, top: Any, draw: int, n_classes: int) -> Array:
    """Return probabilities of classes beside the others of their group, (n, k)."""
    of_class, guessed = top
    chances = np.zeros((X_test.shape[0], n_classes))
    for group in np.unique(of_class):
        own = np.intersect1d(np.flatnonzero(of_class == group), y)
        if len(own) < 2:
            chances[:, own] = 1
            continue
        rows = np.isin(y, own) | ((y < 0) & (guessed == group))
        model = sf.FewLabelsClassifier(random_state=draw).fit(X[rows], y[rows])
        chances[:, model.classes_] = model.predict_proba(X_test)
    return chances


def measure(options: Options, draw: int, name: str, labels: str) -> Record:
    if labels == TOPICS:
        return measure_topics(draw, name)
    data, names = split(name, draw), np.array(class_names(name))
    paths = np.array([f"{group_of(one)}/{one}" for one in names])
    least, most = LABELS[labels]
    whole = labeled(data.y, least, draw)
    given = np.full(len(data.y), None, dtype=object)
    if most > least:
        upper = labeled(data.y, most, draw)
        given[upper] = [group_of(one) for one in names[data.y[upper]]]
    given[whole] = paths[data.y[whole]]
    model = sf.HierarchicalClassifier(sf.FewLabelsClassifier(random_state=draw)).fit(data.X, given)
    groups, classes = model.levels_
    sums = np.array([[path.startswith(f"{g}/") for g in groups] for path in classes], dtype=float)
    above, last = model.classifiers_
    found = {"flat": last.predict_proba(data.X_test), "tree": model.predict_proba(data.X_test)}
    if most == least:
        codes = np.searchsorted(classes, paths)
        y = np.where(whole, codes[data.y], -1)
        top = sums.argmax(axis=1), np.searchsorted(groups, above.predict(data.X))
        parts = top_down(data.X, data.X_test, y, top, draw, len(classes))
        found["top-down"] = (above.predict_proba(data.X_test) @ sums.T) * parts
        found["mixture"] = np.sqrt((found["flat"] + _LEAST) * (found["top-down"] + _LEAST))
        found["mixture"] /= found["mixture"].sum(axis=1, keepdims=True)
    truth = paths[data.y_test]
    truth_above = np.array([path.partition("/")[0] for path in truth])
    accuracies = {
        way: [
            float(np.mean(classes[chances.argmax(axis=1)] == truth)),
            float(np.mean(groups[(chances @ sums).argmax(axis=1)] == truth_above)),
        ]
        for way, chances in found.items()
    }
    return {"accuracies": accuracies}


def measure_topics(draw: int, name: str) -> Record:
    """Return what a tree of topics explains and finds, beside topics of the same numbers."""
    data, names = split(name, draw), class_names(name)
    groups = np.unique([group_of(one) for one in names], return_inverse=True)[1]
    truths = groups[data.y], data.y
    levels = [len(np.unique(truth)) for truth in truths]
    given: dict[str, Any] = {"loss": "kullback-leibler", "random_state": draw}
    begin = perf_counter()
    tree = sf.trees.topic_tree(data.X, levels, **given)
    middle = perf_counter()
    flat = [sf.NMF(count, **given).fit(data.X) for count in levels]
    found = {"seconds": [middle - begin, perf_counter() - middle]}
    found["loss"] = [m.objective_[-1][1] / flat[1].objective_[-1][1] for m in (tree.model, flat[1])]
    for level, (truth, kind) in enumerate(zip(truths, ("groups", "classes"), strict=True)):
        shares = tree.topic_proportions(data.X, level), flat[level].topic_proportions(data.X)
        found[kind] = [float(agreement(truth, each.argmax(axis=1))) for each in shares]
    return found


def report(records: list[Record], options: Options) -> str:
    def mean(own: list[Record], way: str, level: int) -> str:
        pairs = [r["accuracies"][way][level] for r in own if way in r["accuracies"]]
        return f"{100 * np.mean(pairs):.1f}" if pairs else ""

    rows, topics = [], []
    for (labels, name), own in grouped(records, "labels", "data").items():
        if labels == TOPICS:
            means = [np.mean([r[part] for r in own], axis=0) for part in MEASURED]
            pairs = [" / ".join(f"{value:.3f}" for value in pair) for pair in means]
            topics.append([name, str(len(own)), *pairs])
        else:
            cells = [mean(own, way, level) for level, way in product((0, 1), WAYS)]
            rows.append([name, labels, str(len(own)), *cells])
    header = ["data", "labels", "draws", *WAYS, *(f"groups: {way}" for way in WAYS)]
    return f"{markdown(header, rows)}\n\n{markdown(['data', 'draws', *MEASURED], topics)}"


QUESTION = Question("draw data labels", "draws data labels", measure, report, threads=None)
