"""Missing entries in some blocks only: the fit of all data in memory, however they are cut."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import ssnmf_fast as sf

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
sfd = pytest.importorskip("ssnmf_fast.dask")

N, M, K, RANK = 60, 14, 3, 3
LOSSES = ("frobenius", "kullback-leibler")


def random_cuts(rng):
    inner = rng.choice(np.arange(1, N), size=rng.integers(1, 5), replace=False)
    return tuple(np.diff([0, *sorted(inner), N]).tolist())


def check(X, Y, cuts, **options):
    options = {"n_components": RANK, "random_state": 0, "max_iter": 10, "tol": 0} | options
    expected = sf.factorize(X, Y, **options)
    blocks = [dask.delayed(X[a:b]) for a, b in pairwise(np.cumsum([0, *cuts]))]
    fit = sfd.factorize(blocks, Y, **options)
    values = [np.array([value for _, value in each.objective]) for each in (fit, expected)]
    np.testing.assert_allclose(*values, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("supervision_loss", [None, *LOSSES])
@pytest.mark.parametrize("loss", LOSSES)
def test_nan_in_some_blocks(threads, loss, supervision_loss, seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(3.0, (N, M)).astype(float)
    few = rng.random((N, M)) < rng.choice([0.05, 0.7])
    X[few & (np.arange(N) < rng.integers(5, 50))[:, None]] = np.nan
    options, Y = {"loss": loss, "init": "auto"}, None
    if supervision_loss is not None:
        Y, options["supervision_loss"] = np.eye(K)[rng.integers(K, size=N)], supervision_loss
        if seed == 1:  # in the labels only
            X = np.nan_to_num(X, nan=1.0)
            Y[:5] = np.nan
    options["solver"] = ("auto", "mm", "mu")[seed]
    check(X, Y, random_cuts(rng), **options)


@pytest.mark.parametrize("kind", ["outer", "missing"])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_with_gaps_in_some_blocks(threads, loss, kind):
    rng = np.random.default_rng(5)
    X = rng.poisson(3.0, (N, M)).astype(float)
    if kind == "outer":
        X[:7, 2] = np.nan
        weights = sf.weights.outer(rng.random(N) + 0.5, rng.random(M) + 0.5)
    else:
        pattern = sp.random(N, M, 0.2, random_state=1, format="csr").toarray()
        pattern[20:] = 0
        weights = sf.weights.missing(sp.csr_array(pattern))
    options = {"loss": loss, "init": "random", "X_weights": weights}
    check(X, None, (20, 25, 15), **options)
