"""Does the method that "auto" takes follow events, trends, seasons and steady topics over time?

Real texts of known groups are put into slices of 20 to 60 texts.  No text is used twice.  A setting
such as "3+4" has 3 groups that are there all the time, in shares that drift (a random walk of their
logarithms), and 4 events: in 2 to 4 slices, with 30 to 50 % of the texts ("small": 1 to 4 slices,
10 to 30 %).  "trends" and "seasons" have eight groups, of which six rise or fall, or four come back
every 12 slices; in "steady" no share changes.  Methods get as many topics as there are groups.
Topics and groups are matched one to one for the largest sum of correlations between the prevalence
of the topic and the group's share of texts, over slices.  The table has the mean correlation of all
groups, and how many of the draws "auto" takes as "tied".

Texts are posts of 20 Newsgroups, and stories of Reuters-21578 with a single topic; 5000 terms.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
from common import Array, read_lines, read_posts, strip
from records import Options, Question, Record, grouped, mean_of, pivot
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf

SETTINGS = ["3+4", "2+4", "3+2", "2+2", "4+4", "3+5small", "trends", "seasons", "steady"]
METHODS = ["auto", "tied", "neighbors", "nmf"]
FEWEST = 330  # texts of a group


@cache
def texts_of(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if name == "made up":
        rng = np.random.default_rng(0)
        for group in range(10):
            words = [f"{'any' if k < 20 else f'group{group}'}word{k}" for k in range(40)]
            found[str(group)] = [" ".join(rng.choice(words, 30)) for _ in range(900)]
    elif name == "newsgroups":
        for text, group in read_posts():
            found.setdefault(group, []).append(strip(text))
    else:
        for story in read_lines("reuters21578.jsonl.gz"):
            if len(story["topics"]) == 1 and len(story["body"]) > 100:
                text = f"{story['title']} {story['body']}"
                found.setdefault(story["topics"][0], []).append(text)
    return dict(sorted(found.items()))


def shares_of(setting: str, rng: np.random.Generator) -> tuple[Array, int]:
    """Return the shares of groups (slices, groups), and the number of groups with many texts."""
    if "+" not in setting:
        shares, t = np.ones((48 if setting == "seasons" else 30, 8)), np.linspace(0, 1, 30)
        if setting == "trends":
            shares[:, :3], shares[:, 3:6] = 0.2 + 1.8 * t[:, None], 2.0 - 1.8 * t[:, None]
        elif setting == "seasons":
            phases = 2 * np.pi * (np.arange(48)[:, None] / 12 + np.arange(4) / 4)
            shares[:, :4] = 1 + 0.9 * np.sin(phases)
        return shares / shares.sum(axis=1, keepdims=True), 8
    n_steady, n_events = int(setting[0]), int(setting[2])
    longest, part = ((1, 5), (0.1, 0.3)) if setting.endswith("small") else ((2, 5), (0.3, 0.5))
    steps = np.cumsum(rng.normal(0, 0.25, (30, n_steady)), axis=0)
    walk = np.exp(steps + rng.normal(0, 0.3, n_steady))
    shares = np.zeros((30, n_steady + n_events))
    shares[:, :n_steady] = walk / walk.sum(axis=1, keepdims=True)
    for event in range(n_steady, n_steady + n_events):
        length, share = rng.integers(*longest), rng.uniform(*part)
        free = [
            first
            for first in range(31 - length)
            if not shares[first : first + length, n_steady:].any()
        ]
        during = slice(first := rng.choice(free), first + length)
        shares[during] *= 1 - share
        shares[during, event] = share
    return shares, n_steady


@lru_cache(1)
def draw(name: str, setting: str, seed: int) -> tuple[Any, Array, Array]:
    """Return documents, their slices, and the share of every group in the texts of a slice."""
    rng = np.random.default_rng([seed, SETTINGS.index(setting)])
    shares, n_large = shares_of(setting, rng)
    texts = texts_of(name)
    large = [group for group in texts if len(texts[group]) >= FEWEST]
    groups = list(rng.choice(large, min(n_large, len(large)), replace=False))
    rest = [group for group in texts if group not in groups and len(texts[group]) >= 90]
    groups += list(rng.choice(rest, shares.shape[1] - len(groups), replace=False))
    left = {group: list(rng.permutation(len(texts[group]))) for group in groups}
    chosen: list[str] = []
    places = []
    for t, share in enumerate(shares):
        for k in rng.choice(len(groups), rng.integers(20, 61), p=share):
            if left[groups[k]]:
                chosen.append(texts[groups[k]][left[groups[k]].pop()])
                places.append((t, k))
    vectorizer = TfidfVectorizer(max_df=0.95, min_df=2, max_features=5000, stop_words="english")
    X = vectorizer.fit_transform(chosen)
    truth = np.zeros((places[-1][0] + 1, len(groups)))  # a setting ends with its texts
    np.add.at(truth, tuple(np.transpose(places)), 1)
    return X, np.array(places)[:, 0], truth / np.maximum(truth.sum(axis=1, keepdims=True), 1)


def measure(options: Options, name: str, setting: str, seed: int, method: str) -> Record:
    X, slices, truth = draw(name, setting, seed)
    groups = truth.shape[1]
    model = sf.DynamicTopics(groups, method=method, random_state=seed)  # type: ignore[arg-type]
    prevalence = model.fit(X, np.datetime64("2000-01") + slices).prevalence_
    with np.errstate(invalid="ignore"):
        alike = np.nan_to_num(np.corrcoef(truth.T, prevalence.T)[:groups, groups:])
    found = alike[linear_sum_assignment(alike, maximize=True)].mean()
    return {"found": float(found), "tied": model.method_ == "tied"}


def report(records: list[Record], options: Options) -> str:
    def taken(own: list[Record]) -> str:
        own = [record for record in own if record["method"] == "auto"]
        return f"{sum(record['tied'] for record in own)} of {len(own)}"

    table = pivot(
        records, "data setting", "method", lambda own: mean_of(own, "found"), **{"as tied": taken}
    )
    means = {
        name: np.mean([record["found"] for record in own])
        for name, own in grouped(records, "method").items()
    }
    return f"{table}\n\n" + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())


OPTIONS = {
    "sets": ["newsgroups", "reuters"],
    "settings": (SETTINGS, "", SETTINGS),
    "seeds": list(range(100, 105)),
}
QUICK = {"sets": ["made up"], "settings": ["3+2"], "seeds": [0]}
QUESTION = Question(
    "data setting seed method",
    lambda o: product(o.sets, o.settings, o.seeds, METHODS),
    measure,
    report,
    threads=None,
)
