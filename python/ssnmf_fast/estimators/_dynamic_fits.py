"""Topics of dated documents: the methods that find them, one function for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.border import CleanMatrix, check_option
from .._data.times import Slices
from .._models.dated import (
    best_short_fit,
    counted_alike,
    factorize_tied,
    folded,
    means_of_slices,
    start_from_slices,
    sums_of_slices,
)
from .._models.factorize import factorize, factorize_tensor
from .._models.represent import represent
from .._models.two_layers import factorize_two_layers
from ._base import count_copies

_NEAR = 0.75  # of the number of slices: more topics than that become slices
_FEW_TOPICS = 4  # and not too many to see at a glance what they are
_FROM_SLICES = ("auto", "slices")
_ALIKE = 0.8  # cosine of two topics that are alike; in news those of useful fits are below 0.7
_SINGLE, _FEW_SLICES = 0.9, 4
_ONE = 1e-6  # within which shares sum to 1


class DatedTopics(NamedTuple):
    """Topics that a method has found."""

    components: Array  # (r, m), of any scale
    prevalence: Array | None  # (slices, r) in a mean document; None: its mean representation
    objective: list[tuple[int, float]]
    n_iter: int
    converged: bool = True
    estimator: Any = None

    def scaled(self) -> DatedTopics:
        """Return topics with sum 1; what they explain stays."""
        sums = self.components.sum(axis=1)
        divided = self.components / np.where(sums > 0, sums, 1)[:, None]
        components = np.ascontiguousarray(divided).astype(self.components.dtype, copy=False)
        prevalence = self.prevalence
        if prevalence is not None and self.estimator is None:
            prevalence = (prevalence * sums).astype(prevalence.dtype, copy=False)
        return self._replace(components=components, prevalence=prevalence)


@dataclass(frozen=True)
class Method:
    """A way to find topics.

    Attributes
    ----------
    fit : callable
        Finds them, of the model with its settings, clean documents, slices, the number of topics
        and a generator.
    of_documents : bool
        Whether the prevalence is the mean over documents, rather than that of the mean document.
    per_slice : bool
        Whether a slice counts for so many documents at most.
    continues : bool
        Whether new documents can continue a fit.
    prepare : callable
        Gives the documents, of those of the user and a loss, whose prevalence it is.
    """

    fit: Callable[[Any, Any, Slices, int, np.random.Generator], DatedTopics]
    of_documents: bool = False
    per_slice: bool = False
    continues: bool = True
    prepare: Callable[[Any, Any], Any] = lambda X, loss: X

    def prevalence(self, model: Any, X: Any, slices: Slices) -> Array:
        """Return the prevalence of the model's topics in slices, (slices, r)."""
        if not self.of_documents:
            X = means_of_slices(self.prepare(X, model.loss_), slices)
        S = represent(X, model.components_, loss=model.loss_, n_threads=model.n_threads)
        return np.asarray(means_of_slices(S, slices)) if self.of_documents else S


