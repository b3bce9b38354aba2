"""Figures 2 to 5 and Table 1 of the TS-NMF paper: does naming the topics of some texts help?

Topics of a fit are matched one to one with the 90 true ones by weighted Jaccard similarity of the
columns of S and of the labels; the score is the mean similarity, a topic above 0.1 is resolved.
The paper does not say how S is scaled.  Here a topic's weight is the amount of data it explains,
S times the row sums of A, and the rows of S and of the labels sum to 1 ("rows"); a table shows the
other scales.  The paper judges all stories, also those whose labels the fit has seen, where a
supervised S is zero at every wrong topic by construction; hence also the unlabeled ones alone.

The weight 100 is ours; it was chosen on other draws of labels than are reported, of the same
stories.  These are those of Reuters-21578 as the paper prepares it: the 90 topics that occur in
both parts of the ModApte split, the stories of both parts with one of them and with 250 characters
or more; TF-IDF of 2000 terms, every story's row of length 1.  The paper splits words as NLTK's
Treebank tokenizer does and lemmatises them; here a term is three or more letters, as it stands.

PubMed is a sample of 1250 abstracts in place of the paper's 15,320: the headings of at least 20
abstracts (the paper: 100) are the topics, and the abstracts with one of them are the texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Array, D, read_lines, stop_words
from records import Options, Question, Record, grouped, markdown, mean_and_deviation, pivot
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import ssnmf_fast as sf

RATES = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
TITLES = {"all": "all stories (as in the paper)", "unlabeled": "unlabeled stories only"}
SCORE, RESOLVED = 0, 1
SHORTEST, TERMS, QUICK_TOPICS = 250, 2000, 12
LEAST_ABSTRACTS = 20


class Stories(NamedTuple):
    """Documents x terms twice, as TF-IDF and as counts (csr), and their true topics (0 or 1)."""

    X: Any
    counts: Any
    topics: Array
    names: list[str]
    terms: Array


@cache
def reuters_stories() -> Stories:
    stories = read_lines("reuters21578.jsonl.gz")
    names = sorted(_topics_of(stories, "train") & _topics_of(stories, "test"))
    texts, topics = [], []
    for story in stories:
        text = story["title"] + "\n" + story["body"]
        own = [name in story["topics"] for name in names]
        if story["modapte"] != "unused" and any(own) and len(text) >= SHORTEST:
            texts.append(text)
            topics.append(own)
    return _stories(texts, np.array(topics, dtype=np.float64), names)


@cache
def pubmed_abstracts() -> Stories:
    abstracts = read_lines("pubmed_mesh_sample.jsonl.gz")
    counts = Counter(heading for one in abstracts for heading in set(one["mesh"]))
    names = sorted(heading for heading, count in counts.items() if count >= LEAST_ABSTRACTS)
    texts = [one["title"] + "\n" + one["abstract"] for one in abstracts]
    topics = np.array([[name in one["mesh"] for name in names] for one in abstracts], dtype=float)
    long = [len(text) >= SHORTEST for text in texts]
    kept = np.flatnonzero(topics.any(axis=1) & long)
    return _stories([texts[i] for i in kept], topics[kept], names)


def _topics_of(stories: list[dict[str, Any]], part: str) -> set[str]:
    return {topic for story in stories if story["modapte"] == part for topic in story["topics"]}


def random_stories(per_topic: int = 30, words: int = 40, seed: int = 0) -> Stories:
    """Return stories of made-up words; every fourth has two topics, whose words are mixed."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.eye(QUICK_TOPICS), per_topic, axis=0)
    second = rng.integers(QUICK_TOPICS, size=len(topics))
    topics[np.arange(0, len(topics), 4), second[::4]] = 1
    texts = []
    for row in topics:
        sources = rng.choice([-1, *np.flatnonzero(row)], size=words)
        numbers = rng.integers(30, size=words) + 30 * (sources + 1)
        texts.append(" ".join(_word(number) for number in numbers))
    return _stories(texts, topics, [f"topic {k}" for k in range(QUICK_TOPICS)])


