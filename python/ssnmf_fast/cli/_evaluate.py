"""Fit of a completion, and its error at held-out entries beside that of plain means."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import ssnmf_fast

from .._common.warn import UNINFORMED, quietly
from .._data.arrays import drop_entries, entry_rows
from .._solver.loop import ProgressBar
from ..completion._matrix_irls import MAX_ITER
from ..completion._methods import METHODS
from ..completion._noisy import Biases, ranks
from ..completion._result import Completion
from ._source import UsageError


@dataclass(frozen=True)
class Task:
    """The observed entries (with sorted rows), what they are, and how to complete them."""

    matrix: sp.csr_array
    things: str
    options: Any
    noisy: bool  # with shrinkage, and means of rows and of columns

    @property
    def density(self) -> float:
        """Share of the entries that are observed."""
        n, m = self.matrix.shape
        return float(self.matrix.nnz / (n * m))

    def check(self) -> None:
        """Raise UsageError for options that do not go together or with the data."""
        method = METHODS[self.options.method]
        n, m = self.matrix.shape
        if self.options.rank is not None and self.options.rank > min(n, m):
            raise UsageError(f"--rank {self.options.rank} is too large for {n} x {m} entries")
        if self.noisy and not (method.by_levels or self.options.method == "auto"):
            raise UsageError(f"--method {self.options.method} fits exactly; add --exact")
        if self.options.rank is not None and not method.takes_rank:
            raise UsageError(
                f"--method {self.options.method} determines the rank; leave --rank out"
            )

    def fit(self, matrix: sp.csr_array, rank: int | None, gamma: float | None) -> Completion:
        """Complete; None leaves the choice to validation, or for exact fits to the library."""
        options, observer = self.options, self._progress(rank is not None and gamma is not None)
        with observer:
            completion: Completion = quietly(
                UNINFORMED,
                ssnmf_fast.complete,
                matrix,
                method=options.method,
                rank=rank,
                gamma_min=("validate" if gamma is None else gamma) if self.noisy else None,
                biases=self.noisy,
                max_iter=options.max_iter,
                random_state=options.seed,
                n_threads=options.threads,
                callback=observer,
            )
        if not options.clip:
            return completion
        return replace(completion, lower=float(matrix.data.min()), upper=float(matrix.data.max()))

    def _progress(self, chosen: bool) -> Any:
        """Return a callback of a fit; `chosen` tells whether rank and gamma are given."""
        if self.noisy:
            candidates = 0 if chosen else len(ranks(self.options.rank, self.matrix.shape))
            return _FitsBar(candidates + 1, "fit" if chosen else "choose")
        default = MAX_ITER if self.options.method == "auto" else None
        return ProgressBar(self.options.max_iter or default, "fit", "change")


def evaluate(task: Task) -> tuple[Completion, dict[str, Any]]:
    """Fit with some entries held out, and predict these; then fit all entries, and print both.

    Rank and gamma that the first fit chose by validation are those of the second.  Return this, and
    choices, errors and times for a report.
    """
    options, rank, gamma = task.options, task.options.rank, None
    errors: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    count, share = task.matrix.nnz, options.test_size
    held = np.zeros(count, dtype=bool)
    held[np.random.default_rng(options.seed).permutation(count)[: round(share * count)]] = True
    if held.all():
        raise UsageError(f"--test-size {share:g} leaves no entry to fit; there are {count}")
    if task.noisy:
        sought = "rank and shrinkage" if rank is None else "shrinkage"
        print(f"  choice    {sought}: by the error at a tenth of the {task.things}", flush=True)
    begin = time.perf_counter()
    if held.any():
        matrix, kept = task.matrix, drop_entries(task.matrix, held)
        rows, columns = entry_rows(matrix.indptr)[held], matrix.indices[held]
        completion = task.fit(kept, rank, None)
        seconds["evaluation"] = time.perf_counter() - begin
        biases = Biases(kept)
        predicted = {
            "model": completion.predict(rows, columns),
            "row and column means": biases.at(rows, columns),  # drawn to zero if of few entries
            "overall mean": kept.data.mean(),
        }
        for name, guess in predicted.items():
            gap = np.asarray(guess, dtype=np.float64) - matrix.data[held]
            root = np.sqrt(np.mean(gap**2))
            errors[name] = {"RMSE": float(root), "MAE": float(np.mean(np.abs(gap)))}
        if task.noisy:
            rank, gamma = max(1, completion.rank), completion.gamma
        begin = time.perf_counter()
    completion = task.fit(task.matrix, rank, gamma)
    seconds["fit"] = time.perf_counter() - begin
    chosen = f"rank {completion.rank}"
    if task.noisy:
        chosen += f", gamma {completion.gamma:.3g}"
    print(f"  fit       {chosen}, {completion.n_iter} iterations in {seconds['fit']:.2f} s")
    if not completion.converged:
        print("            stopped before the change fell below the tolerance; see --max-iter")
    if errors:
        print(f"\nError at {held.sum()} {task.things} held out from a first fit")
        print(f"  {'RMSE':>11}{'MAE':>11}")
    for name, error in errors.items():
        print(f"  {error['RMSE']:11.4g}{error['MAE']:11.4g}  {name}")
    return completion, {
        "density": task.density,
        "method": options.method,
        "noisy": task.noisy,
        "rank": completion.rank,
        "gamma": completion.gamma,
        "iterations": completion.n_iter,
        "converged": completion.converged,
        "seed": options.seed,
        "clip": [completion.lower, completion.upper] if options.clip else None,
        "held_out": int(held.sum()),
        "errors": errors,
        "seconds": seconds,
    }


class _FitsBar(ProgressBar):
    """Show on standard error how many of the planned fits are done, and where the current one is.

    There are at most `total` fits: the search for a rank may end early.
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
