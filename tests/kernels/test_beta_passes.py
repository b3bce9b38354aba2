"""Passes with any power of the model, and the losses of any beta."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from test_passes import DTYPES, SHAPES


@each("rank", [7, 33, 130])
@each("dtype", DTYPES)
def test_smaller_models_count_as_the_least(kernels, reference, problem, rank, dtype):
    a = problem(kernels, 33, 21, rank, dtype, np.int32)
    for exponent in (-1, -2, -0.5, 0.5):
        power = exponent, float(np.median(a.F @ a.G.T))
        c = a.dense * np.maximum(a.F @ a.G.T, dtype(power[1])) ** dtype(exponent)
        bounds = np.array([0, 9, 21], np.int64)
        for module in (kernels, reference):
            out, turned = a.out.copy(), np.zeros_like(a.G)
            module.sparse_pass(power, *a.csr_arguments(), a.F, a.G, out, 0.7, False, 2)
            a.close(out, dtype(0.7) * (c @ a.G))
            module.dense_pass(power, a.dense, False, a.F, a.G, out, 0.7, False, 2)
            a.close(out, dtype(0.7) * (c @ a.G))
            module.scatter_pass(power, *a.csr_arguments(), a.G, a.F, bounds, turned, 1.0, 2)
            a.close(turned, c.T @ a.F)


@pytest.mark.slow
@each("rank", [1, 13, 64, 100])
@each("dtype", DTYPES)
@each("exponent", [-2, -1.5, -1, -0.7, 0.3])
def test_powers_of_the_model(kernels, reference, problem, rank, dtype, exponent):
    for p, q in SHAPES:
        a = problem(kernels, p, q, rank, dtype, np.int32)
        csr, dense = a.csr_arguments(), sp.csr_array((a.values, a.indices, a.indptr), (p, q))
        Z = dense.toarray()
        Z[0, 0] = np.nan
        bounds = np.array([0, q // 2, q], dtype=np.int64)
        results = []
        for module in (kernels, reference):
            outs = [a.out.copy(), a.out.copy(), a.out.copy(), np.ones_like(a.G)]
            module.sparse_pass(exponent, *csr, a.F, a.G, outs[0], 0.7, True, 2)
            module.dense_pass(exponent, Z, False, a.F, a.G, outs[1], 0.7, True, 2)
            module.dense_pass(exponent, Z, True, a.F, a.G, outs[2], 0.7, False, 2)
            module.scatter_pass(exponent, *csr, a.G, a.F, bounds, outs[3], 0.7, 2)
            results.append(outs)
        for ours, theirs in zip(*results, strict=True):
            a.close(ours, theirs)


@each("dtype", DTYPES)
@each("rest", [False, True])
@each("beta", [0, 1e-9, 0.4, 0.5, 0.8, 1 - 1e-9, 1, 1.5, 1.999])
def test_beta_loss(kernels, reference, problem, dtype, rest, beta):
    for p, q in SHAPES:
        a = problem(kernels, p, q, 13, dtype, np.int32)
        csr = a.csr_arguments()
        Z = sp.csr_array((a.values, a.indices, a.indptr), (p, q)).toarray()
        if beta == 0:
            Z += dtype(0.5)
        Z[0, 0] = np.nan
        weights = a.values[::-1].copy()
        ours, theirs = (
            (
                module.sparse_beta_loss(*csr, beta, rest, a.F, a.G, 2),
                module.sparse_beta_loss(*csr, beta, rest, a.F, a.G, 2, weights),
                module.dense_beta_loss(Z, beta, rest, a.F, a.G, 2),
            )
            for module in (kernels, reference)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-3 if dtype == np.float32 else 1e-9)


@each("dtype", DTYPES)
@each("beta", [0, 0.3, 0.8, 1, 1.5, 3])
def test_beta_loss_of_vanishing_models(kernels, reference, dtype, beta):
    """Infinite below 1 and above any smaller loss; with a bound, as scikit-learn defines it."""
    columns, least = kernels.padded_rank(1, np.dtype(dtype).itemsize), 1e-3
    F, G = (np.zeros((n, columns), dtype) for n in (3, 4))
    F[:, 0], G[:, 0] = [1, 0.5, 2], [0, np.finfo(dtype).tiny, 1e-5, 1]
    X = np.array([[3, 2, 1, 0], [0, 0, 2, 1e-4], [1, 1, 0, 1]], dtype)
    weights = (G[:, 0] > 0).astype(dtype)
    csr = sp.csr_array(X)
    parts = csr.indptr, csr.indices, csr.data
    for module in (kernels, reference):
        if beta > 2:  # only with a bound
            break
        rest = module.sparse_beta_loss(*parts, beta, True, F, G, 1)
        whole = module.dense_beta_loss(X, beta, False, F, G, 1)
        assert np.isinf([rest, whole]).all() == (beta < 1)
        smaller = module.sparse_beta_loss(*parts, beta, True, F, G, 1, weights[csr.indices])
        G[0, 0] = 1e-4
        assert not np.isnan(smaller)
        assert smaller < np.inf
        assert module.dense_beta_loss(X[:, ::2].copy(), beta, False, F, G[::2].copy(), 1) < rest
        G[0, 0] = 0
    Z = F[:, 0].astype(float)[:, None] * G[:, 0]
    counts, z = least < X, np.maximum(Z, least)
    x = np.where(counts, X, 1).astype(float)
    if beta == 1:
        exact = x * np.log(x / z) - x
    elif beta == 0:
        exact = x / z - np.log(x / z) - 1
    else:
        exact = x**beta / (beta * (beta - 1)) - x * z ** (beta - 1) / (beta - 1)
    exact = exact[counts].sum()
    for module in (kernels, reference):
        found = module.sparse_beta_loss(*parts, (beta, least), True, F, G, 1)
        assert found == pytest.approx(exact, rel=1e-5)
        found = module.dense_beta_loss(X, (beta, least), False, F, G, 1)
        assert found == pytest.approx(exact + (np.sum(Z**beta) / beta if beta else 0), rel=1e-5)
