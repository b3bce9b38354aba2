"""What does each form of weights cost in a fit of 10 iterations?"""

from __future__ import annotations

import scipy.sparse as sp

import ssnmf_fast as sf

from ._base import SparseSuite, np, start


class Masks(SparseSuite):
    param_names = ("n", "per_row", "rank", "dtype", "threads", "loss", "form")
    params = (
        (2000,),
        (80,),
        (13,),
        ("float32", "float64"),
        (2,),
        ("frobenius", "kullback-leibler"),
        ("none", "outer", "observed", "missing", "dense"),
    )
    m = 1000

    def setup(self, n, per_row, rank, dtype, threads, loss, form):
        super().setup(n, per_row, rank, dtype, threads)
        rng = np.random.default_rng(0)
        pattern = sp.csr_matrix(rng.random(self.X.shape) < 0.1)
        self.weights = {
            "none": lambda: None,
            "outer": lambda: sf.weights.outer(rng.random(n) + 0.1, rng.random(self.m) + 0.1),
            "observed": lambda: sf.weights.observed(self.X != 0),
            "missing": lambda: sf.weights.missing(pattern),
            "dense": lambda: rng.random(self.X.shape).astype(dtype),
        }[form]()
        self.init = start(self.X, 1, rank)[:2]

    def time_fit(self, n, per_row, rank, dtype, threads, loss, form):
        sf.factorize(
            self.X,
            n_components=rank,
            loss=loss,
            X_weights=self.weights,
            init=self.init,
            tol=0,
            max_iter=10,
            n_threads=threads,
        )
