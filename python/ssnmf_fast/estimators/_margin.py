"""Estimator :class:`MarginNMF` (NMF-alpha): a dictionary that keeps margins between classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from .._common.arrays import Array, Init, Solver
from .._common.saved import COUNT, Saved
from .._data.border import CleanMatrix, check_matrix, check_option, check_real
from .._labels import ClassLabels, Indicators, labels_of
from .._models.nmf_alpha import claim_of_preserving, factorize_preserving
from .._models.receipts import Claim
from .._solver.losses import LossOption
from .._solver.result import Receipt, fingerprints
from ._base import require
from ._docstrings import complete_docstring
from ._predicting import ReadoutPredictions
from ._receipts import said_by

Task = tuple[Array, Array]  # rows on the positive side, rows on the negative one
FEATURES = ("inner-product", "representation")


@complete_docstring
@dataclass(eq=False, repr=False)
class MarginNMF(ReadoutPredictions):
    """NMF-alpha: a dictionary that also preserves what separates the classes.

    Linear support vector machines are trained on the labeled samples; their normal vectors are
    differences of nonnegative combinations of samples, U = alpha^T X, with the dual coefficients
    alpha (n x 2p).  The fit minimizes
    ``d(X, S A) + supervision_weight * d(alpha^T X, alpha^T S A)`` [1]_.

    Parameters
    ----------
    supervision_weight : float, "auto" or "balanced"
        Weight (lambda) of the preserved combinations, at least 0.  "auto" makes their sum equal to
        that of the data; try 0.1 to 100 times this weight (less for text with few labels, more for
        ranks below the number of classes).  "balanced" takes the ratio of the two losses at the
        start, about twice as much.
    C : float
        Penalty of the machines on margin violations, above 0.  The labeled samples are scaled, by
        one number, to a mean squared length of 1.  Not used where `alpha` is given.
    features : {"inner-product", "representation"}
        What :meth:`transform` returns: Z = S (A A^T)^{1/2}, whose inner products are those of S A
        (eq. 5) and which may be negative, or S itself.
    solver : {"auto", "mm", "mu", "hals"}
        As in :func:`ssnmf_fast.factorize`; "mu" is the paper's rule.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        The classes, sorted, or 0 ... k - 1 for multiple labels.  After a fit without `y` they are
        absent, as is all else that predictions need.
    alpha_ : scipy.sparse.csr_array, shape (n, q)
        The coefficients alpha, made or given.
    n_directions_ : int
        Number q of columns of alpha: 2p with p machines.

    See Also
    --------
    SSNMFClassifier : Labels as a second matrix to approximate (Lee, Yoo and Choi).
    ConstrainedNMF : Labels as hard constraints (Liu and Wu).

    Notes
    -----
    `y` in :meth:`fit` holds a class label for each sample, with -1, None or NaN for an unlabeled
    one (two classes: one machine; more: one for every pair), or, for multiple labels, is an
    indicator matrix with rows of NaN (dense) or -1 for unlabeled samples (one machine for each
    label).  X must be complete.

    References
    ----------
    .. [1] Y. Cho, L. K. Saul, "Nonnegative matrix factorization for semi-supervised dimensionality
       reduction", 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import ssnmf_fast as sf
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> model = make_pipeline(sf.papers.MarginNMF(n_components=5, random_state=0), LinearSVC())
    >>> bool(model.fit(X / 16, y).score(X / 16, y) > 0.95)
    True
    """

    n_components: int = 10
    _: KW_ONLY
    supervision_weight: float | str = "auto"
    C: float = 1.0
    features: str = "inner-product"
    loss: LossOption = "kullback-leibler"
    solver: Solver = "auto"
    init: Init = "random"
    readout: str | None = "logistic"

    _allow_nan: ClassVar = False
    _takes_files: ClassVar = False
    _saved: ClassVar = {
        "alpha_": Saved("nq", optional=True),
        "n_directions_": COUNT,
        "supervision_weight_": Saved(optional=True, kind=float),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, *, X_weights: Any = None, alpha: Any = None) -> MarginNMF:
        """Learn a dictionary from samples and the labels of some of them.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Labels, as the class describes them.  With `alpha` they are optional and only predict.
        alpha : array_like or scipy.sparse, shape (n, q), optional
            Nonnegative coefficients of the combinations to preserve, one in each column, in place
            of those of support vector machines: for example of a perceptron.
        """
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, alpha=alpha)
        return self

    def _claim_of(
        self, receipt: Receipt, X: Any, y: Any, given: Mapping[str, Any], threads: int
    ) -> Claim:
        labels = None if y is None else labels_of(y, self.unlabeled)
        result, weights = self._as_factorization(receipt), given.get("X_weights")
        clean = CleanMatrix(self._checked(X, reset=False))
        found = claim_of_preserving(result, clean, self.alpha_, weights, threads)
        inputs = found.inputs | fingerprints({"y": said_by(labels)})
        return replace(found, parts=self._parts(), inputs=inputs, settings=self._recorded())

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, alpha: Any = None) -> None:
        check_option(self.features, "features", FEATURES)
        self._check_readout()
        targets: Any = None
        if alpha is None or y is not None:
            require(self, X, y)
            targets = labels_of(y, self.unlabeled)
            targets.check_fit()
        if alpha is None:
            C = check_real(self.C, "C")
            if C == 0:
                raise ValueError("C must be above 0; got 0.")
            length = _root_mean_square(X, np.flatnonzero(targets.labeled))
            alpha = dual_coefficients(X, targets, C, length)
        else:
            alpha = check_matrix(alpha, "alpha", dtype=X.dtype, allow_nan=False)
            alpha = sp.csr_array(alpha, copy=True)
        result, weight = factorize_preserving(CleanMatrix(X), alpha, X_weights, **self._arguments())
        self._keep(result, alpha_=alpha, n_directions_=alpha.shape[1], supervision_weight_=weight)
        self._note_inputs(y=said_by(targets))
        self._drop_readout()
        if targets is not None:
            self._keep_predictions(X, X_weights, targets)

    def _features(self, X: Any, X_weights: Any, **known: Any) -> Array:
        check_option(self.features, "features", FEATURES)
        S = self._represent(X, X_weights)
        return S if self.features == "representation" else S @ self._root(0.5).astype(S.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Return the data that features stand for, S A; for Z with a pseudo-inverse."""
        if self.features == "representation":
            return super().inverse_transform(X)
        Z = self._checked_features(X)
        return np.asarray(Z @ (self._root(-0.5) @ self.components_).astype(Z.dtype))

    def _root(self, power: float) -> Array:
        """Return (A A^T)^power, (r, r), float64; the pseudo-inverse for a negative power."""
        A = self.components_.astype(np.float64)
        values, vectors = np.linalg.eigh(A @ A.T)
        least = values[-1] * len(values) * np.finfo(np.float64).eps
        powers = np.zeros_like(values)
        powers[values > least] = values[values > least] ** power
        return np.asarray((vectors * powers) @ vectors.T)


