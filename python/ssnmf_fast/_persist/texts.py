"""Vectorizers of texts as JSON files, without pickled objects."""

from __future__ import annotations

import html
import json
import os
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from .._common.saved import as_declared
from .._common.text import nfc

VECTORIZER_NAME = "vectorizer.json"
_FORMAT = "ssnmf-fast vectorizer"
_FORMAT_VERSION = 3
_MARKUP = ("strip", "keep")  # what is done with HTML


class _Content(TypedDict):
    format: str
    version: int
    column: str
    token_pattern: str
    ngram_range: tuple[int, int]
    stop_words: list[str]
    markup: str
    terms: list[str]
    idf: list[float]


def load_vectorizer(path: str | os.PathLike[str]) -> Any:
    """Load the vectorizer of ``ssnmf-fast fit``, for use in Python.

    Parameters
    ----------
    path : str or path
        Folder of results, or its ``vectorizer.json``.

    Returns
    -------
    sklearn.feature_extraction.text.TfidfVectorizer
        With the vocabulary and the inverse document frequencies of the fit.  It prepares texts like
        the command: in the form NFC, without tags and web addresses unless these were kept.

    Raises
    ------
    FileNotFoundError
        If there is no such file: a fit of a matrix has no vectorizer.
    ValueError
        If the file is not a vectorizer.

    See Also
    --------
    load : The model of the same folder.

    Examples
    --------
    >>> import ssnmf_fast as sf
    >>> vectorizer = sf.io.load_vectorizer("results")  # doctest: +SKIP
    >>> model = sf.load("results")  # doctest: +SKIP
    >>> new = ["the team won the game"]
    >>> model.predict(vectorizer.transform(new))  # doctest: +SKIP
    """
    file = Path(path)
    _, tfidf, keep_markup = read_vectorizer(file / VECTORIZER_NAME if file.is_dir() else file)
    return tfidf.set_params(preprocessor=_lowered if keep_markup else _stripped)


def _lowered(text: str) -> str:
    return str(nfc(text)).lower()


def _stripped(text: str) -> str:
    return _lowered(strip_markup(text))


@cache
def word_pattern() -> str:
    """Return the regular expression of a word: two or more letters, digits or underscores.

    As in scikit-learn, but with joiners and combining marks, which Python does not count as
    letters: vowel signs of Hindi, points of Hebrew, accents without a letter in the form NFC.
    """
    ranges: list[list[str]] = []
    between = False
    for character in map(chr, (*range(0x20000), *range(0xE0100, 0xE01F0))):
        kind = unicodedata.category(character)[0]
        if kind == "M" and between:
            ranges[-1][1] = character
        elif kind == "M":
            ranges.append([character, character])
        between = kind in "MLN" and (between or kind == "M")
    marks = "".join(f"{first}-{last}" for first, last in ranges)
    part, joiners = rf"[\w{marks}]+", "[\u200c\u200d]+"
    return rf"\w{part}(?:{joiners}{part})*"


def write_vectorizer(path: Path, column: str, tfidf: Any, keep_markup: bool) -> None:
    """Write vocabulary and idf of a fitted TfidfVectorizer, and the column that it reads."""
    content = {
        "format": _FORMAT,
        "version": _FORMAT_VERSION,
        "column": column,
        "token_pattern": tfidf.token_pattern,
        "ngram_range": list(tfidf.ngram_range),
        "stop_words": sorted(tfidf.get_stop_words() or ()),
        "markup": _MARKUP[keep_markup],
        "terms": [str(term) for term in tfidf.get_feature_names_out()],
        "idf": tfidf.idf_.tolist(),
    }
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8", "backslashreplace")


def read_vectorizer(path: Path) -> tuple[str, Any, bool]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or content["version"] != _FORMAT_VERSION:
            raise ValueError("another format or version")
        content = as_declared(content, _Content, "it")
        re.compile(content["token_pattern"])
        low, high = content["ngram_range"]
        tfidf = TfidfVectorizer(
            vocabulary=content["terms"],
            token_pattern=content["token_pattern"],
            ngram_range=(low, high),
            stop_words=content["stop_words"] or None,
        )
        tfidf.idf_ = np.asarray(content["idf"], dtype=np.float64)
        if not 1 <= low <= high or not np.isfinite(tfidf.idf_).all():
            raise ValueError("numbers out of range")
        return content["column"], tfidf, bool(_MARKUP.index(content["markup"]))
    except (KeyError, TypeError, ValueError, RecursionError, re.error) as error:
        raise ValueError(f"{path} is not a vectorizer of `ssnmf-fast fit`: {error}") from error


# Without the ampersand, which some collections have lost: " #39;s" and "quot;".  Only frequent
# entities: "see #12;" is about a number.
_BROKEN_ENTITY = re.compile(
    r"(?<![&\w#])(#(?:3[4689]|60|62|1[456]\d|8[12]\d\d)|quot|apos|amp|nbsp|lt|gt);"
)
_ENTITY_DEPTH = 2  # "&amp;quot;" was escaped twice

_ADDRESS = re.compile(
    r"""\b(?:(?:https?|ftp)://|www\.)[^\s<>"']*[^\s<>"'.,:;!?)\]]""", re.IGNORECASE
)
# Only elements of HTML: <stdio.h>, <Key> and <name@host> are part of a text.
_ELEMENTS = (
    "a|abbr|acronym|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button|"
    "canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|"
    "dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|frameset|h[1-6]|head|header|"
    "hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter|nav|"
    "noframes|noscript|object|ol|optgroup|option|output|p|param|picture|pre|progress|q|rp|rt|ruby|"
    "s|samp|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|"
    "tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
# No part extends beyond the next part of its kind, so that the time is linear in the length.
_TAG = (
    r"(?is)<!--(?:(?!<!--).)*?-->"
    r"|<(?P<hidden>script|style)\b[^<>]*>(?:(?!<(?P=hidden)\b).)*?</(?P=hidden)\s*>"
    r"|<[!?][a-z][^<>]*>"
    rf"|</?(?:{_ELEMENTS})(?:\s[^<>]*|/)?>"
)


@cache
def _tag() -> re.Pattern[str]:
    """Return the pattern of a tag; compiling it takes longer than the rest of an import."""
    return re.compile(_TAG)


def strip_markup(text: str) -> str:
    """Return a text with entities decoded, and with a space for each tag and web address."""
    if ";" in text:  # decode entities, such as ``&amp;``
        for _ in range(_ENTITY_DEPTH):
            text = html.unescape(text)
        text = html.unescape(_BROKEN_ENTITY.sub(r"&\1;", text))
    if "<" in text:
        text = _tag().sub(" ", text)
    # Most texts have none; this check is ten times as fast.
    return _ADDRESS.sub(" ", text) if "://" in text or "www." in text.lower() else text
