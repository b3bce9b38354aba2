"""Explanations of predictions: contributions of topics, features and neighbors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, Matrix, VectorLike
from .._common.optional import data_frame
from .._common.text import listed, short
from .._data.border import check_integer, require_finite
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread
from .._solver.weights import WeightsLike
from .._topics import names_of, topic_shares
from ._base import product
from ._readout import ComponentReadout, LogisticReadout, Readout, empty_rows
from ._views import N_DIRECTIONS, Tables

_NEGLIGIBLE = 1e-12  # share of all contributions below which one is a rounding error
_TERMS_OF_TOPIC = 3  # in its name
_COLUMNS = ["sample", "class", "kind", "name", "contribution"]


@dataclass(frozen=True)
class SampleContributions:
    """Contributions to the score of a class for one sample; print it.

    Attributes
    ----------
    sample, class_name : int, label
        Row of the sample, and the class.
    total : float
        Sum of all contributions.
    parts : tuple of (str, str, float)
        Kind, name and contribution, in decreasing order.  Kinds are "topic", "term", "neighbors",
        "table" (side table), "intercept" and "rest" (the sum of all other topics and terms).
    """

    sample: int
    class_name: Any
    total: float
    parts: tuple[tuple[str, str, float], ...]

    def __repr__(self) -> str:
        head = f"sample {self.sample}, {self.class_name}: {self.total:+.3g}"
        parts = (f"  {value:+8.3g}  {kind} {name}".rstrip() for kind, name, value in self.parts)
        return "\n".join([head, *parts])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary (sample, class, kind, name, contribution) per part."""
        head = self.sample, self.class_name
        return [dict(zip(_COLUMNS, (*head, *part), strict=True)) for part in self.parts]

    def to_frame(self) -> Any:
        """Return :meth:`to_rows` as a pandas DataFrame (needs pandas)."""
        return data_frame(self.to_rows(), ", or use to_rows", columns=_COLUMNS)