def _word(number: int) -> str:
    """Spell a number by letters, three or more, that are no stop word."""
    return "xq" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _stories(texts: list[str], topics: Array, names: list[str]) -> Stories:
    words = stop_words()
    if not isinstance(words, str):  # those that are long enough to be terms
        words = [word for word in words if len(word) >= 3]
    vectorizer = CountVectorizer(token_pattern="[a-zA-Z]{3,}", max_features=TERMS, stop_words=words)
    counts = vectorizer.fit_transform(texts)
    counts.sort_indices()
    tfidf, terms = TfidfTransformer().fit_transform(counts), vectorizer.get_feature_names_out()
    return Stories(tfidf, counts, topics, names, terms)


def labeled_rows(stories: Stories, rate: float, draw: int) -> Array:
    n = len(stories.topics)
    rng = np.random.default_rng([2017, draw, round(1e4 * rate)])
    labeled = np.zeros(n, dtype=bool)
    labeled[rng.choice(n, round(rate * n), replace=False)] = True
    return labeled


SCALES = ("rows", "columns", "none")
# Settled: 60 passes lower the perplexity by 0.2 % more.  scikit-learn's other method, "online",
# leaves a third of the topics unused on these data and scores less.
LDA_PASSES = 30

PAPER, UNWEIGHTED, DIVERGENCE = "TS-NMF", "TS-NMF, weight 1", "TS-NMF, KL"
HEAVY, HEAVY_DIVERGENCE = "TS-NMF, weight 100", "TS-NMF, KL, weight 100"
NMF, SKLEARN_NMF, LDA = "NMF", "NMF, scikit-learn", "LDA, scikit-learn"
# Parameters of TopicSupervisedNMF; the first are the paper's model and weights.
SUPERVISED: dict[str, dict[str, Any]] = {
    PAPER: {},
    UNWEIGHTED: {"labeled_weight": 1.0},
    DIVERGENCE: {"loss": D},
    HEAVY: {"labeled_weight": 100.0},
    HEAVY_DIVERGENCE: {"loss": D, "labeled_weight": 100.0},
}


Fitted = tuple[Array, Array, int]  # weights of topics in documents, their words, iterations


def _nmf(stories: Stories, draw: int) -> Fitted:
    rank = stories.topics.shape[1]
    parameters = {"init": "random-acol", "random_state": draw, "n_threads": 1}
    model = sf.NMF(n_components=rank, **parameters).fit(stories.X)
    A = model.components_
    return model.representation_ * A.sum(axis=1), A, model.n_iter_


def _sklearn_nmf(stories: Stories, draw: int) -> Fitted:
    model = SklearnNMF(stories.topics.shape[1], init="random", random_state=draw)
    S = model.fit_transform(stories.X)
    return S * model.components_.sum(axis=1), model.components_, model.n_iter_


def _lda(stories: Stories, draw: int) -> Fitted:
    options = {"learning_method": "batch", "max_iter": LDA_PASSES, "random_state": draw}
    model = LatentDirichletAllocation(stories.topics.shape[1], **options)
    return model.fit_transform(stories.counts), model.components_, model.n_iter_


UNSUPERVISED = {NMF: _nmf, SKLEARN_NMF: _sklearn_nmf, LDA: _lda}
METHODS = (*SUPERVISED, *UNSUPERVISED)


TABLE_1, EXAMPLES = (0.2, 0.5, 0.8), 5  # its shares of labeled texts, and texts
RIVALS = (NMF, SKLEARN_NMF, LDA)
DATA = {"reuters": reuters_stories, "pubmed": pubmed_abstracts}
OPTIONS = {
    "data": (["reuters"], "", DATA),
    "draws": (5, "of the labeled stories and starts"),
    "lda_draws": (2, "at most: a fit takes minutes"),
    "rates": (RATES, "shares of labeled stories, between 0 and 1"),
    "methods": (list(METHODS), "", METHODS),
}
QUICK = {"draws": 1, "rates": [0.1, 0.5]}


@cache
def stories_of(quick: bool, data: str) -> Stories:
    return random_stories() if quick else DATA[data]()


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    for data, draw in product(options.data, range(options.draws)):
        for method, rate in product(options.methods, options.rates):
            if method != LDA or draw < options.lda_draws:
                yield data, method, rate, draw


