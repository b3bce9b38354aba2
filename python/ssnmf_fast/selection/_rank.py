"""Function :func:`choose_rank`: its fits from several starts, and its criteria."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import euclidean_distances

from .._common.arrays import Array, LossName, MatrixLike, Seed, VectorLike
from .._common.text import short
from .._common.warn import IDLE, quietly
from .._data.border import (
    CleanMatrix,
    by_name,
    check_data,
    check_integer,
    check_option,
    check_random_state,
    check_share,
)
from .._data.tensors import TensorLike, coordinate_parts, depth
from .._data.threads import Stop, limited_openmp, resolve_jobs, resolve_threads, run_side_by_side
from .._linalg import unit_rows
from .._models.fits import draw_seeds, fit_starts
from .._ranks import CRITERIA, Criterion, RankChoice, Rule, choose_by_words, standard_errors
from .._solver.loop import verbose_progress
from .._solver.result import FitState
from .._solver.weights import WeightsLike
from ..estimators._bayesian import BayesianBase, BayesianNMF
from ..estimators._cp import NonnegativeCP
from ..metrics import core_consistency, factor_match_score
from ._consensus import clusters_of
from ._held_out import RankData, RankFit, RankFits, Run, fit_copy, refuse_both, splits

# After a few splits a rank is pruned if its mean error is this many standard errors above the best.
_LEAST_SPLITS, _FAR = 3, 5.0


@dataclass(frozen=True)
class Search:
    """Ranks, splits, starts, jobs and threads of all fits."""

    ranks: tuple[int, ...]
    n_splits: int
    n_starts: int
    n_jobs: int | None
    n_threads: int | None
    verbose: int

    def held_out(self, splits: Iterable[Run], rng: Generator) -> dict[str, Array]:
        """Return the measures of the best start of each rank, (ranks, splits); NaN if pruned."""
        shape = len(self.ranks), self.n_splits
        measures: dict[str, Array] = {}
        active = np.ones(len(self.ranks), dtype=bool)
        n_fits = self.n_starts * len(self.ranks) * self.n_splits
        shown = self.verbose, n_fits, "choose_rank", "error", "fit"
        with verbose_progress(*shown) as progress:
            for number, split in enumerate(splits):
                places = np.flatnonzero(active).tolist()
                fits = self.starts(split, [self.ranks[place] for place in places], rng)
                for place, starts in zip(places, fits, strict=True):
                    best = min(starts, key=lambda fit: fit.objective)
                    for name, value in best.measures.items():
                        measures.setdefault(name, np.full(shape, np.nan))[place, number] = value
                    if progress is not None:
                        done = self.n_starts * (number * len(self.ranks) + place + 1)
                        progress(FitState(done, best.measures["error"]))
                if _LEAST_SPLITS <= number + 1 < self.n_splits:
                    active &= ~_far_from_best(measures["error"][:, : number + 1])
        return measures

    def starts(self, run: Run, ranks: Sequence[int], rng: Generator) -> Iterable[list[RankFit]]:
        """Return an iterable of the fits of all starts of each rank, in order."""
        seeds = draw_seeds(rng, self.n_starts)
        jobs, threads = resolve_jobs(self.n_jobs, self.n_threads, len(ranks) * len(seeds))
        tasks = (partial(run, rank, seed) for rank in ranks for seed in seeds)
        fits = run_side_by_side(tasks, jobs, threads)
        return ([next(fits) for _ in seeds] for _ in ranks)

    def by_rank(self, scores: Iterable[tuple[float, ...]], name: str) -> dict[str, Array]:
        """Return the scores of the ranks, then their measures, as columns; show progress."""
        rows: list[tuple[float, ...]] = []
        shown = self.verbose, len(self.ranks), "choose_rank", name, "rank"
        with verbose_progress(*shown) as progress:
            for score in scores:
                rows.append(score)
                if progress is not None:
                    progress(FitState(len(rows), score[0]))
        names = "error", "spread", "weakest"
        return dict(zip(names, np.array(rows).T[:, :, None], strict=False))


def _far_from_best(errors: Array) -> Array:
    """Return which ranks are to be pruned; those with NaN already are."""
    means = np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))
    best = int(means.argmin())
    with np.errstate(invalid="ignore"):
        of_differences = standard_errors(errors - errors[best])
    unsure = np.fmax(of_differences, standard_errors(errors[best : best + 1]))
    return np.asarray(means - means[best] > _FAR * unsure)


def _bounds(
    X: MatrixLike, y: VectorLike, model: Any, search: Search, rng: Generator, **settings: object
) -> tuple[Array, Any]:
    """Return the bounds of a Bayesian model, (ranks, starts), and the best model."""
    model = BayesianNMF() if model is None else model
    if not isinstance(model, BayesianBase):
        needed = f"a BayesianNMF or SupervisedBayesianNMF as estimator; got {type(model).__name__}"
        raise TypeError(f"criterion 'bound' needs {needed}.")
    refuse_both(model, [name for name, value in settings.items() if value is not None])

    def run(rank: int, seed: int, threads: int, stop: Stop) -> RankFit:
        # Unused components are expected here.
        fitted = quietly(IDLE, fit_copy, model, X, y, rank, seed, threads, stop)
        return RankFit(-fitted.lower_bound_, model=fitted)

    best, values = RankFit(np.inf), []
    for fits in search.starts(run, search.ranks, rng):
        best = min([best, *fits], key=lambda fit: fit.objective)
        values.append([-fit.objective for fit in fits])
    return np.array(values), best.model


def _stabilities(
    X: TensorLike, X_weights: WeightsLike, fits: RankFits, search: Search, rng: Generator
) -> dict[str, Array]:
    """Return mean and spread of the silhouettes of components, and the mean of the weakest one."""
    clean = CleanMatrix(check_data(X, resolve_threads(search.n_threads)))
    of_clusters, *seeds = draw_seeds(rng, search.n_starts + 1)
    settings = {name: fits.settings[name] for name in ("loss", "max_iter", "tol")}
    settings |= {"X_weights": X_weights, "init": "random"}
    settings |= {"n_jobs": search.n_jobs, "n_threads": search.n_threads}

    def silhouettes(rank: int) -> tuple[float, float, float]:
        starts = fit_starts(clean, seeds, n_components=rank, **settings)
        spectra = unit_rows(np.concatenate([start.A for start in starts]))
        spectra = spectra[spectra.any(axis=1)]  # components may be zero
        if not len(spectra):
            return 0.0, 0.0, 0.0
        with limited_openmp(1):
            labels, values = clusters_of(spectra, euclidean_distances(spectra), rank, of_clusters)
        values, sizes = np.nan_to_num(values), np.bincount(labels, minlength=rank)
        weakest = (np.bincount(labels, values, minlength=rank) / np.maximum(sizes, 1)).min()
        return float(values.mean()), float(values.std()), float(weakest)

    return search.by_rank(map(silhouettes, search.ranks), "stability")


def _tensor_scores(
    criterion: str, data: RankData, fits: RankFits, search: Search, rng: Generator
) -> dict[str, Array]:
    """Return the agreement of starts and its spread, or the core consistency of the best one."""

    def agreement(starts: list[RankFit]) -> tuple[float, float]:
        # The mean would depend on the number of poor optima.
        scores = [factor_match_score(A, B) for A, B in combinations(starts, 2)]
        return float(np.median(scores)), float(np.std(scores))

    def consistency(starts: list[RankFit]) -> tuple[float]:
        best = min(starts, key=lambda fit: fit.objective)
        return (float(np.nan_to_num(core_consistency(best, data.X))),)

    runs = search.starts(partial(fits.fit, data.X, data.weights, None), search.ranks, rng)
    if criterion == "stability":
        return search.by_rank(map(agreement, runs), "agreement")
    return search.by_rank(map(consistency, runs), "core consistency")


_SPLITS, _STARTS = {"words": 2}, {"stability": 20}  # by default, other than 5 and 3
MOST_RANKS = 1000
_OF_SPLITS = ("n_splits", "validation_fraction", "mask_zeros")
_OF_FITS = ("y", "estimator", "X_weights", "loss", "n_starts", "max_iter", "tol")
_UNUSED: dict[str, tuple[str, ...]] = {  # arguments that a criterion does not use
    **dict.fromkeys(("bound", "stability"), _OF_SPLITS),
    "corcondia": (*_OF_SPLITS, "X_weights"),
    "words": (*_OF_FITS, "mask_zeros", "rule"),
}


def choose_rank(
    X: TensorLike,
    ranks: Iterable[int] | None = None,
    *,
    y: VectorLike = None,
    criterion: Criterion = "held-out",
    estimator: BaseEstimator | None = None,
    loss: LossName | float | None = None,
    n_splits: int | None = None,
    n_starts: int | None = None,
    validation_fraction: float = 0.1,
    mask_zeros: bool = True,
    rule: Rule = "near-best",
    stability: bool = False,
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
        Nonnegative samples; NaN in a dense X means missing.  Arrays with three modes or more, and
        coordinates in the forms of :func:`factorize_tensor`, are tensors.
    ranks : iterable of int, optional
        Ranks to try, each at least 1, such as ``range(2, 31, 2)``.  "words" does not need them: it
        tries 16 ranks from 1 to 64, up to half of the smaller side of X.
    y : array_like, shape (n,) or (n, k), optional
        Labels or targets, for an `estimator` that takes them.  Some of them are held out as well,
        and `label_score` shows how well they are predicted; the choice depends only on X.
    criterion : {"held-out", "words", "bound", "stability", "corcondia"}
        How ranks are compared; see Notes.  "words" is for texts and takes seconds; "bound" is for
        matrices, "corcondia" for tensors.
    estimator : optional
        Estimator of this package to fit copies of: one that takes `X_weights`, such as
        :class:`NMF`; for tensors a :class:`NonnegativeCP`; for "bound" a :class:`BayesianNMF` (the
        default) or :class:`ssnmf_fast.papers.SupervisedBayesianNMF`.  None fits plain
        factorizations (:func:`factorize`, :func:`factorize_tensor`).
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, optional
        Loss of plain factorizations and their predictions; "frobenius" by default.
    n_splits : int
        Number of splits into fitted and held-out entries, at least 1; by default 5, for "words" 2.
    n_starts : int, optional
        Number of starts for each rank and split, at least 1; by default 3, for "stability" 20.  The
        best one by training loss is used.
    validation_fraction : float
        Share of the entries that are held out, above 0 and below 1.
    mask_zeros : bool
        Whether zeros are held out as well.  Use False if zeros mean unknown values.
    rule : {"near-best", "best"}
        "best" takes the rank with the best score, as "bound" always does.  "near-best" takes a rank
        whose score is nearly as good: for "held-out" the smallest within one standard error of the
        best, for "stability" and "corcondia" the largest within a tolerance (see Notes).
    stability : bool
        Whether "words" also counts the topics that recur in the other half of the texts.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of each entry, as in the function that fits.  Entries
        without weight are not held out.
    max_iter : int, optional
        Largest number of iterations of a plain factorization; 500 by default.
    tol : float, optional
        Tolerance of a plain factorization; by default 1e-6 for squared errors, 1e-5 for other
        losses.  Models that have not converged predict like smaller models.
    n_jobs, n_threads : int, optional
        Number of fits at a time (None: chosen by the number of threads), and total number of
        threads; neither changes the result.
    random_state : None, int, Generator or RandomState
        Seed of the splits and the starts; None takes that of `estimator`, if there is one.
    verbose : int
        1 shows progress on standard error.

    Returns
    -------
    RankChoice

    Raises
    ------
    ValueError, TypeError
        For bad input, and for arguments that the criterion does not use.

    Notes
    -----
    *held-out*: a random share of the entries is held out of the fits [1]_ and predicted.  All
    entries have the same chance.  For sparse data, at most about four million entries (including
    zeros) are held out in a split, and no array of the size of X is made.  The error is the mean
    loss: for "frobenius" the mean squared error, for "kullback-leibler" half of the mean Poisson
    deviance (with the perplexity, for matrices).  If the loss is infinite for a prediction of 0, a
    hundredth of each prediction comes from the sums of its row and column, or of its slices.  After
    three splits, ranks with a mean more than five standard errors above the best are pruned.

    *words*: for sparse matrices of texts.  The result depends only on which words occur, not on
    counts or TF-IDF.  A tenth of the different words of each text is hidden, Kullback-Leibler NMF
    finds topics in the others, and the score is the smoothed mean log-probability of a hidden word,
    given that it is not one of the visible words.  The gain of a rank is its score minus the score
    of one topic.  If the largest gain is below 0.05 nats per word or 3 standard errors, there are
    no topics.  If the gain falls after its maximum, the chosen rank is the smallest with 90 % of
    the largest gain; otherwise each doubling of the rank must add a sixth to the gain.  `low` is
    the smallest rank with 60 % of the largest gain, `high` the rank with the largest gain.  The
    result does not estimate the number of classes.

    *bound*: the largest lower bound of the evidence of a Bayesian model [2]_.  Nothing is held out,
    and the best model is kept.

    *stability*: components of `n_starts` fits to all data are clustered as in :func:`consensus`;
    their mean silhouette measures how well the starts agree.  Small numbers of components are
    often stable, so "near-best" takes the largest rank whose weakest cluster has a mean silhouette
    within a tolerance of the best: that share of it which is the standard deviation of silhouettes,
    over all ranks, and at least 0.05.  For tensors, the median
    :func:`~ssnmf_fast.metrics.factor_match_score` of pairs of random starts is the score, also of
    the weakest; the standard deviation is that of the pairs.

    *corcondia*: the :func:`~ssnmf_fast.metrics.core_consistency` of the best of `n_starts` fits to
    all data [3]_, in percent.  It is about 100 for one component, so "near-best" takes the largest
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
    >>> choice = sf.choose_rank(X, range(1, 7), loss="kullback-leibler",
    ...                         random_state=0)
    >>> choice.rank
    3
    """
    called, parameters = {**locals()}, signature(choose_rank).parameters
    check_option(criterion, "criterion", tuple(CRITERIA))
    check_option(rule, "rule", ("near-best", "best"))
    words = criterion == "words"
    if ranks is None and not words:
        ways = "for example range(2, 31, 2); only criterion='words', for texts in a sparse matrix"
        raise ValueError(f"criterion {criterion!r} needs ranks, {ways}, does not.")
    candidates = None if ranks is None else _checked_ranks(ranks)
    n_splits = _SPLITS.get(criterion, 5) if n_splits is None else n_splits
    n_starts = _STARTS.get(criterion, 3) if n_starts is None else n_starts
    n_starts = check_integer(n_starts, "n_starts", 1)
    n_splits = check_integer(n_splits, "n_splits", 1)
    share = check_share(validation_fraction, "validation_fraction")
    if random_state is None:
        random_state = getattr(estimator, "random_state", None)
    rng, threads = check_random_state(random_state), resolve_threads(n_threads)
    if stability and not words:
        raise ValueError(f"stability=True needs criterion='words'; got {criterion!r}.")
    for name in _UNUSED.get(criterion, ()):
        value, default = called[name], parameters[name].default
        if value is not default and (default is None or value != default):
            how = "leave it out, or use criterion='held-out'"
            raise ValueError(f"criterion {criterion!r} does not take {name}; {how}.")
    if words:
        jobs = resolve_jobs(n_jobs, n_threads, n_splits)
        options: dict[str, Any] = {"n_splits": n_splits, "share": share, "stability": stability}
        return choose_by_words(X, rng, ranks=candidates, n_jobs=jobs, verbose=verbose, **options)
    assert candidates is not None
    X_weights = by_name(X, X_weights=X_weights)["X_weights"]
    if estimator is not None and hasattr(X, "columns"):
        estimator = clone(estimator).set_params(**by_name(X, **estimator.get_params(False)))
    search = Search(candidates, n_splits, n_starts, n_jobs, n_threads, verbose)
    tensor = _is_tensor(X, estimator)
    _check_combination(tensor, criterion, y, estimator)
    if criterion == "stability" and (n_starts < 2 or (candidates[0] < 2 and not tensor)):
        needed = "n_starts" if tensor else "ranks and n_starts"
        numbers = n_starts if tensor else f"{candidates[0]} and {n_starts}"
        raise ValueError(f"criterion 'stability' needs {needed} of at least 2; got {numbers}.")
    settings: dict[str, Any] = {"loss": loss, "max_iter": max_iter, "tol": tol}
    if criterion == "bound":
        settings["X_weights"] = X_weights
        scores, best = _bounds(X, y, estimator, search, rng, **settings)
        return RankChoice.by_rule(candidates, scores, criterion, rule, best_model=best)
    fits = RankFits(estimator, tensor, criterion == "stability", **settings)
    if criterion == "stability" and not tensor:
        measures = _stabilities(X, X_weights, fits, search, rng)
        return RankChoice.by_rule(
            candidates, measures.pop("error"), criterion, rule, measures=measures
        )
    data = RankData(X, X_weights, threads, tensor)
    if criterion == "held-out":
        runs = splits(data, y, fits, share, bool(mask_zeros), rng)
        measures = search.held_out(islice(runs, n_splits), rng)
    else:
        measures = _tensor_scores(criterion, data, fits, search, rng)
    return RankChoice.by_rule(candidates, measures.pop("error"), criterion, rule, measures=measures)


