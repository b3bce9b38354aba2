"""What a method of completion is given, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._common.arrays import Array
from .._data.checks import check_real
from ._observations import Observations
from ._result import CompletionState

# The state, the factors F and G, and the scale of F in the units of the data.
Check = Callable[[CompletionState, Array, Array, float], bool]


class Method(ABC):
    """A method of :func:`ssnmf_fast.complete`."""

    by_levels: ClassVar[bool] = False  # whether it fits noisy data, through levels of gamma
    takes_rank: ClassVar[bool] = True  # and a smallest gamma and a start
    nonnegative: ClassVar[bool] = False  # the default, where no observed entry is negative

    def __post_init__(self) -> None:
        for parameter in fields(self):  # type: ignore[arg-type]
            value = getattr(self, parameter.name)
            if parameter.name in ("p", "q", "sparsity_decay"):
                object.__setattr__(self, parameter.name, _check_share(value, parameter.name))
            elif parameter.name == "sparsity":
                object.__setattr__(self, parameter.name, check_real(value, parameter.name))

    @abstractmethod
    def _run(self, problem: Problem) -> Outcome:
        """Complete the scaled entries."""


@dataclass(frozen=True)
class Options:
    """Checked arguments of :func:`ssnmf_fast.complete`."""

    method: Method
    rank: int | None
    gamma_min: Any
    biases: bool
    nonnegative: bool | None
    fill_value: float
    max_iter: int | None
    tol: float | None
    rng: np.random.Generator
    n_threads: int

    @property
    def by_levels(self) -> bool:
        """Whether the fit goes through levels of the regularizer, for noisy data."""
        return self.gamma_min is not None and self.method.by_levels


class Problem(NamedTuple):
    """Entries scaled to spectral norm 1, from a start if there is one."""

    observations: Observations
    options: Options
    start: tuple[Array, Array] | None
    floor: float  # smallest value of a missing entry
    check: Check


@dataclass
class Outcome:
    """Factors of the completed matrix in scaled units, F G^T with orthonormal columns of G."""

    F: Array
    G: Array
    singular: Array
    gamma: float
    history: list[CompletionState] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    n_biases: int = 0  # columns of the factors after those of the singular values
    iterate: Array | None = None  # where a method stores it, n x m


def _check_share(value: Any, name: str) -> float:
    """Return a number from 0 to 1."""
    number = check_real(value, name)
    if number > 1:
        raise ValueError(f"{name} must be from 0 to 1; got {value!r}.")
    return number
