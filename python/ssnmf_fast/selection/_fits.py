"""The fits whose ranks are compared: plain factorizations, or estimators."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

from sklearn.base import clone

from .._common.arrays import Array
from .._data.border import CleanMatrix, check_integer, check_real
from .._data.threads import Stop
from .._models.factorize import factorize
from .._solver.losses import loss_named

_NEEDED = ("n_components", "loss", "random_state", "n_threads", "callback")
_MAX_ITER = 500
_TOL = {True: 1e-6, False: 1e-5}  # of squared errors, and of other losses


class Fit(NamedTuple):
    """A model of data, and the value that it has reached."""

    S: Array
    A: Array
    objective: float
    model: Any = None


@dataclass(frozen=True)
class PlainFits:
    """Factorizations by a loss."""

    loss: Any = "frobenius"
    max_iter: int = _MAX_ITER
    tol: float | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of :func:`factorize`."""
        tol = _TOL[self._quadratic] if self.tol is None else self.tol
        return {"loss": self.loss, "max_iter": self.max_iter, "tol": tol}

    @property
    def _quadratic(self) -> bool:
        return loss_named(self.loss, "loss").quadratic

    def fit(
        self, X: Any, X_weights: Any, y: Any, rank: int, seed: int, threads: int, stop: Stop
    ) -> Fit:
        del y
        found = factorize(
            CleanMatrix(X),
            n_components=rank,
            X_weights=X_weights,
            # Multiplicative steps are slow where squares are weighted, and stop too early.
            solver="hals" if self._quadratic else "auto",
            random_state=seed,
            n_threads=threads,
            callback=stop,
            **self.settings,
        )
        return Fit(found.S, found.A, found.objective[-1][1])


@dataclass(frozen=True)
class EstimatorFits:
    """Fits of copies of an estimator."""

    estimator: Any

    @property
    def loss(self) -> Any:
        return self.estimator.loss

    def fit(
        self, X: Any, X_weights: Any, y: Any, rank: int, seed: int, threads: int, stop: Stop
    ) -> Fit:
        if not X_weights.divisible:
            raise ValueError(
                "X_weights has weights of the rows of a sparse X, which an estimator cannot take "
                "beside hidden entries; leave estimator out, or give a dense X."
            )
        model = fitted(self.estimator, X, y, rank, seed, threads, stop, X_weights=X_weights)
        S, A, value = model.representation_, model.components_, model.objective_[-1][1]
        return Fit(S, A, value, model)


def fitted(
    estimator: Any, X: Any, y: Any, rank: int, seed: int, threads: int, stop: Stop, **given: Any
) -> Any:
    """Return a copy of an estimator that was fitted with this rank and seed."""
    own = estimator.callback

    def observe(state: Any) -> bool:
        return bool(own(state)) or stop(state)

    model = clone(estimator).set_params(
        n_components=rank,
        random_state=seed,
        n_threads=threads,
        callback=stop if own is None else observe,
    )
    arguments = (X,) if y is None else (X, y)
    return model.fit(*arguments, **given)


def fits_of(estimator: Any, loss: Any, max_iter: Any, tol: Any) -> PlainFits | EstimatorFits:
    """Return the fits that a user asks for: by an estimator, or by parameters."""
    given = {"loss": loss, "max_iter": max_iter, "tol": tol}
    given = {name: value for name, value in given.items() if value is not None}
    if estimator is None:
        if "loss" in given:
            loss_named(loss, "loss")
        if "max_iter" in given:
            check_integer(max_iter, "max_iter", 0)
        if "tol" in given:
            check_real(tol, "tol")
        return PlainFits(**given)
    refuse_both(estimator, given)
    if not all(hasattr(estimator, name) for name in ("fit", *_NEEDED)) or (
        "X_weights" not in signature(estimator.fit).parameters
    ):
        raise TypeError(
            "estimator must be one of ssnmf_fast with n_components and X_weights, such as NMF, "
            f"SSNMFClassifier or SSNMFRegressor; got {estimator!r:.100}."
        )
    require_no_start(estimator)
    return EstimatorFits(estimator)


def refuse_both(estimator: Any, given: dict[str, Any]) -> None:
    """Raise ValueError for parameters beside an estimator, which has its own."""
    if given:
        names = ", ".join(given)
        raise ValueError(
            f"{names} and estimator are both given; set {names} of the estimator instead, or leave "
            "the estimator out."
        )


def require_no_start(estimator: Any) -> None:
    """Raise ValueError for a start of arrays, which have one rank."""
    if not isinstance(estimator.init, str):
        raise ValueError(
            "estimator.init holds arrays, which have one rank; set it to 'random' to choose a rank."
        )
