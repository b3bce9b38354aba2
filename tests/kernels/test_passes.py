"""The passes over sparse and dense data agree with the NumPy reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_calls import calls

SHAPES = [(1, 7), (9, 1), (33, 21), (150, 300)]
RANKS = [1, 7, 8, 13, 33, 64, 65, 100, 130, 256]
DTYPES = [np.float32, np.float64]
EXPONENTS = [0, -1, 1]  # product, ratio, sampled: the passes that have operations of their own


@pytest.mark.slow
@each(("rank", "index"), [*((rank, np.int32) for rank in RANKS), (13, np.int64), (100, np.int64)])
@each("dtype", DTYPES)
def test_sparse_passes(kernels, reference, problem, rank, dtype, index):
    for p, q in SHAPES:
        a = problem(kernels, p, q, rank, dtype, index)
        for accumulate in (False, True):
            for pattern in (False, True):
                csr = a.csr_arguments(pattern)
                for exponent in EXPONENTS:
                    ours, theirs = a.out.copy(), a.out.copy()
                    kernels.sparse_pass(exponent, *csr, a.F, a.G, ours, 0.7, accumulate, 2)
                    reference.sparse_pass(exponent, *csr, a.F, a.G, theirs, 0.7, accumulate, 1)
                    a.close(ours, theirs)
        csr = a.csr_arguments()
        a.close(
            kernels.sparse_kl_loss(*csr, a.F, a.G, 2), reference.sparse_kl_loss(*csr, a.F, a.G, 1)
        )
        weights = a.values[::-1].copy()
        a.close(
            kernels.sparse_frobenius_loss(*csr, weights, a.F, a.G, 2),
            reference.sparse_frobenius_loss(*csr, weights, a.F, a.G, 1),
        )


@pytest.mark.slow
@each(("rank", "index"), [(1, np.int32), (13, np.int64), (64, np.int32), (100, np.int64)])
@each("dtype", DTYPES)
def test_scattered_passes_are_those_of_the_transpose(
    kernels, reference, problem, rank, dtype, index
):
    for p, q in SHAPES:
        a = problem(kernels, p, q, rank, dtype, index)
        transpose = sp.csr_array((a.values, a.indices, a.indptr), shape=(p, q)).T.tocsr()
        Zt = (transpose.indptr.astype(index), transpose.indices.astype(index), transpose.data)
        for exponent in (*EXPONENTS, -0.5):
            results = []
            for module in (kernels, reference):
                for cuts in ([], [q // 2], [0, q // 3, q]):
                    bounds = np.array([0, *cuts, q], dtype=np.int64)
                    out = np.ones_like(a.G)
                    where = a.F, bounds, out, 0.7, 3
                    module.scatter_pass(exponent, *a.csr_arguments(), a.G, *where)
                    results.append(out)
            expected = np.ones_like(a.G)
            reference.sparse_pass(exponent, *Zt, a.G, a.F, expected, 0.7, True, 1)
            assert len({out.tobytes() for out in results[:3]}) == 1
            for out in results:
                a.close(out, expected)


@pytest.mark.parametrize("exponent", [-1, 0])
def test_long_matrices_are_scattered_in_stretches(kernels, exponent):
    """A million rows and entries are a stretch; here most rows are empty, and one is long."""
    rng = np.random.default_rng(0)
    p, q = 1_200_000, 3000
    counts = np.zeros(p, dtype=np.int64)
    counts[::500] = 3
    counts[-7] = q
    indptr = np.concatenate([[0], np.cumsum(counts)])
    starts = rng.integers(0, q - 2, size=p)
    indices = np.concatenate([np.arange(starts[i], starts[i] + 3) for i in range(0, p, 500)])
    indices = np.insert(indices, indptr[p - 7], np.arange(q)).astype(np.int32)
    values = rng.random(len(indices))
    F, G = rng.random((q, 8)), np.tile(rng.random((1000, 8)), (p // 1000, 1))
    rows = np.repeat(np.arange(p), counts)
    c = values if exponent == 0 else values / np.sum(G[rows] * F[indices], axis=1)
    expected = np.zeros((q, 8))
    np.add.at(expected, indices, c[:, None] * G[rows])
    for n_threads in (1, 2):
        out, bounds = np.zeros((q, 8)), np.array([0, 1000, q])
        csr = indptr, indices, values
        kernels.scatter_pass(exponent, *csr, F, G, bounds, out, 1.0, n_threads)
        np.testing.assert_allclose(out, expected, rtol=1e-10)


@pytest.mark.slow
@each("rank", [1, 13, 64, 100])
@each("dtype", DTYPES)
def test_panels_give_the_pass_over_the_transpose(kernels, reference, problem, rank, dtype):
    for p, q in SHAPES:
        a = problem(kernels, p, q, rank, dtype, np.int32)
        Z = sp.csr_array((a.values, a.indices, a.indptr), shape=(p, q)).T.tocsr()
        for panel_rows in (1, 3, p):
            n_panels = -(-p // panel_rows)
            cut = (
                np.empty(n_panels * q + 1, np.int64),
                np.empty(Z.nnz, np.int32),
                np.empty(Z.nnz, dtype),
            )
            made = [tuple(map(np.copy, cut)) for _ in range(2)]
            for module, parts in zip((kernels, reference), made, strict=True):
                module.transpose_panels(*a.csr_arguments(), panel_rows, *parts, 3)
            for ours, theirs in zip(*made, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            for exponent in EXPONENTS:
                F = a.G if exponent else None
                expected = np.ones_like(a.G)
                csr = Z.indptr, Z.indices, Z.data
                reference.sparse_pass(exponent, *csr, F, a.F, expected, 0.7, True, 1)
                found = set()
                for module, n_threads, cuts in (
                    (kernels, 1, []),
                    (kernels, 2, [q // 2]),
                    (kernels, 8, [0, q // 3, q]),
                    (reference, 1, [q // 2]),
                ):
                    out = np.ones_like(a.G)
                    where = F, a.F, np.array([0, *cuts, q]), out, 0.7, True, n_threads
                    module.panel_pass(exponent, *made[0], *where)
                    a.close(out, expected)
                    if module is kernels:
                        found.add(out.tobytes())
                assert len(found) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exponent": np.nan}, "exponent must be a finite number"),
        ({"F": None}, "F must be given unless the exponent is 0"),
        ({"out": np.ones((3, 8)), "F": np.ones((3, 8))}, "as many rows as out"),
        ({"bounds": np.array([0, 3])}, "bounds must rise"),
    ],
)
def test_panels_refuse(kernels, changes, message):
    refused(message, kernels.panel_pass, **{**calls()["panel_pass"][1], **changes})


@pytest.mark.parametrize("bounds", [[0], [0, 5], [1, 7], [0, 6, 3, 7]])
def test_scattered_passes_refuse_ranges_that_are_none(kernels, problem, bounds):
    a = problem(kernels, 5, 7, 4, np.float64, np.int32)
    with pytest.raises(ValueError, match="must rise from 0 to the number of rows"):
        kernels.scatter_pass(0, *a.csr_arguments(), None, a.F, np.array(bounds), a.G, 1.0, 1)


@each("rank", [1, 13, 64, 100])
@each("dtype", DTYPES)
def test_dense_passes(kernels, reference, problem, rank, dtype):
    for p, q in SHAPES:
        a = problem(kernels, p, q, rank, dtype, np.int32)
        holes = a.dense.copy()
        holes[a.rng.random(holes.shape) < 0.2] = np.nan
        wide = np.repeat(np.repeat(a.dense, 2, axis=0), 3, axis=1)
        for Z in (a.dense, holes, np.asfortranarray(holes), wide[::2, ::3], a.dense[::-1, ::-1]):
            for mask in (False, True):
                for exponent in EXPONENTS:
                    ours, theirs = a.out.copy(), a.out.copy()
                    kernels.dense_pass(exponent, Z, mask, a.F, a.G, ours, 1.3, True, 2)
                    reference.dense_pass(exponent, Z, mask, a.F, a.G, theirs, 1.3, True, 1)
                    a.close(ours, theirs)
            for name in ("dense_kl_loss", "dense_frobenius_loss"):
                a.close(
                    getattr(kernels, name)(Z, a.F, a.G, 2), getattr(reference, name)(Z, a.F, a.G, 1)
                )


def laid_out(Z, layout):
    """The same numbers by rows or by columns, or with gaps between them."""
    if layout == "gaps":
        return np.repeat(np.repeat(Z, 2, axis=0), 3, axis=1)[::2, ::3]
    return np.asarray(Z, order=layout)


def dense_pass(module, exponent, Z, mask, *rest):
    if exponent == "residual":
        module.dense_residual_pass(Z, *rest)
    else:
        module.dense_pass(exponent, Z, mask, *rest)


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    p=st.integers(1, 160),
    q=st.integers(1, 310),
    longer=st.sampled_from([0, 1]),
    rank=st.integers(1, 130),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(["C", "F", "gaps"]),
    missing=st.sampled_from([0, 0.3, 1]),
    mask=st.booleans(),
    exponent=st.sampled_from([*EXPONENTS, -2, -0.5, "residual"]),
    seed=st.integers(0, 2**31),
)
def test_any_dense_pass(
    kernels, reference, problem, p, q, longer, rank, dtype, layout, missing, mask, exponent, seed
):
    """Odd shapes, layouts and missing entries: as in NumPy, with the same bits for any threads."""
    a = problem(kernels, p, q + 1500 * longer, rank, dtype, np.int32, density=0.7, seed=seed)
    holes = a.dense.copy()
    holes[a.rng.random(holes.shape) < missing] = np.nan
    Z = laid_out(holes, layout)
    before = Z.copy()
    expected = a.out.copy()
    dense_pass(reference, exponent, Z, mask, a.F, a.G, expected, 0.7, True, 1)
    names = ("dense_kl_loss", "dense_frobenius_loss")
    losses = [getattr(reference, name)(Z, a.F, a.G, 1) for name in names]
    found = set()
    for n_threads in (1, 2, 8):
        out = a.out.copy()
        dense_pass(kernels, exponent, Z, mask, a.F, a.G, out, 0.7, True, n_threads)
        a.close(out, expected)
        ours = tuple(getattr(kernels, name)(Z, a.F, a.G, n_threads) for name in names)
        a.close(ours, losses)
        found.add((out.tobytes(), *ours))
    assert len(found) == 1
    np.testing.assert_array_equal(Z, before)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_few_rows_of_a_long_matrix(kernels, reference, problem, dtype, layout):
    """The long side is cut into stretches; a rank that pads nothing, and one that pads most."""
    for rank in (2, 32):
        a = problem(kernels, 7, 30_000, rank, dtype, np.int32)
        Z = np.asarray(a.dense, order=layout)
        for exponent in (0, -1):
            expected = a.out.copy()
            reference.dense_pass(exponent, Z, False, a.F, a.G, expected, 1.0, True, 1)
            found = set()
            for n_threads in (1, 2, 8):
                out = a.out.copy()
                kernels.dense_pass(exponent, Z, False, a.F, a.G, out, 1.0, True, n_threads)
                a.close(out, expected)
                found.add(out.tobytes())
            assert len(found) == 1


@each("rank", [1, 13, 100])
@each("dtype", DTYPES)
@each("rows", [1, 5, 1025, 3000])
def test_factor_operations(kernels, reference, problem, rank, dtype, rows):
    a = problem(kernels, rows, 4, rank, dtype, np.int32)
    weights = a.rng.random(rows).astype(dtype)
    columns = a.F.shape[1]
    K = np.empty((columns, columns), dtype=dtype)
    expected = np.empty_like(K)
    for w in (None, weights):
        kernels.gram(a.F, w, K, 2)
        reference.gram(a.F, w, expected, 1)
        a.close(K, expected)
        vector, expected_vector = np.empty(columns, dtype=dtype), np.empty(columns, dtype=dtype)
        kernels.column_sums(a.F, w, vector, 2)
        reference.column_sums(a.F, w, expected_vector, 1)
        a.close(vector, expected_vector)
        for name, first in [("multiply", (a.F, K)), ("add_row", (vector,))]:
            ours, theirs = a.out.copy(), a.out.copy()
            getattr(kernels, name)(*first, w, ours, 0.5, True, 2)
            getattr(reference, name)(*first, w, theirs, 0.5, True, 1)
            a.close(ours, theirs)
    a.close(kernels.inner(a.F, a.out, 2), reference.inner(a.F, a.out, 1))
    other = a.rng.random((rows, 3)).astype(dtype)
    crossed, product = np.empty((columns, 3), dtype=dtype), np.ones((rows, 3), dtype=dtype)
    kernels.cross(a.F, other, crossed, 2)
    a.close(crossed, a.F.T @ other)
    kernels.multiply(a.F, crossed, None, product, 2.0, False, 2)
    a.close(product, 2 * a.F @ crossed)


@each("rule", ["mu", "mm"])
@each("dtype", DTYPES)
@each("present", [(True, False), (False, True), (True, True)])
@each("relaxation", [0.0, 0.9])
def test_update(kernels, reference, problem, rule, relaxation, dtype, present):
    a = problem(kernels, 40, 4, 5, dtype, np.int32)
    pulls = [a.rng.random(a.F.shape).astype(dtype) for _ in range(4)]
    for pull in pulls:
        pull[:5] = 0  # no pull at all, in either direction
        pull[10:12] *= np.finfo(dtype).tiny
    pulls[0][20:25] = 0
    pulls[2][20:25] = 0
    pairs = [p if there else None for p, there in zip(pulls, np.repeat(present, 2), strict=True)]
    F = a.F.copy()
    F[30] = np.finfo(dtype).tiny
    ours, theirs = F.copy(), F.copy()
    kernels.update(ours, *pairs, rule, relaxation, 2)
    reference.update(theirs, *pairs, rule, relaxation, 1)
    a.close(ours, theirs)
    assert np.isfinite(ours).all()
    assert (ours[F == 0] == 0).all()
    np.testing.assert_array_equal(ours[:5], F[:5])


@each("rule", ["mu", "mm"])
@each("dtype", DTYPES)
@each("present", [(True, False), (False, True), (True, True)])
@each("rows", [1, 40, 600])
def test_one_row_may_pull_all_rows_down(kernels, reference, problem, rule, dtype, present, rows):
    a = problem(kernels, rows, 4, 13, dtype, np.int32)
    pulls = [a.rng.random(a.F.shape).astype(dtype) for _ in range(4)]
    pulls = [p if there else None for p, there in zip(pulls, np.repeat(present, 2), strict=True)]
    one_row = [p if p is None or k % 2 == 0 else p[:1] for k, p in enumerate(pulls)]
    repeated = [p if p is None or len(p) == rows else np.repeat(p, rows, axis=0) for p in one_row]
    ours, same, theirs = a.F.copy(), a.F.copy(), a.F.copy()
    kernels.update(ours, *one_row, rule, 0.9, 2)
    kernels.update(same, *repeated, rule, 0.9, 1)
    reference.update(theirs, *one_row, rule, 0.9, 1)
    np.testing.assert_array_equal(ours, same)
    a.close(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positive", [False, True])
def test_extrapolate(kernels, reference, problem, dtype, positive):
    a = problem(kernels, 40, 4, 5, dtype, np.int32)
    sides = []
    for module, n_threads in ((kernels, 2), (reference, 1)):
        F, before = a.F.copy(), a.out.copy()
        module.extrapolate(F, before, 0.7, positive, n_threads)
        np.testing.assert_array_equal(before, a.F)
        sides.append(F)
    a.close(*sides)
    assert ((sides[0] == 0) & (a.F > 0)).any() == (not positive)
    assert (sides[0] > 0).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("relaxation", [0.0, 0.9])
def test_steps_beyond_all_numbers_move_no_zero(kernels, dtype, relaxation):
    largest, least = np.finfo(dtype).max, kernels.tiny(dtype) * 2
    F = np.array([[0, 1e-5, 1, 0, 1e-5, 1, 0, 1]], dtype=dtype)
    P = np.full_like(F, largest / 8)
    P[0, 3:] = 0
    N = np.full_like(F, least)
    before = F.copy()
    for pulls in ((None, None, P, N), (P, N, None, None)):
        F[...] = before
        kernels.update(F, *pulls, "mm", relaxation, 1)
        assert not np.isnan(F).any()
        assert (F[before == 0] == 0).all()
        assert (F[0, 1:3] >= before[0, 1:3]).all()


@pytest.mark.parametrize("relaxation", [0.0, 0.5, 0.9, 1.0])
def test_relaxed_steps_never_raise_the_majorizer(reference, relaxation):
    """a u^2 + b u - c log u, from u = 1, over coefficients of every order of magnitude."""
    rng = np.random.default_rng(0)
    P2, N2, P1, N1 = 10.0 ** rng.uniform(-6, 6, size=(4, 20_000, 1))
    u = np.ones((20_000, 1))
    reference.update(u, P2, N2, P1, N1, "mm", relaxation, 1)
    before = N2 + N1 - 2 * P2
    after = N2 * u**2 + (N1 - 2 * P2) * u - P1 * np.log(u)
    assert (after <= before + 1e-12 * (N2 * u**2 + N2 + (N1 + 2 * P2) * (1 + u))).all()


@each("rank", [8, 16, 24])
@each("dtype", DTYPES)
def test_the_last_entries_of_a_row_are_its_own(kernels, problem, rank, dtype):
    """A row has the bits that it has alone, also in front of one that names a row of NaN."""
    a = problem(kernels, 40, 20, rank, dtype, np.int32)
    a.G[-1] = np.nan
    rows = [row for n in range(20) for row in (np.arange(n), [19])]
    indptr = np.cumsum([0, *map(len, rows)])
    indices, values = np.concatenate(rows).astype(np.int32), a.rng.random(indptr[-1]).astype(dtype)
    for exponent in (0, -1):
        kernels.sparse_pass(exponent, indptr, indices, values, a.F, a.G, a.out, 1.0, False, 1)
        for row in range(0, 40, 2):
            own, alone = slice(*indptr[row : row + 2]), np.ones_like(a.out[:1])
            given = indptr[row : row + 2] - indptr[row], indices[own], values[own]
            kernels.sparse_pass(exponent, *given, a.F[row : row + 1], a.G, alone, 1.0, False, 1)
            assert np.isfinite(alone).all()
            np.testing.assert_array_equal(alone[0], a.out[row])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [13, 100])
def test_threads_give_the_same_bits(kernels, problem, dtype, rank):
    a = problem(kernels, 5000, 300, rank, dtype, np.int32, density=0.05)

    def everything(n_threads):
        results = []
        for exponent in (-1, 0):
            out = np.zeros_like(a.out)
            kernels.sparse_pass(exponent, *a.csr_arguments(), a.F, a.G, out, 1.0, False, n_threads)
            results.append(out.tobytes())
        dense = np.zeros_like(a.out)
        kernels.dense_pass(-1, a.dense, False, a.F, a.G, dense, 1.0, False, n_threads)
        K = np.empty((a.F.shape[1],) * 2, dtype=dtype)
        kernels.gram(a.F, None, K, n_threads)
        sums = np.empty(a.F.shape[1], dtype=dtype)
        kernels.column_sums(a.F, None, sums, n_threads)
        scalars = (
            kernels.sparse_kl_loss(*a.csr_arguments(), a.F, a.G, n_threads),
            kernels.dense_frobenius_loss(a.dense, a.F, a.G, n_threads),
            kernels.inner(a.F, dense, n_threads),
        )
        return [*results, dense.tobytes(), K.tobytes(), sums.tobytes(), scalars]

    once = everything(1)
    for n_threads in (2, 3, 4, 8):
        assert everything(n_threads) == once


@each("index", [np.int32, np.int64])
@each("dtype", [np.float32, np.float64])
@each("shape", [(1, 1), (50, 3), (3, 50), (400, 900), (7, 0), (0, 7)])
def test_transpose(kernels, shape, dtype, index):
    Z = sp.random_array(shape, density=0.4, format="csr", rng=0).astype(dtype)
    for n_threads in (1, 3, 8):
        out = (np.empty(shape[1] + 1, np.int64), np.empty(Z.nnz, np.int32), np.empty(Z.nnz, dtype))
        kernels.transpose(Z.indptr.astype(index), Z.indices.astype(index), Z.data, *out, n_threads)
        expected = Z.T.tocsr()
        np.testing.assert_array_equal(out[0], expected.indptr)
        np.testing.assert_array_equal(out[1], expected.indices)
        np.testing.assert_array_equal(out[2], expected.data)


@each(
    ("indptr", "indices", "expected"),
    [
        ([0, 2, 3], [0, 2, 1], 0),
        ([0, 2, 3], [2, 0, 1], 1),
        ([0, 2, 3], [1, 1, 0], 2),
        ([0, 3, 4], [1, 0, 1, 0], 2),
        ([0, 2, 3], [0, 3, 1], 3),
        ([0, 2, 3], [0, -1, 1], 3),
        ([0, 3, 2], [0, 1, 2], 3),
        ([0, 2, 4], [0, 1, 2], 3),
        ([1, 2, 3], [0, 1, 2], 3),
        ([0], [], 0),
    ],
)
def test_structure_of_a_sparse_matrix(kernels, reference, indptr, indices, expected):
    arguments = (np.array(indptr, np.int32), np.array(indices, np.int32), 3, 2)
    assert kernels.inspect_csr(*arguments) == expected
    assert reference.inspect_csr(*arguments) == expected


@each("dtype", DTYPES)
def test_violation_counts_columns_without_curvature(kernels, reference, dtype):
    columns = kernels.padded_rank(9, np.dtype(dtype).itemsize)
    gram, P, F = (np.zeros((n, columns), dtype) for n in (columns, 40, 40))
    P[:, :9], F[:, :9] = -1.5, np.arange(9)
    for module in (kernels, reference):
        rest = None, None, None, None, F[:0], P, F.copy(), None
        assert module.coordinate_descent(gram[None], *rest, 1, 0, 1, True) == 40 * 8 * 1.5
