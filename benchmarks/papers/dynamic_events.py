"""Which events do topics over time find in dated news, and how well are they dated?

Two collections, each by documents that share their coefficients within a slice, the default (tied),
by the nonnegative CP decomposition of the tensor, by NMF of all documents (each with the squared
error of TF-IDF, and Kullback-Leibler of counts), and by LDA:

- headlines: ABC headlines of February 2003 to December 2015, at most 500 a month (the thesis has
  700 a month to 2019, of the whole collection), 7000 terms, 25 topics (the thesis' chapter 4).
- reuters: Reuters-21578, February to October 1987, by week, 5000 terms, 25 topics.

For each event: the topic among whose ten first terms are most of its words, the peak of this topic,
whether that lies in the months (weeks) of the event, and the share of the topic's prevalence within
three slices around the peak (of an event that comes back: in its months, of all years).  "-" is an
event without a topic.  A seed draws the headlines and the starts; the last table counts seeds.

    python benchmarks/papers/dynamic_events.py --seeds 0 1 2 --out events
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import markdown, new_parser, say, seconds
from dated_news import A_MONTH, SETS, Dated, Event, matrices
from over_time import as_dynamic, save, sklearn_lda

import ssnmf_fast as sf

SHORT = {"tied": "tied", "tensor": "NCPD", "nmf": "NMF"}


class Found(NamedTuple):
    """Terms of every topic, largest first, and the model with its prevalence."""

    terms: list[list[str]]
    model: sf.DynamicTopics


def ours(data: Dated, made: dict[str, Any], method: str, loss: str, seed: int, rank: int) -> Found:
    X = made["counts" if loss == "kullback-leibler" else "tfidf"]
    per_slice = A_MONTH if data.freq == "month" else None
    model = sf.DynamicTopics(
        rank,
        freq=data.freq,
        method=method,
        loss=loss,
        documents_per_slice=None if method == "nmf" else per_slice,
        max_iter=500,
        tol=1e-5,
        random_state=seed,
    ).fit(X, data.times)
    return Found(top_terms(model.components_, made["terms"]), model)


def lda(data: Dated, made: dict[str, Any], seed: int, rank: int, like: Found) -> Found:
    """LDA of scikit-learn; the prevalence is the mean of the documents of a slice."""
    components, shares = sklearn_lda(made["counts"], rank, seed, learning_method="online")
    days = np.array([f"{t[:4]}-{t[4:6]}-{t[6:8]}" if "-" not in t else t for t in data.times])
    starts = like.model.slices_
    place = np.searchsorted(starts, days.astype("datetime64[D]"), side="right") - 1
    return Found(
        top_terms(components, made["terms"]), as_dynamic(components, shares, place, starts)
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
            last = np.datetime64(event.last) + 1  # the first moment after it
            first = np.datetime64(event.first, "D")
            inside = bool(first <= starts[top] < last.astype("datetime64[D]"))
        share = float(values[near].sum() / max(values.sum(), 1e-300))
        key = inside, words, share
        if best is None or key > best[0]:
            best = key, Score(", ".join(terms[:5]), str(starts[top]), inside, share)
    return None if best is None else best[1]


def over_seeds(scores: list[Score | None], digits: int) -> str:
    """Return in how many seeds a topic has its peak in time, when, and the mean share."""
    in_time = [one for one in scores if one is not None and one.in_time]
    late = [one for one in scores if one is not None and not one.in_time]
    if not in_time:
        peaks = ", ".join(sorted({one.peak[:digits] for one in late}))
        return f"no ({peaks})" if late else "-"
    peaks = ", ".join(peak for peak, _ in Counter(s.peak[:digits] for s in in_time).most_common())
    share = np.mean([one.concentration for one in in_time])
    return f"{len(in_time)} of {len(scores)}: {peaks}, {share:.0%}"


def fits(
    name: str, data: Dated, made: dict[str, Any], seed: int, options: argparse.Namespace
) -> dict[str, Found]:
    """Return what every method finds."""
    methods: dict[str, Found] = {}

    def timed(title: str, fit: Callable[[], Found]) -> None:
        took = seconds(lambda: methods.update({title: fit()}))
        say(f"{name}, {title}: {took:.1f} s")

    for method, loss in product(SHORT, ("frobenius", "kullback-leibler")):
        title = f"{SHORT[method]} {loss[0].upper()}"
        timed(title, partial(ours, data, made, method, loss, seed, options.rank))
    if not options.no_lda:
        timed("LDA", partial(lda, data, made, seed, options.rank, methods["NCPD F"]))
    return methods


# Short names of methods -> titles and files of their pictures.
TITLES = {
    "tied F": ("same coefficients in a slice, squared error", "tied_frobenius"),
    "tied K": ("same coefficients in a slice, divergence", "tied_kullback_leibler"),
    "NCPD F": ("tensor, squared error", "tensor_frobenius"),
    "NCPD K": ("tensor, divergence", "tensor_kullback_leibler"),
    "NMF F": ("NMF of all documents, squared error", "nmf"),
    "NMF K": ("NMF of all documents, divergence", "nmf_kullback_leibler"),
    "LDA": ("LDA of all documents", "lda"),
}


def draw(name: str, methods: dict[str, Found], names: Any, folder: Path) -> None:
    """Save a heat map for each method."""
    from matplotlib import pyplot

    from ssnmf_fast import plotting

    collection = {"headlines": "A Million News Headlines", "reuters": "Reuters-21578"}[name]
    for method, found in methods.items():
        title, file = TITLES[method]
        figure, axes = pyplot.subplots(figsize=(10, 6.4))
        plotting.topics_over_time(found.model, names, title=f"{collection}: {title}", ax=axes)
        axes.set_ylabel("")
        save(figure, folder / f"{name}_{file}.png")


def main(arguments: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--only", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--rank", type=int, default=25)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--no-lda", action="store_true", help="LDA takes minutes")
    parser.add_argument("--out", type=Path, help="folder for events.json")
    parser.add_argument("--pictures", type=Path, help="folder for heat maps of the first seed")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    for name in options.only:
        scores: dict[str, dict[str, list[Score | None]]] = {}
        for seed in options.seeds:
            data = SETS[name](seed)
            made = matrices(data)
            methods = fits(name, data, made, seed, options)
            if options.pictures and seed == options.seeds[0]:
                draw(name, methods, made["terms"], options.pictures)
            rows = []
            for event_name, event in data.events.items():
                for title, found in methods.items():
                    scored = score(event, found)
                    scores.setdefault(event_name, {}).setdefault(title, []).append(scored)
                    key = f"{name}: {event_name}: {title}: {seed}"
                    results[key] = scored and scored._asdict()
                    cells = ["-"] * 4
                    if scored is not None:
                        said = "yes" if scored.in_time else "no"
                        cells = [scored.peak, said, f"{scored.concentration:.0%}", scored.terms]
                    rows.append([event_name, title, *cells])
            print(f"{name}, seed {seed}: {len(data.texts):,} texts\n")
            print(markdown(["event", "", "peak", "in time", "share", "terms"], rows), flush=True)
        digits = 7 if data.freq == "month" else 10
        table = [
            [event_name, *(over_seeds(found, digits) for found in by_method.values())]
            for event_name, by_method in scores.items()
        ]
        print(f"{name}, seeds with a peak in time\n")
        print(markdown(["event", *methods], table), flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "events.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
