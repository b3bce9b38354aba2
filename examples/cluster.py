"""Topics of counts on a Dask cluster: here two processes on this machine."""

import sys

import dask
import numpy as np
import scipy.sparse as sp
from dask.distributed import Client, LocalCluster

import ssnmf_fast as sf
import ssnmf_fast.dask as sfd
from ssnmf_fast import plotting


@dask.delayed
def counts(number):
    """Draw a block of documents; in practice, read one."""
    rng = np.random.default_rng(number)
    topics = np.random.default_rng(0).dirichlet(np.full(300, 0.05), size=8)
    shares = rng.dirichlet(np.full(8, 0.2), size=500)
    return sp.csr_array(rng.poisson(60 * shares @ topics).astype(float))


def main():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        blocks = [counts(number) for number in range(6)]
        options = {
            "n_components": 8,
            "loss": "kullback-leibler",
            "random_state": 0,
        }
        fit = sfd.factorize(blocks, **options)
        print(
            f"S: {fit.S.shape} in {fit.S.numblocks[0]} blocks, "
            f"A: {fit.A.shape}"
        )
        # the scales of the topics are arbitrary
        amounts = fit.S[:5].compute() * fit.A.sum(axis=1)
        print(
            f"largest topic of the first documents: {amounts.argmax(axis=1)}"
        )

        whole = sp.csr_array(sp.vstack(dask.compute(*blocks)))
        alone = sf.factorize(whole, **options)
        difference = abs(fit.A - alone.A).max() / fit.A.max()
        print(f"differs from the fit in memory by {difference:.0e}")
    picture = plotting.objective_curve({"cluster": fit, "memory": alone})
    picture.savefig(
        sys.argv[1] if len(sys.argv) > 1 else "cluster.png", dpi=90
    )


if __name__ == "__main__":
    main()
