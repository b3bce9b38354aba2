"""Passes over the data and sweeps over factors, by rank, dtype and number of threads.

asv runs each benchmark in a fork of a process that has read this file.  A fork of a process that
has loaded the kernels works with one thread: the package is imported in `setup` alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from common import zipf_text

# A call takes some milliseconds at most, less than a busy system gives at a time: the least of
# several is that of one which nothing has interrupted.
ROWS, COLUMNS, PER_ROW, PANEL_ROWS = 6000, 4000, 60, 2000  # of the sparse matrix
UPDATED, SOLVED = 2500, 400  # rows of factors for updates, and for what reads their entries often
DENSE, TENSOR, ENTRIES = (800, 600), (2000, 300, 100), 100_000
RANKS, DTYPES, THREADS = (5, 10, 40, 96), ("float64", "float32"), (1, 2)
Call = Callable[[], Any]


@cache
def _sparse(dtype: str) -> tuple[Any, Any]:
    """Return a matrix and its transpose, as the kernels take them."""
    X = zipf_text(ROWS, COLUMNS, PER_ROW, np.dtype(dtype))
    return tuple((Z.indptr.astype(np.int64), Z.indices, Z.data) for Z in (X, X.T.tocsr()))


class _Problem:
    """Data and factors of a rank; every method makes the call of a kernel."""

    def __init__(self, rank: int, dtype: str, threads: int) -> None:
        from ssnmf_fast._backend import dispatch

        self.kernels, self.rank, self.dtype, self.threads = dispatch.kernels, rank, dtype, threads
        self._zeros = partial(dispatch.padded_zeros, rank=rank, dtype=dtype)
        self.rng = np.random.default_rng(0)
        self.X, self.XT = _sparse(dtype)

    def factor(self, rows: int) -> Any:
        F = self._zeros(rows)
        F[:, : self.rank] = self.rng.random((rows, self.rank)) + 0.01
        return F

    def _pass(self, name: str, exponent: float, data: Any, shape: tuple[int, int]) -> Call:
        F, G, out = (self.factor(rows) for rows in (*shape, shape[0]))
        kernel = getattr(self.kernels, name)
        return lambda: kernel(exponent, *data, F, G, out, 1.0, False, self.threads)

    def sparse_pass(self, exponent: float) -> Call:
        return self._pass("sparse_pass", exponent, self.X, (ROWS, COLUMNS))

    def masked_pass(self) -> Call:
        """Return the pass of the model over observed entries, of multiplicative updates."""
        return self._pass("sparse_pass", 1.0, (*self.X[:2], None), (ROWS, COLUMNS))

    def completion_pass(self) -> Call:
        """Return the pass of structured sIRLS over all entries of the shrunk model."""
        F, G, V, out = (self.factor(rows) for rows in (*DENSE, DENSE[1], DENSE[0]))
        given = F, G, V, 0.1, 0.01, 0.5, False, 0.0, out, self.threads
        return partial(self.kernels.mapped_product, *given)

    def dense_pass(self, exponent: float, order: Literal["C", "F"] = "C") -> Call:
        Z = np.asarray(self.rng.random(DENSE), self.dtype, order)
        return self._pass("dense_pass", exponent, (Z, False), DENSE)

    def panel_pass(self, exponent: float) -> Call:
        indptr = np.empty(-(-ROWS // PANEL_ROWS) * COLUMNS + 1, np.int64)
        panels = indptr, np.empty_like(self.X[1]), np.empty_like(self.X[2])
        self.kernels.transpose_panels(*self.X, PANEL_ROWS, *panels, self.threads)
        F, G, out = self.factor(COLUMNS), self.factor(ROWS), self.factor(COLUMNS)
        bounds = np.linspace(0, COLUMNS, 65).astype(np.int64)
        kernel, given = self.kernels.panel_pass, (F, G, bounds, out, 1.0, False, self.threads)
        return lambda: kernel(exponent, *panels, *given)

    def tensor_pass(self, exponent: float) -> Call:
        rows = np.sort(self.rng.integers(TENSOR[0], size=ENTRIES))
        indptr = np.searchsorted(rows, np.arange(TENSOR[0] + 1))
        others = [self.rng.integers(n, size=ENTRIES, dtype=np.int32) for n in TENSOR[1:]]
        values = self.rng.random(ENTRIES).astype(self.dtype)
        factors = [self.factor(n) for n in TENSOR[1:]]
        F, out, kernel = self.factor(TENSOR[0]), self.factor(TENSOR[0]), self.kernels.tensor_pass
        given = indptr, np.stack(others), values, F, factors, out, 1.0, False, self.threads
        return lambda: kernel(exponent, *given)

    def loss(self, name: str) -> Call:
        F, G = self.factor(ROWS), self.factor(COLUMNS)
        return partial(getattr(self.kernels, name), *self.X, F, G, self.threads)

    def _first_rows(self, rows: int) -> tuple[Any, ...]:
        indptr, *entries = self.X
        return indptr[: rows + 1], *(part[: indptr[rows]] for part in entries)

    def _update(self, rows: int, kernel: Callable[[Any], Any]) -> Call:
        """Return a call that begins with the same factor every time."""
        F = self.factor(rows)
        begin = F.copy()

        def call() -> None:
            F[...] = begin
            kernel(F)

        return call

    def coordinate_descent(self, sweeps: int, face_steps: int) -> Call:
        G, P, kernel = self.factor(COLUMNS), self._zeros(UPDATED), self.kernels.coordinate_descent
        X = self._first_rows(UPDATED)
        self.kernels.sparse_pass(0.0, *X, None, G, P, 1.0, False, self.threads)
        rest, steps = (None, None, None, G[:0], P), (None, sweeps, face_steps, self.threads)
        grams = (G.T @ G)[None]
        return self._update(UPDATED, lambda F: kernel(grams, None, *rest, F, *steps))

    def conjugate_rows(self, steps: int) -> Call:
        """Return the steps of conjugate gradients of a recommender."""
        G, ridges, kernel = self.factor(COLUMNS), np.ones(SOLVED, self.dtype), self.kernels
        given = *self._first_rows(SOLVED), G, 0.01 * (G.T @ G), ridges, steps
        return self._update(SOLVED, lambda F: kernel.conjugate_rows(*given, F, self.threads))

    def kl_descent(self, sweeps: int) -> Call:
        G, kernel = self.factor(COLUMNS), self.kernels.kl_descent
        X, given = self._first_rows(SOLVED), (G, np.ascontiguousarray(G.sum(axis=0)[None]))
        steps = None, sweeps, False, self.threads
        return self._update(SOLVED, lambda F: kernel(*X, *given, F, *steps))

    def update(self) -> Call:
        P, N, kernel = self.factor(UPDATED), self.factor(UPDATED), self.kernels.update
        return self._update(UPDATED, lambda F: kernel(F, P, N, None, None, "mm", 1.0, self.threads))

    def gram(self) -> Call:
        G, out = self.factor(ROWS), np.zeros((self._zeros(1).shape[1],) * 2, self.dtype)
        return lambda: self.kernels.gram(G, None, out, self.threads)


KERNELS: dict[str, Callable[[_Problem], Call]] = {
    "pass, squares": lambda p: p.sparse_pass(0.0),
    "pass, Kullback-Leibler": lambda p: p.sparse_pass(-1.0),
    "pass over a mask": lambda p: p.masked_pass(),
    "completion pass": lambda p: p.completion_pass(),
    "pass by panels, Kullback-Leibler": lambda p: p.panel_pass(-1.0),
    "dense pass, squares": lambda p: p.dense_pass(0.0),
    "dense pass by columns, squares": lambda p: p.dense_pass(0.0, "F"),
    "dense pass, Kullback-Leibler": lambda p: p.dense_pass(-1.0),
    "tensor pass, Kullback-Leibler": lambda p: p.tensor_pass(-1.0),
    "Kullback-Leibler loss": lambda p: p.loss("sparse_kl_loss"),
    "coordinate descent": lambda p: p.coordinate_descent(2, 4),
    "Kullback-Leibler descent": lambda p: p.kl_descent(1),
    "conjugate gradients": lambda p: p.conjugate_rows(3),
    "multiplicative update": lambda p: p.update(),
    "Gram matrix": lambda p: p.gram(),
}
PARAMETERS = (tuple(KERNELS), RANKS, DTYPES, THREADS)


def calls() -> Iterator[tuple[str, Callable[[], Call]]]:
    """Give the name of every benchmark, and what makes its call."""
    for kernel, *given in product(*PARAMETERS):
        name = "{}, rank {}, {}, threads {}".format(kernel, *given)
        yield name, lambda kernel=kernel, given=given: KERNELS[kernel](_Problem(*given))


class Kernels:
    param_names = ("kernel", "rank", "dtype", "threads")
    params = PARAMETERS
    repeat, rounds, warmup_time, sample_time = (3, 10, 0.2), 2, 0.02, 0.01

    def setup(self, kernel: str, rank: int, dtype: str, threads: int) -> None:
        self.call = KERNELS[kernel](_Problem(rank, dtype, threads))

    def time_kernel(self, kernel: str, rank: int, dtype: str, threads: int) -> None:
        self.call()
