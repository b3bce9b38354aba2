"""TF-IDF of texts for the command."""

from __future__ import annotations

import os
import re
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import scipy.sparse as sp

from .._common.optional import WORDS_HINT, require_package
from .._common.text import nfc
from .._labels import means_missing
from .._persist.texts import read_vectorizer, strip_markup, word_pattern
from ._options import UsageError, warn
from ._read import MATRIX_HINT, Source, Table, likely_delimiter, read_lines, read_table

# Parts of "don't" and "we'll" that match the pattern of a word; scikit-learn's list lacks them.
_CONTRACTED = {
    *("ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll"),
    *("mustn", "needn", "shan", "shouldn", "ve", "wasn", "weren", "wouldn"),
}
# Scripts without spaces between words, by the number of letters from which a run is not a word:
# Chinese with Japanese; Thai, Lao, Burmese, Khmer and their neighbors.
_UNSPACED = {
    4: "[\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+",
    8: "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\uaa60-\uaadf]+",
}
_KATAKANA = re.compile("[\u30a0-\u30ff]+")  # even a long run is one word
# Languages by name; codes of these and of all other languages of the package work as well.
_LANGUAGES = dict(
    re.findall(
        r"(\w+):(\w+)",
        "arabic:ar bulgarian:bg catalan:ca chinese:zh croatian:hr czech:cs danish:da dutch:nl "
        "finnish:fi french:fr german:de greek:el hebrew:he hindi:hi hungarian:hu indonesian:id "
        "italian:it japanese:ja korean:ko norwegian:no persian:fa polish:pl portuguese:pt "
        "romanian:ro russian:ru slovak:sk spanish:es swedish:sv thai:th turkish:tr ukrainian:uk "
        "vietnamese:vi",
    )
)
_SOME = 0.05  # share of the texts
_LONGEST = 40  # characters of a text that may stand for no answer


class Vectorizer(NamedTuple):
    """A fitted TF-IDF transformation, and the column that it reads."""

    column: str
    tfidf: Any
    keep_markup: bool

    @property
    def terms(self) -> list[str]:
        return [str(term) for term in self.tfidf.get_feature_names_out()]


