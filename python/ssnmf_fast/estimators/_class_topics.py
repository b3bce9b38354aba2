"""Topics of classes: starts from class means, supports, and the factorization guided by labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array, LabelsLike, Matrix
from .._common.locks import cached_property
from .._common.warn import warn_user
from .._data.border import CleanMatrix, check_random_state
from .._data.csr_file import CsrFile, chosen_blocks, chosen_rows
from .._labels import allowed, labels_of
from .._models.factorize import Factorization, factorize
from .._models.represent import represent
from .._solver.build import as_weights
from .._solver.weights import WeightsLike
from .._topics import topic_shares
from . import _views as views
from ._base import require
from ._training_data import (
    TrainingLabels,
    as_outer,
    labels_for_training,
    represented,
    weights_of,
    with_sample_weight,
)

SUPPORTS = math.inf  # with this supervision weight, labels restrict the components of a sample

Samples = TypeVar("Samples", bound="LabeledSamples")

_TRIAL_ITERATIONS = 10  # for topics that are only used to choose or to predict labels
_TOL = 1e-3  # of the representations during training
OVERALL = 0.3  # share of the overall mean in a start
_MOST_COMPLETED = 1 << 26  # entries of the largest matrix whose missing entries are filled in
_BYTES_PER_ENTRY = 64  # memory for samples from disk: the entry, a unit row and copies
_LEFT_OUT = "The committee has no member"
_UNLIKELY = 0.1  # start of B for a class and the components of other classes


@dataclass(frozen=True, kw_only=True)
class LabeledSamples:
    """Checked samples in memory or on disk, their labels, and the settings of the factorization."""

    X: Matrix
    X_weights: Any  # without `sample_weight`
    labels: TrainingLabels
    options: dict[str, Any]  # of factorize, except for `init` and the seed
    init: Any
    seed: int
    start_seed: int | None = None  # of random starts, if not `seed`
    view: views.View = field(default_factory=views.View)
    graph: views.Graph | None = None  # of neighbors
    whole: tuple[LabeledSamples, Array] | None = None  # all samples, and which these are, (n,)

    factorize: ClassVar[Callable[..., Factorization]] = staticmethod(factorize)

    @classmethod
    def of(cls: type[Samples], model: Any, X: Any, labels: TrainingLabels, **given: Any) -> Samples:
        state = model.random_state
        with_sample_weight(X, None, labels.sample_weight)  # raises for files
        given = {"X": X, "labels": labels, "init": "labels"} | given
        others = ("n_components", "init", "random_state", "supervision_weight")
        options = {name: p for name, p in model._arguments().items() if name not in others}
        seed = int(check_random_state(state).integers(2**31))
        # With an int, a random start is that of factorize with the same number.
        start_seed = int(state) if isinstance(state, (int, np.integer)) else None
        return cls(options=options, seed=seed, start_seed=start_seed, **given)

    def part(self, rows: Array) -> LabeledSamples:
        """Return some of the samples in memory, with a graph of their own."""
        view, graph = self.view[rows], self.graph
        if graph is not None:
            graph = views.Graph.of(view.scores, self.options["n_threads"])
        X = chosen_rows(self.X, rows) if isinstance(self.X, CsrFile) else self.X[rows]
        part = replace(self, view=view, graph=graph, labels=self.labels.part(rows), whole=None)
        return replace(part, X=X, X_weights=weights_of(rows, self.X_weights))

    def joined(self) -> LabeledSamples:
        """Return all samples that these are a part of, with the present labels of this part."""
        if self.whole is None:
            return self
        (whole, rows), truth = self.whole, self.labels.truth
        own = np.flatnonzero(rows)[self.labels.rows], truth.members, truth.entry_weights
        return replace(whole, labels=whole.labels.only(~rows).with_labels(*own))

    def of_all(self, values: Array, rows: Array, fill: float = 0) -> Array:
        """Return values of some of these samples, by their numbers, as values of all samples."""
        n = self.labels.n
        if self.whole is not None:
            n, rows = len(self.whole[1]), np.flatnonzero(self.whole[1])[rows]
        filled = np.full((n, *values.shape[1:]), fill, dtype=values.dtype)
        filled[rows] = values
        return filled

    def for_trials(self) -> LabeledSamples:
        """Return the same with fewer iterations, no callback and no output."""
        max_iter = min(self.options["max_iter"], _TRIAL_ITERATIONS)
        options = self.options | {"max_iter": max_iter, "callback": None, "verbose": 0}
        return replace(self, options=options)

    @cached_property
    def _seen(self) -> Any:
        return views.visible(self.X, self.X_weights)

    def sums(self, rows: Array, weights: Array) -> Array:
        return weighted_sums(self._seen, rows, weights)

    def support(self, owner: Array) -> Any:
        return allowed(self.labels.n, self.labels.rows, self.labels.truth.members, owner)

    def even_start(self, A: Array, support: Any) -> Any:
        return even_start(self._seen, A, support)

    def labeled_sums(self, S: Array) -> Array:
        return np.asarray((S[self.labels.rows] * self.labels.truth.weight[:, None]).sum(axis=0))

    def targets(self) -> tuple[Any, Any]:
        return targets_of(self.labels, self.X.dtype)

    @property
    def arguments(self) -> dict[str, Any]:
        """The data and the options, as arguments of factorize."""
        X_weights = with_sample_weight(self.X, self.X_weights, self.labels.sample_weight)
        return {"X": CleanMatrix(self.X), "X_weights": X_weights, **self.options}

    def fit_topics(self, n_components: int = 0, weight: float | str = SUPPORTS) -> Factorization:
        """Factorize the samples guided by their labels; TS-NMF if the weight is SUPPORTS."""
        rng, init, truth = np.random.default_rng(self.seed), self.init, self.labels.truth
        # The same number of components for each class; the remainder goes to the largest classes.
        counts = (truth.members * truth.weight[:, None]).sum(axis=0)
        k = len(counts)
        n_components = n_components or k
        each = np.full(k, n_components // k)
        each[np.argsort(-counts, kind="stable")[: n_components % k]] += 1
        owner = np.repeat(np.arange(k), each)
        if weight == SUPPORTS:
            start = init[1] if isinstance(init, (tuple, list)) else self._class_means(owner, rng)
            A = np.asarray(start, dtype=np.float64)
            support = self.support(owner)
            init = self.even_start(A, support), A.astype(self.X.dtype)
            settings: dict[str, Any] = {"n_components": n_components, "init": init}
            fit = self.factorize(**settings, S_support=support, **self.arguments)
            sums = np.bincount(owner, self.labeled_sums(fit.S), k)
            rates = np.where(sums > 0, counts / np.where(sums > 0, sums, 1), 0)
            B = (np.eye(k)[owner] * rates).astype(self.X.dtype)
            return replace(fit, B=B, supervision_weight=SUPPORTS)
        if isinstance(init, str) and init == "labels":
            A = self._class_means(owner, rng)
            S = self.even_start(A, None)
            B, total = np.where(np.eye(k)[owner], 1.0, _UNLIKELY), float(truth.weight.sum())
            mean = float(self.labeled_sums(S) / total @ B.mean(axis=1)) if total > 0 else 0.0
            B *= float((counts / total).mean()) / mean if mean > 0 else 1.0
            init = S, A.astype(self.X.dtype), B.astype(self.X.dtype)
        Y, y_weights = self.targets()
        settings = {"n_components": n_components, "supervision_weight": weight, "init": init}
        settings["random_state"] = self.seed if self.start_seed is None else self.start_seed
        return self.factorize(y=Y, y_weights=y_weights, **settings, **self.arguments)

    def _class_means(self, owner: Array, rng: np.random.Generator) -> Array:
        """Return a start of A, (r, m): class means, shrunk toward the overall mean."""
        labels, n = self.labels, self.labels.n
        even = labels.weight / labels.weight.sum()
        overall = np.asarray(self.sums(np.arange(n), even[:, None])[0])  # NaN counts as 0
        members = labels.truth.members
        weights = members[:, owner] * labels.truth.weight[:, None]
        for c in np.unique(owner):
            columns = np.flatnonzero(owner == c)
            rows = np.flatnonzero(members[:, c])
            if len(columns) > 1 and len(rows) > 1:
                numbers = columns[rng.permutation(len(rows)) % len(columns)]
                weights[np.ix_(rows, columns)] *= np.where(numbers[:, None] == columns, 1.0, 0.2)
                weights[np.ix_(rows, columns)] *= rng.uniform(0.5, 1.5, (len(rows), len(columns)))
        # Sums of columns of all samples, in their order, have the digits of a dense matrix.
        totals = np.array([labels.spread(column).sum() for column in weights.T])
        means = self.sums(labels.rows, weights / np.where(totals > 0, totals, 1))
        empty = totals == 0
        means[empty] = overall * rng.uniform(0.5, 1.5, (int(empty.sum()), len(overall)))
        return np.asarray((1 - OVERALL) * means + OVERALL * overall)

    def shares(self, A: Array, rows: Array) -> Array:
        """Return the topic shares of some samples, computed without labels, (rows, r)."""
        options = {name: self.options[name] for name in ("loss", "n_threads")} | {"tol": _TOL}

        def of(X: Matrix, X_weights: WeightsLike) -> Array:
            return represent(CleanMatrix(X), A, X_weights=X_weights, **options)

        return topic_shares(represented(of, self.X, self.X_weights, rows), A)


def weighted_sums(X: Matrix, rows: Array, weights: Array) -> Array:
    """Return the sums of some rows of X times weights, (columns of weights, m), float64."""
    some = weights.any(axis=1)
    rows, weights = rows[some], weights[some]
    if isinstance(X, CsrFile):
        sums = np.zeros((weights.shape[1], X.shape[1]))
        for places, part in chosen_blocks(X, rows):
            sums += part.T.dot(weights[places]).T
        return sums
    part = X if len(rows) == X.shape[0] else X[rows]
    if not sp.issparse(part):
        part = np.nan_to_num(part, nan=0.0)
    return np.asarray((part.T @ weights).T, dtype=np.float64)


def targets_of(labels: TrainingLabels, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    truth = labels.truth
    weights = truth.entry_weights * truth.weight[:, None]
    Y = labels.spread((truth.members * (weights > 0)).astype(dtype))
    equal, weights = (weights == weights[:, :1]).all(), labels.spread(weights)
    return Y, as_outer(weights[:, 0]) if equal else weights


def inputs_of_labels(
    model: Any, X: Matrix, y: LabelsLike, *, X_weights: WeightsLike = None, **weights: Any
) -> dict[str, Any]:
    """Return the inputs of a classifier's factorization, except supports."""
    weights.pop("side", None)
    require(model, X, y)
    labels = labels_for_training(labels_of(y, model.unlabeled), **weights)
    inputs = labels.inputs()
    inputs["X_weights"] = with_sample_weight(X, X_weights, labels.sample_weight)
    if "y" in model.receipt_.inputs:
        inputs["y"], inputs["y_weights"] = targets_of(labels, X.dtype)
    return inputs


