"""Methods of completion.

"nnm" and "structured-nnm" minimize ||X||_* + alpha ||P_c X|| subject to P_O X = P_O M by ADMM
(thesis (2.2), (2.7)), with the 1-norm or the 2-norm of the missing entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._common.docstrings import complete
from .._data.arrays import entry_rows
from .._data.border import check_option
from .._linalg import square, svd
from ._irls import (
    OVERSAMPLING,
    Iteration,
    estimated_rank,
    iterations,
    sirls,
    structured,
    takes_iterate,
)
from ._matrix_irls import MatrixIRLS
from ._noisy import noisy_iterates
from ._printed import printed_iterates
from ._problem import CompletionProblem, Iterate, Method
from ._result import CompletionState

_CHECK_EVERY = 20


@dataclass(frozen=True)
class NNM(Method):
    """Nuclear norm minimization by ADMM (Kassab 2021, (2.2)), on n x m arrays."""

    takes_rank: ClassVar[bool] = False

    def _iterates(self, problem: CompletionProblem) -> Iterator[Iterate]:
        """Alternate singular value thresholding of X with the constraints on its copy Y."""
        observations = problem.observations
        tol = 1e-5 if problem.tol is None else problem.tol
        indptr, indices, values = observations.csr
        rows = entry_rows(indptr)
        missing = np.ones(observations.shape, dtype=bool)
        missing[rows, indices] = False
        Y, dual = np.zeros(observations.shape), np.zeros(observations.shape)
        Y[rows, indices] = values
        penalty = 10.0  # of X = Y; the scaled data have spectral norm 1
        history: list[CompletionState] = []
        last = problem.max_iter or 2000
        for iteration in range(1, last + 1):
            left, singular, right = svd(Y - dual)
            rank = max(1, int(np.count_nonzero(singular > 1 / penalty)))
            shrunk = np.maximum(singular[:rank] - 1 / penalty, 0.0)
            F, G = left[:, :rank] * shrunk, right[:rank].T
            X = F @ G.T
            before = Y[missing]
            Y[missing] = np.maximum(self._shrink((X + dual)[missing], penalty), problem.floor)
            dual += X - Y
            size = max(float(np.linalg.norm(Y)), 1e-300)
            primal = float(np.linalg.norm(X - Y)) / size
            change = float(np.linalg.norm(Y[missing] - before)) / size
            converged = primal < tol and change < tol
            if iteration % _CHECK_EVERY == 0 or iteration == last or converged:
                history.append(CompletionState(iteration, change, primal, 0.0, rank))
                F, G = (padded(factor, observations.dtype) for factor in (F, G))
                yield Iterate(observations, F, G, shrunk, history, converged)
                if converged:
                    return
            # Residual balancing (Boyd et al. 2011, 3.4.1).
            if primal > 10 * change * penalty:
                penalty, dual = penalty * 2, dual / 2
            elif change * penalty > 10 * primal:
                penalty, dual = penalty / 2, dual * 2

    def _shrink(self, z: Array, penalty: float) -> Array:
        """Return missing entries after the proximal step of their norm."""
        return z


@dataclass(frozen=True)
class StructuredNNM(NNM):
    """Nuclear norm minimization with a norm of the missing entries (Kassab 2021, (2.7)).

    Parameters
    ----------
    sparsity : float
        Weight alpha of this norm, at least 0, for data of spectral norm 1; 0 turns it off.
    missing_norm : {"l1", "l2"}
        The norm.
    """

    sparsity: float = 0.01
    missing_norm: Literal["l1", "l2"] = "l1"

    options: ClassVar = {"missing_norm": ("l1", "l2")}

    def _shrink(self, z: Array, penalty: float) -> Array:
        step = self.sparsity / penalty
        if self.missing_norm == "l1":
            return np.asarray(np.sign(z) * np.maximum(np.abs(z) - step, 0.0))
        length = float(np.linalg.norm(z))
        return z * max(0.0, 1 - step / length) if length > 0 else z


_SLOW_ITERATIONS = 500  # of an estimate of the rank


@dataclass(frozen=True)
class _Reweighted(Method):
    """Iteratively reweighted least squares with a schedule.

    Parameters
    ----------
    p : float
        Exponent of the Schatten function, 0 (log-determinant) to 1.
    q : float
        Exponent of the sparsity of missing entries, 0 to 1.
    sparsity : float
        Weight alpha of the sparsity (Algorithm 1), or the step c (Algorithm 2), at least 0, for
        data of spectral norm 1; 0 turns it off.
    oversampling : int
        Columns of the randomized SVD beyond the rank, at least 0; min(n, m) columns are exact.
    """

    p: float = 1.0
    _: KW_ONLY
    oversampling: int = OVERSAMPLING

    counts: ClassVar = {"oversampling": 0}
    exact: ClassVar[bool] = False  # whether rows are solved exactly
    fast: ClassVar[bool] = False  # whether the schedule is that of Algorithm 2

    def __init_subclass__(cls) -> None:
        if cls.__doc__:
            names = "p", *cls.__annotations__, "oversampling"
            cls.__doc__ = complete(cls.__doc__, [_Reweighted.__doc__], names)

    def _iterates(self, problem: CompletionProblem) -> Iterator[Iterate]:
        if problem.gamma_min is not None and self.by_levels:
            return noisy_iterates(problem, **asdict(self), exact=self.exact)
        observations, rank = problem.observations, problem.rank
        parameters = asdict(self) | {"gamma_min": problem.gamma_min, "floor": problem.floor}
        parameters["eps_floor"] = max((1e-3 * observations.root_mean_square) ** 2, 1e-30)
        largest = observations.largest_rank()
        if self.fast:
            schedule = structured(**parameters)
        else:
            schedule = sirls(observations, rank or largest, **parameters, exact=self.exact)
        if self.fast and not schedule.explicit and rank is None:
            # The schedule of this method falls too fast for an estimate of the rank.
            slow = replace(sirls(observations, largest), max_iter=_SLOW_ITERATIONS)
            rank = estimated_rank(problem, slow)
        if problem.max_iter is not None:
            schedule = replace(schedule, max_iter=problem.max_iter)
        if problem.start is not None:  # begin with gamma as if the residual were the next value
            F, G = (padded(factor, observations.dtype) for factor in problem.start)
            left = square(observations.residuals(F, G))
            gamma = float(np.clip(left, schedule.gamma_floor, schedule.gamma))
            schedule = replace(schedule, gamma=gamma)
        tol = 1e-5 if problem.tol is None else problem.tol
        if schedule.explicit:
            return printed_iterates(problem, schedule, tol)
        given = observations, rank, problem.start, problem.rng
        state = Iteration(*given, dense=self.dense, oversampling=self.oversampling)
        return iterations(state, schedule, tol)


@dataclass(frozen=True)
class SIRLS(_Reweighted):
    """A gradient step on the smoothed Schatten-p function for each update of the weights.

    Mohan and Fazel, "Iterative reweighted algorithms for matrix rank minimization", JMLR 2012.
    """

    by_levels: ClassVar[bool] = True


@dataclass(frozen=True)
class IRLS(_Reweighted):
    """Exact solutions of the weighted least-squares problems (Kassab 2021, (2.6)).

    With p = 0 this is "auto" for noisy data.
    """

    by_levels: ClassVar[bool] = True
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class StructuredSIRLS(_Reweighted):
    """Ten gradient steps for each update, and a step towards sparsity of the missing entries.

    Kassab 2021, 2.3.3, Algorithm 2, by default with the parameters of the author's program, and
    with the proximal form of the step towards sparsity, which does not overshoot.

    Parameters
    ----------
    sparsity_decay : float
        Factor of c in every iteration, 0 to 1; 1 in the thesis.
    step : {"proximal", "explicit"}
        "explicit" is Algorithm 2 as printed, for small data: on n x m arrays, with exact singular
        vectors, and compared with `tol` in every iteration; an unknown rank is estimated in every
        iteration (2.3.3).  With the printed schedules and q = 0 it diverges; with q = 0.5 missing
        entries stay bounded; with q = 1 it converges.
    k_s, k_l : int
        Steps towards sparsity and towards low rank in an iteration, at least 1.  "proximal" takes a
        single step of size k_s c towards sparsity, and may end the other steps early.
    gamma, eps : float or callable
        The regularizers.  A number, 0 to 1, is the ratio of a geometric sequence: gamma^k = 0.5^k
        and eps^k = 0.9^k as printed; "proximal" begins with gamma^1 = 1, as the program does.  A
        function is called with k = 1, 2, ... and must return a positive number; `sparsity` may be
        one too.  With "explicit", gamma may be a function of k and the singular values of X^k, and
        eps one of k and the sizes of the missing entries of X^(k+1), the largest first (2.4.1).
    step_size : float, callable or None
        The step s^k towards low rank of "explicit", also as a function of k; None is
        (gamma^k)^(1 - p/2).  With other steps the iterate has no low rank: it is the attribute
        `iterate` of the result.
    """

    q: float = 1.0
    sparsity: float | Callable[[int], float] = 1e-6
    sparsity_decay: float = 1.0
    step: Literal["proximal", "explicit"] = "proximal"
    k_s: int = 1
    k_l: int = 10
    gamma: float | Callable[..., float] = 0.5
    eps: float | Callable[..., float] = 0.9
    step_size: float | Callable[[int], float] | None = None

    fast: ClassVar[bool] = True
    options: ClassVar = {"step": ("proximal", "explicit")}
    counts: ClassVar = {"k_s": 1, "k_l": 1, "oversampling": 0}
    schedules: ClassVar = ("sparsity", "gamma", "eps", "step_size")

    def __post_init__(self) -> None:
        super().__post_init__()
        beyond = [name for name in ("gamma", "eps") if takes_iterate(getattr(self, name))]
        if self.step != "explicit" and (beyond or self.step_size is not None):
            name = beyond[0] if beyond else "step_size"
            of_iterate = " as a function of the iterate" if beyond else ""
            raise ValueError(f'{name}{of_iterate} needs step="explicit", whose iterate is stored.')


@dataclass(frozen=True)
class StructuredIRLS(_Reweighted):
    """IRLS with weights on missing entries, too (Kassab 2021, Algorithm 1).

    It stores the n x m iterate X of Algorithm 1, the attribute `iterate` of the result; the
    completion is its low-rank part, usually closer to the truth.
    """

    q: float = 1.0
    sparsity: float = 1.0

    dense: ClassVar[bool] = True


MethodName = Literal[
    "auto", "sirls", "structured-sirls", "irls", "structured-irls", "nnm", "structured-nnm"
]
_KINDS = MatrixIRLS, SIRLS, StructuredSIRLS, IRLS, StructuredIRLS, NNM, StructuredNNM  # as named
METHODS: dict[str, type[Method]] = dict(zip(get_args(MethodName), _KINDS, strict=True))


def check_method(method: object, *, noisy: bool) -> Method:
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise TypeError(
            f"method must be a name or an object of ssnmf_fast.completion; got {method!r:.80}."
        )
    name = check_option(method, "method", tuple(METHODS))
    return IRLS(p=0.0) if name == "auto" and noisy else METHODS[name]()
