"""Are decompositions of tensors those of TensorLy and pyttb?

Multiplicative updates and coordinate descent beside TensorLy's from the same start, and the
Kullback-Leibler loss at the end of pyttb's cp_apr.  TensorLy updates modes 0, 1, .., ours 1, 2, ..
and then 0: so ours sees the last mode first.

    python -m pip install tensorly==0.10.0 pyttb==1.8.6
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ssnmf_fast as sf

SHAPE, RANK = (12, 10, 8), 4
LAST_FIRST, BACK = (2, 0, 1), (1, 2, 0)


def beside_tensorly() -> None:
    """Print the largest difference of the models after some sweeps of both rules."""
    import tensorly as tl
    from tensorly.cp_tensor import CPTensor
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

    rng = np.random.default_rng(0)
    X = np.einsum("ir,jr,kr->ijk", *(rng.random((n, RANK)) for n in SHAPE))
    X += 0.1 * rng.random(SHAPE)
    start = [rng.random((n, RANK)) + 0.1 for n in SHAPE]
    turned = X.transpose(LAST_FIRST)
    coords = np.array(np.nonzero(turned))
    for sweeps in (1, 5, 20):
        theirs = non_negative_parafac(
            X, RANK, n_iter_max=sweeps, init=_copy(CPTensor, start), tol=0
        )
        for data in (turned, (coords, turned[tuple(coords)], turned.shape)):
            fit = _ours(data, start, "mu", sweeps)
            difference = np.abs(fit.to_dense().transpose(BACK) - tl.cp_to_tensor(theirs)).max()
            print(f"multiplicative, {sweeps} sweeps: largest difference {difference:.1e}")
    theirs = non_negative_parafac_hals(X, RANK, n_iter_max=1000, init=_copy(CPTensor, start), tol=0)
    loss = float(np.sum((X - tl.cp_to_tensor(theirs)) ** 2))
    ours = _ours(turned, start, "hals", 1000).objective[-1][1]
    print(f"coordinate descent, 1000 sweeps: {loss:.12g} and {ours:.12g}")


def _copy(kind: Any, start: list[Any]) -> Any:
    return kind((None, [F.copy() for F in start]))


def _ours(data: Any, start: list[Any], solver: str, sweeps: int) -> sf.TensorFactorization:
    init = [start[mode] for mode in LAST_FIRST]
    return sf.factorize_tensor(
        data, n_components=RANK, solver=solver, init=init, max_iter=sweeps, tol=0
    )


def beside_pyttb() -> None:
    """Print the loss where cp_apr ends, by its model and ours, and where ours goes from there."""
    import pyttb as ttb

    rng = np.random.default_rng(0)
    X = rng.poisson(3 * np.einsum("ir,jr,kr->ijk", *(rng.random((n, 3)) for n in SHAPE)))
    X = X.astype(float)
    counts = ttb.sptensor.from_aggregator(np.argwhere(X > 0), X[X > 0][:, None], SHAPE)
    options = {"n_components": 3, "loss": "kullback-leibler", "tol": 0.0}
    for seed in range(4):
        np.random.seed(seed)  # noqa: NPY002 - the package draws from the global generator
        M, _, _ = ttb.cp_apr(counts, 3, algorithm="mu", maxiters=3000, stoptol=1e-7, printitn=0)
        Z = M.full().data
        loss = float(np.sum(np.where(X > 0, X * np.log(np.where(X > 0, X, 1) / Z), 0) - X + Z))
        ending = [M.factor_matrices[0] * M.weights, *M.factor_matrices[1:]]
        further = sf.factorize_tensor(X, init=ending, max_iter=300, **options)
        own = sf.factorize_tensor(X, max_iter=3000, random_state=seed, **options)
        ours = [f"{value:.9g}" for value in (further.objective[0][1], further.objective[-1][1])]
        print(f"cp_apr {loss:.9g}; ours there {ours[0]}, on from there {ours[1]}; ", end="")
        print(f"from a start of its own {own.objective[-1][1]:.9g}")


if __name__ == "__main__":
    beside_tensorly()
    beside_pyttb()
