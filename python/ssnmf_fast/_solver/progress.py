"""Progress of a fit on standard error, used as its callback: a bar, or lines."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from .result import FitState

_SECONDS_BETWEEN_LINES = 0.5

Self = TypeVar("Self", bound="_Closed")


class _Closed:
    """What is closed at the end of a `with` block."""

    def close(self) -> None: ...

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class ProgressBar(_Closed):
    """Show iterations and objective on standard error; nothing without a terminal or tqdm.

    `label` is the text in front of the bar, `value` the name of the number behind it.
    """

    def __init__(self, max_iter: int | None, label: str = "fit", value: str = "objective") -> None:
        self._bar: Any = None
        self._value = value
        self._max_iter = max_iter
        if not sys.stderr.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self._bar = tqdm(total=max_iter, desc=label, unit="it", file=sys.stderr, leave=False)

    @property
    def shown(self) -> bool:
        """Whether there is a bar to see."""
        return self._bar is not None

    def __call__(self, state: FitState) -> bool:
        """Move the bar to the iteration of `state`; never stops the fit."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._value} {state.objective:.6g}", refresh=False)
            self._bar.update(state.iteration - self._bar.n)
            if self._max_iter is not None and state.iteration >= self._max_iter:
                self.close()
        return False

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class ProgressLines(_Closed):
    """Write iterations and objective to standard error, one line a check.

    Of checks that follow each other within half a second only one is written, and always the first
    and the last.
    """

    def __init__(self, max_iter: int | None, label: str, value: str) -> None:
        self._total = "" if max_iter is None else f"/{max_iter}"
        self._label = label
        self._value = value
        self._begin = time.monotonic()
        self._written = -float("inf")
        self._waiting: str | None = None

    def __call__(self, state: FitState) -> bool:
        """Write a line, or keep it until the end of the fit; never stops the fit."""
        now = time.monotonic()
        self._waiting = (
            f"{self._label}: iteration {state.iteration}{self._total}, "
            f"{self._value} {state.objective:.6g}, {now - self._begin:.1f} s"
        )
        if now - self._written >= _SECONDS_BETWEEN_LINES:
            self._written = now
            self.close()
        return False

    def close(self) -> None:
        """Write the line that is still waiting."""
        if self._waiting is not None:
            print(self._waiting, file=sys.stderr, flush=True)
            self._waiting = None


def verbose_progress(
    verbose: int, max_iter: int | None, label: str = "fit", value: str = "objective"
) -> AbstractContextManager[ProgressBar | ProgressLines | None]:
    """Return the callback of ``verbose=1``: a bar on a terminal with tqdm, lines elsewhere."""
    if not verbose:
        return nullcontext()
    bar = ProgressBar(max_iter, label, value)
    return bar if bar.shown else ProgressLines(max_iter, label, value)
