"""Progress of a completion, which may try several ranks."""

from __future__ import annotations

from typing import Any

from .._solver.progress import ProgressBar


class FitsBar(ProgressBar):
    """Show on standard error how many of the planned fits are done, and where the current one is.

    Parameters
    ----------
    total : int
        Fits at most: the search for a rank may end early.
    label : str
        Text in front of the bar.
    """

    def __init__(self, total: int, label: str) -> None:
        super().__init__(total, label)
        self._total, self._iteration = total, 0
        if self._bar is not None:
            self._bar.unit = "fit"

    def __call__(self, state: Any) -> bool:
        """Show the state; one whose iteration is no later belongs to the next fit."""
        if self._bar is not None:
            if state.iteration <= self._iteration and self._bar.n < self._total - 1:
                self._bar.update(1)
            self._iteration = state.iteration
            self._bar.set_postfix_str(
                f"rank {state.rank}, gamma {state.gamma:.2g}, iteration {state.iteration}"
            )
        return False


def completion_bar(options: Any, shape: tuple[int, int], noisy: bool, chosen: bool) -> ProgressBar:
    """Return a callback for a completion; `chosen` says whether rank and gamma are given."""
    from ..completion._matrix_irls import MatrixIrls
    from ..completion._noisy import ranks

    if noisy:
        candidates = 0 if chosen else len(ranks(options.rank, shape))
        return FitsBar(candidates + 1, "fit" if chosen else "choose")
    default = MatrixIrls.max_iter if options.method == "auto" else None
    return ProgressBar(options.max_iter or default, "fit", "change")
