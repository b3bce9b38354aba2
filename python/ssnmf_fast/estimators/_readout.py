"""The readout: what predicts from what a model sees of samples whose labels it does not know.

The factor S of a fit knows the labels, and new samples have none: the readout is fitted on features
of the labeled samples that are computed without their labels, as those of new samples will be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from .._common.arrays import Array
from .._common.saved import Saved
from .._data.border import require_finite
from .._data.threads import one_blas_thread
from .._topics import topic_shares
from ._base import product
from ._committee import probabilities
from ._members import Linear
from ._views import N_DIRECTIONS, Context, Votes, context_of, filled, row_blocks, row_sums

_OF_CLASSES = ("intercepts", "slopes", "offsets", "thresholds")
_MAX_ITER = 1000
_LEAST_CHANCE = 1e-13  # a threshold of 0 or 1 has no logit
_LEAST_SHARE = 1e-9  # of a class in a probability
_SLOPES = (0.2, 1.5)  # of a calibration: validation of few labels may look too good


@dataclass(frozen=True)
class LogisticReadout:
    """Weighted sum of the members of a committee; its scores are logits.

    Linear members are one: `coefficients` (k, p) of the Hellinger coordinates of topic shares, of
    scores along `directions` (d, m) and of rows of length 1, the latter two unless there are no
    directions, and `intercepts` (k,).  `votes` of neighbors are added with their weight, and
    by others the products of `side` (k, q) with tables of side information.  `slopes` and `offsets`
    (k,) calibrate the logits, and a label is predicted where its probability lies above that of
    `thresholds` (k,).
    """

    coefficients: Array
    intercepts: Array
    slopes: Array
    offsets: Array
    thresholds: Array
    directions: Array | None = None
    votes: Votes | None = None
    votes_weight: float = 0.0
    side: Array | None = None

    @classmethod
    def of(
        cls,
        linear: Linear,
        n_topics: int,
        context: Context,
        votes: Votes | None = None,
        weight: float = 0.0,
        side: Array | None = None,
    ) -> LogisticReadout:
        """Return the readout of members, not yet calibrated."""
        k = len(linear.intercepts)
        directions = None if context.directions is None else context.directions[:N_DIRECTIONS]
        sizes = (n_topics, *((0, 0) if directions is None else directions.shape))
        given = zip((linear.topics, linear.scores, linear.rows), sizes, strict=True)
        parts = [np.zeros((k, size)) if part is None else part for part, size in given]
        uncalibrated = np.ones(k), np.zeros(k), np.full(k, 0.5)
        readout = cls(np.hstack(parts), linear.intercepts, *uncalibrated, directions)
        return replace(readout.with_votes(votes, weight), side=side)

    def with_votes(self, votes: Votes | None, weight: float) -> LogisticReadout:
        """Return the same with neighbors."""
        return replace(self, votes=votes, votes_weight=weight if votes is not None else 0.0)

    def shifted(self, offsets: Array) -> LogisticReadout:
        """Return the same with numbers added to the logits, (k,)."""
        return replace(self, offsets=self.offsets + offsets)

    def linear(self, r: int) -> Linear:
        """Return the parts of the coefficients, of which the first `r` are those of topics."""
        if self.directions is None:
            return Linear(self.intercepts, self.coefficients)
        topics, scores, rows = np.split(self.coefficients, [r, r + len(self.directions)], axis=1)
        return Linear(self.intercepts, topics, scores, rows)

    @one_blas_thread()
    def logits(self, context: Context, shares: Array, n_threads: int | None = None) -> Array:
        """Return calibrated logits, (n, k), for classes up to a constant of each sample."""
        raw = self.linear(shares.shape[1]).logits(context, shares)
        if self.votes is not None:
            raw += self.votes_weight * self.votes.logits(context.scores, n_threads)
        return np.asarray(raw * self.slopes + self.offsets)

    def scores(self, model: Any, X: Any, X_weights: Any) -> Array:
        """Return the scores of checked samples, (n, k)."""
        S, A = model._represent(X, X_weights), model.components_
        shares = topic_shares(S, A)
        logits = np.zeros((len(shares), len(self.intercepts)))
        for rows, context in self.contexts(X, X_weights, S, A):
            logits[rows] = self.logits(context, shares[rows], model.n_threads)
        logits[is_empty(X, shares)] = prior_logits(model)
        require_finite({"the decision function": logits})
        return logits

    def contexts(
        self, X: Any, X_weights: Any, S: Array, A: Array
    ) -> Iterator[tuple[slice, Context]]:
        """Yield bounded numbers of rows, and what is seen of these samples beside topics."""
        if self.directions is None:
            yield slice(None), Context()
            return
        for rows, block, absent in row_blocks(X, X_weights):
            yield rows, context_of(filled(block, S[rows], A, absent), self.directions)

    def decide(self, scores: Array, limits: Array | None) -> Array:
        """Return what `decision_function` returns; for several labels, with their limits."""
        if limits is not None:
            lower, upper = (np.maximum(part, _LEAST_CHANCE) for part in (limits, 1 - limits))
            return np.asarray(scores - np.log(lower / upper))
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 0])

    def proba(self, scores: Array, several: bool) -> Array:
        """Return probabilities, (n, k)."""
        return probabilities(scores, several)

    def arrays(self) -> dict[str, Array]:
        """Return what is saved of it."""
        parts: dict[str, Any] = {name: vars(self)[name] for name in (*_OF_CLASSES, "coefficients")}
        if self.directions is not None:
            parts["directions"] = self.directions
        if self.side is not None:
            parts["side"] = self.side
        if self.votes is not None:
            parts |= {f"votes_{name}": part for name, part in vars(self.votes).items()}
            parts["votes_weight"] = np.array([self.votes_weight])
        return {name: np.asarray(part, dtype=np.float64) for name, part in parts.items()}


def is_empty(X: Any, shares: Array) -> Array:
    """Return which samples there is nothing to see of, (n,)."""
    return np.asarray((row_sums(X) == 0) | ~shares.any(axis=1))


def prior_logits(model: Any) -> Array:
    """Return the logits of the frequencies of the classes, which empty samples get, (k,)."""
    prior = np.clip(model.class_prior_, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(prior / (1 - prior) if model.multilabel_ else prior))


@dataclass(frozen=True)
class ComponentReadout:
    """Scores S B, with B (r, k) of the factorization ("joint") or fitted afterwards ("refit")."""

    components: Array

    @property
    def thresholds(self) -> Array:
        return np.full(self.components.shape[1], 0.5)

    def scores(self, model: Any, X: Any, X_weights: Any) -> Array:
        S = model._represent(X, X_weights)
        scores = product(S, self.components, "the predictions")
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

    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """Raise ValueError unless the parts are there and fit together."""
        axes = {"coefficients": "kp"} | dict.fromkeys(_OF_CLASSES, "k")
        axes_of_votes = {"votes_points": "ve", "votes_scales": "v", "votes_chances": "vk"}
        optional = {"directions": "dm", "row_scale": "1", "side": "kq", "votes_weight": "1"}
        optional |= axes_of_votes
        if not isinstance(value, dict) or not axes.keys() <= value.keys() <= {*axes, *optional}:
            raise ValueError(f"{name} has not the parts {sorted(axes)}")
        votes = {"votes_weight", *axes_of_votes}
        if votes & value.keys() not in (set(), votes):
            raise ValueError(f"{name} has not all the parts {sorted(votes)}")
        sizes["1"] = 1
        for part, array in value.items():
            Saved((axes | optional)[part], "finite").check(f"{name}.{part}", array, sizes)
            if array.dtype.kind != "f":
                raise ValueError(f"{name}.{part} holds other than real numbers")
        seen = sizes["d"] + sizes["m"] if len(value.get("directions", ())) else 0
        if sizes["p"] != sizes["r"] + seen:
            raise ValueError(f"{name} has {sizes['p']} columns, which other arrays contradict")
        if "votes_points" in value and sizes["e"] != sizes.get("d"):
            raise ValueError(f"{name} has points and directions that contradict each other")

    def restored(self, value: Any) -> LogisticReadout:
        """Return the readout of checked arrays."""
        parts = {name: array for name, array in value.items() if not name.startswith("votes")}
        if not len(parts.get("directions", "-")):  # as version 0.1.0 wrote none
            del parts["directions"]
        row_scale = float(parts.pop("row_scale", np.ones(1))[0])  # 0.1.0 kept it beside
        if "directions" in parts:
            first = parts["coefficients"].shape[1] - parts["directions"].shape[1]
            columns = np.arange(parts["coefficients"].shape[1])
            parts["coefficients"] = parts["coefficients"] * np.where(columns < first, 1, row_scale)
        readout = LogisticReadout(**parts)
        if "votes_weight" not in value:
            return readout
        points, scales, chances = (
            value[f"votes_{part}"] for part in ("points", "scales", "chances")
        )
        votes = Votes(points.astype(np.float32), scales, chances)
        return readout.with_votes(votes, float(value["votes_weight"][0]))


# What is saved of a readout, and of the classes that it predicts.
READOUT_ATTRIBUTES = {
    "readout_": SavedReadout(optional=True),
    "class_shares_": Saved("rk", optional=True),
    "classes_": Saved("k", optional=True),
    "class_prior_": Saved("k", "finite", optional=True),
    "multilabel_": Saved("", optional=True),
}


def _row_shares(scores: Array) -> Array:
    """Divide the rows by their sums; scaled first, so that tiny scores cannot vanish."""
    scores = scores / scores.max(axis=1, keepdims=True)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


@one_blas_thread()
def calibration(logits: Array, targets: Array, several: bool, weight: Array) -> tuple[float, float]:
    """Return slope and offset that make validated logits probable (Platt 1999; temperature)."""
    if not several:  # a temperature
        slopes, rows = np.geomspace(*_SLOPES, 25), np.arange(len(targets))
        chances = (probabilities(slope * logits, False)[rows, targets] for slope in slopes)
        losses = [-np.average(np.log(chance), weights=weight) for chance in chances]
        return float(slopes[np.argmin(losses)]), 0.0
    flat, truth = logits.ravel()[:, None], targets.ravel() > 0
    if truth.all() or not truth.any():
        return 1.0, 0.0
    machine = LogisticRegression(C=1e6, max_iter=_MAX_ITER)
    machine.fit(flat, truth, sample_weight=np.repeat(weight, targets.shape[1]))
    slope = float(np.clip(machine.coef_[0, 0], *_SLOPES))
    return slope, float(machine.intercept_[0])
