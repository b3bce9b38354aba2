"""How good are predictions of labels that are parts of others, at every level?

    python benchmarks/trees.py --out trees

`HierarchicalClassifier()` as it comes ("tree"), `FewLabelsClassifier()` on the labels without
parts, whose probabilities are summed ("flat"); a classifier of the top with one for the parts of
each of its labels ("top-down"); and the mean of the logarithms of these two ("mixture").
Newsgroups are parts of the six usual groups, topics of Reuters of its own sets of codes.  With "5
%" all labels are without parts; with "2 %, top 10 %" 2 % are, and of others only the top is known.
Then topics without labels: `topic_tree` next to `NMF` with as many topics as there are groups and
classes; loss of the last level, and mutual information of the largest topic with both.  Results are
appended to files in DIR: started again, the script goes on where it was.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from functools import lru_cache
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from common import Array, load_average, markdown, measure_missing, new_parser, read_records, say
from labeled_sets import TREE_SETS, class_names, labeled, split

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
KEY = ("draw", "data", "labels")
MEASURED = ("loss", "groups", "classes", "seconds")  # of topics
Key = tuple[int, str, str]
_LEAST = 1e-12
last_split = lru_cache(1)(split)


def group_of(name: str) -> str:
    """Return what a class is part of: by the table, or else the beginning of a newsgroup."""
    return GROUP_OF.get(name, name.partition(".")[0])


def top_down(X: Any, X_test: Any, y: Array, top: Any, draw: int, n_classes: int) -> Array:
    """Return probabilities of classes beside the others of their group, (n, k).

    A classifier of a group learns from its labeled samples, and from others that are predicted to
    be of it.  `top` has the group of every class, and predictions of groups.
    """
    import ssnmf_fast as sf

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


def measure(task: Key) -> dict[str, Any]:
    """Return the accuracy of every way among the classes and among their groups."""
    import ssnmf_fast as sf

    draw, name, labels = task
    data, names = last_split(name, draw), np.array(class_names(name))
    paths = np.array([f"{group_of(one)}/{one}" for one in names])
    least, most = LABELS[labels]
    whole = labeled(data.y, least, draw)
    given = np.full(len(data.y), None, dtype=object)
    if most > least:
        upper = labeled(data.y, most, draw)
        given[upper] = [group_of(one) for one in names[data.y[upper]]]
    given[whole] = paths[data.y[whole]]
    model = sf.HierarchicalClassifier(random_state=draw).fit(data.X, given)
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
    return dict(zip(KEY, task, strict=True)) | {"accuracies": accuracies}


def measure_topics(task: tuple[int, str]) -> dict[str, Any]:
    """Return what a tree of topics explains and finds, beside topics of the same numbers."""
    from sklearn.metrics import normalized_mutual_info_score as agreement

    import ssnmf_fast as sf

    draw, name = task
    data, names = last_split(name, draw), class_names(name)
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
    return {"draw": draw, "data": name} | found


def report_topics(records: list[dict[str, Any]]) -> str:
    """Return the table of means over the draws: of the tree and, behind a slash, of NMF."""
    rows = []
    for name in dict.fromkeys(record["data"] for record in records):
        own = [record for record in records if record["data"] == name]
        means = {part: np.mean([one[part] for one in own], axis=0) for part in MEASURED}
        cells = [" / ".join(f"{value:.3f}" for value in means[part]) for part in MEASURED]
        rows.append([name, str(len(own)), *cells])
    return markdown(["data", "draws", *MEASURED], rows)


def key(record: dict[str, Any]) -> Key:
    draw, name, labels = (record[part] for part in KEY)
    return draw, name, labels


def report(records: list[dict[str, Any]]) -> str:
    """Return the table of means over the draws, in percent: classes, then groups."""
    values: Any = defaultdict(lambda: defaultdict(list))
    for record in records:
        for way, pair in record["accuracies"].items():
            values[record["labels"], record["data"]][way].append(pair)
    rows = [
        [name, labels, str(len(by["flat"]))]
        + [
            f"{100 * np.mean([pair[level] for pair in by[way]]):.1f}" if way in by else ""
            for level in (0, 1)
            for way in WAYS
        ]
        for (labels, name), by in values.items()
    ]
    header = ["data", "labels", "draws", *WAYS, *(f"groups: {way}" for way in WAYS)]
    return markdown(header, rows)


def main(arguments: list[str] | None = None) -> None:
    """Run the script."""
    parser = new_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("trees"), help="default: %(default)s")
    parser.add_argument("--data", nargs="+", choices=TREE_SETS, default=list(TREE_SETS))
    parser.add_argument("--labels", nargs="+", choices=LABELS, default=list(LABELS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="digits, one draw")
    options = parser.parse_args(arguments)
    if options.quick:
        options.data, options.draws = ["digits"], 1
    warnings.simplefilter("ignore")  # of convergence, of classes with one member
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.jsonl"
    say(f"load of the last minute: {load_average()}")
    tasks = list(product(range(options.draws), options.data, options.labels))
    measure_missing(tasks, key, measure, path)
    print(report(read_records(path)), end="\n\n")
    path, topics = options.out / "topics.jsonl", list(product(range(options.draws), options.data))
    measure_missing(topics, lambda r: (r["draw"], r["data"]), measure_topics, path, "trees")
    print(report_topics(read_records(path)))


if __name__ == "__main__":
    main()
