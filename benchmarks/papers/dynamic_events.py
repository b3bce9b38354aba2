"""Which events do topics over time find in dated news, and how well are they dated?

Two collections, each by the default (auto), by documents that share their coefficients within a
slice (tied), by the nonnegative CP decomposition of the tensor, by NMF of all documents (each with
the squared error of TF-IDF, and Kullback-Leibler of counts), and by LDA:

- headlines: ABC headlines of February 2003 to December 2015, at most 500 a month (the thesis has
  700 a month to 2019, of the whole collection), 7000 terms, 25 topics (the thesis' chapter 4).
- reuters: Reuters-21578, February to October 1987, by week, 5000 terms, 25 topics.

For each event: the topic among whose ten first terms are most of its words, the peak of this topic,
whether that lies in the months (weeks) of the event, and the share of the topic's prevalence within
three slices around the peak (of an event that comes back: in its months, of all years).  "-" is an
event without a topic.  A seed draws the headlines and the starts; the last table counts seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from common import read_lines, seconds
from over_time import as_dynamic, save, sklearn_lda
from records import Options, Question, Record, grouped, pivot, say, tabulate
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import ssnmf_fast as sf

FIRST, LAST, A_MONTH = 20030201, 20151231, 500
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]


class Event(NamedTuple):
    """Words, how many of them a topic must have, and the first and last slice of the peak."""

    words: Sequence[str]
    least: int
    first: str
    last: str
    months: tuple[int, ...] = ()  # in which a periodic topic may peak, of any year


class Dated(NamedTuple):
    """Texts with dates."""

    texts: list[str]
    times: Any
    freq: str
    n_terms: int
    events: dict[str, Event]


def headlines(seed: int) -> Dated:
    """Return at most 500 headlines of every month, drawn with a seed."""
    lines = read_lines("abc_headlines.jsonl.gz")
    lines = [line for line in lines if FIRST <= int(line["publish_date"]) <= LAST]
    months = np.array([str(line["publish_date"])[:6] for line in lines])
    rng = np.random.default_rng(seed)
    kept = [rng.permutation(np.flatnonzero(months == m))[:A_MONTH] for m in np.unique(months)]
    lines = [lines[i] for i in np.sort(np.concatenate(kept))]
    events = {
        "boxing day tsunami": Event(("tsunami", "boxing"), 1, "2004-12", "2005-01"),
        "swine flu": Event(("swine", "flu"), 2, "2009-04", "2009-08"),
        "2007 election": Event(("election", "rudd", "howard", "poll"), 2, "2007-10", "2007-12"),
        "2010 election": Event(("election", "gillard", "abbott", "poll"), 2, "2010-07", "2010-09"),
        "2013 election": Event(("election", "rudd", "abbott", "poll"), 2, "2013-08", "2013-10"),
        "Melbourne Cup": Event(("cup", "melbourne"), 2, "2003-02", "2015-12", (10, 11)),
        "grand final": Event(("grand", "final"), 2, "2003-02", "2015-12", (9, 10)),
        "budget": Event(("budget", "federal"), 1, "2003-02", "2015-12", (5, 6)),
    }
    texts = [line["headline_text"] for line in lines]
    return Dated(texts, [str(line["publish_date"]) for line in lines], "month", 7000, events)


def day_of(story: dict[str, Any]) -> str:
    """Return the date of a story of Reuters, as 1987-02-26."""
    day = str(story["date"]).strip()
    if day[4:5] != "-":  # 26-FEB-1987 15:01:01.79
        number, month, year = day.split()[0].split("-")
        day = f"{year}-{MONTHS.index(month.upper()[:3]) + 1:02d}-{int(number):02d}"
    return day[:10]


def reuters(seed: int) -> Dated:
    """Return the stories of Reuters-21578 by their date; all of them, whatever the seed."""
    del seed
    stories = read_lines("reuters21578.jsonl.gz")
    texts = [f"{story['title']} {story['body']}" for story in stories]
    times = [day_of(story) for story in stories]
    crash, gulf = "crash monday black plunge collapse stock market", "iran gulf platform missile"
    chips = "chip semiconductor tariff japan"
    events = {
        "October crash": Event(crash.split(), 2, "1987-10-12", "1987-10-25"),
        "tariffs on chips": Event(chips.split(), 2, "1987-03-23", "1987-04-26"),
        "bankruptcy of Texaco": Event(("texaco", "pennzoil"), 2, "1987-04-06", "1987-04-26"),
        "bids for USAir": Event(("usair", "piedmont", "twa"), 2, "1987-03-02", "1987-03-22"),
        "attacks in the Gulf": Event(gulf.split(), 2, "1987-10-12", "1987-10-25"),
    }
    return Dated(texts, times, "week", 5000, events)


def made_up(seed: int) -> Dated:
    """Return short texts of two topics, and of an event in the fifth month, for quick runs."""
    rng = np.random.default_rng(seed)
    months = np.repeat(np.arange(8), 20)
    topics = np.where((months == 4) & (rng.random(160) < 0.6), 2, rng.integers(0, 2, 160))
    words = [f"{topic}{letter}" for topic in ("court", "health", "quake") for letter in "abcdef"]
    texts = [" ".join(words[6 * k + i] for i in rng.integers(0, 6, 12)) for k in topics]
    events = {"earthquake": Event(("quake",), 1, "2004-05", "2004-05")}
    return Dated(texts, [f"2004{month + 1:02d}15" for month in months], "month", 100, events)


SETS: dict[str, Callable[[int], Dated]] = {"headlines": headlines, "reuters": reuters}


OPTIONS = {
    "only": (list(SETS), "", SETS),
    "rank": 25,
    "seeds": [0],
    "no_lda": (False, "LDA takes minutes"),
    "pictures": (False, "heat maps of the first seed, in the folder of --out"),
}
QUICK = {"only": ["headlines"], "rank": 3, "no_lda": True}
METHODS = {"auto": "auto", "tied": "tied", "tensor": "NCPD", "nmf": "NMF"}
LOSSES = {"F": "frobenius", "K": "kullback-leibler"}
# Short names of methods -> titles and files of their pictures.
TITLES = {
    "auto F": ("default, squared error", "auto_frobenius"),
    "auto K": ("default, divergence", "auto_kullback_leibler"),
    "tied F": ("same coefficients in a slice, squared error", "tied_frobenius"),
    "tied K": ("same coefficients in a slice, divergence", "tied_kullback_leibler"),
    "NCPD F": ("tensor, squared error", "tensor_frobenius"),
    "NCPD K": ("tensor, divergence", "tensor_kullback_leibler"),
    "NMF F": ("NMF of all documents, squared error", "nmf"),
    "NMF K": ("NMF of all documents, divergence", "nmf_kullback_leibler"),
    "LDA": ("LDA of all documents", "lda"),
}


class Found(NamedTuple):
    """Terms of every topic, largest first, and the model with its prevalence."""

    terms: list[list[str]]
    model: sf.DynamicTopics


def fits(data: Dated, seed: int, options: Options, names: list[str]) -> dict[str, Found]:
    """Return what every method finds; adds the names of the terms."""
    vectorizer = CountVectorizer(
        max_features=data.n_terms, stop_words="english", max_df=0.95, token_pattern=r"[a-z]{3,}"
    )
    counts = vectorizer.fit_transform(data.texts).astype(np.float64)
    tfidf = TfidfTransformer().fit_transform(counts)
    names += vectorizer.get_feature_names_out().tolist()
    models: dict[str, Any] = {}
    per_slice = A_MONTH if data.freq == "month" else None
    for (method, short), (letter, loss) in product(METHODS.items(), LOSSES.items()):
        given: dict[str, Any] = {"freq": data.freq, "method": method, "loss": loss}
        given |= {"documents_per_slice": None if method == "nmf" else per_slice, "max_iter": 500}
        given |= {"tol": 1e-5, "random_state": seed}
        model = sf.DynamicTopics(options.rank, **given)
        X = counts if letter == "K" else tfidf
        took = seconds(lambda model=model, X=X: model.fit(X, data.times))
        models[f"{short} {letter}"] = model
        say(f"{short} {letter}: {took:.1f} s")
    if not options.no_lda:
        days = np.array([f"{t[:4]}-{t[4:6]}-{t[6:8]}" if "-" not in t else t for t in data.times])
        starts = models["NCPD F"].slices_
        place = np.searchsorted(starts, days.astype("datetime64[D]"), side="right") - 1
        parts = sklearn_lda(counts, options.rank, seed, learning_method="online")
        models["LDA"] = as_dynamic(*parts, place, starts)
    return {
        name: Found([[names[j] for j in np.argsort(-row)[:10]] for row in m.components_], m)
        for name, m in models.items()
    }


def score(event: Event, found: Found) -> Record:
    """Return the score of the topic that has most of the words and is bound to time the most."""
    best: tuple[Any, ...] | None = None
    prevalence, starts = found.model.prevalence_, found.model.slices_.astype("datetime64[D]")
    month_of = np.array([int(str(start)[5:7]) for start in starts])
    for q, terms in enumerate(found.terms):
        words = sum(any(term.startswith(word) for term in terms) for word in event.words)
        if words < event.least:
            continue
        values = prevalence[:, q]
        top = int(values.argmax())
        if event.months:
            near = np.isin(month_of, event.months)
            inside = bool(near[top])
        else:
            near = np.abs(np.arange(len(values)) - top) <= 1
            last = np.datetime64(event.last)
            last += np.timedelta64(1, np.datetime_data(last.dtype))  # the first moment after it
            first = np.datetime64(event.first, "D")
            inside = bool(first <= starts[top] < last.astype("datetime64[D]"))
        share = float(values[near].sum() / max(values.sum(), 1e-300))
        key = inside, words, share
        if best is None or key > best[0]:
            found_here = {"terms": ", ".join(terms[:5]), "peak": str(starts[top])}
            best = key, {**found_here, "in time": inside, "share": share}
    return {} if best is None else best[1]


def over_seeds(scores: list[Record]) -> str:
    """Return in how many seeds a topic has its peak in time, when, and the mean share."""
    digits = 7 if scores[0]["data"] == "headlines" else 10
    in_time = [s for s in scores if s.get("in time")]
    if not in_time:
        peaks = ", ".join(sorted({s["peak"][:digits] for s in scores if "peak" in s}))
        return f"no ({peaks})" if peaks else "-"
    counted = Counter(s["peak"][:digits] for s in in_time).most_common()
    peaks = ", ".join(peak for peak, _ in counted)
    share = np.mean([s["share"] for s in in_time])
    return f"{len(in_time)} of {len(scores)}: {peaks}, {share:.0%}"


def measure(options: Options, data: str, seed: int) -> Record:
    dated, names = (made_up if options.quick else SETS[data])(seed), list[str]()
    found = fits(dated, seed, options, names)
    if options.pictures and options.out and seed == options.seeds[0]:
        draw(data, found, names, options.out)
    pairs = product(dated.events.items(), found.items())
    scores = [
        {"event": event, "method": method, **score(wanted, one)}
        for (event, wanted), (method, one) in pairs
    ]
    return {"texts": len(dated.texts), "scores": scores}


def draw(name: str, methods: dict[str, Found], names: Any, folder: Any) -> None:
    from matplotlib import pyplot

    from ssnmf_fast import plotting

    collection = {"headlines": "A Million News Headlines", "reuters": "Reuters-21578"}[name]
    for method, found in methods.items():
        title, file = TITLES[method]
        figure, axes = pyplot.subplots(figsize=(10, 6.4))
        plotting.topics_over_time(found.model, names, title=f"{collection}: {title}", ax=axes)
        axes.set_ylabel("")
        save(figure, folder / f"{name}_{file}.png")


def report(records: list[Record], options: Options) -> str:
    parts = []
    for data, own in grouped(records, "data").items():
        for record in own:
            parts += [f"{data}, seed {record['seed']}: {record['texts']:,} texts"]
            columns = {"event": "{event}", "": "{method}", "peak": lambda s: s.get("peak", "-")}
            columns["in time"] = lambda s: {True: "yes", False: "no"}.get(s.get("in time"), "-")
            columns["share"] = lambda s: f"{s['share']:.0%}" if "share" in s else "-"
            columns["terms"] = lambda s: s.get("terms", "-")
            parts += [tabulate(record["scores"], **columns)]
        scores = [{"data": data, **score} for record in own for score in record["scores"]]
        parts += [f"{data}, seeds with a peak in time"]
        parts += [pivot(scores, "event", "method", over_seeds)]
    return "\n\n".join(parts)


QUESTION = Question("data seed", "only seeds", measure, report)
