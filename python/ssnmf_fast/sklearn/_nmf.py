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
from sklearn.decomposition._nmf import _beta_loss_to_float
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions, validate_params

from .._backend import dispatch
from .._backend.dispatch import padded
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
    beta = _beta_loss_to_float(model.beta_loss)
    if beta < 0:
        return f"beta_loss={beta:g} is negative."
    if dispatch.level == "reference":
        if dispatch.available_levels():
            return "SSNMF_FAST_ISA=reference switches the compiled kernels off."
        return "this installation has no kernels for this processor."
    if beta == 0 and not X.min() > iterations.EPSILON:
        least = f"{iterations.EPSILON:.2g} and less count as zeros"
        return f"the Itakura-Saito divergence is not defined for zeros ({least})."
    if 0 < model.tol < 32 * np.finfo(X.dtype).eps:
        return f"tol={model.tol:g} is near the rounding errors of {X.dtype}."
    values = X.data if sp.issparse(X) else X
    lowest, highest = values.min(initial=0), values.max(initial=0)
    if not np.isfinite(highest) or not np.isfinite(lowest):
        return "X has NaN or infinite entries."
    if beta != 2 and lowest < 0:
        return "X has negative entries."
    # Products of several factors must stay in the range of the kernels.
    most = float(np.finfo(X.dtype).max) ** (1 / (2 * max(beta, 2)))
    sizes = [max(highest, -lowest), *model._compute_regularization(X)]
    for F, axis in ((W, 0), (H, 1)):
        if isinstance(F, np.ndarray) and F.ndim == 2:
            sizes += F.max(axis, initial=0).tolist()  # of each component
    if not all(size == 0 or 1 / most <= size <= most for size in sizes):
        limits = f"{1 / most:.1e} to {most:.1e}"
        return f"the scale of X, of given factors or of penalties is not in the range {limits}."
    return None


class _Replacement:
    """Scikit-learn's models and classes derived from its class count as those of the new class."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        replaced = vars(cls).get("_replaces")  # not of classes derived from the new class
        return replaced in other.__mro__ or NotImplemented


class NMF(_Replacement, _OWN_FIT):  # type: ignore[misc, valid-type]
    __doc__ = _OWN_FIT.__doc__
    _replaces = _OWN_FIT
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_OWN_FIT._parameter_constraints,
        "solver": [StrOptions({"mu", "cd", "auto"})],
    }

    def _check_params(self, X: Any) -> Any:
        if self.solver != "auto":
            return super()._check_params(X)
        return super(_OWN_FIT, self)._check_params(X)  # "auto" takes every loss

    def _fit_transform(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, update_H: bool = True
    ) -> tuple[Array, Array, int]:
        beta = _beta_loss_to_float(self.beta_loss)
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
        sides, fast = iterations.Sides(data, beta, threads, once=not update_H), X
        if sp.issparse(data) and sides.precise:
            fast = iterations.FastCsr(data)
            fast.sides = sides
        W, H = self._check_w_h(fast, W, H, update_H)
        penalties = penalties_of(self, X)
        two_sided = any(penalties[0]) == any(penalties[1])
        if self.solver == "auto" and beta <= 2 and (two_sided or not update_H):
            run: Any = self._fit_best
        else:
            run = iterations.descend if solver == "cd" else iterations.multiply
        checked, found = update_H and self.solver != "auto", None
        reason = sides.noise(W, H, solver, penalties) if checked else None
        if not reason:
            found = run(sides, W, H, self, penalties, update_H)
            reason = None if found else "the start fits X up to rounding."
        if not on_engine("NMF", reason):
            rest: Any = *self._compute_regularization(X), update_H, self.verbose
            if solver == "cd":
                rest += self.shuffle, self.random_state
                found = theirs._fit_coordinate_descent(X, W, H, self.tol, self.max_iter, *rest)
            else:
                given = X, W, H, beta, self.max_iter, self.tol
                found = theirs._fit_multiplicative_update(*given, *rest)
        W, H, n_iter = found
        if n_iter == self.max_iter and self.tol > 0:
            warnings.warn(
                f"Maximum number of iterations {self.max_iter} reached. Increase it to improve "
                "convergence.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return W, H, n_iter

    @staticmethod
    def _fit_best(
        sides: iterations.Sides, W: Array, H: Array, model: Any, weights: Any, update_H: bool
    ) -> tuple[Array, Array, int]:
        """Fit with the engine's choice of solver and its stopping rule."""
        unit = 2 if sides.beta == 2 else 1  # the engine's loss relative to scikit-learn's
        penalties = {  # which the engine multiplies by the length of the other side
            name: [L1(unit * linear / length), L2(unit * square / (2 * length))]
            for name, (linear, square), length in zip(
                "SA", weights, sides.X.shape[::-1], strict=True
            )
            if linear or square
        }
        settings: Any = {"loss": sides.beta, "n_threads": sides.threads}
        if not update_H:
            settings["penalties"] = {"S": penalties["S"]} if "S" in penalties else None
            return represent(sides.X, H, **settings), H, 1
        fit = factorize(
            sides.X,
            n_components=W.shape[1],
            init=(W, H),
            max_iter=model.max_iter,
            tol=model.tol,
            penalties=penalties or None,
            verbose=int(bool(model.verbose)),
            **settings,
        )
        return fit.S, fit.A, fit.n_iter


