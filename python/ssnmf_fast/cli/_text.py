"""TF-IDF of texts, and its storage as JSON (no pickle)."""

from __future__ import annotations

import html
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._read import Table, likely_delimiter
from ._source import UsageError, read_lines

FILE_NAME = "vectorizer.json"
_FORMAT = "ssnmf-fast vectorizer"
_FORMAT_VERSION = 3
TOKENS = r"(?u)\b\w\w+\b"
_DEFAULT_COLUMN = "text"
_ID_COLUMN = "id"
_ENGLISH, _NONE = "english", "none"
# What TOKENS leaves of "don't" and "we'll"; the list of scikit-learn lacks it.
_CONTRACTED = {
    *("ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll"),
    *("mustn", "needn", "shan", "shouldn", "ve", "wasn", "weren", "wouldn"),
}
_SHOWN = 5
_MARKUP = ("strip", "keep")  # what becomes of HTML, in the file


@dataclass(frozen=True)
class Vectorizer:
    """A fitted TF-IDF transformation, and the column that it reads."""

    column: str
    tfidf: Any
    keep_markup: bool

    @property
    def terms(self) -> list[str]:
        """Terms in the order of the columns."""
        return [str(term) for term in self.tfidf.get_feature_names_out()]

    def transform(self, texts: list[str]) -> Any:
        """Return the TF-IDF matrix (csr) of what :func:`read_texts` returns."""
        with warnings.catch_warnings():  # of which the fit has warned
            warnings.filterwarnings("ignore", message="Your stop_words may be inconsistent")
            return self.tfidf.transform(texts)

    def save(self, path: Path) -> None:
        """Write vocabulary and idf as JSON."""
        content = {
            "format": _FORMAT,
            "version": _FORMAT_VERSION,
            "column": self.column,
            "token_pattern": self.tfidf.token_pattern,
            "ngram_range": list(self.tfidf.ngram_range),
            "stop_words": sorted(self.tfidf.get_stop_words() or ()),
            "markup": _MARKUP[self.keep_markup],
            "terms": self.terms,
            "idf": self.tfidf.idf_.tolist(),
        }
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def fit_vectorizer(texts: list[str], column: str, options: Any) -> tuple[Vectorizer, Any]:
    """Return the vectorizer and the TF-IDF matrix (csr) of the texts in a column.

    The texts are those of :func:`read_texts`.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    tfidf = TfidfVectorizer(
        max_features=options.max_features,
        min_df=options.min_df,
        max_df=options.max_df,
        stop_words=_stop_words(options.stop_words, options.encoding),
        token_pattern=options.token_pattern,
        ngram_range=options.ngram,
    )
    try:
        X = tfidf.fit_transform(texts)
    except ValueError as error:
        raise UsageError(
            f"no terms are left of the {len(texts)} texts in column {column!r} with "
            f"--min-df {options.min_df}, --max-df {options.max_df}, --stop-words "
            f"{options.stop_words}, --ngram {','.join(map(str, options.ngram))} and "
            f"--token-pattern {options.token_pattern} ({error})"
        ) from error
    warn_of_empty(X, "nothing is learnt from them; see --min-df, --max-df and --stop-words")
    return Vectorizer(column, tfidf, options.keep_markup), X


def warn_of_empty(X: Any, consequence: str) -> None:
    """Warn of texts without any term of the vocabulary."""
    empty = np.flatnonzero(np.diff(X.indptr) == 0)
    if not len(empty):
        return
    first = ", ".join(map(str, empty[:_SHOWN])) + (", ..." if len(empty) > _SHOWN else "")
    warnings.warn(
        f"{len(empty)} of {X.shape[0]} texts have no known word (sample {first}): {consequence}",
        stacklevel=2,
    )


def load_vectorizer(path: Path) -> Vectorizer:
    """Read what :meth:`Vectorizer.save` wrote."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or content["version"] != _FORMAT_VERSION:
            raise ValueError("another format or version")
        re.compile(content["token_pattern"])
        low, high = content["ngram_range"]
        tfidf = TfidfVectorizer(
            vocabulary=content["terms"],
            token_pattern=content["token_pattern"],
            ngram_range=(int(low), int(high)),
            stop_words=list(content["stop_words"]) or None,
        )
        tfidf.idf_ = np.asarray(content["idf"], dtype=np.float64)
        return Vectorizer(
            str(content["column"]), tfidf, keep_markup=bool(_MARKUP.index(content["markup"]))
        )
    except (KeyError, TypeError, ValueError, RecursionError, re.error) as error:
        raise UsageError(f"{path} is not a vectorizer of `ssnmf-fast fit`: {error}") from error


