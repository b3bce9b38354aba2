"""Seeds of topics: features with strengths, and features that a topic may not have."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from .._common.arrays import Array
from .._common.text import listed, nfc, short
from .._common.warn import warn_user
from .._data.border import CleanMatrix, check_integer, check_real, check_vector
from .._data.threads import one_blas_thread
from .._linalg.operators import unit_rows
from .._models.factorize import Factorization, factorize
from .._solver.starts import FILLER, roots
from .._topics import divide_by_sums, names_of, topic_shares
from ._class_topics import weighted_sums
from ._views import row_sums


class Vocabulary:
    """Features by name or by number; names that are not among them are noted."""

    def __init__(self, feature_names: Any, n_features: int) -> None:
        self.n_features = n_features
        self.unknown: list[str] = []
        self._positions: dict[str, int] | None = None
        if feature_names is not None:
            names = names_of(feature_names, n_features)
            # Of two spellings of one name the first; a name as it is written comes before both.
            pairs = [(name, i) for i, name in enumerate(names)]
            self._positions = {nfc(name): i for name, i in reversed(pairs)} | dict(pairs)

    def position(self, feature: Any, where: str) -> int | None:
        """Return the number of a feature; None for a name that is not among them."""
        if isinstance(feature, numbers.Integral):
            return check_integer(feature, f"every number in {where}", 0, self.n_features - 1)
        if not isinstance(feature, str):
            raise TypeError(
                f"{where} holds {short(feature)} ({type(feature).__name__}); expected names of "
                "features, or their numbers."
            )
        if self._positions is None:
            raise ValueError(
                f"{where} holds the name {short(feature)}, and X has no names of features. Give "
                "feature_names, such as those of a vectorizer, or numbers of columns."
            )
        found = self._positions.get(feature, self._positions.get(nfc(feature)))
        if found is None:
            self.unknown.append(feature)
        return found

    def warn_of_unknown(self, where: str) -> None:
        """Warn of the names that were asked for and are not among the features."""
        if not self.unknown:
            return
        warn_user(
            f"{where} names features that X does not have, which are left out: "
            f"{listed(self.unknown)}. Check the spelling, and what the vectorizer makes of words.",
            UserWarning,
        )


@dataclass(frozen=True)
class Seeds:
    """What is known of k topics: `strengths` and `allowed` are (k, m)."""

    names: list[Any]
    strengths: sp.csr_array  # rows sum to 1, or are 0 for a topic without seeds
    allowed: Array  # bool
    unknown: list[str]

    @classmethod
    def read(cls, seeds: Any, forbidden: Any, feature_names: Any, n_features: int) -> Seeds:
        """Check what the user gave, and warn of unknown names."""
        seeds, forbidden = _checked(seeds, "seeds"), _checked(forbidden, "forbidden")
        forbidden = {nfc(name): features for name, features in forbidden.items()}
        strange = [name for name in forbidden if name not in set(map(nfc, seeds))]
        if strange:
            raise ValueError(
                f"forbidden names the topic {short(strange[0])}, which is not one of the topics of "
                f"seeds: {listed(list(seeds))}."
            )
        vocabulary = Vocabulary(feature_names, n_features)
        rows = [_strengths(given, name, vocabulary) for name, given in seeds.items()]
        unknown = list(vocabulary.unknown)
        vocabulary.warn_of_unknown("seeds")
        vocabulary.unknown.clear()
        allowed = np.ones((len(rows), n_features), dtype=bool)
        for k, name in enumerate(seeds):
            where = f"forbidden[{short(name)}]"
            for feature in _listed(forbidden.get(nfc(name), ()), where):
                position = vocabulary.position(feature, where)
                if position is None:
                    continue
                if isinstance(seeds[name], np.ndarray):  # of an earlier model, which had it
                    rows[k].pop(position, None)
                elif position in rows[k]:
                    raise ValueError(
                        f"{short(feature)} is a seed of the topic {short(name)} and forbidden in "
                        "it. Take it out of seeds or of forbidden."
                    )
                allowed[k, position] = False
        vocabulary.warn_of_unknown("forbidden")
        return cls(list(seeds), _matrix(rows, n_features), allowed, unknown)


def _checked(given: Any, name: str) -> Mapping[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name} must be a dict of topics, such as {{'space': ['orbit', 'nasa']}}; got "
            f"{short(given)} ({type(given).__name__})."
        )
    twice = [one for one, count in Counter(map(nfc, given)).items() if count > 1]
    if twice:
        raise ValueError(f"{name} has the topic {short(twice[0])} twice. Merge the two.")
    return given


def _listed(given: Any, where: str) -> list[Any]:
    """Return features of a list."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(
            f"{where} must be a list of features; got {short(given)}. Put it into a list."
        )
    return np.asarray(given).tolist() if isinstance(given, np.ndarray) else list(given)


