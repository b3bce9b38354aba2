"""Estimator :class:`NMF`, and learning from batches with statistics of earlier ones."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, LossName, Solver, VectorLike
from .._common.saved import STREAM, Saved
from .._common.text import listed
from .._data.arrays import DataLike, as_array
from .._data.border import check_matrix
from .._models.factorize import Start
from .._models.online import Learner, Online, learn_batch
from .._solver.losses import loss_named
from .._solver.weights import WeightsLike
from .._topics import topic_shares
from ._base import FactorizationBase
from ._docstrings import complete_docstring

_OF_FITS = (  # and not of batches
    *("representation_", "receipt_"),
    *("refitted_label_components_", "readout_", "class_shares_"),
)


class BatchLearner:
    """Mixin of estimators that learn from batches: keeps, saves and checks statistics of these."""

    _saved: ClassVar[dict[str, Saved]] = {"stream_statistics_": STREAM}

    def _resumed(self) -> Learner:
        """Return the state after a fit, or after earlier batches."""
        raise NotImplementedError

    def _keep_learned(self, learner: Learner) -> None:
        """Set the attributes that count the calls of `partial_fit`, and drop those of a fit."""
        for name in _OF_FITS:
            self.__dict__.pop(name, None)
        earlier = vars(self)["objective_"] if hasattr(self, "stream_statistics_") else []
        self.n_iter_ = len(earlier) + 1
        self.objective_ = [*earlier, (self.n_iter_, learner.mean_loss)]
        self.stream_statistics_ = learner.arrays()

    def _check_loaded(self) -> None:
        if hasattr(self, "stream_statistics_"):
            self._resumed()


def refuse_to_continue(name: str, parts: str) -> None:
    raise ValueError(
        f"partial_fit cannot continue a fit with {name}, which {parts} do not take. Fit all data "
        "together, or start with a new estimator."
    )


class SampleBatchLearner(BatchLearner, FactorizationBase):
    """Base of factorizations that can learn from batches of samples."""

    _saved: ClassVar = {
        "stream_settings_": Saved(optional=True, kind=dict[str, str | float | None]),
    }

    def _resumed(self) -> Online:
        for name, attribute in (("covariates", "n_fixed_"), ("penalties", "sample_penalties_")):
            if getattr(self, attribute, None):
                refuse_to_continue(name, "batches")
        settings = getattr(self, "stream_settings_", {"loss": self.loss_})
        A, B = self.components_, getattr(self, "label_components_", None)
        return Online.resume(A, B, settings, getattr(self, "stream_statistics_", {}))

    def _learn_batch(self, X: Any, **given: Any) -> None:
        """Learn from a checked batch and set the attributes; what is given overrides parameters."""
        before = self._resumed() if hasattr(self, "components_") else None
        online = learn_batch(before, X, **self._arguments(learn_batch) | given)
        self.components_ = np.ascontiguousarray(online.factor("A").T)
        if "B" in online.factors:
            self.label_components_ = np.ascontiguousarray(online.factor("B").T)
        self._keep_learned(online)
        self.stream_settings_ = online.settings


@complete_docstring
@dataclass(eq=False, repr=False)
class NMF(SampleBatchLearner):
    r"""Nonnegative matrix factorization X ~ S A, with weights and missing entries.

    Minimizes :math:`\sum W \odot d(X, S A)` over S, A >= 0; see :func:`ssnmf_fast.factorize`.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components r, at least 1.  "auto", for texts in a sparse X, chooses it like
        :func:`choose_rank` with ``criterion="words"``, which uses only whether entries are above 0.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, as in :func:`ssnmf_fast.factorize`.

    Attributes
    ----------
    rank_choice_ : RankChoice
        The choice made by "auto".
    covariate_names_ : list
        Columns of the covariates of the fit, if a data frame; those of new samples are matched.
    topic_names_ : ndarray of str, shape (r,)
        Names of topics of :func:`ssnmf_fast.trees.split_topic` and `merge_topics`.

    See Also
    --------
    SSNMFClassifier, SSNMFRegressor : The same with supervision.
    ssnmf_fast.factorize : The underlying function.

    Notes
    -----
    :meth:`transform` solves a convex problem to its optimality conditions, so
    ``fit_transform(X)`` equals ``fit(X).transform(X)``; `representation_` is close to both.

    References
    ----------
    .. [1] D. D. Lee, H. S. Seung, "Algorithms for non-negative matrix factorization", 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.random.default_rng(0).random((20, 8))
    >>> model = sf.NMF(n_components=3, random_state=0).fit(X)
    >>> model.transform(X[:2]).shape
    (2, 3)
    """

    n_components: int | Literal["auto"] = 10
    _: KW_ONLY
    loss: LossName | float = "frobenius"
    solver: Solver = "auto"
    init: Start = "auto"
    n_starts: int = 1
    forget_factor: float = 0.8
    A_support: npt.ArrayLike | None = None
    fixed_components: npt.ArrayLike | None = None
    penalties: Any = None
    _saved: ClassVar = {
        "topic_names_": Saved("r", "text", optional=True),
        "covariate_names_": Saved(optional=True, kind=list[str | int]),
    }

    @property
    def reconstruction_err_(self) -> float:
        """Norm of ``X - representation_ @ components_``, or the root of twice another loss."""
        receipt = getattr(self, "receipt_", None)
        if receipt is None:
            raise AttributeError("reconstruction_err_ is available only after fit.")
        if inputs := [name for name in ("X_weights", "penalties") if name in receipt.inputs]:
            hint = "See objective_, or score with the same weights."
            raise AttributeError(f"reconstruction_err_ needs a fit without {inputs[0]}. {hint}")
        factor = 1 if loss_named(self.loss_, "loss").quadratic else 2
        return math.sqrt(factor * max(0.0, receipt.objective))

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None, covariates: Any = None) -> None:
        arguments: Any = {**self._arguments(), "n_components": self._choose_rank(X)}
        table, names = _table(covariates), list(getattr(covariates, "columns", ()))
        learned: dict[str, Any] = {"n_fixed_": 0 if table is None else table.shape[1]}
        if names and len({*names}) == len(names) and all(isinstance(n, str | int) for n in names):
            learned["covariate_names_"] = names
        fit = self._factorize(X, X_weights=X_weights, **arguments | {"covariates": table})
        self._keep(fit, **learned)

    def _fit_inputs(self, X: Any, y: Any, **given: Any) -> dict[str, Any]:
        table = _table(given.get("covariates"), getattr(self, "covariate_names_", None))
        return {"X_weights": None} | given | {"covariates": table}

    def fit(
        self,
        X: DataLike,
        y: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        covariates: VectorLike = None,
    ) -> NMF:
        """Learn components from samples.

        Parameters
        ----------
        covariates : array_like, shape (n, number of fixed components), optional
            Fixed last columns of S, such as indicators of batches or a column of ones; their
            components are learned.
        """
        X = self._checked(X, reset=True)
        self._learn(X, y, X_weights=X_weights, covariates=covariates)
        return self

    def transform(
        self, X: DataLike, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> Array:
        """Represent samples by the learned components."""
        return self._represent(self._checked(X), X_weights, covariates=covariates)

    def topic_proportions(
        self, X: DataLike, *, X_weights: WeightsLike = None, covariates: VectorLike = None
    ) -> Array:
        """Return the share of each component in each sample."""
        S = self._represent(self._checked(X), X_weights, covariates=covariates)
        return topic_shares(S, self.components_)

    def score(
        self,
        X: DataLike,
        y: VectorLike = None,
        *,
        X_weights: WeightsLike = None,
        covariates: VectorLike = None,
    ) -> float:
        """Return the share of the deviance of X that the model explains."""
        return self._explained(self._checked(X), X_weights, covariates=covariates)

    def _represent(self, X: Any, X_weights: WeightsLike, **known: Any) -> Array:
        names, n_fixed = getattr(self, "covariate_names_", None), getattr(self, "n_fixed_", 0)
        covariates = _table(known.get("covariates"), names)
        k = 0 if covariates is None else covariates.shape[1]
        way = "give these; a call that takes none needs a model without" if n_fixed else "omit it"
        if k != n_fixed:
            raise ValueError(f"covariates has {k} columns, and the fit had {n_fixed}: {way}.")
        return super()._represent(X, X_weights, covariates=covariates)

    def partial_fit(
        self, X: DataLike, y: VectorLike = None, *, X_weights: WeightsLike = None
    ) -> NMF:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n, m)
            Samples of a batch, preferably hundreds or more; NaN in a dense X means missing.

        Returns
        -------
        self
            Without `representation_`; `n_iter_` counts batches, and `objective_` holds estimates of
            the objective per sample.

        Notes
        -----
        After :meth:`fit` without covariates and penalties, learning continues from its components.
        `solver`, `max_iter`, `tol`, `callback` and `verbose` are ignored; other parameters must not
        change.
        ``n_components="auto"`` requires an earlier :meth:`fit`.
        """
        fitted = hasattr(self, "components_")
        if self.n_components == "auto" and not fitted:
            hint = "from one batch; give a number, or call fit first."
            raise ValueError(f"partial_fit cannot choose n_components='auto' {hint}")
        X = self._checked(X, reset=not fitted)
        rank = self.n_components_ if self.n_components == "auto" else self.n_components
        self._learn_batch(X, X_weights=X_weights, n_components=rank)
        return self


def _table(covariates: Any, names: list[Any] | None = None) -> Any:
    """Return fixed columns of S as a checked array, by name; a chunked array is not changed."""
    if covariates is None or hasattr(covariates, "chunks"):
        return covariates
    own = list(getattr(covariates, "columns", ()))
    if names and own and {*own} == {*names}:
        covariates = covariates[names]
    elif names and own and all(isinstance(one, str) for one in (*own, *names)):
        raise ValueError(f"covariates has the columns {listed(own)}; the fit had {listed(names)}.")
    return check_matrix(as_array(covariates, "covariates"), "covariates", allow_nan=False)
