"""An estimator composed of the functions of ssnmf_fast."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

import ssnmf_fast as sf


class Novelty(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Share of each sample that the components do not explain.

    Parameters
    ----------
    n_components : int, default 2
        Number of components.
    random_state : int, RandomState or None
        Seed of the start.
    """

    def __init__(self, n_components: int = 2, *, random_state: Any = None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Novelty:
        """Learn the components."""
        X = self._validated(X, reset=True)
        r, seed = self.n_components, self.random_state
        fit = sf.factorize(X, n_components=r, random_state=seed)
        self.components_, self.n_iter_ = fit.A, fit.n_iter
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return a column of shares of the sums of squares, from 0 to 1."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        rest = X - sf.represent(X, self.components_) @ self.components_
        unexplained = row_norms(np.asarray(rest), squared=True)
        total = row_norms(X, squared=True)
        share = unexplained / np.where(total > 0, total, 1)
        return np.asarray(share, dtype=np.float64).reshape(-1, 1)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the name of the column."""
        return np.array(["novelty"], dtype=object)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        rules = {"accept_sparse": "csr", "dtype": np.float64}
        return validate_data(self, X, reset=reset, **rules)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
