"""Poisson-gamma NMF with labels: :class:`SupervisedBayesianNMF`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._common.arrays import Array
from .._common.saved import COUNT, POSITIVE, Saved
from .._labels import ClassLabels
from ._bayesian import BayesianBase
from ._conventions import require
from ._docstrings import complete_docstring
from ._predicting import ReadoutPredictions


@complete_docstring
@dataclass(eq=False, repr=False)
class SupervisedBayesianNMF(ReadoutPredictions, BayesianBase):
    """Poisson-gamma NMF with label-driven sparsity, by variational Bayes [1]_.

    Counts ``x_ij`` are Poisson with mean ``(S A)_ij``.  Entries ``S[i, k]`` are exponential with a
    rate that belongs to component k and the class of sample i, and the rates have a gamma prior:
    the samples of a class come to share few components.  :meth:`transform` returns representations
    that separate the classes well, and :meth:`predict` uses a logistic regression.

    Parameters
    ----------
    A_shape : float or "auto"
        Shape of the prior of A, 1e-6 to 1e6.  A learned shape makes A sparse and keeps S from
        being so (section 3.4): by default it is 1.
    rate_shape : float or "auto"
        Shape of the prior of the rates, 1e-6 to 1e6: how closely the samples of a class keep to its
        components.  It has an effect up to about twice the number of samples of a class; above that
        the prior dominates and class information is lost.  It is never learned: "auto" takes the
        mean number of labeled samples of a class.
    rate_mean : float or "auto"
        Mean of that prior, 1e-9 to 1e9; "auto" learns it.  Like S and the rates, it is the same in
        any units of X.
    init : {"random", "auto", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
        As in :class:`BayesianNMF`.  With labels, a random start separates the classes at least as
        well as the others, which do not know the labels.

    Attributes
    ----------
    label_rates_ : ndarray, shape (r, k)
        Expected rates of the components in the classes, float64: where one is small, the samples of
        the class make much use of the component.
    new_sample_rate_ : float
        Rate of the exponential prior of new samples, whose classes are not known.  It is the same
        for all components, and gives the mean of `representation_`.
    representation_ : ndarray, shape (n, r)
        Posterior expectations of S, which the labels affect.
    rate_shape_, rate_mean_ : float
        Shape and mean of the prior of the rates, given or learned.

    See Also
    --------
    BayesianNMF : The same without labels.
    SSNMFClassifier : Labels as a second matrix to be factorized; it predicts classes.

    Notes
    -----
    Unlabeled samples are treated as one more class with its own rates.  This extends the model of
    the paper.

    References
    ----------
    .. [1] I. Ivek, "Interpretable low-rank document representations with label-dependent sparsity
       patterns", 2014, Table A3.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2], [4, 1, 0, 0]])
    >>> y = ["sport", "sport", "politics", "politics", None]
    >>> model = sf.SupervisedBayesianNMF(n_components=2, tol=0, random_state=0).fit(X, y)
    >>> model.label_rates_.shape, model.n_labeled_
    ((2, 2), 4)
    """

    n_components: int = 10
    _: KW_ONLY
    A_shape: float | str = 1.0
    rate_shape: float | str = "auto"
    rate_mean: float | str = "auto"
    init: Any = "random"
    readout: str | None = "logistic"
    tol: float = 1e-5  # as of BayesianBase, not of ReadoutPredictions

    _saved: ClassVar = {
        "n_labeled_": COUNT,
        "label_rates_": Saved("rk", "positive"),
        "new_sample_rate_": POSITIVE,
        "rate_shape_": POSITIVE,
        "rate_mean_": POSITIVE,
    }

    def _learn(self, X: Any, y: Any) -> None:
        self._check_readout()
        require(self, X, y)
        labels = ClassLabels(y, self.unlabeled)
        labels.check_fit()
        k = len(labels.classes)
        groups = np.full(len(labels.labeled), k, dtype=np.int32)  # k is for unlabeled samples
        groups[labels.labeled] = labels.codes
        rate_shape = len(labels.known) / k if self.rate_shape == "auto" else self.rate_shape
        rates = self._learn_posterior(X, groups, rate_shape=rate_shape).label_rates
        assert rates is not None
        self.label_rates_ = np.ascontiguousarray(rates[:k].T)
        self.n_labeled_ = len(labels.known)
        self.new_sample_rate_ = float(1 / self.representation_.mean(dtype=np.float64))
        self._keep_predictions(X, None, labels)

    def _prior_of_new_samples(self) -> tuple[float, Any]:
        return 1.0, self.new_sample_rate_

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        return self.classes_, 1 / self.label_rates_
