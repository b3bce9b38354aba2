"""Result of :func:`choose_rank`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import Array
from ._search import standard_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What is compared, whether large values are good, and whether they have standard errors.
CRITERIA = {
    "held-out": ("held-out error", False, True),
    "block": ("held-out error", False, True),
    "bound": ("bound of the log evidence", True, False),
    "stability": ("stability", True, False),
    "corcondia": ("core consistency (%)", True, False),
}
# How far below the best a score counts as good, where few components have good scores in any case:
# of a silhouette or of a factor match score, and of a core consistency in percent.
_AS_GOOD = {"stability": 0.1, "corcondia": 10.0}
_PLATEAU = 0.5  # share of the ranks within a standard error of the best, from which on it is flat


@dataclass(frozen=True, eq=False)
class RankChoice:
    """Result of :func:`choose_rank`.

    Attributes
    ----------
    rank : int
        The rank that was chosen.
    ranks : tuple of int
        The ranks that were tried, in their order of size.
    scores : ndarray, shape (ranks, splits)
        The mean loss of held-out entries for every split, smaller is better; NaN where a rank was
        given up.  With the criterion "bound" a column for each start, with "stability" and
        "corcondia" one column: larger is better.
    criterion, rule : str
        As given.
    measures : dict of str to ndarray, shapes (ranks, splits)
        What else was measured: "perplexity" of held-out counts for the Kullback-Leibler loss, and
        "label_score" of held-out labels, where there are some.
    best_model : BayesianNMF, SupervisedBayesianNMF or None
        With the criterion "bound" the fitted model with the largest bound.
    """

    rank: int
    ranks: tuple[int, ...]
    scores: Array
    criterion: str
    rule: str
    measures: Mapping[str, Array] = field(default_factory=dict)
    best_model: Any = None

    @classmethod
    def of(
        cls, ranks: tuple[int, ...], scores: Array, criterion: str, rule: str, **others: Any
    ) -> RankChoice:
        """Return the choice that a rule makes.

        "one-se" takes the first rank near the best or, as few components are stable in any case,
        the last one that is about as stable; so with core consistency.
        """
        made = cls(ranks[0], ranks, scores, criterion, rule, **others)
        near = np.flatnonzero(made._near)
        place = made._best if rule == "best" else near[-1 if criterion in _AS_GOOD else 0]
        return replace(made, rank=ranks[place])

    def __repr__(self) -> str:
        tried = f"{self.ranks[0]} to {self.ranks[-1]}" if len(self.ranks) > 1 else "this one"
        lines = [
            f"RankChoice(rank={self.rank}, of {len(self.ranks)} tried, {tried}; "
            f"criterion={self.criterion!r}, rule={self.rule!r})"
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @property
    def label(self) -> str:
        """What is compared, as text."""
        return CRITERIA[self.criterion][0]

    @property
    def larger_is_better(self) -> bool:
        """Whether large scores are good."""
        return CRITERIA[self.criterion][1]

    @property
    def means(self) -> Array:
        """Mean score of every rank over the splits that it has seen, or the largest bound."""
        if self.criterion == "bound":
            return np.asarray(self.scores.max(axis=1))
        return np.asarray(np.nanmean(self.scores, axis=1))

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the means, (ranks,); NaN of bounds, and where there is one split."""
        if not CRITERIA[self.criterion][2]:
            return np.full(len(self.ranks), np.nan)
        seen = [scores[~np.isnan(scores)] for scores in self.scores]
        return np.concatenate([standard_errors(scores[None]) for scores in seen])

    @property
    def given_up(self) -> Array:
        """Whether a rank was given up before all splits, as it could not be chosen, (ranks,)."""
        return np.asarray(np.isnan(self.scores).any(axis=1))

    @property
    def notes(self) -> list[str]:
        """What to know of the choice: whether the curve is flat, or the best rank at an end."""
        low, high = self.ranks[0], self.ranks[-1]
        if low == high:
            return []
        best = self.ranks[self._best]
        found = []
        if best == high:
            found.append(f"The best is the largest rank tried, {high}: try larger ones.")
        elif self.rank == low > (2 if self.criterion == "stability" else 1):
            found.append(f"The chosen rank is the smallest one tried: try some below {low}.")
        alike = np.flatnonzero(self._alike)
        if CRITERIA[self.criterion][2] and len(alike) > max(1, _PLATEAU * len(self.ranks)):
            ends = self.ranks[alike[0]], self.ranks[alike[-1]]
            found.append(
                "The curve is flat: {} of {} ranks, from {} to {}, cannot be told from the best "
                "one.".format(len(alike), len(self.ranks), *ends)
            )
        return found

    @property
    def _losses(self) -> Array:
        """Means of which the smallest is best; ranks that were given up are out of the choice."""
        losses = -self.means if self.larger_is_better else self.means
        return np.where(self.given_up, np.inf, losses)

    @property
    def _best(self) -> int:
        return int(self._losses.argmin())

    @property
    def _near(self) -> Array:
        """Which ranks are within one standard error of the best, or about as stable."""
        error = np.nan_to_num(self.standard_errors[self._best])
        margin = _AS_GOOD.get(self.criterion, error)
        return np.asarray(self._losses <= self._losses[self._best] + margin)

    @property
    def _alike(self) -> Array:
        """Which ranks differ from the best by less than one standard error of the difference."""
        differences = self.scores - self.scores[self._best]
        errors = np.nan_to_num(standard_errors(differences))
        return np.asarray(self._losses - self._losses[self._best] <= errors)

    @property
    def table(self) -> Any:
        """A row for each rank, as a pandas DataFrame; without pandas a structured array.

        Columns are the rank, the mean score, its standard error, what else was measured, whether
        the rank was given up, and the score in every split.
        """
        rows = self.to_rows()
        try:
            import pandas
        except ImportError:
            kinds = [(name, np.asarray(value).dtype) for name, value in rows[0].items()]
            return np.array([tuple(row.values()) for row in rows], dtype=kinds)
        return pandas.DataFrame(rows)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return :attr:`table` as a list with a dictionary for each rank."""
        part = "start" if self.criterion == "bound" else "split"
        means, errors, given_up = self.means, self.standard_errors, self.given_up
        rows = []
        for place, rank in enumerate(self.ranks):
            row: dict[str, Any] = {"rank": rank, "mean": float(means[place])}
            row["standard_error"] = float(errors[place])
            for name, values in self.measures.items():
                row[name] = float(np.nanmean(values[place]))
            row["given_up"] = bool(given_up[place])
            if self.criterion not in _AS_GOOD:  # whose only score is the mean
                pairs = enumerate(self.scores[place].tolist(), start=1)
                row |= {f"{part}_{number}": score for number, score in pairs}
            rows.append(row)
        return rows

    def plot(self, ax: Any = None) -> Figure:
        """Draw the scores against the ranks, by :func:`ssnmf_fast.plotting.rank_curve`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ..plotting import rank_curve

        return rank_curve(self, ax=ax)
