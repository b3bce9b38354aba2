"""How good are topics and classes from a few words each, without labels, by us and by others?

20 Newsgroups, counts of at most 25,000 words (scikit-learn's stop words).  Three sets of seeds:

- "20 groups" (the protocol of Prostmaier et al. 2025): posts without headers, footers and quotes;
  of each group the five words whose mean TF-IDF in its training posts exceeds that in the others
  most, the same for all methods;
- "5 groups": whole posts of the groups comp, rec, sci, talk.politics and religion (17,871, as
  X-Class takes them); seeds are the parts of the names of the newsgroups, and nothing else;
- "5 names": the same posts, the name of each of the five and four words that go with it.

Accuracy is that of the posts that are not empty; NPMI is that of the named topics in these posts,
and of `sf.NMF` with as many.  `--labels 3` labels posts of each class too, several draws.
Rivals that are not installed are left out: `python -m pip install tomotopy corextopic seededpf`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import Array, D, F, read_lines, strip
from records import Options, Question, Record, grouped, markdown, say, tabulate
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import f1_score

import ssnmf_fast as sf

N_TERMS = 25_000
N_SEEDS = 5
GROUPS = {
    "comp.": "computer",
    "rec.": "sports",
    "sci.": "science",
    "talk.politics": "politics",
    "alt.atheism": "religion",
    "soc.religion": "religion",
    "talk.religion": "religion",
}
OF_GROUPS = {
    "computer": "computer graphics windows ibm pc mac hardware",
    "sports": "sports autos motorcycles sport baseball hockey",
    "science": "science crypt electronics med space",
    "politics": "politics guns mideast",
    "religion": "religion atheism christian",
}
OF_NAMES = {
    "computer": "computer software windows graphics hardware",
    "sports": "sports game team season player",
    "science": "science space medical electronics research",
    "politics": "politics government president law rights",
    "religion": "religion god christian bible faith",
}
SETS = ("20 groups", "5 groups", "5 names")
RIVALS = ("tomotopy", "corextopic", "seededpf")


class Texts(NamedTuple):
    """Counts (n x m) and their words, the class of each text, and seeds of each class."""

    X: Any
    words: Array
    y: Array
    seeds: dict[str, list[str]]
    texts: list[str]


Answer = tuple[Array, Array | None]  # the class of each text; topics, in the columns of X


def group_of(newsgroup: str) -> str | None:
    """Return the one of the five groups that a newsgroup is in; misc.forsale is in none."""
    return next((name for start, name in GROUPS.items() if newsgroup.startswith(start)), None)


@cache
def texts_of(name: str, most: int | None) -> Texts:
    """Return a set; `most` keeps so many posts."""
    posts = read_lines("20newsgroups.jsonl.gz")
    if most is not None:
        posts = posts[:: len(posts) // most]
    if name == "20 groups":
        texts, y = [strip(post["text"]) for post in posts], [post["label"] for post in posts]
    else:
        pairs = [(post["text"], group_of(post["label"])) for post in posts]
        texts, y = map(list, zip(*[pair for pair in pairs if pair[1]], strict=True))  # type: ignore[assignment]
    vectorizer = CountVectorizer(stop_words="english", max_features=N_TERMS)
    X = sp.csr_array(vectorizer.fit_transform(texts).astype(np.float64))
    words, classes = vectorizer.get_feature_names_out(), np.array(y)
    if name == "20 groups":
        seeds = _typical(X, classes, np.array([post["split"] == "train" for post in posts]), words)
    else:
        given = OF_GROUPS if name == "5 groups" else OF_NAMES
        seeds = {c: [w for w in line.split() if w in words] for c, line in given.items()}
    kept = np.diff(X.indptr) > 0
    return Texts(X[kept], words, classes[kept], seeds, [texts[i] for i in np.flatnonzero(kept)])


def _typical(X: Any, y: Array, training: Array, words: Array) -> dict[str, list[str]]:
    T, known = TfidfTransformer(sublinear_tf=True).fit_transform(X[training]), y[training]
    found = {}
    for c in np.unique(known):
        means = [np.asarray(T[part].mean(axis=0)).ravel() for part in (known == c, known != c)]
        found[str(c)] = [str(words[i]) for i in np.argsort(means[1] - means[0])[:N_SEEDS]]
    return found


def _ours(data: Texts, loss: str, n_free: int = 0, y: Array | None = None) -> Answer:
    X, words = _weighed(data.X, loss), data.words
    model = sf.SeededTopics(data.seeds, n_free_topics=n_free, feature_names=words, loss=loss)
    model.set_params(random_state=0).fit(X, y)
    return model.predict(X), model.components_[: len(data.seeds)]


def _plain(data: Texts, loss: str) -> Answer:
    model = sf.NMF(len(data.seeds), loss=loss, random_state=0).fit(_weighed(data.X, loss))
    return np.full(len(data.y), ""), model.components_


def _weighed(X: Any, loss: str) -> Any:
    return X if loss == D else TfidfTransformer(sublinear_tf=True).fit_transform(X)


def _tomotopy(data: Texts) -> Answer:
    import tomotopy

    names, X = [*data.seeds], data.X
    model = tomotopy.LDAModel(k=len(names), seed=0)
    words = data.words.astype(object)
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        repeats = X.data[begin:end].astype(int)
        model.add_doc(np.repeat(words[X.indices[begin:end]], repeats).tolist())
    for word in {word for seeds in data.seeds.values() for word in seeds}:
        model.set_word_prior(word, [1.0 if word in data.seeds[c] else 0.1 for c in names])
    model.train(1000, workers=1)
    shares = np.array([document.get_topic_dist() for document in model.docs])
    place = {word: i for i, word in enumerate(data.words)}
    A = np.zeros((len(names), len(words)))
    A[:, [place[word] for word in model.used_vocabs]] = [
        model.get_topic_word_dist(k) for k in range(len(names))
    ]
    return np.array(names)[shares.argmax(axis=1)], A


def _corextopic(data: Texts) -> Answer:
    from corextopic import corextopic

    model = corextopic.Corex(n_hidden=len(data.seeds), seed=0)
    binary = sp.csr_matrix(data.X > 0).astype(int)
    words = data.words.tolist()
    model.fit(binary, words=words, anchors=[*data.seeds.values()], anchor_strength=3)
    return np.array([*data.seeds])[model.p_y_given_x.argmax(axis=1)], None


def _seededpf(data: Texts) -> Answer:
    from seededpf import SPF

    vectorizer = CountVectorizer(stop_words="english", max_features=N_TERMS)
    model = SPF(keywords={c: set(seeds) for c, seeds in data.seeds.items()}, residual_topics=0)
    model.read_docs(data.texts, count_vectorizer=vectorizer, batch_size=1024)
    model.model_train(lr=0.1, epochs=150, print_information=False)
    words = model.calculate_topic_word_distributions()  # in place of a list, whose ties are cut
    A = words.reindex(columns=data.words.tolist()).fillna(0).to_numpy()
    return np.array(model.return_topics()[0]), A


METHODS: dict[str, Callable[[Texts], Answer]] = {
    "SeededTopics, counts": lambda data: _ours(data, D),
    "and 5 free topics": lambda data: _ours(data, D, 5),
    "SeededTopics, TF-IDF": lambda data: _ours(data, F),
    "NMF, counts": lambda data: _plain(data, D),
    "NMF, TF-IDF": lambda data: _plain(data, F),
    "tomotopy": _tomotopy,
    "corextopic": _corextopic,
    "seededpf": _seededpf,
}


LABELS = "labels besides"
OPTIONS = {
    "sets": (list(SETS), "", SETS),
    "rivals": ([], "slow", RIVALS),
    "labels": (3, "labels of each class"),
    "draws": (10, "of these labels"),
}
QUICK = {"draws": 1}


def cases(options: Options) -> Iterator[tuple[str, str, int]]:
    rivals = [name for name in options.rivals if find_spec(name) is not None]
    methods = [*(name for name in METHODS if name not in RIVALS), *rivals]
    for name in options.sets:
        yield from ((name, method, 0) for method in methods)
        yield from ((name, LABELS, draw) for draw in range(options.draws))


def measure(options: Options, name: str, method: str, draw: int) -> Record:
    data = texts_of(name, 1000 if options.quick else None)
    if method == LABELS:
        rng = np.random.default_rng(draw)
        y = np.full(len(data.y), None, dtype=object)
        for c in data.seeds:
            y[rng.permutation(np.flatnonzero(data.y == c))[: options.labels]] = c
        hidden = np.array([one is None for one in y])
        predicted, _ = _ours(data, D, y=y)
        return {"right": 100 * float(np.mean(predicted[hidden] == data.y[hidden]))}
    begin = time.perf_counter()
    predicted, A = METHODS[method](data)
    record: Record = {"seconds": time.perf_counter() - begin}
    if A is not None:
        record["coherence"] = sf.metrics.topic_coherence(data.X, A).score
    if predicted[0]:
        classes = np.unique(data.y)
        record["right"] = 100 * float(np.mean(predicted == data.y))
        record["macro"] = 100 * f1_score(data.y, predicted, average="macro", labels=classes)
    say(f"{name}, {method}: {record}")
    return record


def report(records: list[Record], options: Options) -> str:
    columns = {"seeds": "{data}", "method": "{method}", "accuracy": "{right:.1f}"}
    columns |= {"macro F": "{macro:.1f}", "NPMI": "{coherence:.3f}", "seconds": "{seconds:.1f}"}
    table = tabulate([r for r in records if r["method"] != LABELS], **columns)
    labeled = []
    for name, own in grouped([r for r in records if r["method"] == LABELS], "data").items():
        found = [r["right"] for r in own]
        labeled.append([name, f"{np.mean(found):.1f}", f"{min(found):.1f} to {max(found):.1f}"])
    title = f"{options.labels} labels of each class too, {options.draws} draws:"
    return f"{table}\n\n{title}\n\n{markdown(['seeds', 'accuracy', 'least to most'], labeled)}"


QUESTION = Question("data method draw", cases, measure, report, threads=None)