def _strengths(given: Any, name: Any, vocabulary: Vocabulary) -> dict[int, float]:
    """Return the strength of every seed of a topic, by the number of the feature."""
    where = f"seeds[{short(name)}]"
    if isinstance(given, np.ndarray) and given.dtype.kind == "f":  # a row of an earlier model
        row = check_vector(given, where, vocabulary.n_features, np.float64)
        return dict(enumerate(row.tolist()))
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = given.items()
    else:
        pairs = ((feature, 1.0) for feature in _listed(given, where))
    found: dict[int, float] = {}
    for feature, strength in pairs:
        position = vocabulary.position(feature, where)
        number = check_real(strength, f"{where}[{short(feature)}]")
        if number == 0:
            raise ValueError(
                f"{where}[{short(feature)}] is 0; a strength is above 0. Leave the feature out, or "
                "put it into forbidden."
            )
        if position is not None:
            if isinstance(given, Mapping) and found.get(position, number) != number:
                raise ValueError(
                    f"{where} gives {short(feature)} the strengths {found[position]:g} and "
                    f"{number:g}. Leave one out."
                )
            found[position] = number
    return found


def _matrix(rows: list[dict[int, float]], n_features: int) -> sp.csr_array:
    """Return strengths, each row divided by its sum: long lists count as much as short ones."""
    matrix = sp.lil_array((len(rows), n_features))
    for k, row in enumerate(rows):
        total = sum(row.values())
        for position, strength in row.items():
            if strength > 0:
                matrix[k, position] = strength / total
    return sp.csr_array(matrix)


LABEL_WEIGHT = 20.0  # of a given label, beside 1 for a predicted one
_STEPS = 5  # more of them may leave the seeds behind
_TOTAL = 20.0  # of the features of a sample: long samples are no surer than short ones
_SMOOTHING = 0.05


@one_blas_thread()
def topics_of_samples(X: Any, seeds: Seeds, members: Array) -> Array:
    """Return how likely each topic is in each sample, (n, k); rows sum to 1.

    `members` (n, k) are 1 for the topic of a labeled sample, and 0 elsewhere.  A seed counts in
    inverse proportion to its sum over the samples, so that all topics have the same evidence.  A
    feature that a topic may not have speaks neither for it nor against it.
    """
    parts = _shares(X)
    columns = np.asarray(parts.sum(axis=0)).ravel()
    everywhere = np.log((columns + _SMOOTHING) / (columns + _SMOOTHING).sum())
    labeled = np.any(members, axis=1, keepdims=True)
    evidence = _evidence(parts, columns, seeds)
    likely = np.where(labeled, members, divide_by_sums(evidence))
    _check_found(likely, seeds)
    for _ in range(_STEPS):
        weights = np.where(labeled, LABEL_WEIGHT * members, likely)
        counts = _TOTAL * np.asarray((parts.T @ weights).T) + _SMOOTHING
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        logs = np.where(seeds.allowed, logs, everywhere)
        prior = np.log((likely.sum(axis=0) + 1) / (likely.sum() + len(counts)))
        found = softmax(_TOTAL * np.asarray(parts @ logs.T) + prior, axis=1)
        likely = np.where(labeled, members, found)
    return np.asarray(likely)


@one_blas_thread()
def evidence_of_seeds(X: Any, seeds: Seeds, members: Array) -> Array:
    """Return the evidence of seeds for each topic in each sample, (n, k).

    ValueError for a topic that has neither seeds in the samples nor labels.
    """
    parts = _shares(X)
    evidence = _evidence(parts, np.asarray(parts.sum(axis=0)).ravel(), seeds)
    _check_found(np.where(np.any(members, axis=1, keepdims=True), members, evidence), seeds)
    return evidence


def _evidence(parts: Any, columns: Array, seeds: Seeds) -> Array:
    """Return the sums of seeds, each in inverse proportion to its sum over the samples, (n, k)."""
    once = np.divide(1.0, columns, out=np.zeros_like(columns), where=columns > 0)
    return np.asarray(parts @ seeds.strengths.multiply(once[None, :]).T.toarray())


