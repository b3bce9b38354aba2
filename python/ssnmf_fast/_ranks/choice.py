"""Choice of a rank by the scores of any criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._common.arrays import Array
from .._common.optional import data_frame
from ..plotting import rank_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

Criterion = Literal["held-out", "words", "bound", "stability", "corcondia"]
Rule = Literal["near-best", "best"]
# Name of the score of each criterion, whether larger is better, whether it has standard errors.
CRITERIA = {
    "held-out": ("held-out error", False, True),
    "words": ("log-probability of hidden words", True, True),
    "bound": ("bound of the log evidence", True, False),
    "stability": ("stability", True, False),
    "corcondia": ("core consistency (%)", True, False),
}
# Of "near-best": a core consistency in percent, or a share of the stability, if starts vary less.
_TOLERANCE = {"stability": 0.05, "corcondia": 10.0}
_FEW = 3  # topics or fewer have to be tried to say that there are none
_PLATEAU = 0.5  # a curve is flat if more of the ranks are within a standard error of the best


@dataclass(frozen=True, eq=False)
class RankChoice:
    """Result of :func:`choose_rank`.

    Attributes
    ----------
    rank : int
        The chosen rank.
    ranks : tuple of int
        The ranks that were tried, in ascending order.
    scores : ndarray, shape (ranks, splits)
        For "held-out" the mean loss of held-out entries in each split (smaller is better; NaN after
        a rank was pruned).  For "words" the mean log-probability of hidden words in each split, for
        "bound" a column for each start, for "stability" and "corcondia" one column (larger is
        better).
    criterion, rule : str
        The arguments of :func:`choose_rank`.
    measures : dict of str to ndarray, shapes (ranks, splits)
        Other measures: "perplexity" of held-out counts for the Kullback-Leibler loss, and
        "label_score" of held-out labels.  For "stability" that of the "weakest" component, and the
        "spread" of all: the standard deviation of their silhouettes, or of the pairs of starts.
    low, high : int or None
        For "words" the range of suitable ranks, both 1 if there are no topics; otherwise None.
    recurring : int or None
        For "words" with ``stability=True``, the number of topics that recur in the other half of
        the texts.
    best_model : BayesianNMF, SupervisedBayesianNMF or None
        For "bound" the fitted model with the largest bound.
    """

    rank: int
    ranks: tuple[int, ...]
    scores: Array
    criterion: str
    rule: str
    measures: Mapping[str, Array] = field(default_factory=dict)
    low: int | None = None
    high: int | None = None
    recurring: int | None = None
    best_model: Any = None

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.ranks) or self.rank not in self.ranks:
            raise ValueError(f"rank {self.rank} and the scores do not belong to ranks {self.ranks}")

    def plain(self) -> dict[str, Any]:
        """Return the contents for a file."""
        measures = {name: measure.tolist() for name, measure in self.measures.items()}
        return vars(self) | {"scores": self.scores.tolist(), "measures": measures}

    @classmethod
    def by_rule(
        cls, ranks: tuple[int, ...], scores: Array, criterion: str, rule: str, **others: Any
    ) -> RankChoice:
        """Return the choice of a rule."""
        choice = cls(ranks[0], ranks, scores, criterion, rule, **others)
        losses, place = choice._losses, choice._best
        if rule == "near-best":
            tolerance = _TOLERANCE.get(criterion, np.nan_to_num(choice.standard_errors[place]))
            if criterion == "stability":  # a rank fails by a single component that starts miss
                spread = np.sqrt(np.mean(choice.measures["spread"] ** 2))
                losses = -choice.measures.get("weakest", scores)[:, 0]
                tolerance = max(tolerance, spread) * max(-losses.min(), 0)
            near = losses <= losses.min() + tolerance
            place = np.flatnonzero(near)[-1 if criterion in _TOLERANCE else 0]
        return replace(choice, rank=ranks[place])

    def __repr__(self) -> str:
        if self.criterion == "words":
            return self._in_words
        tried = f"{self.ranks[0]} to {self.ranks[-1]}" if len(self.ranks) > 1 else "this one"
        asked = f"criterion={self.criterion!r}, rule={self.rule!r}"
        head = f"RankChoice(rank={self.rank}, of {len(self.ranks)} tried, {tried}; {asked})"
        return "\n  ".join([head, *self.notes])

    @property
    def _in_words(self) -> str:
        if self.high == 1:
            if self._lowest <= _FEW:
                return "no topics found: the words of a text do not predict its other words"
            return "one topic predicts hidden words as well as the other ranks that were tried"
        less = " or fewer" * (self.low == self._lowest > 2)
        more = " or more" * (self.high == self.ranks[-1])
        text = f"{self.rank} topics; {self.low}{less} to {self.high}{more} would do"
        if self.recurring is not None:
            text += f"\n{self.recurring} of {self.rank} topics recur in the other half of the texts"
        return text

    @property
    def label(self) -> str:
        """Name of the scores."""
        return CRITERIA[self.criterion][0]

    @property
    def larger_is_better(self) -> bool:
        """Whether larger scores are better."""
        return CRITERIA[self.criterion][1]

    @property
    def means(self) -> Array:
        """Mean score of each rank over its splits, or its largest bound."""
        if self.criterion == "bound":
            return np.asarray(self.scores.max(axis=1))
        return np.asarray(np.nanmean(self.scores, axis=1))

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the means, (ranks,); NaN if there are none, or only one split."""
        if not CRITERIA[self.criterion][2]:
            return np.full(len(self.ranks), np.nan)
        seen = [scores[~np.isnan(scores)] for scores in self.scores]
        return np.concatenate([standard_errors(scores[None]) for scores in seen])

    @property
    def pruned(self) -> Array:
        """Whether a rank was dropped before the last split because it was worse, (ranks,)."""
        return np.asarray(np.isnan(self.scores).any(axis=1))

    @property
    def notes(self) -> list[str]:
        """Warnings: the curve is flat, or the best rank is the smallest or largest."""
        low, high, words = self._lowest, self.ranks[-1], self.criterion == "words"
        if self.ranks[0] == high:
            return []
        best = self.ranks[self._best]
        notes = []
        if self.rule == "near-best" and CRITERIA[self.criterion][2] and self.scores.shape[1] < 2:
            notes.append("One split has no standard error: this is the best rank. Use more splits.")
        if best == high and not (words and self.high == 1):
            near = self.criterion == "held-out" and self.rank < high
            also = f", and {self.rank} is within one standard error of it" * near
            notes.append(f"The best is the largest rank tried, {high}{also}: try larger ones.")
        if self.rank <= low > (2 if words or self.criterion == "stability" else 1):
            chosen = "The chosen rank is the smallest one tried"
            what = chosen if self.rank == low else "None is chosen"
            notes.append(f"{what}: try some below {low}.")
        if words:  # which has a range
            return notes
        differences = self.scores - self.scores[self._best]
        errors = np.nan_to_num(standard_errors(differences))
        alike = np.flatnonzero(self._losses - self._losses[self._best] <= errors)
        if CRITERIA[self.criterion][2] and len(alike) > max(1, _PLATEAU * len(self.ranks)):
            some = f"{len(alike)} of {len(self.ranks)} ranks"
            ends = f"from {self.ranks[alike[0]]} to {self.ranks[alike[-1]]}"
            same = "do not differ significantly from the best one"
            notes.append(f"The curve is flat: {some}, {ends}, {same}.")
        return notes

    @property
    def _lowest(self) -> int:
        """The smallest rank tried, for words that of at least 2."""
        return self.ranks[self.criterion == "words" and len(self.ranks) > 1]

    @property
    def _losses(self) -> Array:
        """Means with the sign that makes the smallest the best; infinite for pruned ranks."""
        losses = -self.means if self.larger_is_better else self.means
        return np.where(self.pruned, np.inf, losses)

    @property
    def _best(self) -> int:
        return int(self._losses.argmin())

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each rank: scores, standard error, measures, `pruned`."""
        part = "start" if self.criterion == "bound" else "split"
        columns: dict[str, Any] = {"mean": self.means, "standard_error": self.standard_errors}
        columns |= {name: np.nanmean(values, axis=1) for name, values in self.measures.items()}
        columns["pruned"] = self.pruned
        if self.criterion not in _TOLERANCE:  # which have a single score
            columns |= {f"{part}_{number}": of for number, of in enumerate(self.scores.T, start=1)}
        rows = zip(self.ranks, *(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(["rank", *columns], row, strict=True)) for row in rows]

    def to_frame(self) -> DataFrame:
        """Return :meth:`to_rows` as a pandas DataFrame."""
        table: DataFrame = data_frame(self.to_rows())
        return table

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the scores with :func:`ssnmf_fast.plotting.rank_curve`, and return its figure."""
        return rank_curve(self, ax=ax)


def standard_errors(scores: Array) -> Array:
    """Return the standard errors of the means of rows."""
    n = scores.shape[1]
    if n < 2:
        return np.full(len(scores), np.nan)
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(n))
