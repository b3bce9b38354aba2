"""Results do not depend on where arrays lie in memory."""

import numpy as np
import pytest
from helpers.each import each

DTYPES = [np.float32, np.float64]
SHIFTS = range(0, 64, 8)  # bytes past a cache line


def shifted(array, shift):
    """A copy of an array that starts `shift` bytes after a cache line."""
    buffer = np.zeros(array.nbytes + 128, dtype=np.uint8)
    first = -buffer.ctypes.data % 64 + shift
    copy = buffer[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def check_all_places(run, *arrays):
    """Run on copies of arrays at all places; the last array is the result."""
    expected = None
    for shift in SHIFTS:
        *inputs, out = (shifted(array, shift) for array in arrays)
        number = run(*inputs, out)
        found = out.tobytes(), number
        expected = expected or found
        assert found == expected, f"{shift} bytes past a cache line"


@each("dtype", DTYPES)
@each("power", [0.3, 1.0])
@each("proximal", [True, False])
def test_maps_of_completion(kernels, problem, dtype, power, proximal):
    a = problem(kernels, 83, 61, 5, dtype, np.int32)
    a.F[:, 0] -= 0.5
    shrink = (0.02, 0.05, power, proximal, 0.0)

    def residuals(values, F, G, out):
        kernels.mapped_residuals(a.indptr, a.indices, values, F, G, 0.7, *shrink, out, 2)

    def product(F, G, out):
        kernels.mapped_product(F, G, G, *shrink, out, 2)

    check_all_places(residuals, a.values, a.F, a.G, np.zeros_like(a.values))
    check_all_places(product, a.F, a.G, np.zeros_like(a.F))


@each("dtype", DTYPES)
@each("rank", [3, 70])
@each("exponent", [0, -1, 1, -0.5])
def test_passes(kernels, problem, dtype, rank, exponent):
    a = problem(kernels, 83, 61, rank, dtype, np.int32)

    def sparse(values, F, G, out):
        kernels.sparse_pass(exponent, a.indptr, a.indices, values, F, G, out, 0.7, True, 2)
        return kernels.sparse_kl_loss(a.indptr, a.indices, values, F, G, 2)

    def dense(Z, F, G, out):
        kernels.dense_pass(exponent, Z, False, F, G, out, 0.7, True, 2)
        return kernels.dense_frobenius_loss(Z, F, G, 2), kernels.dense_kl_loss(Z, F, G, 2)

    check_all_places(sparse, a.values, a.F, a.G, np.ones_like(a.F))
    check_all_places(dense, a.dense, a.F, a.G, np.ones_like(a.F))


@each("dtype", DTYPES)
@each("p", [1, 2, 5, 97])
@each("q", [1, 3, 5, 7])
def test_small_products(kernels, problem, dtype, p, q):
    a = problem(kernels, p, q, 5, dtype, np.int32, density=1)
    K, weights = a.G.T @ a.G, np.ones(p, dtype)

    def mapped(F, G, out):
        kernels.mapped_product(F, G, G, 0.1, 0.05, 0.5, True, 0.0, out, 1)

    def dense(Z, F, G, out):
        kernels.dense_pass(-1.0, Z, False, F, G, out, 1.0, False, 1)

    def multiply(F, K, out):
        kernels.multiply(F, K, None, out, 1.0, False, 1)

    def cross(F, out):
        kernels.cross(F, F, out, 1)

    def gram(F, weights, out):
        kernels.gram(F, weights, out, 1)

    check_all_places(mapped, a.F, a.G, np.zeros_like(a.F))
    check_all_places(dense, a.dense, a.F, a.G, np.zeros_like(a.F))
    check_all_places(multiply, a.F, K, np.zeros_like(a.F))
    check_all_places(cross, a.F, np.zeros_like(K))
    check_all_places(gram, a.F, weights, np.zeros_like(K))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_factors(kernels, problem, dtype):
    a = problem(kernels, 83, 61, 13, dtype, np.int32)
    gram = a.G.T @ a.G
    P = a.dense @ a.G

    def descend(K, G, P, F):
        kernels.coordinate_descent(K[None], None, None, None, None, G, P, F, None, 2, 4, 2)

    def descend_by_entries(values, G, P, F):
        grams = np.empty((0, *gram.shape), dtype)
        csr = a.indptr, a.indices, values
        for sweeps in (1, 9):
            kernels.coordinate_descent(grams, None, *csr, G, P, F, None, sweeps, 0, 2)

    def nnls(K, G, P, F):
        return kernels.nnls(K, None, None, None, None, G, P, F, 1e-5, 100, 2)

    def kl(values, G, N, F):
        return kernels.kl_rows(a.indptr, a.indices, values, G, N, F, 1e-4, 100, 2)

    def kl_descent(values, G, N, F):
        return kernels.kl_descent(a.indptr, a.indices, values, G, N, F, None, 2, True, 2)

    def update(P, N, F):
        kernels.update(F, P, N, P, N, "mm", 0.5, 2)
        return kernels.inner(F, P, 2)

    def gram_of(G, out):
        kernels.gram(G, None, out, 2)

    check_all_places(descend, gram, a.G, P, a.F)
    check_all_places(descend_by_entries, a.values, a.G, P, a.F)
    check_all_places(nnls, gram, a.G, P, a.F)
    check_all_places(kl, a.values, a.G, a.G.sum(axis=0, keepdims=True), a.F)
    check_all_places(kl_descent, a.values, a.G, a.G.sum(axis=0, keepdims=True), a.F)
    check_all_places(update, P, P[::-1].copy(), a.F)
    check_all_places(gram_of, a.G, gram)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gamma_posteriors(kernels, problem, dtype):
    a = problem(kernels, 83, 61, 13, dtype, np.int32)
    rates = np.ones((1, a.F.shape[1]))

    def update(F, P, E):
        logs = kernels.gamma_update(F, P, 0.3, rates, None, E, 13, True, 2)
        return logs, kernels.gamma_bound(E, 0.3, rates, None, 13, 2)

    check_all_places(update, a.F, a.dense @ a.G, np.zeros_like(a.F))
