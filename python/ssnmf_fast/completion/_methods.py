"""Methods by reweighted least squares, and all methods by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._backend.dispatch import padded
from .._data.border import check_option
from .._linalg.operators import square
from ._irls import (
    Iteration,
    Schedule,
    StructuredIteration,
    estimated_rank,
    iterations,
    sirls,
    structured,
)
from ._matrix_irls import MatrixIRLS
from ._noisy import noisy_fits
from ._nuclear import NNM, StructuredNNM
from ._problem import Fit, Method, Problem

_SLOW_ITERATIONS = 500  # of an estimate of the rank


@dataclass(frozen=True)
class _Reweighted(Method):
    """Iterations of reweighted least squares by a schedule."""

    p: float = 1.0

    exact: ClassVar[bool] = False  # whether rows are solved exactly

    def _fits(self, problem: Problem) -> Iterator[Fit]:
        if problem.gamma_min is not None and self.by_levels:
            return noisy_fits(problem, self.p, self.exact)
        rank = self._rank(problem)
        schedule = self._schedule(problem)
        if problem.max_iter is not None:
            schedule = replace(schedule, max_iter=problem.max_iter)
        if problem.start is not None:  # begin where what it leaves would be the next singular value
            F, G = (padded(factor, problem.observations.dtype) for factor in problem.start)
            left = square(problem.observations.residuals(F, G))
            schedule = replace(
                schedule, gamma=float(np.clip(left, schedule.gamma_floor, schedule.gamma))
            )
        kind = StructuredIteration if self.dense else Iteration
        state = kind(problem.observations, rank, problem.start, problem.rng)
        return iterations(state, schedule, 1e-5 if problem.tol is None else problem.tol)

    def _rank(self, problem: Problem) -> int | None:
        return problem.rank

    def _schedule(self, problem: Problem) -> Schedule:
        rank = problem.rank or problem.observations.largest_rank()
        return sirls(problem.observations, rank, **self._options(problem), exact=self.exact)

    def _options(self, problem: Problem) -> dict[str, Any]:
        """What every schedule takes."""
        return {
            "gamma_min": problem.gamma_min,
            "eps_floor": max((1e-3 * problem.observations.root_mean_square) ** 2, 1e-30),
            "floor": problem.floor,
            **asdict(self),
        }


@dataclass(frozen=True)
class SIRLS(_Reweighted):
    """One gradient step on the smoothed Schatten-p function for each update of the weights.

    Mohan and Fazel, "Iterative reweighted algorithms for matrix rank minimization", JMLR 2012.

    Parameters
    ----------
    p : float
        Exponent of the Schatten function, 0 (log-determinant) to 1.
    """

    by_levels: ClassVar[bool] = True


@dataclass(frozen=True)
class IRLS(_Reweighted):
    """The weighted least-squares problems solved exactly (Kassab 2021, (2.6)).

    With p = 0 this is "auto" for noisy data.

    Parameters
    ----------
    p : float
        Exponent of the Schatten function, 0 (log-determinant) to 1.
    """

    by_levels: ClassVar[bool] = True
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class StructuredSIRLS(_Reweighted):
    """Ten gradient steps for each update, and a step towards sparsity of the missing entries.

    Kassab 2021, 2.2.3, Algorithm 2, with that step in its proximal form, which does not overshoot.

    Parameters
    ----------
    p : float
        Exponent of the Schatten function, 0 (log-determinant) to 1.
    q : float
        Exponent of the sparsity of missing entries, 0 to 1.
    sparsity : float
        The step c, at least 0, for data of spectral norm 1; 0 turns it off.
    sparsity_decay : float
        c is multiplied by it in every iteration, 0 to 1; 1 in the thesis.
    """

    q: float = 1.0
    sparsity: float = 1e-6
    sparsity_decay: float = 1.0

    def _rank(self, problem: Problem) -> int | None:
        if problem.rank is not None:
            return problem.rank
        # Its own schedule falls so fast that nearly every rank the entries allow is kept.
        slow = sirls(problem.observations, problem.observations.largest_rank())
        return estimated_rank(problem, replace(slow, max_iter=_SLOW_ITERATIONS))

    def _schedule(self, problem: Problem) -> Schedule:
        return structured(**self._options(problem))


@dataclass(frozen=True)
class StructuredIRLS(_Reweighted):
    """IRLS with weights on missing entries too (Kassab 2021, Algorithm 1).

    It stores an n x m array, the iterate X of Algorithm 1; the completion is its low-rank part, and
    its attribute `iterate` is X.

    Parameters
    ----------
    p : float
        Exponent of the Schatten function, 0 (log-determinant) to 1.
    q : float
        Exponent of the sparsity of missing entries, 0 to 1.
    sparsity : float
        Weight alpha of the sparsity, at least 0, for data of spectral norm 1; 0 turns it off.
    """

    q: float = 1.0
    sparsity: float = 1.0

    dense: ClassVar[bool] = True


METHODS: dict[str, type[Method]] = {
    "auto": MatrixIRLS,
    "sirls": SIRLS,
    "structured-sirls": StructuredSIRLS,
    "irls": IRLS,
    "structured-irls": StructuredIRLS,
    "nnm": NNM,
    "structured-nnm": StructuredNNM,
}


def check_method(method: Any, *, noisy: bool) -> Method:
    """Return the method of a name, with its defaults, or a given one.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise TypeError(
            f"method must be a name or an object of ssnmf_fast.completion; got {method!r:.80}."
        )
    name = check_option(method, "method", tuple(METHODS))
    return IRLS(p=0.0) if name == "auto" and noisy else METHODS[name]()
