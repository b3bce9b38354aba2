"""How long do 10 iterations of the four models and of plain NMF take, and how much memory?"""

from __future__ import annotations

import ssnmf_fast as sf

from ._base import SparseSuite, one_hot, start

LOSSES = {"F": "frobenius", "D": "kullback-leibler"}


class Fits(SparseSuite):
    param_names = ("n", "per_row", "rank", "dtype", "threads", "model")
    params = (*SparseSuite.params, ("FF", "FD", "DF", "DD", "F", "D"))

    def setup(self, n, per_row, rank, dtype, threads, model):
        super().setup(n, per_row, rank, dtype, threads)
        self.init = start(self.X, 5, rank)
        self.Y = one_hot(n, 5, dtype)

    def time_fit(self, n, per_row, rank, dtype, threads, model):
        supervised = len(model) == 2
        sf.factorize(
            self.X,
            self.Y if supervised else None,
            n_components=rank,
            loss=LOSSES[model[0]],
            supervision_loss=LOSSES[model[-1]],
            init=self.init if supervised else self.init[:2],
            tol=0,
            max_iter=10,
            n_threads=threads,
        )

    peakmem_fit = time_fit