def even_start(X: Matrix, A: Array, support: Array | None) -> Array:
    """Return a start of S in which all allowed components explain equal parts of a sample."""
    if support is None:
        support = np.ones((X.shape[0], len(A)), dtype=bool)
    scale = A.sum(axis=1).mean() * np.maximum(support.sum(axis=1), 1)
    return support * (views.row_sums(X) / np.where(scale > 0, scale, 1))[:, None]


def with_view(samples: LabeledSamples) -> LabeledSamples:
    """Return the samples with the view of the classifiers, if X can be completed."""
    X, X_weights, threads = samples.X, samples.X_weights, samples.options["n_threads"]
    missing = not (isinstance(X, CsrFile) or sp.issparse(X)) and bool(np.isnan(X).any())
    absent = None
    if X_weights is not None and not isinstance(X, CsrFile):
        find = as_weights(X_weights, "X_weights").absent(X.shape)
        if math.prod(X.shape) > _MOST_COMPLETED and not sp.issparse(find(slice(0, 1))):
            why = "as X is too large to be filled in. Give fewer samples, or weights.missing"
            warn_user(f"{_LEFT_OUT} but topics, {why}.", UserWarning)
            return samples
        absent, missing = find(slice(None)), True
    if missing:  # filled in by a low-rank model
        k = samples.labels.shape[1]
        trial = samples.for_trials().arguments
        fit = samples.factorize(n_components=k, random_state=samples.seed, **trial)
        X = views.filled(X, fit.S, fit.A, absent)
    directions = views.directions_of(X, samples.seed, threads, samples.labels.sample_weight)
    if directions is None:
        why = "as `memory` lacks labeled samples of some classes. Give more to open_csr"
        warn_user(f"{_LEFT_OUT} but topics, {why}.", UserWarning)
        return samples
    view, graph = views.view_of(X, directions, samples.view.tables), None
    if view.rows is not None and not samples.labels.several:
        if len(view) <= views.EXACT or find_spec("faiss") is not None:
            graph = views.Graph.of(view.scores, threads)
        else:
            way = "samples without faiss: pip install 'ssnmf-fast[neighbors]'"
            warn_user(f"{_LEFT_OUT} 'neighbors' for more than {views.EXACT:,} {way}.", UserWarning)
    return replace(samples, view=view, graph=graph)


def in_memory(samples: LabeledSamples) -> LabeledSamples:
    """Return samples with positive weight, in memory; from disk, labeled samples come first."""
    X, labels, weight = samples.X, samples.labels, samples.labels.sample_weight
    if weight is not None and not weight.all():
        return replace(samples.part(weight > 0), whole=(samples, weight > 0))
    if not isinstance(X, CsrFile):
        return samples
    rng = np.random.default_rng(samples.seed)
    groups = labels.rows, np.flatnonzero(~labels.known)
    order = np.concatenate([rng.permutation(group) for group in groups])[: views.EXACT]
    most = max(1, X.memory // _BYTES_PER_ENTRY)
    rows = np.zeros(labels.n, dtype=bool)
    rows[order[np.cumsum(np.diff(X.indptr)[order]) <= most]] = True
    if not labels.only(rows).truth.counts.all():  # too little memory
        return samples
    return replace(samples.part(rows), whole=(samples, rows))
