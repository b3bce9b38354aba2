"""Labeled data for :mod:`few_labels`: random splits, and draws of labeled samples.

The files come from $SSNMF_FAST_DATA; digits come with scikit-learn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array, data_file, read_lines, read_posts, strip
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

FIVE_GROUPS = ("comp.graphics", "rec.sport.hockey", "sci.med", "sci.space", "talk.politics.mideast")
# Groups that share most of their words: topics alone hardly tell them apart.
COMPUTER_GROUPS = (
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
)
RELIGION_GROUPS = ("alt.atheism", "soc.religion.christian", "talk.religion.misc")
MOST_TERMS = 10_000
TEST_SHARE = 0.3
MNIST_TRAINING, MNIST_TEST = 10_000, 3_000


@dataclass(frozen=True)
class Split:
    """Training and test samples with codes of their classes, or indicators of their labels.

    `training` and `test` are their places among all samples of the set.
    """

    X: Any
    y: Array
    X_test: Any
    y_test: Array
    training: Array
    test: Array

    @property
    def several(self) -> bool:
        return self.y.ndim == 2


def _posts(groups: Any = None, clean: Callable[[str], str] = strip) -> tuple[list[str], Array]:
    posts = [post for post in read_posts() if groups is None or post[1] in groups]
    return [clean(text) for text, _ in posts], np.array([group for _, group in posts])


def _articles() -> tuple[list[str], Array]:
    first = {a["body"]: a for a in reversed(read_lines("bbc_news.jsonl.gz"))}  # without repeats
    texts = [f"{a['title']}\n{a['body']}" for a in first.values()]
    return texts, np.array([a["label"] for a in first.values()])


def _stories() -> list[dict[str, Any]]:
    return [
        s for s in read_lines("reuters21578.jsonl.gz") if s["modapte"] != "unused" and s["topics"]
    ]


def _largest_topics(count: int) -> tuple[list[str], Array]:
    """Stories with one topic, of those that are largest so."""
    stories = [s for s in _stories() if len(s["topics"]) == 1]
    largest = {t for t, _ in Counter(s["topics"][0] for s in stories).most_common(count)}
    stories = [s for s in stories if s["topics"][0] in largest]
    texts = [f"{s['title']}\n{s['body']}" for s in stories]
    return texts, np.array([s["topics"][0] for s in stories])


def _indicated(
    texts: list[str], labels: list[list[str]], names: list[str]
) -> tuple[list[str], Array]:
    """Return the texts with one of the names, and indicators of these."""
    Y = np.array([[name in own for name in names] for own in labels], dtype=np.int64)
    kept = Y.any(axis=1)
    return [text for text, keep in zip(texts, kept, strict=True) if keep], Y[kept]


def _all_topics() -> tuple[list[str], Array]:
    """Stories, and indicators of the topics with 20 stories or more."""
    stories = _stories()
    counts = Counter(t for s in stories for t in s["topics"])
    names = sorted(t for t, count in counts.items() if count >= 20)
    texts = [f"{s['title']}\n{s['body']}" for s in stories]
    return _indicated(texts, [s["topics"] for s in stories], names)


def _abstracts() -> tuple[list[str], Array]:
    """Abstracts, and indicators of the roots of the MeSH tree."""
    lines = read_lines("pubmed_mesh_sample.jsonl.gz")
    texts = [f"{a['title']}\n{a['abstract']}" for a in lines]
    roots = [a["roots"] for a in lines]
    return _indicated(texts, roots, sorted({root for own in roots for root in own}))


def _short_texts(name: str) -> tuple[list[str], Array]:
    texts = [t for t in read_lines("short_texts.jsonl.gz") if t["set"] == name]
    rows = np.random.default_rng(0).permutation(len(texts))[:_MOST_SHORT]
    return [texts[i]["text"] for i in rows], np.array([texts[i]["label"] for i in rows])


def _first_lines(texts: list[str], y: Array) -> tuple[list[str], Array]:
    """Keep the titles of texts."""
    return [text.split("\n")[0] for text in texts], y


def _subjects() -> tuple[list[str], Array]:
    """Subjects of posts, and their groups."""
    posts = [
        (re.search(r"(?m)^Subject: (?:Re: )*(.+)$", text), group) for text, group in read_posts()
    ]
    found = [(subject[1], group) for subject, group in posts if subject]
    return [subject for subject, _ in found], np.array([group for _, group in found])


def _uneven(texts: list[str], y: Array) -> tuple[list[str], Array]:
    """Keep of the first class all samples, of the second half of them, of the third a third..."""
    places = np.unique(y, return_inverse=True)[1]
    kept = np.flatnonzero(np.random.default_rng(0).random(len(y)) < 1 / (1 + places))
    return [texts[i] for i in kept], y[kept]


SHORT_SETS = ("SearchSnippets", "DBLP", "StackOverflow", "TREC")
_MOST_SHORT = 6000
_TEXTS: dict[str, Callable[[], tuple[list[str], Array]]] = {
    "5 newsgroups": lambda: _posts(FIVE_GROUPS),
    "20 newsgroups": _posts,
    "20 newsgroups whole": lambda: _posts(clean=str),
    "BBC": _articles,
    "Reuters 10": lambda: _largest_topics(10),
    "Reuters 30": lambda: _largest_topics(30),
    "Reuters 27": lambda: _largest_topics(27),
    "Reuters 27 titles": lambda: _first_lines(*_largest_topics(27)),
    "BBC titles": lambda: _first_lines(*_articles()),
    "20 newsgroups subjects": _subjects,
    "20 newsgroups uneven": lambda: _uneven(*_posts()),
    **{name: lambda name=name: _short_texts(name) for name in SHORT_SETS},
    "comp groups": lambda: _posts(COMPUTER_GROUPS),
    "religion groups": lambda: _posts(RELIGION_GROUPS),
    "earn or acq": lambda: _largest_topics(2),
    "Reuters all": _all_topics,
    "PubMed": _abstracts,
}
TEXT_SETS = ("5 newsgroups", "20 newsgroups", "BBC", "Reuters 10")
CLOSE_SETS = ("comp groups", "religion groups", "earn or acq")
DESIGN_SETS = (
    *("earn or acq", "religion groups", "DBLP", "BBC", "BBC titles", "TREC", "SearchSnippets"),
    *("Reuters 10", "20 newsgroups", "20 newsgroups uneven", "20 newsgroups subjects"),
    *("StackOverflow", "Reuters 27", "Reuters 27 titles", "digits"),
)
IMAGE_SETS = ("digits", "MNIST")
SEVERAL_SETS = ("Reuters all", "aviation", "PubMed")
# With headers, footers and quotes, and with rare topics: of trees of labels only.
TREE_SETS = ("20 newsgroups", "20 newsgroups whole", "Reuters 10", "Reuters 30")
ALL_SETS = (*TEXT_SETS, *CLOSE_SETS, *IMAGE_SETS, *SEVERAL_SETS)


@cache
def _counted(name: str) -> tuple[Any, Array]:
    texts, y = _TEXTS[name]()
    X = CountVectorizer(stop_words="english", min_df=2).fit_transform(texts)
    return sp.csr_array(X.astype(np.float64)), y


@cache
def _matrix(name: str) -> tuple[Any, Array]:
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / 16, y
    if name == "MNIST":
        data = np.load(data_file("mnist_train.npz"))
        return data["images"].reshape(-1, 784), data["labels"].astype(np.int64)
    data = np.load(data_file("aviation_tmc2007_500.npz"))
    indptr, indices = data["indptr"], data["indices"]
    X = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=tuple(data["shape"]))
    kept = np.diff(indptr) > 0
    return X[kept], data["labels"].astype(np.int64)[kept]


@lru_cache(1)
def split(name: str, draw: int) -> Split:
    """Return a random split; terms and their weights are those of the training texts."""
    text = name in _TEXTS
    X, y = _counted(name) if text else _matrix(name)
    order = np.random.default_rng(draw).permutation(len(y))
    if name == "MNIST":
        order = order[: MNIST_TRAINING + MNIST_TEST]
        n_test = MNIST_TEST
    else:
        n_test = round(TEST_SHARE * len(y))
    test, training = np.sort(order[:n_test]), np.sort(order[n_test:])
    X, X_test = X[training], X[test]
    if name == "MNIST":
        X, X_test = X / 255.0, X_test / 255.0
    if text:
        documents = np.asarray((X > 0).sum(axis=0)).ravel()
        usable = (documents >= 2) & (documents <= 0.7 * len(training))
        sums = np.where(usable, np.asarray(X.sum(axis=0)).ravel(), -1)
        terms = np.sort(np.argsort(-sums, kind="stable")[: min(MOST_TERMS, int(usable.sum()))])
        weigh = TfidfTransformer().fit(X[:, terms])
        X, X_test = (sp.csr_array(weigh.transform(part[:, terms])) for part in (X, X_test))
        kept, kept_test = np.diff(X.indptr) > 0, np.diff(X_test.indptr) > 0
        X, X_test = X[kept], X_test[kept_test]
        training, test = training[kept], test[kept_test]
    if y.ndim == 1:
        y = np.unique(y, return_inverse=True)[1]
    return Split(X, y[training], X_test, y[test], training, test)


def class_names(name: str) -> list[str]:
    _, y = _counted(name) if name in _TEXTS else _matrix(name)
    return [str(one) for one in np.unique(y)]


def texts_of(name: str) -> list[str]:
    return _TEXTS[name]()[0]


def labeled(y: Array, amount: float, draw: int) -> Array:
    """Return which samples are labeled, (n,), at random and some of each class.

    An amount up to 1 is a share of the samples, a larger one a number of samples for each class.
    """
    chosen = np.zeros(len(y), dtype=bool)
    if amount == 1:
        return ~chosen
    rng = np.random.default_rng([draw, round(1000 * amount)])
    order = rng.permutation(len(y))
    each = 1 if amount < 1 else round(amount)
    if y.ndim == 1:
        members = [order[np.flatnonzero(y[order] == c)[:each]] for c in np.unique(y)]
    else:
        members = [order[np.flatnonzero(y[order, c])[:each]] for c in np.flatnonzero(y.any(axis=0))]
    chosen[np.concatenate(members)] = True
    if amount < 1:
        rest = order[~chosen[order]]
        chosen[rest[: max(0, round(amount * len(y)) - int(chosen.sum()))]] = True
    return chosen
