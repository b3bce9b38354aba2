"""TF-IDF of texts, and its storage as JSON (no pickle)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import UsageError
from ._read import Table, read_lines

FILE_NAME = "vectorizer.json"
_FORMAT = "ssnmf-fast vectorizer"
_FORMAT_VERSION = 1
_TOKENS = r"(?u)\b\w\w+\b"
_DEFAULT_COLUMN = "text"


@dataclass(frozen=True)
class Vectorizer:
    """A fitted TF-IDF transformation, the column that it reads, and a factor of all values."""

    column: str
    tfidf: Any
    scale: float = 1.0

    @property
    def terms(self) -> list[str]:
        """Terms in the order of the columns."""
        return [str(term) for term in self.tfidf.get_feature_names_out()]

    def transform(self, texts: list[str]) -> Any:
        """Return the TF-IDF matrix (csr) of texts."""
        return self.tfidf.transform(texts) * self.scale

    def save(self, path: Path) -> None:
        """Write vocabulary and idf as JSON."""
        content = {
            "format": _FORMAT,
            "version": _FORMAT_VERSION,
            "column": self.column,
            "token_pattern": self.tfidf.token_pattern,
            "terms": self.terms,
            "idf": self.tfidf.idf_.tolist(),
            "scale": self.scale,
        }
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def fit_vectorizer(
    texts: list[str], column: str, options: Any, as_counts: bool = False
) -> tuple[Vectorizer, Any]:
    """Return the vectorizer and the TF-IDF matrix (csr) of the texts.

    Parameters
    ----------
    texts : list of str
    column : str
        Where the texts come from.
    options : argparse.Namespace
        With max_features, min_df, max_df and stop_words.
    as_counts : bool
        Whether to scale the matrix so that its sum is the number of words.  TF-IDF alone gives a
        text the length 1, and so the say of a few words in a model of counts.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    tfidf = TfidfVectorizer(
        max_features=options.max_features,
        min_df=options.min_df,
        max_df=options.max_df,
        stop_words=_stop_words(options.stop_words),
        token_pattern=_TOKENS,
    )
    try:
        X = tfidf.fit_transform(texts)
    except ValueError as error:
        raise UsageError(
            f"no terms are left of the {len(texts)} texts in column {column!r} with "
            f"--min-df {options.min_df}, --max-df {options.max_df} and --stop-words "
            f"{options.stop_words} ({error})"
        ) from error
    scale = _words(tfidf, texts) / float(X.sum()) if as_counts else 1.0
    return Vectorizer(column, tfidf, scale), X * scale


def _words(tfidf: Any, texts: list[str]) -> float:
    """Return the number of words of the vocabulary in the texts."""
    from sklearn.feature_extraction.text import CountVectorizer

    return float(CountVectorizer.transform(tfidf, texts).sum())


def load_vectorizer(path: Path) -> Vectorizer:
    """Read what :meth:`Vectorizer.save` wrote."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or content["version"] != _FORMAT_VERSION:
            raise ValueError("another format or version")
        tfidf = TfidfVectorizer(vocabulary=content["terms"], token_pattern=content["token_pattern"])
        tfidf.idf_ = np.asarray(content["idf"], dtype=np.float64)
        return Vectorizer(str(content["column"]), tfidf, float(content.get("scale", 1.0)))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is not a vectorizer of `ssnmf-fast fit`: {error}") from error


def text_column(table: Table, given: str | None, labels: str | None = None) -> str:
    """Return the name of the column with the text."""
    if given is not None:
        return given
    others = [name for name in table.columns if name != labels]
    if _DEFAULT_COLUMN in others:
        return _DEFAULT_COLUMN
    if len(others) == 1:
        return others[0]
    raise UsageError(
        f"{table.path} has no column 'text'; name the one to read with --text, one of: "
        + ", ".join(others)
    )


def texts_of(table: Table, column: str) -> list[str]:
    """Return the texts of a column; a missing one is empty."""
    return ["" if value is None else str(value) for value in table.column(column)]


def _stop_words(option: str) -> Any:
    if option == "none":
        return None
    if option == "english":
        return option
    return [word.lower() for word in read_lines(Path(option)) if word]