class MiniBatchNMF(_Replacement, _OWN_BATCH):  # type: ignore[misc, valid-type]
    __doc__ = _OWN_BATCH.__doc__
    _replaces = _OWN_BATCH

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

    def _sides(self, X: Any, dtype: Any, threads: int) -> iterations.Sides:
        if X.dtype != dtype:
            X = X.astype(dtype)
        X = X if isinstance(X, iterations.FastCsr) else iterations.clean(X, threads)
        if sum(X.shape) * self._n_components < _LEAST_SHARED:
            threads = 1
        return iterations.Sides(X, self._beta_loss, threads, once=True)

    def _fit_transform(self, X: Any, W: Any = None, H: Any = None, update_H: bool = True) -> Any:
        with self._served(X, W, H) as threads:
            if threads and sp.issparse(X):
                X = iterations.clean(X, threads)  # sorted here: SciPy would sort the caller's X
                X = X if X.has_sorted_indices else X.sorted_indices()
                sides = iterations.Sides(X, _beta_loss_to_float(self.beta_loss), threads)
                if sides.precise:
                    X = iterations.FastCsr(X)
                    X.sides = sides
            return super()._fit_transform(X, W=W, H=H, update_H=update_H)

    def _solve_W(self, X: Any, H: Array, max_iter: int) -> Array:
        with self._served(X, None, H) as threads:
            if not threads:
                return np.asarray(super()._solve_W(X, H, max_iter))
            dtype = np.result_type(X.dtype, H.dtype)
            sides, G = self._sides(X, dtype, threads), padded(H.T, dtype)
            W = self._solve(sides, G, H.shape[0], penalties_of(self, X)[0], max_iter)
            return np.ascontiguousarray(W[:, : H.shape[0]], X.dtype)

    def _solve(
        self, sides: iterations.Sides, G: Array, rank: int, penalty: Any, max_iter: int
    ) -> Array:
        """Return W in padded storage, as `_solve_W` of scikit-learn."""
        X = sides.X
        F = padded(np.full((X.shape[0], rank), np.sqrt(X.mean() / rank), G.dtype), G.dtype)
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
            dtype, rank = np.result_type(X.dtype, H.dtype), H.shape[0]
            sides, G = self._sides(X, dtype, threads), padded(H.T, dtype)
            (of_W, of_H), cross = penalties_of(self, X), None
            if self.fresh_restarts or W is None:
                F = self._solve(sides, G, rank, of_W, self.fresh_restarts_max_iter)
                iterations.cut(F, sides.beta, 0)
            else:
                F = padded(W, dtype)
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
