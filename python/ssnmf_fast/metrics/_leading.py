"""Leading terms of topics: of a dictionary, or as given; and scores of topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import nfc, short
from .._data.border import check_integer
from ._matrices import read_matrix, row_blocks


@dataclass(frozen=True, eq=False)
class TopicScore:
    """Result of :func:`topic_coherence`, :func:`topic_diversity` and :func:`topic_exclusivity`.

    Attributes
    ----------
    score : float
        Score of all topics together.
    per_topic : ndarray of float64, shape (r,)
        Score of every topic.
    """

    score: float
    per_topic: Array


def leading_terms(A: Any, n_terms: Any, least: int) -> list[list[int]]:
    """Return the columns of the largest weights above 0, in falling order, of every row.

    A topic with fewer than the `least` number of them is refused.
    """
    count = check_integer(n_terms, "n_terms", least)
    topics = []
    for _, block in row_blocks(A):
        order = np.argsort(-block, axis=1, kind="stable")[:, :count]
        topics += [best[row[best] > 0].tolist() for row, best in zip(block, order, strict=True)]
    wanted = {1: "one", 2: "two"}[least]
    for topic, chosen in enumerate(topics):
        if len(chosen) < least:
            raise ValueError(
                f"components[{topic}] has {len(chosen)} terms of a weight above 0; expected "
                f"{wanted} or more. Leave the topic out."
            )
    return topics


def read_components(components: Any) -> Any:
    """Return a dictionary, (r, m)."""
    return read_matrix(components, "components", "topics", "terms")


def check_columns(terms: Any, n_features: int) -> list[list[int]]:
    """Return the columns of every topic, as given, or raise a clear error."""
    topics = []
    for number, topic in enumerate(_listed(terms, "integers")):
        name = f"every entry of terms[{number}] (a column of X)"
        topics.append([check_integer(term, name, 0, n_features - 1) for term in topic])
        _check_different(topics[-1], number)
    return topics


def check_words(terms: Any) -> list[list[str]]:
    """Return the words of every topic, as given, or raise a clear error."""
    topics = _listed(terms, "words")
    for number, topic in enumerate(topics):
        for term in topic:
            if not isinstance(term, str):
                raise TypeError(
                    f"every entry of terms[{number}] must be a word, as texts are given; got "
                    f"{short(term)} ({type(term).__name__})."
                )
        _check_different(topic, number)
    return topics


def _listed(terms: Any, entries: str) -> list[list[Any]]:
    if sp.issparse(terms) or isinstance(terms, str):
        raise TypeError(
            f"terms must be a sequence of sequences of {entries}; got {type(terms).__name__}. "
            "Give a dictionary as `components`."
        )
    single = (
        f"terms must be a sequence of sequences of {entries}, one for each topic; for a single "
        "topic give [terms]."
    )
    try:
        given = list(terms)
        topics = [list(topic) for topic in given]
    except TypeError as error:
        raise TypeError(single) from error
    if any(isinstance(topic, str) for topic in given):  # a word is a sequence of letters
        raise TypeError(single)
    if not topics:
        raise ValueError("terms holds no topic; expected at least one.")
    return topics


def _check_different(topic: list[Any], number: int) -> None:
    if len(topic) < 2 or len(set(map(nfc, topic))) < len(topic):
        raise ValueError(
            f"terms[{number}] is {short(topic)}; expected two or more different terms for each "
            "topic."
        )
