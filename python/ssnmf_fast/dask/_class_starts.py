"""Topics of classes on a cluster: starts at the means of classes, and supports, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._models.factorize import Factorization
from ..estimators._class_topics import (
    FitOptions,
    class_readings,
    components_of_classes,
    drawn_means,
    even_start,
    guided_B,
    support_of,
    weighted_sums,
)
from ..estimators._label_guided import SUPPORTS, Choice
from ..estimators._missing import visible
from ..estimators._training_labels import TrainingLabels
from ..weights import outer
from ._build import BlockInput
from ._cluster import reduce_tasks
from ._data import Data
from ._factorize import factorize
from ._samples import Samples
from ._waiting import lasting, result_of


@dataclass(frozen=True)
class ClassTopics:
    """A factorization that labels guide; `labels` are those of some samples, the `chosen` ones."""

    X: Samples
    X_weights: Any
    chosen: Array
    labels: TrainingLabels
    choice: Choice
    options: FitOptions

    def fit(self, init: Any, seed: int, start_seed: int | None) -> Factorization:
        """Return what :meth:`Problem.topics` does in memory."""
        rng = np.random.default_rng(seed)
        owner = components_of_classes(self.choice.n_components, self.labels.counts)
        if self.choice.supervision_weight == SUPPORTS:
            return self._with_supports(init, owner, rng)
        if init == "labels":
            init = self._guided(owner, rng)
        weight = self.choice.supervision_weight
        return self._factorize(
            self._targets(),
            supervision_loss=self.options.supervision_loss,
            supervision_weight="balanced" if weight is None else weight,
            Y_weights=self._target_weights(),
            init=init,
            random_state=seed if start_seed is None else start_seed,
        )

    def _factorize(self, Y: Any = None, **arguments: Any) -> Factorization:
        X = self.X
        return factorize(
            X.futures,
            Y,
            n_components=self.choice.n_components,
            X_weights=self.X_weights,
            client=X.client,
            checkpoint=X.checkpoint,
            memory=X.memory,
            **arguments,
            **self.options.arguments(),
        )

    def _with_supports(self, init: Any, owner: Array, rng: np.random.Generator) -> Factorization:
        """Fit where labeled samples may have the components of their classes only."""
        data = self._data()
        given = isinstance(init, (tuple, list))
        A = np.asarray(init[1], dtype=np.float64) if given else self._means(data, owner, rng)
        members, known = self.labels.members, self.labels.known
        submit, rows = self.X.client.submit, _rows(data)
        supports = [
            submit(_support, n, mine, members[part], known[part], owner, pure=False)
            for n, (part, mine) in zip(rows, data.parts(self.chosen), strict=True)
        ]
        S = data.of_all_blocks(self._even(data, A, supports), len(owner))
        fit = self._factorize(
            init=(S, A.astype(data.dtype)), S_support=data.of_all_blocks(supports, len(owner))
        )
        labeled = fit.S[self.chosen[known]].sum(axis=0, dtype=np.float64)
        sums = result_of(self.X.client, self.X.client.compute(labeled))
        B = class_readings(sums, members[known], owner).astype(data.dtype)
        return replace(fit, B=B)

    def _guided(self, owner: Array, rng: np.random.Generator) -> tuple[list[Any], Array, Array]:
        """Return S by blocks, A and B to start from."""
        data, submit = self._data(), self.X.client.submit
        A = self._means(data, owner, rng)
        supports = [submit(np.ones, (n, len(owner)), bool, pure=False) for n in _rows(data)]
        S = self._even(data, A, supports)
        known = self.labels.known
        sums = [
            submit(_sum_of, each, rows, pure=False)
            for each, (_, rows) in zip(S, data.parts(self.chosen[known]), strict=True)
        ]
        means = reduce_tasks(self.X.client, sums) / known.sum()
        B = guided_B(means, self.labels.members[known], owner).astype(data.dtype)
        return data.of_all_blocks(S, len(owner)), A.astype(data.dtype), B

    def _data(self) -> Data:
        return self.X.loaded(self.X_weights, self.options.n_threads)

    def _even(self, data: Data, A: Array, supports: list[Any]) -> list[Any]:
        client = data.client
        shared = lasting(client, A)
        return [
            client.submit(_even, given, shared, support, pure=False)
            for given, support in zip(data.futures, supports, strict=True)
        ]

    def _means(self, data: Data, owner: Array, rng: np.random.Generator) -> Array:
        """Return A at the means of the classes."""
        n, client = data.shape[0], data.client
        shares = [client.submit(_sums, given, None, None, n, pure=False) for given in data.futures]
        overall = reduce_tasks(client, shares)[0]
        members = self.labels.members * self.labels.known[:, None]
        return drawn_means(partial(self._sums, data), overall, members, owner, rng)

    def _sums(self, data: Data, weights: Array) -> Array:
        """Return weights^T X over the chosen samples."""
        submit = data.client.submit
        parts = [
            submit(_sums, given, rows, weights[part], 1, pure=False)
            for given, (part, rows) in zip(data.futures, data.parts(self.chosen), strict=True)
            if len(rows)
        ]
        return np.asarray(reduce_tasks(data.client, parts))

    def _targets(self) -> Any:
        """Return Y, (n, k)."""
        members = sp.csr_array(self.labels.members)
        lengths = np.zeros(self.X.shape[0] + 1, dtype=np.int64)
        lengths[self.chosen + 1] = np.diff(members.indptr)
        parts = members.data, members.indices, np.cumsum(lengths)
        Y = sp.csr_array(parts, shape=(self.X.shape[0], members.shape[1]))
        return Y.astype(self.X.dtype)

    def _target_weights(self) -> Any:
        """Return weights of Y in the cheapest form."""
        weights, n = self.labels.entry_weights, self.X.shape[0]
        first = weights[:, 0]
        if (weights == first[:, None]).all():
            if len(first) == n and (first == 1).all():
                return None
            rows = np.zeros(n)
            rows[self.chosen] = first
            return outer(rows=rows)
        bounds, submit = np.cumsum([0, *self.X.rows]), self.X.client.submit
        places = np.searchsorted(self.chosen, bounds)
        return [
            submit(_spread, n, self.chosen[a:b] - first_row, weights[a:b], pure=False)
            for n, a, b, first_row in zip(
                self.X.rows, places[:-1], places[1:], bounds[:-1], strict=True
            )
        ]


def _rows(data: Data) -> list[int]:
    return [data.rows[position] for position in data.positions]


def _spread(n: int, rows: Array, values: Array) -> Array:
    """Return n rows of which some have values, and the others zeros."""
    spread = np.zeros((n, values.shape[1]), dtype=values.dtype)
    spread[rows] = values
    return spread


def _support(n: int, rows: Array, members: Array, known: Array, owner: Array) -> Array:
    all_known = np.zeros(n, dtype=bool)
    all_known[rows] = known
    return support_of(_spread(n, rows, members), all_known, owner)


def _sums(given: BlockInput, rows: Array | None, weights: Array | None, n: int) -> Array:
    """Return weights^T X of some rows of a block; of all rows, 1 / n of their sum."""
    X = visible(given.X, given.X_weights)
    if rows is None or weights is None:
        return weighted_sums(X, np.full((X.shape[0], 1), 1 / n))
    return weighted_sums(X, _spread(X.shape[0], rows, weights))


def _even(given: BlockInput, A: Array, support: Array) -> Array:
    """Return a start of the rows of S of a block."""
    S = even_start(visible(given.X, given.X_weights), A, support)
    return np.asarray(S, dtype=given.X.dtype)


def _sum_of(S: Array, rows: Array) -> Array:
    return np.asarray(S[rows].sum(axis=0, dtype=np.float64))