def _shares(X: Any) -> Any:
    """Return X with rows that sum to 1, float64; empty rows stay."""
    rows = unit_rows(X)  # first, so that tiny rows do not vanish
    sums = row_sums(rows)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)[:, None]
    return rows.multiply(scale).tocsr() if sp.issparse(rows) else rows * scale


def _check_found(likely: Array, seeds: Seeds) -> None:
    """Raise ValueError for a topic of which no sample tells anything."""
    absent = np.flatnonzero(~likely.any(axis=0))
    if absent.size:
        raise ValueError(
            f"No sample has a seed of the topic {short(seeds.names[absent[0]])}, or is labeled "
            "with it. Give it seeds that occur in X, or label some samples."
        )


_HELD = 5  # iterations in which named topics stay, and free ones find what else there is
_FREE = 10  # iterations in which all of them move


def start_of_mixture(
    X: Any, seeds: Seeds, members: Array, n_free: int, rng: np.random.Generator, n_threads: Any
) -> tuple[Array, Array]:
    """Return S (n, r) and A (r, m) to start from, named topics first.

    `members` (n, k) are 1 for the topic of a labeled sample, and 0 elsewhere.  Seeds say where the
    topics begin, and which is which at the end.  In between the data decide, so that wrong seeds
    are left behind.  That is done with least squares of roots: from the same means, fits with the
    Kullback-Leibler loss often end with two topics that share a program, and one that has two.
    """
    weights = _weights(X, seeds, members)
    named = np.sqrt(divide_by_sums(weighted_sums(X, weights))).astype(X.dtype)
    common: dict[str, Any] = {"n_components": len(named) + n_free, "loss": "frobenius", "tol": 0}
    common |= {"n_threads": n_threads, "random_state": rng}
    largest = float(X.max()) or 1.0
    parts = roots(X)
    parts *= largest**-0.5  # fixed components need data of ordinary size
    parts = CleanMatrix(parts)
    held = factorize(parts, fixed_components=named, init="random", max_iter=_HELD, **common)
    fit = factorize(parts, init=(_lifted(held.S), _lifted(held.A)), max_iter=_FREE, **common)
    order = _named_first(fit, seeds, members)
    S, A = (_lifted(F[order].astype(np.float64) ** 2) for F in (fit.S.T, fit.A))
    sizes = A.max(axis=1, keepdims=True)
    half = largest**0.5  # in S and in A, so that neither grows too large
    return (half * sizes * S).T.astype(X.dtype), (half / sizes * A).astype(X.dtype)


def shares_of_named(fit: Factorization, members: Array) -> Array:
    """Return how likely each named topic is in each sample, (n, k); rows sum to 1.

    It is the share that the topic explains; samples that no named topic explains have the mean.
    """
    k = members.shape[1]
    shares = divide_by_sums(topic_shares(fit.S, fit.A)[:, :k])
    labeled = members.any(axis=1, keepdims=True)
    shares = np.where(labeled, members, shares)
    found = shares.any(axis=1, keepdims=True)
    total = shares.sum(axis=0)
    mean = total / total.sum() if total.any() else np.full(k, 1 / k)
    return np.where(found, shares, mean)


def _weights(X: Any, seeds: Seeds, members: Array) -> Array:
    """Return the weight of each sample in the mean that a named topic begins as, (n, k).

    Squares, so that samples of which much is the topic count more than many of which little is.
    """
    evidence = evidence_of_seeds(X, seeds, members)
    labeled = members.any(axis=1, keepdims=True)
    by_seeds = divide_by_sums(np.where(labeled, 0, evidence) ** 2, axis=0)
    return divide_by_sums(by_seeds + divide_by_sums(members, axis=0), axis=0)


def _named_first(fit: Factorization, seeds: Seeds, members: Array) -> Array:
    """Return the numbers of the topics, first those that have most of the seeds and the labels.

    Each seed tells of the topics in proportion to their weights for it, and each label by what
    the topics explain of its sample.
    """
    profiles = divide_by_sums(fit.A.astype(np.float64) ** 2)
    of_seeds = seeds.strengths @ divide_by_sums(profiles, axis=0).T
    of_labels = divide_by_sums(members, axis=0).T @ topic_shares(fit.S**2, fit.A**2)
    _, chosen = linear_sum_assignment(of_seeds + of_labels, maximize=True)
    return np.append(chosen, np.setdiff1d(np.arange(len(profiles)), chosen))


def _lifted(F: Array) -> Array:
    """Return a factor without zeros, which would stay."""
    return np.asarray(np.maximum(F, FILLER * F.mean() or 1.0))
