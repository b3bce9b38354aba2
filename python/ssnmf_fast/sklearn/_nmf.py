"""scikit-learn's estimators of NMF with this package's kernels instead of its solvers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import sklearn
import sklearn.decomposition as original
from scipy import linalg
from sklearn.decomposition import _nmf as theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions, validate_params

from .._backend import dispatch
from .._common.arrays import Array
from .._data.threads import resolve_threads
from .._models.factorize import factorize
from .._models.represent import represent
from ..penalties import L1, L2
from . import _iterations as iterations
from ._calls import on_engine

_LEAST_SHARED = 1 << 17  # with more entries in the factors of a batch, a second thread helps

_OWN_FIT, _OWN_BATCH = original.NMF, original.MiniBatchNMF  # the originals, also while patched
# Threads of the engine in the current fit, transform or batch of MiniBatchNMF, or 0
_threads: ContextVar[int | None] = ContextVar("_threads", default=None)


def _reason(model: Any, X: Any, W: Any, H: Any) -> str | None:
    """Return why the engine cannot serve a call with these data and given factors, or None."""
    beta = theirs._beta_loss_to_float(model.beta_loss)
    if beta < 0:
        return f"beta_loss={beta:g} is negative."
    if dispatch.level == "reference" and dispatch.available_levels():
        return "SSNMF_FAST_ISA=reference switches the compiled kernels off."
    if dispatch.level == "reference":
        return "this installation has no kernels for this processor."
    if beta == 0 and not X.min() > iterations.EPSILON:
        return "the Itakura-Saito divergence is not defined for zeros, and 1.2e-7 counts as 0."
    if 0 < model.tol < 32 * np.finfo(X.dtype).eps:
        return f"tol={model.tol:g} is near the rounding errors of {X.dtype}."
    values = X.data if sp.issparse(X) else X
    lowest, highest = values.min(initial=0), values.max(initial=0)
    if beta != 2 and lowest < 0:
        return "X has negative entries."
    # Products of several factors must stay in the range of the kernels.
    most = float(np.finfo(X.dtype).max) ** (1 / (2 * max(beta, 2)))
    sizes = [highest - lowest, *model._compute_regularization(X)]
    for F, axis in ((W, 0), (H, 1)):
        if isinstance(F, np.ndarray) and F.ndim == 2:
            sizes += F.max(axis, initial=0).tolist()  # of each component
    if not all(size == 0 or 1 / most <= size <= most for size in sizes):
        limits = f"{1 / most:.1e} to {most:.1e}"
        return f"the scale of X, of given factors or of penalties is not in the range {limits}."
    return None


class NMF(_OWN_FIT):  # type: ignore[misc, valid-type]
    __doc__ = _OWN_FIT.__doc__
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_OWN_FIT._parameter_constraints,
        "solver": [StrOptions({"mu", "cd", "auto"})],
    }

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:  # models from before patch() are instances
        return (cls is NMF and _OWN_FIT in other.__mro__) or NotImplemented

    def _check_params(self, X: Any) -> Any:
        if self.solver != "auto":
            return super()._check_params(X)
        return super(_OWN_FIT, self)._check_params(X)  # "auto" takes every loss

    def _fit_transform(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, update_H: bool = True
    ) -> tuple[Array, Array, int]:
        beta = theirs._beta_loss_to_float(self.beta_loss)
        solver = ("cd" if beta == 2 else "mu") if self.solver == "auto" else self.solver
        if reason := _reason(self, X, W, H):
            on_engine("NMF", reason)
            own = _OWN_FIT(**{name: getattr(self, name) for name in _OWN_FIT._get_param_names()})
            result = own.set_params(solver=solver)._fit_transform(X, y, W, H, update_H)
            self._n_components, self._beta_loss = own._n_components, own._beta_loss
            return result  # type: ignore[no-any-return]
        self._check_params(X)
        threads = resolve_threads()
        data = iterations.clean(X, threads)
        sides = iterations.Sides(data, beta, threads, once=not update_H)
        penalties = penalties_of(self, X)
        W, H = self._check_w_h(iterations.for_start(X, sides, penalties), W, H, update_H)
        if solver == "mu" and not (update_H or W.any()):  # which "auto" starts at 0, like "cd"
            W += W.dtype.type(np.sqrt(X.mean() / W.shape[1]))
        two_sided = any(penalties[0]) == any(penalties[1])
        best = self.solver == "auto" and beta <= 2 and (two_sided or not update_H)
        convex = solver == "cd" and not update_H
        reason = None if best or convex else sides.noise(W, H, solver, penalties, update_H)
        if not on_engine("NMF", reason):
            rest: Any = *self._compute_regularization(X), update_H, self.verbose
            if solver == "cd":
                rest = self.tol, self.max_iter, *rest, self.shuffle, self.random_state
                W, H, n_iter = theirs._fit_coordinate_descent(X, W, H, *rest)
            else:
                rest = beta, self.max_iter, self.tol, *rest
                W, H, n_iter = theirs._fit_multiplicative_update(X, W, H, *rest)
        elif best:
            W, H, n_iter = self._fit_best(sides, W, H, penalties, update_H)
        else:
            run = iterations.descend if solver == "cd" else iterations.multiply
            W, H, n_iter = run(sides, W, H, self, penalties, update_H)
        if n_iter == self.max_iter and self.tol > 0:
            how = "Increase it to improve convergence"
            message = f"Maximum number of iterations {self.max_iter} reached. {how}."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return W, H, n_iter

    def _fit_best(
        self, sides: iterations.Sides, W: Array, H: Array, weights: Any, update_H: bool
    ) -> tuple[Array, Array, int]:
        """Fit with the engine's choice of solver and its stopping rule."""
        unit = 2 if sides.beta == 2 else 1  # the engine's loss relative to scikit-learn's
        # The engine multiplies penalties by the length of the other side.
        by_side = zip("SA"[: 1 + update_H], weights, sides.X.shape[::-1], strict=False)
        penalties = {
            name: [L1(unit * linear / length), L2(unit * square / (2 * length))]
            for name, (linear, square), length in by_side
            if linear or square
        }
        settings: Any = {"loss": sides.beta, "n_threads": sides.threads}
        settings["penalties"] = penalties or None
        if not update_H:
            return represent(sides.X, H, **settings), H, 1
        settings |= {"max_iter": self.max_iter, "tol": self.tol, "verbose": int(bool(self.verbose))}
        fit = factorize(sides.X, n_components=W.shape[1], init=(W, H), **settings)
        return fit.S, fit.A, fit.n_iter


