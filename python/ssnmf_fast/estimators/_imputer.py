"""Estimator :class:`LowRankImputer`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._common.saved import COUNT, NUMBER, Saved
from .._common.warn import UNINFORMED, quietly, warn_user
from .._data.arrays import check_dtype
from .._data.border import check_entries, readable, require_finite
from .._data.csr import list_entries
from .._data.threads import resolve_threads
from .._linalg.operators import Pattern
from ..completion._complete import complete
from ..completion._irls import ridge
from ..completion._methods import check_method
from ..completion._noisy import BIAS_RIDGE
from ..completion._problem import Method, Observations
from ..completion._read import counts
from ._conventions import DTYPES, Estimator
from ._docstrings import complete_docstring

_LEAST_RIDGE = 1e-10  # rows with fewer entries than components take the shortest solution


@complete_docstring
@dataclass(eq=False, repr=False)
class LowRankImputer(OneToOneFeatureMixin, Estimator):  # type: ignore[misc]
    """Fill missing entries (NaN) by a low-rank model of the table.

    :meth:`fit` completes the table by :func:`ssnmf_fast.complete`; :meth:`transform` represents
    rows, new ones too, over the components found, by the exact least squares of IRLS
    ([1]_ (2.6)), and fills their gaps.  Entries that are there are never changed.

    Parameters
    ----------
    rank : int, optional
        Rank r.  None chooses it by the error at held-out entries, or, with ``gamma_min=None``,
        estimates it.
    method : str or object of ssnmf_fast.completion
        As in :func:`ssnmf_fast.complete`.
    gamma_min : float, "validate" or None
        Shrinkage that remains, as in :func:`ssnmf_fast.complete`; None is for data of exactly low
        rank.
    biases : bool
        Whether the model has means of rows and columns; needs `gamma_min`.
    standardize : bool
        Whether the model is fitted to columns divided by their standard deviation.
    max_iter : int, optional
        Largest number of iterations.
    tol : float, optional
        Stopping rule.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Orthonormal components over the standardized columns.
    rank_ : int
        Rank in use.
    gamma_ : float
        Regularizer at the end, relative to the squared spectral norm of the table.
    ridge_ : ndarray, shape (r,)
        Penalty of every component in the least squares of a row.
    centers_ : ndarray, shape (m,)
        What is subtracted from the standardized columns: mean and column biases.
    scales_ : ndarray, shape (m,)
        Divisors of the columns.

    See Also
    --------
    ssnmf_fast.complete : The function behind it, for sparse and large tables.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, Colorado State University, 2021, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> table = rng.random((60, 2)) @ rng.random((2, 8))
    >>> holes = np.where(rng.random(table.shape) < 0.8, table, np.nan)
    >>> imputer = sf.LowRankImputer(rank=2, gamma_min=None, biases=False, random_state=0)
    >>> filled = imputer.fit_transform(holes)
    >>> bool(np.abs(filled - table).max() < 1e-5)
    True
    """

    rank: int | None = None
    _: KW_ONLY
    method: str | Method = "auto"
    gamma_min: Any = "validate"
    biases: bool = True
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    n_threads: int | None = None
    verbose: int = 0
    dtype: Any = None

    _saved: ClassVar = {
        "components_": Saved("rm", "finite"),
        "rank_": COUNT,
        "gamma_": NUMBER,
        "ridge_": Saved("r"),
        "centers_": Saved("m"),
        "scales_": Saved("m"),
        "n_iter_": COUNT,
        "n_features_in_": COUNT,
        "feature_names_in_": Saved("m", optional=True),
    }

    def fit(self, X: Any, y: Any = None) -> LowRankImputer:
        """Learn the model.

        Parameters
        ----------
        X : array_like, shape (n, m)
            Table with at least one entry; NaN is missing.
        """
        del y
        method = check_method(self.method, noisy=self.gamma_min is not None)
        X = self._checked(X, reset=True)
        scales = _deviations(X) if self.standardize else np.ones(X.shape[1], dtype=X.dtype)
        present = ~np.isnan(X)
        if not present.any():
            raise ValueError("X has no entry but NaN; at least one is needed.")
        empty = int(np.count_nonzero(~present.any(axis=0)))
        if empty:
            filled = "the overall mean plus the bias of the row" if self.biases else "0"
            warn_user(
                f"X has no entry in {counts(0, empty)}; missing values there are filled by "
                f"{filled}.",
                UserWarning,
            )
        standardized = X / scales
        check_entries(standardized, "X", allow_nan=True, allow_negative=True)
        result = quietly(
            UNINFORMED,
            complete,
            list_entries(standardized, present),
            **self._arguments(complete) | {"method": method},
        )
        self.components_ = result.right[: result.rank]
        self.rank_, self.gamma_, self.n_iter_ = result.rank, result.gamma, result.n_iter
        singular, gamma = result.singular_values / result.scale, max(result.gamma, 1e-30)
        self.ridge_ = np.maximum(ridge(singular, gamma, getattr(method, "p", 0.0)), _LEAST_RIDGE)
        centers = result.right[-1] if self.biases else np.zeros(X.shape[1], dtype=X.dtype)
        self.centers_ = (centers + X.dtype.type(result.offset)).astype(X.dtype)
        self.scales_ = scales
        return self

    def transform(self, X: Any) -> Array:
        """Fill the missing entries.

        Parameters
        ----------
        X : array_like, shape (n, m)
            Rows, seen in the fit or not; NaN is missing.

        Returns
        -------
        ndarray, shape (n, m)
            A copy without NaN.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False).copy()
        missing = np.isnan(X)
        rows = missing.any(axis=1)
        if not rows.any():
            return np.asarray(X)
        present = ~missing[rows]
        with np.errstate(over="ignore"):
            centered = X[rows] / self.scales_ - self.centers_
        check_entries(centered, "standardized X", allow_nan=True, allow_negative=True)
        model = self._model(list_entries(centered, present), self.components_.T.astype(X.dtype))
        with np.errstate(over="ignore"):
            filled = ((model + self.centers_) * self.scales_).astype(X.dtype)
        require_finite({"the filled X": filled}, "Divide X by a constant before fit and transform.")
        X[rows] = np.where(present, X[rows], filled)
        return np.asarray(X)

    def _model(self, entries: sp.csr_array, G: Array) -> Array:
        """The model of rows of which some entries are known, dense."""
        penalties = np.asarray(self.ridge_, dtype=np.float64)
        if self.biases:
            G = np.column_stack([G, np.ones(len(G), dtype=G.dtype)])
            penalties = np.append(penalties, BIAS_RIDGE)
        stored, threads = padded(G, G.dtype), resolve_threads(self.n_threads)
        values = entries.data.astype(G.dtype, copy=False)
        known = Observations(Pattern.of(entries, threads), values, 1.0, 0.0, threads)
        return np.asarray(known.exact_rows(stored, penalties) @ stored.T)

    def _checked(self, X: Any, *, reset: bool) -> Array:
        X = X if sp.issparse(X) else readable(X, "X", allow_nan=True)
        dtype = check_dtype(self.dtype, DTYPES)
        with np.errstate(over="ignore"):  # infinity is refused
            return np.asarray(
                validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite="allow-nan")
            )


def _deviations(X: Array) -> Array:
    """Standard deviation of every column; else its largest entry in size, if it has one, or 1."""
    present = ~np.isnan(X)
    count = np.maximum(present.sum(axis=0), 1)
    filled = np.where(present, X, 0.0)
    largest = np.abs(filled).max(axis=0, initial=0.0)
    largest[largest == 0] = 1.0
    filled /= largest  # the squares of what is very large or small would be lost
    centered = np.where(present, filled - filled.sum(axis=0) / count, 0.0)
    deviations = np.sqrt((centered**2).sum(axis=0) / count)
    constant = deviations <= 10 * np.finfo(X.dtype).eps
    scales: Array = (np.where(constant, 1.0, deviations) * largest).astype(X.dtype)
    scales[scales == 0] = largest[scales == 0]
    return scales