@dataclass(frozen=True)
class Contributions:
    """Contributions of columns to scores: `rows` times (`coefficients` + `scales` * `along`)."""

    rows: Any  # (n, p), dense or CSR
    coefficients: Array  # (k, p)
    along: Array  # (k, p)
    scales: Array  # (n,)

    @one_blas_thread()
    def totals(self) -> Array:
        scaled = self.scales[:, None] * (self.rows @ self.along.T)
        return np.asarray(self.rows @ self.coefficients.T + scaled)

    def of_class(self, k: int) -> Any:
        """Return the contributions to a class, (n, p), as sparse as the rows."""
        if not sp.issparse(self.rows):
            return self.rows * (self.coefficients[k] + self.scales[:, None] * self.along[k])
        parts = self.rows.copy()
        scales = np.repeat(self.scales, np.diff(parts.indptr))
        parts.data *= self.coefficients[k, parts.indices] + scales * self.along[k, parts.indices]
        return parts

    def of_sample(self, i: int, k: int) -> tuple[Array, Array]:
        """Return the columns that contribute to a class in a sample, and their contributions."""
        if sp.issparse(self.rows):
            part = slice(*self.rows.indptr[i : i + 2])
            columns, values = self.rows.indices[part], self.rows.data[part]
        else:
            columns, values = np.arange(self.rows.shape[1]), self.rows[i]
        scaled = self.scales[i] * self.along[k, columns]
        return columns, values * (self.coefficients[k, columns] + scaled)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions to the scores of samples, returned by ``explain`` of a classifier.

    ``totals`` are, up to rounding, the sums of ``intercepts``, ``neighbors``, ``tables``, and of
    ``topics(class_name)`` and ``features(class_name)`` over their columns.

    With one label per sample, all are relative to the mean over the classes: `totals` are
    ``decision_function(X)`` minus its mean; for two classes, the latter is the second column minus
    the first.  With multiple labels, they are the logits of ``predict_proba(X)``, from which
    ``decision_function(X)`` subtracts the logits of the thresholds.

    For the readouts "refit" and "joint", topics contribute their parts of the score S B (with one
    label per sample, divided by the sum of the scores), and features contribute nothing.

    Attributes
    ----------
    classes : ndarray, shape (k,)
        The classes.
    predicted : ndarray, shape (n,)
        The predicted classes; with multiple labels, those with the largest ``decision_function``.
    totals : ndarray, shape (n, k)
        Sums of all contributions.
    intercepts : ndarray, shape (n, k)
        The same for all samples, except empty samples: the log-odds of the class frequencies.
    neighbors : ndarray, shape (n, k)
        Contributions of nearest neighbors; 0 if the model does not use them.
    tables : dict of str to ndarray, shape (n, k)
        Contributions of the side tables.
    feature_names : list of str
        Names of the m features.

    Notes
    -----
    Holds a float64 copy of the samples, sparse if X is sparse or on disk, and arrays of
    n x (r + 2 k) and 2 k x m numbers.
    """

    classes: Array
    predicted: Array
    totals: Array
    intercepts: Array
    neighbors: Array
    tables: dict[str, Array]
    feature_names: list[str]
    _topics: Contributions = field(kw_only=True)
    _features: Contributions = field(kw_only=True)
    _dictionary: Array = field(kw_only=True)
    _topic_names: list[Any] = field(kw_only=True)

    def __repr__(self) -> str:
        n, k = self.totals.shape
        return f"Explanation of {n} samples for {k} classes; top(i) explains sample i"

    def topics(self, class_name: object) -> Array:
        """Return the contributions of the topics to a class, shape (n, r)."""
        return np.asarray(self._topics.of_class(self._number(class_name)))

    def features(self, class_name: object) -> Any:
        """Return the contributions of the features to a class.

        Returns
        -------
        ndarray or scipy.sparse.csr_array, shape (n, m)
            Sparse if X is sparse or on disk, or (all zero) if the model uses only topics.
        """
        return self._features.of_class(self._number(class_name))

    def top(
        self,
        sample: int,
        class_name: object = None,
        n_terms: int = 8,
        feature_names: VectorLike = None,
    ) -> SampleContributions:
        """Return the topics and terms that contribute most to a class in a sample.

        Parameters
        ----------
        sample : int
            Row of the sample, from 0.
        class_name : label, optional
            One of `classes`; None takes the predicted one.
        n_terms : int
            Maximum number of terms and of topics, at least 1.
        feature_names : array_like of str, shape (m,), optional
            Names of the features; None takes the attribute.

        Returns
        -------
        SampleContributions
            Print it, or see its ``to_rows`` and ``to_frame``.
        """
        i = check_integer(sample, "sample", 0, len(self.totals) - 1)
        n_terms = check_integer(n_terms, "n_terms", 1)
        k = self._number(self.predicted[i] if class_name is None else class_name)
        names = self.feature_names
        if feature_names is not None:
            names = names_of(feature_names, len(names))
        rest = 0.0
        parts = [
            ("intercept", "", float(self.intercepts[i, k])),
            ("neighbors", "", float(self.neighbors[i, k])),
            *(("table", name, float(part[i, k])) for name, part in self.tables.items()),
        ]
        for kind, contributions in (("topic", self._topics), ("term", self._features)):
            columns, values = contributions.of_sample(i, k)
            numbers = _largest(np.abs(values), n_terms)
            rest += float(np.delete(values, numbers).sum())
            pairs = zip(columns[numbers].tolist(), values[numbers].tolist(), strict=True)
            for column, value in pairs:
                name = names[column]
                if kind == "topic":
                    head = "".join(f" ({each})" for each in self._topic_names[column : column + 1])
                    terms = [names[j] for j in _largest(self._dictionary[column], _TERMS_OF_TOPIC)]
                    name = f"{column}{head}: {', '.join(terms) or '(no terms)'}"
                parts.append((kind, name, value))
        parts.append(("rest", "", rest))
        least = _NEGLIGIBLE * sum(abs(value) for *_, value in parts)
        parts = sorted((p for p in parts if abs(p[2]) > least), key=lambda part: -part[2])
        name = self.classes.tolist()[k]
        return SampleContributions(i, name, float(self.totals[i, k]), tuple(parts))

    def leading_terms(self, n_terms: int = 3) -> list[tuple[str, ...]]:
        """Return the terms that contribute most to the predicted class of each sample.

        Parameters
        ----------
        n_terms : int
            Maximum number of terms, at least 1.

        Returns
        -------
        list of tuple of str, length n
            In decreasing order, without negative contributions.
        """
        n_terms = check_integer(n_terms, "n_terms", 1)
        terms = []
        for i, class_name in enumerate(self.predicted.tolist()):
            columns, values = self._features.of_sample(i, self._number(class_name))
            numbers = columns[_largest(values, n_terms)].tolist()
            terms.append(tuple(self.feature_names[column] for column in numbers))
        return terms

    def _number(self, class_name: object) -> int:
        classes: list[Any] = self.classes.tolist()
        if class_name not in classes:
            name = short(class_name)
            raise ValueError(f"Unknown class_name {name}; the classes are {listed(classes)}.")
        return classes.index(class_name)


def _largest(values: Array, count: int) -> Array:
    """Return the positions of the largest positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:count]
    return np.asarray(order[values[order] > 0])


