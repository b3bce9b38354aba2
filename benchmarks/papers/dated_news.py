"""Two collections of dated news, and events that topics over time may find in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from common import read_lines

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


def headlines(seed: int) -> Dated:
    """Return at most 500 headlines of every month, drawn with a seed."""
    lines = [
        line
        for line in read_lines("abc_headlines.jsonl.gz")
        if FIRST <= int(line["publish_date"]) <= LAST
    ]
    months = np.array([str(line["publish_date"])[:6] for line in lines])
    rng = np.random.default_rng(seed)
    kept = [
        rng.permutation(np.flatnonzero(months == month))[:A_MONTH] for month in np.unique(months)
    ]
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


def reuters(seed: int) -> Dated:
    """Return the stories of Reuters-21578 by their date; all of them, whatever the seed."""
    del seed
    stories = read_lines("reuters21578.jsonl.gz")
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
        "tariffs on chips": Event(
            ("chip", "semiconductor", "tariff", "japan"), 2, "1987-03-23", "1987-04-26"
        ),
        "bankruptcy of Texaco": Event(("texaco", "pennzoil"), 2, "1987-04-06", "1987-04-26"),
        "bids for USAir": Event(("usair", "piedmont", "twa"), 2, "1987-03-02", "1987-03-22"),
        "attacks in the Gulf": Event(
            ("iran", "gulf", "platform", "missile"), 2, "1987-10-12", "1987-10-25"
        ),
    }
    return Dated(texts, times, "week", 5000, events)


SETS: dict[str, Callable[[int], Dated]] = {"headlines": headlines, "reuters": reuters}


def matrices(data: Dated) -> dict[str, Any]:
    """Return counts and TF-IDF of the same terms, and the terms."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    vectorizer = CountVectorizer(
        max_features=data.n_terms, stop_words="english", max_df=0.95, token_pattern=r"[a-z]{3,}"
    )
    counts = vectorizer.fit_transform(data.texts).astype(np.float64)
    names = vectorizer.get_feature_names_out()
    return {"counts": counts, "tfidf": TfidfTransformer().fit_transform(counts), "terms": names}
