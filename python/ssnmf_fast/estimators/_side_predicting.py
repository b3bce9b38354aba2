"""Fits and predictions of a classifier that takes side information."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import Saved
from .._data.checks import check_integer
from ._base import Self
from ._batches import SupervisedBase
from ._explain import explanation_of
from ._explanation import Explanation
from ._predicting import ReadoutPredictions, with_readout
from ._readout import LogisticReadout, Readout
from ._side import tables_to_predict
from ._side_members import product_of_tables
from ._suggesting import suggest


@dataclass(eq=False, repr=False, kw_only=True)
class SidePredictions(ReadoutPredictions, SupervisedBase):
    """A classifier whose samples may have tables beside X."""

    _saved: ClassVar = {"side_": Saved("", optional=True, container=dict)}

    def fit(
        self: Self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        side: Any = None,
    ) -> Self:
        """Learn dictionary and predictions from samples and the labels of some of them."""
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights=X_weights, sample_weight=sample_weight, side=side)
        return self

    def _drop_readout(self) -> None:
        super()._drop_readout()
        for name in ("side_", "committee_", "validation_predicted_"):
            self.__dict__.pop(name, None)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        side = getattr(getattr(self, "readout_", None), "side", None)
        columns = 0 if side is None else side.shape[1]
        if sum(getattr(self, "side_", {}).values()) != columns:
            raise ValueError("side_ and the readout have different numbers of columns")

    def _read(self, X: Any, X_weights: Any, side: Any = None) -> tuple[Readout, Array]:
        readout, scores = super()._read(X, X_weights)
        tables = tables_to_predict(side, len(scores), getattr(self, "side_", {}))
        if tables:
            assert isinstance(readout, LogisticReadout)
            assert readout.side is not None
            scores = scores + readout.slopes * product_of_tables(tables, readout.side)
        return readout, scores

    @with_readout
    def decision_function(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Return how strongly the samples belong to the classes."""
        return self._decide(*self._read(X, X_weights, side))

    @with_readout
    def predict_proba(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Return the probability of every class, or of every label by itself."""
        return self._proba(*self._read(X, X_weights, side))

    @with_readout
    def predict_log_proba(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Return the logarithms of :meth:`predict_proba`."""
        return np.asarray(np.log(self._proba(*self._read(X, X_weights, side))))

    @with_readout
    def predict(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Array:
        """Predict classes, or an indicator matrix of labels."""
        return self._choose(*self._read(X, X_weights, side))

    @with_readout
    def explain(self, X: Any, *, X_weights: Any = None, side: Any = None) -> Explanation:
        """Return what topics, features, neighbors and tables add to the scores, exactly."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        tables = tables_to_predict(side, X.shape[0], getattr(self, "side_", {}))
        return explanation_of(self, self._fitted_readout(), X, X_weights, tables)

    @with_readout
    def suggest(self, X: Any, n: int = 10, *, X_weights: Any = None, side: Any = None) -> Array:
        """Choose samples that are worth labeling next."""
        check_is_fitted(self)
        count, X = check_integer(n, "n", 1), self._checked(X, reset=False)
        tables = tables_to_predict(side, X.shape[0], getattr(self, "side_", {}))
        return suggest(self, X, X_weights, count, tables)

    @with_readout
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_weights: Any = None,
        side: Any = None,
    ) -> float:
        """Return the accuracy; with multiple labels, the share of samples without a wrong label."""
        given = {} if side is None else {"side": side}
        return self._score(self.predict(X, X_weights=X_weights, **given), y, sample_weight)