@lru_cache(maxsize=2)
def unsupervised(quick: bool, data: str, method: str, draw: int) -> tuple[Array, Array, int, float]:
    """Return one fit for all rates, which sees no labels, and its seconds."""
    stories = stories_of(quick, data)
    begin = perf_counter()
    return *UNSUPERVISED[method](stories, draw), perf_counter() - begin


def example_rows(stories: Stories) -> Array:
    """Return texts of one topic each, of several ones, that Table 1 never sees labeled."""
    seen = np.any([labeled_rows(stories, rate, 0) for rate in TABLE_1], axis=0)
    rows = np.flatnonzero(~seen & (stories.topics.sum(axis=1) == 1))
    _, first = np.unique(stories.topics[rows].argmax(axis=1), return_index=True)
    return rows[np.sort(first)[:EXAMPLES]]


def names_of(stories: Stories, row: int) -> str:
    return ", ".join(stories.names[k] for k in np.flatnonzero(stories.topics[row]))


def judge(S: Array, truth: Array) -> dict[str, list[float]]:
    present = truth[:, truth.any(axis=0)]
    matched = {scale: sf.metrics.match_topics(S, present, normalize=scale) for scale in SCALES}
    return {scale: [found.score, found.n_resolved] for scale, found in matched.items()}


def measure(options: Options, data: str, method: str, rate: float, draw: int) -> Record:
    """Fit one method; the supervised ones see the topics of the labeled stories."""
    stories = stories_of(options.quick, data)
    labeled = labeled_rows(stories, rate, draw)
    if method in UNSUPERVISED:
        S, A, iterations, seconds = unsupervised(options.quick, data, method, draw)
    else:
        begin = perf_counter()
        model = sf.TopicSupervisedNMF(random_state=draw, n_threads=1, **SUPERVISED[method])
        model.fit(stories.X, stories.topics * labeled[:, None])
        A = model.components_
        S = model.representation_ * A.sum(axis=1)
        iterations, seconds = model.n_iter_, perf_counter() - begin
    record: Record = {"iterations": iterations, "seconds": round(seconds, 2)}
    record["coverage"] = float(stories.topics[labeled].any(axis=0).mean())
    record["stories"] = stories.topics.shape
    if draw == 0:  # Table 1: words of the leading topic
        record["examples"] = [
            (names_of(stories, row), " ".join(stories.terms[np.argsort(-A[S[row].argmax()])[:6]]))
            for row in example_rows(stories)
        ]
    for where, rows in (("all", np.ones_like(labeled)), ("unlabeled", ~labeled)):
        record[where] = judge(S[rows], stories.topics[rows])
        if method in SUPERVISED:
            # The mean similarity of every topic with the component of its own name, unmatched.
            present = np.flatnonzero(stories.topics[rows].any(axis=0))
            similarity = sf.metrics.jaccard_similarity(S[rows], stories.topics[rows][:, present])
            same = similarity[present, np.arange(len(present))]
            record[f"named, {where}"] = float(same.mean())
    return record


def margins(records: list[Record], where: str) -> str:
    """Return how many times the best rival's mean score each supervised method reaches."""
    scores = {
        place: [record[where]["rows"][SCORE] for record in own]
        for place, own in grouped(records, "method", "rate").items()
    }

    def cell(own: list[Record]) -> str:
        method, rate = own[0]["method"], own[0]["rate"]
        theirs = [scores[rival, rate] for rival in RIVALS if (rival, rate) in scores]
        if not theirs:
            return ""
        mine = scores[method, rate]
        ratio = np.mean(mine) / max(np.mean(values) for values in theirs)
        above = sum(value > max(map(max, theirs)) for value in mine)
        return f"{ratio:.2f} ({above} of {len(mine)})"

    return pivot([r for r in records if r["method"] in SUPERVISED], "method", "rate", cell)