def fit_vectorizer(
    texts: list[str], column: str, options: Namespace
) -> tuple[Vectorizer, sp.csr_matrix]:
    """Return the vectorizer and the TF-IDF matrix of what :func:`read_texts` returns."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    tfidf = TfidfVectorizer(
        max_features=options.max_features,
        min_df=options.min_df,
        max_df=options.max_df,
        stop_words=_read_stop_words(options.stop_words, options.encoding),
        token_pattern=options.token_pattern or word_pattern(),
        ngram_range=options.ngram,
        norm=None,
    )
    _warn_of_unspaced(texts, tfidf.build_tokenizer())
    try:
        X = tfidf.fit_transform(texts)
    except ValueError as error:
        raise UsageError(
            f"no terms are left in the {len(texts)} texts of column {column!r} with "
            f"--min-df {options.min_df}, --max-df {options.max_df}, --stop-words "
            f"{options.stop_words}, --ngram {','.join(map(str, options.ngram))} and "
            f"--token-pattern {options.token_pattern or '(its default)'} ({error})"
        ) from error
    # Lengths are then summed in the same order as by `transform`, which gives the same bits.
    X.sort_indices()
    X = normalize(X, copy=False)
    tfidf.norm = "l2"
    return Vectorizer(column, tfidf, options.keep_markup), X


def _warn_of_unspaced(texts: list[str], tokenize: Callable[[str], list[str]]) -> None:
    n_written = n_unspaced = 0
    for text in texts:
        if text.isascii():
            continue
        words = " ".join(tokenize(text))
        for longest, script in _UNSPACED.items():
            runs = [run for run in re.findall(script, words) if not _KATAKANA.fullmatch(run)]
            letters = sum(len(re.sub(r"\W", "", run)) for run in runs)
            n_written += bool(runs)
            n_unspaced += letters >= longest * max(len(runs), 1)
    if n_unspaced > max(_SOME * len(texts), n_written / 4):
        warn(
            f"{n_unspaced} of {len(texts)} texts are in a script without spaces between words, so "
            "that whole phrases count as words. Separate the words by spaces first, with a program "
            "such as jieba, MeCab or PyThaiNLP"
        )


def read_for_model(
    data: Source, stored: Path, column: str | None
) -> tuple[Vectorizer, Table, list[str], sp.csr_matrix]:
    """Return the vectorizer in `stored`, a table for its model, its texts, and their TF-IDF."""
    if not stored.is_file():
        wrong = f"{stored} is missing, so the model was fitted to a matrix; {data} is a table"
        raise UsageError(f"{wrong}. Give a matrix: {MATRIX_HINT}")
    try:
        vectorizer = Vectorizer(*read_vectorizer(stored))
    except ValueError as error:
        raise UsageError(str(error)) from error
    table = read_table(data)
    texts = read_texts(table, column or vectorizer.column, keep_markup=vectorizer.keep_markup)
    _warn_of_unspaced(texts, vectorizer.tfidf.build_tokenizer())
    with warnings.catch_warnings():  # already issued by the fit
        warnings.filterwarnings("ignore", message="Your stop_words may be inconsistent")
        return vectorizer, table, texts, vectorizer.tfidf.transform(texts)


def find_text_column(table: Table, name: str | None, *other_columns: str | None) -> str:
    """Return the name of the column with the text, which is not in `taken`."""
    if name is not None:
        return name
    candidates = [name for name in table.frame if name not in other_columns]
    if "text" in candidates:
        return "text"
    if len(candidates) == 2 and "id" in candidates:
        candidates.remove("id")
    if len(candidates) != 1:
        mend = f"name the one to read with --text, one of: {', '.join(candidates)}"
        raise UsageError(f"{table} has no column 'text'; {mend}")
    mark = likely_delimiter(table.source, [*table.frame])
    if mark is not None:
        mend = f"if {mark!r} separates columns, name it with --delimiter"
        warn(f"{table} has one column, called {candidates[0]!r}; {mend}")
    return str(candidates[0])


def read_texts(table: Table, column: str, *, keep_markup: bool) -> list[str]:
    """Return the texts of a column in the form NFC of Unicode; "" for none, such as "n/a"."""
    texts = ["" if value is None else str(value) for value in table.column(column)]
    texts = [str(nfc(text if keep_markup else strip_markup(text))) for text in texts]
    return ["" if len(text) < _LONGEST and means_missing(text) else text for text in texts]


def find_ids(table: Table, name: str | None, *others: str | None) -> tuple[str, list[Any]] | None:
    """Return name and values of the column of ids, if any."""
    if name is None and ("id" not in table.frame or "id" in others):
        return None
    name = name or "id"
    return name, ["" if value is None else value for value in table.column(name)]


def _read_stop_words(option: str, encoding: str) -> list[str] | None:
    """Return the words of one or several lists, separated by commas."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # A file may have a comma in its name.
    parts = [option] if os.path.isfile(option) else [part.strip() for part in option.split(",")]
    if "none" in parts:
        if len(parts) > 1:
            raise UsageError(f"--stop-words {option}: none excludes other lists")
        return None
    words: set[str] = set()
    for part in parts:
        if part == "english":
            words |= ENGLISH_STOP_WORDS | _CONTRACTED
        elif os.path.isfile(part):
            words |= {nfc(word).lower() for word in read_lines(Path(part), encoding) if word}
        else:
            words |= _words_of_language(part)
    return sorted(words)


def _words_of_language(name: str) -> set[str]:
    """Return stop words of a language as they occur after splitting: "est" for "c'est"."""
    choices = f"a file, english, none, {', '.join(_LANGUAGES)}, or a code such as de"
    if not re.fullmatch("[A-Za-z]+", name):
        raise UsageError(f"--stop-words: {name}: no such file; expected {choices}")
    with require_package("stopwordsiso", WORDS_HINT):
        import stopwordsiso
    code = _LANGUAGES.get(name.lower(), name.lower())
    if not stopwordsiso.has_lang(code):
        raise UsageError(f"--stop-words: there is no list {name!r}; expected {choices}")
    # Words of phrases may have a meaning of their own.
    words = [word for word in stopwordsiso.stopwords(code) if not re.search(r"\s", word)]
    return set(re.findall(word_pattern(), str(nfc("\n".join(words))).lower()))
