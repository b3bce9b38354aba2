"""A package in a process of its own, whose fits are called here; see worker.py and worker.R."""

from __future__ import annotations

import os
import selectors
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import Fit, Problem, Timed
from common import FREED_MEMORY

# torch is named so that all are measured with the same one.  tsnmf asks for "sklearn", a name on
# PyPI that can no longer be installed; scikit-learn is all it needs, hence --no-deps.
INSTALL = {
    "scikit-learn": "python -m pip install scikit-learn",
    "ssnmf": "python -m pip install ssnmf==1.0.3 torch==2.13.0",
    "tsnmf": "python -m pip install --no-deps tsnmf==1.0.4",
    "nmf-torch": "python -m pip install nmf-torch==0.1.1 torch==2.13.0",
    "torchnmf": "python -m pip install torchnmf==0.3.5 torch==2.13.0",
    "gensim": "python -m pip install gensim==4.4.0",
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


class Process:
    """A package that waits for requests: the number of iterations, and of the start."""

    def __init__(self, package: str, interpreter: str, folder: Path, problem: Problem) -> None:
        folder.mkdir()
        (folder / "problem.txt").write_text(f"{problem.loss} {problem.rank}\n")
        X = problem.X
        parts = {"shape": np.array(X.shape, dtype=np.int32), "data": X}
        if sp.issparse(X):
            parts |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        for name, part in parts.items():
            kind = np.float64 if name == "data" else np.int32
            np.save(folder / f"{name}.npy", np.ascontiguousarray(part, dtype=kind))
        self.package, self.folder, self._problem = package, folder, problem
        threads = str(problem.threads)
        script = Path(__file__).with_name("worker.R" if package in IN_R else "worker.py")
        self._command = [interpreter, str(script), package, str(folder), threads]
        # PLANC has threads of its own around single-threaded BLAS, else both wait for each other.
        blas = "1" if package == "pyplanc" else threads
        limits = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": blas}
        # Threads that wait by spinning make PLANC three times as slow beside any other load.
        limits |= {"RAYON_NUM_THREADS": threads, "OMP_WAIT_POLICY": "passive"}
        self._environment = os.environ | limits | FREED_MEMORY["kept"]
        self._begin()

    def _begin(self) -> None:
        given: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        given |= {"stderr": subprocess.DEVNULL, "text": True, "env": self._environment}
        self.child = subprocess.Popen(self._command, **given)
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

    def fits(self) -> dict[str, Fit]:
        """Return the fits by label; * in a label is one that draws its own start: the median."""

        def middle(label: str, k: int) -> Timed:
            fits = [self.fit(label, k, seed) for seed in OWN_STARTS]
            losses = [self._problem.objective(each.result) for each in fits]
            result = fits[int(np.argsort(losses)[len(fits) // 2])].result
            return Timed(median(each.seconds for each in fits), result)

        def fit(label: str, k: int) -> Timed:
            return self.fit(label, k, 0)

        return {n: partial(middle if n.endswith("*") else fit, n) for n in self.labels}

    def close(self) -> None:
        self.child.kill()
        with suppress(BrokenPipeError), self.child:
            pass
