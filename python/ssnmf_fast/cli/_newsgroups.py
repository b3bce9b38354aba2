"""The subset of 20 Newsgroups that the papers use: 5 classes of 1796 documents."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import UsageError

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
    posts = _read_posts()
    class_of = {group: name for name, groups in CLASSES.items() for group in groups}
    kept = [(text, class_of[group]) for text, group in posts if group in class_of]
    labels = np.array([name for _, name in kept])
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(labels == name) for name in CLASSES]
    chosen = [rng.choice(one, min(PER_CLASS, len(one)), replace=False) for one in classes]
    order = rng.permutation(np.concatenate(chosen))
    return [_strip(kept[i][0]) for i in order], labels[order]


def tfidf(texts: list[str]) -> tuple[Any, npt.NDArray[Any]]:
    """Return the TF-IDF matrix (csr) of the papers, at most 5000 terms, and its terms."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        token_pattern="[a-zA-Z]+", min_df=5, max_df=0.7, max_features=5000, stop_words="english"
    )
    X = vectorizer.fit_transform(texts)
    return X, vectorizer.get_feature_names_out()


def _read_posts() -> list[tuple[str, str]]:
    path = Path(os.environ.get("SSNMF_FAST_DATA") or "../shared/data") / FILE_NAME
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        return [(record["text"], record["label"]) for record in records]
    return _fetch()


def _fetch() -> list[tuple[str, str]]:
    from sklearn.datasets import fetch_20newsgroups

    try:
        bunch = fetch_20newsgroups(subset="all", shuffle=False)
    except OSError as error:
        raise UsageError(
            f"20 Newsgroups is not here and cannot be downloaded ({error}); put {FILE_NAME} into a "
            "folder and name that folder in SSNMF_FAST_DATA"
        ) from error
    return [(text, bunch.target_names[k]) for text, k in zip(bunch.data, bunch.target, strict=True)]


def _strip(text: str) -> str:
    from sklearn.datasets._twenty_newsgroups import (
        strip_newsgroup_footer,
        strip_newsgroup_header,
        strip_newsgroup_quoting,
    )

    stripped: str = strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(text)))
    return stripped
