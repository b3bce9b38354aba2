"""A progress bar, used as the callback of a fit."""

from __future__ import annotations

import sys
from typing import Any

from ._solver import State


class ProgressBar:
    """Show iterations and objective on standard error.

    Without a terminal or without tqdm it does nothing.

    Parameters
    ----------
    max_iter : int, optional
        Length of the bar, if it is known.
    label : str
        Text in front of the bar.
    value : str
        Name of the number behind it.
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

    def __call__(self, state: State) -> bool:
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

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def progress_bar(max_iter: int, label: str = "fit") -> ProgressBar:
    """Return a callback for :func:`ssnmf_fast.factorize` that shows a progress bar."""
    return ProgressBar(max_iter, label)
