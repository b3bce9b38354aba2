"""Which terms occur in which documents, or in which sliding windows of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import nfc

_ENTRIES_AT_ONCE = 1 << 20


def of_documents(X: Any, needed: Array) -> sp.csc_array:
    """Return 1 where a document, a row of X, holds a needed term, a column."""
    chosen = sp.csc_array(X[:, needed])
    occurs = sp.csc_array(
        ((chosen.data > 0).astype(np.float64), chosen.indices, chosen.indptr), shape=chosen.shape
    )
    occurs.eliminate_zeros()
    return occurs


def of_windows(
    texts: Iterable[Any], words: Sequence[str], window: int | None
) -> Iterator[sp.csc_array]:
    """Yield, a bounded number of windows at a time, 1 where a window holds a word.

    A window begins at every token that has enough others behind it; a text that is not longer than
    a window, or any text for None, is one window.
    """
    number_of = {nfc(word): number for number, word in enumerate(words)}
    parts: list[tuple[Array, Array]] = []
    n_windows = n_entries = 0
    for place, text in enumerate(_checked(texts)):
        numbers = _numbers(text, place, number_of)
        width = len(numbers) if window is None else window
        last_window = max(len(numbers) - width, 0)
        at = np.flatnonzero(numbers >= 0)
        first = np.maximum(at - width + 1, 0)  # of the windows that hold the token
        counts = np.minimum(at, last_window) - first + 1
        skipped = np.cumsum(counts) - counts
        rows = np.arange(counts.sum()) + np.repeat(first - skipped, counts)
        parts.append((rows + n_windows, np.repeat(numbers[at], counts)))
        n_windows += last_window + 1
        n_entries += len(rows)
        if n_entries > _ENTRIES_AT_ONCE:
            yield _together(parts, n_windows, len(words))
            parts, n_windows, n_entries = [], 0, 0
    if n_windows:
        yield _together(parts, n_windows, len(words))


def _checked(texts: Any) -> Iterable[Any]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TypeError(
            f"texts must be an iterable of sequences of tokens; got {type(texts).__name__}."
        )
    return texts


def _numbers(text: Any, place: int, number_of: dict[str, int]) -> Array:
    """Return the number of every token, -1 for those that are not needed."""
    if isinstance(text, str):
        raise TypeError(
            f"texts[{place}] is a str; expected a sequence of tokens. Give "
            "map(vectorizer.build_analyzer(), texts)."
        )
    try:
        return np.array([number_of.get(nfc(token), -1) for token in text], dtype=np.int64)
    except TypeError as error:
        raise TypeError(
            f"texts[{place}] must be a sequence of tokens; got {text!r:.80}."
        ) from error


def _together(parts: list[tuple[Array, Array]], n_windows: int, n_words: int) -> sp.csc_array:
    places = tuple(np.concatenate(side) for side in zip(*parts, strict=True))
    shape = (n_windows, n_words)
    occurs = sp.coo_array((np.ones(len(places[0])), places), shape=shape).tocsc()
    occurs.data[:] = 1  # a word that a window holds several times counts once
    return occurs