def _is_tensor(X: Any, estimator: BaseEstimator | None) -> bool:
    """Return whether X has three modes or more, has coordinates, or is for NonnegativeCP."""
    if isinstance(estimator, NonnegativeCP):
        return True
    n_modes = len(X.shape) if hasattr(X, "shape") else depth(X)
    return n_modes > 2 or (not hasattr(X, "tocoo") and coordinate_parts(X, "X") is not None)


def _check_combination(tensor: bool, criterion: str, y: VectorLike, estimator: object) -> None:
    """Raise an error for arguments that do not go together."""
    of_core, plain = criterion == "corcondia", estimator is None
    stable = criterion == "stability" and not tensor
    refused = {
        "y is not supported for tensors.": tensor and y is not None,
        "criterion='bound' is not available for tensors; use 'held-out', 'corcondia' or "
        "'stability'.": tensor and criterion == "bound",
        "criterion='corcondia' is only available for tensors.": of_core and not tensor,
        "y needs an estimator that takes labels, for example estimator=SSNMFClassifier(); give "
        "one, or leave y out.": plain and y is not None and criterion != "bound",
        "criterion='stability' fits plain factorizations and does not take an estimator; give "
        "loss, max_iter and tol instead, or use criterion='held-out'.": stable and not plain,
    }
    for message, is_wrong in refused.items():
        if is_wrong:
            raise ValueError(message)
    if tensor and not plain and not isinstance(estimator, NonnegativeCP):
        got = f"got {type(estimator).__name__}. Leave estimator out, or give X as a matrix"
        raise TypeError(f"X is a tensor and needs a NonnegativeCP as estimator; {got}.")


def _checked_ranks(ranks: Iterable[int]) -> tuple[int, ...]:
    """Return ranks, sorted and without repeats."""
    if isinstance(ranks, (str, bytes)) or not isinstance(ranks, Iterable):
        expected = f"a sequence of integers, for example [5, 10, 20]; got {short(ranks)}"
        raise TypeError(f"ranks must be {expected}.")
    numbers = list(islice(ranks, MOST_RANKS + 1))
    if len(numbers) > MOST_RANKS:
        how = "each is fitted several times; give fewer, for example range(5, 100, 5)"
        raise ValueError(f"ranks holds more than {MOST_RANKS} ranks, and {how}.")
    distinct = {check_integer(rank, "every rank in ranks", 1) for rank in numbers}
    if not distinct:
        raise ValueError("ranks is empty; expected at least one rank, for example [5, 10, 20].")
    return tuple(sorted(distinct))
