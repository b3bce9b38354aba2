"""Estimators :class:`BayesianNMF` and :class:`SupervisedBayesianNMF`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import gammainccinv, gammaincinv
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, VectorLike
from .._common.saved import COUNT, NUMBER, POSITIVE, Saved
from .._common.warn import IDLE, is_quiet, warn_user
from .._data.arrays import DataLike
from .._data.border import check_share
from .._labels import ClassLabels
from .._models.factorize import Start
from .._models.variational import VariationalFit, fit_variational, infer
from .._solver.weights import WeightsLike
from .._topics import count_copies
from ._base import FactorizationBase, Self
from ._docstrings import complete_docstring
from ._predicting import ReadoutPredictions
from ._training_data import labels_for_training

_TRANSFORM_ITERATIONS = 100
# Counts of some feature that an active component explains.  In ten fits to texts, components
# without evidence explained at most 0.05, all others more than 6.
_LEAST_EVIDENCE = 1.0
_ALIKE = 0.999  # cosine above which two rows of A are copies


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianBase(FactorizationBase):
    """Poisson-gamma NMF with gamma posteriors; subclasses define the prior of S.

    Parameters
    ----------
    A_shape : float or "auto"
        Shape of the prior of A, 1e-6 to 1e6, below 1 for sparse components.  "auto" learns it.
    A_mean : float or "auto"
        Mean of the prior of A, 1e-9 to 1e9, in the units of X.  "auto" learns it.
    burn_in : int
        Number of iterations, at least 0, before hyperparameters and rates of classes are learned.
    count_scale : float or "auto"
        Counts per unit of X, above 0; a larger value reduces the influence of the priors.  "auto":
        the greatest common divisor of integers is one count; for other data, such as TF-IDF, the
        median of the positive entries is two.
    tol : float
        As in :class:`NMF`, for the increase of the bound after burn-in.
    callback : callable, optional
        As in :class:`NMF`, with expectations ``S`` and ``A``; ``objective`` is minus the bound.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Posterior means of A, which scale with X.
    components_rate_ : ndarray, shape (r,)
        Rates of the gamma posteriors of the rows of A, float64; `components_` are their means.
    lower_bound_ : float
        Lower bound of the log-evidence of the counts ``count_scale_ * X``; larger is better.
    objective_ : list of (int, float)
        Iterations at which the bound was evaluated, and the *negative* bounds.
    count_scale_ : float
        Counts per unit of X, given or chosen.
    representation_rates_, representation_groups_ : ndarray, shape (groups, r), (n,)
        Rates of the posteriors of S for each class and for unlabeled samples (one row without
        labels), float64; the row of each sample, int32.
    A_shape_, A_mean_ : float
        Shape and mean of the prior of A, given or learned.
    active_components_ : ndarray of bool, shape (r,)
        Whether a component explains at least one count of some feature.  If not, its row of A is
        that of the prior, and :meth:`topics` shows no terms.
    """

    A_shape: float | Literal["auto"] = "auto"
    A_mean: float | Literal["auto"] = "auto"
    count_scale: float | Literal["auto"] = "auto"
    burn_in: int = 10
    n_starts: int = 1
    tol: float = 1e-5
    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _verifiable: ClassVar = False
    _saved: ClassVar = {
        "components_rate_": Saved("r", "positive", part="A_rates"),
        "representation_rates_": Saved("gr", "positive", part="S_rates"),
        "representation_groups_": Saved("n", "<g", optional=True, part="S_groups"),
        "lower_bound_": NUMBER,
        "count_scale_": Saved(values="positive", part="count_scale"),
        **dict.fromkeys(("A_shape_", "A_mean_"), POSITIVE),
    }

    def fit(self: Self, X: DataLike, y: VectorLike = None) -> Self:  # type: ignore[override]
        """Learn the posteriors.

        Warns
        -----
        UserWarning
            If at least half of the components explain nothing or are copies of others.
        """
        self._learn(self._checked(X, reset=True), y)
        return self

    def _fit_variational(self, X: Any, groups: Array | None, **arguments: Any) -> VariationalFit:
        return fit_variational(X, groups, **arguments)

    def _learn_posterior(self, X: Any, groups: Array | None = None, **given: Any) -> VariationalFit:
        """Fit to checked data, with other values of some parameters, and set the attributes."""
        arguments = self.get_params(deep=False)
        for name in ("unlabeled", "predicts", "dtype"):  # X has the dtype
            arguments.pop(name, None)
        result = self._fit_variational(X, groups, **arguments | given)
        learned: dict[str, Any] = {f"{name}_": p for name, p in result.hyperparameters.items()}
        self._keep(result, lower_bound_=-result.objective[-1][1], **learned)
        active = self.active_components_
        r, idle = len(active), int(np.count_nonzero(~active))
        copies = count_copies(self.components_[active], _ALIKE)
        if 2 * (idle + copies) >= r > 1 and not is_quiet(IDLE):
            problems = [(idle, "explain nothing"), (copies, "repeat others")]
            text = " and ".join(f"{number} {what}" for number, what in problems if number)
            warn_user(
                f"Of the {r} components, {text}: the priors outweigh the data, which are taken as "
                f"counts of {self.count_scale_:.3g} * X. Reduce n_components or increase "
                "count_scale; see active_components_.",
                UserWarning,
            )
        return result

    @property
    def active_components_(self) -> Array:
        """Whether each component explains at least one count of some feature, (r,) bool."""
        shapes = self.components_.astype(np.float64) * self.components_rate_[:, None]
        return np.asarray((shapes - self.A_shape_).max(axis=1) >= _LEAST_EVIDENCE)

    def _represent(self, X: Any, X_weights: WeightsLike, **known: Any) -> Array:
        self._refuse_weights(X_weights)
        shape, rates = self._prior_of_new_samples()
        arguments = X, self.components_, self.components_rate_, shape, rates
        return infer(*arguments, _TRANSFORM_ITERATIONS, self.n_threads, self.count_scale_)

    def transform(self, X: DataLike) -> Array:  # type: ignore[override]
        """Represent samples by the learned components, whose posterior stays fixed.

        Returns
        -------
        S : ndarray, shape (n, r)
            Posterior means after 100 iterations, of the dtype of X.
        """
        return self._represent(self._checked(X), None)

    def interval_components(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return credible intervals of the entries of `components_`.

        Returns
        -------
        low, high : ndarray, shape (r, m)
            Quantiles of the gamma posteriors, of the dtype of `components_`.

        Notes
        -----
        The approximate posterior treats S and A as independent, so the intervals are too narrow.
        """
        check_is_fitted(self)
        return interval_ends(self.components_, self.components_rate_[:, None], level)

    def interval_representation(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return credible intervals of the entries of `representation_`.

        Returns
        -------
        low, high : ndarray, shape (n, r)
            Quantiles of the gamma posteriors, of the dtype of `representation_`.
        """
        check_is_fitted(self)
        rates = self.representation_rates_[self.representation_groups_]
        return interval_ends(self.representation_, rates, level)


def interval_ends(expectations: Array, rates: Array, level: float) -> tuple[Array, Array]:
    tail = (1 - check_share(level, "level")) / 2
    shapes = expectations.astype(np.float64) * rates
    low, high = gammaincinv(shapes, tail) / rates, gammainccinv(shapes, tail) / rates
    return low.astype(expectations.dtype), high.astype(expectations.dtype)


@complete_docstring
@dataclass(eq=False, repr=False)
class BayesianNMF(BayesianBase):
    """Poisson-gamma NMF by variational Bayes.

    Counts ``x_ij`` are Poisson with mean ``(S A)_ij``; S and A have gamma priors [1]_.  The
    posterior is approximated by independent gamma distributions.  Each step increases a lower bound
    of the log-evidence, by which :func:`ssnmf_fast.choose_rank` compares numbers of components.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components r, at least 1.  "auto" is for texts in a sparse X, as in :class:`NMF`.
    S_shape : float or "auto"
        Shape of the prior of S, 1e-6 to 1e6; 1 (exponential) or less gives a sparse S.  A fixed
        value controls sparsity better than "auto", which learns the shape.
    S_mean : float or "auto"
        Mean of the prior of S, 1e-9 to 1e9.  "auto" learns it.
    init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        Initial means of S and A, arithmetic and geometric.  A tuple holds S (n, r) and A (r, m)
        with a product near X; their zeros may become positive.  "auto" is "least-squares", which
        leads to higher bounds and more coherent topics than "random".

    Attributes
    ----------
    representation_ : ndarray, shape (n, r)
        Posterior means of S, independent of the units of X: ``S @ components_`` is near X.
    S_shape_, S_mean_ : float
        Shape and mean of the prior of S, given or learned.
    rank_choice_ : RankChoice
        The choice made by ``n_components="auto"``.

    See Also
    --------
    SupervisedBayesianNMF : The same with labels.
    NMF : Point estimates; with ``loss="kullback-leibler"`` the likelihood is the same.

    Notes
    -----
    The model of the data is ``count_scale * X ~ Poisson(count_scale * S A)``.  Counts need not be
    integers; the Poisson likelihood is then extended to real numbers.  NaN, weights and matrices on
    disk are not supported.  A and S are updated once before iteration 1; each iteration updates A,
    S and then, after `burn_in`, the hyperparameters.

    References
    ----------
    .. [1] A. T. Cemgil, "Bayesian inference for nonnegative matrix factorization models",
       Computational Intelligence and Neuroscience, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(0.5, 2, (40, 2)) @ rng.gamma(0.5, 2, (2, 12)))
    >>> model = sf.BayesianNMF(n_components=2, tol=0, random_state=0).fit(X)
    >>> low, high = model.interval_components(level=0.9)
    >>> bool((low < model.components_).all() and (low < high).all())
    True
    """

    n_components: int | Literal["auto"] = 10
    _: KW_ONLY
    S_shape: float | Literal["auto"] = 1.0
    S_mean: float | Literal["auto"] = "auto"
    init: Start = "auto"
    _saved: ClassVar = {"S_shape_": POSITIVE, "S_mean_": POSITIVE}

    def _learn(self, X: Any, y: Any) -> None:
        self._learn_posterior(X, n_components=self._choose_rank(X))

    def _prior_of_new_samples(self) -> tuple[float, Any]:
        return self.S_shape_, self.S_shape_ / self.S_mean_


@complete_docstring
@dataclass(eq=False, repr=False)
class SupervisedBayesianNMF(ReadoutPredictions, BayesianBase):
    """Poisson-gamma NMF with label-driven sparsity, by variational Bayes.

    Counts ``x_ij`` are Poisson with mean ``(S A)_ij``.  ``S[i, k]`` is exponential with a rate that
    depends on component k and the class of sample i.  The rates have a gamma prior [1]_, so that
    the samples of a class share few components.  :meth:`predict` uses logistic regression.

    Parameters
    ----------
    A_shape : float or "auto"
        Shape of the prior of A, 1e-6 to 1e6.  "auto" learns it: A is then sparse, not S [1]_ (3.4).
    rate_shape : float or "auto"
        Shape of the prior of the rates, 1e-6 to 1e6: how strictly the samples of a class use its
        components.  Above about twice the number of samples of a class, the prior dominates and
        class information is lost.  "auto" is the mean number of labeled samples per class.
    rate_mean : float or "auto"
        Mean of that prior, 1e-9 to 1e9, independent of the units of X.  "auto" learns it.
    init : {"random", "auto", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        As in :class:`BayesianNMF`; "random" separates the classes at least as well as the others.

    Attributes
    ----------
    label_rates_ : ndarray, shape (r, k)
        Expected rates in the classes, float64; small for components that a class uses much.
    new_sample_rate_ : float
        Rate of the prior of new samples: 1 divided by the mean of `representation_`.
    representation_ : ndarray, shape (n, r)
        Posterior means of S, which depend on the labels.
    rate_shape_, rate_mean_ : float
        Shape and mean of the prior of the rates, given or learned.

    See Also
    --------
    BayesianNMF : The same without labels.
    SSNMFClassifier : Labels as a second matrix to factorize.

    Notes
    -----
    Unlabeled samples form one more class with its own rates, an extension of the paper's model.
    Each update uses the latest posteriors of the others, so the bound never falls.  In Table A3 as
    printed, all use the previous iteration: the fixed points are the same, but the bound can fall.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014, Table A3.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2],
    ...               [4, 1, 0, 0]])
    >>> y = ["sport", "sport", "politics", "politics", None]
    >>> model = sf.papers.SupervisedBayesianNMF(n_components=2, tol=0,
    ...                                         random_state=0).fit(X, y)
    >>> model.label_rates_.shape, model.n_labeled_
    ((2, 2), 4)
    """

    n_components: int = 10
    _: KW_ONLY
    A_shape: float | Literal["auto"] = 1.0
    rate_shape: float | Literal["auto"] = "auto"
    rate_mean: float | Literal["auto"] = "auto"
    init: Start = "random"
    predicts: bool = True
    tol: float = 1e-5  # as of BayesianBase, not of ReadoutPredictions
    _saved: ClassVar = {
        "n_labeled_": COUNT,
        "label_rates_": Saved("rk", "positive"),
        **dict.fromkeys(("new_sample_rate_", "rate_shape_", "rate_mean_"), POSITIVE),
    }

    def _learn(self, X: Any, y: Any) -> None:
        labels: ClassLabels = self._labels_of_fit(X, y, ClassLabels)
        k = len(labels.classes)
        groups = np.full(len(labels.labeled), k, dtype=np.int32)  # k is for unlabeled samples
        groups[labels.labeled] = labels.codes
        rate_shape = len(labels.values) / k if self.rate_shape == "auto" else self.rate_shape
        rates = self._learn_posterior(X, groups, rate_shape=rate_shape).label_rates
        assert rates is not None
        self.label_rates_ = np.ascontiguousarray(rates[:k].T)
        self.n_labeled_ = len(labels.values)
        self.new_sample_rate_ = float(1 / self.representation_.mean(dtype=np.float64))
        self._keep_predictions(X, None, labels_for_training(labels), labels.classes)

    def _prior_of_new_samples(self) -> tuple[float, Any]:
        return 1.0, self.new_sample_rate_

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        return self.classes_, 1 / self.label_rates_
