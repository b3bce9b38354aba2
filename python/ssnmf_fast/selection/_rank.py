"""Function :func:`choose_rank`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from .._common.text import short
from .._data.arrays import refuse_on_disk
from .._data.border import (
    check_data,
    check_integer,
    check_option,
    check_random_state,
    check_real,
)
from .._data.threads import resolve_threads
from ._blocks import block_splits
from ._criteria import choose_by_bound, choose_by_stability
from ._held_out import EstimatorFits, PlainFits, fits_of
from ._rank_choice import CRITERIA, RankChoice
from ._search import Search, Split, entry_splits
from ._tensors import choose_for_tensor, is_tensor

_STARTS, _STABILITY_STARTS = 3, 20
MOST_RANKS = 1000


def choose_rank(
    X: Any,
    ranks: Iterable[int],
    *,
    y: Any = None,
    criterion: str = "held-out",
    estimator: Any = None,
    loss: str | float | None = None,
    n_splits: int = 5,
    n_starts: int | None = None,
    held_out: float = 0.1,
    mask_zeros: bool = True,
    rule: str = "one-se",
    X_weights: Any = None,
    max_iter: int | None = None,
    tol: float | None = None,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> RankChoice:
    """Choose the number of components by what models of several ranks predict.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n, m), or a tensor
        Nonnegative samples; NaN in a dense X means missing.  A tensor has three modes or more, or
        comes as coordinates, in the forms of :func:`factorize_tensor`.
    ranks : iterable of int
        Ranks to try, each at least 1, such as ``range(2, 31, 2)``.
    y : array_like, shape (n,) or (n, k), optional
        Labels or targets, for an `estimator` that takes them.  Some of them are hidden as well, and
        the table says how well they are predicted; the choice is by X alone.
    criterion : {"held-out", "block", "bound", "stability", "corcondia"}
        What tells which rank is best; see Notes.  "block" and "bound" are of matrices, "corcondia"
        is of tensors.
    estimator : optional
        An estimator of this package that takes `X_weights`, such as :class:`NMF`,
        :class:`SSNMFClassifier` or :class:`SSNMFRegressor`, with its parameters; it is not fitted
        itself.  None fits plain factorizations (:func:`factorize`, :func:`factorize_tensor`).  For
        "bound" a :class:`BayesianNMF` (the default) or
        :class:`ssnmf_fast.papers.SupervisedBayesianNMF`, for tensors a :class:`NonnegativeCP`.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, optional
        Loss of the plain factorizations, and what the errors of predictions are measured by;
        "frobenius" by default.  An estimator has its own.
    n_splits : int
        How many times entries, or a block, are held out, at least 1.
    n_starts : int, optional
        Number of starts of every rank in every split, at least 1; 3 by default, for "stability" 20.
        The one counts that fits best what it sees.
    held_out : float
        Share of the entries that are held out, above 0 and below 1.
    mask_zeros : bool
        Whether zeros are held out as well as other entries.  Without them nothing is said about
        predictions for zeros: for data whose zeros stand for what is not known.
    rule : {"one-se", "best"}
        Take the smallest rank within one standard error of the best mean, or the best.
    X_weights : None, array_like, or from :mod:`ssnmf_fast.weights`
        Nonnegative weights of the loss of every entry; of a tensor as in :func:`factorize_tensor`.
        Entries without weight are not held out.
    max_iter : int, optional
        Largest number of iterations of a plain factorization; 500 by default.
    tol : float, optional
        Tolerance of a plain factorization, as in :func:`factorize`; 1e-6 by default for squared
        errors and 1e-5 for others.  Models that are not fitted to the end predict like smaller
        ones.
    n_jobs : int, optional
        Number of fits at a time; None takes as many as `n_threads` can serve.
    n_threads : int, optional
        Number of threads of all fits together; neither changes the result.
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
        For bad input; the message names the argument and how to mend it.

    Notes
    -----
    *held-out*: a random share of the entries is hidden from the fits [1]_, and predicted.  Every
    entry has the same chance.  Of sparse data with very many places fewer are hidden, at most about
    four million in a split, zeros among them: no array of the size of X is made.

    *block*: rows and columns are cut into groups, and a block where one of each meet is held out; a
    model of what has neither of them predicts it, as its rows and its columns are represented in
    turn [2]_.  This needs no hidden entries, and takes no `estimator`.

    *bound*: the largest lower bound of the evidence of a Bayesian model [3]_.  Nothing is held out,
    `n_splits` and `rule` have no say, and the best model is kept.

    *stability*: components of `n_starts` starts of all data are put into clusters, as
    :func:`consensus` does, and their mean silhouette tells how well the starts agree.  Few
    components are stable in any case: instead of the smallest rank "one-se" takes the largest one
    whose silhouette is at most 0.1 below the best.  For tensors it is the median
    :func:`~ssnmf_fast.metrics.factor_match_score` of pairs of starts, with the same rule;
    these are drawn, as `init="auto"` may be the same for all seeds.

    *corcondia*: the :func:`~ssnmf_fast.metrics.core_consistency` of the best of `n_starts` fits to
    all data [4]_, in percent.  It is about 100 for one component: "one-se" takes the largest
    rank that is at most 10 below the best.

    Errors are means of the loss over the entries held out: for "frobenius" mean squared errors, for
    counts and "kullback-leibler" half of the mean Poisson deviance; for matrices the table has the
    perplexity then.  Where the loss would be infinite for a prediction of 0, a hundredth of a
    prediction comes from the sums of its row and its column, or of its slices.

    After three splits, ranks are given up whose mean is further from the best than five standard
    errors; they stay in the table.

    References
    ----------
    .. [1] S. Wold, "Cross-validatory estimation of the number of components in factor and principal
       components models", 1978.
    .. [2] A. B. Owen, P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix
       factorization", 2009.
    .. [3] A. T. Cemgil, "Bayesian inference for nonnegative matrix factorisation models", 2009.
    .. [4] R. Bro, H. A. L. Kiers, "A new efficient method for determining the number of components
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
    criterion = check_option(criterion, "criterion", tuple(CRITERIA))
    rule = check_option(rule, "rule", ("one-se", "best"))
    tried = _ranks(ranks)
    if n_starts is None:
        n_starts = _STABILITY_STARTS if criterion == "stability" else _STARTS
    n_starts = check_integer(n_starts, "n_starts", 1)
    n_splits = check_integer(n_splits, "n_splits", 1)
    share = check_real(held_out, "held_out")
    if not 0 < share < 1:
        raise ValueError(f"held_out must be above 0 and below 1, for example 0.1; got {held_out}.")
    if random_state is None:
        random_state = getattr(estimator, "random_state", None)
    rng = check_random_state(random_state)
    search = Search(tried, n_splits, n_starts, n_jobs, n_threads, verbose)
    if is_tensor(X, estimator):
        if y is not None:
            raise ValueError("y is of matrices, and X is a tensor; leave y out.")
        settings = {"loss": loss, "max_iter": max_iter, "tol": tol}
        of = X, X_weights, criterion, estimator, settings, (share, bool(mask_zeros))
        return choose_for_tensor(*of, search, rule, rng)
    if criterion == "bound":
        given = {"loss": loss, "max_iter": max_iter, "tol": tol, "X_weights": X_weights}
        return choose_by_bound(X, y, estimator, given, search, rule, rng)
    if criterion == "corcondia":
        raise ValueError(
            "criterion 'corcondia' is of tensors, and X is a matrix; use criterion='held-out'."
        )
    fits = fits_of(estimator, loss, max_iter, tol)
    if y is not None and not isinstance(fits, EstimatorFits):
        raise ValueError(
            "y needs an estimator that takes labels, for example estimator=SSNMFClassifier(); give "
            "one, or leave y out."
        )
    if criterion != "held-out" and not isinstance(fits, PlainFits):
        raise ValueError(
            f"criterion {criterion!r} is of plain factorizations and takes no estimator; give "
            "loss, max_iter and tol instead, or use criterion='held-out'."
        )
    if criterion == "stability":
        assert isinstance(fits, PlainFits)
        return choose_by_stability(X, X_weights, fits, search, rule, rng)
    X = _in_memory(X, criterion, n_threads)
    splits: Iterator[Split]
    if isinstance(fits, PlainFits) and criterion == "block":
        splits = block_splits(X, X_weights, fits, share, bool(mask_zeros), rng)
    else:
        splits = entry_splits(X, X_weights, y, fits, share, bool(mask_zeros), rng)
    measures = search.run(islice(splits, n_splits), rng)
    scores = measures.pop("error")
    return RankChoice.of(tried, scores, criterion, rule, measures=measures)


def _ranks(ranks: Any) -> tuple[int, ...]:
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


def _in_memory(X: Any, criterion: str, n_threads: int | None) -> Any:
    """Return clean data; a file is refused, since weights and parts need data in memory."""
    X = check_data(X, resolve_threads(n_threads))
    refuse_on_disk(X, f"criterion {criterion!r} (other than 'stability')")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; expected at least one sample and one feature.")
    return X