def text_column(table: Table, given: str | None, *taken: str | None) -> str:
    """Return the name of the column with the text, which is none of those that are taken."""
    if given is not None:
        return given
    others = [name for name in table.columns if name not in taken]
    if _DEFAULT_COLUMN in others:
        return _DEFAULT_COLUMN
    if len(others) == 2 and _ID_COLUMN in others:
        others.remove(_ID_COLUMN)
    if len(others) == 1:
        mark = likely_delimiter(table.source, table.columns)
        if mark is not None:
            warnings.warn(
                f"{table.source} has one column, called {others[0]!r}; if {mark!r} stands between "
                "columns, name it with --delimiter",
                stacklevel=2,
            )
        return others[0]
    raise UsageError(
        f"{table.source} has no column 'text'; name the one to read with --text, one of: "
        + ", ".join(others)
    )


def read_texts(table: Table, column: str, *, keep_markup: bool) -> list[str]:
    """Return the texts of a column; a missing one is empty."""
    texts = ["" if value is None else str(value) for value in table.column(column)]
    return texts if keep_markup else [strip_markup(text) for text in texts]


def ids_of(table: Table, given: str | None, *others: str | None) -> tuple[str, list[Any]] | None:
    """Return name and values of the column that names the samples, if there is one.

    By default this is the column called id, unless it is one of `others`, of text or of labels.
    """
    name = given
    if name is None:
        if _ID_COLUMN not in table.columns or _ID_COLUMN in others:
            return None
        name = _ID_COLUMN
    return name, ["" if value is None else value for value in table.column(name)]


def _stop_words(option: str, encoding: str) -> list[str] | None:
    """Return the words of one list, or of several with commas between."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # A file may have a comma in its name.
    parts = [option] if Path(option).is_file() else [part.strip() for part in option.split(",")]
    if _NONE in parts:
        if len(parts) > 1:
            raise UsageError(f"--stop-words {option}: none goes with no other list")
        return None
    words: set[str] = set()
    for part in parts:
        if part == _ENGLISH:
            words |= ENGLISH_STOP_WORDS | _CONTRACTED
        else:
            words |= {word.lower() for word in read_lines(Path(part), encoding) if word}
    return sorted(words)


# Without the ampersand, which some collections have lost: " #39;s" and "quot;".  Only those that
# are frequent: "see #12;" is about a number.
_BROKEN_ENTITY = re.compile(
    r"(?<![&\w#])(#(?:3[4689]|60|62|1[456]\d|8[12]\d\d)|quot|apos|amp|nbsp|lt|gt);"
)
_ENTITY_DEPTH = 2  # "&amp;quot;" was escaped twice

_ADDRESS = re.compile(
    r"""\b(?:(?:https?|ftp)://|www\.)[^\s<>"']*[^\s<>"'.,:;!?)\]]""", re.IGNORECASE
)
# Only what HTML knows: <stdio.h>, <Key> and <name@host> are part of a text.
_ELEMENTS = (
    "a|abbr|acronym|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button|"
    "canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|"
    "dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|frameset|h[1-6]|head|header|"
    "hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter|nav|"
    "noframes|noscript|object|ol|optgroup|option|output|p|param|picture|pre|progress|q|rp|rt|ruby|"
    "s|samp|script|section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|"
    "tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
# No part reaches beyond the next of its kind, so that the time is linear in the length.
_TAG = re.compile(
    r"<!--(?:(?!<!--).)*?-->"
    r"|<(?P<hidden>script|style)\b[^<>]*>(?:(?!<(?P=hidden)\b).)*?</(?P=hidden)\s*>"
    r"|<[!?][a-z][^<>]*>"
    rf"|</?(?:{_ELEMENTS})(?:\s[^<>]*|/)?>",
    re.IGNORECASE | re.DOTALL,
)


def strip_markup(text: str) -> str:
    """Return a text without entities, tags and addresses; each of the last leaves a space."""
    if ";" in text:  # the characters for which entities stand, as & for ``&amp;``
        for _ in range(_ENTITY_DEPTH):
            text = html.unescape(text)
        text = html.unescape(_BROKEN_ENTITY.sub(r"&\1;", text))
    if "<" in text:
        text = _TAG.sub(" ", text)
    # Most texts have none, which this tells ten times as fast.
    return _ADDRESS.sub(" ", text) if "://" in text or "www." in text.lower() else text
