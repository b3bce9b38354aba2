"""A class composed of a vectorizer and an estimator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf

_MODEL, _TERMS = "model.npz", "terms.json"


@dataclass(frozen=True)
class Ticket:
    """A ticket with a queue, and the probability that it belongs there."""

    text: str
    queue: str
    probability: float


class Triage:
    """Sorts tickets into queues.

    Parameters
    ----------
    random_state : int, default 0
        The same seed gives the same results.
    n_threads : int, optional
        All cores by default; results do not depend on it.
    """

    def __init__(
        self, *, random_state: int = 0, n_threads: int | None = None
    ) -> None:
        self.vectorizer = TfidfVectorizer(stop_words="english")
        self.model = sf.FewLabelsClassifier(
            random_state=random_state, n_threads=n_threads
        )

    def fit(
        self, texts: Sequence[str], queues: Sequence[str | None]
    ) -> Triage:
        """Learn from tickets; most queues may be None."""
        self.model.fit(self.vectorizer.fit_transform(texts), list(queues))
        return self

    def routed(self, texts: Sequence[str]) -> list[Ticket]:
        """Return every ticket with its most probable queue."""
        probability = self.model.predict_proba(
            self.vectorizer.transform(texts)
        )
        best = probability.argmax(axis=1)
        queues = self.model.classes_[best]
        values = probability.max(axis=1)
        return [
            Ticket(text, str(queue), float(value))
            for text, queue, value in zip(texts, queues, values, strict=True)
        ]

    def ranked(self, texts: Sequence[str], queue: str) -> list[Ticket]:
        """Return all tickets, the most probable ones for a queue first."""
        column = list(self.model.classes_).index(queue)
        probability = self.model.predict_proba(
            self.vectorizer.transform(texts)
        )[:, column]
        order = np.argsort(-probability, kind="stable")
        return [Ticket(texts[i], queue, float(probability[i])) for i in order]

    def topics(self, n_terms: int = 5) -> list[tuple[str, ...]]:
        """Return the largest terms of every topic."""
        names = self.vectorizer.get_feature_names_out()
        return [
            topic.terms for topic in self.model.topics(names, n_terms=n_terms)
        ]

    def save(self, folder: str | Path) -> None:
        """Write the model and the terms to a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        sf.save(self.model, folder / _MODEL)
        names = self.vectorizer.get_feature_names_out().tolist()
        terms = dict(zip(names, self.vectorizer.idf_.tolist(), strict=True))
        (folder / _TERMS).write_text(json.dumps(terms), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Triage:
        """Load a saved object."""
        folder = Path(folder)
        triage = cls()
        triage.model = sf.load(folder / _MODEL)
        terms = json.loads((folder / _TERMS).read_text(encoding="utf-8"))
        triage.vectorizer = TfidfVectorizer(
            stop_words="english", vocabulary=list(terms)
        )
        triage.vectorizer.idf_ = np.array(list(terms.values()))
        return triage
