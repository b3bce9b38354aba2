"""Options of :func:`ssnmf_fast.complete`, and which of them each method uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.checks import check_real

# The options that only some methods use.  All methods use the others: fill_value, nonnegative,
# max_iter, tol, random_state, n_threads.
_USES: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"rank", "p", "sparsity", "gamma_min", "biases", "init"}),
    "sirls": frozenset({"rank", "p", "gamma_min", "biases", "init"}),
    "structured-sirls": frozenset(
        {"rank", "p", "q", "sparsity", "sparsity_decay", "sparsity_step", "gamma_min", "init"}
    ),
    "irls": frozenset({"rank", "p", "gamma_min", "biases", "init"}),
    "structured-irls": frozenset({"rank", "p", "q", "sparsity", "gamma_min", "init"}),
    "nnm": frozenset(),
    "structured-nnm": frozenset({"sparsity", "missing_norm"}),
}
METHODS = tuple(_USES)
# The methods that go through levels of the regularizer where `gamma_min` is given.
WITH_LEVELS = tuple(method for method, uses in _USES.items() if "biases" in uses)

_SPARSITY = {
    "structured-sirls": 1e-6,
    "structured-irls": 1.0,
    "structured-nnm": 0.01,
    "auto": 200.0,
}


def _listed(methods: tuple[str, ...]) -> str:
    return ", ".join(map(repr, methods))


def refuse_unused(method: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that is given (not None) though the method does not use it."""
    for name, value in given.items():
        if value is None or name in _USES[method]:
            continue
        users = tuple(other for other, uses in _USES.items() if name in uses)
        raise ValueError(
            f"method {method!r} does not use {name}; got {name}={_shown(value)}. Leave it out, or "
            f"take a method that uses it: {_listed(users)}."
        )


def _shown(value: Any) -> str:
    """A short text of a value; arrays and completions are named by their kind."""
    if isinstance(value, (str, int, float, np.number)):
        return repr(value)
    return f"<{type(value).__name__}>"


def exponent_of(p: float | None, method: str) -> float:
    """Return p, or the default of a method."""
    if p is not None:
        return p
    return 0.0 if method == "auto" else 1.0


@dataclass(frozen=True)
class Options:
    """Checked arguments of :func:`ssnmf_fast.complete`."""

    method: str
    rank: int | None
    p: float | None
    q: float
    sparsity: float | None
    sparsity_decay: float
    proximal: bool
    missing_norm: str
    gamma_min: Any
    biases: bool
    nonnegative: bool | None
    fill_value: float
    max_iter: int | None
    tol: float | None
    rng: np.random.Generator
    n_threads: int

    def check(self) -> None:
        """Raise ValueError for options that do not go together."""
        if self.biases and not self.by_levels:
            raise ValueError(
                "biases=True needs gamma_min (a number or 'validate') and method "
                f"{_listed(WITH_LEVELS)}; got gamma_min={self.gamma_min!r}, "
                f"method={self.method!r}."
            )
        if self.by_levels and self.sparsity is not None:
            raise ValueError(
                "sparsity has no part in a fit with gamma_min; leave one of them out, or take "
                "method 'structured-sirls'."
            )
        if self.method == "auto" and not self.by_levels and self.p not in (None, 0.0):
            raise ValueError(
                f"method 'auto' without gamma_min has p = 0; got {self.p:g}. Leave p out, or take "
                "method 'irls' or 'sirls'."
            )
        if self.biases and self.fill_value != 0:
            raise ValueError("fill_value belongs to a fit without biases; leave it at 0.")
        if self.gamma_min == "validate" and not self.by_levels:
            raise ValueError(
                f"gamma_min='validate' needs method {_listed(WITH_LEVELS)}; got {self.method!r}."
            )

    @property
    def exponent(self) -> float:
        """The p in force."""
        return exponent_of(self.p, self.method)

    @property
    def by_levels(self) -> bool:
        """Whether the fit goes through levels of the regularizer, for noisy data."""
        return self.gamma_min is not None and self.method in WITH_LEVELS

    @property
    def strength(self) -> float:
        """The sparsity in force."""
        if self.sparsity is not None:
            return self.sparsity
        return _SPARSITY.get(self.method, 0.0)


def check_share(value: Any, name: str) -> float:
    number = check_real(value, name)
    if number > 1:
        raise ValueError(f"{name} must be from 0 to 1; got {value!r}.")
    return number


def check_flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def check_gamma_min(value: Any) -> float | str | None:
    if value is None or (isinstance(value, str) and value == "validate"):
        return value
    if isinstance(value, str):
        raise ValueError(f"gamma_min must be a number, 'validate' or None; got {value!r}.")
    number = check_real(value, "gamma_min")
    if number == 0:
        raise ValueError("gamma_min must be above 0; None lets the regularizer vanish.")
    return number