def scales(records: list[Record]) -> str:
    rows = []
    for method, own in grouped(records, "method").items():
        means = [np.mean([r[w][s] for r in own], axis=0) for w in TITLES for s in SCALES]
        rows.append([method, *(f"{score:.3f} / {resolved:.0f}" for score, resolved in means)])
    return markdown(["method", *(f"{s}, {w}" for w in TITLES for s in SCALES)], rows)


def fits(records: list[Record]) -> str:
    rows = []
    for method, own in grouped(records, "method").items():
        row = [method, f"{np.median([r['iterations'] for r in own]):g}"]
        row.append(f"{np.median([r['seconds'] for r in own]):.1f}")
        for where in TITLES:
            named = [r[f"named, {where}"] for r in own if method in SUPERVISED]
            row.append(f"{np.mean(named):.3f}" if named else "")
        rows.append(row)
    header = ["method", "iterations, median", "seconds, median", "own name, all", "unlabeled"]
    return markdown(header, rows)


def coverage_slope(records: list[Record]) -> str:
    """Figure 5: is a draw that covers more topics nearer to the truth, at the same rate?"""
    rows = []
    for method, own in grouped((r for r in records if r["method"] in SUPERVISED), "method").items():
        pairs = []
        for these in grouped(own, "rate").values():
            values = np.array([[r["coverage"], r["all"]["rows"][SCORE]] for r in these])
            pairs.append(values - values.mean(axis=0))
        x, y = np.concatenate(pairs).T
        varies = x.any() and y.any()
        rows.append([method, str(len(x)), f"{np.corrcoef(x, y)[0, 1]:.2f}" if varies else ""])
    return markdown(["method", "fits", "correlation within rates"], rows)


def examples(records: list[Record]) -> str:
    shown = [r for r in records if "examples" in r and r["method"] in (PAPER, NMF, LDA)]
    if not shown:
        return ""
    rows, first = [], min(r["rate"] for r in shown)
    for record in shown:
        known = record["method"] == PAPER
        if record["rate"] in TABLE_1 if known else record["rate"] == first:
            name = record["method"] + (f", {record['rate']:.0%} labeled" if known else "")
            rows.append([name, *(words for _, words in record["examples"])])
    return markdown(["method", *(names for names, _ in shown[0]["examples"])], rows)


def report(records: list[Record], options: Options) -> str:
    return "\n\n".join(_report(own, name) for name, own in grouped(records, "data").items())


def _report(records: list[Record], name: str) -> str:
    records = sorted(records, key=lambda r: (METHODS.index(r["method"]), r["rate"]))
    documents, topics = records[0]["stories"]
    parts = [f"# TS-NMF, {name}: {documents} texts, {topics} topics, by share of labeled stories"]

    def table(where: str, what: int) -> str:
        def cell(own: list[Record]) -> str:
            values = [record[where]["rows"][what] for record in own]
            return mean_and_deviation(values, digits=3 if what == SCORE else 1)

        draws = {"draws": lambda own: str(max(map(len, grouped(own, "rate").values())))}
        return pivot(records, "method", "rate", cell, **draws)

    for where, title in TITLES.items():
        parts += [f"## {title.capitalize()}", "Similarity score:", table(where, SCORE)]
        parts += ["Resolved topics (similarity above 0.1):", table(where, RESOLVED)]
        if {r["method"] for r in records} & set(RIVALS):
            parts += ["Times the best rival (draws above all of the rivals' draws):"]
            parts += [margins(records, where)]
    rate = min(grouped(records, "rate"), key=lambda rate: abs(rate - 0.2))
    parts += [f"## Scales of S, rate {rate:g} (score / resolved)"]
    parts += [scales([record for record in records if record["rate"] == rate])]
    named = [{**record, "labels": "coverage"} for record in records]
    covered = pivot(
        named, "labels", "rate", lambda own: f"{np.mean([r['coverage'] for r in own]):.2f}"
    )
    parts += ["## Fits, all rates", fits(records), covered]
    parts += ["Figure 5, coverage of topics and similarity of the draws:", coverage_slope(records)]
    parts += ["Table 1, words of the leading topic of unlabeled texts:", examples(records)]
    return "\n\n".join(parts)


QUESTION = Question("data method rate draw", cases, measure, report)
