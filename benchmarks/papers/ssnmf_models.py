"""The documents and the four models of the SSNMF paper: settings, start, stopping rule, score P.

20 Newsgroups as the SSNMF paper prepares it, and random texts in its place for quick runs.

Five classes of 1796 documents made of 13 newsgroups ("subgroups"), without headers, footers and
quotes; 60 % train, 20 % validation, 20 % test, class by class; TF-IDF of at most 5000 terms.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import CLASSES, PER_CLASS, Array, D, F, read_posts, stop_words, strip
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf

SUBGROUPS = tuple(group for groups in CLASSES.values() for group in groups)
CLASS_OF_SUBGROUP = np.array([k for k, groups in enumerate(CLASSES.values()) for _ in groups])
TRAIN, VALIDATION = 0.6, 0.2
LETTERS = str.maketrans("0123456789", "abcdefghij")  # the paper's tokens hold no digits


class Documents(NamedTuple):
    """Texts and the index of each one's subgroup."""

    texts: Array
    subgroups: Array


class Part(NamedTuple):
    """TF-IDF matrices (csr) of fitted and of held-out documents, and the labels of both."""

    X: Any
    subgroups: Array
    X_held: Any
    subgroups_held: Array
    terms: Array

    @property
    def classes(self) -> Array:
        return CLASS_OF_SUBGROUP[self.subgroups]

    @property
    def classes_held(self) -> Array:
        return CLASS_OF_SUBGROUP[self.subgroups_held]

    @property
    def Y(self) -> Array:
        return np.eye(len(CLASSES))[self.classes]


@cache
def newsgroup_documents() -> Documents:
    index = {group: i for i, group in enumerate(SUBGROUPS)}
    kept = [(text, index[group]) for text, group in read_posts() if group in index]
    texts = np.array([strip(text) for text, _ in kept], dtype=object)
    return Documents(texts, np.array([group for _, group in kept]))


@cache
def random_documents(per_subgroup: int = 40, words: int = 40, seed: int = 0) -> Documents:
    """Return texts of made-up words, a third of them from the text's own subgroup."""
    rng = np.random.default_rng(seed)
    subgroups = np.repeat(np.arange(len(SUBGROUPS)), per_subgroup)
    texts = []
    for group in subgroups:
        own = rng.integers(30, size=words // 3) + 30 * (group + 1)
        common = rng.integers(30, size=words - len(own))
        texts.append(" ".join("w" + str(word).translate(LETTERS) for word in [*own, *common]))
    return Documents(np.array(texts, dtype=object), subgroups)


def split(quick: bool, seed: int) -> tuple[Part, Part]:
    """Draw the balanced subset, cut it into train, validation and test; return two parts."""
    documents = random_documents() if quick else newsgroup_documents()
    rng = np.random.default_rng(seed)
    classes = CLASS_OF_SUBGROUP[documents.subgroups]
    size = min(PER_CLASS, int(np.bincount(classes).min()))
    cuts = [round(TRAIN * size), round((TRAIN + VALIDATION) * size)]
    pieces: list[list[Array]] = [[], [], []]
    for k in range(len(CLASSES)):
        drawn = rng.choice(np.flatnonzero(classes == k), size, replace=False)
        for piece, rows in zip(pieces, np.split(drawn, cuts), strict=True):
            piece.append(rows)
    train, validation, test = (rng.permutation(np.concatenate(piece)) for piece in pieces)
    full = np.concatenate([train, validation])
    return _part(documents, train, validation), _part(documents, full, test)


def _part(documents: Documents, fitted: Array, held: Array) -> Part:
    """TF-IDF whose terms and document frequencies are those of the fitted documents."""
    vectorizer = TfidfVectorizer(
        token_pattern="[a-zA-Z]+", min_df=5, max_df=0.7, max_features=5000, stop_words=stop_words()
    )
    X = sp.csr_matrix(vectorizer.fit_transform(documents.texts[fitted]))
    X_held = sp.csr_matrix(vectorizer.transform(documents.texts[held]))
    terms = vectorizer.get_feature_names_out()
    return Part(X, documents.subgroups[fitted], X_held, documents.subgroups[held], terms)


RANK = 13
MOST_UPDATES = 50
NEW_SAMPLE_UPDATES = 10  # the default of the paper's package
TINY = 1e-10


class Model(NamedTuple):
    """Losses of data and labels, and the weight and tolerance the paper chose (its Table 6)."""

    loss: str
    supervision_loss: str
    weight: float
    tol: float


MODELS = {
    "(F, F)": Model(F, F, 1e2, 1e-4),
    "(F, D)": Model(F, D, 1e1, 1e-4),
    "(D, F)": Model(D, F, 1e2, 1e-3),
    "(D, D)": Model(D, D, 1e3, 1e-3),
}


class Protocol(NamedTuple):
    """How a fit starts, its rule, and which value of the objective the tolerance is relative to."""

    scaled: bool
    reference: int  # 0: the objective of the start; 1: that after the first update
    stopping: str = "decrease"

    def start(self, X: Any, k: int, seed: int) -> Any:
        if self.scaled:
            return "random"
        rng = np.random.default_rng(seed)
        n, m = X.shape
        return rng.random((n, RANK)), rng.random((RANK, m)), rng.random((RANK, k))


PROTOCOLS = {
    "uniform start, tol x F_1": Protocol(scaled=False, reference=1),
    "library's start, tol x F_0": Protocol(scaled=True, reference=0),
    "uniform start, tol x F_0": Protocol(scaled=False, reference=0),
    "uniform start, F_N < tol x F_0": Protocol(False, 0, "relative-error"),
}


def fit(X: Any, Y: Array, model: Model, protocol: Protocol, seed: int) -> tuple[Any, int]:
    """Fit by the rule of a protocol, judged after every update; return the fit and its updates."""
    start, first = protocol.start(X, Y.shape[1], seed), protocol.reference
    given: dict[str, Any] = {"n_components": RANK, "loss": model.loss, "n_threads": 1}
    given |= {"supervision_loss": model.supervision_loss, "supervision_weight": model.weight}
    given |= {"solver": "mu", "random_state": seed}
    if first:  # the next fit starts from the update that the tolerance is relative to
        result = sf.factorize(X, Y, init=start, max_iter=first, tol=0, **given)
        start = (result.S, result.A, result.B)
    given |= {"tol": model.tol, "stopping": protocol.stopping, "check_every": 1}
    result = sf.factorize(X, Y, init=start, max_iter=MOST_UPDATES - first, **given)
    return result, first + result.n_iter


def represent(X: Any, A: Array, loss: str, seed: int) -> Array:
    """Represent new samples as the paper does: exactly, or for D by ten updates of S.

    Ten updates from a uniform start are far from the optimum that :func:`ssnmf_fast.represent`
    finds; they act as early stopping.
    """
    if loss == F:
        return sf.represent(X, A, loss=loss, n_threads=1)
    S = np.random.default_rng(seed).random((X.shape[0], len(A)))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    words = np.ascontiguousarray(A.T)
    for _ in range(NEW_SAMPLE_UPDATES):
        fitted = np.einsum("ij,ij->i", S[rows], words[X.indices]) + TINY
        ratio = sp.csr_matrix((X.data / fitted, X.indices, X.indptr), shape=X.shape)
        S = S * (ratio @ words) / (A.sum(axis=1) + TINY)
    return S
