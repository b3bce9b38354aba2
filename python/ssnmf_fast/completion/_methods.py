"""Methods of completion: objects that hold the parameters which a method alone takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from .._backend.dispatch import padded
from .._data.checks import check_option
from .._linalg.tall import square
from ._irls import Iteration, StructuredIteration, run
from ._matrix_irls import Parameters, run_matrix_irls
from ._nuclear import NNM, StructuredNNM
from ._problem import Method, Outcome, Problem
from ._schedule import Schedule, Sparsity, sirls, structured

_EASY = 0.3  # degrees of freedom for every observed entry, below which eps may fall at once
_HARD = 0.8
_FAST_ITERATIONS, _SLOW_ITERATIONS = 60, 500  # of an estimate of the rank


@dataclass(frozen=True)
class MatrixIRLS(Method):
    """Log-determinant weights on both sides, and two weights on missing entries.

    The weighted least squares are solved on the tangent space (Kuemmerle and Mayrink Verdun, ICML
    2021).  The two additional weights draw missing entries to zero and keep them from being
    negative.  This is "auto" for exact data.

    Parameters
    ----------
    sparsity : float
        Weight lambda of the first, at least 0, for data of spectral norm 1; 0 turns it off.
    """

    sparsity: float = 200.0

    nonnegative: ClassVar[bool] = True

    def _run(self, problem: Problem) -> Outcome:
        observations, options = problem.observations, problem.options
        rank = options.rank
        if rank is None:
            fast = structured(1.0, Sparsity(), None)
            rank = _estimated(problem, replace(fast, max_iter=_FAST_ITERATIONS))
        freedom = observations.freedom(rank)
        easy = freedom < _EASY
        parameters = Parameters(
            sparsity=self.sparsity,
            eps_decay=0.0 if easy else 0.9,
            cg_share=1e-2 if easy else 0.0,
            sampled=2.0 if freedom > _HARD else 1.0,
            floor=problem.floor,
        )
        if options.tol is not None:
            parameters = replace(parameters, tol=options.tol)
        if options.max_iter is not None:
            parameters = replace(parameters, max_iter=options.max_iter)
        return run_matrix_irls(
            observations, rank, parameters, problem.start, options.rng, problem.check
        )


@dataclass(frozen=True)
class _Reweighted(Method):
    """Iterations of reweighted least squares by a schedule."""

    p: float = 1.0

    exact: ClassVar[bool] = False  # whether rows are solved exactly

    def _run(self, problem: Problem) -> Outcome:
        options = problem.options
        rank = self._rank(problem)
        schedule = self._schedule(problem)
        if options.max_iter is not None:
            schedule = replace(schedule, max_iter=options.max_iter)
        if problem.start is not None:
            schedule = replace(schedule, gamma=_warm_gamma(problem, schedule))
        state = self._state(problem, rank)
        tol = 1e-5 if options.tol is None else options.tol
        outcome = run(state, schedule, tol, problem.check)
        outcome.iterate = state.X if isinstance(state, StructuredIteration) else None
        return outcome

    def _rank(self, problem: Problem) -> int | None:
        return problem.options.rank

    def _state(self, problem: Problem, rank: int | None) -> Iteration:
        return Iteration(problem.observations, rank, problem.start, problem.options.rng)

    def _schedule(self, problem: Problem) -> Schedule:
        observations, options = problem.observations, problem.options
        rank = options.rank or observations.largest_rank()
        schedule = sirls(observations, rank, self.p, options.gamma_min)
        return replace(schedule, sparsity=self._pull(problem), exact=self.exact)

    def _pull(self, problem: Problem, **further: Any) -> Sparsity:
        eps_floor = max((1e-3 * problem.observations.root_mean_square) ** 2, 1e-30)
        return Sparsity(eps_floor=eps_floor, floor=problem.floor, **further)


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

    Kassab 2021, 2.2.3, Algorithm 2.

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
    sparsity_step : {"proximal", "explicit"}
        Form of that step.  "explicit" is that of the thesis, which overshoots late in long runs and
        diverges for q < 1.
    """

    q: float = 1.0
    sparsity: float = 1e-6
    sparsity_decay: float = 1.0
    sparsity_step: Literal["proximal", "explicit"] = "proximal"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(self.sparsity_step, "sparsity_step", ("proximal", "explicit"))

    def _rank(self, problem: Problem) -> int | None:
        if problem.options.rank is not None:
            return problem.options.rank
        # Its own schedule falls so fast that nearly every rank the entries allow is kept.
        slow = sirls(problem.observations, problem.observations.largest_rank(), 1.0, None)
        return _estimated(problem, replace(slow, max_iter=_SLOW_ITERATIONS))

    def _schedule(self, problem: Problem) -> Schedule:
        sparsity = self._pull(
            problem,
            step=self.sparsity,
            decay=self.sparsity_decay,
            q=self.q,
            proximal=self.sparsity_step == "proximal",
        )
        return structured(self.p, sparsity, problem.options.gamma_min)


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

    exact: ClassVar[bool] = True

    def _state(self, problem: Problem, rank: int | None) -> Iteration:
        options = problem.options
        return StructuredIteration(
            problem.observations, rank, problem.start, options.rng, self.sparsity
        )

    def _pull(self, problem: Problem, **further: Any) -> Sparsity:
        return super()._pull(problem, q=self.q, **further)


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


def _estimated(problem: Problem, schedule: Schedule) -> int:
    """The rank that sIRLS with a falling rank comes to by a schedule."""
    state = Iteration(problem.observations, None, problem.start, problem.options.rng)
    run(state, schedule, 1e-4, lambda *_: False)
    return state.rank


def _warm_gamma(problem: Problem, schedule: Schedule) -> float:
    """Begin where the part that the given factors leave would be the next singular value."""
    assert problem.start is not None
    F, G = (padded(factor, problem.observations.dtype) for factor in problem.start)
    left = square(problem.observations.residuals(F, G))
    return float(np.clip(left, schedule.gamma_floor, schedule.gamma))