class MiniBatchNMF(_OWN_BATCH):  # type: ignore[misc, valid-type]
    __doc__ = _OWN_BATCH.__doc__

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return (cls is MiniBatchNMF and _OWN_BATCH in other.__mro__) or NotImplemented

    @contextmanager
    def _served(self, X: Any, W: Any, H: Any) -> Iterator[int]:
        """Yield the threads of the engine, or 0, decided once per fit, transform or batch."""
        token, known = None, _threads.get()
        if known is None:
            known = on_engine("MiniBatchNMF", _reason(self, X, W, H)) and resolve_threads()
            token = _threads.set(known)
        try:
            yield known
        finally:
            if token:
                _threads.reset(token)

    def _sides(self, X: Any, H: Array, threads: int) -> tuple[iterations.Sides, Array]:
        """Return data for the kernels, and the transpose of H of the same dtype."""
        X = X.astype(dtype := np.result_type(X.dtype, H.dtype), copy=False)
        X = X if isinstance(X, iterations.FastCsr) else iterations.clean(X, threads)
        if sum(X.shape) * self._n_components < _LEAST_SHARED:
            threads = 1
        return iterations.Sides(X, self._beta_loss, threads, once=True), dispatch.padded(H.T, dtype)

    def _fit_transform(self, X: Any, W: Any = None, H: Any = None, update_H: bool = True) -> Any:
        with self._served(X, W, H) as threads:
            if threads and sp.issparse(X):
                X = iterations.clean(X, threads)  # sorted here: SciPy would sort the caller's X
                X = X if X.has_sorted_indices else X.sorted_indices()
                sides = iterations.Sides(X, theirs._beta_loss_to_float(self.beta_loss), threads)
                X = iterations.for_start(X, sides, penalties_of(self, X))
            return super()._fit_transform(X, W=W, H=H, update_H=update_H)

    def _solve_W(self, X: Any, H: Array, max_iter: int) -> Array:
        with self._served(X, None, H) as threads:
            if not threads:
                return np.asarray(super()._solve_W(X, H, max_iter))
            sides, G = self._sides(X, H, threads)
            W = self._solve(sides, G, H.shape[0], penalties_of(self, X)[0], max_iter)
            return np.ascontiguousarray(W[:, : H.shape[0]], X.dtype)

    def _solve(
        self, sides: iterations.Sides, G: Array, rank: int, penalty: Any, max_iter: int
    ) -> Array:
        """Return W in padded storage, as `_solve_W` of scikit-learn."""
        X = sides.X
        F = dispatch.padded(np.full((X.shape[0], rank), np.sqrt(X.mean() / rank), G.dtype), G.dtype)
        P = None
        for _ in range(max_iter):
            before = F.copy()
            P = P if P is not None and sides.beta == 2 else sides.product(F, G, 0)
            iterations.step(sides, F, G, 0, P, penalty)
            if linalg.norm(F - before) / linalg.norm(F) <= self.tol and self.tol > 0:
                break
        return F

    def _minibatch_step(self, X: Any, W: Any, H: Array, update_H: bool) -> Any:
        with self._served(X, None, H) as threads:
            if not threads:
                return super()._minibatch_step(X, W, H, update_H)
            (sides, G), rank = self._sides(X, H, threads), H.shape[0]
            (of_W, of_H), cross = penalties_of(self, X), None
            if self.fresh_restarts or W is None:
                F = self._solve(sides, G, rank, of_W, self.fresh_restarts_max_iter)
                iterations.cut(F, sides.beta, 0)
            else:
                F = dispatch.padded(W, G.dtype)
                P = sides.product(F, G, 0)
                iterations.step(sides, F, G, 0, P, of_W)
                iterations.cut(F, sides.beta, 0)
                W[...] = F[:, :rank]
                if sides.beta == 2:
                    cross = float(dispatch.kernels.inner(F, P, threads))
            cost = sides.divergence(F, G, cross)
            for factor, (linear, square) in ((F, of_W), (G, of_H)):
                cost += linear * float(factor.sum()) + square * float((factor**2).sum())
            if update_H:
                N = iterations.penalized(sides.denominator(G, F, 1), G, of_H)
                up, down = (part[:, :rank].T for part in (sides.product(G, F, 1), N))
                exponent = sides.exponent
                A, B = self._components_numerator, self._components_denominator
                A *= self._rho
                A += up * (H if exponent == 1 else H ** (1 / exponent))
                B *= self._rho
                B += down
                np.divide(A, B, out=H)
                if exponent != 1:
                    H **= exponent
                iterations.cut(H, sides.beta, 1)
            single = X.dtype == np.float32 and (sides.beta == 2 or not sides.sparse)
            return (np.float32 if single else np.float64)(cost / X.shape[0])


def penalties_of(model: Any, X: Any) -> iterations.Penalties:
    """Return the weights of the sums and of half the squares of the entries, of W and of H."""
    linear_W, linear_H, square_W, square_H = model._compute_regularization(X)
    return (linear_W, square_W), (linear_H, square_H)


@validate_params(  # type: ignore[untyped-decorator]
    original.non_negative_factorization._skl_parameter_constraints,
    prefer_skip_nested_validation=False,
)
@wraps(original.non_negative_factorization, ("__doc__", "__name__", "__qualname__"), ())
def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: Any = "auto",
    *,
    update_H: bool = True,
    **parameters: Any,
) -> tuple[Array, Array, int]:
    model = NMF(n_components, **parameters)
    model._validate_params()
    X = check_array(X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
    with sklearn.config_context(assume_finite=True):
        return model._fit_transform(X, W=W, H=H, update_H=update_H)