def _fit_tensor(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Fit the tensor of the documents of every slice."""
    per_slice = model.documents_per_slice
    if per_slice is None:
        per_slice = int(np.median(slices.sizes[slices.sizes > 0]))
    per_slice = min(int(per_slice), int(slices.sizes.max()))
    tensor = folded(X, slices, per_slice, rng)
    init = model.init
    if isinstance(init, str) and init in _FROM_SLICES:
        init = start_from_slices(tensor, rank, rng, model.n_threads)
    drawn = {"n_components": rank, "init": init, "random_state": rng}
    result = factorize_tensor(tensor, **model._arguments(factorize_tensor) | drawn)
    terms, documents, time = result.factors
    taken = np.maximum(np.minimum(slices.sizes, per_slice), 1)[:, None]
    prevalence = (time * (result.weights * documents.sum(axis=0)) / taken).astype(time.dtype)
    return DatedTopics(terms.T, prevalence, result.objective, result.n_iter, bool(result.converged))


def _fit_tied(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Fit documents that share their coefficients within a slice."""
    most = model.documents_per_slice
    found = factorize_tied(X, slices, rank, rng, most, model._arguments())
    fit = found.fit
    return DatedTopics(found.A, found.P, fit.objective, fit.n_iter, bool(fit.converged))


def _fit_sums(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Fit the matrix of the sums of the documents of every slice."""
    sums, init = sums_of_slices(X, slices), model.init
    if isinstance(init, str) and init in _FROM_SLICES:
        init = best_short_fit(sums, rank, rng, model.n_threads)
    drawn = {"n_components": rank, "init": init, "random_state": rng}
    result = factorize(sums, **model._arguments() | drawn)
    prevalence = (result.S / np.maximum(slices.sizes, 1)[:, None]).astype(result.S.dtype)
    return DatedTopics(
        result.A, prevalence, result.objective, result.n_iter, bool(result.converged)
    )


def _fit_matrix(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Fit the matrix of all documents."""
    drawn = {"n_components": rank, "random_state": rng}
    result = factorize(CleanMatrix(X), **model._arguments() | drawn)
    return DatedTopics(result.A, None, result.objective, result.n_iter, bool(result.converged))


def _fit_two_layers(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Fit every slice, and the topics of the slices."""
    if not isinstance(model.init, str):
        raise ValueError(
            "init holds arrays, and method='two-layer' makes a fit for every slice; give a name, "
            "such as 'auto'."
        )
    result = factorize_two_layers(X, slices, rank, rng, model._arguments())
    return DatedTopics(result.A, None, result.objective, result.n_iter, bool(result.converged))


def _fit_estimator(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Fit a topic model of all documents."""
    estimator = clone(model.method)
    known = estimator.get_params(deep=False)
    if "n_components" in known:
        estimator.set_params(n_components=rank)
    if known.get("random_state", 0) is None:
        estimator.set_params(random_state=int(rng.integers(2**31 - 1)))
    weights = np.asarray(estimator.fit_transform(X))
    name = type(estimator).__name__
    components = np.asarray(getattr(estimator, "components_", None))
    if components.shape != (rank, X.shape[1]) or weights.shape != (X.shape[0], rank):
        raise ValueError(
            f"method={name}: its components_ have shape {components.shape}, and fit_transform gave "
            f"{weights.shape}; expected {rank, X.shape[1]} (topics x terms) and "
            f"{X.shape[0], rank} (documents x topics)."
        )
    for what, values in (("components_", components), ("fit_transform", weights)):
        if values.dtype.kind != "f" or not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(
                f"method={name}: {what} has values that are negative or not finite; "
                "expected a model whose topics are nonnegative, such as NMF or "
                "LatentDirichletAllocation."
            )
    n_iter = getattr(estimator, "n_iter_", 0)
    return DatedTopics(
        components.astype(X.dtype),
        weights_of_estimator(estimator, weights, slices).astype(X.dtype),
        [],
        int(n_iter) if np.ndim(n_iter) == 0 else 0,
        estimator=estimator,
    )


def weights_of_estimator(estimator: Any, weights: Array, slices: Slices) -> Array:
    """Return the mean weights of the topics: shares as they are, others for topics with sum 1."""
    shares = np.abs(weights.sum(axis=1) - 1).max() < _ONE
    scale = 1.0 if shares else estimator.components_.sum(axis=1)
    return np.asarray(means_of_slices(weights, slices) * scale)


METHODS = {
    "tied": Method(_fit_tied, per_slice=True, prepare=counted_alike),
    "tensor": Method(_fit_tensor, per_slice=True),
    "sums": Method(_fit_sums),
    "two-layer": Method(_fit_two_layers, of_documents=True, continues=False),
    "nmf": Method(_fit_matrix, of_documents=True),
}
_ESTIMATOR = Method(_fit_estimator, of_documents=True, continues=False)


def method_of(given: Any) -> Method:
    """Return a method, of its name or of an estimator."""
    if isinstance(given, str):
        return METHODS[check_option(given, "method", tuple(METHODS))]
    asked = ("fit_transform", "get_params")
    if inspect.isclass(given) or not all(hasattr(given, name) for name in asked):
        listed = ", ".join(map(repr, METHODS))
        raise TypeError(
            f"method must be one of {listed}, or an estimator that is not fitted, with "
            f"fit_transform and components_, such as LatentDirichletAllocation(); got "
            f"{given!r:.80}."
        )
    return _ESTIMATOR


def name_of(given: Any) -> str:
    """Return what a method is called."""
    return given if isinstance(given, str) else type(given).__name__


def find_topics(
    model: Any, X: Any, slices: Slices, rank: int, rng: np.random.Generator
) -> DatedTopics:
    """Find topics of clean documents with the method of a model; components have sum 1."""
    return method_of(model.method).fit(model, X, slices, rank, rng).scaled()


def warn_if_degenerate(model: Any, of_slices: bool) -> None:
    """Warn if topics tell little: of slices alone, as many topics as slices become the slices."""
    rank, used = len(model.components_), int((model.slice_sizes_ > 0).sum())
    alike = count_copies(model.components_, _ALIKE)
    largest, totals = model.prevalence_.max(axis=0), model.prevalence_.sum(axis=0, dtype=np.float64)
    single = int((largest > _SINGLE * totals).sum()) if used >= _FEW_SLICES else 0
    counts = [(alike, "resemble others"), (single, "lie in one slice of time alone")]
    found = " and ".join(f"{count} {what}" for count, what in counts if 2 * count > rank)
    if found:
        text = f"Of the {rank} topics {found}, with {used} slices that have documents"
    elif of_slices and rank > max(_NEAR * used, _FEW_TOPICS):
        text = (
            f"n_components={rank} is near or above the number of slices with documents, "
            f"{used}: each topic may become a slice"
        )
    else:
        return
    other = ", or method='nmf'" if of_slices else ""
    warn_user(f"{text}. Give fewer topics, shorter slices (freq){other}.", UserWarning)