def _root_mean_square(X: Any, rows: Array) -> float:
    """Return what to divide some rows by for a mean squared length of 1, or 1 for rows of zeros."""
    samples = X[rows]
    values = np.asarray(samples.data if sp.issparse(samples) else samples, dtype=np.float64)
    exponent = int(np.frexp(values.max(initial=0.0))[1])
    values = np.ldexp(values, -exponent)  # so that no square leaves the range
    total = float(np.sum(values**2))
    return float(np.ldexp(np.sqrt(total / len(rows)), exponent)) if total > 0 else 1.0


def dual_coefficients(
    X: Any, targets: ClassLabels | Indicators, C: float, length: float = 1.0
) -> sp.csr_array:
    """Return alpha, (n, 2 p), of machines that see X / length: positive, then negative sides.

    The coefficients follow from the primal solution: w = sum_i alpha_i y_i x_i with
    alpha_i = 2 C max(0, 1 - y_i f(x_i)), f the decision function.  LIBLINEAR's solver of the dual
    draws from one random generator for all threads.
    """
    tasks = list(_labels(targets) if isinstance(targets, Indicators) else _pairs(targets))
    if not tasks:
        raise ValueError(
            "y has no label that some labeled samples have and others have not; label some "
            "samples of both kinds."
        )
    rows, columns, values = [], [], []
    for machine, (positive, negative) in enumerate(tasks):
        labeled = np.concatenate([positive, negative])
        sign = np.repeat([1, -1], [len(positive), len(negative)])
        samples = _divided(X[labeled], length)
        solver = LinearSVC(C=C, loss="squared_hinge", dual=False, max_iter=5000)
        scores = solver.fit(samples, sign).decision_function(samples)
        alpha = 2 * C * np.maximum(0, 1 - sign * scores)
        chosen = alpha > 0
        rows.append(labeled[chosen])
        columns.append(machine + len(tasks) * (sign[chosen] < 0))
        values.append(alpha[chosen])
    place = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.concatenate(values), place), shape=(X.shape[0], 2 * len(tasks)))


def _pairs(targets: ClassLabels) -> Iterator[Task]:
    labeled = np.flatnonzero(targets.labeled)
    members = [labeled[targets.codes == k] for k in range(len(targets.classes))]
    for first, second in combinations(range(len(members)), 2):
        yield members[second], members[first]


def _labels(targets: Indicators) -> Iterator[Task]:
    complete = np.flatnonzero(targets.complete)
    for has in (targets.known != 0).T:
        if has.any() and not has.all():
            yield complete[has], complete[~has]


def _divided(samples: Any, length: float) -> Any:
    """Return samples over a length; SciPy multiplies by the inverse, which may overflow."""
    if sp.issparse(samples):  # with the 32-bit indices that LIBLINEAR takes
        values = samples.data.astype(np.float64) / length
        places = (part.astype(np.int32) for part in (samples.indices, samples.indptr))
        return sp.csr_array((values, *places), shape=samples.shape)
    return np.ascontiguousarray(samples.astype(np.float64) / length)