@one_blas_thread()
def explanation_of(
    model: Any, readout: Readout, X: Matrix, X_weights: WeightsLike, tables: Tables
) -> Explanation:
    """Explain the predictions of a readout for checked samples and their tables."""

    def relative(scores: Array, axis: int = 1) -> Array:  # to the mean over exclusive classes
        several = model.multilabel_
        return np.asarray(scores if several else scores - scores.mean(axis=axis, keepdims=True))

    if isinstance(readout, ComponentReadout):
        parts = _of_components(model, readout, X, X_weights)
    else:
        parts = _of_logits(model, readout, X, X_weights, tables)
    parts |= {name: relative(parts[name]) for name in ("intercepts", "neighbors")}
    parts["tables"] = {name: relative(each) for name, each in parts["tables"].items()}
    sums = 0
    for name in ("_topics", "_features"):
        part = parts[name]
        along, coefficients = (relative(each, 0) for each in (part.along, part.coefficients))
        parts[name] = replace(part, along=along, coefficients=coefficients)
        sums = sums + parts[name].totals()
    totals = parts["intercepts"] + parts["neighbors"] + sums + sum(parts["tables"].values())
    require_finite({"the decision function": totals})
    limits = model._limits()
    best = totals if limits is None else readout.decide(totals, limits)
    A, active = model.components_, getattr(model, "active_components_", None)
    return Explanation(
        classes=model.classes_,
        predicted=model.classes_[best.argmax(axis=1)],
        totals=totals,
        feature_names=names_of(None, A.shape[1], model),
        # The terms of an inactive component would be arbitrary.
        _dictionary=A if active is None else np.where(active[:, None], A, 0),
        _topic_names=list(getattr(model, "topic_names_", ())),
        **parts,
    )


def _of_logits(
    model: Any, readout: LogisticReadout, X: Matrix, X_weights: WeightsLike, tables: Tables
) -> dict[str, Any]:
    S, A = model._represent(X, X_weights), model.components_
    shares = topic_shares(S, A)
    empty, of_prior = empty_rows(model, X, shares)
    n, k = len(shares), len(readout.intercepts)
    slopes, linear = readout.slopes[:, None], readout.linear
    votes, blocks, scales = np.zeros((n, k)), [], np.zeros(n)
    sparse = sp.issparse(X) or isinstance(X, CsrFile)
    for rows, view in readout.views(X, X_weights, S, A):
        if view.rows is None or view.coordinates is None:
            continue
        blocks.append(sp.csr_array(view.rows) if sparse else view.rows)
        # Factors that scale the coordinates in the first directions to length 1.
        lengths = np.linalg.norm(view.coordinates[:, :N_DIRECTIONS], axis=1)
        scales[rows] = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        if readout.votes is not None:
            votes[rows] = readout.votes.weight * readout.votes.logits(view, model.n_threads)
    votes[empty] = 0
    intercepts = np.tile(readout.intercepts * readout.slopes + readout.offsets, (n, 1))
    intercepts[empty] = of_prior
    topics = np.where(empty[:, None], 0, np.sqrt(shares))
    features = None
    if "features" in linear.parts:
        seen = blocks[0] if len(blocks) == 1 else (sp.vstack if sparse else np.vstack)(blocks)
        seen = seen * ~empty[:, None] if empty.any() else seen
        along = (slopes * linear.parts["directions"]) @ readout.directions
        seen = sp.csr_array(seen) if sparse else seen
        features = seen, slopes * linear.parts["features"], along, scales
    return {
        "intercepts": intercepts,
        "tables": {name: readout.slopes * t for name, t in readout.of_tables(tables).items()},
        "neighbors": votes * readout.slopes,
        **_contributions(X, topics, slopes * linear.parts["topics"], features),
    }


def _of_components(
    model: Any, readout: ComponentReadout, X: Matrix, X_weights: WeightsLike
) -> dict[str, Any]:
    """Return the parts of scores S B; with one label per sample, of their shares."""
    S = model._represent(X, X_weights)
    scores = product(S, readout.components, "the predictions").astype(np.float64)
    S, B = S.astype(np.float64), readout.components.astype(np.float64)
    intercepts = np.zeros(scores.shape)
    if not model.multilabel_:
        empty = np.logical_not(scores.any(axis=1))
        intercepts[empty] = model.class_prior_
        largest = np.where(empty, 1, scores.max(axis=1))[:, None]  # so that sums are finite
        sums = np.where(empty, 1, (scores / largest).sum(axis=1))[:, None]
        S = np.where(empty[:, None], 0, S / largest / sums)
    others = {"neighbors": np.zeros(scores.shape), "tables": {}}
    return {"intercepts": intercepts, **others, **_contributions(X, S, B.T, None)}


def _contributions(
    X: Matrix, topics: Array, coefficients: Array, features: tuple[Any, ...] | None
) -> dict[str, Contributions]:
    """Return the contributions of topics and of features, if the model uses features."""
    (n, m), nothing = X.shape, np.zeros(len(topics))
    zeros = np.broadcast_to(0.0, (len(coefficients), m))
    return {
        "_topics": Contributions(topics, coefficients, np.zeros_like(coefficients), nothing),
        "_features": Contributions(*features or (sp.csr_array((n, m)), zeros, zeros, nothing)),
    }
