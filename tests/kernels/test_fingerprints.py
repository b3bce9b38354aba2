"""Fingerprints of matrices, and how far what pulls at a factor is apart."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from helpers.each import each
from helpers.levels import bits_of

DTYPES = [np.float32, np.float64]


def matrix(seed, shape, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.random(shape).astype(np.float32).astype(dtype)
    return X * (rng.random(shape) < 0.5)


def of_sparse(kernels, X, first_row=0, n_threads=1):
    csr = sp.csr_array(X)
    parts = csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data
    return kernels.sparse_fingerprint(*parts, first_row, n_threads)


def of_dense(kernels, X, first_row=0, n_threads=1):
    return kernels.dense_fingerprint(X, first_row, n_threads)


@each("dtype", DTYPES)
@each("shape", [(1, 1), (3, 700), (700, 3), (300, 250), (0, 4), (4, 0)])
def test_one_fingerprint_for_all_forms(kernels, reference, shape, dtype):
    X = matrix(0, shape, dtype)
    expected = of_dense(reference, X)
    forms = [X, X.astype(np.float64), np.asfortranarray(X), X[::-1, ::-1].copy()[::-1, ::-1]]
    for form in forms:
        assert {of_dense(kernels, form, n_threads=n) for n in (1, 2)} == {expected}
    assert {of_sparse(kernels, X, n_threads=n) for n in (1, 2)} == {expected}
    assert of_sparse(reference, X) == expected


def test_zeros_and_missing_entries_are_what_they_are_called(kernels):
    X = matrix(1, (5, 4))
    Z = X.copy()
    Z[X == 0] = -0.0
    Z[0, 0] = X[0, 0] = np.nan
    Z[0, 0] = -Z[0, 0]
    assert of_dense(kernels, X) == of_dense(kernels, Z)
    X[0, 0] = 0
    assert of_dense(kernels, X) != of_dense(kernels, Z)
    X[0, 0] = np.finfo(np.float64).tiny / 2  # the other kernels take it for zero
    Z[0, 0] = 0
    assert of_dense(kernels, X) == of_dense(kernels, Z)


def test_fingerprints_of_parts_add_up(kernels):
    X = matrix(2, (90, 40))
    whole, cuts = of_dense(kernels, X), [0, 1, 30, 90]
    for function in (of_dense, of_sparse):
        parts = [function(kernels, X[a:b], a) for a, b in pairwise(cuts)]
        assert tuple(sum(each) % 2**64 for each in zip(*parts, strict=True)) == whole


@each("seed", range(30))
def test_any_change_is_seen(kernels, seed):
    rng = np.random.default_rng(seed)
    X = matrix(seed, (6, 5)) + 0.1
    places = [tuple(place) for place in rng.permutation(np.argwhere(X > 0))[:2]]
    nudged, swapped, moved = X.copy(), X.copy(), np.roll(X, 1, axis=rng.integers(2))
    nudged[places[0]] = np.nextafter(X[places[0]], 1)
    swapped[places[0]], swapped[places[1]] = X[places[1]], X[places[0]]
    found = [of_dense(kernels, Z) for Z in (X, nudged, moved, X * 2, X.T.copy())]
    if X[places[0]] != X[places[1]]:
        found.append(of_dense(kernels, swapped))
    for k in range(2):  # by each of the two sums
        assert len({each[k] for each in found}) == len(found)


def test_counts_are_told_apart(kernels):
    """Numbers of few bits in all places give as many fingerprints as there are matrices."""
    found = set()
    for i in range(20):
        for j in range(20):
            for count in (1.0, 2.0, 3.0):
                X = np.zeros((20, 20))
                X[i, j] = count
                found.add(of_dense(kernels, X)[0])
    assert len(found) == 1200


@each("dtype", DTYPES)
@each("rank", [1, 5, 16, 40])
@each("one_row", [False, True])
def test_imbalance(kernels, reference, rank, dtype, one_row):
    rng = np.random.default_rng(rank)
    F, P, N = (rng.random((700, rank)).astype(dtype) for _ in range(3))
    F[rng.random(F.shape) < 0.3] = 0
    N = N[:1] if one_row else N
    moves = bits_of(rng.random(F.shape) < 0.8)
    for given_moves in (None, moves):
        expected = reference.imbalance(F, P, N, given_moves, 1)
        found = kernels.imbalance(F, P, N, given_moves, 2)
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
        assert kernels.imbalance(F, P, N, given_moves, 1) == found


def test_imbalance_of_few_entries(reference, kernels):
    F, P = np.array([[0.0, 4.0], [2.0, 0.0]]), np.array([[3.0, 1.0], [1.0, 0.0]])
    N = np.array([[1.0, 2.0], [1.0, 5.0]])
    # 0 is pulled up by 2 and weighs as the mean 1; 4 is pulled down by 1; 2 stays, as does 0.
    for module in (reference, kernels):
        assert module.imbalance(F, P, N, None, 1) == (2 * 1 + 4 * 1, max(4 + 2, 8 + 2))
