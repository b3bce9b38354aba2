"""Choice of a rank by the scores of any criterion, and of the number of topics by hidden words.

By words: a tenth of the different words of each text is hidden, topics are found in the others, and
the score is the mean log-probability of a hidden word, given that it is not one of the visible
words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from ._backend.dispatch import kernels, padded
from ._common.arrays import Array
from ._common.optional import data_frame
from ._data.arrays import drop_entries, entry_rows, refuse_on_disk
from ._data.border import CleanMatrix, check_data
from ._data.threads import Stop, run_side_by_side
from ._models.factorize import factorize
from ._solver.loop import verbose_progress
from ._solver.result import FitState
from .plotting import rank_curve

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
        errors = ["" if np.isnan(e) else f" +- {e:.2g}" for e in self.standard_errors]
        of_ranks = zip(self.ranks, self.means, errors, strict=True)
        scores = [f"{rank:4}: {mean:.5g}{error}" for rank, mean, error in of_ranks]
        return "\n  ".join([head, f"{self.label}:", *scores, *self.notes])

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
        """Draw the scores with :func:`ssnmf_fast.plotting.rank_curve`; save by its `savefig`."""
        return rank_curve(self, ax=ax)


def standard_errors(scores: Array) -> Array:
    """Return the standard errors of the means of rows."""
    n = scores.shape[1]
    if n < 2:
        return np.full(len(scores), np.nan)
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(n))


GRID = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64)
_LEAST_GAIN = 0.05  # nats per word; shuffled texts gain at most 0.03, labeled texts at least 0.14
_LEAST_ERRORS = 3.0  # standard errors
_ENOUGH, _NEARLY_ALL, _LOST = 0.6, 0.9, 0.1  # shares of the largest gain
_EXPONENT = 0.22  # a doubling of the rank must add a sixth to the gain
_PATIENCE = 4  # ranks after the best
_STEP = 3.0  # between neighboring degrees of smoothing
_ALPHA, _BETA = (1.0, 0.3, 30.0), (1000.0, 100.0, 30_000.0)  # first, least and most
# Multiplicative steps: coordinate descent gets closer to the optimum, which predicts less well.
_FIT: dict[str, Any] = {"loss": "kullback-leibler", "solver": "mm", "max_iter": 50, "tol": 0}
_LEADING, _SHARED = 10, 4  # leading words of a topic, and common words of equal topics


class Fold:
    """Texts with hidden words; degrees of smoothing carry over from rank to rank.

    `beta` words of all texts are added to a topic, and `alpha` mean topics to a text.
    """

    def __init__(self, B: sp.csr_array, share: float, rng: np.random.Generator) -> None:
        hidden = rng.random(B.nnz) < share
        hidden[rng.integers(B.nnz)] = True
        self.seen = drop_entries(B, hidden)
        self.hidden, self.indices, self.rows = hidden, B.indices, entry_rows(B.indptr)
        self._entries = B.indptr.astype(np.int64), B.indices, np.zeros_like(B.data)
        counts = np.bincount(self.seen.indices, minlength=B.shape[1]) + 0.5
        self._words = counts / counts.sum()
        self._alpha, self._beta = _ALPHA[0], _BETA[0]

    def log_probabilities(self, rank: int, seed: int, threads: int, stop: Stop) -> Array:
        """Return the log-probabilities of the hidden words for topics of this rank."""
        del stop
        if rank == 1:  # the optimum, in closed form
            S, A = self.seen.sum(axis=1)[:, None], self.seen.sum(axis=0)[None]
        else:
            X = CleanMatrix(self.seen)
            fit = factorize(X, n_components=rank, random_state=seed, n_threads=threads, **_FIT)
            S, A = fit.S, fit.A
        sums = A.sum(axis=1, dtype=np.float64)
        A = (A / np.maximum(sums, 1e-300)[:, None]).astype(S.dtype)
        S = (S * sums).astype(S.dtype)
        candidates = self._neighbors()
        if rank == 1:  # the reference, with the best smoothing
            candidates = [(self._alpha, self._beta * _STEP**power) for power in range(-2, 9)]
        pairs = self._scores(S, A, candidates, threads)
        degrees, scores = max(pairs, key=lambda pair: float(pair[1].mean()))
        if rank > 1:
            self._alpha, self._beta = degrees
        return scores

    def _neighbors(self) -> list[tuple[float, float]]:
        """Return the degrees of smoothing of the previous rank, and neighboring degrees."""
        steps = ((1, 1), (_STEP, 1), (1 / _STEP, 1), (1, _STEP), (1, 1 / _STEP))
        near = [(self._alpha * a, self._beta * b) for a, b in steps]
        clipped = [(np.clip(a, *_ALPHA[1:]), np.clip(b, *_BETA[1:])) for a, b in near]
        return [(float(a), float(b)) for a, b in clipped]

    def _scores(
        self, S: Array, A: Array, tried: Sequence[tuple[float, float]], threads: int
    ) -> Iterator[tuple[tuple[float, float], Array]]:
        """Yield degrees of smoothing and their scores."""
        tokens = S.sum(axis=0, dtype=np.float64)
        shares, lengths = tokens / tokens.sum(), S.sum(axis=1, dtype=np.float64)
        F, products = padded(S, S.dtype), {}
        hidden = self.rows[self.hidden]
        for alpha, beta in tried:
            own, common = tokens / (tokens + beta), beta / (tokens + beta)
            if beta not in products:
                out, G = np.empty_like(self._entries[2]), padded((A * own[:, None]).T, S.dtype)
                kernels.mapped_residuals(
                    *self._entries, F, G, 1.0, 0.0, 1.0, 1.0, False, -np.inf, out, threads
                )
                products[beta] = -out
            of_words, of_rows = alpha * ((shares * own) @ A), S @ common + alpha * shares @ common
            p = products[beta] + of_words[self.indices]
            p += self._words[self.indices] * of_rows[self.rows]
            p = p / (lengths + alpha)[self.rows]
            seen = np.bincount(self.rows, weights=np.where(self.hidden, 0.0, p), minlength=len(S))
            rest = np.maximum(1 - seen, 1e-12)[hidden]
            yield (alpha, beta), np.log(np.maximum(p[self.hidden], 1e-300)) - np.log(rest)


def presence(X: Any, n_threads: int) -> sp.csr_array:
    """Return a sparse float32 matrix, 1 where a text has a word."""
    matrix = X.matrix if isinstance(X, CleanMatrix) else X
    refuse_on_disk(matrix, "the choice by words")
    if not (sp.issparse(matrix) or hasattr(matrix, "sparse")):
        raise ValueError(
            "The number of topics is chosen from words of texts in a sparse matrix; got "
            f"{type(matrix).__name__}. Give a scipy.sparse matrix of counts or TF-IDF; for other "
            "data, compare ranks by choose_rank(X, ranks)."
        )
    X = check_data(X, n_threads)
    B = drop_entries(X, ~(X.data > 0))
    B.data = np.ones(B.nnz, np.float32)
    B.sort_indices()
    if not B.nnz:
        raise ValueError("X has no entry above 0; expected texts with words.")
    return B


def choose_by_words(
    X: Any,
    rng: np.random.Generator,
    *,
    ranks: Sequence[int] | None = None,
    n_splits: int = 2,
    share: float = 0.1,
    stability: bool = False,
    n_jobs: tuple[int, int] = (1, 1),
    verbose: int = 0,
) -> RankChoice:
    """Choose the number of topics by hidden words; `n_jobs` is (number of fits, threads)."""
    jobs, threads = n_jobs
    B = presence(X, jobs * threads)
    most = max(1, min(B.shape) // 2)
    tried = sorted({1, *(GRID if ranks is None else ranks)})
    tried = [rank for rank in tried if rank <= most or ranks is not None]
    folds = [Fold(B, share, rng) for _ in range(n_splits)]
    seeds = rng.integers(2**31, size=(len(tried), n_splits)).tolist()
    first: list[Array] = []
    means: list[list[float]] = []
    gains: list[float] = []
    errors: list[float] = []
    with verbose_progress(verbose, sum(tried), "choose_rank", "gain", "topic") as progress:
        for number, (rank, own_seeds) in enumerate(zip(tried, seeds, strict=True)):
            pairs = zip(folds, own_seeds, strict=True)
            tasks = [partial(fold.log_probabilities, rank, seed) for fold, seed in pairs]
            scores = list(run_side_by_side(tasks, jobs, threads))
            first = first or scores
            better = np.concatenate([a - b for a, b in zip(scores, first, strict=True)])
            means.append([float(values.mean()) for values in scores])
            gains.append(float(better.mean()))
            errors.append(float(better.std() / np.sqrt(len(better))))
            if progress is not None:
                progress(FitState(sum(tried[: number + 1]), gains[-1]))
            best = int(np.argmax(gains))
            if number - best >= _PATIENCE and gains[-1] < (1 - _LOST) * gains[best]:
                break
    values = np.array(means)
    facts: dict[str, Any] = {"measures": {"perplexity": np.exp(-values)}}
    rank, facts["low"], facts["high"] = by_gains(tried, np.array(gains), np.array(errors))
    if stability and rank > 1:
        facts["recurring"] = _recurring(B, rank, rng, jobs * threads)
    return RankChoice(rank, tuple(tried[: len(values)]), values, "words", "words", **facts)


def by_gains(ranks: Sequence[int], gains: Array, errors: Array) -> tuple[int, int, int]:
    """Return the rank and the range of suitable ranks, by the gains over one topic."""
    best, tried = int(gains.argmax()), np.asarray(ranks[: len(gains)])
    most = gains[best]
    if most < _LEAST_GAIN or most < _LEAST_ERRORS * errors[best]:
        return 1, 1, 1
    low = int(tried[np.flatnonzero(gains >= _ENOUGH * most)[0]])
    if gains[-1] < (1 - _LOST) * most:
        rank = int(tried[np.flatnonzero(gains >= _NEARLY_ALL * most)[0]])
    else:
        rank = int(tried[(gains / tried**_EXPONENT).argmax()])
    return max(rank, low), low, int(tried[best])


def _recurring(B: sp.csr_array, rank: int, rng: np.random.Generator, threads: int) -> int:
    """Return how many topics of one half of the texts share leading words with the other half."""
    order, leading = rng.permutation(B.shape[0]), []
    for half in np.array_split(order, 2):
        seed = int(rng.integers(2**31))
        part = CleanMatrix(sp.csr_array(B[np.sort(half)]))
        fit = factorize(part, n_components=rank, random_state=seed, n_threads=threads, **_FIT)
        leading.append([set(np.argsort(-row, kind="stable")[:_LEADING].tolist()) for row in fit.A])
    return sum(any(len(own & other) >= _SHARED for other in leading[1]) for own in leading[0])
