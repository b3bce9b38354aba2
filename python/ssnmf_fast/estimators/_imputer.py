"""Estimator :class:`LowRankImputer`."""

from __future__ import annotations

import numbers
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from .._backend.dispatch import padded
from .._common.arrays import Array, Seed
from .._common.bases import OneToOneFeatureMixin
from .._common.saved import COUNT, NUMBER, Saved
from .._common.warn import warn_user
from .._data import border
from .._data.arrays import check_dtype, is_missing, list_entries
from .._data.threads import resolve_threads
from .._linalg import Pattern
from ..completion._complete import check_gamma_min, counts, solve
from ..completion._irls import ridge
from ..completion._methods import IRLS
from ..completion._noisy import COLUMN_MEANS
from ..completion._problem import CompletionProblem, Observations
from ._base import DTYPES, Estimator
from ._docstrings import complete_docstring

_LEAST_RIDGE = 1e-10  # rows with fewer entries than components get the shortest solution
_MOST_COMPONENTS = 40
_TENTHS, _FEW_ENTRIES = 3, 100_000  # in larger tables one hidden tenth is enough


@complete_docstring
@dataclass(eq=False, repr=False)
class LowRankImputer(OneToOneFeatureMixin, Estimator):
    """Impute missing entries by a low-rank model of the table.

    The model of the standardized columns is that of :func:`ssnmf_fast.complete` with `gamma_min`
    and method ``IRLS(p=0)``; each iteration also updates the means of the columns.
    :meth:`transform` represents seen or new rows by the components, with the exact least squares of
    IRLS ([1]_ (2.6)), and fills their gaps; other entries do not change.

    Parameters
    ----------
    n_components : int, optional
        Maximum rank of the model, which shrinkage reduces; None is min(n, m, 40).
    gamma_min : float or "validate"
        Final shrinkage, as in :func:`ssnmf_fast.complete`.  "validate" chooses it, or the means
        alone, by the error on three hidden tenths of the entries (one above 100,000 entries).
    standardize : bool
        Whether columns are divided by their standard deviation.  The mean is always subtracted.
    clip : bool
        Whether imputed values are clipped to the range of their column in the fit.
    missing_values : number, NaN or None
        Placeholder of missing entries.  NaN, None and pandas.NA are equivalent.
    add_indicator : bool
        Whether :meth:`transform` appends a column for each column with missing entries in the fit:
        1 where an entry is missing.
    keep_empty_features : bool
        Whether columns without entries in the fit are kept and filled with 0, or dropped.
    max_iter, tol : int and float, optional
        Stopping rule, as in :func:`ssnmf_fast.complete`.

    Attributes
    ----------
    components_ : ndarray, shape (r, m)
        Orthonormal components of the standardized columns.
    gamma_ : float
        Final regularization, relative to the squared spectral norm of the table.
    ridge_ : ndarray, shape (r,)
        Penalties of the components in the least squares of a row.
    means_, scales_ : ndarray, shape (m,)
        Means of the entries of the columns minus the low-rank model, which a row without entries
        gets, and divisors of the columns.
    lowest_, highest_ : ndarray, shape (m,)
        Smallest and largest entries of the columns in the fit; NaN for columns without entries.
    indicated_ : ndarray of int
        Columns with missing entries in the fit.

    See Also
    --------
    ssnmf_fast.complete : For sparse and large tables, and for data of exactly low rank.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, Colorado State University, 2021, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> table = 300 + rng.random((60, 2)) @ rng.random((2, 8))
    >>> holes = np.where(rng.random(table.shape) < 0.8, table, np.nan)
    >>> filled = sf.LowRankImputer(clip=False, random_state=0).fit_transform(holes)
    >>> bool(np.abs(filled - table).max() < 1e-6)
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    gamma_min: float | Literal["validate"] = "validate"
    standardize: bool = True
    clip: bool = True
    missing_values: float | None = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = False
    max_iter: int | None = None
    tol: float | None = None
    random_state: Seed = None
    n_threads: int | None = None
    verbose: int = 0
    dtype: npt.DTypeLike | None = None

    _of_methods: ClassVar = """
    Parameters
    ----------
    X : array_like, shape (n, m)
        Table.
    """
    _saved: ClassVar = {
        "components_": Saved("rm", "finite"),
        "gamma_": NUMBER,
        "ridge_": Saved("r", "nonnegative"),
        "means_": Saved("m", "finite"),
        "scales_": Saved("m", "positive"),
        **dict.fromkeys(("lowest_", "highest_"), Saved("m", "real")),
        "indicated_": Saved("?", "<m"),
        **dict.fromkeys(("n_components_", "n_iter_", "n_features_in_"), COUNT),
        "feature_names_in_": Saved("m", optional=True),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = is_missing(self.missing_values)
        return tags

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> LowRankImputer:
        """Learn the model from a table with at least one entry.

        Warns
        -----
        UserWarning
            If a column has no entry.
        """
        del y
        X = self._checked(X, reset=True)
        present = ~np.isnan(X)
        if not present.any():
            raise ValueError("All entries of X are missing; at least one is needed.")
        self.lowest_, self.highest_ = np.fmin.reduce(X), np.fmax.reduce(X)
        self.indicated_ = np.flatnonzero(~present.all(axis=0))
        if empty := int(np.count_nonzero(self._empty)):
            kept = "fills with 0", "drops; keep_empty_features=True keeps them, filled with 0"
            done = kept[not self.keep_empty_features]
            warn_user(f"X has no entry in {counts(0, empty)}, which transform {done}.", UserWarning)
        self.means_, self.scales_ = _standards(X, self.standardize)
        rank = min(*X.shape, _MOST_COMPONENTS)
        if self.n_components is not None:
            rank = border.check_integer(self.n_components, "n_components", 1)
        if rank > min(X.shape):
            most = f"min(n, m) = {min(X.shape)} of X"
            raise ValueError(f"n_components must be at most {most}; got {rank}.")
        gamma_min, steps = check_gamma_min(self.gamma_min), self.max_iter
        if gamma_min is None:
            raise ValueError("gamma_min must be a number or 'validate'; got None.")
        problem = CompletionProblem(
            entries=self._entries(X, present, "X"),
            rank=rank,
            gamma_min=gamma_min,
            biases=COLUMN_MEANS,
            max_iter=None if steps is None else border.check_integer(steps, "max_iter", 1),
            tol=None if self.tol is None else border.check_real(self.tol, "tol"),
            rng=border.check_random_state(self.random_state),
            n_threads=resolve_threads(self.n_threads),
            tenths=_TENTHS if X.size <= _FEW_ENTRIES else 1,
        )
        result = solve(IRLS(p=0.0), problem, None, self.verbose)
        self.components_ = result.right[: result.n_components]
        self.n_components_, self.gamma_ = result.n_components, result.gamma
        self.n_iter_ = result.n_iter
        singular = result.singular_values / result.scale
        self.ridge_ = np.maximum(ridge(singular, result.gamma, 0.0), _LEAST_RIDGE)
        shift = np.where(self._empty, 0.0, result.right[-1] + np.float64(result.offset))
        self.means_ = self.means_ + shift * self.scales_
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """Fill the missing entries of seen or new rows.

        Returns
        -------
        ndarray
            A copy without missing entries; see `keep_empty_features` and `add_indicator`.
        """
        check_is_fitted(self)
        table = self._checked(X, reset=False).copy()
        missing = np.isnan(table)
        rows = missing.any(axis=1)
        if rows.any():
            entries = self._entries(table[rows], ~missing[rows], "standardized X")
            G, threads = padded(self.components_.T, entries.dtype), resolve_threads(self.n_threads)
            known = Observations(Pattern.of(entries, threads), entries.data, 1.0, 0.0, threads)
            with np.errstate(over="ignore"):
                filled = np.asarray(known.exact_rows(G, self.ridge_) @ G.T)
                filled = filled * self.scales_ + self.means_
            if self.clip:
                low, high = (np.nan_to_num(bound) for bound in (self.lowest_, self.highest_))
                filled = filled.clip(low, high)
            table[missing] = filled.astype(table.dtype)[missing[rows]]
            hint = "Divide X by a constant before fit and transform."
            border.require_finite({"the filled X": table}, hint)
        if not self.keep_empty_features:
            table = table[:, ~self._empty]
        return np.hstack([table, missing[:, self.indicated_]]) if self.add_indicator else table

    def get_feature_names_out(self, input_features: npt.ArrayLike | None = None) -> Array:
        """Return the names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array_like of str, optional
            Names of the columns of X; by default those of the fit, or x0, x1, ...
        """
        names = super().get_feature_names_out(input_features)
        features = names if self.keep_empty_features else names[~self._empty]
        added = [f"missingindicator_{name}" for name in names[self.indicated_]]
        if self.add_indicator:
            features = np.append(features, np.array(added, dtype=object))
        return np.asarray(features)

    @property
    def _empty(self) -> Array:
        return np.asarray(np.isnan(self.lowest_))

    def _entries(self, X: Array, present: Array, name: str) -> sp.csr_array:
        with np.errstate(over="ignore"):
            standardized = ((X - self.means_) / self.scales_).astype(X.dtype)
        border.check_entries(standardized, name, allow_nan=True, allow_negative=True)
        return list_entries(standardized, present)

    def _checked(self, X: npt.ArrayLike, *, reset: bool) -> Array:
        """Return the table with NaN for missing entries."""
        X = X if sp.issparse(X) else border.readable(X, "X", allow_nan=True)
        dtype, marked = check_dtype(self.dtype, DTYPES), not is_missing(self.missing_values)
        if marked and not isinstance(self.missing_values, numbers.Real):
            value = self.missing_values
            raise ValueError(f"missing_values must be a number, NaN or None; got {value!r}.")
        allowed = True if marked else "allow-nan"
        with np.errstate(over="ignore"):  # infinity is refused
            X = validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite=allowed)
        if marked:
            X = np.where(X.dtype.type(self.missing_values) == X, X.dtype.type(np.nan), X)
        return np.asarray(X)


def _standards(X: Array, divide: bool) -> tuple[Array, Array]:
    """Return means and standard deviations of the columns; for constants their size, or 1."""
    present = ~np.isnan(X)
    count = np.maximum(present.sum(axis=0), 1)
    filled = np.where(present, X, 0.0).astype(np.float64)
    largest = np.abs(filled).max(axis=0)
    largest[largest == 0] = 1.0
    filled /= largest  # squares of very large or small values would overflow or underflow
    means = filled.sum(axis=0) / count
    means += np.where(present, filled - means, 0.0).sum(axis=0) / count  # to the last digit
    if not divide:
        return means * largest, np.ones_like(means)
    deviations = np.sqrt((np.where(present, filled - means, 0.0) ** 2).sum(axis=0) / count)
    deviations[deviations <= 10 * np.finfo(X.dtype).eps] = 1.0
    scales = deviations * largest
    return means * largest, np.where(scales > 0, scales, largest)
