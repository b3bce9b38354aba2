"""Progress of a fit on standard error, used as its callback: a bar, or lines."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from .result import FitState

_SECONDS_BETWEEN_LINES = 0.5

Self = TypeVar("Self", bound="ProgressBar")


class ProgressBar:
    """Show iterations and objective on standard error: a bar on a terminal with tqdm.

    Elsewhere nothing, or one line a check: of checks that follow each other within half a second
    only one, and always the first and the last.  `label` is the text in front, `unit` what is
    counted, `value` the name of the number behind it.
    """

    def __init__(
        self,
        max_iter: int | None,
        label: str = "fit",
        value: str = "objective",
        lines: bool = False,
        unit: str = "iteration",
    ) -> None:
        self._bar = _tqdm(max_iter, label) if sys.stderr.isatty() else None
        self._lines = lines and self._bar is None
        self._unit = unit
        self._max_iter, self._label, self._value = max_iter, label, value
        self._begin, self._written = time.monotonic(), -float("inf")
        self._waiting: str | None = None

    def __call__(self, state: FitState) -> bool:
        """Move the bar, or write a line or keep it until the end; never stops the fit."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._value} {state.objective:.6g}", refresh=False)
            self._bar.update(state.iteration - self._bar.n)
            if self._max_iter is not None and state.iteration >= self._max_iter:
                self.close()
        if self._lines:
            now, total = time.monotonic(), "" if self._max_iter is None else f"/{self._max_iter}"
            self._waiting = (
                f"{self._label}: {self._unit} {state.iteration}{total}, "
                f"{self._value} {state.objective:.6g}, {now - self._begin:.1f} s"
            )
            if now - self._written >= _SECONDS_BETWEEN_LINES:
                self._written = now
                self.close()
        return False

    def end(self, residual: float) -> None:
        """Say how nearly the fit meets the optimality conditions."""
        self.close()
        if self._lines:
            self._waiting = f"{self._label}: residual of the optimality conditions {residual:.1e}"

    def close(self) -> None:
        """Remove the bar, or write the line that is still waiting."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._waiting is not None:
            print(self._waiting, file=sys.stderr, flush=True)
            self._waiting = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _tqdm(total: int | None, label: str) -> Any:
    """Return a bar, or None without tqdm."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=label, unit="it", file=sys.stderr, leave=False)


def verbose_progress(
    verbose: int,
    max_iter: int | None,
    label: str = "fit",
    value: str = "objective",
    unit: str = "iteration",
) -> AbstractContextManager[ProgressBar | None]:
    """Return the callback of ``verbose=1``: a bar on a terminal with tqdm, lines elsewhere."""
    return ProgressBar(max_iter, label, value, True, unit) if verbose else nullcontext()
