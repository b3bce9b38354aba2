"""The readout: predicts labels from features of samples.

The factor S of a fit depends on the labels, which new samples lack.  So the readout is fitted to
features of the labeled samples that are computed without their labels, as for new samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common.arrays import Array, Matrix
from .._common.saved import Saved
from .._data.border import require_finite
from .._data.threads import one_blas_thread
from .._solver.weights import WeightsLike
from .._topics import topic_shares
from ._base import product
from ._members import Linear, probabilities
from ._views import N_DIRECTIONS, PARTS, Tables, View, Votes, filled, row_blocks, row_sums, view_of

# The arrays of a readout that are saved, and their axes.
_AXES = dict.fromkeys(("intercepts", "slopes", "offsets", "thresholds"), "k")
_AXES["coefficients"] = "kp"
_OPTIONAL = {"directions": "dm", "side": "kq"}
_OF_VOTES = {"votes_points": "ve", "votes_scales": "v", "votes_chances": "vk", "votes_weight": "1"}
_LEAST_CHANCE = 1e-13  # thresholds of 0 and 1 have no logit
_LEAST_SHARE = 1e-9  # of a class in a probability


@dataclass(frozen=True)
class LogisticReadout:
    """Weighted sum of the members of a committee; its scores are logits.

    `coefficients` (k, p) of the linear members are for the roots of topic shares and, if there are
    `directions` (d, m), for scores along these and for rows of length 1; `intercepts` are (k,).
    `votes` of neighbors, and `side` (k, q), the coefficients of side tables, are added.  `slopes`
    and `offsets` (k,) calibrate the logits; labels are predicted where their probability exceeds
    `thresholds` (k,).
    """

    coefficients: Array
    intercepts: Array
    slopes: Array
    offsets: Array
    thresholds: Array
    directions: Array | None = None
    votes: Votes | None = None
    side: Array | None = None

    @classmethod
    def of(
        cls, linear: Linear, n_topics: int, view: View, votes: Votes | None = None
    ) -> LogisticReadout:
        """Return an uncalibrated readout for the parts and tables of a view."""
        k = len(linear.intercepts)
        directions = None if view.directions is None else view.directions[:N_DIRECTIONS]
        sizes = (n_topics, *(() if directions is None else directions.shape))
        widths = dict(zip(PARTS, sizes, strict=False))
        widths |= {name: table.shape[1] for name, table in view.tables.items()}
        parts = [linear.parts.get(name, np.zeros((k, width))) for name, width in widths.items()]
        side = np.hstack(parts[len(sizes) :]) if view.tables else None
        calibration = np.ones(k), np.zeros(k), np.full(k, 0.5)
        coefficients = np.hstack(parts[: len(sizes)])
        return cls(coefficients, linear.intercepts, *calibration, directions, votes, side)

    @property
    def linear(self) -> Linear:
        """The linear members without tables."""
        seen = () if self.directions is None else self.directions.shape
        r = self.coefficients.shape[1] - sum(seen)
        parts = np.split(self.coefficients, np.cumsum([r, *seen])[:-1], axis=1)
        return Linear(self.intercepts, dict(zip(PARTS, parts, strict=False)))

    @one_blas_thread()
    def logits(self, view: View, n_threads: int | None = None) -> Array:
        """Return calibrated logits without tables, (n, k)."""
        raw = self.linear.logits(view)
        if self.votes is not None:
            raw += self.votes.weight * self.votes.logits(view, n_threads)
        return np.asarray(raw * self.slopes + self.offsets)

    @one_blas_thread()
    def of_tables(self, tables: Tables) -> dict[str, Array]:
        """Return the logits of each table before calibration, (n, k)."""
        if self.side is None:
            return {}
        ends = np.cumsum([table.shape[1] for table in tables.values()])
        parts = zip(tables.items(), np.split(self.side, ends[:-1], axis=1), strict=True)
        return {name: np.asarray(table @ part.T) for (name, table), part in parts}

    def scores(self, model: Any, X: Matrix, X_weights: WeightsLike, tables: Tables) -> Array:
        S, A = model._represent(X, X_weights), model.components_
        shares = topic_shares(S, A)
        logits = np.zeros((len(shares), len(self.intercepts)))
        for rows, view in self.views(X, X_weights, S, A):
            logits[rows] = self.logits(replace(view, shares=shares[rows]), model.n_threads)
        empty, of_prior = empty_rows(model, X, shares)
        logits[empty] = of_prior
        require_finite({"the decision function": logits})
        logits += self.slopes * sum(self.of_tables(tables).values())
        return logits

    def views(
        self, X: Matrix, X_weights: WeightsLike, S: Array, A: Array
    ) -> Iterator[tuple[slice, View]]:
        """Yield blocks of rows and the views of these samples, without topics."""
        if self.directions is None:
            yield slice(None), View()
            return
        for rows, block, absent in row_blocks(X, X_weights):
            yield rows, view_of(filled(block, S[rows], A, absent), self.directions)

    def decide(self, scores: Array, limits: Array | None) -> Array:
        """Return the result of `decision_function`; several labels have `limits`."""
        if limits is not None:
            lower, upper = (np.maximum(part, _LEAST_CHANCE) for part in (limits, 1 - limits))
            return np.asarray(scores - np.log(lower / upper))
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 0])

    def proba(self, scores: Array, several: bool) -> Array:
        return probabilities(scores, several)

    def arrays(self) -> dict[str, Array]:
        parts = {name: vars(self)[name] for name in (*_AXES, *_OPTIONAL)}
        if self.votes is not None:
            parts |= {f"votes_{name}": part for name, part in vars(self.votes).items()}
        return {name: np.asarray(part) for name, part in parts.items() if part is not None}


def empty_rows(model: Any, X: Matrix, shares: Array) -> tuple[Array, Array]:
    """Return which samples are empty, (n,), and the logits of the prior, (k,)."""
    prior = np.clip(model.class_prior_, 1e-9, 1 - 1e-9)
    logits = np.log(prior / (1 - prior) if model.multilabel_ else prior)
    return (row_sums(X) == 0) | ~shares.any(axis=1), logits


@dataclass(frozen=True)
class ComponentReadout:
    """Scores S B, with B (r, k) of the factorization ("joint") or fitted afterwards ("refit")."""

    components: Array

    def scores(self, model: Any, X: Matrix, X_weights: WeightsLike, tables: Tables) -> Array:
        scores = product(model._represent(X, X_weights), self.components, "the predictions")
        if not model.multilabel_:
            scores[~scores.any(axis=1)] = model.class_prior_
        return scores

    def decide(self, scores: Array, limits: Array | None) -> Array:
        if limits is not None:
            return np.asarray(scores - limits.astype(scores.dtype))
        if scores.shape[1] > 2:
            return scores
        shares = _row_shares(scores)
        return np.asarray(shares[:, 1] - shares[:, 0])

    def proba(self, scores: Array, several: bool) -> Array:
        if several:
            margin = np.finfo(scores.dtype).eps
            return np.clip(scores, margin, 1 - margin)
        shares, least = _row_shares(scores), scores.dtype.type(_LEAST_SHARE)
        return np.asarray((shares + least) / (1 + least * shares.shape[1]))


Readout = LogisticReadout | ComponentReadout


class SavedReadout(Saved):
    """A :class:`LogisticReadout`, saved as its arrays."""

    @property
    def of_numbers(self) -> bool:
        return True

    def check(self, name: str, value: object, sizes: dict[str, int]) -> None:
        axes = _AXES | _OPTIONAL | _OF_VOTES
        if not isinstance(value, dict) or not _AXES.keys() <= value.keys() <= axes.keys():
            raise ValueError(f"{name} lacks the arrays {sorted(_AXES)}")
        if _OF_VOTES.keys() & value.keys() not in (set(), _OF_VOTES.keys()):
            raise ValueError(f"{name} lacks some of the arrays {sorted(_OF_VOTES)}")
        sizes["1"] = 1
        for part, array in value.items():
            Saved(axes[part], "finite").check(f"{name}.{part}", array, sizes)
        seen = sizes["d"] + sizes["m"] if "directions" in value else 0
        if sizes["p"] != sizes["r"] + seen:
            raise ValueError(f"{name} has {sizes['p']} columns, inconsistent with other arrays")
        if "votes_points" in value and sizes["e"] != sizes.get("d"):
            raise ValueError(f"{name} has inconsistent points and directions")

    def restored(self, value: Any) -> LogisticReadout:
        parts = {name: array for name, array in value.items() if name not in _OF_VOTES}
        if "votes_weight" in value:
            points, *others = (value[name] for name in _OF_VOTES)
            parts["votes"] = Votes(points.astype(np.float32, copy=False), *others)
        return LogisticReadout(**parts)


# Saved attributes of the readout and its classes.
READOUT_ATTRIBUTES = {
    "readout_": SavedReadout(optional=True),
    "class_shares_": Saved("rk", optional=True),
    "classes_": Saved("k", optional=True),
    "class_prior_": Saved("k", "nonnegative", optional=True),
    "multilabel_": Saved("", optional=True),
}


def _row_shares(scores: Array) -> Array:
    """Divide the rows by their sums, after scaling them so that tiny scores do not vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))
