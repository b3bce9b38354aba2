"""Which events do topics over time find in dated news, and how well are they dated?

Two collections, each by the nonnegative CP decomposition of the tensor (squared error of TF-IDF,
and Kullback-Leibler of counts), by NMF with the same losses, and by LDA:

- headlines: ABC headlines of February 2003 to December 2015, at most 500 a month (the thesis has
  700 a month to 2019, of the whole collection), 7000 terms, 25 topics (the thesis' chapter 4).
- reuters: Reuters-21578, February to October 1987, by week, 5000 terms, 25 topics.

For each event: the topic among whose ten first terms are most of its words, the peak of this topic,
whether that lies in the months (weeks) of the event, and the share of the topic's prevalence within
three slices around the peak.  "-" is an event without a topic.

    python benchmarks/papers/dynamic_events.py --out events
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import markdown, say
from text_sets import _lines

import ssnmf_fast as sf

FIRST, LAST, A_MONTH = 20030201, 20151231, 500


class Event(NamedTuple):
    """Words, of which a topic must have so many, and the first and last slice of the peak."""

    words: tuple[str, ...]
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


def headlines() -> Dated:
    """Return at most 500 headlines of every month, drawn with a seed."""
    lines = [
        line
        for line in _lines("abc_headlines.jsonl.gz")
        if FIRST <= int(line["publish_date"]) <= LAST
    ]
    months = np.array([str(line["publish_date"])[:6] for line in lines])
    rng = np.random.default_rng(0)
    kept = [
        rng.permutation(np.flatnonzero(months == month))[:A_MONTH] for month in np.unique(months)
    ]
    lines = [lines[i] for i in np.sort(np.concatenate(kept))]
    events = {
        "boxing day tsunami": Event(("tsunami", "boxing", "aid"), 1, "2004-12", "2005-01"),
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


def reuters() -> Dated:
    """Return the stories of Reuters-21578 by their date."""
    stories = _lines("reuters21578.jsonl.gz")
    months = {"FEB": "02", "MAR": "03", "APR": "04", "JUN": "06", "OCT": "10"}
    months |= {"MAY": "05", "JUL": "07", "AUG": "08", "SEP": "09"}
    texts, times = [], []
    for story in stories:
        day = str(story["date"]).strip()
        if day[4:5] != "-":  # 26-FEB-1987 15:01:01.79
            number, month, year = day.split()[0].split("-")
            day = f"{year}-{months[month.upper()[:3]]}-{int(number):02d}"
        texts.append(f"{story['title']} {story['body']}")
        times.append(day[:10])
    events = {
        "October crash": Event(
            ("crash", "monday", "black", "plunge", "collapse", "stock", "market"),
            2,
            "1987-10-12",
            "1987-10-25",
        ),
    }
    return Dated(texts, times, "week", 5000, events)


SETS: dict[str, Callable[[], Dated]] = {"headlines": headlines, "reuters": reuters}


def matrices(data: Dated) -> dict[str, Any]:
    """Return counts and TF-IDF of the same terms, and the terms."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    vectorizer = CountVectorizer(
        max_features=data.n_terms, stop_words="english", max_df=0.95, token_pattern=r"[a-z]{3,}"
    )
    counts = vectorizer.fit_transform(data.texts).astype(np.float64)
    names = vectorizer.get_feature_names_out()
    return {"counts": counts, "tfidf": TfidfTransformer().fit_transform(counts), "terms": names}


class Found(NamedTuple):
    """Terms of every topic, largest first, prevalences (slices x topics), beginnings of slices."""

    terms: list[list[str]]
    prevalence: Any
    starts: Any


