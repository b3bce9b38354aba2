"""A package in a process of its own, as solvers of this one; the other side is worker.py or .R."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from adapters import Problem, Solver
from common import Timed

INSTALL = {
    "pyplanc": "python -m pip install pyplanc==0.0.2 'numpy<2.3' scipy",
    "nmf-rs": "python -m pip install nmf-rs==0.1.0 scipy",
    "topica": "python -m pip install topica==0.62.0 scipy",
    "RcppML": "apt-get install r-cran-rcppml",
    "NMF": "apt-get install r-cran-nmf",
}
IN_R = ("RcppML", "NMF")
PATIENCE = 40.0  # seconds without an answer
OWN_STARTS = (0, 1, 2)


class Silent(Exception):
    """The package did not answer: it is missing, failed, or is far too slow."""


def write_problem(folder: Path, problem: Problem) -> None:
    folder.mkdir()
    (folder / "problem.txt").write_text(f"{problem.loss} {problem.rank}\n")
    np.save(folder / "shape.npy", np.array(problem.X.shape, dtype=np.int32))
    if sp.issparse(problem.X):
        np.save(folder / "indices.npy", problem.X.indices.astype(np.int32))
        np.save(folder / "indptr.npy", problem.X.indptr.astype(np.int32))
    data = problem.X.data if sp.issparse(problem.X) else problem.X
    np.save(folder / "data.npy", np.ascontiguousarray(data, dtype=np.float64))


class Process:
    """A package that waits for requests: the number of iterations, and of the start."""

    def __init__(self, package: str, interpreter: str, folder: Path, problem: Problem) -> None:
        write_problem(folder, problem)
        self.package, self.folder, threads = package, folder, str(problem.threads)
        script = Path(__file__).with_name("worker.R" if package in IN_R else "worker.py")
        self._command = [interpreter, str(script), package, str(folder), threads]
        # PLANC has threads of its own around single-threaded BLAS, else both wait for each other.
        blas = "1" if package == "pyplanc" else threads
        limits = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": blas}
        limits |= {"RAYON_NUM_THREADS": threads}
        # Threads that wait by spinning make PLANC three times as slow beside any other load.
        self._environment = os.environ | limits | {"OMP_WAIT_POLICY": "passive"}
        self._begin()

    def _begin(self) -> None:
        self.child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment,
        )
        self.version, *labels = self._answer()
        self.labels = [label for label in labels if label]

    def _answer(self) -> list[str]:
        assert self.child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            ready = selector.select(PATIENCE)
        line = self.child.stdout.readline() if ready else ""
        if not line:
            self.close()
            raise Silent(f"{self.package}: no answer")
        return line.rstrip("\n").split("\t")

    def fit(self, label: str, iterations: int, seed: int) -> Timed:
        """Fit in the other process, a new one if it has ended; return its seconds and factors."""
        if self.child.poll() is not None:
            self._begin()
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(f"{label}\t{iterations}\t{seed}\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Silent(f"{self.package} has ended") from None
        took = float(self._answer()[0])
        S, A = (np.load(self.folder / f"{name}.npy") for name in "SA")
        return Timed(took, (S, A))

    def solvers(self, problem: Problem) -> list[Solver]:
        """Return the solvers; * in a label says that it draws its own start."""
        return [self._solver(label, problem) for label in self.labels]

    def _solver(self, label: str, problem: Problem) -> Solver:
        own = label.endswith("*")

        def fit(k: int) -> Timed:
            if not own:
                return self.fit(label, k, 0)
            fits = [self.fit(label, k, seed) for seed in OWN_STARTS]
            losses = [problem.objective(each.result) for each in fits]
            middle = fits[int(np.argsort(losses)[len(fits) // 2])]
            return Timed(median(each.seconds for each in fits), middle.result)

        return Solver(label, fit, same_start=not own)

    def starts(self) -> dict[str, Callable[[int], Callable[[int], Any]]]:
        """Return, for every solver, a function of the number of the start."""

        def of(label: str) -> Callable[[int], Callable[[int], Any]]:
            return lambda seed: lambda k: self.fit(label, k, seed)

        return {label: of(label) for label in self.labels}

    def close(self) -> None:
        """End the process that was started here."""
        self.child.kill()
        with suppress(BrokenPipeError), self.child:
            pass
