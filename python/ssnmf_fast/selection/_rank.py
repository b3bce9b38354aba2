"""Function :func:`choose_rank` and its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from .._common.arrays import Array, LossName, Seed, VectorLike
from .._common.optional import TABLES_HINT, require_package
from .._common.text import short
from .._data.border import check_integer, check_option, check_random_state, check_real
from .._data.tensors import TensorLike, coordinate_parts, depth
from .._data.threads import resolve_threads
from .._solver.weights import WeightsLike
from ..estimators._cp import NonnegativeCP
from ..plotting import rank_curve
from ._criteria import Search, bounds, stabilities, standard_errors, tensor_scores
from ._held_out import Data, Fits, splits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

Criterion = Literal["held-out", "bound", "stability", "corcondia"]
Rule = Literal["near-best", "best"]
# The scores of each criterion, whether larger is better, and whether they have standard errors.
_CRITERIA = {
    "held-out": ("held-out error", False, True),
    "bound": ("bound of the log evidence", True, False),
    "stability": ("stability", True, False),
    "corcondia": ("core consistency (%)", True, False),
}
# Tolerance of "near-best", where few components have good scores in any case: of a silhouette or
# a factor match score, and of a core consistency in percent.
_TOLERANCE = {"stability": 0.1, "corcondia": 10.0}
_PLATEAU = 0.5  # share of the ranks within a standard error of the best from which a curve is flat
_STARTS, _STABILITY_STARTS = 3, 20
MOST_RANKS = 1000


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
        The mean loss of held-out entries for every split, smaller is better; NaN after a rank was
        pruned.  For "bound" a column for each start, for "stability" and "corcondia" one column:
        larger is better.
    criterion, rule : str
        The arguments of :func:`choose_rank`.
    measures : dict of str to ndarray, shapes (ranks, splits)
        Other measures: "perplexity" of held-out counts for the Kullback-Leibler loss, and
        "label_score" of held-out labels.
    best_model : BayesianNMF, SupervisedBayesianNMF or None
        For "bound" the fitted model with the largest bound.
    """

    rank: int
    ranks: tuple[int, ...]
    scores: Array
    criterion: str
    rule: str
    measures: Mapping[str, Array] = field(default_factory=dict)
    best_model: Any = None

    @classmethod
    def by_rule(
        cls, ranks: tuple[int, ...], scores: Array, criterion: str, rule: str, **others: Any
    ) -> RankChoice:
        """Return the choice that a rule makes."""
        made = cls(ranks[0], ranks, scores, criterion, rule, **others)
        losses, place = made._losses, made._best
        if rule == "near-best":
            error = np.nan_to_num(made.standard_errors[place])
            near = losses <= losses[place] + _TOLERANCE.get(criterion, error)
            place = np.flatnonzero(near)[-1 if criterion in _TOLERANCE else 0]
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
        """Name of the scores."""
        return _CRITERIA[self.criterion][0]

    @property
    def larger_is_better(self) -> bool:
        """Whether large scores are good."""
        return _CRITERIA[self.criterion][1]

    @property
    def means(self) -> Array:
        """Mean score of every rank over its splits, or its largest bound."""
        if self.criterion == "bound":
            return np.asarray(self.scores.max(axis=1))
        return np.asarray(np.nanmean(self.scores, axis=1))

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the means, (ranks,); NaN if there are none, or only one split."""
        if not _CRITERIA[self.criterion][2]:
            return np.full(len(self.ranks), np.nan)
        seen = [scores[~np.isnan(scores)] for scores in self.scores]
        return np.concatenate([standard_errors(scores[None]) for scores in seen])

    @property
    def pruned(self) -> Array:
        """Whether a rank was dropped before the last split, as clearly worse, (ranks,)."""
        return np.asarray(np.isnan(self.scores).any(axis=1))

    @property
    def notes(self) -> list[str]:
        """Warnings: the curve is flat, or the best rank is at an end."""
        low, high = self.ranks[0], self.ranks[-1]
        if low == high:
            return []
        best = self.ranks[self._best]
        notes = []
        if best == high:
            notes.append(f"The best is the largest rank tried, {high}: try larger ones.")
        elif self.rank == low > (2 if self.criterion == "stability" else 1):
            notes.append(f"The chosen rank is the smallest one tried: try some below {low}.")
        differences = self.scores - self.scores[self._best]
        errors = np.nan_to_num(standard_errors(differences))
        alike = np.flatnonzero(self._losses - self._losses[self._best] <= errors)
        if _CRITERIA[self.criterion][2] and len(alike) > max(1, _PLATEAU * len(self.ranks)):
            ends = self.ranks[alike[0]], self.ranks[alike[-1]]
            notes.append(
                "The curve is flat: {} of {} ranks, from {} to {}, do not differ significantly "
                "from the best one.".format(len(alike), len(self.ranks), *ends)
            )
        return notes

    @property
    def _losses(self) -> Array:
        """Means of which the smallest is best; infinite for pruned ranks."""
        losses = -self.means if self.larger_is_better else self.means
        return np.where(self.pruned, np.inf, losses)

    @property
    def _best(self) -> int:
        return int(self._losses.argmin())

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each rank.

        They hold the rank, the mean score, its standard error, other measures, whether the rank
        was pruned, and the score of every split.
        """
        part = "start" if self.criterion == "bound" else "split"
        columns: dict[str, Any] = {"mean": self.means, "standard_error": self.standard_errors}
        columns |= {name: np.nanmean(values, axis=1) for name, values in self.measures.items()}
        columns["pruned"] = self.pruned
        if self.criterion not in _TOLERANCE:  # whose only score is the mean
            columns |= {f"{part}_{number}": of for number, of in enumerate(self.scores.T, start=1)}
        rows = zip(self.ranks, *(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(["rank", *columns], row, strict=True)) for row in rows]

    def to_frame(self) -> DataFrame:
        """Return :meth:`to_rows` as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        with require_package("pandas", TABLES_HINT):
            from pandas import DataFrame
        return DataFrame(self.to_rows())

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the scores against the ranks, by :func:`ssnmf_fast.plotting.rank_curve`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return rank_curve(self, ax=ax)


def choose_rank(
    X: TensorLike,
    ranks: Iterable[int],
    *,
    y: VectorLike = None,
    criterion: Criterion = "held-out",
    estimator: BaseEstimator | None = None,
    loss: LossName | float | None = None,
    n_splits: int = 5,
    n_starts: int | None = None,
    validation_fraction: float = 0.1,
    mask_zeros: bool = True,
    rule: Rule = "near-best",
    X_weights: WeightsLike = None,
    max_iter: int | None = None,
    tol: float | None = None,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    random_state: Seed = None,
    verbose: int = 0,
) -> RankChoice:
    """Choose the number of components.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m), or a tensor
        Nonnegative samples; NaN in a dense X means missing.  A tensor has three modes or more, or
        comes as coordinates, in the forms of :func:`factorize_tensor`.
    ranks : iterable of int
        Ranks to try, each at least 1, such as ``range(2, 31, 2)``.
    y : array_like, shape (n,) or (n, k), optional
        Labels or targets, for an `estimator` that takes them.  Some of them are held out as well,
        and `label_score` shows how well they are predicted; the choice depends on X alone.
    criterion : {"held-out", "bound", "stability", "corcondia"}
        How ranks are compared; see Notes.  "bound" is for matrices, "corcondia" for tensors.
    estimator : optional
        An estimator of this package that takes `X_weights`, such as :class:`NMF`, for tensors a
        :class:`NonnegativeCP`, for "bound" a :class:`BayesianNMF` (the default) or
        :class:`ssnmf_fast.papers.SupervisedBayesianNMF`; it is not fitted itself.  None fits plain
        factorizations (:func:`factorize`, :func:`factorize_tensor`).
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, optional
        Loss of plain factorizations and their predictions; "frobenius" by default.
    n_splits : int
        Number of times that entries are held out, at least 1.
    n_starts : int, optional
        Number of starts of every rank in every split, at least 1; 3 by default, for "stability" 20.
        The best one by training loss is used.
    validation_fraction : float
        Share of the entries that are held out, above 0 and below 1.
    mask_zeros : bool
        Whether zeros are held out as well.  False is for zeros that stand for unknown values, for
        which predictions are not tested then.
    rule : {"near-best", "best"}
        "best" takes the rank with the best score, as "bound" always does.  "near-best" takes a rank
        whose score is nearly as good: for "held-out" the smallest within one standard error of the
        best, for "stability" and "corcondia" the largest within a tolerance (see Notes).
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of every entry; of a tensor as in :func:`factorize_tensor`.
        Entries without weight are not held out.
    max_iter : int, optional
        Largest number of iterations of a plain factorization; 500 by default.
    tol : float, optional
        Its tolerance; 1e-6 by default for squared errors, 1e-5 for others.  Models that are not
        fitted to the end predict like smaller ones.
    n_jobs, n_threads : int, optional
        Number of fits at a time (None: as many as threads can serve), and of threads of all fits
        together; neither changes the result.
    random_state : None, int, Generator or RandomState
        Seed of the splits and of the starts; None takes that of `estimator`, if there is one.
    verbose : int
        1 shows progress on standard error.

    Returns
    -------
    RankChoice

    Raises
    ------
    ValueError, TypeError
        For bad input.

    Notes
    -----
    *held-out*: a random share of the entries is held out from the fits [1]_, and predicted.  Every
    entry has the same chance.  For sparse data, zeros included, at most about four million entries
    are held out in a split: no array of the size of X is made.  Errors are means of the loss: for
    "frobenius" mean squared errors, for "kullback-leibler" half of the mean Poisson deviance, for
    matrices with the perplexity.  Where the loss would be infinite for a prediction of 0, a
    hundredth of a prediction comes from the sums of its row and column, or of its slices.  After
    three splits, ranks are pruned whose mean is more than five standard errors above the best.

    *bound*: the largest lower bound of the evidence of a Bayesian model [2]_.  Nothing is held out,
    `n_splits` is ignored, and the best model is kept.

    *stability*: components of `n_starts` starts of all data are clustered, as :func:`consensus`
    does; their mean silhouette measures how well the starts agree.  Few components are stable in
    any case: "near-best" takes the largest rank whose silhouette is at most 0.1 below the best.
    For tensors the score is the median :func:`~ssnmf_fast.metrics.factor_match_score` of pairs of
    starts, with the same rule; the starts are random, as `init="auto"` may not depend on the seed.

    *corcondia*: the :func:`~ssnmf_fast.metrics.core_consistency` of the best of `n_starts` fits to
    all data [3]_, in percent.  It is about 100 for one component: "near-best" takes the largest
    rank that is at most 10 below the best.

    References
    ----------
    .. [1] S. Wold, "Cross-validatory estimation of the number of components in factor and principal
       components models", 1978.
    .. [2] A. T. Cemgil, "Bayesian inference for nonnegative matrix factorisation models", 2009.
    .. [3] R. Bro, H. A. L. Kiers, "A new efficient method for determining the number of components
       in PARAFAC models", 2003.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(0.5, 4, (60, 3)) @ rng.gamma(0.5, 4, (3, 40)))
    >>> choice = sf.choose_rank(X, range(1, 7), loss="kullback-leibler", random_state=0)
    >>> choice.rank
    3
    """
    check_option(criterion, "criterion", tuple(_CRITERIA))
    check_option(rule, "rule", ("near-best", "best"))
    tried = _checked_ranks(ranks)
    if n_starts is None:
        n_starts = _STABILITY_STARTS if criterion == "stability" else _STARTS
    n_starts = check_integer(n_starts, "n_starts", 1)
    n_splits = check_integer(n_splits, "n_splits", 1)
    share = check_real(validation_fraction, "validation_fraction")
    if not 0 < share < 1:
        raise ValueError(
            f"validation_fraction must be above 0 and below 1, for example 0.1; got {share}."
        )
    if random_state is None:
        random_state = getattr(estimator, "random_state", None)
    rng, threads = check_random_state(random_state), resolve_threads(n_threads)
    search = Search(tried, n_splits, n_starts, n_jobs, n_threads, verbose)
    tensor = _is_tensor(X, estimator)
    _check_combination(tensor, criterion, y, X_weights, estimator)
    if criterion == "stability" and (n_starts < 2 or (tried[0] < 2 and not tensor)):
        needed = "n_starts" if tensor else "ranks and n_starts"
        given = n_starts if tensor else f"{tried[0]} and {n_starts}"
        raise ValueError(
            "criterion 'stability' compares the components of starts with each other: it needs "
            f"{needed} of at least 2; got {given}."
        )
    settings: dict[str, Any] = {"loss": loss, "max_iter": max_iter, "tol": tol}
    others: dict[str, Any] = {}
    if criterion == "bound":
        settings["X_weights"] = X_weights
        scores, others["best_model"] = bounds(X, y, estimator, search, rng, **settings)
        return RankChoice.by_rule(tried, scores, criterion, rule, **others)
    fits = Fits(estimator, tensor, criterion == "stability", **settings)
    if criterion == "stability" and not tensor:
        scores = stabilities(X, X_weights, fits, search, rng)
        return RankChoice.by_rule(tried, scores, criterion, rule)
    data = Data(X, X_weights, threads, tensor)
    if criterion == "held-out":
        every = splits(data, y, fits, share, bool(mask_zeros), rng)
        others["measures"] = search.held_out(islice(every, n_splits), rng)
        scores = others["measures"].pop("error")
    else:
        scores = tensor_scores(criterion, data, fits, search, rng)
    return RankChoice.by_rule(tried, scores, criterion, rule, **others)


def _is_tensor(X: Any, estimator: BaseEstimator | None) -> bool:
    """Return whether X has three modes or more, has coordinates, or is for NonnegativeCP."""
    if isinstance(estimator, NonnegativeCP):
        return True
    n_modes = len(X.shape) if hasattr(X, "shape") else depth(X)
    return n_modes > 2 or (not hasattr(X, "tocoo") and coordinate_parts(X, "X") is not None)


def _check_combination(
    tensor: bool, criterion: str, y: VectorLike, X_weights: WeightsLike, estimator: object
) -> None:
    """Raise an error for arguments that do not go together."""
    of_core, plain = criterion == "corcondia", estimator is None
    refused = {
        "y is not supported for tensors.": tensor and y is not None,
        "criterion='bound' is not available for tensors; use 'held-out', 'corcondia' or "
        "'stability'.": tensor and criterion == "bound",
        "criterion='corcondia' is only available for tensors.": of_core and not tensor,
        "criterion 'corcondia' takes no X_weights: its core is fitted to all entries; mark missing "
        "ones by NaN in a dense X, or use criterion='held-out'.": of_core and X_weights is not None,
        "y needs an estimator that takes labels, for example estimator=SSNMFClassifier(); give "
        "one, or leave y out.": plain and y is not None and criterion != "bound",
        "criterion='stability' fits plain factorizations and takes no estimator; give loss, "
        "max_iter and tol instead, or use criterion='held-out'.": (
            criterion == "stability" and not tensor and not plain
        ),
    }
    for message, is_wrong in refused.items():
        if is_wrong:
            raise ValueError(message)
    if tensor and not plain and not isinstance(estimator, NonnegativeCP):
        raise TypeError(
            "X is a tensor, whose estimator is NonnegativeCP; got "
            f"{type(estimator).__name__}. Leave estimator out, or give X as a matrix."
        )


def _checked_ranks(ranks: Iterable[int]) -> tuple[int, ...]:
    """Return ranks, sorted and without repeats."""
    if isinstance(ranks, (str, bytes)) or not isinstance(ranks, Iterable):
        raise TypeError(
            f"ranks must be a sequence of integers, for example [5, 10, 20]; got {short(ranks)}."
        )
    given = list(islice(ranks, MOST_RANKS + 1))
    if len(given) > MOST_RANKS:
        raise ValueError(
            f"ranks holds more than {MOST_RANKS} ranks, of which each is fitted several times; "
            "expected fewer, for example range(5, 100, 5)."
        )
    tried = {check_integer(rank, "every rank in ranks", 1) for rank in given}
    if not tried:
        raise ValueError("ranks is empty; expected at least one rank, for example [5, 10, 20].")
    return tuple(sorted(tried))