def ours(data: Dated, made: dict[str, Any], method: str, loss: str, seed: int, rank: int) -> Found:
    X = made["counts" if loss == "kullback-leibler" else "tfidf"]
    per_slice = A_MONTH if data.freq == "month" else None
    model = sf.DynamicTopics(
        rank,
        freq=data.freq,
        method=method,
        loss=loss,
        documents_per_slice=per_slice if method == "tensor" else None,
        max_iter=500,
        tol=1e-5,
        random_state=seed,
    ).fit(X, data.times)
    return Found(top_terms(model.components_, made["terms"]), model.prevalence_, model.slices_)


def lda(data: Dated, made: dict[str, Any], seed: int, rank: int, like: Found) -> Found:
    """LDA of scikit-learn; the prevalence is the mean of the documents of a slice."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(rank, learning_method="online", random_state=seed)
    shares = model.fit_transform(made["counts"])
    days = np.array([f"{t[:4]}-{t[4:6]}-{t[6:8]}" if "-" not in t else t for t in data.times])
    place = np.searchsorted(like.starts, days.astype("datetime64[D]"), side="right") - 1
    sums = np.zeros((len(like.starts), rank))
    np.add.at(sums, place, shares)
    counts = np.bincount(place, minlength=len(sums))
    return Found(
        top_terms(model.components_, made["terms"]),
        sums / np.maximum(counts, 1)[:, None],
        like.starts,
    )


def top_terms(components: Any, names: Any, n: int = 10) -> list[list[str]]:
    return [[str(names[j]) for j in np.argsort(-row)[:n]] for row in components]


class Score(NamedTuple):
    """What became of an event."""

    terms: str
    peak: str
    in_time: bool
    concentration: float


def score(event: Event, found: Found) -> Score | None:
    """Return the score of the topic that has most of the words and is bound to time the most."""
    best: tuple[Any, ...] | None = None
    for q, terms in enumerate(found.terms):
        words = sum(any(term.startswith(word) for term in terms) for word in event.words)
        if words < event.least:
            continue
        values = found.prevalence[:, q]
        top = int(values.argmax())
        share = float(values[max(0, top - 1) : top + 2].sum() / max(values.sum(), 1e-300))
        start = found.starts[top].astype("datetime64[D]")
        first = np.datetime64(event.first, "D")
        last = np.datetime64(event.last) + 1  # the first moment after it
        inside = bool(first <= start < last.astype("datetime64[D]"))
        if event.months:
            inside = int(str(start)[5:7]) in event.months
        key = inside, words, share
        if best is None or key > best[0]:
            best = key, Score(", ".join(terms[:5]), str(start), inside, share)
    return None if best is None else best[1]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--rank", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-lda", action="store_true", help="LDA takes minutes")
    parser.add_argument("--out", help="folder for heat maps and events.json")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    for name in options.only:
        data = SETS[name]()
        made = matrices(data)
        methods: dict[str, Found] = {}
        for method in ("tensor", "nmf"):
            for loss in ("frobenius", "kullback-leibler"):
                begin = time.perf_counter()
                title = f"{'NCPD' if method == 'tensor' else 'NMF'} {loss[0].upper()}"
                methods[title] = ours(data, made, method, loss, options.seed, options.rank)
                say(f"{name}, {title}: {time.perf_counter() - begin:.1f} s")
        if not options.no_lda:
            begin = time.perf_counter()
            like = next(iter(methods.values()))
            methods["LDA"] = lda(data, made, options.seed, options.rank, like)
            say(f"{name}, LDA: {time.perf_counter() - begin:.1f} s")
        rows = []
        for event_name, event in data.events.items():
            for title, found in methods.items():
                scored = score(event, found)
                results[f"{name}: {event_name}: {title}"] = scored and scored._asdict()
                cells = ["-"] * 4
                if scored is not None:
                    said = "yes" if scored.in_time else "no"
                    cells = [scored.peak, said, f"{scored.concentration:.0%}", scored.terms]
                rows.append([event_name, title, *cells])
        print(f"{name}: {len(data.texts):,} texts\n")
        print(markdown(["event", "", "peak", "in time", "within 3 slices", "terms"], rows))
    if options.out:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "events.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
