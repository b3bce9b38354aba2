"""The subset of 20 Newsgroups that the papers use: 5 classes of 1796 documents."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

CLASSES = {
    "Computers": ("comp.graphics", "comp.sys.mac.hardware", "comp.windows.x"),
    "Sciences": ("sci.crypt", "sci.electronics", "sci.space"),
    "Politics": ("talk.politics.guns", "talk.politics.mideast"),
    "Religion": ("alt.atheism", "soc.religion.christian"),
    "Recreation": ("rec.autos", "rec.sport.baseball", "rec.sport.hockey"),
}
PER_CLASS = 1796
FILE_NAME = "20newsgroups.jsonl.gz"


def load_subset(seed: int = 0) -> tuple[list[str], npt.NDArray[np.str_]]:
    """Return the 8980 texts, without headers, footers and quotes, and their classes.

    They are read from the folder ``$SSNMF_FAST_DATA`` (default ``../shared/data``) if the file is
    there, else by scikit-learn's fetcher, which downloads it once.  The seed is that of the draw of
    1796 documents from each class, and of their order.
    """
    posts = read_posts()
    class_of = {group: name for name, groups in CLASSES.items() for group in groups}
    kept = [(text, class_of[group]) for text, group in posts if group in class_of]
    labels = np.array([name for _, name in kept])
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(labels == name) for name in CLASSES]
    chosen = [rng.choice(one, min(PER_CLASS, len(one)), replace=False) for one in classes]
    order = rng.permutation(np.concatenate(chosen))
    return [strip(kept[i][0]) for i in order], labels[order]


def read_posts() -> list[tuple[str, str]]:
    """Return all posts and the group of each."""
    path = Path(os.environ.get("SSNMF_FAST_DATA") or "../shared/data") / FILE_NAME
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        return [(record["text"], record["label"]) for record in records]
    from sklearn.datasets import fetch_20newsgroups

    bunch = fetch_20newsgroups(subset="all", shuffle=False)
    return [(text, bunch.target_names[k]) for text, k in zip(bunch.data, bunch.target, strict=True)]


def strip(text: str) -> str:
    """Return a post without header, footer and quotes."""
    from sklearn.datasets._twenty_newsgroups import (
        strip_newsgroup_footer,
        strip_newsgroup_header,
        strip_newsgroup_quoting,
    )

    stripped: str = strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(text)))
    return stripped
